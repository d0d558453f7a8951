"""The answers that the server works at, and those that it has kept: begun, listed, fetched, cancelled, deleted, each by its owner.

A run belongs to the server, not to the request that began it: whoever asked may go away, and follow it again.
"""

import asyncio
import secrets
import time
from typing import TYPE_CHECKING

from attrs import define, evolve, field

from ....answers.answer_results import AnswerRequest
from ....answers.service import answer
from ....answers.templates import Template, read_templates
from ....models.caller import Caller
from ....results import Trace
from ...http.faults import LOG
from ...http.problems import Problem
from .history import History, HistoryError
from .live import LiveRun
from .rows import Kept, Row
from .shapes import asked

if TYPE_CHECKING:
    from ...http.gate import Gate, Who
    from ..models import Offered
    from ..settings import ServerSettings
    from .schemas import GenerateAnswerRequest

__all__ = ["Runs"]

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
