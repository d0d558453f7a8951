"""Ctrl-C: the first one ends the run in order, the second one at once. SIGTERM counts as Ctrl-C."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from ..shared.exit import Exit

__all__ = ["cancelling"]


@contextmanager
def cancelling(cancel: asyncio.Event, first: Callable[[], None], last: Callable[[], None]) -> Iterator[None]:
    """While the block runs, let a signal set ``cancel`` after calling ``first``; another calls ``last`` and leaves.

    Must be entered in the event loop's thread. Outside the main thread signals go elsewhere, and nothing is done.
    """
    loop = asyncio.get_running_loop()

    def interrupted() -> None:
        if cancel.is_set():
            last()
            os._exit(Exit.INTERRUPTED)  # nothing may wait: an exit handler could hang on what does not end
        first()
        cancel.set()

    def handler(number: int, frame: FrameType | None) -> None:
        if cancel.is_set():
            interrupted()
        loop.call_soon_threadsafe(interrupted)

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            before[number] = signal.signal(number, handler)
        except ValueError:  # not the main thread
            break
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
