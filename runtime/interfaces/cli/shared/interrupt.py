"""Ctrl-C in a command: the first one ends the run in order, the second one leaves at once. SIGTERM counts as Ctrl-C."""

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractContextManager

from ...signals import Heard, interrupting
from .output import Exit

__all__ = ["cancelling", "leaving"]


def cancelling(
    cancel: asyncio.Event, note: Callable[[str], None], stop: Callable[[], None] | None = None
) -> AbstractContextManager[Heard]:
    """While the block runs, let a signal set ``cancel`` and say so; another calls ``stop``, which takes displays away, and leaves.

    Must be entered in the event loop's thread.
    """

    def first() -> None:
        note("stopping; Ctrl-C again leaves at once")
        cancel.set()

    return interrupting(first, last=leaving(stop))


def leaving(stop: Callable[[], None] | None) -> Callable[[], None]:
    """Return what calls ``stop``, where there is anything to be stopped, and ends the process."""

    def leave() -> None:
        if stop is not None:
            stop()
        os._exit(Exit.INTERRUPTED)  # nothing may wait: an exit handler could hang on what does not end

    return leave
