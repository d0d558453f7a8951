"""Ctrl-C in the moments between two commands, as a terminal sends it: the session and its values outlast each of them."""

import os
import pty
import select
import sys
import time
from pathlib import Path

import pytest
from support.command import environment

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")]


class Typed:
    """A prompt on a pty, which is typed at to the millisecond. Enter it; at the end it is gone."""

    def __init__(self, folder: Path) -> None:
        env = environment(folder, TERM="xterm-256color")
        words = [sys.executable, "-m", "knotwork", "repl", "--no-rc", "--llm", "http://127.0.0.1:1/v1#none"]
        self.pid, self._fd = pty.fork()
        if not self.pid:
            os.chdir(folder)
            os.execve(words[0], words, env)
        self._code: int | None = None

    def __enter__(self) -> "Typed":
        return self

    def __exit__(self, *_: object) -> None:
        if self.code is None:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
        os.close(self._fd)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def seen(self, seconds: float, until: str = "\0") -> str:
        """Return what is written until ``until`` comes, or the time is over."""
        found, end = b"", time.monotonic() + seconds
        while until.encode() not in found and (left := end - time.monotonic()) > 0:
            if select.select([self._fd], [], [], left)[0]:
                try:
                    found += os.read(self._fd, 65536)
                except OSError:  # it has left
                    break
        return found.decode(errors="replace")

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code


READY = "\x1b[?2004h"


def test_no_ctrl_c_behind_a_command_ends_the_session(folder: Path) -> None:
    with Typed(folder) as typed:
        assert READY in typed.seen(20, READY)
        typed.type("kept = 40 + 2\r")
        typed.seen(5, READY)
        for number in range(60):
            typed.type(("1+1\r", ".timer off\r", "lenn(3)\r")[number % 3])
            time.sleep(number % 30 / 2_000)  # 0 to 15 ms: from before it runs to the next prompt
            typed.type("\x03")
            typed.seen(0.1)
            assert typed.code is None, number
        typed.seen(0.5)
        typed.type("\x15kept * 10\r")
        assert "420" in typed.seen(10, "420")


def test_a_ctrl_c_at_the_start_leaves_before_anything_is_drawn_or_not_at_all(folder: Path) -> None:
    for number in range(12):
        with Typed(folder) as typed:
            screen = typed.seen(0.2 + number * 0.08)
            typed.type("\x03")
            screen += typed.seen(10, READY)
            if READY in screen:
                typed.type("\x1540+2\r")
                assert "42" in typed.seen(10, "\r\n42")
                continue
            until = time.monotonic() + 10
            while typed.code is None and time.monotonic() < until:
                time.sleep(0.02)
            assert typed.code in (130, -2) and ".help" not in screen and "Traceback" not in screen, screen


def test_sigterm_at_the_prompt_ends_it_in_order(folder: Path) -> None:
    with Typed(folder) as typed:
        assert READY in typed.seen(20, READY)
        os.kill(typed.pid, 15)
        until = time.monotonic() + 10
        while typed.code is None and time.monotonic() < until:
            typed.seen(0.05)
        assert typed.code == 130
