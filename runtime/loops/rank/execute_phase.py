"""Phase 3 of a ranking: the script runs, its last step's text becomes the ranking.

A text that can't be read as a ranking loses nothing: its step is asked once more, and the calls before it are kept.
"""

import asyncio
from time import perf_counter
from typing import Any

from attrs import evolve, field, frozen

from ....adapters.llm import BudgetExceeded, Completion, LLMError
from ....adapters.llm.middleware import Layer, Own, as_client
from ....lang.trees.lwt import Script
from ...events import RepairAsked
from ...excerpts import clipped, fenced
from ...limits import Ending
from ...lwt.operations.basic import prompted
from ...lwt.runner import run as run_script
from ...models.caller import Caller, Request
from ...models.usage import Spent
from ...prompt_files import fill, read_prompt
from ...results import Outcome, Record, Recorded, Run, StepFailed, StepResult, Trace
from .phase_context import Job, raised
from .ranked import Order, name_of, read_order

__all__ = ["Executed", "execute"]


@frozen
class Executed:
    """The run of the script, what its output names, and how many requests it sent.

    ``output`` is the last step's text; ``spent`` is what asking that step once more cost beside the run. ``unsure``: why the ranking
    may lack something.
    """

    run: Run
    order: Order
    sent: int
    output: str | None = None
    spent: Spent = field(factory=Spent)
    unsure: str = ""


async def execute(job: Job, script: Script, cancel: asyncio.Event | None, max_concurrency: int) -> Executed:
    """Run ``script`` and read its output. A step that fails is in the result."""
    caller = job.caller
    record = None if caller.record is None else _Within(caller.record, job.label)
    sent = Spent()
    models = {name: _Sent(client, sent) for name, client in caller.models.items()}
    run = await run_script(
        script, input=job.data, llm=None if caller.llm is None else _Sent(caller.llm, sent), models=models,
        max_concurrency=max_concurrency, events=job.events, record=record, cancel=cancel, prompts=True,
    )  # fmt: skip
    made = Executed(run, _order(job, run), sent.calls, run.output)
    if (
        run.status == "cancelled"
        or run.output is None
        or (made.order.none or (made.order.indices and not made.order.unknown))
    ):
        return made
    llm = None if caller.llm is None else _Sent(caller.llm, sent)
    events = job.events if job.events is not None else caller.events
    asking = Caller(llm, models, events, Trace(), max_concurrency, record)
    asking.gate = caller.gate
    work = asyncio.ensure_future(_again(job, script, made, asking))
    ending = Ending(cancel, None)
    try:
        await ending.wait_for(work)
        return (
            evolve(await work, sent=sent.calls)
            if work.done()
            else evolve(made, order=Order(reason="cancelled"), sent=sent.calls)
        )
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def _again(job: Job, script: Script, made: Executed, caller: Caller) -> Executed:
    """Ask the last step once more, in the words of its prompt, saying why its text is no ranking."""
    run, order, spent = made.run, made.order, Spent()
    why = order.reason or f"the output names items that do not exist: {', '.join(order.unknown[:5])}"
    written = made.output or ""
    if job.events:
        job.events.emit(RepairAsked("rank", "execute", 1, written, (), job.number, why))
    step = next((each for each in script.steps if each.id == run.final), None)
    if (
        step is not None
        and step.call.operation == "LLM"
        and (prompt := (run.trace.prompts or {}).get(run.final)) is not None
    ):
        own = prompted(step.call).request
        request = Request("", "text", own.model, own.options)
    else:
        prompt, request = _about(job), Request("")
    values = {
        "prompt": prompt, "output": fenced(clipped(written, _SHOWN)), "why": clipped(why, _LONGEST), "last": str(len(job.items) - 1)
    }  # fmt: skip
    request = evolve(request, prompt=fill(read_prompt(__package__ or "", "unread"), values))
    began = perf_counter()
    try:
        outcome = await caller.ask(run.final, request, _TURN)
    except StepFailed as error:
        spent.add(0, error.usage, error.cost)
        reason = _with_budget(run, f"{why}; the last step could not be asked once more: {error.failed.message}")
        kept = evolve(order, reason="" if order.indices else raised(reason))
        return evolve(made, order=kept, spent=spent, unsure=reason if order.indices else "")
    spent.add(0, outcome.usage, outcome.cost)
    if not outcome.reused:
        caller.item_done(run.final, _TURN, outcome, perf_counter() - began)
    again = read_order(outcome.output, job.items)
    if again.none or (again.indices and not again.unknown):
        job.warn(f"the last step was asked once more: {why}")
        return evolve(made, order=again, output=outcome.output, spent=spent)
    if again.indices or order.indices:
        best, output = (again, outcome.output) if again.indices else (order, made.output)
        unsure = f"the output names items that do not exist: {', '.join(best.unknown[:5])}"
        return evolve(made, order=best, output=output, spent=spent, unsure=unsure)
    reason = f"{again.reason}; the last step was asked twice"
    return evolve(made, order=evolve(again, reason=_with_budget(run, reason)), output=outcome.output, spent=spent)


def _about(job: Job) -> str:
    """Return what a step that asks no model is asked by: the request, and what the items are called."""
    listed = [f"{index}: {clipped(name_of(item), 80)}" for index, item in enumerate(job.items[:_ITEMS])]
    more = f"\n… and {len(job.items) - _ITEMS:,} more" if len(job.items) > _ITEMS else ""
    return (
        f"Rank items for a request.\n{fenced(job.request)}\nThe items by index:\n{fenced(chr(10).join(listed) + more)}"
    )


_TURN = 1
"""The number of the second asking in records and events."""
_SHOWN, _LONGEST, _ITEMS = 4_000, 400, 200


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
