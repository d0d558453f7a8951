"""CPU time as a guard against work that grows faster than its input."""

import gc
import os
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["pace", "within"]

T = TypeVar("T")
_QUIET = 0.010
"""Seconds of CPU that ``pace`` measures on the machine of docs/benchmarks.md while it does nothing else."""


def pace() -> float:
    """Return how many times slower than that machine this process runs now, at least 1, and at least 2 in a run with several workers.

    A second of CPU time does half the work while the other thread of the same core is busy. With several workers it is busy most of
    the time, so a quiet moment in which this function measures says little.
    """
    taken = []
    for _ in range(3):
        began = time.process_time()
        length = 0
        for number in range(100_000):
            length += len(str(number))
        taken.append(time.process_time() - began)
    least = 1.0 if os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1") == "1" else 2.0
    return max(least, max(taken) / _QUIET)


def within(seconds: float, work: Callable[[], T], *, tries: int = 3) -> T:
    """Return what ``work`` returns, which takes at most ``seconds`` of this process's CPU time at the pace of a quiet machine.

    It is done again where it takes longer, because a garbage collection or a busy machine is so once; too much work is so each time.
    The collector is off meanwhile: a full collection in a process of many tests takes a second by itself.
    """
    taken: list[float] = []
    for _ in range(tries):
        was_on = gc.isenabled()
        gc.disable()
        began = time.process_time()
        try:
            result = work()
        finally:
            taken.append(time.process_time() - began)
            if was_on:
                gc.enable()
        if taken[-1] <= seconds or taken[-1] <= seconds * pace():
            return result
    raise AssertionError(f"{min(taken):.2f} s of CPU time at best, {seconds} allowed")
