"""Runs LWT scripts with models: complete scripts, or scripts whose text is still arriving.

See ``docs/design/lwt.md#meaning``. When ``run`` or ``run_stream`` returns, no task is still running.
"""

import asyncio
from collections.abc import AsyncIterator, Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field

from ...adapters.llm import LLM
from ...adapters.llm.conversation import unsupported
from ...lang.dependencies import layers, step_references
from ...lang.diagnostic import Diagnostic, has_errors
from ...lang.trees.lwt import ABSENT, RESERVED, Mode, Script, Step, Template, calls_of
from ..events import Events, RunFinished, RunStarted
from ..results import Before, Record, Run, ScriptError
from ..scheduler import Policy
from .execution import Execution
from .operations import Host
from .script_plan import ScriptPlan, context_of, own_file, plan_of

if TYPE_CHECKING:
    from ...lang.parse.lwt import StepFeed
    from ..models.caller import Spent
    from .operations.operation import Workshop

MAX_CONCURRENCY = 16
"""Default maximum number of concurrent steps, and of concurrent calls."""


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
    host: "Host | None" = None,
    refuses_options: bool = True,
    lost: "Spent | None" = None,
) -> Run:
    """Run ``script`` and return the finished run.

    ``input`` is a JSON value (None: no input). ``llm`` is the default model, ``models`` are the models for ``model=``. ``mode``
    overrides the script's mode. ``record`` saves the run and recalls results of an earlier attempt. ``prompts`` adds every
    prompt to the trace. ``workshop`` has the graph and the state for ``GASL``. ``folder`` is the folder for ``file=`` (None: no
    files are read). ``spec`` is the spec from which ``llm`` was opened, if known. ``plan`` is an existing result of ``plan_of``
    for this input and these models; the script is then not checked again. ``before`` has earlier results, to which the script
    may refer as to results of its own steps; their names must have been passed to ``plan_of``. With ``strict_types`` a typed
    answer must match exactly (``lang.coercion``). ``host`` has the functions for ``CALL`` and further operations. Setting ``cancel``
    ends the run early with status "cancelled" and the results so far. If the task is cancelled, ``lost`` receives the run's cost.

    Raises ``ScriptError`` for a script with errors and for options that a model can't take, before any call. With
    ``refuses_options=False``, such an option fails only its step: for scripts that a model wrote. Failures of steps are results, not
    exceptions.
    """
    if plan is None:
        earlier = tuple(before.results) if before is not None else ()
        offered = host or Host()
        plan = plan_of(
            script, ABSENT if input is None else input, tuple(models or ()), earlier, folder=folder,
            operations=offered.signatures(script), functions=tuple(offered.functions),
        )  # fmt: skip
    plan.require(script)
    from .nested_script import run_script  # imports this module's execution

    host = evolve(host or Host(), run_script=run_script)
    graph, final, wanted = plan.graph, plan.final, plan.graph.keys() if all_steps else plan.needed
    if refuses_options and (faults := _unsupported(script, wanted, llm, models or {})):
        raise ScriptError(faults, script.source)
    execution = Execution.of(
        input, llm, models, mode or script.mode, schedule, max_concurrency, events, record, prompts, workshop, folder, spec,
        strict_types, host, own_file(script) if folder is not None else (),
    )  # fmt: skip
    execution.scope.expressions = plan.expressions
    if before is not None:
        execution.know(before.without(graph))
    if execution.events:
        planned = {step: graph[step] for step in graph if step in wanted}
        run_id = record.run_id if record is not None else ""
        execution.events.emit(RunStarted(tuple(layers(planned)), final, "script", script.source.name, run_id))
    winners = {step.id: step for step in plan.script.steps}
    for step, inputs in graph.items():
        if step in wanted:
            execution.add(winners[step], inputs)
        else:
            execution.unneeded(step, final)
    execution.scheduler.close()
    try:
        await execution.run_steps(cancel)
    except asyncio.CancelledError:
        if lost is not None:
            lost.include(execution.spent())
        raise
    return execution.finish(tuple(graph), final, plan.rule, plan.diagnostics_of(wanted))


def _unsupported(script: Script, steps: Container[str], llm: LLM | None, models: Mapping[str, LLM]) -> list[Diagnostic]:
    """Return a diagnostic for each option of a call in ``steps`` that its model can't take, such as a seed."""
    found = []
    for step, call in script.calls:
        if not call.options or call.operation not in ("LLM", "ANSWER") or step.id not in steps:
            continue
        model = call.option("model")
        name = model.constant if isinstance(model, Template) else None
        reasons = unsupported(llm if model is None else models.get(name or ""))
        for option in call.options if reasons else ():
            if option.name in reasons:
                message = f"the model of ({step.id}) can't take `{option.name}`: {reasons[option.name]}"
                hint = "remove the option, or use another model"
                found.append(Diagnostic("LWT054", "error", message, option.span, (hint,)))
    return found


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
    host: "Host | None" = None,
) -> Run:
    """Run a script while its text is still arriving, in lenient mode.

    A step starts as soon as its text has arrived and its inputs are ready. When all text has arrived, steps are chosen as in
    ``run``: of several steps with the same id the last is used, and steps that the final step does not need are skipped. If a step
    ran but differs in the complete script, the step and the steps that refer to it run again; the first result is dropped with a
    warning, but its cost counts. ``GASL``, plugins, and functions and operations of ``host`` have lasting effects, so they wait for
    the complete text.

    If ``run`` would reject the script, no further step starts, and the run fails without output, with ``diagnostics``. If no step
    had started, ``ScriptError`` is raised as in ``run``. An exception raised by ``chunks`` ends the run and is raised again.
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
        host=host,
    )
    arrival = _Arrival(execution, ABSENT if input is None else input, tuple(models or ()))
    if execution.events:
        run_id = record.run_id if record is not None else ""
        execution.events.emit(RunStarted((), "", "script", run=run_id))
    reader = asyncio.ensure_future(arrival.read(chunks))
    try:
        await execution.run_steps(cancel)
    finally:
        while not reader.done():
            reader.cancel()
            await asyncio.wait([reader])
    if arrival.whole is None:  # cancelled before all text had arrived
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


_WITHOUT_EFFECT = frozenset({"LLM", "CONST", "EXPR", "EACH", "JOIN", "SEED", "ANSWER"})


@define
class _Arrival:
    """A script whose text is arriving. Knows the results so far, and which of them remain valid for the complete script."""

    execution: Execution
    input: Any
    models: tuple[str, ...]
    feed: "StepFeed" = field(init=False)
    graph: dict[str, tuple[str, ...]] = field(factory=dict)  # inputs of the steps that were added while text arrived
    whole: tuple[Script, ScriptPlan] | None = None
    is_held: bool = False

    def __attrs_post_init__(self) -> None:
        from ...lang.parse.lwt import StepFeed

        self.feed = StepFeed()

    async def read(self, chunks: AsyncIterator[str]) -> None:
        """Read the text to its end and run its steps; then determine which steps belong to the complete script."""
        try:
            async for chunk in chunks:
                self._take(self.feed.feed(chunk))
            self._close()
        except Exception as error:  # an exception raised by ``chunks`` ends the run and is raised again later
            self.execution.scheduler.fail(error)

    def _hold(self) -> None:
        self.is_held = True
        self.execution.scheduler.hold()

    def _take(self, steps: list[Step]) -> None:
        if not self.is_held and _lacks_input(self.feed, steps, self.input):
            self._hold()
        for step in steps:
            operations = {call.operation for call in calls_of(step)}
            if self.is_held or not operations <= _WITHOUT_EFFECT:
                continue
            names = dict.fromkeys(reference.name for reference in step_references(step))
            self.graph[step.id] = tuple(name for name in names if name not in RESERVED)
            self.execution.add(step, self.graph[step.id])
        if self.feed.is_doubtful and not self.is_held:
            self._hold()

    def _close(self) -> None:
        script = self.feed.close()[1]
        offered = self.execution.host
        plan = plan_of(
            script, self.input, self.models, operations=offered.signatures(script), functions=tuple(offered.functions)
        )
        execution = self.execution
        execution.scope.expressions = plan.expressions
        self.whole = (script, plan)
        if has_errors(plan.diagnostics) or self._changed_steps(script):
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

    def _changed_steps(self, script: Script) -> set[str]:
        """Return the added steps that differ or are missing in the complete script, and all steps that refer to them."""
        winners = {step.id: step for step in script.steps}
        changed = [
            step for step in self.graph if step not in winners or winners[step].call != self.execution.call_of(step)
        ]
        dependents: dict[str, list[str]] = {}
        for step, inputs in self.graph.items():
            for name in inputs:
                dependents.setdefault(name, []).append(step)
        found = set(changed)
        for step in changed:  # the list grows during the iteration
            new = [name for name in dependents.get(step, ()) if name not in found]
            found.update(new)
            changed += new
        return found

    def resume(self, script: Script, plan: ScriptPlan) -> None:
        """Run the remaining steps, which never started or have changed. Nothing else may be running."""
        execution = self.execution
        kept = {step for step in execution.results if step in self.graph} - self._changed_steps(script)
        execution.renew(kept)
        for step in plan.graph:
            if step not in plan.needed and step not in execution.results:
                execution.unneeded(step, plan.final)
        self._add_rest(script, plan, execution.results)
        execution.scheduler.close()

    def finish(self, plan: ScriptPlan) -> Run:
        """Return the finished run of a complete script without errors."""
        execution = self.execution
        ran = [step for step, result in execution.results.items() if result.status != "skipped" or result.unmet]
        for step in ran:
            if step not in plan.needed:
                execution.exclude(step, plan.final)
        return execution.finish(tuple(plan.graph), plan.final, plan.rule, plan.diagnostics_of(ran))


def _lacks_input(feed: "StepFeed", steps: list[Step], input: Any) -> bool:
    """Return whether one of the newly arrived ``steps`` refers to a missing part of the input."""
    if not any(reference.name == "input" for step in steps for reference in step_references(step)):
        return False
    from ...lang.linter.lwt import input_faults

    part = Script(tuple(steps), feed.source, "lenient")
    return bool(input_faults(context_of(part, input)))
