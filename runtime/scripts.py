"""Runs LWT scripts: a checked tree against models, as a whole or while its text is still arriving.

Design: LWT, section "Meaning". Nothing runs any more when ``run`` or ``run_stream`` has returned.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from ..adapters.llm import LLM
from ..lang.dependencies import final_step, layers, step_references
from ..lang.diagnostic import Diagnostic, has_errors
from ..lang.lwt import RESERVED, Mode, Script, Step
from ..lang.operations import BUILTIN
from .events import Events, RunStarted
from .execution import Execution
from .operations import OPERATIONS, signatures
from .results import Before, Record, Run, ScriptError
from .scheduler import Policy

if TYPE_CHECKING:
    from ..lang.linter.lwt import Context
    from ..lang.parse.expr import ExprRead
    from ..lang.parse.lwt import StepFeed
    from .operations.workshop import Workshop

__all__ = ["Plan", "check", "planned", "require", "run", "run_stream"]

MAX_CONCURRENCY = 16
"""Steps, and calls, under way at once where the caller says nothing."""


def check(
    script: Script, input: Any = None, models: Collection[str] | None = None, given: Collection[str] = ()
) -> list[Diagnostic]:
    """Return what reading and linting find in ``script``, by place.

    ``input`` is what a run will get (None: nothing is known of it), ``models`` the names that the host offers (None:
    any), ``given`` what it may refer to beside its steps. Plugins that the script names count as operations.
    """
    from ..lang.linter.lwt import MISSING, diagnose

    return diagnose(_context(script, MISSING if input is None else input, models, given))


def _context(script: Script, input: Any, models: Collection[str] | None, given: Collection[str] = ()) -> "Context":
    from ..lang.linter.lwt import Context

    named = {step.call.operation for step in script.steps}
    known = signatures(named) if named - OPERATIONS.keys() else BUILTIN
    return Context(script, input, known, models, given)


def require(script: Script, input: Any = None, models: Collection[str] = ()) -> None:
    """Raise ``ScriptError`` for a script with errors: what ``run`` does first, for what must not begin otherwise."""
    _checked(script, input, models)


def planned(script: Script, input: Any = None, models: Collection[str] = (), given: Collection[str] = ()) -> "Plan":
    """Return the plan of a run, to be given to ``run``: who has many runs in one loop makes it in a thread.

    ``input`` is the run's (None: it has none, so a script that refers to it has an error).
    Its ``diagnostics`` are those of ``check``; where there are errors among them ``run`` raises.
    """
    return _plan(script, input, tuple(models), tuple(given))


def _checked(script: Script, input: Any, models: Collection[str] | None) -> "Plan":
    return _sound(script, _plan(script, input, tuple(models or ())))


def _sound(script: Script, plan: "Plan") -> "Plan":
    if has_errors(plan.diagnostics):
        raise ScriptError(plan.diagnostics, script.source)
    return plan


@frozen
class Plan:
    """What a script says about its run: what is wrong with it, what refers to what, and which steps the result needs.

    ``expressions`` are those in it by their text.
    """

    diagnostics: tuple[Diagnostic, ...]
    graph: dict[str, tuple[str, ...]]
    final: str
    rule: str
    needed: set[str]
    expressions: "dict[str, ExprRead]"


def _plan(script: Script, input: Any, models: tuple[str, ...], given: tuple[str, ...] = ()) -> Plan:
    """Check the script and choose its steps.

    Scripts never change, so without an input this is worked out once for each script and models, and kept with it like
    its other derived properties: a server runs one script many times.
    """
    plans: dict[tuple[str, ...], Plan] = vars(script).setdefault("_plans", {})
    plain = input is None and not given
    plan = plans.get(models) if plain else None
    if plan is None:
        from ..lang.linter.lwt import ABSENT, diagnose

        context = _context(script, ABSENT if input is None else input, models, given)
        final, rule = context.final or ("", "last")
        found = tuple(diagnose(context))
        plan = Plan(found, context.graph, final, rule, context.needed, context.expressions)
        if plain:
            plans[models] = plan
    return plan


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
    plan: Plan | None = None,
    before: Before | None = None,
) -> Run:
    """Run ``script`` and return what came of it.

    ``input`` is a JSON value (None: there is none); ``llm`` answers, ``models`` are offered to ``model=``; ``mode`` is the
    script's own unless given; ``record`` keeps the run and knows an earlier one; ``prompts`` puts every prompt into the
    trace; ``workshop`` has the graph and the state of ``GASL``; ``folder`` is where ``file=`` lies (None: no files are read);
    ``spec`` is what ``llm`` was opened from, where that is known; ``plan`` is that of ``planned`` for just this input and
    these models, where it has been made already; ``before`` has results that the script may refer to as if it had their steps
    (``planned`` was given their names). Setting ``cancel`` ends the run early
    with status "cancelled" and the results so far.

    Raises ``ScriptError`` for a script with errors, before any call. Failures of steps are results, not exceptions.
    """
    if plan is None:
        plan = _plan(script, input, tuple(models or ()), tuple(before.results) if before is not None else ())
    _sound(script, plan)
    graph, final, wanted = plan.graph, plan.final, plan.graph.keys() if all_steps else plan.needed
    execution = Execution.of(
        input, llm, models, mode or script.mode, schedule, max_concurrency, events, record, prompts, workshop, folder, spec
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
) -> Run:
    """Run a script while its text is still arriving, read leniently.

    A step starts as soon as its text is there and its inputs are ready; every step runs, since which one is final shows
    only at the end. A step that refers to one that never comes is skipped; of a duplicate id the first one stands.
    Errors in the text are warnings by then, and the run is partial at best. A text without a step raises ``ScriptError``, and
    so does a step that refers to what the input does not have, as soon as it arrives: no call is begun after that.
    What ``chunks`` raises ends the run and is raised.
    """
    from ..lang.parse.lwt import StepFeed

    execution = Execution.of(input, llm, models, "lenient", "eager", max_concurrency, events, record, prompts, workshop)
    feed, graph = StepFeed(), dict[str, tuple[str, ...]]()

    def take(steps: list[Step]) -> None:
        _require_input(feed, steps, input)
        for step in steps:
            if step.id in graph or step.id in RESERVED:
                execution.warn(step.id, "the id is taken; the first step with it stands")
                continue
            names = dict.fromkeys(reference.name for reference in step_references(step))
            graph[step.id] = tuple(name for name in names if name not in RESERVED)
            execution.add(step, graph[step.id])

    async def arrive() -> Script | None:
        try:
            async for chunk in chunks:
                take(feed.feed(chunk))
            rest, script = feed.close()
            take(rest)
            execution.scheduler.close()
        except Exception as error:  # whatever the source of the text raises ends the run, and run() raises it
            execution.scheduler.fail(error)
            return None
        return script

    if execution.events:
        execution.events.emit(RunStarted((), ""))
    reader = asyncio.ensure_future(arrive())
    try:
        await execution.run_steps(cancel)
    finally:
        while not reader.done():
            reader.cancel()
            await asyncio.wait([reader])
    script = (None if reader.cancelled() else reader.result()) or feed.close()[1]
    if not script.steps or (not execution.results and has_errors(script.diagnostics)):
        raise ScriptError(script.diagnostics, script.source)
    for diagnostic in script.diagnostics:
        if diagnostic.severity == "error":
            execution.warn("", diagnostic.message)
    known = {step: tuple(name for name in inputs if name in graph) for step, inputs in graph.items()}
    chosen = final_step(evolve(script, items=tuple(s for s in script.steps if s.id in graph)), known)
    final, rule = chosen or ("", "last")
    return execution.finish(tuple(graph), final, rule, script.diagnostics)


def _require_input(feed: "StepFeed", steps: list[Step], input: Any) -> None:
    """Raise ``ScriptError`` where one of ``steps``, which have just arrived, refers to what the input does not have."""
    if not any(reference.name == "input" for step in steps for reference in step_references(step)):
        return
    from ..lang.linter.lwt import ABSENT, input_faults

    part = Script(tuple(steps), feed.source, "lenient")
    if found := input_faults(_context(part, ABSENT if input is None else input, None)):
        raise ScriptError(found, part.source)
