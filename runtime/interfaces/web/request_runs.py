"""A run that belongs to one request: of a script, or of an evaluation. It ends if the client disconnects."""

import asyncio
from collections.abc import AsyncGenerator
from time import perf_counter
from typing import Any

from attrs import define, field
from fastapi import Request, Response

from ...events import CallFinished, Event
from ..http.access import RunSlot
from ..http.middleware import internal_error
from ..http.problems import OUT_OF_TIME, SHUTTING_DOWN, Problem, json_bytes
from .event_stream import EventResponse, Stream, live_chunks

_LINGER = 5.0
"""Number of seconds in which a cancelled run can end by itself. After that, its task is cancelled."""


@define(eq=False)
class RequestRun:
    """A run of one request. After the end, ``outcome`` is the response, or the problem that explains why the run has no response.

    ``seconds`` is the time limit. The slot ``place`` is released at the end. ``cached`` counts the answers from the cache.
    """

    place: RunSlot
    seconds: float
    stream: Stream = field(factory=lambda: Stream(perf_counter()), init=False)
    outcome: dict[str, Any] | Problem | None = field(default=None, init=False)
    cached: int = field(default=0, init=False)
    is_late: bool = field(default=False, init=False)
    _task: "asyncio.Task[None]" = field(init=False)

    async def work(self) -> dict[str, Any] | Problem:
        """Do the work, and return the response or the problem."""
        raise NotImplementedError

    def begin(self) -> None:
        """Start the run."""
        self._task = asyncio.create_task(self._go(), name="run of a request")

    async def result(self) -> dict[str, Any]:
        """Wait for the end and return the response. Raises ``Problem`` if there is no response."""
        await asyncio.wait([self._task])
        if isinstance(self.outcome, Problem):
            raise self.outcome
        assert self.outcome is not None  # noqa: S101 - every way out of the task sets it
        return self.outcome

    async def end(self) -> None:
        """Cancel the run, because the client has disconnected, and wait for its end; a finished run is unchanged."""
        if not self._task.done():
            self.place.cancel.set()
            await asyncio.wait([self._task], timeout=_LINGER)
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _go(self) -> None:
        timer = asyncio.get_running_loop().call_later(self.seconds, self._time_out)
        try:
            self.outcome = await self.work()
        except asyncio.CancelledError:
            self.outcome = self.cancelled()
            raise
        except Problem as problem:
            self.outcome = problem
        except Exception as error:  # an internal error; the stream also needs an end in this case
            self.outcome = internal_error(error)
        finally:
            timer.cancel()
            self.place.leave()
            last = self.outcome
            if isinstance(last, Problem):
                self.stream.append("problem", last.as_json())
            elif last is not None:
                self.stream.append("result", last)
            self.stream.close()

    def _time_out(self) -> None:
        self.is_late = True
        self.place.cancel.set()

    def emit(self, event: Event) -> None:
        """Send an event of the run to the client, if it follows the run."""
        self.stream.emit(event)
        if isinstance(event, CallFinished):
            self.cached += event.cached

    def cancelled(self, **members: Any) -> Problem:
        """Return the problem for a cancelled run; the cause is the time limit or the shutdown of the server."""
        if self.is_late:
            return Problem(*OUT_OF_TIME, f"the limit is {self.seconds:g} seconds per run", **members)
        return Problem(*SHUTTING_DOWN, "the run was cancelled", {"Retry-After": "5"}, **members)


async def respond(run: RequestRun, request: Request) -> Response:
    """Wait for the end of the run, and return its response. The run ends if the client disconnects. Raises ``Problem``."""
    disconnected = asyncio.create_task(_disconnected(request))
    result = asyncio.create_task(run.result())
    try:
        await asyncio.wait([disconnected, result], return_when=asyncio.FIRST_COMPLETED)
        if not result.done():
            await run.end()
        return Response(json_bytes(await result), media_type="application/json")
    finally:
        disconnected.cancel()
        await run.end()


def respond_with_events(run: RequestRun) -> Response:
    """Return the stream of the run's events. The run ends if the client disconnects."""

    async def chunks() -> AsyncGenerator[bytes, None]:
        try:
            async for chunk in live_chunks(run.stream):
                yield chunk
        finally:
            await run.end()

    return EventResponse(chunks())


async def _disconnected(request: Request) -> None:
    """Return when the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
