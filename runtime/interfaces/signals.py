"""Ctrl-C during work: each one goes a stage further. SIGTERM counts as Ctrl-C where it is handled.

Signal handlers run between any two steps of the main thread. To avoid losing data they raise nothing and do almost nothing: the
actual work happens in the event loop, or in the waiting code that reads the count.
"""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from attrs import define


@define
class SignalCount:
    """The number of signals received, and whether one of them requested the end of the process."""

    times: int = 0
    ends: bool = False


@contextmanager
def count_signals(
    on_signal: Callable[[SignalCount], None] = lambda count: None,
    numbers: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM),
) -> Iterator[SignalCount]:
    """Yield a count of the signals with these ``numbers`` and call ``on_signal`` in the handler. Nothing is interrupted.

    Outside the main thread this does nothing.
    """
    count = SignalCount()

    def handler(number: int, frame: FrameType | None) -> None:
        count.times += 1
        count.ends = count.ends or number == signal.SIGTERM
        on_signal(count)

    earlier = {}
    for number in numbers:
        try:
            earlier[number] = signal.signal(number, handler)
        except ValueError:  # not the main thread
            break
    try:
        yield count
    finally:
        for number, old in earlier.items():
            signal.signal(number, old)


@contextmanager
def staged_interrupts(*stages: Callable[[], None], last: Callable[[], None]) -> Iterator[SignalCount]:
    """Let each signal call the next of ``stages`` in the event loop; one more calls ``last`` in the handler.

    ``last`` must not wait, because a hanging loop would block it. Enter this context in the event loop's thread.
    """
    loop, is_over = asyncio.get_running_loop(), False

    def on_signal(count: SignalCount) -> None:
        if count.times > len(stages):
            last()
        else:
            loop.call_soon_threadsafe(run_stage, stages[count.times - 1])

    def run_stage(stage: Callable[[], None]) -> None:
        if not is_over:  # otherwise it would affect the code after the block
            stage()

    with count_signals(on_signal) as count:
        try:
            yield count
        finally:
            is_over = True
