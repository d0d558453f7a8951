"""Ctrl-C while a command runs: the first one cancels it in order, the second one at once, the third one leaves."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from attrs import define

from ..shared.exit import Exit

__all__ = ["Heard", "interrupting"]


@define
class Heard:
    """Whether a signal asked to end the session."""

    ends: bool = False


@contextmanager
def interrupting(cancel: asyncio.Event, note: Callable[[str], None], leave: Callable[[], None]) -> Iterator[Heard]:
    """While the block runs, let Ctrl-C set ``cancel``, then cancel the task that entered it, then call ``leave`` and leave.

    SIGTERM counts as Ctrl-C, and what is yielded says that the session is to end.

    Must be entered in a task of the event loop's thread. Outside the main thread signals go elsewhere, and nothing is done.
    """
    told = Heard()
    loop, task, times = asyncio.get_running_loop(), asyncio.current_task(), 0

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal times
        times += 1
        told.ends = told.ends or number == signal.SIGTERM
        if times > 2:
            leave()
            os._exit(Exit.INTERRUPTED)  # nothing may wait: what doesn't end would hold it up
        loop.call_soon_threadsafe(heard, times)

    def heard(time: int) -> None:
        if time == 1:
            cancel.set()
            note("cancelling; Ctrl-C again does not wait for it")
        elif task is not None:
            task.cancel()
            note("Ctrl-C once more leaves")

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            before[number] = signal.signal(number, handler)
        except ValueError:  # not the main thread
            break
    try:
        yield told
    finally:
        for number, old in before.items():
            signal.signal(number, old)
