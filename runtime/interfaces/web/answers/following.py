"""Server-sent events of a run: live ones as they come, those of a run that is over from the history.

``id`` is the event's number in its run, from 1, the same whenever it is read: a client that lost its connection sends the last one it
has in ``Last-Event-ID`` and gets what follows.
"""

from collections.abc import AsyncGenerator, Sequence

from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from starlette.types import Receive, Scope, Send

from ...http.problems import Problem
from .rows import Kept, written
from .shapes import beginning, ending
from .stream import Stream, Told

__all__ = ["HEARTBEAT", "Following", "followed", "replayed"]

HEARTBEAT = 15.0
"""Seconds without an event after which a comment is sent: proxies end connections that say nothing."""

_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}  # a proxy passes every event on at once
_CHUNK = 1 << 16


class Following(EventSourceResponse):
    """The response of a stream of events. It lets go of them as soon as whoever reads has gone."""

    def __init__(self, chunks: AsyncGenerator[bytes], location: str = "") -> None:
        super().__init__(chunks, headers=_HEADERS | ({"Location": location} if location else {}))
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._chunks.aclose()


async def followed(stream: Stream, last: int = 0, heartbeat: float = HEARTBEAT) -> AsyncGenerator[bytes]:
    """Yield the run's events after number ``last`` in the wire's format until the run is over."""
    async for batch in stream.after(last, heartbeat):
        if not batch:
            yield KEEPALIVE_COMMENT
        for chunk in _chunks(batch):
            yield chunk


async def replayed(kept: Kept, last: int = 0) -> AsyncGenerator[bytes]:
    """Yield the events that the history has of a run that is over, after number ``last``."""
    for chunk in _chunks([told for told in _events(kept, last) if told.id > last]):
        yield chunk


def _events(kept: Kept, last: int) -> list[Told]:
    """Return beginning, iterations and end. A run that was interrupted may have told more than was kept: its end comes after ``last``."""
    row = kept.row
    told = [Told(1, "run", written(beginning(row)))]
    best: float | None = None
    for part in kept.parts:
        evaluation, error = part.body["evaluation"], part.body["error"]
        score = None if evaluation is None else evaluation["score"]
        is_best = score is not None and (best is None or score > best)
        best = score if is_best else best
        finished = {
            "event": "iteration.finished", "step": "", "iteration": part.number, "score": score,
            "accepted": score is not None and score >= row.score_threshold, "best": is_best,
            "seconds": part.body["seconds"], "error": "" if error is None else error["message"], "result": part.body,
        }  # fmt: skip
        told.append(Told(part.event, "iteration.finished", written(finished)))
    name, end = ending(kept)
    number = max(row.last_event, told[-1].id + 1)
    if row.status == "interrupted":
        number = max(number, last + 1)
    told.append(Told(number, name, written(end.as_json() if isinstance(end, Problem) else end)))
    return told


def _chunks(batch: Sequence[Told]) -> list[bytes]:
    """Return the events as the wire has them, small ones together."""
    chunks, chunk = [], b""
    for told in batch:
        chunk += format_sse_event(data_str=_on_one_line(told.data.decode()), event=told.name, id=str(told.id))
        if len(chunk) >= _CHUNK:
            chunks.append(chunk)
            chunk = b""
    return [*chunks, chunk] if chunk else chunks


def _on_one_line(data: str) -> str:
    """Escape what ends no line of an event but a line of Unicode: many a client splits there all the same."""
    return data.replace("\x85", r"\u0085").replace("\u2028", r"\u2028").replace("\u2029", r"\u2029")
