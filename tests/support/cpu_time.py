"""CPU time as a guard against work that grows faster than its input."""

import gc
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["within"]

T = TypeVar("T")


def within(seconds: float, work: Callable[[], T], *, tries: int = 3) -> T:
    """Return what ``work`` returns, which takes at most ``seconds`` of this process's CPU time.

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
        if taken[-1] <= seconds:
            return result
    raise AssertionError(f"{min(taken):.2f} s of CPU time at best, {seconds} allowed")
