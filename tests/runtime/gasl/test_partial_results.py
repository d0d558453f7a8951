"""A part is never taken for the whole: what rests on what a cap cut short is partial, in variables, in the state, and after it."""

import json
from typing import Any

import networkx as nx
import pytest
from knotwork import gasl
from knotwork.adapters.graph import Caps
from knotwork.adapters.graph_networkx import find_plan
from knotwork.runtime.gasl.records import plan_status
from support.clients import Scripted

CUT = "e was cut short by max_rows (3) at 3 items"


def opened(**options: Any) -> Any:
    executor = gasl.open(nx.les_miserables_graph(), **options)
    for command in (
        "SET adapter.caps.max_rows = 3", "FIND edges AS e", "FIND nodes LIMIT 2 AS whole", "DECLARE k AS LIST", "DECLARE n AS COUNTER",
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
    text = "SET adapter.caps.max_rows = 3\nFIND edges AS e\nCOUNT e AS n\nDECLARE k AS COUNTER\nUPDATE k WITH n"
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
        ("FIND paths FROM a TO b MAXLEN 3 SHORTEST AS x", "empty", None, 0),
        ("FIND paths FROM a TO b MAXLEN 20 SHORTEST AS x", "success", None, 1),
        ("FIND paths FROM a TO c SHORTEST AS x", "empty", None, 0),
        ("FIND paths FROM a TO c MAXLEN 3 SHORTEST AS x", "empty", None, 0),
        ("FIND paths FROM a TO b AS x", "partial", ["max_path_length"], 0),
        ("FIND paths FROM a TO c AS x", "empty", None, 0),
        ("FIND paths FROM a TO b MAXLEN 5 AS x", "empty", None, 0),
        ("FIND paths FROM a TO b MAXLEN 9 AS x", "partial", ["max_path_length"], 0),
        ("FIND paths FROM a TO c MAXLEN 9 AS x", "empty", None, 0),
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
            assert "SHORTEST finds the shortest paths of any length" in record.error["hint"]
            assert "MAXLEN 9" in command or record.error["hint"].startswith(
                "write MAXLEN with a larger number (at most 8)"
            )
        if status == "empty":
            assert record.error["message"] == "no path of any length was found" or "MAXLEN" in command
        if command == "FIND paths FROM a TO b MAXLEN 3 SHORTEST AS x":
            assert record.error["message"] == "no path of at most 3 edges was found, but a longer one exists"


def test_a_cap_on_the_length_that_a_plan_sets_holds_for_the_shortest_too() -> None:
    with gasl.open(nx.path_graph(6), caps=Caps(max_path_length=2)) as executor:
        command = "FIND paths FROM (id = 0) TO (id = 5) SHORTEST AS x"
        assert executor.execute_one(command).status == "success"
        executor.execute_one("SET adapter.caps.max_path_length = 4")
        record = executor.execute_one(command)
        assert (record.status, record.metrics["caps_hit"]) == ("partial", ["max_path_length"])
        assert record.error["hint"].startswith("SET adapter.caps.max_path_length higher")
        assert executor.execute_one("FIND paths FROM (id = 0) TO (id = 4) SHORTEST AS x").status == "success"


def test_cheaper_and_further_paths_beyond_a_cap_are_told() -> None:
    """With MAXLEN the best of the paths that are allowed are asked for; a cap is not asked for."""
    graph: Any = nx.DiGraph()
    graph.add_edge("a", "b", w=10)
    nx.add_path(graph, ["a", "c", "d", "b"], w=1)
    ends = 'FIND paths FROM (id = "a") TO (id = "b")'
    with gasl.open(graph) as executor:
        for ways in ("MAXLEN 2 SHORTEST 2", "MAXLEN 2 SHORTEST BY w"):
            record = executor.execute_one(f"{ends} {ways} AS x")
            assert (record.status, [path["nodes"] for path in record.value]) == ("success", [["a", "b"]])
        executor.execute_one("SET adapter.caps.max_path_length = 2")
        for ways in ("SHORTEST 2", "SHORTEST BY w"):
            record = executor.execute_one(f"{ends} {ways} AS x")
            assert (record.status, record.metrics["caps_hit"], record.metrics["count"]) == (
                "partial", ["max_path_length"], 1,
            )  # fmt: skip
            assert record.error["message"] == "limited to 2 edges by max_path_length; longer paths may exist"
        assert executor.execute_one(f"{ends} SHORTEST 1 AS x").status == "success"
        assert executor.execute_one(f"{ends} WHERE INCREASING edge.w SHORTEST BY 1 AS x").status == "success"


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


def test_rows_that_could_not_be_computed_are_counted_when_a_command_ends() -> None:
    graph = nx.Graph()
    graph.add_node("a", amount=1, left=0)
    graph.add_node("b", amount="x", left=2)
    events = gasl.Events()
    messages: list[str] = []
    events.subscribe(lambda event: messages.append(getattr(event, "message", "")))
    with gasl.open(graph, events=events) as executor:
        executor.execute_one("FIND nodes WHERE amount + 1 > 0 AS some")
        executor.execute_one("FIND nodes AS all")
        executor.execute_one("SELECT all FIELDS 1 / left AS share AS rows")
    assert "amount + 1 is unknown for 1 row, because of the types of the values" in messages
    assert "share: 1 null (division by zero)" in messages


def mixed_amounts() -> Any:
    graph: Any = nx.DiGraph()
    for at, amount in enumerate([10, "n/a", "20", 30, None, True]):
        graph.add_node(at, amount=amount, kind="A" if at % 2 else "B", date="2024-01-02" if at else "05.01.2024")
    nx.add_path(graph, range(6), w=1)
    return graph


@pytest.mark.parametrize("small", [1, 256])
@pytest.mark.parametrize(
    ("condition", "mismatched"),
    [
        ("amount > 5", {"amount > 5": 3}),
        ("5 < amount", {"5 < amount": 3}),
        ("NOT amount > 5", {"amount > 5": 3}),
        ('amount STARTS_WITH "n"', {'amount STARTS_WITH "n"': 3}),
        ('amount > 5 AND kind = "A"', {"amount > 5": 2}),
        ('amount > 5 OR kind = "A"', {"amount > 5": 1}),
        ("amount = 10 OR amount IN (30)", None),
        ("amount * 1 > 5", {"amount * 1": 3}),
        ('kind = "A" AND amount * 1 > 5', {"amount * 1": 2}),
        ('amount * 1 > 5 AND kind = "A"', {"amount * 1": 2}),
        ("year(date) > 2000", {"year(date)": 1}),
        ("number(amount) > 5", None),
    ],
)
def test_items_left_out_for_their_types_are_counted_in_every_engine(
    condition: str, mismatched: Any, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_plan, "_SMALL", small)
    for strict in (False, True):
        with gasl.open(mixed_amounts(), strict=strict) as executor:
            found = executor.execute_one(f"FIND nodes WHERE {condition} AS x")
            executor.execute_one("FIND nodes AS all")
            chosen = executor.execute_one(f"SELECT all WHERE {condition} AS x")
            assert [each.metrics.get("mismatched") for each in (found, chosen)] == [mismatched, mismatched]
            assert found.metrics.get("examples") == chosen.metrics.get("examples")
            assert found.value == chosen.value


def test_items_left_out_at_the_ends_of_edges_are_counted() -> None:
    with gasl.open(mixed_amounts()) as executor:
        record = executor.execute_one("FIND edges WHERE source.amount > 5 AS x")
        assert (len(record.value), record.metrics["mismatched"]) == (2, {"source.amount > 5": 2})


@pytest.mark.parametrize("small", [1, 256])
@pytest.mark.parametrize(
    ("command", "mismatched"),
    [
        ("FIND paths FROM (amount > 5) TO (id = 5) MAXLEN 5", {"amount > 5": 3}),
        ("FIND paths WHERE source.amount > 5 MAXLEN 1", {"source.amount > 5": 3}),
        ("FIND paths FROM (id < 2) TO (id = 5) WHERE 5 < source.amount MAXLEN 5", {"5 < source.amount": 1}),
        ("FIND paths FROM some TO some WHERE target.amount > 5 MAXLEN 5", {"target.amount > 5": 3}),
        ("FIND paths VIA w > 5 MAXLEN 5", {"w > 5": 2}),
        ("FIND paths FROM (id < 3) TO (id = 5) VIA w > 5 SHORTEST", {"w > 5": 2}),
        ("FIND paths FROM (id < 3) TO (id = 3) VIA w > 5 SHORTEST 2 BY 1", {"w > 5": 1}),
        ("FIND paths WHERE source.amount > 20 OR target.amount > 20 MAXLEN 1",
         {"source.amount > 20": 1, "target.amount > 20": 3}),
        ("FIND paths WHERE source.amount > 20 OR target.id > 2 MAXLEN 1 SHORTEST 1", {"source.amount > 20": 1}),
        ('FIND paths WHERE ANY node.amount > 5 AND source.kind = "A" MAXLEN 1', None),
        ("FIND cycles VIA w > 5 MAXLEN 3", {"w > 5": 2}),
        ("WALK some VIA w > 5", {"w > 5": 2}),
        ("WALK some VIA w > 5 DEPTH 4 DIRECTION both", {"w > 5": 2}),
        ("WALK some VIA source.amount > 5 DIRECTION in", {"source.amount > 5": 2}),
        ("CONNECT some TO some VIA w > 5", {"w > 5": 2}),
        ("FIND patterns (p)-[r]->(q) WHERE p.amount > 5", {"p.amount > 5": 3}),
        ('FIND patterns (p)-[r]->(q) WHERE p.amount > 5 AND p.kind = "A"', {"p.amount > 5": 2}),
        ("FIND patterns (p)-[r]->(q) WHERE r.w > 5", {"r.w > 5": 2}),
        ("FIND patterns (p)-[r]->(q) WHERE p.amount > 20 OR q.id > 2", {"p.amount > 20": 1}),
        ("FIND patterns (p)-[r]->(q) WHERE 5 < r.source.amount", {"5 < r.source.amount": 2}),
        ('FIND patterns (p)-[r]->(q) WHERE p.amount STARTS_WITH "n"', {'p.amount STARTS_WITH "n"': 3}),
        ("FIND patterns (p)-[r]->(q) WHERE p.amount > 100", {"p.amount > 100": 3}),
        ("FIND patterns (p)-[r]->(q) WHERE p.amount = 10 OR q.amount IN (30)", None),
    ],
)  # fmt: skip
def test_conditions_of_paths_and_patterns_count_what_they_leave_out_for_its_type(
    command: str, mismatched: Any, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_plan, "_SMALL", small)
    graph = mixed_amounts()
    for at, (*_, data) in enumerate(graph.edges(data=True)):
        data["w"] = [1, "n/a", 10, True, None][at]
    with gasl.open(graph) as executor:
        executor.execute_one("FIND nodes WHERE id > 0 AS some")
        for _ in range(2):
            record = executor.execute_one(f"{command} AS x")
            assert record.status in ("success", "empty"), record.error
            assert record.metrics.get("mismatched") == mismatched
            examples = record.metrics.get("examples") or {}
            assert {text: len(some) for text, some in examples.items()} == mismatched_at_most_3(mismatched)


def mismatched_at_most_3(mismatched: Any) -> dict[str, int]:
    return {text: min(count, 3) for text, count in (mismatched or {}).items()}


def test_a_null_says_why_it_is_null() -> None:
    with gasl.open(mixed_amounts()) as executor:
        executor.execute_one("FIND nodes AS all")
        record = executor.execute_one(
            "SELECT all FIELDS number(amount) AS n, date(date) AS d, year(amount) AS y WHERE id < 2 AS x"
        )
        assert record.status == "schema_mismatch", "year takes a text"
        record = executor.execute_one("SELECT all FIELDS number(amount) AS n, date(date) AS d WHERE id < 5 AS x")
        assert record.metrics["nulls"] == {"n": {"not a number": 1, "missing": 1}, "d": {"not a date": 1}}


@pytest.mark.parametrize(
    "command",
    ["FIND paths MAXLEN 2 AS x", "FIND cycles AS x", "MEASURE graph USING degree AS x", "FIND patterns (a)-[r]-(b) AS x",
     "CONNECT a TO a AS x", "WALK v DIRECTION both AS x", "FIND nodes AS x", "JOIN a WITH a ON kind AS x"],
)  # fmt: skip
def test_max_rows_limits_every_variable(command: str) -> None:
    graph = nx.complete_graph(9)
    nx.set_node_attributes(graph, "A", "kind")
    with gasl.open(graph) as executor:
        executor.execute_one("FIND nodes AS a")
        executor.execute_one("FIND nodes WHERE id = 1 AS v")
        executor.execute_one("SET adapter.caps.max_rows = 5")
        record = executor.execute_one(command)
        assert (record.status, record.metrics["count"]) == ("partial", 5)
        assert "max_rows" in record.metrics["caps_hit"] and "max_results" not in record.metrics["caps_hit"]


def test_an_estimate_is_told_as_one() -> None:
    with gasl.open(nx.les_miserables_graph(), caps=Caps(timeout_s=0.03)) as executor:
        record = executor.execute_one("MEASURE graph USING betweenness BY weight AS x")
        assert (record.status, record.metrics["count"]) == ("partial", 77)
        assert record.error["message"].startswith("estimated from ") and record.error["message"].endswith(
            "timeout_s is 0.03 s"
        )
