"""Active and stored answer runs. An owner can start, list, fetch, cancel and delete runs.

A run does not end with the request that started it: the client may disconnect and follow the run again later.
"""

import asyncio
import contextlib
import secrets
import time
import traceback
import weakref
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal

from attrs import define, evolve, field

from ...api import process_traces as traces
from ...api.server_runs import (
    Answered,
    AnswerRequest,
    Iteration,
    RunModels,
    ServedModels,
    Template,
    answer_request,
    check_answer_request,
    read_templates,
)
from ...events import Events
from ..http.middleware import LOG
from ..http.problems import Problem
from .answer_responses import answer_request_of, first_event, last_event, with_iteration, with_result
from .event_stream import Stream
from .history import HistoryError, Row, RunHistory, StoredIteration, StoredRun, final_row, with_final_status
from .sqlite_history import SqliteHistory

if TYPE_CHECKING:
    from ..http.access import Admission, Owner, RunSlot
    from .answer_responses import GenerateAnswerRequest
    from .web_models import ServerSettings

# An active run: its task, its events, and the history, which stores each iteration before followers receive the iteration.

_LINGER = 30.0
"""Seconds after the end of a run during which its events stay available to slow followers."""


@define(eq=False)
class LiveRun:
    """A run from its start to its end. ``seconds`` is the time limit.

    After the end, ``outcome`` is the response, or the problem that explains why the run has no response.
    """

    id: str
    _place: "RunSlot"
    _request: "GenerateAnswerRequest"
    _answer_request: AnswerRequest
    _models: RunModels
    _history: RunHistory
    _templates: Mapping[str, Template]
    _seconds: float
    substitution: str = ""
    """The message if a model other than the requested one answers; otherwise empty."""
    stream: Stream = field(init=False)
    row: Row = field(init=False)
    task: "asyncio.Task[None]" = field(init=False)
    outcome: dict[str, Any] | Problem | None = field(default=None, init=False)
    _started: asyncio.Event = field(factory=asyncio.Event, init=False)
    _parts: list[StoredIteration] = field(factory=list, init=False)
    _metadata: dict[str, Any] = field(factory=dict, init=False)
    _lost: str = field(default="", init=False)
    """The reason why part of the run is missing in the history; empty if the history is complete."""
    _is_stored: bool = field(default=False, init=False)
    """Whether the run has been stored at least in part."""
    _storing: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    """Held while the run changes together with the history."""

    def __attrs_post_init__(self) -> None:
        self.stream = Stream(time.perf_counter())
        self.row = Row(
            self.id, self._place.who.id, time.time(), "running", "", self._models.name, self._answer_request.instruct,
            self._answer_request.iter_max, float(self._answer_request.score_threshold),
        )  # fmt: skip

    @property
    def stored(self) -> StoredRun:
        """The run in its current state."""
        return StoredRun(self.row, self._request.model_dump(), self._metadata, tuple(self._parts))

    def begin(self, ended: Callable[["LiveRun"], Any]) -> None:
        """Start the run; ``ended`` is called when its task is done."""
        self.task = asyncio.create_task(self._go(), name=f"run {self.id}")

        def thin(stream: "weakref.ref[Stream]") -> None:
            if (held := stream()) is not None:  # a follower still reads the stream
                held.thin()

        def over(task: "asyncio.Task[None]") -> None:
            self._place.leave()
            self._started.set()
            self.stream.close()
            asyncio.get_running_loop().call_later(_LINGER, thin, weakref.ref(self.stream))
            ended(self)
            if not task.cancelled() and (error := task.exception()) is not None:
                at = traceback.extract_tb(error.__traceback__)[-1]  # without the message: it may contain client data
                LOG.error("run %s broke: %s at %s:%s", self.id, type(error).__name__, at.filename, at.lineno)

        self.task.add_done_callback(over)

    async def started(self) -> None:
        """Wait until the run is stored or storing has failed, so that a client that knows the id can find the run."""
        await self._started.wait()

    def cancel(self) -> None:
        """Ask the run to end with its best answer so far."""
        self._place.cancel.set()

    async def wait(self) -> dict[str, Any]:
        """Wait for the end and return the response. Raises ``Problem`` if there is no response."""
        await asyncio.wait([self.task])
        if isinstance(self.outcome, Problem):
            raise self.outcome
        assert self.outcome is not None  # noqa: S101 - every way out of the task sets it
        return self.outcome

    async def restore(self) -> None:
        """Store the active run as a whole, because parts of it may be missing in the history, or its status may be wrong there."""
        async with self._storing:
            if self._started.is_set() and self.outcome is None:
                await self._store_all()

    async def _go(self) -> None:
        try:
            await self._store(self._history.add_run(self.row, self._request.model_dump()))
            self.stream.append("run", first_event(self.row))
            self._started.set()
            events = Events([self.stream.emit])
            traces.subscribe(events)
            answered = await answer_request(
                self._answer_request, self._models, templates=self._templates, events=events, cancel=self._place.cancel,
                time_limit=self._seconds, on_iteration=self._iterated,
            )  # fmt: skip
            await self._finish(answered)
        except BaseException as error:
            await self._broken(error)
            raise

    async def _iterated(self, iteration: Iteration) -> None:
        """Store a finished iteration. The service emits the event for the iteration afterwards."""
        event = self.stream.last + 1
        part = StoredIteration(iteration.iteration_number, event, iteration.as_json())
        async with self._storing:
            row = with_iteration(self.row, part.body, event)
            await self._store(self._history.add_iteration(row, part))
            self.row = row
            self._parts.append(part)

    async def _finish(self, answered: Answered) -> None:
        metadata: dict[str, Any] = answered.as_json()["metadata"]
        metadata |= {"run": self.id, "model": self.row.model}  # the service knows the model by its spec
        if self.substitution:
            warnings = [self.substitution, *metadata.get("warnings", ())]
            metadata |= {"requested_model": self._request.model, "warnings": warnings}
        await self._end(with_result(self.row, answered, self.stream.last + 1), metadata)

    async def _broken(self, error: BaseException) -> None:
        """End a run if its task was cancelled or failed with an internal error. Finished iterations remain."""
        is_cancelled = isinstance(error, asyncio.CancelledError)
        metadata = {} if is_cancelled else {"reason": "internal server error; see the server's log"}
        await self._end(evolve(self.row, status="interrupted", last_event=self.stream.last + 1), metadata)

    async def _end(self, row: Row, metadata: dict[str, Any]) -> None:
        """Store the end of the run, then send the last event."""
        async with self._storing:
            await self._store(self._history.finish_run(row, metadata))
            self.row, self._metadata = row, metadata
            if self._lost and not await self._store_all():
                warning = "the history can't be written: this run is not stored, or only partly stored"
                self._metadata["warnings"] = [*self._metadata.get("warnings", ()), warning]
            name, self.outcome = last_event(self.stored)
        self.stream.append(name, self.outcome.as_json() if isinstance(self.outcome, Problem) else self.outcome)

    async def _store(self, writing: Any) -> None:
        """Wait for a write to the history. If writing fails, the run continues, because its calls are already paid for."""
        if self._lost:
            writing.close()
            return
        try:
            await writing
        except HistoryError as error:
            self._lost = error.message
            LOG.warning("run %s can't be stored for now: %s", self.id, error.message)
        else:
            self._is_stored = True

    async def _store_all(self) -> bool:
        """Try once more to store all of the run so far, and return whether it is stored."""
        try:
            await self._history.replace_run(self.stored, is_new=not self._is_stored)
        except HistoryError as error:
            self._lost = error.message
            return False
        self._lost, self._is_stored = "", True
        return True


_PATIENCE = 5.0
"""Number of seconds in which a cancelled run can return its best answer. After that, its task is cancelled."""


@define(eq=False)
class Runs:
    """The runs of one server. An instance belongs to one event loop.

    ``found`` is the number of runs that an earlier process left unfinished.
    """

    settings: "ServerSettings"
    served: ServedModels
    gate: "Admission"
    history: RunHistory
    templates: dict[str, Template]
    found: int = 0
    _live: dict[str, LiveRun] = field(factory=dict)
    _leaving: "dict[str, asyncio.Task[None]]" = field(factory=dict)
    """Maps the ids of runs that another server was asked to delete to the tasks that delete them."""
    _newest: str = ""

    @classmethod
    async def open(cls, settings: "ServerSettings", served: ServedModels, gate: "Admission") -> "Runs":
        """Open the history and read the templates. Raises ``HistoryError``. Raises ``RequestError`` or ``OSError`` for the templates."""
        templates = {} if settings.templates is None else read_templates(settings.templates)
        history = _history_of(settings)
        found = await history.open()
        if found:
            LOG.warning(
                "%d run%s had not ended when the server stopped: marked as interrupted",
                found,
                "" if found == 1 else "s",
            )
        runs = cls(settings, served, gate, history, templates, found)
        history.attend(runs)
        return runs

    async def start(self, who: "Owner", request: "GenerateAnswerRequest") -> LiveRun:
        """Start a run and return it when it is stored. Raises ``UnknownModel``, ``Problem`` (no free slot) or ``RequestError``."""
        found = self.served.find(request.model)
        wanted = answer_request_of(request)
        await check_answer_request(wanted, self.templates)
        place = self.gate.take(who)
        try:
            run = LiveRun(
                self.new_id(), place, request, wanted, self.served.for_run(found.name), self.history, self.templates,
                self.settings.run.seconds,
                self.served.substitution(request.model) if "model" in request.model_fields_set else "",
            )  # fmt: skip
            self._live[run.id] = run
            run.begin(lambda run: self._live.pop(run.id, None))
        except BaseException:
            place.leave()
            raise
        await run.started()
        return run

    def live(self, who: "Owner", run: str) -> LiveRun | None:
        """Return the owner's run if it is active, else None."""
        found = self._live.get(run)
        return found if found is not None and found.row.owner == who.id else None

    async def page(self, who: "Owner", limit: int, before_id: str | None = None) -> tuple[list[Row], bool]:
        """Return the newest ``limit`` runs of the owner, and whether more runs follow.

        If ``before_id`` is given, only older runs are returned.

        Raises ``Problem``.
        """
        before = dict(self._live)
        try:
            rows, more = await self.history.page(who.id, limit, before_id)
        except HistoryError as error:
            raise unreadable(error) from None
        live = before | self._live
        return [live[row.id].row if row.id in live else final_row(row) for row in rows], more

    async def get(self, who: "Owner", run: str) -> StoredRun:
        """Return the owner's run in its current state. Raises ``Problem``: 404 if the owner has no run with this id."""
        live = self.live(who, run)
        if live is not None:
            return live.stored
        try:
            found = await self.history.find(who.id, run)
        except HistoryError as error:
            raise unreadable(error) from None
        if found is None:
            raise Problem("no-such-run", 404, "Unknown run", "it may have been deleted, or belong to another key")
        return with_final_status(found)

    async def cancel(self, who: "Owner", run: str) -> StoredRun:
        """Ask the run to end with its best answer so far; a finished run is not changed. Raises ``Problem``."""
        live = self.live(who, run)
        if live is not None:
            live.cancel()
        else:
            await self._ask(who, run, "cancel")
        return await self.get(who, run)

    async def delete(self, who: "Owner", run: str) -> None:
        """Delete the run; an active run is cancelled first. Raises ``Problem``."""
        live = self.live(who, run)
        if live is not None:
            await self._delete_live(live)
        elif not await self._ask(who, run, "delete") and not await self._delete_stored(who.id, run):
            raise Problem("no-such-run", 404, "Unknown run", "it may have been deleted, or belong to another key")

    # The history calls these methods (``LocalRuns``).

    def active(self) -> Collection[str]:
        """Return the ids of the active runs."""
        return self._live.keys()

    def obey(self, run: str, wish: Literal["cancel", "delete"]) -> None:
        """Cancel the run, or cancel and delete it, because a client asked another server to do so."""
        live = self._live.get(run)
        if live is None:
            return
        live.cancel()
        if wish == "delete" and run not in self._leaving:
            task = self._leaving[run] = asyncio.create_task(self._leave(live))
            task.add_done_callback(lambda _: self._leaving.pop(run, None))

    async def restore(self) -> None:
        """Store the active runs again as a whole."""
        for run in list(self._live.values()):
            await run.restore()

    async def _ask(self, who: "Owner", run: str, wish: Literal["cancel", "delete"]) -> bool:
        try:
            return await self.history.ask(who.id, run, wish)
        except HistoryError as error:
            raise unreadable(error) from None

    async def _delete_live(self, live: LiveRun) -> None:
        live.cancel()
        await self._wait_for([live])
        await self._delete_stored(live.row.owner, live.id)

    async def _delete_stored(self, owner: str, run: str) -> bool:
        try:
            return await self.history.delete_run(owner, run)
        except HistoryError as error:
            raise unreadable(error) from None

    async def _leave(self, live: LiveRun) -> None:
        with contextlib.suppress(Problem):  # it is logged; the history deletes the run later
            await self._delete_live(live)

    async def drain(self, grace: float) -> None:
        """Refuse new runs; wait ``grace`` seconds for active runs, then end the remaining runs with their best answers so far.

        Streams of runs at other servers end at the end of the grace period, because uvicorn waits for open streams.
        """
        self.gate.close()
        live = list(self._live.values())
        try:
            if live and grace > 0:
                await asyncio.wait([run.task for run in live], timeout=grace)
            left = [run for run in live if not run.task.done()]
            for run in left:
                run.cancel()
            await self._wait_for(left)
        finally:
            self.history.end_follows()

    async def aclose(self) -> None:
        """End active runs and close the history."""
        await self.drain(0.0)
        if self._leaving:
            await asyncio.wait(list(self._leaving.values()))
        await self.history.aclose()

    async def _wait_for(self, runs: "list[LiveRun]") -> None:
        """Wait for the cancelled ``runs``; if a run does not end in time, cancel its task."""
        tasks = [run.task for run in runs]
        if not tasks:
            return
        _, stuck = await asyncio.wait(tasks, timeout=_PATIENCE)
        for task in stuck:
            task.cancel()
        if stuck:
            await asyncio.wait(stuck)

    def new_id(self) -> str:
        """Return an id that sorts by time: 48 bits of milliseconds, 80 random bits; strictly increasing within a process."""
        run_id = f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"
        if run_id <= self._newest:  # same millisecond, or the clock was set back
            run_id = f"{int(self._newest[:12], 16) + 1:012x}{run_id[12:]}"
        self._newest = run_id
        return run_id


def _history_of(settings: "ServerSettings") -> RunHistory:
    """Return the history in the PostgreSQL database of a URL, or in the SQLite file of a path."""
    if isinstance(settings.history, str):
        from .postgres_history import PostgresHistory

        return PostgresHistory(settings.history, settings.keep)
    return SqliteHistory(settings.history, settings.keep)


def unreadable(error: HistoryError) -> Problem:
    """Return the problem for a history that can't be read; the details are written only to the server's log."""
    LOG.warning("%s", error)
    return Problem("history-unavailable", 503, "The history can't be read now", headers={"Retry-After": "5"})
