"""`knotwork gasl`, and `check` and `fmt` of programs and plans."""

import json
import sys
from pathlib import Path

import pytest
from support.command import call, environment

GRAPH = ("--graph", "nx:karate_club")
PROGRAM = "#: the hubs\nfind nodes where degree > 9 as hubs # all\ndeclare keep as list\nupdate keep with hubs merge\n"
FORMATTED = (
    "#: the hubs\nFIND nodes WHERE degree > 9 AS hubs  # all\nDECLARE keep AS LIST\nUPDATE keep WITH hubs MERGE\n"
)


def plan(*commands: str) -> str:
    return json.dumps({"plan_id": "p", "why": "to see", "commands": list(commands)})


def test_the_last_commands_value_is_json_in_a_pipe() -> None:
    result = call("gasl", "-c", "FIND nodes WHERE degree > 15 AS hubs", *GRAPH)
    assert (result.code, result.err) == (0, "")
    assert [node["id"] for node in result.json] == [0, 33]


def test_commands_share_their_variables() -> None:
    result = call("gasl", "-c", "FIND nodes WHERE degree > 15 AS hubs", "-c", "COUNT hubs AS n", *GRAPH)
    assert (result.code, result.out) == (0, "2\n")


def test_explain_prints_how_a_command_would_run() -> None:
    result = call("gasl", "-c", "FIND nodes AS all", "-c", "EXPLAIN RANK all BY degree LIMIT 2 PER club AS x", *GRAPH)
    assert (result.code, result.err) == (0, "")
    assert result.json["notes"] == ["all has 34 items", "at most 2 rows for each club"]
    result = call("gasl", "-c", "EXPLAIN FIND nodes WHERE degree > 9 LIMIT 1 PER club AS x", *GRAPH)
    assert (result.json["rows"], result.json["notes"][-1]) == (4, "at most 1 for each club")


def test_a_block_may_go_over_several_options_and_a_reason_over_two() -> None:
    result = call("gasl", "-c", "TRY", "-c", "FIND nodes LIMIT 2 AS some", "-c", "END", "-c", "#: to know", "-c", "COUNT some AS n",
                  *GRAPH, "--state", "kept")  # fmt: skip
    assert (result.code, result.out) == (0, "2\n")
    assert [entry["why"] for entry in call("state", "log", "kept", "--format", "json").json] == [None, None, "to know"]


def test_a_table_and_one_that_is_cut() -> None:
    result = call("gasl", "-c", "FIND nodes WHERE degree > 15 AS hubs", *GRAPH, "--format", "table")
    assert "Mr. Hi" in result.out
    assert "{" not in result.out
    long = call("gasl", "-c", "FIND edges AS e", "-g", "nx:les_miserables", "--format", "table")
    assert len(long.out.splitlines()) == 102
    assert "and 154 more" in long.err


def test_a_command_needs_no_option() -> None:
    assert call("gasl", "FIND nodes LIMIT 1 AS one", *GRAPH).json == [{"id": 0, "club": "Mr. Hi"}]


def test_an_empty_result_is_a_result_and_says_what_is_near() -> None:
    result = call("gasl", "-c", 'FIND nodes WHERE id = "Valjaen" AS x', "-g", "nx:les_miserables")
    assert (result.code, result.json) == (0, [])
    assert 'did you mean "Valjean"?' in result.err


def test_one_that_fails_ends_it_and_leaves_stdout_empty() -> None:
    result = call("gasl", "-c", "FIND nodes AS all", "-c", "ASSERT LEN ${all} > 99", "-c", "COUNT all AS n", *GRAPH)
    assert (result.code, result.out) == (1, "")
    assert "LEN ${all} is 34" in result.err


def test_a_result_that_was_cut_short_is_partial() -> None:
    result = call("gasl", "-c", "SET adapter.caps.max_results = 3", "-c", "FIND nodes AS x", *GRAPH, "--format", "json")
    assert (result.code, len(result.json)) == (4, 3)
    assert "partial: the record shows the first 3 of 34 items, limited by max_results" in result.err


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("FIND node AS x", "write nodes"),
        ("FIND nodes WHERE degree => 5 AS x", "write >="),
        ("FIND nodes WHERE clb = 'x' AS x", "did you mean club?"),
        ("FIND nodes WHERE club = Officer AS x", 'write "Officer"'),
        ("FIND nodes WHERE degree > 5", "end the command with AS and a name"),
        ("SELECT * FROM nodes", "SELECT ... FROM is SQL"),
        ("MATCH (n) RETURN n", "MATCH is Cypher"),
        ("UPDATE keep WITH x", "DECLARE keep AS LIST"),
        ("COUNT x AS n", "the variable x is not bound"),
        ("SET adapter.caps.max_pathlength = 2", "max_path_length"),
        ("FIND nodes AS x; COUNT x AS n", "move it to a new line"),
        ("FIND nodes WHERE name = 'it's' AS x", "an unescaped ' ends the string here"),
    ],
)
def test_a_typo_is_told_with_what_was_meant(typed: str, told: str) -> None:
    result = call("gasl", "-c", typed, *GRAPH)
    assert (result.code, result.out) == (3, "")
    assert told in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        ((), 2, "the command is missing"),
        (("-c", ""), 2, "the command is missing"),
        (("-c", "# later"), 2, "comments but no commands"),
        (("-c", "-"), 2, "knotwork run -"),
        (("-c", "a.gasl"), 2, "knotwork run a.gasl"),
        (("-c", "@a.gasl"), 2, "knotwork run a.gasl"),
        (("a.gasl",), 2, "knotwork run a.gasl"),
        (("FIND nodes AS x", "-c", "COUNT x AS n"), 2, "-c before each command"),
        (("-c", "FIND nodes AS x"), 2, "--graph nx:les_miserables"),
        (("-c", "FIND nodes AS x", "--format", "tabel"), 2, "'tabel' is not one of"),
        (("-c", "FIND nodes AS x", "-g", "nx:karate"), 1, "nx:karate_club"),
        (("-c", "FIND nodes AS x", "-g", "none.graphml"), 1, "the file does not exist"),
        (("-c", "FIND nodes AS x", "-g", "a.gasl"), 1, "unknown graph format"),
        (("-c", "FIND nodes AS x", "-g", "."), 1, "name a file in it"),
        (("-c", "FIND nodes AS x", *GRAPH, "--state", "a.gasl"), 1 + 1, "--state needs a directory"),
        (("-c", "FIND nodes AS x", *GRAPH, "--chunks", "none.json"), 1, "none.json can't be read"),
        (("-c", "FIND nodes AS x", *GRAPH, "--chunks", "a.gasl"), 1, "are not JSON"),
        (("-c", "FIND nodes AS x", "-c", "PROCESS x USING 'a' AS y", *GRAPH, "--llm", "gpt-5"), 2, "openai:gpt-5"),
    ],
)
def test_what_is_wrong_around_the_commands(folder: Path, args: tuple[str, ...], code: int, told: str) -> None:
    (folder / "a.gasl").write_text("FIND nodes AS x\n")
    result = call("gasl", *args)
    assert (result.code, result.out) == (code, "")
    assert told in result.err
    assert "internal error" not in result.err


def test_what_fails_before_it_begins_makes_no_folder(folder: Path) -> None:
    for wrong in (("-g", "none.graphml"), (*GRAPH, "--chunks", "none.json"), (*GRAPH, "--llm", "gpt-5")):
        assert call("gasl", "-c", "FIND nodes AS x", "--state", "kept", *wrong).code in (1, 2)
    assert not (folder / "kept").exists()


def test_a_state_knows_its_graph(folder: Path) -> None:
    assert call("gasl", "-c", "DECLARE a AS LIST", *GRAPH, "--state", "kept").code == 0
    assert call("gasl", "-c", "FIND nodes LIMIT 1 AS x", "--state", "kept").json == [{"id": 0, "club": "Mr. Hi"}]


def test_what_a_graph_or_a_command_says_does_not_move_the_cursor(folder: Path) -> None:
    nodes = [{"id": "\x1b[2Jgone", "name": "\u202etxt"}]
    (folder / "g.json").write_text(
        json.dumps({"nodes": nodes, "edges": [], "directed": False, "multigraph": False, "graph": {}})
    )
    for form in ("table", "json"):
        result = call("gasl", "-c", "FIND nodes AS x", "-g", "g.json", "--format", form)
        assert result.code == 0
        assert "\x1b" not in result.out + result.err
    result = call("gasl", "-c", 'FIND nodes WHERE name = "\x1b[31m" AS x', "-g", "g.json")
    assert "\x1b" not in result.out + result.err


@pytest.mark.slow
@pytest.mark.parametrize("form", ["table", "json"])
def test_on_a_terminal_nothing_is_obeyed_that_a_graph_says(folder: Path, form: str) -> None:
    """Also the control characters that JSON does not escape."""
    pexpect = pytest.importorskip("pexpect")
    nodes = [{"id": "a", "name": "\x9b2Jgone \u202etxt"}]
    data = {"nodes": nodes, "edges": [], "directed": False, "multigraph": False, "graph": {}}
    (folder / "g.json").write_text(json.dumps(data))
    args = ["-m", "knotwork", "gasl", "-c", "FIND nodes AS x", "-g", "g.json", "--format", form]
    with pexpect.spawn(
        sys.executable, args, env=environment(folder), cwd=str(folder), encoding="utf-8", timeout=30
    ) as shown:
        seen = shown.read()
    assert "gone" in seen
    assert "\x9b" not in seen
    assert "\u202e" not in seen


def test_the_log_shows_commands_as_they_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_DEBUG", "2")
    result = call("gasl", "-c", "FIND nodes LIMIT 1 AS x", *GRAPH)
    assert result.code == 0
    assert "FIND nodes LIMIT 1 AS x" in result.err


# check


def test_a_program_is_checked_against_a_graph_and_a_state(folder: Path) -> None:
    (folder / "a.gasl").write_text('FIND nodes WHERE clb = "Officer" AS x\nUPDATE keep WITH x\n')
    assert call("check", "a.gasl").code == 0, "who knows"
    call("gasl", "-c", "DECLARE keep AS COUNTER", *GRAPH, "--state", "kept")
    result = call("check", "a.gasl", *GRAPH, "--state", "kept", "--format", "json")
    assert result.code == 3
    assert result.json[0]["code"] == "GASL070"
    assert not any(found["code"] == "GASL055" for found in result.json), "the state has the key"
    assert call("check", "a.gasl", "--state", "kpet").code == 2
    assert "did you mean kept?" in call("check", "a.gasl", "--state", "kpet").err


def test_programs_plans_and_scripts_are_checked_together(folder: Path) -> None:
    (folder / "a.gasl").write_text(PROGRAM)
    (folder / "p.json").write_text(plan("FIND nodes AS x", "COUNT x AS n"))
    (folder / "s.lwt").write_text('(final)=CONST("x")\n')
    result = call("check", "a.gasl", "p.json", "s.lwt")
    assert (result.code, result.out) == (0, "nothing to report in 3 files (1 step, 5 commands)\n")


def test_a_plans_fault_stands_where_the_command_does() -> None:
    result = call("check", "-", "--format", "json", stdin=plan("FIND nodes AS x", "COUN x AS n"))
    assert result.code == 3
    (found,) = result.json
    assert (found["code"], found["message"]) == ("GASL001", "commands[1]: unknown command COUN")
    assert plan("FIND nodes AS x", "COUN x AS n")[found["span"]["start"] :].startswith("COUN")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "FIND",
        "TRY\n" * 50,
        "(" * 20_000,
        "FIND nodes WHERE " + "(" * 20_000,
        "\x00",
        "{",
        '{"commands": 1}',
        "[" * 20_000,
    ],
)
def test_nothing_makes_check_stumble(folder: Path, text: str) -> None:
    for name in ("x.gasl", "x.json"):
        (folder / name).write_text(text)
        result = call("check", name)
        assert result.code in (0, 3)
        assert "internal error" not in result.err
        assert "Traceback" not in result.out + result.err


# fmt


def test_a_program_is_formatted_comments_kept(folder: Path) -> None:
    (folder / "a.gasl").write_text(PROGRAM)
    assert call("fmt", "--check", "a.gasl").code == 1
    assert "+FIND nodes WHERE degree > 9 AS hubs  # all" in call("fmt", "--diff", "a.gasl").out
    assert call("fmt", "a.gasl").code == 0
    assert (folder / "a.gasl").read_text() == FORMATTED
    assert call("fmt", "--check", "a.gasl").code == 0
    assert call("fmt", "-", stdin=PROGRAM).out == FORMATTED


def test_a_program_with_faults_is_left_alone(folder: Path) -> None:
    (folder / "a.gasl").write_text("find nodes\n")
    assert call("fmt", "a.gasl").code == 3
    assert (folder / "a.gasl").read_text() == "find nodes\n"
