"""`knotwork run` of programs and plans."""

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support.command import call, cassette, environment, silent_server

GRAPH = ("--graph", "nx:karate_club")
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


def written(folder: Path, *lines: str, name: str = "a.gasl") -> str:
    (folder / name).write_text("\n".join(lines) + "\n")
    return name


def plan(folder: Path, *commands: object, **more: object) -> str:
    (folder / "p.json").write_text(json.dumps({"plan_id": "p-1", "why": "to see", "commands": list(commands), **more}))
    return "p.json"


def test_a_program_gives_its_last_value_and_tells_each_command(folder: Path) -> None:
    written(folder, "FIND nodes WHERE degree > 15 AS hubs", "COUNT hubs AS n")
    result = call("run", "a.gasl", *GRAPH)
    assert (result.code, result.out) == (0, "2\n")
    assert "[1/2] FIND nodes WHERE degree > 15 AS hubs → success 2" in result.err
    assert "success: 2 of 2 commands" in result.err


def test_a_plan_that_goes_on_after_errors_runs_with_an_unbound_name(folder: Path) -> None:
    commands = ("COUNT nothing AS n", "UPDATE undeclared WITH n", "FIND nodes LIMIT 2 AS x", "COUNT x AS m")
    name = plan(folder, *commands, config={"stop_on_error": False})
    assert call("check", name, *GRAPH).code == 0
    result = call("run", name, *GRAPH)
    assert (result.code, result.out) == (4, "2\n")
    assert "COUNT nothing AS n → binding_failure" in result.err
    refused = call("run", plan(folder, *commands), *GRAPH)
    assert refused.code == 3
    assert "nothing was run" in refused.err


def test_a_plan_runs_like_a_program(folder: Path) -> None:
    name = plan(
        folder,
        "DECLARE keep AS LIST",
        {"command": "FIND nodes LIMIT 2 AS x", "why": "two will do"},
        "UPDATE keep WITH x",
    )
    document = call("run", name, *GRAPH, "--state", "kept", "--format", "json").json
    assert document["status"] == "success"
    assert [command["why"] for command in document["commands"]] == ["to see", "two will do", "to see"]
    assert document["value"] == [{"id": 0, "club": "Mr. Hi"}, {"id": 1, "club": "Mr. Hi"}]
    assert document["variable"] == "x"
    assert document["state"] == call("state", "show", "kept", "--format", "json").json["hash"]
    log = call("state", "log", "kept", "--format", "json").json
    assert {entry["plan_id"] for entry in log} == {"p-1"}


@pytest.mark.parametrize("text", ["FIND nodes LIMIT 1 AS x", "# first\n\n#: why\nfind nodes limit 1 as x",
                                  '{"plan_id": "p", "why": "w", "commands": ["FIND nodes LIMIT 1 AS x"]}'])  # fmt: skip
def test_what_comes_through_stdin_is_known_by_how_it_begins(text: str) -> None:
    assert call("run", "-", *GRAPH, stdin=text).json == [{"id": 0, "club": "Mr. Hi"}]


def test_nothing_runs_where_anything_is_wrong(folder: Path) -> None:
    written(folder, "DECLARE keep AS LIST", "FIND nodes AS x", "UPDATE keep WIHT x")
    for extra in ((), ("--format", "json")):
        result = call("run", "a.gasl", *GRAPH, "--state", "kept", *extra)
        assert result.code == 3
        assert "nothing was run" in result.err
    assert result.json["status"] == "refused"
    assert result.json["diagnostics"][0]["span"]["line"] == 3
    written(folder, "DECLARE keep AS LIST", "FIND nodes WHERE clb = 1 AS x")
    assert call("run", "a.gasl", *GRAPH).code == 3, "what only the graph shows"
    assert not (folder / "kept").exists()


def test_a_failure_leaves_stdout_empty_and_says_what_to_do(folder: Path) -> None:
    written(folder, "FIND nodes AS x", "COUNT x AS n", "ASSERT ${n} > 99", "COUNT x AS m")
    result = call("run", "a.gasl", *GRAPH)
    assert (result.code, result.out) == (1, "")
    assert "error: 3 of 4 commands" in result.err
    document = call("run", "a.gasl", *GRAPH, "--format", "json")
    assert (document.code, document.json["status"], len(document.json["commands"])) == (1, "error", 3)
    assert "${n} is 34" in document.json["commands"][2]["error"]["message"]


@pytest.mark.slow
def test_an_empty_result_stops_a_plan_and_ends_it_well_only_at_its_end(folder: Path) -> None:
    """A program goes on, as a sequence of single commands does; a plan object goes on only if its config says so."""
    nothing = ("FIND nodes WHERE degree > 99 AS x", "COUNT x AS n")
    written(folder, *nothing)
    result = call("run", "a.gasl", *GRAPH)
    alone = call("gasl", *(word for command in nothing for word in ("-c", command)), *GRAPH)
    assert (result.code, result.out) == (alone.code, alone.out) == (0, "0\n")
    assert call("run", plan(folder, *nothing), *GRAPH).code == 1
    written(folder, "FIND nodes WHERE degree > 99 AS x")
    assert call("run", "a.gasl", *GRAPH).code == 0
    assert call("run", plan(folder, "FIND nodes WHERE degree > 99 AS x", "COUNT x AS n", config={"continue_on_empty": True}),
                *GRAPH).code == 0  # fmt: skip


def test_a_part_of_the_result_and_a_plan_that_cancels_itself(folder: Path) -> None:
    written(folder, "SET adapter.caps.max_rows = 3", "FIND nodes AS x", "COUNT x AS n")
    result = call("run", "a.gasl", *GRAPH)
    assert (result.code, result.out) == (4, "3\n")
    assert "max_rows" in result.err
    cancelled = call("run", plan(folder, "FIND nodes AS x", 'CANCEL PLAN "p-1"', "COUNT x AS n"), *GRAPH)
    assert (cancelled.code, cancelled.out) == (130, "")


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--input", "x.json"), "--input applies only to prompt scripts"),
        (("--lenient",), "--lenient applies only to prompt scripts"),
        (("--all-steps",), "--all-steps applies only to prompt scripts"),
        (("--schedule", "layered"), "--schedule applies only to prompt scripts"),
        (("--strict-types",), "--strict-types applies only to prompt scripts"),
        (("--max-steps", "5"), "--max-steps applies only to prompt scripts"),
        (("--dry-run",), "EXPLAIN before a command"),
        (("--state", "kept"), "the program needs a graph"),
        (("--model", "small"), "--model small=local"),
        (("--grpah", "x"), "--graph"),
    ],
)
def test_wrong_usage(folder: Path, args: tuple[str, ...], told: str) -> None:
    (folder / "x.json").write_text("1")
    written(folder, "FIND nodes AS x")
    result = call("run", "a.gasl", *args)
    assert (result.code, result.out) == (2, "")
    assert told in result.err
    assert not (folder / "kept").exists()


def test_a_formula_seed_is_named_as_what_it_is(folder: Path) -> None:
    (folder / "seed.json").write_text('{"compute": {}}')
    result = call("run", "seed.json", *GRAPH)
    assert (result.code, "Formula Seed" in result.err) == (2, True)


@pytest.mark.slow
def test_recorded_answers_of_a_model(folder: Path) -> None:
    (folder / "g.json").write_text(json.dumps({
        "directed": False, "multigraph": False, "graph": {}, "edges": [],
        "nodes": [{"id": "p1", "entity_type": "PAPER", "source_id": "c1"}, {"id": "p2", "entity_type": "PAPER"}],
    }))  # fmt: skip
    (folder / "chunks.json").write_text('{"c1": {"content": "It is about moss."}}')
    written(folder, "DECLARE topics AS LIST", 'FIND nodes WHERE entity_type = "PAPER" AS papers',
            'PROCESS papers USING "What is it about?" AS topics RETURNING (topic TEXT)', "UPDATE topics WITH topics")  # fmt: skip
    spec = cassette(
        folder / "c",
        {"What is it about?": '{"rows": [{"ids": ["i1"], "topic": "moss"}, {"ids": ["i2"], "topic": "bogs"}]}'},
    )
    args = ("a.gasl", "-g", "g.json", "--chunks", "chunks.json", "--llm", spec)
    result = call("run", *args, "--state", "kept")
    assert result.code == 0, result.err
    assert [row["topic"] for row in result.json] == ["moss", "bogs"]
    assert "1 call · 12 tokens" in result.err
    proof = call("state", "show", "kept", "topics", "--evidence", "--format", "json").json["evidence"][0]
    assert any(piece.get("snippet") == "It is about moss." for piece in proof)
    assert any(piece.get("kind") == "model" for piece in proof)
    assert "moss" in call("state", "show", "kept", "topics", "--evidence").out
    page = call("report", "kept", "-o", "-").out
    assert "It is about moss." in page
    again = call("replay", "kept")
    assert (again.code, "1 recorded answer" in again.out) == (0, True), again.out
    none = call("run", *args[:-2], "--llm", cassette(folder / "d", {"something else": "x"}))
    assert (none.code, none.out) == (1, "")
    limited = call("run", *args, "--max-calls", "0")
    assert (limited.code, "the budget is reached" in limited.err) == (1, True)


def test_without_a_model_what_needs_one_is_told_before_anything_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knotwork.runtime.models.factory.find_spec", lambda name: None)
    written(folder, "FIND nodes LIMIT 1 AS x", "PROCESS x USING 'what?' AS y")
    result = call("run", "a.gasl", *GRAPH, "--state", "kept")
    assert (result.code, result.out) == (2, "")
    assert "--llm" in result.err
    assert not (folder / "kept").exists()


@pytest.mark.slow
@posix
@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM])
def test_a_signal_ends_a_process_step_and_keeps_what_was_committed(folder: Path, number: int) -> None:
    written(folder, "DECLARE keep AS LIST", "FIND nodes LIMIT 3 AS x", "UPDATE keep WITH x",
            'PROCESS x USING "What is it?" AS y', "UPDATE keep WITH y")  # fmt: skip
    with silent_server() as (spec, asked):
        command = [sys.executable, "-m", "knotwork", "run", "a.gasl", *GRAPH, "--state", "kept", "--llm", spec]
        with subprocess.Popen(
            command,
            env=environment(folder),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as running:
            try:
                until_asked(asked, running)
                sent = time.perf_counter()
                running.send_signal(number)
                out, err = running.communicate(timeout=30)
                took = time.perf_counter() - sent
            finally:
                running.kill()
    assert (running.returncode, out) == (130, b"")
    told = err.decode()
    assert "stopping; Ctrl-C again exits at once" in told
    assert "cancelled: 4 of 5 commands" in told
    assert "Traceback" not in told
    assert took < 5
    assert len(call("state", "show", "kept", "keep", "--format", "json").json) == 3
    assert [entry["status"] for entry in call("state", "log", "kept", "--format", "json").json] == ["success"] * 3 + [
        "cancelled"
    ]
    assert call("state", "verify", "kept").code == 0
    assert call("replay", "kept").code == 0, "the interruption, too, is replayed"


def until_asked(asked: threading.Event, running: "subprocess.Popen[bytes]") -> None:
    while not asked.wait(0.05):
        assert running.poll() is None, "the command ended before it asked the model"


# Scripts with GASL steps


SCRIPT = """\
(hubs)=GASL("DECLARE keep AS LIST
FIND nodes WHERE degree > 15 AS hubs
UPDATE keep WITH hubs")
(final)=GASL("COUNT {(hubs)} AS n")
"""


@pytest.mark.slow
def test_a_script_works_on_a_graph_and_a_state(folder: Path) -> None:
    written(folder, SCRIPT, name="s.lwt")
    result = call("run", "s.lwt", *GRAPH, "--state", "kept", "--query", "Who?")
    assert (result.code, result.out) == (0, "2\n")
    assert len(call("state", "show", "kept", "keep", "--format", "json").json) == 2
    assert call("run", "s.lwt", "--state", "kept").code == 0, "the state knows its graph"
    assert "Who?" in call("report", "kept", "-o", "-").out


def test_a_script_that_needs_a_graph_says_so(folder: Path) -> None:
    written(folder, SCRIPT, name="s.lwt")
    for args in ((), ("--state", "kept")):
        result = call("run", "s.lwt", *args)
        assert (result.code, "--graph FILE" in result.err) == (2, True)
    assert not (folder / "kept").exists()
    written(folder, '(final)=CONST("x")', name="c.lwt")
    plain = call("run", "c.lwt", *GRAPH, "--state", "kept")
    assert (plain.code, "c.lwt has no GASL step: --graph and --state are ignored" in plain.err) == (0, True)
    assert "has no GASL step: --raw is ignored" in call("run", "c.lwt", "--raw").err
    assert not (folder / "kept").exists()


def test_a_programs_fault_stands_in_the_script(folder: Path) -> None:
    written(folder, '(a)=CONST("x")', '(final)=GASL("FIND nodes WHERE id = {(a)} AS x', 'COUNT y AS n")', name="s.lwt")
    (found,) = call("check", "s.lwt", "--format", "json").json
    assert (found["code"], found["span"]["line"], found["span"]["column"]) == ("LWT042", 3, 7)


PARAMETERS = ("PARAM least INT", "PARAM most INT = 2", "FIND nodes WHERE degree > ${least} LIMIT ${most} AS x")


def test_values_of_parameters_are_options(folder: Path) -> None:
    written(folder, *PARAMETERS)
    result = call("run", "a.gasl", *GRAPH, "--param", "least=5", "--param", "most=1", "--format", "json")
    assert result.code == 0 and len(result.json["value"]) == 1
    name = plan(folder, *PARAMETERS)
    assert len(call("run", name, *GRAPH, "--param", "least=5", "--format", "json").json["value"]) == 2
    commands = [word for text in PARAMETERS for word in ("-c", text)]
    assert len(call("gasl", *commands, *GRAPH, "--param", "least=5").json) == 2


def test_without_a_value_of_a_parameter_nothing_runs(folder: Path) -> None:
    written(folder, *PARAMETERS)
    result = call("run", "a.gasl", *GRAPH)
    assert (result.code, result.out) == (1, "")
    assert "the parameter least has no value" in result.err and "--param least=..." in result.err
    assert "1 of 3 commands" in result.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("lest=5", "the program has no parameter lest"), ("least=many", "the parameter least is a whole number"),
        ("least", '"least" is not a name and a value'),
    ],
)  # fmt: skip
def test_a_wrong_parameter_is_a_wrong_option(folder: Path, given: str, said: str) -> None:
    written(folder, *PARAMETERS)
    result = call("run", "a.gasl", *GRAPH, "--param", given)
    assert (result.code, result.out) == (2, "") and said in result.err


def test_a_script_has_no_parameters(folder: Path) -> None:
    written(folder, '(final)=CONST("x")', name="a.lwt")
    result = call("run", "a.lwt", "--param", "a=1")
    assert result.code == 2 and "--param applies only to programs and plans" in result.err
