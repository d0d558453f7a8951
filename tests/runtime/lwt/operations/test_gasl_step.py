"""GASL as a step of a prompt script: references are values, a step is a transaction, and happens once."""

import asyncio
import os
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork import gasl, lwt
from knotwork.adapters.state_json import open_store
from knotwork.lang.embedded_code import embedded_program
from knotwork.lang.parse.gasl import parse_gasl
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.source import Source
from knotwork.lang.trees.lwt import Reference
from support.clients import Scripted
from support.executing import library


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    return tmp_path


def run(script: str, graph: Any = None, state: Any = None, **rest: Any) -> Any:
    return asyncio.run(lwt.run(script, graph=graph or library(), state=state, **rest))


def template_of(script: str) -> Any:
    """Return the string of the GASL call in the second step."""
    return parse_lwt(script).steps[1].call.arguments[0]


def found(codes: str) -> list[Any]:
    return [d for d in lwt.check(codes) if d.code == "LWT042"]


def failure(result: Any, step: str) -> Any:
    return result.steps[step].failed


# What a step gives


def test_a_step_gives_the_value_of_its_last_command() -> None:
    result = run('(people)=GASL("FIND nodes WHERE entity_type = \'PERSON\' AND age > 50 AS old\nSELECT old FIELDS id AS names")\n'
                 '(final)=GASL("COUNT {(people)} AS n")')  # fmt: skip
    assert result.status == "complete"
    assert result.steps["people"].value == [{"id": "Ben"}, {"id": "Eve"}]
    assert result.value == 2


def test_what_a_result_covers_is_a_warning_of_the_run() -> None:
    result = run('(final)=GASL("MEASURE graph USING degree AS d")', nx.path_graph(2))
    note = "degree, unweighted without BY; on the whole graph (2 nodes, 1 edge)"
    assert list(result.warnings) == [f"(final): MEASURE graph USING degree AS d: {note}"]


@pytest.mark.parametrize(
    "second",
    [
        '(final)=GASL("COUNT {(some)} AS n")',
        "(final)=GASL(\"FIND nodes WHERE entity_type = '{(some)}' AS n\")",
        '(again)=GASL("SELECT {(some)} FIELDS id AS n")\n(final)=GASL("COUNT {(again)} AS m")',
    ],
)
def test_what_rests_on_a_step_that_was_cut_is_incomplete_too(second: str) -> None:
    cut = '(some)=GASL("SET adapter.caps.max_rows = 1\nFIND nodes AS x\nSELECT x FIELDS id AS y")'
    result = run(f"{cut}\n{second}")
    assert result.status == "partial"
    assert result.steps["some"].failed_items
    message = result.steps["final"].failed_items[0].message
    assert "depends on {(" in message
    assert "which is incomplete" in message
    assert "cut short by max_rows" in message


def test_a_step_that_finds_nothing_gives_nothing_and_has_not_failed() -> None:
    result = run('(final)=GASL("FIND nodes WHERE age > 99 AS x\nCOUNT x AS n")')
    assert (result.status, result.value) == ("complete", 0)


def test_a_parameter_takes_its_default_and_needs_one() -> None:
    result = run('(final)=GASL("PARAM least INT = 60\n# the old\nFIND nodes WHERE age > ${least} AS x\nCOUNT x AS n")')
    expected = run('(final)=GASL("FIND nodes WHERE age > 60 AS x\nCOUNT x AS n")')
    assert (result.status, result.value) == ("complete", expected.value)
    assert expected.value > 0
    (told,) = found('(final)=GASL("PARAM least INT\nFIND nodes WHERE age > ${least} AS x")')
    assert told.message == "the parameter least has no value: a script passes no parameters (GASL050)"


def test_calls_and_tokens_are_counted() -> None:
    answer = '{"rows": [{"ids": ["i1"], "kind": "old"}]}'
    script = "(final)=GASL(\"FIND nodes WHERE age > 60 AS x\nPROCESS x USING 'How old?' AS y RETURNING (kind TEXT)\")"
    result = run(script, llm=Scripted({"": answer}))
    assert result.status == "complete"
    assert [row["kind"] for row in result.value] == ["old"]
    assert (result.calls, result.steps["final"].calls) == (1, 1)
    assert result.usage == result.steps["final"].usage


# References


HOSTILE = [
    'x" OR id != "', "x' OR 1 = 1 #", "a\nRESET keep", "${keep}", "\\", '\\" OR id != "', "`", "x` = 1 OR `id", "# no",
    "\u2028RESET keep", "}", "{(a)}", "'''", 'x"', "\r\nRESET keep\r\n", "",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize(
    "written", ["id = {(a)}", 'id = \\"{(a)}\\"', "id = '{(a)}'", "`{(a)}` = 1", "id = 'no' # {(a)}"]
)
def test_what_a_reference_holds_is_never_a_command(text: str, written: str) -> None:
    """Whatever another step said: the program's commands are those that are written, and it finds what has that id."""
    template = template_of(f'(a)=CONST("x")\n(final)=GASL("FIND nodes WHERE {written} AS x")')
    inner = embedded_program(template)
    program = parse_gasl(inner.text(lambda _: text))
    if not text and "`" in written:  # no name at all
        assert program.diagnostics
        return
    plain = parse_gasl(inner.text(lambda _: "x"))
    if "#" in written:  # the rest of the line is the remark, in both
        assert [type(item) for item in program.items] == [type(item) for item in plain.items]
        return
    assert [d.message for d in program.diagnostics] == []
    (one,), (other,) = program.statements, plain.statements
    assert type(one.command.where) is type(other.command.where)
    if "`" not in written and "{(a)} " not in written + " ":
        assert one.command.where.right.value == text


@pytest.mark.slow
@given(st.text(max_size=12))
@settings(max_examples=150, deadline=None)
def test_any_text_inside_a_string_is_that_text(text: str) -> None:
    template = template_of('(a)=CONST("x")\n(final)=GASL("FIND nodes WHERE id = \'<{(a)}>\' AS x")')
    program = parse_gasl(embedded_program(template).text(lambda _: text))
    assert not program.diagnostics
    assert program.statements[0].command.where.right.value == f"<{text}>"


def test_values_stand_where_values_stand_and_lists_where_variables_stand() -> None:
    script = """\
(who)=CONST("Ada")
(ids)=LLM("who", type=list)
(one)=GASL("FIND nodes WHERE id = {(who)} AS x")
(some)=GASL("FIND nodes WHERE id IN {(ids)} AS x")
(near)=GASL("WALK {(one)} AS around\nEXCEPT around WITH {(some)} AS rest")
(final)=GASL("COUNT {(near)} BY entity_type AS n")
"""
    result = run(script, llm=Scripted({"who": '["Ben", "Cyd"]'}))
    assert result.status == "complete", failure(result, "near")
    assert [node["id"] for node in result.steps["some"].value] == ["Ben", "Cyd"]
    assert {row["entity_type"]: row["count"] for row in result.value} == {"PAPER": 1, "PLACE": 1}


def test_the_programs_own_variables_keep_their_names() -> None:
    program = "FIND nodes WHERE id = 'Ben' AS in_1\nFIND nodes WHERE id = {(a)} AS y\nUNION in_1 WITH y AS z"
    result = run(f'(a)=CONST("Ada")\n(final)=GASL("{program}")')
    assert [node["id"] for node in result.value] == ["Ben", "Ada"]


def test_the_input_is_a_value_too() -> None:
    script = '(final)=GASL("FIND nodes WHERE age > {(input)}[\\"least\\"] AS x\nCOUNT x AS n")'
    assert (
        run(script.replace('\\"', '"').replace('GASL("', 'GASL("""').replace('n")', 'n""")'), input={"least": 50}).value
        == 2
    )


# What is wrong with a program


def test_a_fault_is_told_where_it_stands() -> None:
    script = '(a)=CONST("Ada")\n(final)=GASL("FIND nodes WHERE id = {(a)} AS x\nCOUNT y AS n")'
    (fault,) = found(script)
    assert script[fault.span.start : fault.span.end] == "y"
    assert fault.message == "the variable y is not bound (GASL050)"
    (fault,) = found('(final)=GASL("FIND node AS x")')
    (edit,) = fault.edits
    assert (edit.text, edit.span) == ("nodes", fault.span)


def test_a_fault_of_a_reference_is_told_in_the_scripts_words() -> None:
    script = '(a)=CONST("Ada")\n(final)=GASL("FIND nodes AS x\nSUBGRAPH x RADIUS {(a)} AS y")'
    faults = found(script)
    assert faults
    assert not any("in_1" in fault.message + " ".join(fault.hints) for fault in faults)
    assert any("{(a)}" in script[fault.span.start : fault.span.end] for fault in faults)


def test_a_backslash_n_is_told_apart_from_a_line_break() -> None:
    faults = found(r'(final)=GASL("FIND nodes AS x\nCOUNT x AS n")')
    assert any("break the line in the string" in hint for fault in faults for hint in fault.hints)


def test_what_only_the_graph_shows_is_told_when_it_is_its_turn() -> None:
    result = run('(final)=GASL("FIND nodes WHERE agee > 1 AS x")')
    assert result.status == "failed"
    assert "did you mean age?" in failure(result, "final").hint


# Transactions


KEEP = '(final)=GASL("DECLARE keep AS LIST\nFIND nodes LIMIT 2 AS x\nUPDATE keep WITH x{more}")'


def test_a_program_that_fails_leaves_the_state_as_it_was() -> None:
    with_store = open_store()
    result = run(KEEP.replace("{more}", "\nASSERT LEN ${x} > 5"), state=with_store)
    assert result.status == "failed"
    assert "LEN ${x} is 2" in failure(result, "final").message
    assert with_store.snapshot().declared() == []
    assert with_store.history[-1]["status"] == "error"


def test_a_step_is_one_commit() -> None:
    store = open_store()
    assert run(KEEP.replace("{more}", ""), state=store).status == "complete"
    assert [entry["step"] for entry in store.history if "part" not in entry] == [1]
    assert len(store.get("keep")) == 2


def test_a_step_happens_once_also_when_the_run_is_resumed_in_between(home: Path) -> None:
    """Killed after the state had it and before the run's record had: the change is not made again, the value is the same."""
    text = '(made)=GASL("DECLARE n AS COUNTER\nFIND nodes LIMIT 2 AS x\nCOUNT x AS c\nUPDATE n WITH c")\n(final)=LLM("say {(made)}")'
    first = run(text, state=home / "kept", llm=Scripted({"say": "done"}), record=True)
    assert first.status == "complete", first.steps
    journal = home / "home" / "runs" / first.run_id / "run.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    assert len(lines) == 4
    journal.write_bytes(lines[0])  # that the run began
    again = asyncio.run(lwt.resume(first.run_id, llm=Scripted({"say": "done"}), graph=library(), state=home / "kept"))
    assert again.status == "complete", again.steps
    assert again.steps["made"].value == first.steps["made"].value
    store = open_store(home / "kept", read_only=True)
    assert store.get("n") == 2
    store.close()


def test_a_step_that_lacked_something_lacks_it_in_the_resumed_run_too(home: Path) -> None:
    cut = '(some)=GASL("SET adapter.caps.max_rows = 1\nFIND nodes AS x\nSELECT x FIELDS id AS y")'
    first = run(f'{cut}\n(final)=LLM("say {{(some)}}")', llm=Scripted({"say": "done"}), record=True)
    again = asyncio.run(lwt.resume(first.run_id, llm=Scripted({"say": "done"}), graph=library()))
    assert (first.status, again.status, again.calls) == ("partial", "partial", 0)
    assert [each.message for each in again.steps["some"].failed_items] == [
        each.message for each in first.steps["some"].failed_items
    ]


def test_steps_that_use_the_graph_take_turns() -> None:
    steps = "\n".join(
        f'(s{n})=GASL("DECLARE k{n} AS LIST\nFIND nodes LIMIT {n + 1} AS x\nUPDATE k{n} WITH x")' for n in range(8)
    )
    store = open_store()
    result = run(f'{steps}\n(final)=CONST("x")', state=store, all_steps=True)
    assert result.status == "complete", result.steps
    assert [len(store.get(f"k{n}")) for n in range(8)] == list(range(1, 9))
    numbers = [entry["step"] for entry in store.history]
    assert numbers == sorted(numbers), "what one did stands together"


# Files


def in_file(home: Path, name: str, text: str = "FIND nodes LIMIT 1 AS x\n", script: str = "s.lwt") -> Any:
    (home / "work").mkdir(exist_ok=True)
    (home / "work" / "x.gasl").write_text(text)
    (home / "work" / "notes.txt").write_text(text)
    (home / "secret.gasl").write_text(text)
    (home / "work" / script).write_text(f'(final)=GASL(file="{name}")\n')
    path = home / "work" / script
    return run(parse_lwt(Source(path.read_text(), str(path))))


def test_a_file_beside_the_script_is_run(home: Path) -> None:
    result = in_file(home, "x.gasl")
    assert (result.status, len(result.value)) == ("complete", 1)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("../secret.gasl", "is not allowed"),
        ("/etc/passwd", "is not allowed"),
        ("notes.txt", "is not allowed"),
        ("none.gasl", "can't be read"),
        ("link.gasl", "is not allowed"),
        ("pipe.gasl", "not a regular file"),
        ("folder.gasl", "not a regular file"),
        ("sub/../../secret.gasl", "is not allowed"),
        (".gasl", "is not allowed"),
    ],
)
def test_no_other_file_is_read(home: Path, name: str, told: str) -> None:
    (home / "work").mkdir()
    (home / "work" / "link.gasl").symlink_to(home / "secret.gasl")
    (home / "work" / "folder.gasl").mkdir()
    os.mkfifo(home / "work" / "pipe.gasl")
    with pytest.raises(lwt.ScriptError) as refused:
        in_file(home, name)
    assert [found.code for found in refused.value.diagnostics] == ["LWT049"]
    assert told in refused.value.diagnostics[0].message


def test_a_file_with_faults_says_which(home: Path) -> None:
    with pytest.raises(lwt.ScriptError) as refused:
        in_file(home, "x.gasl", "FIND node AS x\n")
    assert "x.gasl:1: FIND needs nodes, edges, paths, patterns or cycles" in refused.value.diagnostics[0].message


def test_a_file_that_is_gone_when_its_step_runs_fails_the_step(home: Path) -> None:
    class Removing:
        async def generate(self, prompt: str, **options: Any) -> str:
            (home / "work" / "x.gasl").unlink()
            return "x"

    text = '(a)=LLM("go")\n(final)=GASL(file="x.gasl", when="len({(a)}) > 0")\n'
    (home / "work").mkdir()
    (home / "work" / "x.gasl").write_text("FIND nodes LIMIT 1 AS x\n")
    (home / "work" / "s.lwt").write_text(text)
    result = run(parse_lwt(Source(text, str(home / "work" / "s.lwt"))), llm=Removing())
    assert result.status == "failed"
    assert "can't be read" in failure(result, "final").message


def test_a_script_that_is_no_file_reads_none() -> None:
    result = run('(final)=GASL(file="x.gasl")')
    assert "this run reads no files" in failure(result, "final").message


def test_without_a_graph_a_step_says_what_to_give() -> None:
    result = asyncio.run(lwt.run('(final)=GASL("FIND nodes AS x")'))
    assert result.status == "failed"
    assert "--graph FILE" in failure(result, "final").hint


def test_a_reference_is_told_apart_by_what_stands_before_it() -> None:
    template = template_of(
        '(a)=CONST("x")\n(f)=GASL("SELECT {(a)} WHERE x = {(a)} AS y\nfrom\n{(a)} x{(a)} \'{(a)}\' AS z")'
    )
    assert embedded_program(template).text(lambda _: "T") == (
        "SELECT in_1 WHERE x = ${in_2} AS y\nfrom\nin_3 x${in_4} 'T' AS z"
    )
    assert all(isinstance(reference, Reference) for _, reference in embedded_program(template).variables)


def test_a_graph_object_and_a_store_are_not_closed() -> None:
    store = open_store()
    graph = nx.karate_club_graph()
    for _ in range(2):
        assert run('(final)=GASL("FIND nodes LIMIT 1 AS x")', graph, store).status == "complete"
    assert len(store.history) == 4
    with gasl.open(graph, store) as executor:
        assert executor.execute_one("FIND nodes LIMIT 1 AS x").status == "success"
