"""Ctrl-C while something runs: each one goes a stage further. SIGTERM counts as Ctrl-C, where it is heard.

Handlers run between any two steps of the main thread. So where there is anything to be lost they raise nothing and do next to nothing:
what they are for happens in the event loop, or where whoever waits looks at the count.
"""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from attrs import define

__all__ = ["Heard", "hearing", "interrupting"]

_BOTH = (signal.SIGINT, signal.SIGTERM)


@define
class Heard:
    """How many signals came, and whether one of them asked to end the process."""

    times: int = 0
    ends: bool = False


@contextmanager
def hearing(hear: Callable[[Heard], None], numbers: tuple[signal.Signals, ...] = _BOTH) -> Iterator[Heard]:
    """While the block runs, count the signals with these ``numbers`` and call ``hear``, in the handler. Nothing is interrupted.

    Outside the main thread signals go elsewhere, and nothing is done.
    """
    told = Heard()

    def handler(number: int, frame: FrameType | None) -> None:
        told.times += 1
        told.ends = told.ends or number == signal.SIGTERM
        hear(told)

    before = {}
    for number in numbers:
        try:
            before[number] = signal.signal(number, handler)
        except ValueError:  # not the main thread
            break
    try:
        yield told
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def interrupting(*stages: Callable[[], None], last: Callable[[], None]) -> Iterator[Heard]:
    """While the block runs, let each signal call the next of ``stages``, in the event loop; one more calls ``last`` in the handler.

    ``last`` waits for nothing, as a loop that hangs would hold it up. Must be entered in the event loop's thread.
    """
    loop, is_over = asyncio.get_running_loop(), False

    def hear(told: Heard) -> None:
        if told.times > len(stages):
            last()
        else:
            loop.call_soon_threadsafe(staged, stages[told.times - 1])

    def staged(stage: Callable[[], None]) -> None:
        if not is_over:  # else it would hit what comes behind the block
            stage()

    with hearing(hear) as told:
        try:
            yield told
        finally:
            is_over = True
