"""The dot commands."""

from pathlib import Path
from typing import Any

import pytest
from knotwork.adapters.llm.budget import Price
from knotwork.lang.catalogue.commands import BLOCK_WORDS, FORMS, OPTIONS
from knotwork.lang.catalogue.measures import MEASURES
from knotwork.lang.catalogue.operations import BUILTIN, FUNCTIONS
from knotwork.lang.catalogue.value_functions import AGGREGATE_FUNCTIONS, VALUE_FUNCTIONS
from knotwork.runtime.api.explain import help_topics
from knotwork.runtime.api.session import Session
from knotwork.runtime.api.session_data import NOTHING, Page, Table
from knotwork.runtime.interfaces.repl.dot_commands import DOT_COMMANDS
from support.command import call, cassette
from support.sessions import new_session, run, run_all, screen_text

MISERABLES = "nx:les_miserables"
KEPT = """\
FIND nodes WHERE degree > 20 AS hubs
DECLARE network AS DICT
DECLARE network.hubs AS LIST WITH_DESCRIPTION "who matters"
UPDATE network.hubs WITH hubs
"""


@pytest.fixture
def kept() -> Session:
    at = new_session(MISERABLES)
    assert all(outcome.is_good for outcome in run_all(at, KEPT))
    return at


def rows(at: Session, text: str) -> list[dict[str, Any]]:
    """Return the rows of the table that a dot command gives."""
    value = run(at, text).value
    assert isinstance(value, Table), value
    return [dict(zip(value.columns, row, strict=True)) for row in value.rows]


def test_help_has_every_command_and_fits_a_terminal_of_80() -> None:
    value = run(new_session(), ".help").value
    assert isinstance(value, Page)
    assert all(f"\n{dot.usage} " in value.text or f"\n{dot.usage}\n" in value.text for dot in DOT_COMMANDS.values())
    assert max(map(len, value.text.splitlines())) <= 80


@pytest.mark.parametrize("topic", [*DOT_COMMANDS, ".undo", "GASL001", "EXPR050", "FIND", "LLM", "len"])
def test_help_on_a_topic(topic: str) -> None:
    outcome = run(new_session(), f".help {topic}")
    assert outcome.is_good and isinstance(outcome.value, Page) and len(outcome.value.text) > 20, outcome


@pytest.mark.slow
def test_help_on_every_word_of_the_catalogue() -> None:
    at = new_session()
    words = {*FORMS, *OPTIONS, *BLOCK_WORDS, *MEASURES, *AGGREGATE_FUNCTIONS, *VALUE_FUNCTIONS, *FUNCTIONS, *BUILTIN}
    assert words - {"CATCH", "FINALLY", "END"} <= {*help_topics()}
    for topic in {*words, "paths", "shortest", "Distinct"}:
        outcome = run(at, f".help {topic}")
        assert outcome.is_good and isinstance(outcome.value, Page), outcome
        assert topic.lower() in DOT_COMMANDS or max(map(len, outcome.value.text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("topic", "says"),
    [
        ("patterns", ["FIND patterns (name:LABEL)", "a field for each name"]),
        ("SHORTEST", ["FIND paths", "All shortest paths"]),
        ("PER", ["FIND nodes|edges", "RANK name BY", "of each group"]),
        ("ON", ["ON EMPTY|ERROR", "JOIN name WITH", "MEASURE name|graph", "must be equal"]),
        ("INCREASING", ["less than the"]),
        ("SIMILAR", ["SIMILAR number AS name"]),
        ("count", ["COUNT name [BY", "count(DISTINCT value)"]),
        ("sum", ["sum(value)", "A function of COMPUTE", "A function of values", "A function of expressions"]),
        ("communities", ['method = "louvain"', "resolution is a number from 0 to 1000", "a strength"]),
        ("in_degree", ["It needs a directed graph; for undirected graphs, use degree"]),
        ("MEASURE", ["MEASURE name|graph", *MEASURES]),
        ("algorithms", [*MEASURES]),
        ("COMPUTE", [*AGGREGATE_FUNCTIONS]),
        ("functions", [*VALUE_FUNCTIONS]),
        ("log", [".log [N]", "log(x)"]),
        ("catch", ["TRY\n", "FINALLY"]),
    ],
)
def test_help_tells_what_the_catalogue_says(topic: str, says: list[str]) -> None:
    value = run(new_session(), f".help {topic}").value
    assert isinstance(value, Page)
    told = " ".join(value.text.split()) if "\n" not in "".join(says) else value.text
    assert [each for each in says if each not in told] == []


def test_schema(kept: Session) -> None:
    assert rows(kept, ".schema")[0]["attribute"] == "weight"
    assert "77 nodes · 254 edges" in run(kept, ".schema").summary
    assert rows(kept, ".schema weight")[0] == {"of": "edge", "value": 1, "count": 97}
    assert "no graph" in run(new_session(), ".schema").message


def test_vars(kept: Session) -> None:
    run(kept, '(why)=CONST({"a": 1})')
    assert rows(kept, ".vars") == [
        {"name": "hubs", "from": "variable", "holds": "2 nodes", "fields": "id"},
        {"name": "why", "from": "step", "holds": "an object of 1 field", "fields": "a"},
    ]
    assert run(kept, ".vars hubs").value == [{"id": "Valjean"}, {"id": "Gavroche"}]
    assert run(kept, ".vars (why)").value == {"a": 1}
    assert "did you mean hubs?" in run(kept, ".vars hbus").hint


def test_state_log_and_diff(kept: Session) -> None:
    assert [row["key"] for row in rows(kept, ".state")] == ["network", "network.hubs"]
    assert run(kept, ".state network.hubs").value == [{"id": "Valjean"}, {"id": "Gavroche"}]
    assert rows(kept, ".state network.hubs evidence")[0]["evidence"][0]["nodes"] == ["Valjean"]
    assert [row["step"] for row in rows(kept, ".log")] == ["1", "2", "3", "4"]
    assert [row["step"] for row in rows(kept, ".log 2")] == ["3", "4"]
    first = rows(kept, ".log")[1]["state"]
    assert [row["difference"] for row in rows(kept, ".diff")] == ["added", "provenance"]
    assert next(row["key"] for row in rows(kept, f".diff {first}")) == "network.hubs"
    assert run(kept, f".diff {first} {first}").summary == "no differences"
    assert run(kept, ".diff ffffffff").status == "misused"
    assert run(kept, ".log none").status == "misused" and run(kept, ".log 0").status == "misused"


def test_undo_takes_state_and_values_back_one_by_one(kept: Session) -> None:
    empty = run(new_session(), ".undo")
    assert empty.status == "misused" and "nothing to undo" in empty.message
    run(kept, "hubs = 3")
    assert "undone: hubs = 3" in run(kept, ".undo").summary
    assert len(kept.values.context.get("hubs")) == 2
    before = kept.state.hash
    assert run(kept, ".undo").summary.startswith("undone: UPDATE network.hubs")
    assert kept.state.get("network.hubs") == [] and kept.state.hash != before
    assert run(kept, ".undo 3").is_good
    assert kept.values.names() == () and kept.state.snapshot().declared() == []
    assert run(kept, ".undo").status == "misused"
    assert [entry["command"].split()[0] for entry in kept.state.history][-2:] == [".undo", ".undo"]


def test_undo_takes_the_latest_value_back_too(kept: Session) -> None:
    run_all(kept, "7\nw = 8\n.undo")
    assert run(kept, "_").value == 7
    first = new_session()
    run_all(first, "w = 8\n.undo")
    assert run(first, "_").status == "refused"


def test_undo_passes_over_what_changed_nothing(kept: Session) -> None:
    run_all(kept, "1 + 1\n.vars\nlen(hubs)\nhubss")
    assert run(kept, ".undo").summary.startswith("undone: UPDATE")


def test_undo_goes_back_to_a_hash_and_can_be_undone(kept: Session) -> None:
    first, last = rows(kept, ".log")[1]["state"], kept.state.hash
    assert run(kept, f".undo {first}").is_good and len(kept.state.snapshot().declared()) == 1
    assert run(kept, ".undo").is_good and kept.state.hash == last
    assert run(kept, ".undo 0").status == "misused" and run(kept, ".undo nowhere").status == "misused"


def test_explain_a_command_steps_an_expression_a_code_and_the_latest_error(kept: Session) -> None:
    assert run(kept, ".explain FIND nodes WHERE degree > 20 AS x").value["how"] == "scan"
    assert len(kept.state.history) == 4
    assert run(kept, ".explain [n for n in hubs]").value.text == "[n for n in hubs]\n"
    assert "GASL001" in run(kept, ".explain GASL001").value.text
    assert run(kept, ".explain GASL9999").status == "misused"
    assert run(kept, ".explain").status == "misused"
    run(kept, "FNID nodes AS x")
    assert "GASL001" in run(kept, ".explain").value.text
    assert run(kept, ".explain FNID nodes AS x").status == "refused"


def test_explain_a_step(kept: Session) -> None:
    assert rows(kept, '.explain (a)=LLM("{(hubs)}")') == [
        {"step": "a", "operation": "LLM", "layer": 1, "waits for": "", "text": '(a)=LLM("{(hubs)}")'}
    ]


def test_timer(kept: Session) -> None:
    assert " s" not in screen_text(kept, run(kept, "1 + 1"))
    assert run(kept, ".timer").summary == "timer on"
    assert " s\n" in screen_text(kept, run(kept, "1 + 1"))
    assert run(kept, ".timer off").summary == "timer off" and run(kept, ".timer of").status == "misused"


def test_modes(kept: Session) -> None:
    outcome = run(kept, "[{'a': 1, 'b': 'x|y'}, {'a': 2, 'c': None}]")
    shown = {}
    for mode in ("table", "json", "csv", "md"):
        assert run(kept, f".mode {mode}").is_good
        shown[mode] = screen_text(kept, outcome).removeprefix("2 rows\n")
    assert shown["table"] == "a  b    c\n─  ───  ─\n1  x|y\n2\n"
    assert shown["csv"] == "a,b,c\n1,x|y,\n2,,\n"
    assert shown["md"] == "| a | b | c |\n|---|---|---|\n| 1 | x\\|y |  |\n| 2 |  |  |\n"
    assert shown["json"].startswith('[\n  {\n    "a": 1')


def test_output_goes_into_a_file_in_the_form_of_its_name(kept: Session, folder: Path) -> None:
    run(kept, ".output hubs.csv")
    assert "2 rows written" in screen_text(kept, run(kept, "hubs"))
    assert run(kept, ".output hubs.csv").status == "misused"
    run(kept, ".output hubs.csv --append")
    screen_text(kept, run(kept, "hubs"))
    assert (folder / "hubs.csv").read_text() == "id\n" + "Valjean\nGavroche\n" * 2
    run(kept, ".output hubs.csv --force")
    assert (folder / "hubs.csv").read_text() == ""
    assert run(kept, ".output").summary.startswith("results go to the screen")
    assert "Valjean" in screen_text(kept, run(kept, "hubs"))
    assert run(kept, ".output nowhere/x.csv").status == "failed"
    assert run(kept, ".output a b").status == "misused" and run(kept, ".output x --frce").status == "misused"


def test_a_table_in_a_file_stays_one(kept: Session, folder: Path) -> None:
    run(kept, ".output a.csv")
    screen_text(kept, run(kept, "hubs"))
    assert "has different columns: id" in screen_text(kept, run(kept, "[{'a': 1, 'b': 2}]"))
    assert (folder / "a.csv").read_text() == "id\nValjean\nGavroche\n"
    run(kept, ".output a.json")
    assert "several" not in screen_text(kept, run(kept, "1")) and "several documents" in screen_text(
        kept, run(kept, "2")
    )
    run(kept, ".output a.md")
    screen_text(kept, run(kept, "1"))
    screen_text(kept, run(kept, "2"))
    assert (folder / "a.md").read_text() == "| value |\n|---|\n| 1 |\n\n| value |\n|---|\n| 2 |\n"


def test_a_cell_that_a_spreadsheet_would_compute_is_text(kept: Session, folder: Path) -> None:
    run(kept, ".output x.csv")
    screen_text(kept, run(kept, "[{'a': '=1+1'}]"))
    assert (folder / "x.csv").read_text() == "a\n'=1+1\n"


def test_llm_is_changed_in_the_session(kept: Session, folder: Path) -> None:
    one, two = cassette(folder / "one", {"Who": "one"}), cassette(folder / "two", {"Who": "two"})
    assert run(kept, f".llm {one}").is_good and run(kept, '(a)=LLM("Who?")').value == "one"
    assert run(kept, f".llm {two}").is_good and run(kept, '(a)=LLM("Who?")').value == "two"
    assert rows(kept, ".llm")[0]["model"] == two
    assert run(kept, ".llm opnai:x").status == "misused" and kept.model.spec == two
    assert run(kept, ".llm one two").status == "misused"


def test_budget_counts_and_holds(kept: Session, folder: Path) -> None:
    run(kept, f".llm {cassette(folder / 'one', {'Who': 'one', 'What': 'two'})}")
    run(kept, '(a)=LLM("Who?")')
    assert rows(kept, ".budget calls=1")[0] == {"what": "calls", "spent": 1, "limit": 1, "left": 0}
    refused = run(kept, '(b)=LLM("What?")')
    assert refused.status == "failed" and "budget of 1 call is used up" in refused.message
    assert run(kept, ".budget calls=none").is_good and run(kept, '(b)=LLM("What?")').value == "two"
    for wrong in ("calls", "calls=many", "calls=-1", "cals=3", "cost=x", "tokens=inf"):
        assert run(kept, f".budget {wrong}").status == "misused", wrong


def test_a_limit_on_cost_needs_a_price(folder: Path) -> None:
    unknown = new_session(llm="http://127.0.0.1:9/v1#m")
    refused = run(unknown, ".budget cost=1")
    assert refused.status == "misused" and "the model's price" in refused.message
    at = new_session(llm=cassette(folder / "one", {"Who": "one"}), price=Price(1_000_000.0, 1_000_000.0))
    run(at, '(a)=LLM("Who?")')
    assert rows(at, ".budget cost=13")[2] == {"what": "cost", "spent": 12.0, "limit": 13.0, "left": 1.0}
    assert run(at, '(b)=LLM("Who?")').status == "failed"


@pytest.mark.slow
def test_save_writes_a_program_that_run_takes_and_that_comes_to_the_same(kept: Session, folder: Path) -> None:
    run_all(kept, "len(hubs)\n(a)=CONST(1)\nFNID x\nCOUNT hubs AS n")
    run(kept, "RESET network.hubs")
    run(kept, ".undo")
    assert "5 commands saved" in run(kept, ".save session.gasl").summary
    assert (
        "# len(hubs)" in (folder / "session.gasl").read_text() and "RESET" not in (folder / "session.gasl").read_text()
    )
    assert call("run", "session.gasl", "--graph", MISERABLES, "--state", "again").code == 0
    assert call("state", "show", "again", "--format", "json").json["hash"] == kept.state.hash
    assert run(kept, ".save session.gasl").status == "misused"
    assert run(kept, ".save session.gasl --force").is_good


def test_save_as_a_script_has_the_last_of_each_step(folder: Path) -> None:
    at = new_session()
    run_all(at, '(a)=CONST(1)\n1\n(a)=CONST(2)\n1\n(b)=EXPR("a + 1", a={(a)})')
    run(at, ".save session.lwt")
    assert call("run", "session.lwt").out == "3\n"


@pytest.mark.slow
def test_save_says_what_keeps_a_file_from_being_run_and_what_takes_all_of_it(kept: Session, folder: Path) -> None:
    run_all(kept, "n = len(hubs)\nTRY\n  FIND nodes WHERE degree > ${n} AS more\nEND")
    for name, line in (
        ("x.gasl", "line 7: the variable n is not bound"),
        ("x.lwt", "line 5: unknown step (hubs)"),
    ):
        told = run(kept, f".save {name}")
        assert told.is_good and line in told.notes[0] and "x.txt" in told.notes[1], told
        refused = call("run", name, "--graph", MISERABLES) if name.endswith("gasl") else call("run", name)
        assert refused.code == 3 and line.partition(": ")[2].split(" (")[0] in refused.err
    assert run(kept, ".save x.txt").notes == ()
    assert call("repl", MISERABLES, "-f", "x.txt").code == 0


def test_save_as_a_script_says_expressions_as_steps(folder: Path) -> None:
    at = new_session(input={"k": 4})
    run_all(
        at,
        """(xs)=CONST([3, 1, 2])
n = len(xs) + input["k"]
s = 'it\\'s "so"'
top = [x for x in xs if x > 1]
len(top)
both = [n, s, top]
""",
    )
    told = run(at, ".save s.lwt")
    assert told.notes == () and told.summary.startswith(
        "5 commands saved to s.lwt; 1 in other languages saved as comment"
    )
    assert call("run", "s.lwt", "--input", "-", stdin='{"k": 4}').json == [7, 'it\'s "so"', [3, 2]]


def test_save_of_everything_is_read_again(kept: Session, folder: Path) -> None:
    run(kept, "n = len(hubs)")
    run(kept, ".save all.txt")
    again = new_session(MISERABLES)
    outcomes = run_all(again, ".read all.txt")
    assert all(outcome.is_good for outcome in outcomes) and len(outcomes) == 6
    assert again.values.context.get("n") == 2 and again.state.hash == kept.state.hash


def test_read_names_the_line_of_the_file_and_ends(folder: Path) -> None:
    (folder / "bad.gasl").write_text("# one\n\nFNID nodes AS x\n", encoding="utf-8")
    at = new_session(MISERABLES)
    assert "bad.gasl:3:1" in screen_text(at, run_all(at, ".read bad.gasl")[-1])
    (folder / "self.gasl").write_text(".read self.gasl\n", encoding="utf-8")
    outcomes = run_all(at, ".read self.gasl", stop=True)
    assert outcomes[-1].status == "misused" and "files are read at once" in outcomes[-1].message
    (folder / "binary").write_bytes(b"\xff\xfe\x00")
    (folder / "x.seed.json").write_text("{}", encoding="utf-8")
    for wrong in ("binary", "bad.gsl", ".", "x.seed.json", "a b"):
        assert run(at, f".read {wrong}").status == "misused", wrong
    assert "did you mean bad.gasl?" in run(at, ".read bad.gsl").hint


def test_a_command_that_is_not_there() -> None:
    assert "did you mean .vars?" in run(new_session(), ".vers").hint
    assert "did you mean .undo?" in run(new_session(), ".rollback").hint
    assert run(new_session(), ".xyzzy").hint == ".help lists all commands"
    assert run(new_session(), ".help.vars").status == "misused"


def test_no_dot_command_gives_a_value_that_can_not_be_written(kept: Session) -> None:
    for dot in DOT_COMMANDS.values():
        outcome = run(kept, f".{dot.name}")
        for mode in ("table", "json", "csv", "md"):
            kept.settings.mode = mode
            assert screen_text(kept, outcome) or outcome.value is NOTHING
