"""Runs one request from plan to ranking, or several requests in parallel.

Model failures do not raise exceptions: the result reports the failures.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, Literal

from attrs import define, field

from ....adapters.llm.strict_schema import ModelCapabilities
from ...answers.answer_results import LONGEST
from ...errors import RequestError, check_text, whole_number_validator
from ...events import Events
from ...limits import Deadline, checked_time_limit
from ...models.caller import Caller, Losses, Spent
from ...results import Failed, StepFailed
from ..loop_events import loop_events
from .item_names import name_of
from .phases import MAX_ITERATIONS, Executed, Expanded, execute, expand
from .plan_phase import Planned, plan
from .ranking_results import NONE, Job, Phase, Ranked, RequestAdmission, Status, with_budget_hint

__all__ = ["MAX_ITERATIONS", "MOST_ITEMS", "Work", "check_requests", "prepare", "rank", "rank_many"]


# The items of a ranking: a list, or an object whose ``items`` is a list; anything else is rejected.

MOST_ITEMS = 2_000
"""Maximum number of items of one ranking; more items do not fit into a prompt."""
_FORM = 'items must be a JSON list, or {"items": [...]}'

Data = Mapping[str, Any]
"""The input that scripts and ``read`` see: ``items``, ``request``, and the other properties of the given object."""


def read_items(given: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the items and the other properties of ``given``: a list, or an object with ``items``. Raises ``RequestError``."""
    beside: dict[str, Any] = {}
    items = given
    if isinstance(given, Mapping):
        if "items" not in given:
            raise RequestError("items", "the object has no items", _FORM)
        beside = {str(name): value for name, value in given.items() if name not in ("items", "request")}
        items = given["items"]
    if not isinstance(items, list | tuple):
        raise RequestError("items", f"expected a list of items, not {_called(items)}", _FORM)
    if not items:
        raise RequestError("items", "the list of items is empty", _FORM)
    if len(items) > MOST_ITEMS:
        raise RequestError(
            "items", f"{len(items):,} items are too many", f"the maximum is {MOST_ITEMS:,}; remove some before ranking"
        )
    return list(items), beside


def _called(value: Any) -> str:
    """Return the JSON type name of a value that is not a list."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    kinds = ((str, "a string"), (Mapping, "an object"), (int | float, "a number"))
    return next((name for kind, name in kinds if isinstance(value, kind)), type(value).__name__)


ITERATIONS = 50
"""Highest value of ``max_iterations``, the limit of an expansion."""
_PhaseName = Literal["plan", "expand", "execute"]


@define
class Work:
    """The items to rank, the other properties of the input, and the settings of calls. Raises ``RequestError``.

    ``time_limit`` is in seconds for each request. ``means`` are the output constraints that the model supports: a grammar for the plan,
    and its tool-calling interface for the expansion. A model without tool calling writes its calls as text.
    """

    items: Sequence[Any] = field(repr=False)
    beside: Mapping[str, Any] = field(repr=False)
    max_iterations: int = field(default=MAX_ITERATIONS, validator=whole_number_validator(1, ITERATIONS))
    max_concurrency: int = field(default=8, validator=whole_number_validator(1))
    options: Mapping[str, Any] = field(factory=dict)
    time_limit: float | None = field(default=None, converter=checked_time_limit)
    means: ModelCapabilities = NONE


def prepare(items: Any, **options: Any) -> Work:
    """Return the checked input of a ranking. ``options`` are the other fields of ``Work``. Raises ``RequestError``."""
    listed, beside = read_items(items)
    try:
        json.dumps([listed, beside], allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestError("items", f"the items are not JSON: {error}"[:300]) from None
    return Work(listed, beside, **options)


async def rank(
    work: Work,
    request: str,
    caller: Caller,
    *,
    number: int = 0,
    events: Events | None = None,
    cancel: asyncio.Event | None = None,
    short: Failed | None = None,
) -> Ranked:
    """Rank the items for ``request`` with the models of ``caller``.

    ``number`` is the number of the request, from 0 (``R00``). ``events`` are the caller's events by default. Setting ``cancel``, or
    reaching the work's time limit, stops the calls in progress. If plan and expansion may only use recorded answers, ``short`` is the
    reason. If the caller has a record, every finished call is stored in the record and reused. Raises ``RequestError``.
    """
    check_requests([request])
    checked = request.strip()
    data = {**work.beside, "request": checked, "items": work.items}
    heard = caller.events if events is None else events
    job = Job(number, checked, work.items, data, caller, heard, work.options, work.means, Losses(budget=short))
    return await _Ranking(job, work).run(cancel)


async def rank_many(
    work: Work,
    requests: Sequence[str],
    caller: Callable[[int], Caller],
    *,
    cancel: asyncio.Event | None = None,
    on_ranked: Callable[[Ranked], None] = lambda ranked: None,
    max_calls: int | None = None,
) -> list[Ranked]:
    """Rank the items for every request, several requests in parallel, and return the results in the order of the requests.

    ``caller`` returns the caller for a request number, with the events of that request; callers may share models, gate and record.
    ``on_ranked`` receives each result as soon as it is ready. ``max_calls`` is the budget of all requests together. The models
    enforce the budget; this function only limits how many requests begin. A request that has not begun when ``cancel`` is set is
    cancelled. Raises ``RequestError`` before any call.
    """
    check_requests(requests)
    admission = RequestAdmission(max_calls if len(requests) > 1 else None, work.max_concurrency)
    turn = asyncio.Lock()  # slots are granted in the order of the requests

    async def one(number: int, request: str) -> Ranked:
        async with turn:
            short = await admission.begin()
        sent = 0
        try:
            if cancel is not None and cancel.is_set():
                ranked = Ranked(request, number, "cancelled", reason="cancelled before it began")
            else:
                ranked = await rank(work, request, caller(number), number=number, cancel=cancel, short=short)
            sent = ranked.calls
            on_ranked(ranked)
            return ranked
        finally:
            admission.ended(sent)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(number, request)) for number, request in enumerate(requests)]
    return [task.result() for task in tasks]


def check_requests(requests: Sequence[Any]) -> None:
    """Raise ``RequestError`` for an invalid request."""
    for request in requests:
        check_text("request", request, LONGEST, ("the request is empty", "describe what to rank for, in a sentence"))


@define
class _Ranking:
    """One request in progress."""

    job: Job
    work: Work
    phases: list[Phase] = field(factory=list)
    planned: Planned | None = None
    expanded: Expanded | None = None
    executed: Executed | None = None
    began: float = field(factory=perf_counter)
    stop: asyncio.Event = field(factory=asyncio.Event)
    stopped: str = ""
    _spent: Spent = field(factory=Spent)
    _phase: _PhaseName = "plan"
    _phase_began: float = 0.0

    async def run(self, cancel: asyncio.Event | None) -> Ranked:
        """Run to the end, or until stopped; no call is in progress afterwards."""
        job = self.job
        run_id = job.caller.record.run_id if job.caller.record is not None else ""
        with loop_events(job.events, "rank", run=run_id, request=job.number) as loop:
            ranked = await self._run(cancel)
            loop.status = ranked.status
        return ranked

    async def _run(self, cancel: asyncio.Event | None) -> Ranked:
        ending = Deadline(cancel, self.work.time_limit)
        task = asyncio.ensure_future(self._phases())
        try:
            await ending.wait_for(task)
            if not task.done():
                self.stopped = (
                    "cancelled" if ending.by == "cancelled" else f"the time limit of {ending.time_limit} s is reached"
                )
                self.stop.set()
                if self._phase != "execute":  # a script stops by itself and returns the results so far
                    task.cancel()
            reason = await task
        except asyncio.CancelledError:
            if not self.stopped:
                raise
            reason = self.stopped
            self._end("cancelled", reason)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return self._ranked(self.stopped or reason)

    async def _phases(self) -> str:
        """Run the phases and return why the ranking is missing; "" if the ranking exists."""
        job = self.job
        try:
            self._begin("plan", job.request)
            self.planned = await plan(job, self._spent)
            self._end("done", "\n".join(_steps(self.planned)))
            self._begin("expand", count=len(self.planned.script.steps))
            self.expanded = await expand(job, self.planned, self._spent, self.work.max_iterations)
            count = self.expanded.iterations
            status = "unfinished" if self.expanded.unfinished else "done" if count else "pass-through"
            self._end(status, self.expanded.unfinished or self.expanded.text, count)
        except StepFailed as error:
            failed = error.failed
            reason = with_budget_hint(f"{failed.message} ({failed.hint})" if failed.hint else failed.message)
            self._end("failed", reason)
            return f"{self._phase}: {reason}"
        self._begin("execute", count=len(self.expanded.script.steps))
        self.executed = await execute(job, self.expanded.script, self.stop, self.work.max_concurrency)
        run, order = self.executed.run, self.executed.order
        self._spent.add(self.executed.sent, run.usage, run.cost)
        self._spent.include(self.executed.spent)
        if run.status == "cancelled":
            self._end("cancelled", self.stopped)
            return self.stopped or "cancelled"
        if order.none:
            self._end("done", "none")
            return ""
        if not order.indices:
            self._end("failed", order.reason)
            return order.reason
        self._end("done", ", ".join(str(index + 1) for index in order.indices))
        return ""

    def _begin(self, phase: _PhaseName, detail: str = "", count: int = 0) -> None:
        self._phase, self._phase_began, self._spent = phase, perf_counter(), Spent()
        self.job.started(phase, detail, count)

    def _end(self, status: str, detail: str = "", count: int = 0) -> None:
        took = perf_counter() - self._phase_began
        reason = detail if status in ("failed", "cancelled", "unfinished") else ""
        self.phases.append(Phase(self._phase, status, took, self._spent, reason))
        self.job.finished(self._phase, status, took, detail, count)

    def _ranked(self, reason: str) -> Ranked:
        """Return the result."""
        job, planned, expanded, executed = self.job, self.planned, self.expanded, self.executed
        order = executed.order if executed is not None else None
        indices = order.indices if order is not None and not reason else ()
        status: Status = "cancelled" if self.stopped == "cancelled" else "failed"
        none = order is not None and order.none and not reason
        if (indices or none) and executed is not None:
            unfinished = "; ".join(filter(None, (expanded.unfinished if expanded is not None else "", executed.unsure)))
            status = "partial" if executed.run.status == "partial" or unfinished else "complete"
            reason = unfinished
        if order is not None and order.unknown and indices:
            job.warn(f"the output names unknown items, which are omitted: {', '.join(order.unknown[:5])}")
        if none and planned is not None and planned.read.remaining:
            named = ", ".join(str(index + 1) for index in planned.read.remaining[:5])
            job.warn(f"the output says that no item fits, but the plan named: {named}")
        if planned is not None and planned.read.nothing and indices:
            job.warn("the ranking contains items, but the plan said that no item matches")
        if planned is not None and planned.read.remaining:
            pruned = [str(index + 1) for index in indices if index not in planned.read.remaining]
            if pruned:
                job.warn(f"the ranking contains items that the plan had excluded: {', '.join(pruned[:5])}")
        return Ranked(
            job.request, job.number, status, tuple(index + 1 for index in indices),
            tuple(name_of(job.items[index]) for index in indices), reason,
            executed.output if executed is not None else None,
            planned.read.conditions if planned is not None else "", planned.read.remaining if planned is not None else (),
            "\n".join(_steps(planned)) if planned is not None else "", expanded.text if expanded is not None else "",
            planned.read.message if planned is not None else "", tuple(self.phases),
            tuple(job.repairs), tuple(job.tools),
            executed.run if executed is not None else None, perf_counter() - self.began,
            (*job.warnings, *(executed.run.warnings if executed is not None else ())), none,
        )  # fmt: skip


def _steps(planned: Planned) -> list[str]:
    from ....lang.printer.lwt_printer import format_step

    return [format_step(step) for step in planned.script.steps]
