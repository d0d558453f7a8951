"""A part is never taken for the whole: what rests on what a cap cut short is partial, in variables, in the state, and after it."""

import json
from typing import Any

import networkx as nx
import pytest
from knotwork import gasl
from knotwork.adapters.graph import Caps
from knotwork.runtime.gasl.records import plan_status
from support.clients import Scripted

CUT = "e was cut short by max_results (3) at 3 items"


def opened(**options: Any) -> Any:
    executor = gasl.open(nx.les_miserables_graph(), **options)
    for command in (
        "SET adapter.caps.max_results = 3", "FIND edges AS e", "FIND nodes LIMIT 2 AS whole", "DECLARE k AS LIST", "DECLARE n AS COUNTER",
    ):  # fmt: skip
        executor.execute_one(command)
    return executor


@pytest.mark.parametrize(
    "command",
    [
        "COUNT e AS x", "COUNT e BY source AS x", "AGGREGATE e BY source COMPUTE sum(weight) AS x", "RANK e BY weight LIMIT 1 AS x",
        "SELECT e FIELDS source AS x", "SELECT e WHERE weight > 1 AS x", "SELECT e WHERE weight > 100 AS x",
        "JOIN e WITH whole ON source = id AS x",
        "JOIN whole WITH e ON id = source AS x", "UNION whole WITH e AS x", "INTERSECT e WITH e AS x", "EXCEPT e WITH whole AS x",
        "WALK e AS x", "SUBGRAPH e RADIUS 1 AS x", "CONNECT e TO whole AS x", "MEASURE e USING degree AS x",
        "FIND nodes WHERE id IN ${e.source} LIMIT 1 AS x", "FIND paths FROM e TO whole MAXLEN 1 LIMIT 1 AS x", "UPDATE k WITH e",
        "ASSERT LEN ${e} > 1", "BRANCH IF LEN ${e} > 1 THEN COUNT whole AS x", "BRANCH IF LEN ${e} > 100 THEN COUNT whole AS x",
        "TRY\nCOUNT e AS x\nEND",
    ],
)  # fmt: skip
def test_what_rests_on_a_part_is_partial(command: str) -> None:
    with opened() as executor:
        record = executor.execute_one(command)
        assert (record.status, record.metrics["incomplete_from"]) == ("partial", ["e"])
        assert f"depends on e, which is incomplete: {CUT}" in record.error["message"]
        if "AS x" in command and "100 THEN" not in command:
            after = (
                executor.execute_one("COUNT x AS y")
                if "COUNT whole" not in command
                else executor.execute_one("ASSERT ${x} > 0")
            )
            if executor.context.get("x") is not None and not isinstance(executor.context.get("x"), int):
                assert (after.status, after.metrics["incomplete_from"]) == ("partial", ["x"])
                assert CUT in after.error["message"]


def test_a_limit_is_none_and_a_new_value_is_whole_again() -> None:
    with opened() as executor:
        assert executor.execute_one("COUNT whole AS x").status == "success"
        assert executor.execute_one("REQUIRE EXISTS e").status == "success"
        assert executor.execute_one("COUNT e AS e").metrics["incomplete_from"] == ["e"]
        assert executor.execute_one("FIND edges LIMIT 3 AS e").status == "success"
        assert executor.execute_one("COUNT e AS x").status == "success"


def test_an_assertion_that_fails_over_a_part_fails_and_says_so() -> None:
    with opened() as executor:
        record = executor.execute_one("ASSERT LEN ${e} > 100")
        assert (record.status, record.metrics["incomplete_from"]) == ("error", ["e"])
        assert record.error["message"].startswith(
            "the assertion does not hold: LEN ${e} > 100; LEN ${e} is 3; it depends on e"
        )


def test_what_a_branch_does_rests_on_its_condition_and_nothing_behind_it_does() -> None:
    with opened() as executor:
        executor.execute_one("BRANCH IF LEN ${e} > 1 THEN UPDATE k WITH whole")
        assert executor.state.snapshot().declared("k")[0].incomplete == (CUT,)
        assert executor.execute_one("COUNT whole AS x").status == "success"


def test_the_state_keeps_the_mark_until_the_key_is_replaced(tmp_path: Any) -> None:
    with opened(state=tmp_path / "s") as executor:
        executor.execute_one("COUNT e AS x")
        assert executor.execute_one("UPDATE n WITH x").status == "partial"
        assert executor.state.snapshot().declared("n")[0].incomplete == (CUT,)
        again = executor.execute_one("UPDATE n WITH x")
        assert again.metrics["incomplete_from"] == ["x"]
    with gasl.open(nx.les_miserables_graph(), state=tmp_path / "s") as executor:
        assert executor.state.snapshot().declared("n")[0].incomplete == (CUT,)
        executor.execute_one("FIND nodes LIMIT 2 AS w")
        executor.execute_one("COUNT w AS x")
        later = executor.execute_one("UPDATE n WITH x")
        assert (later.status, later.metrics["incomplete_from"]) == ("partial", ["n"])
        assert executor.state.fork().snapshot().declared("n")[0].incomplete == (CUT,)
        assert executor.execute_one("UPDATE n WITH x REPLACE").status == "success"
        assert executor.state.snapshot().declared("n")[0].incomplete == ()


def test_a_plan_is_partial_and_goes_on_and_a_replay_is_the_same() -> None:
    text = "SET adapter.caps.max_results = 3\nFIND edges AS e\nCOUNT e AS n\nDECLARE k AS COUNTER\nUPDATE k WITH n"
    with gasl.open(nx.les_miserables_graph()) as executor:
        records = executor.run_plan(text)
        assert [record.status for record in records] == ["success", "partial", "partial", "success", "partial"]
        assert plan_status(records) == "partial"
        recorded = executor.state.as_json()
    verdict = gasl.replay(json.loads(json.dumps(recorded)), nx.les_miserables_graph())
    assert verdict.identical, verdict


def test_variables_that_a_plan_is_given_keep_their_marks() -> None:
    with opened() as executor:
        given = executor.context.copy()
    with gasl.open(nx.les_miserables_graph(), context=given) as executor:
        (record,) = executor.run_plan("COUNT e AS n")
        assert record.status == "partial"
        recorded = executor.state.as_json()
    assert recorded["history"][0]["plan"]["incomplete"] == {"e": [CUT]}
    assert gasl.replay(recorded, nx.les_miserables_graph()).identical


def test_an_analysis_of_an_incomplete_key_is_partial_and_the_model_is_told() -> None:
    prompts: list[str] = []

    def model(prompt: str, **_: Any) -> str:
        prompts.append(prompt)
        return json.dumps({"answer": "a", "rationale": "r", "evidence": []})

    with opened(llm=model) as executor:
        executor.execute_one("UPDATE k WITH e")
        record = executor.execute_one("ANALYZE k USING 'what?' AS a")
        assert (record.status, record.metrics["incomplete_from"]) == ("partial", ["k"])
        assert f"the data is incomplete: {CUT}" in prompts[0]


@pytest.mark.parametrize(
    ("command", "status", "caps", "count"),
    [
        ("FIND paths FROM a TO b SHORTEST AS x", "success", None, 1),
        ("FIND paths FROM a TO b MAXLEN 3 SHORTEST AS x", "partial", ["MAXLEN"], 0),
        ("FIND paths FROM a TO b MAXLEN 20 SHORTEST AS x", "success", None, 1),
        ("FIND paths FROM a TO c SHORTEST AS x", "empty", None, 0),
        ("FIND paths FROM a TO c MAXLEN 3 SHORTEST AS x", "empty", None, 0),
        ("FIND paths FROM a TO b AS x", "partial", ["max_path_length"], 0),
        ("FIND paths FROM a TO c AS x", "empty", None, 0),
    ],
)
def test_shortest_has_no_default_length(command: str, status: str, caps: Any, count: int) -> None:
    graph = nx.path_graph(11)
    graph.add_node(99)
    with gasl.open(graph) as executor:
        for name, node in (("a", 0), ("b", 10), ("c", 99)):
            executor.execute_one(f"FIND nodes WHERE id = {node} AS {name}")
        record = executor.execute_one(command)
        assert (record.status, record.metrics.get("caps_hit"), record.metrics["count"]) == (status, caps, count)
        if caps:
            assert "longer" in record.error["message"]
            assert "MAXLEN" in record.error["hint"]
        if status == "empty":
            assert record.error["message"] == "no path of any length was found" or "MAXLEN" in command


def test_a_cap_on_the_length_that_a_plan_sets_holds_for_the_shortest_too() -> None:
    with gasl.open(nx.path_graph(6), caps=Caps(max_path_length=2)) as executor:
        command = "FIND paths FROM (id = 0) TO (id = 5) SHORTEST AS x"
        assert executor.execute_one(command).status == "success"
        executor.execute_one("SET adapter.caps.max_path_length = 4")
        record = executor.execute_one(command)
        assert (record.status, record.metrics["caps_hit"]) == ("partial", ["max_path_length"])
        assert record.error["hint"].startswith("SET adapter.caps.max_path_length higher")


@pytest.mark.parametrize("command", ["FIND nodes ORDER BY nonsense AS x", "FIND edges ORDER BY source.nonsense AS x"])
def test_an_order_by_an_unknown_field_is_an_error(command: str) -> None:
    with gasl.open(nx.les_miserables_graph()) as executor:
        record = executor.execute_one(command)
        assert record.status == "error"
        assert record.error["diagnostic"]["code"] == "GASL070"
        assert not executor.context.exists("x")


def test_a_model_that_processes_a_part_is_told_so() -> None:
    client = Scripted(default='{"rows": []}')
    with opened(llm=client) as executor:
        executor.execute_one('PROCESS e USING "who" AS x RETURNING (name TEXT)')
        executor.execute_one('PROCESS whole USING "who" AS y RETURNING (name TEXT)')
    cut, whole = client.prompts[0], client.prompts[-1]
    assert f"[the data is incomplete: {CUT}]" in cut and "incomplete" not in whole
