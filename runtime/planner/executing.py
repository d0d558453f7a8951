"""Phase 3 of seed 001: the script runs, its last step's text becomes the ranking."""

import asyncio

from attrs import evolve, frozen

from ...lang.lwt import Script
from ..results import Outcome, Record, Recorded, Run, StepResult
from ..scripts import run as run_script
from .asking import Job
from .ranking import Order, read_order

__all__ = ["Executed", "execute"]


@frozen
class Executed:
    """The run of the script, and what its output names."""

    run: Run
    order: Order


async def execute(job: Job, script: Script, cancel: asyncio.Event | None, max_concurrency: int) -> Executed:
    """Run ``script`` and read its output. A step that fails is in the result."""
    caller = job.caller
    record = None if caller.record is None else _Within(caller.record, job.label)
    run = await run_script(
        script, input=job.data, llm=caller.llm, models=caller.models, max_concurrency=max_concurrency, events=job.events,
        record=record, cancel=cancel,
    )  # fmt: skip
    return Executed(run, _order(job, run))


def _order(job: Job, run: Run) -> Order:
    if run.status == "cancelled":
        return Order(reason="cancelled")
    if run.output is None:
        final = run.steps.get(run.final)
        return Order(reason=f"({run.final}) failed: {final.reason if final is not None else 'it did not run'}")
    return read_order(run.output, job.items)


class _Within(Record):
    """The record of one script among several in a run's folder: its steps have the request's label before their names."""

    def __init__(self, record: Record, label: str) -> None:
        self._record = record
        self._label = label
        self.run_id = record.run_id

    @property
    def damage(self) -> str:
        return self._record.damage

    def recall(self, step: str, item: int | None, input_hash: str) -> Recorded | None:
        return self._record.recall(f"{self._label}.{step}", item, input_hash)

    def item_done(self, step: str, item: int | None, outcome: Outcome, seconds: float) -> None:
        self._record.item_done(f"{self._label}.{step}", item, outcome, seconds)

    def step_done(self, result: StepResult, outcome: Outcome | None) -> None:
        self._record.step_done(evolve(result, id=f"{self._label}.{result.id}"), outcome)

    def finished(self, run: Run) -> None:
        """The run in the folder is not over: other requests may be under way."""

    def close(self) -> None:
        """The folder is closed by whoever opened it."""
