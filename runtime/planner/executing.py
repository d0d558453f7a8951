"""Phase 3 of seed 001: the script runs, its last step's text becomes the ranking."""

import asyncio
from typing import Any

from attrs import evolve, frozen

from ...adapters.llm import BudgetExceeded, Completion, LLMError
from ...adapters.llm_layers import Layer, Own, as_client
from ...lang.lwt import Script
from ..results import Outcome, Record, Recorded, Run, StepResult
from ..scripts import run as run_script
from ..spending import Spent
from .asking import Job
from .budget import raised
from .ranking import Order, read_order

__all__ = ["Executed", "execute"]


@frozen
class Executed:
    """The run of the script, what its output names, and how many requests it sent."""

    run: Run
    order: Order
    sent: int


async def execute(job: Job, script: Script, cancel: asyncio.Event | None, max_concurrency: int) -> Executed:
    """Run ``script`` and read its output. A step that fails is in the result."""
    caller = job.caller
    record = None if caller.record is None else _Within(caller.record, job.label)
    sent = Spent()
    models = {name: _Sent(client, sent) for name, client in caller.models.items()}
    run = await run_script(
        script, input=job.data, llm=None if caller.llm is None else _Sent(caller.llm, sent), models=models,
        max_concurrency=max_concurrency, events=job.events, record=record, cancel=cancel,
    )  # fmt: skip
    return Executed(run, _order(job, run), sent.calls)


def _order(job: Job, run: Run) -> Order:
    if run.status == "cancelled":
        return Order(reason="cancelled")
    if run.output is None:
        return Order(reason=_with_budget(run, _why(run)))
    order = read_order(run.output, job.items)
    return evolve(order, reason=_with_budget(run, order.reason)) if order.reason else order


def _why(run: Run) -> str:
    """Return why the last step has no output: its own reason, or that of the first step that failed before it."""
    failed = next((step for step in run.steps.values() if step.status == "failed"), None) or run.steps.get(run.final)
    if failed is None:
        return f"({run.final}) failed: it did not run"
    return f"({failed.id}) failed: {failed.reason}"


def _with_budget(run: Run, reason: str) -> str:
    """Return ``reason`` with the budget that was used up on the way, and what raises it."""
    failures = (each for step in run.steps.values() for each in (step.failed, *step.failed_items) if each is not None)
    spent = next((each.message for each in failures if each.kind == "budget"), "")
    if not spent:
        return reason
    return raised(reason if "budget" in reason else f"{reason}; {spent}")


class _Sent(Layer):
    """Counts the requests that a client sends; what a budget refuses is none."""

    def __init__(self, client: Any, sent: Spent) -> None:
        super().__init__(as_client(client))
        self._own, self._sent = isinstance(client, Own), sent

    async def generate(self, prompt: str, **options: Any) -> Completion:
        """Return the client's answer."""
        self._sent.calls += 1  # at once: a request that is stopped under way was sent
        try:
            answer = await self._inner.generate(prompt, **options)
        except LLMError as error:
            refused = isinstance(error, BudgetExceeded) and not self._own
            self._sent.calls += error.attempts - 1 - (1 if refused else 0)
            raise
        self._sent.calls += answer.attempts - 1
        return answer


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
