"""Phase 1 of a ranking: the request and the items go to a model, a script and a message come back, checked before anything runs.

What is wrong with a plan goes back to the model, at most twice: the script as it was read, and the linter's diagnostics as JSON.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from ...lang.diagnostic import Diagnostic, has_errors
from ...lang.source import Source
from ...lang.trees.lwt import Script
from ..commands.excerpts import clipped, fenced
from ..events import RepairAsked
from ..prompting import fill, read_prompt
from ..results import Failed, StepFailed
from ..spending import Spent
from .asking import Job
from .compact import Shown, compact
from .faults import as_lines, as_objects, excerpts, told
from .grammar import SMALL_TOKENS, plan_grammar
from .plan import Plan, read_plan
from .results import Repair
from .skeleton import Checked, checked

__all__ = ["REPAIRS", "Planned", "plan", "plan_prompt"]

REPAIRS = 2
"""How often a plan goes back."""
_LINE = 300
"""Characters of the request in the skeleton's example; the whole of it stands above."""
_QUICK = 8_000
"""Characters of a script that is read and checked at once."""
_WRITTEN = 12_000
"""Characters of a refused script that go back whole; of a longer one excerpts do."""


@frozen
class Planned:
    """A plan that can run: what was read, and its script."""

    read: Plan
    script: Script


def plan_prompt(job: Job, shown: Shown) -> str:
    """Return the prompt of the phase. ``shown``: the items in it."""
    values = {"context": fenced(job.request), "items_compact": fenced(shown.text), "wanted": _line(job)}
    return fill(read_prompt(__package__, "plan"), values)


def _line(job: Job) -> str:
    """Return the request as a script's string has it; what would be a reference there is none."""
    return clipped(job.request, _LINE).replace('"', "'").replace("{", "(").replace("}", ")")


def _held(job: Job) -> dict[str, Any]:
    """Return what holds the model to a plan's form, as far as something can."""
    if not job.means.grammar:
        return {}
    small, line = job.means.small, _line(job)
    held: dict[str, Any] = {"grammar": plan_grammar(len(job.items), line, small=small)}
    most = SMALL_TOKENS + len(line.encode()) if small else job.means.tokens
    return held if most is None or "max_tokens" in job.options else {**held, "max_tokens": most}


async def plan(job: Job, spent: Spent) -> Planned:
    """Return a plan that can run. Raises ``StepFailed`` where a call fails, or the plan is still wrong after the last repair."""
    shown = compact(job.items)
    if shown.warning:
        job.warn(shown.warning)
    first = prompt = plan_prompt(job, shown)
    repairs, held = job.repairs, _held(job)
    while True:
        text = await job.ask("plan", len(repairs), prompt, spent, **held)
        read = read_plan(text, len(job.items))
        # A long script takes its time, in which a time limit has to be heard.
        found = await asyncio.to_thread(_check, job, read) if len(read.skeleton) > _QUICK else _check(job, read)
        if not has_errors(found.diagnostics):
            for note in read.notes:
                job.warn(note)
            return Planned(read, found.script)
        if len(repairs) == REPAIRS:
            again = f" after {REPAIRS} repairs" if REPAIRS else ""
            raise StepFailed(Failed("bad_answer", f"the plan can't be used{again}: {told(found.diagnostics)}"))
        objects = as_objects(found.diagnostics, found.script.source)
        written = found.script.source.text
        repairs.append(Repair(len(repairs) + 1, written, objects))
        if job.events:
            job.events.emit(RepairAsked("rank", "plan", len(repairs), written, objects, job.number))
        prompt = fill(
            read_prompt(__package__, "again"),
            {"prompt": first, "written": fenced(_part(written, objects)), "diagnostics": fenced(as_lines(objects))},
        )


def _part(written: str, objects: Sequence[Mapping[str, Any]]) -> str:
    """Return of a refused script what a prompt shows of it: all, or excerpts around what is wrong."""
    spans = (each["span"] for each in objects if each.get("span"))
    return excerpts(written, [(span["start"], span["end"]) for span in spans], _WRITTEN)


def _check(job: Job, read: Plan) -> Checked:
    """Return the plan's script with all that is wrong with the plan."""
    if not read.skeleton.strip():
        return Checked(Script((), Source("", "<plan>")), read.faults)
    made = checked(read.skeleton.strip("\n"), job.data, job.models)
    diagnostics: tuple[Diagnostic, ...] = (*read.faults, *made.diagnostics)
    return Checked(made.script, diagnostics)
