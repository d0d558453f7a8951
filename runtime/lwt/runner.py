"""Runs LWT scripts: a checked tree against models, as a whole or while its text is still arriving.

See ``docs/design/lwt.md#meaning``. Nothing runs any more when ``run`` or ``run_stream`` has returned.
"""

import asyncio
from collections.abc import AsyncIterator, Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field

from ...adapters.llm import LLM
from ...lang.dependencies import layers, step_references
from ...lang.diagnostic import has_errors
from ...lang.trees import walk
from ...lang.trees.lwt import ABSENT, RESERVED, Call, Mode, Script, Step
from ..events import Events, RunFinished, RunStarted
from ..results import Before, Record, Run, ScriptError
from ..scheduler import Policy
from .execution import Execution
from .script_plan import ScriptPlan, context_of, plan_of

if TYPE_CHECKING:
    from ...lang.parse.lwt import StepFeed
    from .operations.operation import Workshop

__all__ = ["run", "run_stream"]

MAX_CONCURRENCY = 16
"""Steps, and calls, under way at once where the caller says nothing."""


def _input_of(value: Any) -> Any:
    """Return a run's input as the check takes it: None is no input."""
    return ABSENT if value is None else value


async def run(
    script: Script,
    *,
    input: Any = None,  # the name in the language
    llm: LLM | None = None,
    models: Mapping[str, LLM] | None = None,
    mode: Mode | None = None,
    schedule: Policy = "eager",
    max_concurrency: int = MAX_CONCURRENCY,
    all_steps: bool = False,
    events: Events | None = None,
    record: Record | None = None,
    cancel: asyncio.Event | None = None,
    prompts: bool = False,
    workshop: "Workshop | None" = None,
    folder: Path | None = None,
    spec: str = "",
    plan: ScriptPlan | None = None,
    before: Before | None = None,
    strict_types: bool = False,
) -> Run:
    """Run ``script`` and return what came of it.

    ``input`` is a JSON value (None: there is none); ``llm`` answers, ``models`` are offered to ``model=``; ``mode`` is the
    script's own unless given; ``record`` keeps the run and knows an earlier one; ``prompts`` puts every prompt into the
    trace; ``workshop`` has the graph and the state of ``GASL``; ``folder`` is where ``file=`` lies (None: no files are read);
    ``spec`` is what ``llm`` was opened from, where that is known; ``plan`` is that of ``plan_of`` for this input and these models,
    where it has been made already: the script is not checked again; ``before`` has results that the script may refer to as if it
    had their steps (``plan_of`` was given their names). With ``strict_types`` a typed answer fits only as it stands
    (``lang.coercion``). Setting ``cancel`` ends the run early with status "cancelled" and the results so far.

    Raises ``ScriptError`` for a script with errors, before any call. Failures of steps are results, not exceptions.
    """
    if plan is None:
        earlier = tuple(before.results) if before is not None else ()
        plan = plan_of(script, _input_of(input), tuple(models or ()), earlier, folder=folder)
    plan.require(script)
    graph, final, wanted = plan.graph, plan.final, plan.graph.keys() if all_steps else plan.needed
    execution = Execution.of(
        input, llm, models, mode or script.mode, schedule, max_concurrency, events, record, prompts, workshop, folder, spec,
        strict_types,
    )  # fmt: skip
    execution.scope.expressions = plan.expressions
    if before is not None:
        execution.know(before.without(graph))
    if execution.events:
        planned = {step: graph[step] for step in graph if step in wanted}
        execution.events.emit(RunStarted(tuple(layers(planned)), final))
    winners = {step.id: step for step in script.steps}
    for step, inputs in graph.items():
        if step in wanted:
            execution.add(winners[step], inputs)
        else:
            execution.unneeded(step, final)
    execution.scheduler.close()
    await execution.run_steps(cancel)
    return execution.finish(tuple(graph), final, plan.rule, plan.diagnostics)


async def run_stream(
    chunks: AsyncIterator[str],
    *,
    input: Any = None,  # the name in the language
    llm: LLM | None = None,
    models: Mapping[str, LLM] | None = None,
    max_concurrency: int = MAX_CONCURRENCY,
    events: Events | None = None,
    record: Record | None = None,
    cancel: asyncio.Event | None = None,
    prompts: bool = False,
    workshop: "Workshop | None" = None,
    strict_types: bool = False,
) -> Run:
    """Run a script while its text is still arriving, read leniently.

    A step starts as soon as its text is there and its inputs are ready. Which steps count is decided when all text has
    arrived, as ``run`` decides it: the last of two steps with one id, and what that step does not lead to is left out. A step
    that ran and is written otherwise in the whole script runs again, and so do those that refer to it; what it gave
    is dropped, counted in the cost, and told in a warning. ``GASL`` and plugins, whose effects stay, wait for the whole text.

    Where ``run`` refuses the script, nothing further starts and there is no output: the run is failed, with ``diagnostics``
    that say why; where no step had begun, ``ScriptError`` is raised as by ``run``. What ``chunks`` raises ends the run and
    is raised.
    """
    execution = Execution.of(
        input,
        llm,
        models,
        "lenient",
        "eager",
        max_concurrency,
        events,
        record,
        prompts,
        workshop,
        strict_types=strict_types,
    )
    arrival = _Arrival(execution, input, tuple(models or ()))
    if execution.events:
        execution.events.emit(RunStarted((), ""))
    reader = asyncio.ensure_future(arrival.read(chunks))
    try:
        await execution.run_steps(cancel)
    finally:
        while not reader.done():
            reader.cancel()
            await asyncio.wait([reader])
    if arrival.whole is None:  # cancelled before all text was there
        return execution.finish(tuple(arrival.graph), "", "", arrival.feed.close()[1].diagnostics)
    script, plan = arrival.whole
    if has_errors(plan.diagnostics):
        if not execution.results:
            if execution.events:
                execution.events.emit(RunFinished("failed"))
            raise ScriptError(plan.diagnostics, script.source)
        for step in arrival.graph:
            if step not in execution.results:
                execution.skip(step, "the script has errors")
        return execution.finish(tuple(arrival.graph), "", "", plan.diagnostics)
    if arrival.is_held and not execution.scheduler.cancelled:
        arrival.resume(script, plan)
        await execution.run_steps(cancel)
    return arrival.finish(plan)


_WITHOUT_EFFECT = frozenset({"LLM", "CONST", "EXPR", "EACH", "SEED", "ANSWER"})


@define
class _Arrival:
    """A script that is arriving: what came of it so far, and what of that stays when the whole of it is known."""

    execution: Execution
    input: Any
    models: tuple[str, ...]
    feed: "StepFeed" = field(init=False)
    graph: dict[str, tuple[str, ...]] = field(factory=dict)  # of the steps that were handed on while text arrived
    whole: tuple[Script, ScriptPlan] | None = None
    is_held: bool = False

    def __attrs_post_init__(self) -> None:
        from ...lang.parse.lwt import StepFeed

        self.feed = StepFeed()

    async def read(self, chunks: AsyncIterator[str]) -> None:
        """Take the text to its end and have its steps run; then settle which of them count."""
        try:
            async for chunk in chunks:
                self._take(self.feed.feed(chunk))
            self._close()
        except Exception as error:  # whatever the source of the text raises ends the run, and run() raises it
            self.execution.scheduler.fail(error)

    def _hold(self) -> None:
        self.is_held = True
        self.execution.scheduler.hold()

    def _take(self, steps: list[Step]) -> None:
        if not self.is_held and _lacks_input(self.feed, steps, self.input):
            self._hold()
        for step in steps:
            if self.is_held or not _operations(step) <= _WITHOUT_EFFECT:
                continue
            names = dict.fromkeys(reference.name for reference in step_references(step))
            self.graph[step.id] = tuple(name for name in names if name not in RESERVED)
            self.execution.add(step, self.graph[step.id])
        if self.feed.is_doubtful and not self.is_held:
            self._hold()

    def _close(self) -> None:
        script = self.feed.close()[1]
        plan = plan_of(script, _input_of(self.input), self.models)
        execution = self.execution
        execution.scope.expressions = plan.expressions
        self.whole = (script, plan)
        if has_errors(plan.diagnostics) or self._changed(script):
            self._hold()
        elif not self.is_held:
            execution.forgo([step for step in plan.graph if step not in plan.needed], plan.final)
            self._add_rest(script, plan, self.graph)
        execution.scheduler.close()

    def _add_rest(self, script: Script, plan: ScriptPlan, there: Container[str]) -> None:
        winners = {step.id: step for step in script.steps}
        for step, inputs in plan.graph.items():
            if step in plan.needed and step not in there:
                self.execution.add(winners[step], inputs)

    def _changed(self, script: Script) -> set[str]:
        """Return the steps handed on that the whole script has otherwise or not at all, and all that refer to them."""
        winners = {step.id: step for step in script.steps}
        changed = [
            step for step in self.graph if step not in winners or winners[step].call != self.execution.call_of(step)
        ]
        dependents: dict[str, list[str]] = {}
        for step, inputs in self.graph.items():
            for name in inputs:
                dependents.setdefault(name, []).append(step)
        found = set(changed)
        for step in changed:  # grows while it is gone through
            new = [name for name in dependents.get(step, ()) if name not in found]
            found.update(new)
            changed += new
        return found

    def resume(self, script: Script, plan: ScriptPlan) -> None:
        """Run what is left, once nothing is under way: the steps that never began, and those that changed."""
        execution = self.execution
        kept = {step for step in execution.results if step in self.graph} - self._changed(script)
        execution.renew(kept)
        for step in plan.graph:
            if step not in plan.needed and step not in execution.results:
                execution.unneeded(step, plan.final)
        self._add_rest(script, plan, execution.results)
        execution.scheduler.close()

    def finish(self, plan: ScriptPlan) -> Run:
        """Sum up a run whose script is whole and without errors."""
        execution = self.execution
        for step, result in execution.results.items():
            if step not in plan.needed and (result.status != "skipped" or result.unmet):
                execution.exclude(step, plan.final)
        return execution.finish(tuple(plan.graph), plan.final, plan.rule, plan.diagnostics)


def _lacks_input(feed: "StepFeed", steps: list[Step], input: Any) -> bool:
    """Tell whether one of ``steps``, which have just arrived, refers to what the input does not have."""
    if not any(reference.name == "input" for step in steps for reference in step_references(step)):
        return False
    from ...lang.linter.lwt import input_faults

    part = Script(tuple(steps), feed.source, "lenient")
    return bool(input_faults(context_of(part, _input_of(input))))


def _operations(step: Step) -> set[str]:
    return {node.operation for node in walk(step) if isinstance(node, Call)}
