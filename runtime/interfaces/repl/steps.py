"""LWT steps in a session: a script that may refer to every value there is; what it gives is there for the next one."""

import asyncio

from attrs import evolve

from ....lang.dependencies import step_references
from ....lang.diagnostic import Diagnostic, has_errors
from ....lang.trees.lwt import ABSENT, RESERVED, Script
from ...api.checked import check_script
from ...lwt.operations.operation import Workshop
from ...lwt.runner import run as run_script
from ...lwt.script_plan import ScriptPlan
from ...results import Run, StepResult, coercions, plain
from ..counting import Calls
from .commands import counted, refused, warnings
from .desk import Desk
from .outcome import NOTHING, Outcome, Status
from .reading import Piece

__all__ = ["checked", "run"]

_OF_SCRIPTS = frozenset({"LWT017", "LWT031"})
"""Rules about which step is the result: here every step is run for its own sake."""
_STATUSES: dict[str, Status] = {"complete": "done", "partial": "partial", "failed": "failed", "cancelled": "cancelled"}


async def run(piece: Piece, desk: Desk, cancel: asyncio.Event) -> Outcome:
    """Run steps, side by side where they don't need each other. Those that are done are bound, whatever becomes of the others."""
    script, found, plan = _checked(piece, desk)
    if has_errors(found):
        return refused(found, script.source)
    wanted = {reference.name for step in script.steps for reference in step_references(step)} - RESERVED
    before = desk.values.before(sorted(wanted)).without({step.id for step in script.steps})
    shop = None if desk.adapter is None else Workshop(desk.executor_on, desk.state)
    await desk.schema()
    calls = Calls()
    desk.events.subscribe(calls)
    try:
        made = await run_script(
            script, input=desk.input, llm=desk.model, models=desk.models, all_steps=True, events=desk.events,
            cancel=cancel, workshop=shop, plan=plan, before=before, spec=desk.model.spec,
        )  # fmt: skip
    finally:
        desk.events.unsubscribe(calls)
    ids = {step.id: step for step in script.steps}
    for step_id, result in made.steps.items():
        if step_id in ids and result.is_good:
            desk.values.ran(ids[step_id], result)
    return evolve(_outcome(script, made, calls), diagnostics=warnings(found), source=script.source)


def checked(piece: Piece, desk: Desk) -> tuple[Script, list[Diagnostic]]:
    """Return the script of a piece and what is wrong with it here. Nothing is run."""
    return _checked(piece, desk)[:2]


def _checked(piece: Piece, desk: Desk) -> tuple[Script, list[Diagnostic], ScriptPlan]:
    made = check_script(
        piece.source,
        input=ABSENT if desk.input is None else desk.input,
        models=tuple(desk.models),
        given=desk.values.names(),
    )
    return made.script, [each for each in made.diagnostics if each.code not in _OF_SCRIPTS], made.plan


def _outcome(script: Script, run: Run, calls: Calls) -> Outcome:
    order = list(dict.fromkeys(step.id for step in script.steps))
    done = [step for step in order if step in run.steps and run.steps[step].is_good]
    bad = [step for step in order if step in run.steps and not run.steps[step].is_good]
    status = _STATUSES[run.status]
    if status == "failed" and done:
        status = "partial"
    shown = run.final if run.final in done else done[-1] if done else None
    value = NOTHING if shown is None or status == "cancelled" else plain(_value(run.steps[shown]))
    told = [f"({step}): {run.steps[step].reason}" for step in bad] + coercions(run)
    return Outcome(
        status, value, "" if value is NOTHING else _summary(run, shown or "", len(done), calls), "\n".join(told),
        names=tuple(done),
    )  # fmt: skip


def _value(result: StepResult) -> object:
    return result.output if result.value is None and not result.unmet else result.value


def _summary(run: Run, shown: str, done: int, calls: Calls) -> str:
    parts = [f"{counted(plain(_value(run.steps[shown])))} in ({shown})"]
    if done > 1:
        parts.append(f"{done} steps done")
    if calls.calls or calls.cached:
        parts.append(calls.line())
    return " · ".join(parts)
