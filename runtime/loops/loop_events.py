"""Emits the events at the beginning and the end of a loop."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from attrs import define

from ..events import Events, LoopFinished, LoopStarted


@define
class LoopStatus:
    """The status of a loop that is running; the loop sets it before it ends."""

    status: str = "error"


@contextmanager
def loop_events(
    events: Events | None, loop: str, title: str = "", run: str = "", request: int = 0
) -> Iterator[LoopStatus]:
    """Emit the events at the beginning and the end of a loop. The block sets the status of the yielded object."""
    found, began = LoopStatus(), perf_counter()
    if events:
        events.emit(LoopStarted(loop, title, run, request))
    try:
        yield found
    finally:
        if events:
            events.emit(LoopFinished(loop, found.status, perf_counter() - began, request))
