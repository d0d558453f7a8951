"""``knotwork answer`` as a process: signals and a terminal."""

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from knotwork.runtime.api.figures import Calls
from knotwork.runtime.events import AnswerStarted, CandidateWritten, IterationFinished, IterationStarted, Warned
from knotwork.runtime.interfaces.cli.answer_view import Screen
from rich.console import Console
from support.answer_server import draft
from support.command import environment, silent_server
from support.served import Served, served, until

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and terminals of POSIX")
CRITERIA = ("--criteria", "Names the moon")


@pytest.fixture
def server(folder: Path) -> Iterator[Served]:
    with served(folder, module="support.answer_server") as running:
        yield running


@contextmanager
def started(folder: Path, *args: str, **streams: Any) -> "Iterator[subprocess.Popen[bytes]]":
    """Start ``knotwork answer``; whatever happens in the test, it does not outlive it."""
    command = [sys.executable, "-m", "knotwork", "answer", *args]
    with subprocess.Popen(
        command, env=environment(folder, TERM="xterm"), cwd=folder, stdin=subprocess.DEVNULL, **streams
    ) as running:
        try:
            yield running
        finally:
            running.kill()


@pytest.mark.slow
@posix
def test_ctrl_c_prints_the_best_so_far(folder: Path, server: Served) -> None:
    instruct = "Explain tides [[scores 0.4]] [[delay 0 30]]"
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(folder, instruct, *CRITERIA, "--llm", server.spec, **pipes) as running:
        until(server.reached(3))
        sent = time.perf_counter()
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=20)
        assert time.perf_counter() - sent < 10
    told = err.decode()
    assert (running.returncode, out.decode()) == (130, draft(1) + "\n")
    assert "stopping; Ctrl-C again exits at once" in told
    assert told.splitlines()[-1] == "the run was cancelled; the best answer scores 0.40"
    assert "Traceback" not in told


@pytest.mark.slow
@posix
def test_ctrl_c_before_any_answer(folder: Path) -> None:
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with (
        silent_server() as (spec, asked),
        started(folder, "Explain tides", *CRITERIA, "--llm", spec, **pipes) as running,
    ):
        while not asked.wait(0.05):
            assert running.poll() is None, "the command ended before it asked the model"
        running.send_signal(signal.SIGTERM)
        out, err = running.communicate(timeout=20)
    assert (running.returncode, out) == (130, b"")
    *_, failed, reason = err.decode().splitlines()
    assert failed.startswith("failed: no iteration finished · 1 call · ")
    assert reason == "the run was cancelled before an answer was evaluated"


@pytest.mark.slow
@posix
def test_a_terminal_gets_the_live_display_and_the_answer_below_it(folder: Path, server: Served) -> None:
    import pty

    parent, child = pty.openpty()
    instruct = "Explain tides [[scores 0.4 0.9]] [[delay 0.2]]"
    with started(folder, instruct, *CRITERIA, "--llm", server.spec, stdout=child, stderr=child) as running:
        os.close(child)
        seen = b""
        while True:
            try:
                part = os.read(parent, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
        assert running.wait(20) == 0
    os.close(parent)
    told = seen.decode()
    assert "iteration 1 of 3" in told
    assert "iteration 2 of 3" in told
    assert "judging" in told
    assert "of 0" not in told
    assert (
        told.index("best so far") < told.index("accepted") < told.rindex("This is draft 2.") < told.rindex("accepted")
    )
    assert told.count("\x1b[?25l") == told.count("\x1b[?25h") == 1  # the cursor is hidden, and there again


def test_the_live_display_says_what_is_under_way() -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=100, color_system=None)
    screen = Screen(Calls(), console)
    try:
        screen(AnswerStarted("", 5, 0.8, 3))
        screen(IterationStarted("", 2))
        screen(CandidateWritten("", 2, 0, "x"))
        console.print(screen._drawn())
        screen(Warned("", "the cache can't be used"))
        told = {
            "evaluation": {"evaluation_reasoning": "a\x1b[2Jb", "improvement_suggestions": []},
            "usage": {},
            "chosen": 0,
        }
        screen(IterationFinished("", 2, 0.5, False, True, 1.0, "", told))
    finally:
        screen.stop()
    text = shown.getvalue()
    assert "iteration 2 of 5" in text
    assert "1 of 3 answers written" in text
    assert "warning: the cache can't be used" in text
    assert "\x1b[2J" not in text
    assert "a\\x1b[2Jb" in text
