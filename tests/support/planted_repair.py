"""Whether a text solves a planted task, and the dumb repairer of the oracle whose texts are corrupted.

The repairer sees its own text and the JSON of our diagnostics and of failed or empty commands, and nothing else: neither the task, nor the
graph, nor the correct text. It applies the edits that are offered, else puts the offered name in the place of the faulty
one, else writes what the hint says is missing. Each round is one more call of a model's.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

from attrs import frozen
from knotwork import lwt
from knotwork.lang.diagnostic import Edit, apply_edits, as_json, has_errors
from knotwork.lang.documents.plan import read_plan
from knotwork.lang.linter.gasl import check_plan
from knotwork.lang.source import Source, Span
from knotwork.runtime.executor import GASLExecutor
from knotwork.runtime.results import ScriptError
from knotwork.runtime.wiring import NetworkXAdapter, open_state

from .planted import Task

__all__ = ["Trial", "attempt", "mend", "solve"]

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
    """Try ``text``; let the repairer mend it up to ``rounds`` times."""
    seen: set[str] = set()
    for repairs in range(rounds + 1):
        answer, told = attempt(task, text)
        if answer == task.answer or not told or repairs == rounds:
            return Trial(answer == task.answer, repairs, text, told)
        seen.add(text)
        mended = mend(text, told)
        if mended in seen:
            return Trial(False, repairs, text, told)
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
    warned = [as_json(each, read.source) for each in found]
    told = warned + [dict(each.error) | {"command": each.command} for each in records if each.error]
    if executor.state.snapshot().kind("answer") != "LIST":
        return None, told
    return _plain(task.kind, executor.state.get("answer")), told


def _plain(kind: str, found: Any) -> Any:
    """Return a state's answer in the task's form; None for what has another."""
    fields = ("field", "count") if kind == "count" else ("id",)
    if not all(isinstance(each, dict) and set(fields) <= set(each) for each in found):
        return None
    return sorted([each["field"], each["count"]] if kind == "count" else each["id"] for each in found)


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


# The repairer


def mend(text: str, told: Told) -> str:
    """Return the text with what is told put right, as far as a program without a thought can."""
    edits: list[Edit] = []
    for each in told:
        mine = _edits(text, each, told)
        if not any(_overlap(edit.span, other.span) for edit in mine for other in edits):
            edits += mine
    if not edits:  # nothing else is offered: of the names that a hint lists the nearest, in the first place
        edits = next((mine for each in told if (mine := _nearest(text, each))), [])
    return apply_edits(text, edits)


def _edits(text: str, told: dict[str, Any], others: Told) -> list[Edit]:
    if told.get("edits"):
        return [Edit(Span(each["start"], each["end"]), each["text"]) for each in told["edits"]]
    if "span" not in told:
        return _named(text, told["message"], [told.get("hint") or ""])
    span, hints = told["span"], told["hints"]
    offered = _offered(hints) or _written(hints)
    if offered is not None and span:
        return [Edit(Span(span["start"], span["end"]), offered)]
    return _missing(text, told, others)


def _offered(hints: Sequence[str]) -> str | None:
    found = next((match for hint in hints if (match := re.search(r"did you mean `?([^`?]+)`?\?", hint))), None)
    return None if found is None else found[1]


def _written(hints: Sequence[str]) -> str | None:
    """Return what a hint says to write instead: ``write X``, ``write X; because``, or the first word of a form with dots."""
    found = next((match[1] for hint in hints if (match := re.match(r"write ([^;,]+?)(?:;.*)?$", hint))), None)
    return found.split()[0] if found and "..." in found else found


def _nearest(text: str, told: dict[str, Any]) -> list[Edit]:
    """Put the name that is most like the faulty one in its place, of those that a hint lists: ``there are: a, b``."""
    span = told.get("span")
    listed = [
        name
        for hint in told.get("hints", ())
        if (match := re.match(r"(?:there are|nodes have|edges have|the keys here are|it is one of):? (.*)", hint))
        for name in re.findall(r"[\w.]+", match[1])
    ]
    if not span or not listed:
        return []
    word = text[span["start"] : span["end"]]
    found = max(listed, key=lambda name: SequenceMatcher(None, name, word).ratio())
    return [Edit(Span(span["start"], span["end"]), found)]


def _named(text: str, message: str, hints: Sequence[str]) -> list[Edit]:
    """A command that ran names the value that is not there and the one that was meant: put it there, wherever that stands."""
    missing = re.search(r'there is no key "([^"]+)"', message)
    for hint in hints:
        found = re.search(r'has no "([^"]+)"; did you mean "([^"]+)"', hint)
        old, new = (found[1], found[2]) if found else (missing and missing[1], _offered([hint]))
        if old and new:
            quoted = re.finditer(rf"(?<=[\"']){re.escape(old)}(?=\\?[\"'])", text)
            return [Edit(Span(each.start(), each.end()), new) for each in quoted]
    return []


def _missing(text: str, told: dict[str, Any], others: Told) -> list[Edit]:
    """Write what is said to be missing: a closing bracket, a key of the plan, a variable behind AS."""
    message, span = told["message"], told.get("span")
    if closing := re.search(r"ends before the `([}\]])`", message):
        return [Edit(Span(len(text), len(text)), closing[1])]
    if re.fullmatch(r"(why|plan_id|commands) is missing", message):
        name = message.split()[0]
        strangers = [each for each in others if each.get("code") == "PLAN002" and not each["edits"]]
        if len(strangers) == 1:  # one key is missing and one is unknown: it is that one
            there = strangers[0]["span"]
            return [Edit(Span(there["start"], there["end"]), json.dumps(name))]
        at = text.find("{") + 1
        return [Edit(Span(at, at), f'"{name}": "repaired",')] if at else []
    if told.get("code") == "PLAN002" and span and not any("is missing" in each["message"] for each in others):
        member = re.compile(r'"[^"]*"\s*:\s*[^,{}\[\]]+,?').match(text, span["start"])
        return [Edit(Span(*member.span()), "")] if member else []  # there is no such key: leave it out
    if "AS and a name are missing" in message and span:
        unbound = [
            re.search(r"nothing binds the variable (\w+)", each["message"]) for each in others if "message" in each
        ]
        name = next((match[1] for match in unbound if match), "found")
        return [Edit(Span(span["end"], span["end"]), f" AS {name}")]
    return []


def _overlap(a: Span, b: Span) -> bool:
    return (a.start < b.end and b.start < a.end) or a.start == b.start
