"""The events of an active run: numbered, bounded, and readable by any number of followers, each at its own pace.

Followers share one log, and each follower stores only the number of an event, so a slow follower needs no additional memory. If a follower
needs events that the log has dropped, it gets a "gap" event with the missing numbers; the history contains the iterations and the end.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any

from attrs import define, field, frozen
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from starlette.types import Receive, Scope, Send

from ...events import CallFinished, CallStarted, Event, as_json
from ..http.problems import Problem, json_bytes
from .answer_responses import first_event, last_event
from .history import FollowsEnded, HistoryError, RunHistory, StoredRun, with_final_status

_MOST = 4096
"""Maximum number of stored events of an active run."""
_LARGEST = 8 << 20
"""Maximum total size in bytes of the stored events of an active run."""
_LEFT_OUT = {CallStarted.name: "prompt", CallFinished.name: "text"}
"""Long fields that are omitted: prompts can be derived from the request and the feedback; answers are in ``candidate.written``."""


@frozen
class StreamEvent:
    """An event to send: its number in the run (from 1), its name, and its JSON."""

    id: int
    name: str
    data: bytes


@define(eq=False)
class Stream:
    """The events of one run, for one event loop only.

    Times in events are relative to ``began``, a value of ``time.perf_counter``.
    """

    began: float
    last: int = 0
    """The number of the newest event."""
    closed: bool = False
    _kept: deque[StreamEvent] = field(factory=deque)
    _size: int = 0
    _changed: asyncio.Event = field(factory=asyncio.Event)

    def emit(self, event: Event) -> None:
        """Add an event from the runtime. Use this method as a subscriber."""
        data = as_json(event)
        data.pop(_LEFT_OUT.get(event.name, ""), None)
        self.append(event.name, data | {"at": round(event.at - self.began, 3)})

    def append(self, name: str, data: Mapping[str, Any]) -> None:
        """Add an event and wake the followers."""
        self.last += 1
        event = StreamEvent(self.last, name, json_bytes(data))
        self._kept.append(event)
        self._size += len(event.data)
        while len(self._kept) > 1 and (len(self._kept) > _MOST or self._size > _LARGEST):
            self._forget()
        self._wake()

    def close(self) -> None:
        """Mark the stream as complete and wake the followers."""
        self.closed = True
        self._wake()

    def thin(self) -> None:
        """Drop all events except the last one.

        Called after the end of the run, when only very slow followers still need the dropped events.
        """
        while len(self._kept) > 1:
            self._forget()

    async def after(self, last: int, patience: float) -> AsyncIterator[list[StreamEvent]]:
        """Yield the events after number ``last`` in batches, and an empty batch after each ``patience`` seconds without an event.

        An event "gap" with the missing numbers replaces the events that were dropped. Ends when the stream is closed.
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

    def _since(self, last: int) -> list[StreamEvent]:
        missing = self.last - last
        if missing <= 0:
            return []
        there = min(missing, len(self._kept))
        newest = [self._kept[-number] for number in range(there, 0, -1)]
        if there < missing:
            first, until = last + 1, self.last - there
            newest.insert(0, StreamEvent(until, "gap", json_bytes({"event": "gap", "from": first, "to": until})))
        return newest

    def _forget(self) -> None:
        self._size -= len(self._kept.popleft().data)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


# Server-sent events of a run: from the stream while the run is active, from the history afterwards, or while another server has it active.
# ``id`` is the number of the event in its run, from 1, and never changes. After a lost connection, a client sends the last id that it
# received in ``Last-Event-ID`` and gets the later events.

HEARTBEAT = 15.0
"""Seconds without an event after which a comment is sent, because proxies close idle connections."""

_RETRY = 1.0
"""Seconds to wait before the history of a followed run is read again if it could not be read, or has not changed."""

_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}  # makes a proxy forward each event at once
_CHUNK = 1 << 16


class EventResponse(EventSourceResponse):
    """A response that streams events. When the client disconnects, the generator of the events is closed at once."""

    def __init__(self, chunks: AsyncGenerator[bytes], location: str = "") -> None:
        super().__init__(chunks, headers=_HEADERS | ({"Location": location} if location else {}))
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._chunks.aclose()


async def live_chunks(stream: Stream, last: int = 0, heartbeat: float = HEARTBEAT) -> AsyncGenerator[bytes]:
    """Yield the events after number ``last`` in wire format, until the run ends."""
    async for batch in stream.after(last, heartbeat):
        if not batch:
            yield KEEPALIVE_COMMENT
        for chunk in _chunks(batch):
            yield chunk


async def stored_chunks(run: StoredRun, last: int = 0) -> AsyncGenerator[bytes]:
    """Yield the events after number ``last`` of a finished run, in wire format, from the history."""
    for chunk in _chunks(_events(run, last)):
        yield chunk


async def followed_chunks(
    history: RunHistory, run: StoredRun, last: int = 0, heartbeat: float = HEARTBEAT
) -> AsyncGenerator[bytes]:
    """Yield the events after number ``last`` of a run that another server has active, in wire format, until the run ends.

    The history contains the beginning, the iterations and the end of the run, under the numbers that the other server sends. While
    the history can't be read, only comments are sent. If the run is deleted, the last event is "problem". If this server stops, the
    stream ends without a last event, so that the client follows the run at another server.
    """
    row = run.row
    while True:
        events = _events(run, last)
        for chunk in _chunks(events):
            yield chunk
        if not run.row.is_elsewhere:
            return
        last = events[-1].id if events else last
        known = (run.row.status, run.row.last_event)
        try:
            while not await history.changed(row.id, known, heartbeat):
                yield KEEPALIVE_COMMENT
        except FollowsEnded:
            return
        found = await _found(history, run)
        if found is None:
            gone = Problem("no-such-run", 404, "Unknown run", "it was deleted", run=row.id)
            for chunk in _chunks([StreamEvent(last + 1, "problem", json_bytes(gone.as_json()))]):
                yield chunk
            return
        if found.row == run.row:
            yield KEEPALIVE_COMMENT
            await asyncio.sleep(_RETRY)
        run = found


async def _found(history: RunHistory, run: StoredRun) -> StoredRun | None:
    """Return the current state of ``run``, or ``run`` itself if the history can't be read now; None if the run was deleted."""
    try:
        found = await history.find(run.row.owner, run.row.id)
    except HistoryError:
        return run
    return None if found is None else with_final_status(found)


def _events(run: StoredRun, last: int) -> list[StreamEvent]:
    """Return the events after number ``last`` for the beginning, the iterations and the end of the run.

    An interrupted run may have sent more events than were saved. Its end event therefore gets a number above ``last``, the
    number of the last event that the client has.
    """
    row = run.row
    events = [StreamEvent(1, "run", json_bytes(first_event(row)))]
    best: float | None = None
    for part in run.parts:
        evaluation, error = part.body["evaluation"], part.body["error"]
        score = None if evaluation is None else evaluation["score"]
        is_best = score is not None and (best is None or score > best)
        best = score if is_best else best
        finished = {
            "event": "iteration.finished", "step": "", "iteration": part.number, "score": score,
            "accepted": score is not None and score >= row.score_threshold, "best": is_best,
            "seconds": part.body["seconds"], "error": "" if error is None else error["message"], "result": part.body,
        }  # fmt: skip
        events.append(StreamEvent(part.event, "iteration.finished", json_bytes(finished)))
    if not row.is_elsewhere:
        name, end = last_event(run)
        number = max(row.last_event, events[-1].id + 1)
        if row.status == "interrupted":
            number = max(number, last + 1)
        events.append(StreamEvent(number, name, json_bytes(end.as_json() if isinstance(end, Problem) else end)))
    return [event for event in events if event.id > last]


def _chunks(batch: Sequence[StreamEvent]) -> list[bytes]:
    """Return the events in wire format; small events are combined into one chunk."""
    chunks, chunk = [], b""
    for event in batch:
        # A Unicode line separator does not end a line of an event, but many clients split the line there.
        data = event.data.decode().replace("\x85", r"\u0085").replace("\u2028", r"\u2028").replace("\u2029", r"\u2029")
        chunk += format_sse_event(data_str=data, event=event.name, id=str(event.id))
        if len(chunk) >= _CHUNK:
            chunks.append(chunk)
            chunk = b""
    return [*chunks, chunk] if chunk else chunks
