"""A run under way: its task, its events, and its history, which has each iteration before anybody hears of it."""

import asyncio
import time
import traceback
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field

from ....answers.answer_results import Answered, AnswerRequest, Iteration
from ....answers.service import answer
from ....answers.templates import Template
from ....events import Events
from ....models.caller import Caller
from ....results import Trace
from ...http.faults import LOG
from ...http.problems import Problem
from .history import History, HistoryError
from .rows import Kept, Part, Row
from .shapes import advanced, beginning, ending, finished
from .stream import Stream

if TYPE_CHECKING:
    from ...http.gate import Place
    from ..models import ForRun
    from .schemas import GenerateAnswerRequest

__all__ = ["LiveRun"]

_CALLS = 16
"""Calls of one run in flight at once."""
_LINGER = 30.0
"""Seconds after its end that a run's events wait for who is slow to read them."""


@define(eq=False)
class LiveRun:
    """A run from its beginning to its end. ``seconds``: the most time that it gets.

    After the end ``outcome`` is its response, or the problem that says why there is none.
    """

    id: str
    _place: "Place"
    _request: "GenerateAnswerRequest"
    _wanted: AnswerRequest
    _clients: "ForRun"
    _history: History
    _templates: Mapping[str, Template]
    _seconds: float
    instead: str = ""
    """Why another model answers than the request names."""
    stream: Stream = field(init=False)
    row: Row = field(init=False)
    task: "asyncio.Task[None]" = field(init=False)
    outcome: dict[str, Any] | Problem | None = field(default=None, init=False)
    _begun: asyncio.Event = field(factory=asyncio.Event, init=False)
    _parts: list[Part] = field(factory=list, init=False)
    _metadata: dict[str, Any] = field(factory=dict, init=False)
    _lost: str = field(default="", init=False)
    """Why the history has not all of the run."""

    def __attrs_post_init__(self) -> None:
        self.stream = Stream(time.perf_counter())
        self.row = Row(
            self.id, self._place.who.id, time.time(), "running", "", self._clients.name, self._wanted.instruct,
            self._wanted.iter_max, float(self._wanted.score_threshold),
        )  # fmt: skip

    @property
    def kept(self) -> Kept:
        """The run as far as it is."""
        return Kept(self.row, self._request.model_dump(), self._metadata, tuple(self._parts))

    def begin(self, ended: Callable[["LiveRun"], None]) -> None:
        """Start the work; ``ended`` hears when nothing of it is under way any more."""
        self.task = asyncio.create_task(self._go(), name=f"run {self.id}")

        def over(task: "asyncio.Task[None]") -> None:
            self._place.leave()
            self._begun.set()
            self.stream.close()
            asyncio.get_running_loop().call_later(_LINGER, _thin, weakref.ref(self.stream))
            ended(self)
            if not task.cancelled() and (error := task.exception()) is not None:
                at = traceback.extract_tb(error.__traceback__)[-1]  # without its text: a client's words may be in it
                LOG.error("run %s broke: %s at %s:%s", self.id, type(error).__name__, at.filename, at.lineno)

        self.task.add_done_callback(over)

    async def begun(self) -> None:
        """Wait until the history has the run (or is known not to): who hears of it finds it again, whatever happens."""
        await self._begun.wait()

    def cancel(self) -> None:
        """Have it end with the best answer that it has so far."""
        self._place.cancel.set()

    async def wait(self) -> dict[str, Any]:
        """Return the response when the run is over. Raises ``Problem`` where there is none."""
        await asyncio.wait([self.task])
        if isinstance(self.outcome, Problem):
            raise self.outcome
        assert self.outcome is not None  # noqa: S101 - every way out of the task sets it
        return self.outcome

    async def _go(self) -> None:
        try:
            await self._keep(self._history.begun(self.row, self._request.model_dump()))
            self.stream.append("run", beginning(self.row))
            self._begun.set()
            events = Events([self.stream.emit])
            caller = Caller(self._clients.client, self._clients.named, events, Trace(), _CALLS)
            answered = await answer(
                self._wanted, caller, spec=self._clients.spec, templates=self._templates, events=events,
                cancel=self._place.cancel, time_limit=self._seconds, on_iteration=self._iterated,
            )  # fmt: skip
            await self._finish(answered)
        except BaseException as error:
            await self._broken(error)
            raise

    async def _iterated(self, iteration: Iteration) -> None:
        """Keep a finished iteration; the service tells of it only then."""
        event = self.stream.last + 1
        part = Part(iteration.iteration_number, event, iteration.as_json())
        row = advanced(self.row, part.body, event)
        await self._keep(self._history.iterated(row, part))
        self.row = row
        self._parts.append(part)

    async def _finish(self, answered: Answered) -> None:
        told: dict[str, Any] = answered.as_json()["metadata"]
        told |= {"run": self.id, "model": self.row.model}  # the service knows the model by its spec
        if self.instead:
            told |= {"requested_model": self._request.model, "warnings": [self.instead, *told.get("warnings", ())]}
        await self._end(finished(self.row, answered, self.stream.last + 1), told)

    async def _broken(self, error: BaseException) -> None:
        """Tell of a run that was ended from outside, or by a fault of ours. What it finished stands."""
        ours = not isinstance(error, asyncio.CancelledError)
        told = {"reason": "an error of the server's own; its log has more"} if ours else {}
        await self._end(evolve(self.row, status="interrupted", last_event=self.stream.last + 1), told)

    async def _end(self, row: Row, metadata: dict[str, Any]) -> None:
        """Keep the end, then tell it."""
        await self._keep(self._history.ended(row, metadata))
        self.row, self._metadata = row, metadata
        if self._lost:
            await self._keep_all()
        self._tell()

    def _tell(self) -> None:
        name, self.outcome = ending(self.kept)
        told = self.outcome.as_json() if isinstance(self.outcome, Problem) else self.outcome
        self.stream.append(name, told)

    async def _keep(self, writing: Any) -> None:
        """Wait until the history has it. Where it can't, the answer goes on: it is what is paid for."""
        if self._lost:
            writing.close()
            return
        try:
            await writing
        except HistoryError as error:
            self._lost = error.message
            LOG.warning("run %s can't be kept for now: %s", self.id, error.message)

    async def _keep_all(self) -> None:
        """Try once more, with the whole run; where that fails too, say so in the response."""
        try:
            kept = self.kept
            await self._history.rewritten(self.row, kept.request, kept.metadata, kept.parts)
        except HistoryError:
            warning = "the history can't be written: this run is not kept, or not whole"
            self._metadata["warnings"] = [*self._metadata.get("warnings", ()), warning]
        else:
            self._lost = ""


def _thin(stream: "weakref.ref[Stream]") -> None:
    """Only who still reads it holds it."""
    if (held := stream()) is not None:
        held.thin()
