"""Rules about ``JOIN`` and ``CALL``: the lists and columns of a join, as far as they are known before the run, and the functions."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from ...catalogue.operations import COMMON_OPTIONS
from ...diagnostic import Diagnostic, Edit
from ...literals import Reading, kind_of, short
from ...source import NOWHERE, Span
from ...trees.lwt import (
    MISSING,
    Call,
    Choice,
    Key,
    ListValue,
    Option,
    Reference,
    Scalar,
    Slice,
    Template,
    Value,
    Word,
    json_value,
)
from .context import Context, lint

MOST_LISTS = 8
"""Maximum number of lists of a ``JOIN``."""
MOST_COLUMNS = 4
"""Maximum number of columns of ``on=``."""
_SHOWN = 8
"""Maximum number of names that a message lists."""
_ROWS = 10_000
"""Maximum number of rows whose columns are read before a run."""


def joined_lists(call: Call) -> tuple[Option, ...]:
    """Return the options of a ``JOIN`` that name its lists, in source order."""
    return tuple(option for option in call.options if option.name not in ("on", "how", *COMMON_OPTIONS))


def joined_columns(value: Value | None) -> tuple[Template, ...]:
    """Return the strings of ``on=``; empty if the option is missing or invalid."""
    parts = value.items if isinstance(value, ListValue) else (value,)
    if len(parts) > MOST_COLUMNS:
        return ()
    return tuple(part for part in parts if isinstance(part, Template) and part.constant)


def _joins(context: Context) -> Iterator[Call]:
    return (call for call, _ in context.calls if call.operation == "JOIN" and "JOIN" in context.operations)


@lint("LWT021")
def lists_of_join(context: Context) -> Iterator[Diagnostic]:
    """Report joins of fewer than two or more than eight lists, and ``how=`` without ``on=``."""
    for call in _joins(context):
        lists, how = joined_lists(call), call.option("how")
        if call.arguments:
            yield _unnamed_lists(context, call, lists)
        elif not 2 <= len(lists) <= MOST_LISTS:
            message = f"JOIN takes 2 to {MOST_LISTS} lists, not {len(lists)}"
            hint = f"give each list a name: `{context.operations['JOIN'].example}`"
            yield context.diagnostic("LWT021", message, call.span, hint)
        if how is not None and call.option("on") is None:
            hint = 'name the common column, `on="id"`, or remove `how`'
            yield context.diagnostic("LWT021", "`how` has no effect without `on`", how.span, hint)


def _unnamed_lists(context: Context, call: Call, lists: tuple[Option, ...]) -> Diagnostic:
    """Return a diagnostic about lists without a name. The edits name each list like the last part of its reference."""
    taken = {option.name for option in call.options}
    edits: list[Edit] = []
    for value in call.arguments:
        name = _name_of(value)
        if not name or name in taken or value.span == NOWHERE:
            edits.clear()
            break
        taken.add(name)
        edits.append(Edit(Span(value.span.start, value.span.start), f"{name}="))
    if not 2 <= len(edits) + len(lists) <= MOST_LISTS:
        edits = []
    hint = f"give each list a name: `{context.operations['JOIN'].example}`"
    return context.diagnostic("LWT021", "JOIN takes its lists by name", call.arguments[0].span, hint, edits=edits)


def _name_of(value: Value) -> str:
    """Return the name that a list has in a join; "" if its reference has no part that can be a name."""
    if not isinstance(value, Reference):
        return ""
    keys = [each.value for each in value.accessors if isinstance(each, Key)]
    name = str(keys[-1] if keys else value.name)
    reserved = ("on", "how", *COMMON_OPTIONS)
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,60}", name) and name not in reserved else ""


@frozen
class _Side:
    """The known facts about a list of a join. ``fault`` says why the value is not a list; ``columns`` is None if they are unknown."""

    fault: str = ""
    length: int | None = None
    columns: Sequence[str] | None = None
    element: str = ""
    """The kind of the elements in words, if no element is an object."""


@lint("LWT052")
def unsuited_join(context: Context) -> Iterator[Diagnostic]:
    """Report values that are not lists, lists of different lengths, and columns that no row has."""
    for call in _joins(context):
        lists, columns = joined_lists(call), joined_columns(call.option("on"))
        sides = [(option, _side(context, option.value)) for option in lists]
        for option, side in sides:
            if side.fault:
                message = f"JOIN needs a list as `{option.name}`, not {side.fault}"
                yield context.diagnostic("LWT052", message, option.value.span, "refer to a list")
            for column in columns:
                yield from _column(context, option, side, column)
        known = [(option, side.length) for option, side in sides if side.length is not None]
        if call.option("on") is None and len({length for _, length in known}) > 1:
            lengths = ", ".join(f"`{option.name}` has {length:,}" for option, length in known)
            message = f"without `on` the lists must have equal lengths, but {lengths}"
            yield context.diagnostic("LWT052", message, call.span, 'join them by a common column: `on="id"`')


def _column(context: Context, option: Option, side: _Side, column: Template) -> Iterator[Diagnostic]:
    name = column.constant or ""
    if side.element:
        message = f"the elements of `{option.name}` are {side.element}, so they have no column {short(name)}"
        yield context.diagnostic("LWT052", message, option.value.span, "join objects, or join by position without `on`")
    elif side.columns is not None and name not in side.columns:
        near = context.suggestion(name, side.columns)
        there = f"its columns are {', '.join(map(short, side.columns[:_SHOWN]))}" if side.columns else ""
        hint = f"did you mean {short(near)}?" if near else there
        edits = [Edit(column.span, f'"{near}"')] if near and column.span != NOWHERE and '"' not in near else []
        message = f"no row of `{option.name}` has the column {short(name)}"
        yield context.diagnostic("LWT052", message, column.span, hint, edits=edits)


def _side(context: Context, value: Value) -> _Side:
    """Return what is known about a value before the run."""
    found = known_value(context, value)
    if found is not MISSING:
        return _of_value(found)
    if not isinstance(value, Reference) or value.accessors or (step := context.steps.get(value.name)) is None:
        return _Side()
    call, nested = step.call, False
    if call.operation == "EACH" and len(call.arguments) == 2 and isinstance(call.arguments[1], Call):
        call, nested = call.arguments[1], True
    if call.operation == "JOIN" and not nested:
        return _Side(columns=[option.name for option in joined_lists(call)])
    if call.operation != "LLM":
        return _Side()
    kind = call.option("type")
    if isinstance(kind, Choice):
        scalar = "strings" if nested else "the label of a choice"
    else:
        name = kind.value if isinstance(kind, Word) else kind.constant if isinstance(kind, Template) else None
        words = {"int": ("a number", "numbers"), "float": ("a number", "numbers"), "bool": ("true or false",) * 2,
                 "text": ("a string", "strings")}  # fmt: skip
        scalar = words[name][nested] if name in words else ""
    if scalar:
        return _Side(element=scalar) if nested else _Side(fault=scalar)
    option = call.option("schema")
    schema = None if option is None else json_value(option)
    return _of_schema(schema if nested or not isinstance(schema, Mapping) else schema.get("items"))


def known_columns(context: Context, value: Value) -> Sequence[str] | None:
    """Return the columns of a list that are known before the run; None if they are not known."""
    return _side(context, value).columns


def _of_schema(schema: Any) -> _Side:
    """Return what is known about a list whose elements have this schema."""
    if not isinstance(schema, Mapping):
        return _Side()
    properties = schema.get("properties")
    is_open = schema.get("additionalProperties") or "patternProperties" in schema
    return _Side() if not isinstance(properties, Mapping) or is_open else _Side(columns=list(properties))


def _of_value(value: Any) -> _Side:
    if not isinstance(value, list | tuple):
        return _Side(fault=kind_of(value))
    rows = [row for row in value[:_ROWS] if isinstance(row, Mapping)]
    if value and not rows and len(value) <= _ROWS:
        return _Side(length=len(value), element="no objects")
    is_read = len(value) <= _ROWS
    columns = dict.fromkeys(key for row in rows for key in row) if is_read and rows else None
    return _Side(length=len(value), columns=None if columns is None else list(columns))


def known_value(context: Context, value: Value) -> Any:
    """Return the value if it is known before the run: a constant, the output of a CONST, or a part of a known input."""
    if isinstance(value, ListValue):
        found = json_value(value)
        return found if found is not MISSING else MISSING
    if isinstance(value, Scalar | Template):
        return json_value(value)
    if not isinstance(value, Reference):
        return MISSING
    found = MISSING
    step = context.steps.get(value.name)
    if value.name == "input":
        found = context.input if isinstance(context.input, Mapping | list | str) else MISSING
    elif step is not None and step.call.operation == "CONST" and len(step.call.arguments) == 1:
        found = json_value(step.call.arguments[0]) if step.call.option("when") is None else MISSING
    for accessor in value.accessors:
        if isinstance(accessor, Slice) and isinstance(found, list):
            found = found[accessor.start : accessor.stop]
        elif isinstance(accessor, Key) and isinstance(found, Mapping) and accessor.value in found:
            found = found[accessor.value]
        else:
            return MISSING  # another rule checks paths into the input
    if isinstance(found, str):
        reading = context.reading(found)
        found = reading.value if isinstance(reading, Reading) else found
    return found


@lint("LWT048")
def unknown_function(context: Context) -> Iterator[Diagnostic]:
    """Report calls of functions that the host does not offer."""
    if context.functions is None:
        return
    for call, _ in context.calls:
        name = call.arguments[0] if call.operation == "CALL" and len(call.arguments) == 1 else None
        if not isinstance(name, Template) or name.constant is None or name.constant in context.functions:
            continue
        near = context.suggestion(name.constant, context.functions)
        there = f"the functions are {', '.join(sorted(context.functions)[:_SHOWN])}"
        hint = f"did you mean `{near}`?" if near else there
        if not context.functions:
            hint = "`knotwork run --functions FILE.py` offers functions, and so does `functions=` of `lwt.run`"
        edits = [Edit(name.span, f'"{near}"')] if near and name.span != NOWHERE else []
        message = f"unknown function {short(name.constant)}"
        yield context.diagnostic("LWT048", message, name.span, hint, edits=edits)
