"""Kills workers of the running test: every worker, each time that something grows."""

import os
import signal
import threading
from collections.abc import Callable

import psutil


def children(of: int | None = None) -> list[psutil.Process]:
    """Return the workers of the process ``of``; by default, those of this process."""
    return [each for each in psutil.Process(of).children() if "adapters.engine.worker" in " ".join(each.cmdline())]


class Killer(threading.Thread):
    """Kills all workers each time that ``asked`` grows."""

    def __init__(self, asked: Callable[[], int]) -> None:
        super().__init__(daemon=True)
        self.asked, self.kills, self.is_over = asked, 0, threading.Event()

    def run(self) -> None:
        while not self.is_over.wait(0.01):
            if self.asked() > self.kills:
                self.kills += 1
                for child in children():
                    os.kill(child.pid, signal.SIGKILL)
