"""Notes on the items of JOIN, INTERSECT and EXCEPT that have no partner: how many, and whether only a type prevents a match."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from ....lang.literals import short
from ....lang.printer.gasl_printer import format_condition
from ....lang.trees.gasl import Join, SetOperation
from .bindings import Rows
from .columns import Column

if TYPE_CHECKING:
    from ....adapters.columns import Array


@frozen
class Alone:
    """The number of items of one side without a partner, and how many of them have a null in their key."""

    count: int = 0
    nulls: int = 0

    @classmethod
    def of(cls, columns: Sequence[Column], places: "Array") -> "Alone":
        """Count the items at ``places``; ``columns`` are the parts of the keys of this side."""
        rows = places.tolist()
        return cls(len(rows), sum(any(made.values[at] is None for made in columns) for at in rows))


def unmatched_note(left: Rows, right: Rows, lefts: Alone, rights: Alone, *, outer: bool) -> str:
    """Return a note on the left and right items without a partner; "" if every item has one.

    With ``outer``, the left items are in the result nevertheless.
    """
    parts = []
    for alone, rows, others, kept in ((lefts, left, right, outer), (rights, right, left, False)):
        if not alone.count:
            continue
        nulls = f" ({alone.nulls:,} because of a null)" if alone.nulls else ""
        effect = (
            f"the fields of {others.name} are null"
            if kept
            else f"{'it is' if alone.count == 1 else 'they are'} left out"
        )
        verb = "has" if alone.count == 1 else "have"
        parts.append(f"{alone.count:,} of {_items(rows)} {verb} no partner in {others.name}{nulls}: {effect}")
    return "; ".join(parts)


def _items(rows: Rows) -> str:
    return f"{len(rows):,} {'item' if len(rows) == 1 else 'items'} of {rows.name}"


def type_note(
    command: Join | SetOperation, left: Sequence[Column], right: Sequence[Column], lefts: "Array", rights: "Array"
) -> str:
    """Return a note on items without a partner whose key equals a key of the other side except for its type, such as 1 and "1".

    ``lefts`` and ``rights`` are the positions of the items without a partner. The note is "" if no such items exist.
    """
    if all(len(_kinds(own) | _kinds(other)) < 2 for own, other in zip(left, right, strict=True)):
        return ""
    parts = []
    for name, own, alone, others in (
        (command.left.text, left, lefts, right),
        (command.right.text, right, rights, left),
    ):
        known: dict[tuple[str, ...], tuple[Any, ...]] = {}
        for key in zip(*(made.values for made in others), strict=True):
            if (text := _texts(key)) is not None:
                known.setdefault(text, key)
        keys = [tuple(made.values[at] for made in own) for at in alone.tolist()]
        found = [(key, known[text]) for key in keys if (text := _texts(key)) is not None and text in known]
        if found:
            one, other = next(pair for pair in zip(*found[0], strict=True) if _kind(pair[0]) != _kind(pair[1]))
            items = "1 item" if len(found) == 1 else f"{len(found):,} items"
            parts.append(f"{items} of {name}, such as {_shown(one)} and {_shown(other)}")
    if not parts:
        return ""
    texts = [f"str({format_condition(pair.left)}) = str({format_condition(pair.other)})" for pair in command.on]
    return f"a difference of type alone prevents a match of {' and of '.join(parts)}; ON {', '.join(texts)} compares them as texts"


def _kinds(column: Column) -> set[type]:
    return {float if kind is int else kind for kind in set(map(type, column.values))} - {type(None)}


def _kind(value: Any) -> type:
    return float if type(value) is int else type(value)


def _texts(key: tuple[Any, ...]) -> tuple[str, ...] | None:
    """Return the key as the function ``str`` writes it; None if a value is null or not a scalar."""
    if not all(isinstance(value, str | int | float) for value in key):
        return None
    return tuple(value if isinstance(value, str) else json.dumps(value) for value in key)


def _shown(value: Any) -> str:
    return short(value) if isinstance(value, str) else json.dumps(value)
