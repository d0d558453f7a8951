"""A run's events while it goes: numbered, bounded, and followed by as many as like, each at a pace of its own.

Followers share one log and hold only a number in it, so a slow one costs no memory; where it falls behind the log's bounds it is
told how many it missed, and the history has what counts.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any

from attrs import define, field, frozen

from ....events import CallFinished, CallStarted, Event, as_json
from .rows import written

__all__ = ["Stream", "Told"]

_MOST = 4096
"""Events that are kept of a run under way."""
_LARGEST = 8 << 20
"""Bytes of them."""
_LEFT_OUT = {CallStarted.name: "prompt", CallFinished.name: "text"}
"""Long, and told by other events: what is asked is in the request and the feedback, answers are in candidate.written."""


@frozen
class Told:
    """An event as it is sent: its number in the run from 1, its name, its JSON."""

    id: int
    name: str
    data: bytes


@define(eq=False)
class Stream:
    """The events of one run. ``began``: when it began, by ``time.perf_counter``; events tell the seconds since. One event loop."""

    began: float
    last: int = 0
    """The number of the newest event."""
    closed: bool = False
    _kept: deque[Told] = field(factory=deque)
    _size: int = 0
    _changed: asyncio.Event = field(factory=asyncio.Event)

    def emit(self, event: Event) -> None:
        """Take an event of the runtime; made to be a subscriber."""
        told = as_json(event)
        told.pop(_LEFT_OUT.get(event.name, ""), None)
        told["at"] = round(event.at - self.began, 3)
        self.append(event.name, told)

    def append(self, name: str, data: Mapping[str, Any]) -> None:
        """Add an event, and wake who follows."""
        self.last += 1
        self._keep(Told(self.last, name, written(data)))

    def close(self) -> None:
        """Add no more."""
        self.closed = True
        self._wake()

    def thin(self) -> None:
        """Forget all but the last event: the run is over, and who has not read it by now is too slow."""
        while len(self._kept) > 1:
            self._forget()

    async def after(self, last: int, patience: float) -> AsyncIterator[list[Told]]:
        """Yield the events after number ``last`` in batches, an empty one after each ``patience`` seconds without any.

        What is not kept any more is an event "gap" that says which numbers are missing. Ends when the stream is closed.
        """
        while True:
            batch = self._since(last)
            if batch:
                last = batch[-1].id
                yield batch
            elif self.closed:
                return
            else:
                changed = self._changed
                try:
                    async with asyncio.timeout(patience):
                        await changed.wait()
                except TimeoutError:
                    yield []

    def _since(self, last: int) -> list[Told]:
        missing = self.last - last
        if missing <= 0:
            return []
        there = min(missing, len(self._kept))
        newest = [self._kept[-number] for number in range(there, 0, -1)]
        if there < missing:
            first, until = last + 1, self.last - there
            newest.insert(0, Told(until, "gap", written({"event": "gap", "from": first, "to": until})))
        return newest

    def _keep(self, told: Told) -> None:
        self._kept.append(told)
        self._size += len(told.data)
        while len(self._kept) > 1 and (len(self._kept) > _MOST or self._size > _LARGEST):
            self._forget()
        self._wake()

    def _forget(self) -> None:
        self._size -= len(self._kept.popleft().data)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
