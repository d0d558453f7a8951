"""Makes reviews from the columns of a flat table: texts, ids, and values converted to the types of their keys."""

from collections.abc import Sequence
from typing import Any

from ...adapters.tables.cells import BLOB, text_of, typed
from .reviews import UnreadableText
from .table_columns import Layout

_NESTED = ("list", "json")
"""Types with mutable values: no two cells may share one value."""


def made_reviews(layout: Layout, numbers: Sequence[int], columns: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return a review for each row. ``numbers`` are the numbers of the rows, from 0; ``columns`` has the cells of each column."""
    if not numbers:
        return []
    keys = ["text"]
    values: list[Sequence[Any]] = [_texts(columns[layout.text])]
    for role in layout.roles:
        keys.append(role.key)
        values.append(_read_cells(columns[role.place], role.type))
    if "id" not in keys:
        keys.append("id")
        values.append([number + 1 for number in numbers])
    else:
        at = keys.index("id")
        if None in values[at]:
            values[at] = [number + 1 if own is None else own for own, number in zip(values[at], numbers, strict=True)]
    return _dictionaries(keys, values)


def _dictionaries(keys: Sequence[str], values: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return a dictionary for each row. A dict display with fixed keys takes a third of the time of ``dict(zip(...))``."""
    match keys:
        case [a, b]:
            return [{a: v, b: w} for v, w in zip(*values, strict=True)]
        case [a, b, c]:
            return [{a: v, b: w, c: x} for v, w, x in zip(*values, strict=True)]
        case [a, b, c, d]:
            return [{a: v, b: w, c: x, d: y} for v, w, x, y in zip(*values, strict=True)]
        case [a, b, c, d, e]:
            return [{a: v, b: w, c: x, d: y, e: z} for v, w, x, y, z in zip(*values, strict=True)]
    return [dict(zip(keys, cells, strict=True)) for cells in zip(*values, strict=True)]


def _read_cells(values: Sequence[Any], kind: str) -> Sequence[Any]:
    """Return the values of a key of the reviews, converted to ``kind``: a type of ``TYPES``, "number", "date" or "id"."""
    if not kind:
        return values
    kinds = set(map(type, values))
    if kind == "id":
        return [_id(value) for value in values] if float in kinds or "" in values else values
    if kind == "date":
        return [value or None for value in values]
    if str not in kinds:
        return values
    if kinds == {str} and kind not in _NESTED and len(known := dict.fromkeys(values)) <= len(values) // 2:
        for text in known:
            known[text] = typed(text, kind)
        return [known[value] for value in values]
    return [typed(value, kind) for value in values]


def _id(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() else str(value)
    return value if value != "" else None


def _texts(cells: Sequence[Any]) -> Sequence[Any]:
    """Return the texts of reviews: numbers and booleans as JSON text; binary data and nested values as ``UnreadableText``."""
    if set(map(type, cells)) == {str}:
        return cells
    return [_text(cell) for cell in cells]


def _text(cell: Any) -> Any:
    if isinstance(cell, dict):
        return UnreadableText("it is binary data" if BLOB in cell else "it is an object, not a text")
    return (
        UnreadableText("it is a list, not a text")
        if isinstance(cell, list)
        else cell
        if cell is None
        else text_of(cell)
    )
