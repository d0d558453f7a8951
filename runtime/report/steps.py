"""Describes the executed steps in plain English: converts the entries of the history for the page."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from ...lang.diagnostic import has_errors
from ...lang.parse.gasl import parse_command
from ...lang.trees import conditions as c
from ...lang.trees import gasl as g
from .account import figure

# Descriptions of commands and conditions, for readers who do not know the language.

_LONGEST = 160

_OPERATORS = {
    "=": "is", "!=": "is not", "<": "is below", "<=": "is at most", ">": "is above", ">=": "is at least",
    "IN": "is one of", "NOT IN": "is none of", "CONTAINS": "contains", "STARTS_WITH": "starts with",
    "ENDS_WITH": "ends with", "MATCHES": "matches",
}  # fmt: skip
_KINDS = {"LIST": "a list", "DICT": "a collection of named values", "COUNTER": "a counter"}
_SETS = {"UNION": "all that is in", "INTERSECT": "what is both in", "EXCEPT": "what is in"}


def describe_command(command: g.Command) -> str:
    """Return a description of a command: one sentence without a period."""
    match command:
        case g.Declare(key, type):
            return f"Set up “{key.text}”, {_KINDS[type]}, to be filled"
        case g.Reset(key):
            return f"Emptied “{key.text}”"
        case g.Update(key, source, mode):
            verb = "Replaced what is in" if mode == "REPLACE" else "Added to"
            return f"{verb} “{key.text}” what was found as “{source.text}”"
        case g.Find(kind, where, _, limit):
            what = {"nodes": "things", "edges": "connections"}[kind]
            return f"Looked in the graph for {what}{_whose(where)}{_limit(limit)}"
        case g.FindPaths():
            return _paths(command)
        case g.Walk(source, _, depth):
            return f"Went from “{source.text}” to what lies within {_counted(depth or 1, 'connection')}"
        case g.Subgraph(source, radius):
            return f"Took the part of the graph within {_counted(radius, 'connection')} of “{source.text}”"
        case g.Connect(left, right):
            return f"Looked for connections between “{left.text}” and “{right.text}”"
        case g.Measure(source, algorithm):
            return f"Measured {algorithm} of {_quoted_name(source)}"
        case g.SelectFields(source, fields):
            return f"Kept {_and([path.text for path in fields])} of “{source.text}”"
        case g.SelectWhere(source, where):
            return f"Kept of “{source.text}” those{_whose(where)}"
        case g.Count(source, by):
            return f"Counted “{source.text}”" + (f" by {by.text}" if by else "")
        case g.Aggregate(source, by, computations):
            made = [f"the {n.function} of {n.field.text}" if n.field else f"the {n.function}" for n in computations]
            return f"Worked out {_and(made)} of “{source.text}” for each {by.text}"
        case g.Rank(source, by, descending, limit):
            return f"Sorted “{source.text}” by {by.text}, {'highest' if descending else 'lowest'} first{_limit(limit)}"
        case g.Join(left, right, left_field, right_field):
            return f"Matched “{left.text}” with “{right.text}” where {left_field.text} equals {right_field.text}"
        case g.SetOperation(kind, left, right):
            middle = "but not in" if kind == "EXCEPT" else "and in"
            return f"Took {_SETS[kind]} “{left.text}” {middle} “{right.text}”"
        case g.Process(source, instruction):
            return f"Asked the model, for what was found as “{source.text}”: {_quoted(instruction)}"
        case g.Classify(source, instruction, labels):
            return f"Asked the model to label each of “{source.text}” as {_or(labels)}: {_quoted(instruction)}"
        case g.Analyze(key, instruction):
            return f"Asked the model about “{key.text}”: {_quoted(instruction)}"
        case g.Require(source):
            return f"Made sure that there is “{source.text}”"
        case g.Assert(condition):
            return f"Made sure that {_describe_condition(condition)}"
        case g.On(status, source, then):
            return f"Had “{source.text}” come out {status.lower().replace('_', ' ')}: {_then(then)}"
        case g.Branch(condition, then, otherwise):
            other = f"; otherwise: {_then(otherwise)}" if otherwise is not None else ""
            return f"If {_describe_condition(condition)}: {_then(then)}{other}"
        case g.Explain(inner):
            return f"Planned without executing: {_then(inner)}"
        case g.SetCommand(key, value):
            return f"Set {key.text} to {_value(value)}"
        case g.Cancel(plan):
            return f"Cancelled the plan {_quoted(plan)}"
        case g.Try(body):
            steps = [item for item in body if isinstance(item, g.Statement)]
            return f"Tried {_counted(len(steps), 'step')} together: all of them count, or none"


def _then(command: g.Command) -> str:
    text = describe_command(command)
    return text[:1].lower() + text[1:]


def _paths(command: g.FindPaths) -> str:
    ends = [
        f" {word} “{end.text}”" if isinstance(end, g.Name) else f" {word} things{_whose(end)}"
        for word, end in (("from", command.start), ("to", command.end))
        if end is not None
    ]
    kind = "the shortest ways" if command.shortest else "ways"
    over = f", over connections{_whose(command.via)}" if command.via is not None else ""
    within = f" of at most {_counted(command.max_length, 'connection')}" if command.max_length else ""
    return f"Looked for {kind} through the graph{''.join(ends)}{over}{within}{_whose(command.where)}{_limit(command.limit)}"


def _whose(condition: c.Condition | None) -> str:
    return f" whose {_describe_condition(condition)}" if condition is not None else ""


def _describe_condition(condition: c.Condition) -> str:
    match condition:
        case c.Comparison(left, operator, right):
            return f"{_left(left)} {_OPERATORS[operator]} {_right(right)}"
        case c.NullTest(left, negated):
            return f"{_left(left)} is {'known' if negated else 'missing'}"
        case c.Not(operand):
            return f"it is not so that {_describe_condition(operand)}"
        case c.And(operands):
            return _shortened(" and ".join(_inner(operand) for operand in operands[:20]))
        case c.Or(operands):
            return _shortened(" or ".join(_inner(operand) for operand in operands[:20]))


def _inner(condition: c.Condition) -> str:
    return (
        f"({_describe_condition(condition)})" if isinstance(condition, c.And | c.Or) else _describe_condition(condition)
    )


def _left(left: c.Field | c.Variable | c.Length) -> str:
    match left:
        case c.Length(variable):
            return f"the number of “{variable.name}”"
        case c.Variable(name):
            return f"“{name}”"
        case c.Field(path, quantifier):
            name = ".".join(path)
            return f"{quantifier} of the {name}" if quantifier else name


def _right(right: c.Constant | c.Items | c.Variable) -> str:
    match right:
        case c.Variable(name, path):
            return f"{'.'.join(map(str, path))} of “{name}”" if path else f"“{name}”"
        case c.Items(items):
            return _or([_value(item.value) for item in items])
        case c.Constant(value):
            return _value(value)


def _value(value: Any) -> str:
    return _quoted(value) if isinstance(value, str) else _shortened(json.dumps(value, default=str))


def _quoted(text: str) -> str:
    return f"“{_shortened(' '.join(text.split()))}”"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _quoted_name(source: g.Name | None) -> str:
    return "the whole graph" if source is None else f"“{source.text}”"


def _limit(limit: int | None) -> str:
    return "" if limit is None else f", {limit:,} at most"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _and(parts: list[str]) -> str:
    return _joined(parts, "and")


def _or(parts: Any) -> str:
    return _joined([str(part) for part in parts], "or")


def _joined(parts: list[str], word: str) -> str:
    if len(parts) > 8:
        parts = [*parts[:8], f"{len(parts) - 8:,} more"]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


_FIRST, _LAST = 200, 800
"""Number of entries that are shown from the beginning and from the end of a long history, which may have a million entries."""

_OUTCOMES = {
    "success": "done", "empty": "nothing found", "partial": "in part", "binding_failure": "failed: a variable or key is missing",
    "schema_mismatch": "failed: a value has the wrong shape", "error": "failed", "cancelled": "cancelled",
}  # fmt: skip
_ROLLBACK = "rollback"
_SETTING_UP = ("DECLARE", "RESET")
"""Commands whose count is the size of existing data, not the size of a result."""


@frozen
class Step:
    """One step as shown. ``depth``: 0 for a top-level step, more for a nested step. ``left_out``: number of hidden entries before it."""

    number: str
    depth: int
    words: str
    command: str
    why: str
    status: str
    outcome: str
    message: str
    rolled_back: bool
    left_out: int = 0


def steps_of(history: Sequence[Any]) -> list[Step]:
    """Return the steps of a history; for a long history, only the first and the last steps. A step precedes its nested steps."""
    if len(history) <= _FIRST + _LAST:
        return list(_steps(history))
    gap = len(history) - _FIRST - _LAST
    return [*_steps(history[:_FIRST]), *_steps(history[-_LAST:], left_out=gap)]


def _steps(entries: Iterable[Any], left_out: int = 0) -> Iterator[Step]:
    last = ("", "")
    for entry in _in_order(entry for entry in entries if isinstance(entry, Mapping)):
        why = (str(entry.get("plan_id") or ""), str(entry.get("why") or ""))
        yield _step(entry, "" if why == last else why[1], left_out)
        last, left_out = why, 0


def _in_order(entries: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield each step before its nested steps. In the history, a step comes after its nested steps, because it ended later."""
    parts: list[Mapping[str, Any]] = []
    for entry in entries:
        if entry.get("part") and entry["part"] != _ROLLBACK:
            parts.append(entry)
            continue
        yield entry
        yield from parts
        parts = []
    yield from parts


def _step(entry: Mapping[str, Any], why: str, left_out: int) -> Step:
    command, status = str(entry.get("command", "")), str(entry.get("status") or "success")
    summary, error, part = entry.get("summary"), entry.get("error"), str(entry.get("part") or "")
    count = summary.get("count") if isinstance(summary, Mapping) and figure(summary, "count") is not None else None
    outcome = _OUTCOMES.get(status, status)
    if count is not None and not command.upper().startswith(_SETTING_UP) and status in ("success", "partial"):
        outcome = f"{count:,} {'in part' if status == 'partial' else 'in all'}"
    message = error.get("message", "") if isinstance(error, Mapping) else ""
    number = "" if part == _ROLLBACK else f"{entry.get('step', '')}{f'.{part}' if part else ''}"
    depth = 0 if part in ("", _ROLLBACK) else min(part.count(".") + 1, 4)
    return Step(
        number,
        depth,
        command_words(command),
        command,
        why,
        status,
        outcome,
        str(message),
        bool(entry.get("rolled_back")),
        left_out,
    )


def command_words(command: str) -> str:
    """Return the command in words; a command that can't be parsed, or is truncated, is returned verbatim (at most 300 characters)."""
    if command.startswith("knotwork state rollback "):
        return f"Restored the state of {command.rsplit(' ', 1)[1][:12]}"
    program = parse_command(command)
    if has_errors(program.diagnostics) or len(program.statements) != 1:
        return command if len(command) <= 300 else f"{command[:299]}…"
    return describe_command(program.statements[0].command)
