"""Runs a script once for each row of a table. The rows run concurrently; a failed row is a result, and the other rows still run.

A row is read only when a run can begin with it, so memory does not grow with the number of rows.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from attrs import define, field

from ...adapters.llm import LLM
from ...lang.trees.lwt import Script
from ..event_stream import Event, Events, Warned
from ..events import RunFinished, RunStarted, StepFinished, StepSkipped, StepStarted
from ..excerpts import clipped
from ..models.caller import Spent
from ..results import NOT_ASKED, unasked
from ..scheduler import Policy
from . import runner
from .operations import Host
from .row_results import RowResult, RowTotals, result_of
from .row_store import RowRecorder
from .script_plan import ScriptPlan
from .table_rows import TableRow

LASTING = frozenset({"budget", "wrong_key", "quota", "model_not_found", "not_configured"})
"""Kinds of failures that every later row would have too; no further row is run."""
_MOST_WARNINGS = 1_000
"""Maximum number of warnings in the totals of a run."""
_OF_A_SCRIPT = (RunStarted, RunFinished, StepStarted, StepFinished, StepSkipped)
"""Events of the script's run that are not passed on for each row; the events of rows take their place."""


async def run_rows(
    script: Script,
    rows: Iterable[TableRow],
    plan: ScriptPlan,
    *,
    llm: LLM | None = None,
    models: Mapping[str, LLM] | None = None,
    on_result: Callable[[RowResult], None],
    record: RowRecorder | None = None,
    events: Events | None = None,
    cancel: asyncio.Event | None = None,
    max_concurrency: int = runner.MAX_CONCURRENCY,
    schedule: Policy = "eager",
    all_steps: bool = False,
    strict_types: bool = False,
    folder: Path | None = None,
    spec: str = "",
    host: Host | None = None,
) -> RowTotals:
    """Run ``script`` for each of ``rows``, and pass each result to ``on_result`` as soon as it is ready, in any order.

    ``plan`` is the plan of the checked script, for any input. At most ``max_concurrency`` rows run at once. ``record`` saves the
    run; rows with a complete result are skipped. When ``cancel`` is set, the rows under way get no result, and
    ``RowTotals.cancelled`` is true. After a failure that every later row would have too (an exhausted budget, a wrong key), the
    remaining rows are not run ("not_asked"). The other options are those of ``runner.run``.

    Raises ``ScriptError`` for a script with errors, before any row is read, and the exceptions of ``rows``.
    """
    if max_concurrency < 1:
        raise ValueError("max_concurrency must be at least 1")
    plan.require(script)
    settings: dict[str, Any] = {
        "llm": llm, "models": models, "plan": plan, "max_concurrency": max_concurrency, "schedule": schedule,
        "all_steps": all_steps, "strict_types": strict_types, "folder": folder, "spec": spec, "host": host,
    }  # fmt: skip
    return await _RowRun(script, iter(rows), settings, on_result, record, events).run(cancel, max_concurrency)


@define
class _RowRun:
    """A run over rows that is in progress."""

    script: Script
    rows: Iterator[TableRow]
    settings: Mapping[str, Any]
    on_result: Callable[[RowResult], None]
    record: RowRecorder | None
    events: Events | None
    totals: RowTotals = field(factory=RowTotals)
    _stopped: str = ""
    _kind: str = ""
    _warned: set[str] = field(factory=set)

    async def run(self, cancel: asyncio.Event | None, limit: int) -> RowTotals:
        """Run all rows. Nothing is running when this method returns or raises."""
        began, status = perf_counter(), "cancelled"
        if self.events:
            run_id = self.record.run_id if self.record is not None else ""
            self.events.emit(RunStarted((), "", "script", self.script.source.name, run_id))
        try:
            await self._until_done([self._worker() for _ in range(limit)], cancel)
            if self.record is not None:
                for damage in filter(None, (self.record.damage, self.record.results_damage)):
                    self._warn(Warned("", damage))
            status = self.totals.status
        finally:
            if self.events:
                self.events.emit(RunFinished(status))
        totals = self.totals
        totals.seconds, totals.stopped = perf_counter() - began, self._stopped
        if self.record is not None:
            totals.run_id = self.record.run_id
            self.record.end(status, totals.seconds, totals.usage, totals.cost, totals.calls)
        return totals

    async def _until_done(self, jobs: list[Any], cancel: asyncio.Event | None) -> None:
        tasks = [asyncio.ensure_future(job) for job in jobs]
        stop = None if cancel is None else asyncio.ensure_future(cancel.wait())
        left: set[asyncio.Future[Any]] = set(tasks)
        try:
            while left:
                watched = left if stop is None else {*left, stop}
                done, _ = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
                if stop is not None and stop in done:
                    self.totals.cancelled = True
                    return
                left -= done
                for task in done:
                    task.result()
        finally:
            waiting = [*tasks, *(() if stop is None else (stop,))]
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def _worker(self) -> None:
        finished = self.record.complete if self.record is not None else {}
        for row in self.rows:
            if row.index in finished:
                self.totals.before += 1
                continue
            label = clipped(f"row {row.index + 1}{'' if row.name == str(row.index + 1) else f' ({row.name})'}", 60)
            began = perf_counter()
            if self.events:
                self.events.emit(StepStarted(label))
            result = await self._result(row, label)
            if (result.kind in LASTING or result.status == "not_asked") and not self._stopped:
                self._stopped, self._kind = result.error, result.kind
            if self.record is not None:
                self.record.row_done(result)
            self.totals.add(result)
            if self.events:
                status = "done" if result.status in ("complete", "partial") else "failed"
                self.events.emit(StepFinished(label, status, perf_counter() - began, result.error))
            self.on_result(result)
            await asyncio.sleep(0)  # rows whose answers are saved or cached would otherwise block other tasks

    async def _result(self, row: TableRow, label: str) -> RowResult:
        if row.fault:
            return RowResult(row.index, row.name, "failed", row.keys, error=row.fault, kind="row")
        if self._stopped:
            error = self._stopped if NOT_ASKED in self._stopped else unasked(self._stopped)
            return RowResult(row.index, row.name, "not_asked", row.keys, error=error, kind=self._kind)
        lost = Spent()
        try:
            run = await runner.run(
                self.script, input=dict(row.values), record=None if self.record is None else self.record.row(row.index),
                events=self._events_of(label), lost=lost, **self.settings,
            )  # fmt: skip
        except asyncio.CancelledError:
            self.totals.pay(lost)  # the row has no result
            raise
        return result_of(row, run)

    def _events_of(self, label: str) -> Events:
        """Return the events of the run of one row: calls and warnings are passed on."""
        made = Events()

        def forward(event: Event) -> None:
            if isinstance(event, Warned):
                self._warn(Warned(label, f"({event.step}): {event.message}" if event.step else event.message), event)
            elif self.events and not isinstance(event, _OF_A_SCRIPT):
                self.events.emit(event)

        made.subscribe(forward)
        return made

    def _warn(self, warning: Warned, original: Warned | None = None) -> None:
        """Save and show a warning. A warning about the script itself is shown once, not for each row."""
        if original is not None:
            about = f"{original.step}\0{original.message}"
            if about in self._warned:
                return
            if len(self._warned) < _MOST_WARNINGS:
                self._warned.add(about)
        if len(self.totals.warnings) < _MOST_WARNINGS:
            self.totals.warnings.append(f"{warning.step}: {warning.message}" if warning.step else warning.message)
        if self.events:
            self.events.emit(warning)
