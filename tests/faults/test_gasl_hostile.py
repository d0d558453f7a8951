"""Commands, plans, graphs, values, answers and states that mean harm, through the whole of ``gasl.open``: each is refused or
inert, soon, and what was in the state stays there.
"""

import json
from pathlib import Path
from time import process_time
from typing import Any

import networkx as nx
import pytest
from knotwork import gasl, lwt
from knotwork.adapters.llm.middleware import Own
from support.cpu_time import pace
from support.graphs import persons
from support.scripted import Scripted

pytestmark = pytest.mark.slow

STATUSES = {"success", "empty", "partial", "binding_failure", "schema_mismatch", "error", "cancelled"}
MANY = 20_000


def opened(graph: Any = None, llm: Any = None, state: Any = None) -> gasl.GASLExecutor:
    """Return an executor with a variable ``x`` and something in the state."""
    made = gasl.open(persons() if graph is None else graph, state, llm)
    for text in ("FIND nodes AS x", "DECLARE keep AS LIST", "UPDATE keep WITH x"):
        made.execute_one(text)
    return made


def short(error: Any) -> bool:
    """Say whether what a record tells is no traceback and no longer than what was asked allows (names are told whole)."""
    told = f"{error['message']} {error.get('hint', '')}"
    return "Traceback" not in told and len(told) < 300_000


COMMANDS = {
    "a word of a megabyte": "A" * 1_000_000,
    "a string of a megabyte": 'FIND nodes WHERE t = "' + "x" * 1_000_000 + '" AS y',
    "an open string": 'FIND nodes WHERE t = "' + "x" * 1_000_000,
    "blanks": "FIND nodes" + " " * 1_000_000 + "AS y",
    "quotes": "'" * 1_000_000,
    "backslashes": 'FIND nodes WHERE t = "' + "\\" * 1_000_000,
    "dollars": "ASSERT " + "${a." * 250_000,
    "a long list": "FIND nodes WHERE v IN (" + "1," * 500_000 + "1) AS y",
    "nots": "FIND nodes WHERE " + "NOT " * MANY + "v = 1 AS y",
    "ands": "FIND nodes WHERE " + "v = 1 AND " * MANY + "v = 1 AS y",
    "ands and ors": "FIND nodes WHERE " + "v = 1 OR v = 2 AND " * (MANY // 2) + "v = 1 AS y",
    "brackets": "FIND nodes WHERE " + "(" * MANY + "v = 1" + ")" * MANY + " AS y",
    "open brackets": "FIND nodes WHERE " + "(" * MANY,
    "nots in brackets": "FIND nodes WHERE " + "NOT (" * MANY + "v = 1" + ")" * MANY + " AS y",
    "branches": "BRANCH IF LEN ${x} > 1 THEN " * MANY + "FIND nodes AS y",
    "elses": "BRANCH IF LEN ${x} > 1 THEN RESET keep ELSE " * MANY + "FIND nodes AS y",
    "pivots": "ON EMPTY x THEN " * MANY + "FIND nodes AS y",
    "explains": "EXPLAIN " * MANY + "FIND nodes AS y",
    "blocks": "TRY\n" * MANY + "FIND nodes AS y\n" + "END\n" * MANY,
    "open blocks with reasons": "#: TRY this\nTRY\n" * MANY,
    "some blocks": "TRY\n" * 199 + "RESET keep\n" + "END\n" * 199,
    "many labels": 'CLASSIFY x BY "q" INTO (' + ",".join(f'"f{n}"' for n in range(MANY)) + ") AS y",
    "many columns": 'PROCESS x USING "q" AS y RETURNING (' + ",".join(f"f{n} TEXT" for n in range(MANY)) + ")",
    "many fields": "SELECT x FIELDS " + ",".join(f"f{n}" for n in range(MANY)) + " AS y",
    "a long field": "SELECT x FIELDS " + ".".join(["a"] * MANY) + " AS y",
    "a long key": "DECLARE " + ".".join(["a"] * MANY) + " AS LIST",
    "a greek letter": "F\u0399ND nodes AS y",
    "wide letters": "\uff26\uff29\uff2e\uff24 nodes AS y",
    "an invisible blank": "FI\u200bND nodes AS y",
    "a no-break blank": "FIND\u00a0nodes AS y",
    "a null": "FIND nodes AS y\0",
    "half a character": 'FIND nodes WHERE t = "\ud800" AS y',
    "a large number": "FIND nodes WHERE v = " + "9" * 100_000 + " AS y",
    "a large exponent": "FIND nodes WHERE v = 1e" + "9" * 10_000 + " AS y",
    "a large limit": "FIND nodes LIMIT " + "9" * 1_000 + " AS y",
    "a nested quantifier": 'FIND nodes WHERE t MATCHES "(a+)+$" AS y',
    "a large pattern": 'FIND nodes WHERE t MATCHES "((a{100}){100}){100}" AS y',
    "a pattern that looks back": 'FIND nodes WHERE t MATCHES "(a)\\\\1(?=b)" AS y',
    "inner attributes": "FIND nodes WHERE __class__.__mro__ = 1 AS y",
    "an inner setting": "SET adapter.__class__ = 1",
    "another language": "MATCH (n)-[r]->(m) RETURN n " * 10_000,
    "one more command": "FIND nodes AS y\nRESET keep",
}
READ = {"a string of a megabyte", "blanks", "ands", "ands and ors", "a nested quantifier"}
SLOW = {"a long list", "ands", "ands and ors", "blocks", "many labels", "open blocks with reasons"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in COMMANDS])
def test_a_hostile_command_ends_with_a_status(name: str) -> None:
    with opened() as executor:
        before, length = executor.state.get("keep"), len(executor.state.history)
        began = process_time()
        record = executor.execute_one(COMMANDS[name])
        assert process_time() - began < 6 * pace()  # against blow-ups; most take some milliseconds
        assert record.status in STATUSES
        assert (record.status in ("success", "empty")) == (name in READ), record.error
        assert record.error is None or short(record.error)
        assert executor.state.get("keep") == before
        assert len(executor.state.history) > length
        assert len(json.dumps(executor.state.history[-1])) < 100_000
        assert executor.execute_one("COUNT x AS n").value == 5


def plan(*commands: Any, **more: Any) -> dict[str, Any]:
    return {"plan_id": "p", "why": "to see", "commands": list(commands), **more}


def cyclic() -> dict[str, Any]:
    made = plan()
    made["commands"].append(made)
    return made


REFUSED: dict[str, Any] = {
    "too many commands": plan(*["FIND nodes AS y"] * 100_000),
    "a deep document": '{"a":' * 100_000,
    "two values": '{"plan_id": "a", "plan_id": "b", "why": "w", "commands": ["FIND nodes AS y"]}',
    "no number": '{"plan_id": NaN, "why": "w", "commands": []}',
    "other types": {"plan_id": 5, "why": [], "commands": "FIND nodes AS y"},
    "commands that are none": plan(1, None, ["FIND nodes AS y"], {"command": 5}, {}),
    "half a character": plan("FIND nodes AS y", why="\ud800"),
    "a circle": cyclic(),
    "a long id": plan("FIND nodes AS y", plan_id="x" * 1_000_000),
    "another config": plan("FIND nodes AS y", config={"stop_on_error": "no"}),
    "an object": {1: 2, "commands": object()},
    "many open blocks": plan("TRY\n" * MANY),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_plan_is_refused_before_anything_runs(name: str) -> None:
    with opened() as executor:
        before, began = executor.state.hash, process_time()
        with pytest.raises(gasl.PlanError) as caught:
            executor.run_plan(REFUSED[name])
        assert process_time() - began < 4 * pace()  # against blow-ups; measured are less than 0.5 s
        assert len(caught.value.message) < 1_000
        assert executor.state.hash == before


def test_a_plan_of_ten_thousand_commands_costs_what_they_cost() -> None:
    took = []
    for count in (1_000, 10_000):
        with opened() as executor:
            began = process_time()
            records = executor.run_plan(plan(*["FIND nodes AS y", "UPDATE keep WITH y"] * (count // 2)))
            took.append(process_time() - began)
            assert {record.status for record in records} == {"success"}
            assert len(records) == count
            assert len(executor.state.get("keep")) == 5
    assert took[1] < max(took[0], 0.3) * 30


@pytest.mark.parametrize("depth", [5, 60, 64, 65, 150])
def test_blocks_in_blocks_leave_the_state_whole(depth: int) -> None:
    inner = "TRY\nUPDATE keep WITH y\n" * depth + "ASSERT LEN ${y} > 99\n" + "FINALLY\nCOUNT y AS n\nEND\n" * depth
    with opened() as executor:
        before = executor.state.get("keep")
        records = executor.run_plan("FIND nodes AS y\nFIND nodes AS x\n" + inner)
        assert records[-1].status == "error"
        assert executor.state.get("keep") == before
        assert executor.execute_one("COUNT x AS n").status == "success"


VALUES = [
    '"', "'", '" AS y\nRESET keep\n#', "${keep}", "${x.y[0]}", "\n", "\r\n", "\u2028", "# remark", "#: reason", "`", "\\", '\\"',
    'z") OR ("1" = "1', "\0", "TRY\n", "END", "'; DROP TABLE x; --", "{{x}}", "{(input)}", "%s {0}", "a" * 100_000,
    "\u202eevil", "NULL", "true", "*", "[0]", "\U0001f642",
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_what_a_graph_says_never_changes_what_a_command_says(value: str) -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_node("a", t=value)
    graph.add_node(value, t="other")
    graph.add_edge("a", value, t=value)
    with opened(graph) as executor:
        before = executor.state.get("keep")
        run = executor.execute_one
        assert run('FIND nodes WHERE id = "a" AS s').status == "success"
        for text in (
            "FIND nodes WHERE t = ${s[0].t} AS y", "FIND nodes WHERE t IN ${s.t} AS y", "SELECT x WHERE t = ${s[0].t} AS y",
            "FIND nodes WHERE t STARTS_WITH ${s[0].t} AS y", "FIND nodes WHERE t CONTAINS ${s[0].t} AS y",
        ):  # fmt: skip
            record = run(text)
            assert [item["id"] for item in record.value] == ["a"], text
        assert [edge["source"] for edge in run("FIND edges WHERE t = ${s[0].t} AS e").value] == ["a"]
        assert run("FIND nodes WHERE t MATCHES ${s[0].t} AS m").status in ("success", "empty", "error")
        assert run('BRANCH IF ${s[0].t} = "never" THEN RESET keep').status in STATUSES
        assert run("UPDATE keep WITH s").status == "success"
        assert executor.state.get("keep") == before
        assert json.loads(json.dumps(executor.state.as_json()))["variables"]["keep"]["items"] == before


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
@pytest.mark.parametrize("rest", ["{(input)} AS y", '"{(input)}" AS y', "'{(input)}' AS y", '"a" AS y # {(input)}'])
def test_what_a_script_is_given_never_changes_its_program(value: str, rest: str) -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_node("a", t="plain")
    graph.add_node("b", t="keep" + value)
    script = f'(made)=GASL("""FIND nodes WHERE t = {rest}""")\n(kept)=GASL("DECLARE keep AS LIST")\n'
    script += '(final)=LLM("{(kept)}")'
    run = lwt.run_sync(script, input=value, llm=Scripted("fine"), graph=graph)
    assert run.output == "fine"
    assert run.steps["made"].failed is None
    assert not run.steps["made"].value


class Answering(Own):
    """Answers everything with one text."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def generate(self, prompt: str, **options: Any) -> Any:
        from knotwork.adapters.llm import Completion

        return Completion(self.text)

    async def aclose(self) -> None:
        """Do nothing."""


GOOD = {"ids": ["i1"], "name": "Ada", "n": 1}


def answer(*rows: Any) -> str:
    return json.dumps({"rows": rows})


ANSWERS = {
    "ids that were not shown": answer({**GOOD, "ids": ["zz"]}, {**GOOD, "ids": ["i99"]}),
    "ids that are none": answer(*({**GOOD, "ids": ids} for ids in ("i1", {}, None, [], [["i1"]], [1.5], [True]))),
    "other types": answer({**GOOD, "name": 1}, {**GOOD, "n": "1"}, {**GOOD, "n": 1.5}, {**GOOD, "n": True}),
    "no objects": answer(1, "a", None, [1], True),
    "more columns": answer({**GOOD, "__proto__": 1}),
    "a million rows": '{"rows": [' + ",".join(['{"ids":["i1"],"name":"a","n":1}'] * 1_000_000) + "]}",
    "deep lists": '{"rows": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "deep objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "65 bits": answer({**GOOD, "n": 2**64}),
    "a huge number": '{"rows": [{"ids": ["i1"], "name": "a", "n": ' + "9" * 900_000 + "}]}",
    "an infinite number": '{"rows": [{"ids": ["i1"], "name": "a", "n": 1e400}]}',
    "no number": '{"rows": [{"ids": ["i1"], "name": "a", "n": NaN}]}',
    "half a character": '{"rows": [{"ids": ["i1"], "name": "\\ud800", "n": 1}]}',
    "a name twice": '{"rows": [{"ids": ["i1"], "ids": ["i2"], "name": "a", "n": 1}]}',
    "nothing": "",
    "an excuse": "I am sorry, I can't do that",
    "null": "null",
    "fences": "```" * 200_000,
    "braces": "{" * 900_000,
    "a long text": "x" * 10_000_000,
}
QUESTIONS = (
    'PROCESS x USING "do" AS y RETURNING (name TEXT, n INT)',
    'CLASSIFY x BY "what" INTO ("a", "b") AS y',
    'ANALYZE keep USING "do" AS y',
)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n == "a million rows" else ()) for n in ANSWERS]
)
def test_an_answer_that_was_not_asked_for_is_refused(name: str, question: str) -> None:
    with opened(llm=Answering(ANSWERS[name])) as executor:
        before, began = executor.state.get("keep"), process_time()
        record = executor.execute_one(question)
        # CLASSIFY asks twice for each item, and looks at all of each answer.
        assert process_time() - began < (10 if name == "a million rows" else 3) * pace()
        assert record.status in ("schema_mismatch", "error")
        assert short(record.error)
        assert not executor.context.exists("y")
        assert executor.execute_one("UPDATE keep WITH y").status == "binding_failure"
        assert executor.state.get("keep") == before


def test_of_too_many_rows_some_are_kept_and_that_is_said() -> None:
    with opened(llm=Answering(answer(*[GOOD] * 20_000))) as executor:
        record = executor.execute_one(QUESTIONS[0])
        assert (record.status, len(record.value)) == ("partial", 1_000)
        assert "20,000 rows" in record.error["message"]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_what_a_model_says_stays_a_value(value: str) -> None:
    with opened(llm=Answering(answer({**GOOD, "name": value}))) as executor:
        run, before = executor.execute_one, executor.state.get("keep")
        assert run(QUESTIONS[0]).value == [{"name": value, "n": 1}]
        run("DECLARE said AS LIST")
        assert run("UPDATE said WITH y").status == "partial", "the model answered for one item of several"
        assert run("SELECT y WHERE name = ${y[0].name} AS again").value == [{"name": value, "n": 1}]
        assert run("FIND nodes WHERE t = ${y[0].name} AS none").status == "partial", "nothing, by a value of a part"
        assert run('ANALYZE said USING "what" AS a').status == "schema_mismatch"
        assert executor.state.get("said") == [{"name": value, "n": 1}]
        assert executor.state.get("keep") == before


def nested(depth: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


ODD = {
    "mixed": [1, "a", True, None, [1], {"a": 1}, 1.5, "1"],
    "not finite": [float("nan"), float("inf"), -float("inf"), 1.0, -0.0],
    "large": [2**64, -(2**70), 10**400, 1],
    "half a character": ["\ud800", "a"],
    "no JSON": [b"a", {1, 2}, object(), complex(1, 2)],
    "long": ["x" * 5_000_000, "b"],
}
EVERY = (
    "FIND nodes ORDER BY v DESC AS y", "FIND nodes WHERE v IS NOT NULL AS y", "RANK x BY v AS y", "COUNT x BY v AS y",
    "AGGREGATE x BY v COMPUTE count(), min(v) AS y", "JOIN x WITH x ON v AS y", "UNION x WITH x AS y",
    "MEASURE graph USING pagerank AS y", "FIND paths FROM x TO x AS y", "SUBGRAPH x RADIUS 1 AS y", "FIND edges AS y",
)  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_attributes_are_ordered_grouped_and_joined_or_refused(name: str) -> None:
    graph: nx.DiGraph[int] = nx.DiGraph()
    for n, value in enumerate(ODD[name]):
        graph.add_node(n, v=value)
    nx.add_path(graph, list(graph), v=ODD[name][0])
    began = process_time()
    with opened(graph) as executor:
        for text in EVERY:
            record = executor.execute_one(text)
            assert record.status in STATUSES
            assert record.error is None or short(record.error)
        executor.execute_one("FIND nodes AS all")
        kept = executor.execute_one("UPDATE keep WITH all")
        assert kept.status in ("success", "schema_mismatch")
        assert len(executor.state.get("keep")) == (len(graph) if kept.status == "success" else 0)
        json.dumps(executor.state.as_json(), allow_nan=False).encode()
    assert process_time() - began < 5 * pace()


@pytest.mark.parametrize("deep", [nested(5_000), nested(250)])
def test_a_graph_whose_attributes_nest_too_deep_is_refused(deep: Any) -> None:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_node(1, v=deep)
    with pytest.raises(gasl.AdapterError, match="nests"):
        gasl.open(graph)


XML = (
    '<?xml version="1.0"?>{doctype}<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    '{keys}<graph edgedefault="directed">{nodes}</graph></graphml>'
)
KEY = '<key id="d" for="node" attr.name="v" attr.type="{}"/>'
BOMB = (
    "<!DOCTYPE l [<!ENTITY a0 'aaaaaaaaaa'>"
    + "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 9))
    + "]>"
)
FILES = {
    "a bomb": XML.format(doctype=BOMB, keys="", nodes='<node id="&a8;"/>'),
    "another file": XML.format(doctype="<!DOCTYPE l [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>", keys="", nodes='<node id="&x;"/>'),
    "deep": XML.format(doctype="", keys="", nodes='<node id="a"><graph edgedefault="directed">' * 5_000),
    "cut": XML.format(doctype="", keys="", nodes="<node id='a'/>")[:-30],
    "a huge number": XML.format(doctype="", keys=KEY.format("int"), nodes=f'<node id="a"><data key="d">{"9" * 10_000}</data></node>'),
    "no number": XML.format(doctype="", keys=KEY.format("int"), nodes='<node id="a"><data key="d">__import__</data></node>'),
    "a page": "<html><body>not found</body></html>",
    "nothing": "",
    "zeros": "\0" * 1_000,
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_graph_file_is_refused_with_its_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.graphml"
    path.write_text(FILES[name], encoding="utf-8")
    began = process_time()
    with pytest.raises(gasl.AdapterError) as caught:
        gasl.open(path)
    assert process_time() - began < 2 * pace()
    assert "hostile.graphml" in caught.value.message
    assert len(caught.value.message) < 1_000


@pytest.mark.parametrize("name", ["nx:__import__", "nx:os.system", "nx:complete_graph(100000)", "/dev/zero", "", "\0"])
def test_what_is_no_graph_is_refused(name: str) -> None:
    with pytest.raises(gasl.AdapterError):
        gasl.open(name)
