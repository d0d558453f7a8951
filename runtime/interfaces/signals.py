"""Ctrl-C during work: each one goes a stage further. SIGTERM counts as Ctrl-C if it is handled.

Handlers run between any two steps of the main thread. To avoid losing data they raise nothing and do almost nothing: the actual
work happens in the event loop, or in the waiting code that reads the count.
"""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from attrs import define

_BOTH = (signal.SIGINT, signal.SIGTERM)


@define
class Heard:
    """The number of signals received, and whether one of them requested the end of the process."""

    times: int = 0
    ends: bool = False


@contextmanager
def hearing(hear: Callable[[Heard], None], numbers: tuple[signal.Signals, ...] = _BOTH) -> Iterator[Heard]:
    """Yield a count of the signals with these ``numbers`` and call ``hear`` in the handler. Nothing is interrupted.

    Outside the main thread it does nothing.
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
    """Let each signal call the next of ``stages`` in the event loop; one more calls ``last`` in the handler.

    ``last`` must not wait, because a hanging loop would block it. Must be entered in the event loop's thread.
    """
    loop, is_over = asyncio.get_running_loop(), False

    def hear(told: Heard) -> None:
        if told.times > len(stages):
            last()
        else:
            loop.call_soon_threadsafe(staged, stages[told.times - 1])

    def staged(stage: Callable[[], None]) -> None:
        if not is_over:  # otherwise it would affect the code after the block
            stage()

    with hearing(hear) as told:
        try:
            yield told
        finally:
            is_over = True
