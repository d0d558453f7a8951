"""A model server in a process of its own, and what it saw: for tests that kill, interrupt or count."""

import contextlib
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .folders import TESTS


@dataclass(frozen=True)
class Served:
    """A running server: its model's spec, and the log of what came in."""

    spec: str
    log: Path

    def _lines(self) -> list[dict[str, object]]:
        whole = [line for line in self.log.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
        return [json.loads(line) for line in whole]

    @property
    def asked(self) -> Counter[str]:
        """How often each prompt was asked."""
        return Counter(str(line["asked"]) for line in self._lines() if "asked" in line)

    @property
    def closed(self) -> int:
        """How many connections have ended."""
        return sum("closed" in line for line in self._lines())

    def reached(self, requests: int) -> Callable[[], bool]:
        """Return a condition: that so many requests have come in."""
        return lambda: sum(self.asked.values()) >= requests


@contextlib.contextmanager
def served(folder: Path, *options: str, module: str = "support.model_server") -> Iterator[Served]:
    """Start a server that logs into ``folder``; the options are those of its command line."""
    log = folder / "asked.jsonl"
    log.touch()
    server = subprocess.Popen(
        [sys.executable, "-m", module, "--log", log, *options],
        cwd=TESTS,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        yield Served(f"{server.stdout.readline().strip()}#m", log)
    finally:
        server.kill()
        server.communicate()


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until ``condition`` holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)
