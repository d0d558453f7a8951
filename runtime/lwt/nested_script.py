"""The operation RUN, which runs another script as a step, with the run's models, limits, events, trace and record."""

import asyncio
from pathlib import Path

from attrs import evolve, frozen

from ...adapters.llm import Usage
from ...lang.catalogue.operations import BUILTIN
from ...lang.dependencies import step_references
from ...lang.diagnostic import Diagnostic
from ...lang.source import Source
from ...lang.trees.lwt import ABSENT, MISSING, Call, Script
from ..results import Failed, Outcome, StepFailed, StepResult, add_costs
from .execution import Execution
from .files_beside import invalid, path_beside, read_beside
from .operations.named_files import nesting_fault
from .operations.operation import Context, option_value, read_options
from .script_plan import ScriptPlan, context_of, plan_of

_RUN = BUILTIN["RUN"]


@frozen
class _Nested:
    """A script that RUN has read, and its plan. The input is not known when the plan is made."""

    script: Script
    plan: ScriptPlan
    reads_input: bool


async def run_script(call: Call, context: Context) -> Outcome:
    """Run the script with its input. The output is the output of its final step.

    Its steps are ``STEP/INNER`` in events, the trace and the record, so that a resumed run repeats only what is missing. If a
    step of the script fails but the final step has an output, the output is incomplete.
    """
    options = read_options(call, _RUN)
    if "file" not in options:
        raise invalid("RUN lacks file=", call.span, f"for example {_RUN.example}")
    name, has_input = options["file"], "input" in options
    path = path_beside(name, context.folder, ".lwt", call.span)
    nested = _nested(name, path, has_input, call, context)
    value = option_value(options["input"], context.scope) if has_input else None
    if nested.reads_input and value is None:
        raise StepFailed(Failed("input", f"the input of {name} is null", "add a condition: when=", call.span))
    script, plan = nested.script, nested.plan
    if nested.reads_input:
        from ...lang.linter.lwt import input_faults

        found = input_faults(context_of(script, value, operations=context.host.signatures(script)))
        _refuse(found, Source(script.source.text, name), call)
    scripts = (*context.scripts, path)
    execution = Execution.inside(context, value, script.mode, scripts, "eager", context.caller.limit)
    execution.scope.expressions = plan.expressions
    winners = {step.id: step for step in script.steps}
    for step, inputs in plan.graph.items():
        if step in plan.needed:
            execution.add(winners[step], inputs)
    execution.scheduler.close()
    try:
        await execution.run_steps(None)
    except asyncio.CancelledError:
        for result in execution.results.values():  # the outer step has no result
            context.caller.lost.add(result.calls, result.usage, result.cost)
        raise
    return _outcome(name, plan.final, execution.results, call)


def _nested(name: str, path: Path, has_input: bool, call: Call, context: Context) -> _Nested:
    """Return the checked script. Raises ``StepFailed`` with its first error, for a circle and for too deep a nesting.

    The check before the run has found all of this already, unless a file has changed.
    """
    if message := nesting_fault(name, path, context.scripts):
        raise invalid(message, call.span)
    known = context.host.nested.get((path, has_input))
    if isinstance(known, _Nested):
        return known
    from ...lang.parse.lwt import parse_lwt

    script = parse_lwt(Source(read_beside(name, context.folder, ".lwt", call), str(path)))
    plan = plan_of(
        script, MISSING if has_input else ABSENT, tuple(context.caller.models), folder=path.parent,
        operations=context.host.signatures(script), functions=tuple(context.host.functions),
        scripts=(*context.scripts, path),
    )  # fmt: skip
    _refuse(plan.diagnostics, Source(script.source.text, name), call)
    reads = any(reference.name == "input" for step in plan.script.steps for reference in step_references(step))
    made = _Nested(plan.script, plan, reads)
    context.host.nested[path, has_input] = made
    return made


def _refuse(found: "tuple[Diagnostic, ...] | list[Diagnostic]", source: Source, call: Call) -> None:
    first = next((each for each in found if each.severity == "error"), None)
    if first is not None:
        line = f":{source.position(first.span.start)[0]}" if first.span is not None else ""
        hint = "; ".join((*first.hints, f"knotwork check {source.name} lists all errors"))
        raise invalid(f"{source.name}{line}: {first.message} ({first.code})", call.span, hint)


def _outcome(name: str, final: str, results: dict[str, StepResult], call: Call) -> Outcome:
    usage, cost, calls = Usage(), None, 0
    for result in results.values():
        if result.calls:
            usage += result.usage
            cost = add_costs(cost, result.cost)
            calls += result.calls
    failed = [result for result in results.values() if result.status == "failed"]
    last = results.get(final)
    if last is None or not last.is_good:
        why = failed[0] if failed else last
        reason = f"{name}: the step ({final}) has no output" if why is None else f"{name}: ({why.id}): {why.reason}"
        kind = why.failed.kind if why is not None and why.failed is not None else "script"
        raise StepFailed(Failed(kind, reason, span=call.span), usage=usage, cost=cost, calls=calls)
    faults = [Failed("partial", f"{name}: ({result.id}) failed: {result.reason}", span=call.span) for result in failed]
    for result in results.values():
        faults += [
            evolve(each, kind="partial", message=f"{name}: ({result.id}): {_item(each)}{each.message}", span=call.span, item=None)
            for each in result.failed_items
        ]  # fmt: skip
    reused = not calls and any(result.reused for result in results.values())
    return Outcome(last.output, last.value, usage, cost, calls, calls, reused=reused, failed_items=tuple(faults))


def _item(failed: Failed) -> str:
    return "" if failed.item is None else f"item {failed.item}: "
