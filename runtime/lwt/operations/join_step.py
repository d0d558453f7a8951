"""The operation JOIN, which joins lists by position or by equal values in columns. It calls no model."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from ....lang.catalogue.operations import BUILTIN
from ....lang.diagnostic import nearest
from ....lang.linter.lwt.joins import MOST_LISTS, joined_lists
from ....lang.literals import Reading, kind_of, read, short
from ....lang.source import Span
from ....lang.trees.lwt import Call, Reference, Value
from ...results import Failed, Outcome, StepFailed
from ...templates import Scope, text_of
from ..files_beside import invalid
from .operation import Context, option_value, read_options

_JOIN = BUILTIN["JOIN"]
MOST_ROWS = 1_000_000
"""Maximum number of rows of a join."""
MOST_CHARACTERS = 100_000_000
"""Maximum characters of a join whose rows are repeated."""
_SHOWN = 8
"""Maximum number of columns that a message lists."""


async def run_join(call: Call, context: Context) -> Outcome:
    """Join the lists. The output is a list of objects with an element of each list, or null, under the name of the list.

    The rows are in the order of the first list, then in that of the second, and so on. When a run is resumed, the lists are
    joined again from the saved values.
    """
    rows = joined(call, context.scope)
    return Outcome(text_of(rows), rows)


def joined(call: Call, scope: Scope) -> list[dict[str, Any]]:
    """Return the rows of a JOIN call. Raises ``StepFailed``."""
    options, named = read_options(call, _JOIN), joined_lists(call)
    if not 2 <= len(named) <= MOST_LISTS:
        message = f"JOIN takes 2 to {MOST_LISTS} lists, not {len(named)}"
        raise invalid(message, call.span, f"for example {_JOIN.example}")
    lists = {option.name: _list_of(option.name, option.value, scope) for option in named}
    spans = {option.name: option.value.span for option in named}
    on = options.get("on")
    if on is None:
        if "how" in options:
            raise invalid("how= has no effect without on=", call.span, 'name the common column: on="id"')
        return _by_position(lists, call.span)
    return _by_columns(lists, on, options.get("how", "inner") == "left", spans, call.span)


def _list_of(name: str, value: Value, scope: Scope) -> list[Any]:
    found = option_value(value, scope)
    if isinstance(found, str):  # a part of an answer or of the input may be a text that contains a list
        reading = read(found)
        if isinstance(reading, Reading):
            if isinstance(value, Reference):
                scope.note(value, len(value.accessors), reading.how)
            found = reading.value
    if not isinstance(found, list | tuple):
        raise StepFailed(Failed("reference", f"JOIN needs a list as {name}=, not {kind_of(found)}", span=value.span))
    return list(found)


def _by_position(lists: Mapping[str, list[Any]], span: Span) -> list[dict[str, Any]]:
    lengths = {name: len(items) for name, items in lists.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name}= has {length:,}" for name, length in lengths.items())
        message = f"without on= the lists must have equal lengths, but {shown}"
        raise StepFailed(Failed("operation", message, 'join them by a common column: on="id"', span))
    _refuse_many(next(iter(lengths.values())), span)
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def _by_columns(
    lists: Mapping[str, list[Any]], on: Sequence[str], keeps: bool, spans: Mapping[str, Span], span: Span
) -> list[dict[str, Any]]:
    keys = {name: _keys(name, items, on, spans[name]) for name, items in lists.items()}
    first, *others = lists
    found: list[dict[Hashable, list[Any]]] = []
    for name in others:
        rows: dict[Hashable, list[Any]] = {}
        for key, item in zip(keys[name], lists[name], strict=True):
            if key is not None:
                rows.setdefault(key, []).append(item)
        found.append(rows)
    nothing: list[Any] = [None] if keeps else []

    def partners(key: Hashable) -> list[list[Any]]:
        return [nothing if key is None else rows.get(key, nothing) for rows in found]

    count = sum(prod(map(len, partners(key))) for key in keys[first])
    _refuse_many(count, span)
    if count > sum(map(len, lists.values())):  # rows are repeated
        _refuse_large(lists[first], keys[first], partners, span)
    return [
        {first: item, **dict(zip(others, row, strict=True))}
        for key, item in zip(keys[first], lists[first], strict=True)
        for row in product(*partners(key))
    ]


def _refuse_many(rows: int, span: Span) -> None:
    if rows > MOST_ROWS:
        hint = "join on further columns, or join fewer rows"
        raise StepFailed(
            Failed("operation", f"the join would have {rows:,} rows; at most {MOST_ROWS:,} are allowed", hint, span)
        )


def _refuse_large(
    items: Sequence[Any], keys: Sequence[Hashable], partners: Callable[[Hashable], list[list[Any]]], span: Span
) -> None:
    """Raise ``StepFailed`` if the repeated rows would fill the memory: large elements can be repeated a million times."""
    size, sums = 0, dict[Hashable, tuple[int, int]]()
    for item, key in zip(items, keys, strict=True):
        if key not in sums:
            found = partners(key)
            count = prod(map(len, found))
            length = sum(count // len(rows) * sum(len(text_of(row)) for row in rows) for rows in found) if count else 0
            sums[key] = (count, length)
        count, length = sums[key]
        size += count * len(text_of(item)) + length
    if size > MOST_CHARACTERS:
        message = f"the join would have {size:,} characters; at most {MOST_CHARACTERS:,} are allowed"
        raise StepFailed(Failed("operation", message, "join on further columns, or join smaller rows", span))


def _keys(name: str, items: Sequence[Any], on: Sequence[str], span: Span) -> list[Hashable]:
    """Return the key of each row; None for a row that matches nothing, because one of its columns is null or missing."""
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            message = f"on= joins objects, but element {index} of {name}= is {kind_of(item)}"
            raise StepFailed(Failed("operation", message, "join by position, without on=", span))
    for column in on:
        if items and not any(column in item for item in items):
            there = list(dict.fromkeys(key for item in items[:1000] for key in item))
            near = nearest(column, there)
            shown = f"its columns are {', '.join(map(short, there[:_SHOWN]))}" if there else "its rows are empty"
            hint = f"did you mean {short(near)}?" if near else shown
            raise StepFailed(Failed("operation", f"no row of {name}= has the column {short(column)}", hint, span))
    return list(_row_keys(items, on))


def _row_keys(items: Sequence[Any], on: Sequence[str]) -> Iterator[Hashable]:
    for item in items:
        values = [item.get(column) for column in on]
        yield None if None in values else tuple(map(_key, values))


def _key(value: Any) -> Hashable:
    """Return ``value`` in a form that can be compared: 1 equals 1.0, but neither true nor "1"."""
    if isinstance(value, bool) or value is None:
        return ("constant", value)
    if isinstance(value, int | float):
        return ("number", value)
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ("object", frozenset((key, _key(inner)) for key, inner in value.items()))
    return ("list", tuple(map(_key, value)))
