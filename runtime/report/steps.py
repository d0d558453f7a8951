"""Describes the executed steps in plain English: converts the entries of the history for the page."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from ...lang.diagnostic import has_errors
from ...lang.parse.gasl import parse_command
from ...lang.printer.gasl_printer import format_condition, format_pattern
from ...lang.trees import conditions as c
from ...lang.trees import gasl as g
from ..gasl.records import coverage
from .account import figure

# Descriptions of commands and conditions, for readers who do not know the language.

_LONGEST = 160

_OPERATORS = {
    "=": "is", "!=": "is not", "<": "is below", "<=": "is at most", ">": "is above", ">=": "is at least",
    "IN": "is one of", "NOT IN": "is none of", "CONTAINS": "contains", "STARTS_WITH": "starts with",
    "ENDS_WITH": "ends with", "MATCHES": "matches",
}  # fmt: skip
_KINDS = {"LIST": "a list", "DICT": "a collection of named values", "COUNTER": "a counter"}
_SETS = {"UNION": "the items in", "INTERSECT": "the items both in", "EXCEPT": "the items in"}


def describe_command(command: g.Command) -> str:
    """Return a description of a command: one sentence without a period."""
    match command:
        case g.Declare(key, type):
            return f"Set up “{key.text}”, {_KINDS[type]}, to be filled"
        case g.Reset(key):
            return f"Emptied “{key.text}”"
        case g.Update(key, source, mode):
            if mode == "REPLACE":
                return f"Replaced the content of “{key.text}” by “{source.text}”"
            return f"Added “{source.text}” to “{key.text}”"
        case g.Param(name, type):
            return f"Took the parameter “{name.text}”, {_TYPES[type]}"
        case g.Find(kind, where, _, limit):
            what = {"nodes": "things", "edges": "connections"}[kind]
            return f"Looked in the graph for {what}{_whose(where)}{_limit(limit, command.per)}"
        case g.FindPatterns(patterns, where, _, limit):
            shown = ", ".join(format_pattern(pattern) for pattern in patterns)
            return f"Looked in the graph for the pattern {_shortened(shown)}{_whose(where)}{_limit(limit, command.per)}"
        case g.FindPaths():
            return _paths(command)
        case g.FindCycles(via, where, max_length, limit):
            over = f" over connections{_whose(via)}" if via is not None else ""
            within = f" of at most {_counted(max_length, 'connection')}" if max_length is not None else ""
            return f"Looked for ways that return to their start{over}{within}{_whose(where)}{_limit(limit)}"
        case g.Walk(source, via, depth):
            within = _counted(1 if depth is None else depth, "connection")
            return f"Went from “{source.text}” to the things within {within}{_over(via)}{_direction(command)}"
        case g.Subgraph(source, radius):
            return f"Took the part of the graph within {_counted(radius, 'connection')} of “{source.text}”"
        case g.Connect(left, right, via):
            return f"Looked for connections between “{left.text}” and “{right.text}”{_whose(via)}"
        case g.Measure(source, algorithm, _, edges, settings, weight):
            whole = f"the graph made of “{edges.text}”" if edges is not None else "the whole graph"
            measured = whole if source is None else f"“{source.text}” in {whole}"
            given = [f"{name} {_value(constant.value)}" for name, constant in settings]
            chosen = f", with {_and(given)}" if given else ""
            weighted = f", weighted by {_left(weight)}" if weight is not None else ""
            return f"Measured {algorithm} of {measured}{chosen}{weighted}"
        case g.Select():
            return _selection(command)
        case g.Unnest(source, by):
            return f"Made a row for each element of {by.column} in “{source.text}”"
        case g.Count(source, by):
            return f"Counted “{source.text}”" + (f" by {_and([each.column for each in by])}" if by else "")
        case g.Aggregate(source, by, computations):
            made = [_computed(each) for each in computations]
            each_group = f" for each {_and([each.column for each in by])}" if by else ""
            return f"Worked out {_and(made)} of “{source.text}”{each_group}"
        case g.Rank(source, order, limit):
            sorted_by = [f"{_left(each.value)}, {'highest' if each.descending else 'lowest'} first" for each in order]
            return f"Sorted “{source.text}” by {'; then by '.join(sorted_by)}{_limit(limit, command.per)}"
        case g.Join(left, right, on):
            pairs = [f"{_left(pair.left)} {_alike(command)} {_left(pair.other)}" for pair in on]
            kept = f", keeping all of “{left.text}”" if command.outer else ""
            return f"Matched “{left.text}” with “{right.text}” where {_and(pairs)}{kept}"
        case g.SetOperation(kind, left, right):
            middle = {"UNION": "or", "INTERSECT": "and in", "EXCEPT": "but not in"}[kind]
            return f"Took {_SETS[kind]} “{left.text}” {middle} “{right.text}”"
        case g.Process(source, instruction):
            return f"Asked the model about “{source.text}”: {_quoted(instruction)}"
        case g.Classify(source, instruction, labels):
            return f"Asked the model to label each of “{source.text}” as {_or(labels)}: {_quoted(instruction)}"
        case g.Analyze(key, instruction):
            return f"Asked the model about “{key.text}”: {_quoted(instruction)}"
        case g.Require(source):
            return f"Made sure that “{source.text}” exists"
        case g.Assert(condition):
            return f"Made sure that {_describe_condition(condition)}"
        case g.On(status, source, then):
            return f"If the status of “{source.text}” is {status.lower().replace('_', ' ')}: {_then(then)}"
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
            return f"Tried {_counted(len(steps), 'step')} together: all of them take effect, or none"


_TYPES = {"TEXT": "a text", "INT": "a whole number", "FLOAT": "a number", "BOOL": "true or false", "LIST": "a list"}


def _selection(command: g.Select) -> str:
    what = _and([each.column for each in command.columns]) + " of " if command.columns else ""
    taken = f"Kept {what}“{command.source.text}”"
    if command.where is not None:
        taken += f", for the items{_whose(command.where)}" if command.columns else f": the items{_whose(command.where)}"
    if command.distinct:
        taken += ", without repetitions"
    return taken + (f", a sample of {_number(command.sample)}" if command.sample is not None else "")


def _computed(made: g.Computation) -> str:
    function = {"count": "number", "collect": "list"}.get(made.function, made.function)
    different = "different " if made.distinct else ""
    return f"the {function} of {different}{_left(made.value)}" if made.value is not None else f"the {function}"


def _alike(command: g.Join) -> str:
    return "is spelt like" if command.similar is not None else "equals"


def _number(number: int | c.Variable) -> str:
    return f"{number:,}" if isinstance(number, int) else _left(number)


def _then(command: g.Command) -> str:
    text = describe_command(command)
    return text[:1].lower() + text[1:]


def _paths(command: g.FindPaths) -> str:
    ends = [
        f" {word} “{end.text}”" if isinstance(end, g.Name) else f" {word} things{_whose(end)}"
        for word, end in (("from", command.start), ("to", command.end))
        if end is not None
    ]
    kind = "ways"
    if command.shortest:
        number = f"{_number(command.count)} " if command.count is not None else ""
        kind = f"the {number}shortest ways"
        if command.cost is not None:
            kind = f"the {number}ways with the least sum of {_left(command.cost)}"
    within = f" of at most {_counted(command.max_length, 'connection')}" if command.max_length is not None else ""
    where = f"{_over(command.via)}{_direction(command)}{within}{_whose(command.where)}"
    return f"Looked for {kind} through the graph{''.join(ends)}{where}{_limit(command.limit)}"


def _over(via: c.Condition | None) -> str:
    return f", over connections{_whose(via)}" if via is not None else ""


def _direction(command: g.FindPaths | g.Walk) -> str:
    words = {"in": ", against the direction of the connections", "both": ", in either direction"}
    return words.get(command.direction or "out", "")


def _whose(condition: c.Condition | None) -> str:
    return f" whose {_describe_condition(condition)}" if condition is not None else ""


def _describe_condition(condition: c.Condition) -> str:
    match condition:
        case c.Comparison(left, operator, right):
            shown = _or([_value(item.value) for item in right.items]) if isinstance(right, c.Items) else _left(right)
            return f"{_left(left)} {_OPERATORS[operator]} {shown}"
        case c.NullTest(left, negated):
            return f"{_left(left)} is {'known' if negated else 'missing'}"
        case c.Increasing(field):
            return f"{field.text} never decreases along the way"
        case c.Not(operand):
            return f"it is not true that {_describe_condition(operand)}"
        case c.And(operands):
            return _shortened(" and ".join(_inner(operand) for operand in operands[:20]))
        case c.Or(operands):
            return _shortened(" or ".join(_inner(operand) for operand in operands[:20]))


def _inner(condition: c.Condition) -> str:
    return (
        f"({_describe_condition(condition)})" if isinstance(condition, c.And | c.Or) else _describe_condition(condition)
    )


def _left(value: c.Value) -> str:
    match value:
        case c.Length(c.Variable(name)):
            return f"the number of “{name}”"
        case c.Length(operand):
            return f"the length of {_left(operand)}"
        case c.Variable(name, path):
            return f"{'.'.join(map(str, path))} of “{name}”" if path else f"“{name}”"
        case c.Field(path, quantifier):
            name = ".".join(path)
            return f"{quantifier} of the {name}" if quantifier else name
        case c.Constant(constant):
            return _value(constant)
    return _shortened(format_condition(value))


def _value(value: Any) -> str:
    return _quoted(value) if isinstance(value, str) else _shortened(json.dumps(value, default=str))


def _quoted(text: str) -> str:
    return f"“{_shortened(' '.join(text.split()))}”"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _limit(limit: int | c.Variable | None, per: Sequence[c.Value] = ()) -> str:
    each = f" for each {_and([_left(value) for value in per])}" if per else ""
    return "" if limit is None else f", {_number(limit)} at most{each}"


def _counted(count: int | c.Variable, noun: str) -> str:
    return f"{_number(count)} {noun}{'' if count == 1 else 's'}"


def _and(parts: list[str]) -> str:
    return _joined(parts, "and")


def _or(parts: Any) -> str:
    return _joined([str(part) for part in parts], "or")


def _joined(parts: list[str], word: str) -> str:
    if len(parts) > 8:
        parts = [*parts[:8], f"{len(parts) - 8:,} more"]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


_FIRST, _LAST = 200, 800
"""Number of entries shown from the beginning and from the end of a long history (possibly a million entries)."""

_OUTCOMES = {
    "success": "done", "empty": "nothing found", "partial": "in part", "binding_failure": "failed: a variable or key is missing",
    "schema_mismatch": "failed: a value has the wrong shape", "error": "failed", "cancelled": "cancelled",
}  # fmt: skip
_ROLLBACK = "rollback"
_SETTING_UP = ("DECLARE", "RESET")
"""Commands whose count is the size of existing data, not the size of a result."""


@frozen
class Step:
    """One step as shown.

    ``depth`` is 0 for a top-level step, more for a nested step; ``left_out`` is the number of hidden entries before the step.
    """

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
    message = str(error.get("message", "")) if isinstance(error, Mapping) else ""
    metrics = entry.get("metrics")
    message = "; ".join(filter(None, (message, *(coverage(metrics) if isinstance(metrics, Mapping) else ()))))
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
        message,
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
