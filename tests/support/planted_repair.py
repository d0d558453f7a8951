"""Whether a text solves a planted task, and how often its diagnostics had to be sent back before.

Nobody says whether an answer is right before the last text: a round follows while an error, a warning or a failed command is told and
the repairer changes something. So a text that is only warned of costs a round, though it may be right as it is.
"""

import asyncio
import json
from typing import Any

from attrs import frozen
from knotwork import lwt
from knotwork.lang.diagnostic import as_json, has_errors
from knotwork.lang.documents.plan import read_plan
from knotwork.lang.linter.gasl import check_plan
from knotwork.lang.source import Source
from knotwork.runtime.gasl import GASLExecutor
from knotwork.runtime.models.factory import NetworkXAdapter, open_state
from knotwork.runtime.results import ScriptError

from .planted import Task
from .planted_mend import mend

__all__ = ["Trial", "attempt", "solve"]

ROUNDS = 4
Told = list[dict[str, Any]]


@frozen
class Trial:
    """What came of a text: whether it solves its task, in how many repairs, the last text, and what was still wrong."""

    solved: bool
    repairs: int
    text: str
    told: Told


def solve(task: Task, text: str, rounds: int = ROUNDS) -> Trial:
    """Try ``text``; let the repairer mend it up to ``rounds`` times. Each time is one more call of a model's."""
    seen: set[str] = set()
    for repairs in range(rounds + 1):
        answer, told = attempt(task, text)
        seen.add(text)
        mended = mend(text, json.dumps(told)) if told and repairs < rounds else text
        if mended in seen:
            return Trial(answer == task.answer, repairs, text, told)
        text = mended
    raise AssertionError("the last round returns")


def attempt(task: Task, text: str) -> tuple[Any, Told]:
    """Run a text; return its answer (None where it has none) and what is told of it, as JSON."""
    return _plan(task, text) if task.is_graph else _script(task, text)


def _plan(task: Task, text: str) -> tuple[Any, Told]:
    executor = GASLExecutor(NetworkXAdapter(task.data), None, open_state(None))
    read = read_plan(text)
    found = check_plan(read, schema=executor.adapter.schema, state={}, measures=executor.adapter.measures)
    if read.plan is None or has_errors(found):
        return None, [as_json(each, read.source) for each in found]
    records = asyncio.run(executor.arun_plan(read.plan))
    failed = [dict(each.error) | {"command": each.command} for each in records if each.error]
    told = [as_json(each, read.source) for each in found] + failed
    if executor.state.snapshot().kind("answer") != "LIST":
        return None, told
    return _plain(task.fields, executor.state.get("answer")), told


def _plain(fields: tuple[str, ...], found: Any) -> Any:
    """Return a state's answer in the task's form; None for what has another."""
    if not all(isinstance(each, dict) and set(fields) <= set(each) for each in found):
        return None
    return sorted([each[name] for name in fields] if len(fields) > 1 else each[fields[0]] for each in found)


def _script(task: Task, text: str) -> tuple[Any, Told]:
    script = lwt.parse(Source(text), mode="lenient")
    try:
        run = asyncio.run(lwt.run(script, input=task.data))
    except ScriptError as error:
        return None, [as_json(each, error.source) for each in error.diagnostics]
    told = [as_json(each, script.source) for each in lwt.check(script, input=task.data) if each.severity == "warning"]
    failed = [
        {"message": step.failed.message, "hint": step.failed.hint}
        for step in run.steps.values()
        if getattr(step, "failed", None)
    ]
    return run.steps["final"].value if "final" in run.steps else None, told + failed
