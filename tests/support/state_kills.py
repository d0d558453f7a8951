"""Processes that commit and are killed, one after the other. See ``state_child``."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import state_child
from .command import environment


def begun(directory: Path, home: Path, *words: str) -> "subprocess.Popen[bytes]":
    """Start a process that commits."""
    return subprocess.Popen(
        [sys.executable, state_child.__file__, str(directory), *words],
        env=environment(home), cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


class Killer:
    """Starts processes on a directory and kills each of them."""

    def __init__(self, running: "subprocess.Popen[bytes]") -> None:
        self._running = running

    def lines_until_killed(self, commits: int, seconds: float) -> list[str]:
        """Start a process, kill it some time after so many lines (0: while it opens), and return all its whole lines."""
        assert self._running.stdin is not None
        self._running.stdin.write(b"go\n")
        self._running.stdin.flush()
        word, pid = self._line().split()
        assert word == "pid"
        lines = [self._line() for _ in range(commits)]
        time.sleep(seconds)
        os.kill(int(pid), signal.SIGKILL)
        while (line := self._line()) != "dead":
            lines.append(line)
        return lines

    def _line(self) -> str:
        assert self._running.stdout is not None
        line = self._running.stdout.readline().decode()
        assert line.endswith("\n"), "the process ended by itself"
        return line.rstrip("\n")


@contextmanager
def killing(directory: Path, home: Path, kind: str) -> Iterator[Killer]:
    """Give a ``Killer`` of processes that write a "log" or a "store"."""
    with begun(directory, home, kind, "again") as running:
        try:
            yield Killer(running)
        finally:
            running.kill()
