"""``knotwork repl`` without a terminal: -c, -f and stdin, what goes where, and the exit code."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from knotwork.runtime.api.pieces import Piece
from knotwork.runtime.api.session import Session
from knotwork.runtime.api.session_data import Outcome
from knotwork.runtime.interfaces.cli.turn import Screen, Turn
from support.command import call, cassette, environment, process, silent_server
from support.sessions import new_session

MISERABLES = "nx:les_miserables"


def test_commands_on_the_command_line_write_their_values_and_nothing_else_to_stdout() -> None:
    done = call("repl", MISERABLES, "-c", "FIND nodes WHERE degree > 20 AS hubs", "-c", "len(hubs)")
    assert done.code == 0 and done.out.endswith("]\n2\n")
    assert json.loads(done.out.removesuffix("2\n")) == [{"id": "Valjean"}, {"id": "Gavroche"}]
    assert "2 nodes in hubs" in done.err


@pytest.mark.parametrize(
    "text, code",
    [
        ("1", 0), ("FNID nodes AS x", 3), ("nope", 3), ("FIND nodes WHERE degree > 99 AS x", 0), ("ASSERT degree > 1", 3),
        (".nope", 2), ("1 / 0", 3), ("", 0), ("# remark", 0), (".quit", 0), ('(a)=LLM("x")', 1), ("REQUIRE EXISTS x", 3),
        ("(a)=LLM('open", 3), ("TRY", 3),
    ],
)  # fmt: skip
def test_exit_codes(text: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_LLM", "replay:/nowhere")
    assert call("repl", MISERABLES, "-c", text).code == code
    assert call("repl", MISERABLES, stdin=text).code == code


def test_the_first_that_fails_gives_the_code_and_fail_fast_ends_there() -> None:
    text = "1\nnope\n.nope\n2\n"
    goes_on, ends = call("repl", stdin=text), call("repl", "--fail-fast", stdin=text)
    assert (goes_on.code, goes_on.out) == (3, "1\n2\n")
    assert (ends.code, ends.out) == (3, "1\n")
    assert call("repl", "--fail-fast", "-c", "1", "-c", ".nope", "-c", "2").out == "1\n"


def test_a_partial_step_is_4(folder: Path) -> None:
    spec = cassette(folder / "answers", {"good": "fine", "bad": None})
    done = call("repl", "--llm", spec, "-c", '(bad)=LLM("bad")\n(good)=LLM("good")')
    assert done.code == 4 and done.out == "fine\n" and "partial: (bad)" in done.err


def test_a_file_is_run_and_faults_have_its_lines(folder: Path) -> None:
    (folder / "work.txt").write_text(
        'FIND nodes WHERE degree > 20 AS hubs\n\n# a remark\n(n)=EXPR("len(x)", x={(hubs)})\nn + m\n', encoding="utf-8"
    )
    done = call("repl", MISERABLES, "-f", "work.txt", "-c", "n", "--mode", "csv")
    assert done.code == 3 and done.out == "id\nValjean\nGavroche\nvalue\n2\nvalue\n2\n"
    assert "work.txt:5:5" in done.err
    assert call("repl", MISERABLES, "-f", "-", stdin="1 + 1").out == "2\n"


def test_wrong_usage(folder: Path) -> None:
    (folder / "file").write_text("", encoding="utf-8")
    (folder / "in.json").write_text("{", encoding="utf-8")
    for args, said in (
        (("repl", "-f", "nowhere"), "the file does not exist"),
        (("repl", "nowhere.graphml"), "nowhere.graphml"),
        (("repl", "work.gasl"), "knotwork repl GRAPH -f work.gasl"),
        (("repl", "--graph", MISERABLES), "knotwork repl GRAPH"),
        (("repl", "--state", "file"), "needs a directory"),
        (("repl", "--llm", "opnai:x", "-c", "1"), "did you mean openai:MODEL?"),
        (("repl", "--input", "-"), "stdin can be the input or the commands"),
        (("repl", "--input", "in.json", "-c", "1"), "not JSON"),
        (
            ("repl", "--llm", "openai:no-such-model", "--max-cost", "1", "-c", "1"),
            "the price of openai:no-such-model is unknown",
        ),
        (("repl", "--mode", "xml", "-c", "1"), "xml"),
        (("repl", "-f", "-", "--input", "-"), "only once"),
    ):
        done = call(*args)
        assert done.code in (1, 2) and said in done.err and "Traceback" not in done.err, (args, done)


def test_the_state_is_kept_and_knows_its_graph() -> None:
    first = call(
        "repl",
        MISERABLES,
        "--state",
        "story",
        "-c",
        "DECLARE hubs AS LIST",
        "-c",
        "FIND nodes WHERE degree > 20 AS x",
        "-c",
        "UPDATE hubs WITH x",
    )
    assert first.code == 0
    again = call("repl", "--state", "story", "-c", ".state hubs", "-c", "FIND nodes LIMIT 1 AS y", "--mode", "csv")
    assert again.code == 0 and again.out == "id\nValjean\nGavroche\nid\nNapoleon\n"
    assert call("state", "verify", "story").code == 0


def test_what_was_undone_in_a_session_is_undone_in_the_folder() -> None:
    text = "DECLARE hubs AS LIST\nFIND nodes WHERE degree > 20 AS x\nUPDATE hubs WITH x\n.undo\n"
    assert call("repl", MISERABLES, "--state", "story", stdin=text).code == 0
    assert call("state", "show", "story", "hubs", "--format", "json").json == []
    assert "taken back" in call("state", "log", "story").out or ".undo" in call("state", "log", "story").out


def test_a_result_that_a_file_can_not_take_is_told_by_the_code(folder: Path) -> None:
    done = call("repl", "-c", ".output x.csv", "-c", "[{'a': 1}]", "-c", "2")
    assert done.code == 1 and "has different columns: a" in done.err and (folder / "x.csv").read_text() == "a\n1\n"


@pytest.mark.slow
def test_a_folder_that_is_no_state_stays_as_it_is(folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").write_text("mine", encoding="utf-8")
    (folder / "empty").mkdir()
    (folder / "p.gasl").write_text("FIND nodes LIMIT 1 AS x\n", encoding="utf-8")
    for args in (("repl", MISERABLES, "-c", "1"), ("run", "p.gasl", "--graph", MISERABLES)):
        done = call(*args, "--state", "mine")
        assert (
            done.code != 0
            and "mine is not empty and contains no state" in done.err
            and "use an empty or a new directory" in done.err
        )
        assert [path.name for path in (folder / "mine").iterdir()] == ["notes.txt"]
        assert call(*args, "--state", "empty").code == 0


def test_stdin_that_is_no_text() -> None:
    done = call("repl", stdin=b"1\n\xff\xfe\n")
    assert done.code == 2 and "not text in UTF-8" in done.err


@pytest.mark.slow
def test_a_long_text_in_a_pipe_is_read_in_one_go() -> None:
    prompt = "a line, with (all) of 'it' in [here]\n" * 20_000
    done = call(
        "repl",
        stdin=f'(a)=CONST("""\n{prompt}""")\nlen(a)\n',
    )
    assert done.code == 0 and done.out.endswith(f"\n{len(prompt) + 1}\n"), done.out[-100:]


def test_a_command_that_breaks_does_not_cost_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr("knotwork.runtime.api.session_runs.check_expr", lambda *args, **more: broken())
    done = call("repl", "-c", "1 + 1", "-c", ".vars", "-c", "(a)=CONST(2)")
    assert (done.code, done.out) == (1, "2\n") and "internal error: ZeroDivisionError: a fault of ours" in done.err


def test_the_input_is_read_from_a_file_or_from_stdin(folder: Path) -> None:
    assert call("repl", "--input", "-", "-c", "input['n'] + 1", stdin='{"n": 1}').out == "2\n"


def test_help_is_text_in_a_pipe_and_data_on_demand() -> None:
    assert call("repl", "-c", ".help").out.startswith("FIND nodes")
    found = call("repl", "--mode", "json", "-c", ".help").json
    assert {"command": ".quit", "does": "end the session, like Ctrl-D"} in found


@pytest.mark.slow
def test_a_process_answers_line_by_line(folder: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "knotwork", "repl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(folder), cwd=folder, text=True,
    )  # fmt: skip
    assert child.stdin is not None and child.stdout is not None
    with child:
        for text, value in (("n = 1", "1"), ("n + 1", "2"), ("[n,\n1]", "[")):
            child.stdin.write(f"{text}\n")
            child.stdin.flush()
            assert child.stdout.readline() == f"{value}\n"
        child.stdin.write(".quit\n")
        child.stdin.close()
        assert child.wait(20) == 0


@pytest.mark.slow
def test_a_terminal_that_can_not_move_its_cursor_gives_lines(folder: Path) -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "knotwork", "repl"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder,
        env=environment(folder, TERM="dumb"), close_fds=True,
    ) as child:  # fmt: skip
        os.close(theirs)
        os.write(ours, b"20 + 1\nn = 40 + 2\nquit\n")
        said = b""
        with suppress(OSError):  # the other end is closed
            while part := os.read(ours, 4096):
                said += part
        os.close(ours)
        assert child.wait(20) == 0
    assert b"TERM=dumb" in said and b"\r\n21\r\n" in said and b"\r\n42\r\n" in said and b"\x1b" not in said


@pytest.mark.slow
def test_ctrl_c_ends_a_process_in_order(folder: Path) -> None:
    with silent_server() as (spec, asked):
        child = subprocess.Popen(
            [sys.executable, "-m", "knotwork", "repl", "--llm", spec, "-c", "1", "-c", '(a)=LLM("x")', "-c", "2"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(folder, KNOTWORK_API_KEY="x"), cwd=folder, text=True,
        )  # fmt: skip
        assert asked.wait(30)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=20)
    assert child.returncode == 130 and out == "1\n" and "cancelled" in err and "Traceback" not in err


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_fault(folder: Path) -> None:
    (folder / "many").write_text(f"(xs)=CONST({list(range(14_000))})\n", encoding="utf-8")
    command = f"{sys.executable} -m knotwork repl -f many | head -1"
    done = subprocess.run(
        command, shell=True, capture_output=True, env=environment(folder), cwd=folder, text=True, timeout=60
    )
    assert done.stdout == "[\n" and "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_pipe_is_no_terminal(folder: Path) -> None:
    done = process("repl", home=folder, stdin=b"1 + 1\n")
    assert done.code == 0 and done.out == "2\n"


@pytest.mark.slow
def test_nothing_of_the_prompt_is_loaded_without_one(folder: Path) -> None:
    script = (
        "import sys; from knotwork.runtime.interfaces.cli import main\n"
        "try: main(['repl', '-c', '1'])\nexcept SystemExit: pass\n"
        "print([name for name in sys.modules if name.startswith('prompt_toolkit')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, env=environment(folder), cwd=folder, text=True, timeout=60
    )
    assert done.stdout == "1\n[]\n", done
    assert os.path.isdir(folder)


def test_a_second_ctrl_c_does_not_wait_and_the_session_goes_on(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    at = new_session()

    async def deaf(self: Session, piece: Piece, cancel: asyncio.Event) -> Outcome:
        os.kill(os.getpid(), signal.SIGINT)
        await cancel.wait()
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(30)
        raise AssertionError("it was waited for")

    async def both() -> list[str]:
        turn = Turn(at, Screen(at.settings))
        with monkeypatch.context() as patched:
            patched.setattr(Session, "run", deaf)
            first = await turn.take("1", "<input>", stop=True)
        return [outcome.status for outcome in (*first, *await turn.take("1 + 1", "<input>", stop=True))]

    assert asyncio.run(both()) == ["cancelled", "done"]
    assert "stops without waiting" in capfd.readouterr().err


def test_what_is_added_to_a_file_begins_on_a_line_of_its_own(folder: Path) -> None:
    for name, before, after in (
        ("a.csv", b"value\n1", b"value\n1\n2\n"),
        ("b.csv", b"\xef\xbb\xbfvalue\r\n1\r\n", b"\xef\xbb\xbfvalue\r\n1\r\n2\n"),
        ("c.json", b"1", b"1\n2\n"),
        ("d.csv", b"", b"value\n2\n"),
    ):
        (folder / name).write_bytes(before)
        assert call("repl", "-c", f".output {name} --append", "-c", "2").code == 0
        assert (folder / name).read_bytes() == after


def test_counts_are_numbers_for_a_program() -> None:
    done = call("repl", "nx:les_miserables", "-c", ".schema")
    (weight,) = json.loads(done.out)
    assert weight["count"] == 254 and weight["different"] == 17


def test_a_file_that_could_not_be_run_is_done_in_part(folder: Path) -> None:
    done = call(
        "repl",
        "nx:les_miserables",
        "-c",
        "FIND nodes LIMIT 1 AS h",
        "-c",
        "(n)=EXPR('len(h)', h={(h)})",
        "-c",
        ".save s.LWT",
    )
    assert done.code == 4 and "would refuse" in done.err and "# FIND" in (folder / "s.LWT").read_text()
