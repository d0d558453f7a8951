"""Handling of Ctrl-C during work: each Ctrl-C starts the next stage. A handler that includes SIGTERM treats SIGTERM like Ctrl-C.

Signal handlers run between any two steps of the main thread. To avoid losing data, the handlers raise nothing and do almost
nothing. The actual work happens in the event loop, or in the waiting code that reads the count.
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
    """Count the signals with these ``numbers``, and call ``on_signal`` in the handler of each signal. Yield the count.

    The signals interrupt nothing. Outside the main thread, no signals are counted.
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
    """At each signal, call the next of ``stages`` in the event loop. After the last stage, further signals call ``last`` directly.

    ``last`` is called in the signal handler. ``last`` must not wait for the event loop, because the loop may hang. Enter this context in
    the event loop's thread.
    """
    loop, is_over = asyncio.get_running_loop(), False

    def on_signal(count: SignalCount) -> None:
        if count.times > len(stages):
            last()
        else:
            loop.call_soon_threadsafe(run_stage, stages[count.times - 1])

    def run_stage(stage: Callable[[], None]) -> None:
        if not is_over:  # otherwise the stage would affect the code after the block
            stage()

    with count_signals(on_signal) as count:
        try:
            yield count
        finally:
            is_over = True
