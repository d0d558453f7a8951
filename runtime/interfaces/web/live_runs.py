"""The answers that the server works at, and those that it has kept: begun, listed, fetched, cancelled, deleted, each by its owner.

A run belongs to the server, not to the request that began it: whoever asked may go away, and follow it again.
"""

import asyncio
import secrets
import time
import traceback
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field

from ...answers.answer_results import Answered, AnswerRequest, Iteration
from ...answers.service import answer
from ...answers.templates import Template, read_templates
from ...events import Events
from ...models.caller import Caller
from ...results import Trace
from ..http.middleware import LOG
from ..http.problems import Problem
from .answer_responses import advanced, asked, beginning, ending, finished
from .event_stream import Stream
from .history import History, HistoryError, Kept, Part, Row

if TYPE_CHECKING:
    from ..http.access import Gate, Place, Who
    from .answer_responses import GenerateAnswerRequest
    from .web_models import ForRun, Offered, ServerSettings

__all__ = ["Runs"]


# A run under way: its task, its events, and its history, which has each iteration before anybody hears of it.

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


_PATIENCE = 5.0
"""Seconds that a cancelled run gets to hand over what it has, before its task is cancelled."""


@define(eq=False)
class Runs:
    """The runs of one server. It belongs to one event loop. ``found``: runs that an earlier process left without an end."""

    settings: "ServerSettings"
    offered: "Offered"
    gate: "Gate"
    history: History
    templates: dict[str, Template]
    found: int = 0
    _live: dict[str, LiveRun] = field(factory=dict)
    _newest: str = ""

    @classmethod
    async def open(cls, settings: "ServerSettings", offered: "Offered", gate: "Gate") -> "Runs":
        """Open the history and read the templates. Raises ``HistoryError``, and for templates ``RequestError`` and ``OSError``."""
        templates = {} if settings.templates is None else read_templates(settings.templates)
        history = History(settings.history, settings.keep)
        found = await history.open()
        if found:
            LOG.warning(
                "%d run%s had no end when the server was stopped: interrupted", found, "" if found == 1 else "s"
            )
        return cls(settings, offered, gate, history, templates, found)

    async def start(self, who: "Who", request: "GenerateAnswerRequest") -> LiveRun:
        """Begin a run and return it once it is kept. Raises ``Problem`` (no such model, no place) and ``RequestError``."""
        found = self.offered.find(request.model)
        wanted = asked(request)
        await self._check(wanted)
        place = self.gate.take(who)
        try:
            run = LiveRun(
                self._new_id(), place, request, wanted, self.offered.for_run(found.name), self.history, self.templates,
                self.settings.run.seconds,
                self.offered.instead_of(request.model) if "model" in request.model_fields_set else "",
            )  # fmt: skip
            self._live[run.id] = run
            run.begin(self._ended)
        except BaseException:
            place.leave()
            raise
        await run.begun()
        return run

    async def _check(self, request: AnswerRequest) -> None:
        """Have the service look at the request and ask nobody: what it refuses is refused before a run begins."""
        cancelled = asyncio.Event()
        cancelled.set()
        await answer(request, Caller(None, {}, None, Trace(), 1), templates=self.templates, cancel=cancelled)

    def live(self, who: "Who", run: str) -> LiveRun | None:
        """Return the owner's run if it is under way."""
        found = self._live.get(run)
        return found if found is not None and found.row.owner == who.id else None

    async def page(self, who: "Who", limit: int, before_id: str | None = None) -> tuple[list[Row], bool]:
        """Return the owner's newest runs, of those older than ``before_id``, and whether there are more. Raises ``Problem``."""
        before = dict(self._live)
        try:
            rows, more = await self.history.page(who.id, limit, before_id)
        except HistoryError as error:
            raise unreadable(error) from None
        live = before | self._live
        return [live[row.id].row if row.id in live else over(row) for row in rows], more

    async def get(self, who: "Who", run: str) -> Kept:
        """Return the owner's run as far as it is. Raises ``Problem``: 404 where the owner has none of this id."""
        live = self.live(who, run)
        if live is not None:
            return live.kept
        try:
            found = await self.history.find(who.id, run)
        except HistoryError as error:
            raise unreadable(error) from None
        if found is None:
            raise Problem("no-such-run", 404, "There is no such run", "it may have been deleted, or be another key's")
        return evolve(found, row=over(found.row))

    async def cancel(self, who: "Who", run: str) -> Kept:
        """Have the run end, with the best answer that it has so far; one that is over stays as it is. Raises ``Problem``."""
        live = self.live(who, run)
        if live is not None:
            live.cancel()
        return await self.get(who, run)

    async def delete(self, who: "Who", run: str) -> None:
        """Delete the run; one under way is cancelled first. Raises ``Problem``."""
        live = self.live(who, run)
        if live is not None:
            live.cancel()
            await self._over([live])
        try:
            deleted = await self.history.deleted(who.id, run)
        except HistoryError as error:
            raise unreadable(error) from None
        if not deleted and live is None:
            raise Problem("no-such-run", 404, "There is no such run", "it may have been deleted, or be another key's")

    async def drain(self, grace: float) -> None:
        """Begin no more runs; give those under way ``grace`` seconds, then have them end with what they have."""
        self.gate.close()
        live = list(self._live.values())
        if live and grace > 0:
            await asyncio.wait([run.task for run in live], timeout=grace)
        left = [run for run in live if not run.task.done()]
        for run in left:
            run.cancel()
        await self._over(left)

    async def aclose(self) -> None:
        """End what is under way and close the history."""
        await self.drain(0.0)
        await self.history.aclose()

    async def _over(self, runs: "list[LiveRun]") -> None:
        """Wait until ``runs``, which are cancelled, are over; end those that don't come to it."""
        tasks = [run.task for run in runs]
        if not tasks:
            return
        _, stuck = await asyncio.wait(tasks, timeout=_PATIENCE)
        for task in stuck:
            task.cancel()
        if stuck:
            await asyncio.wait(stuck)

    def _ended(self, run: LiveRun) -> None:
        self._live.pop(run.id, None)

    def _new_id(self) -> str:
        """Return an id that sorts by time: 48 bits of milliseconds, 80 random ones. No two of a process are out of order."""
        made = f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"
        if made <= self._newest:  # within the same millisecond, or the clock was set back
            made = f"{int(self._newest[:12], 16) + 1:012x}{made[12:]}"
        self._newest = made
        return made


def over(row: Row) -> Row:
    """Return the row of a run that is not under way; one whose end could not be written has none."""
    return evolve(row, status="interrupted") if row.status == "running" else row


def unreadable(error: HistoryError) -> Problem:
    """Return the problem of a history that can't be read; what is wrong with the file is the server's business."""
    LOG.warning("%s", error)
    return Problem("history-unavailable", 503, "The history can't be read now", headers={"Retry-After": "5"})
