"""From a value to its lines in a mode: table, JSON, CSV, Markdown."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from attrs import evolve, frozen

from .....lang.diagnostic import printable
from ....results import plain
from ...cells import cell, csv_line
from ..outcome import Page, Table
from .grid import folded, layout

__all__ = ["Form", "Lines", "shown", "table_of"]

Form = Literal["table", "json", "csv", "md"]


@frozen
class Lines:
    """A value as lines: those of its head, and those of each of its ``count`` parts (rows, or lines), made when they are asked for.

    ``noun`` is what the parts are; ``left_out`` are the columns that had no room.
    """

    head: tuple[str, ...]
    count: int
    part: Callable[[int], Sequence[str]]
    noun: Literal["row", "line"] = "line"
    left_out: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[str]:
        yield from self.head
        for number in range(self.count):
            yield from self.part(number)


def shown(value: Any, form: Form, width: int | None, *, safe: bool) -> Lines:
    """Return the lines of a value. ``width``: the terminal's, None where lines may be as long as they are.

    ``safe``: nothing in them is obeyed by a terminal; else JSON, CSV and texts are what they are, for a program.
    """
    if form == "json":
        return _text(_json(value), None, safe)
    if isinstance(value, Page):
        return _text(value.text, width if form == "table" else None, safe)
    table = table_of(value)
    if form == "table":
        if isinstance(value, list | dict) and not value:
            return Lines((), 0, lambda number: ())  # what is said of it says that
        if table is None:
            return _text(value if isinstance(value, str) else cell(value) or "null", width, safe)
        grid = layout(table, width)
        return Lines(grid.head, len(table.rows), grid.lines, "row", grid.left_out)
    rows = Table(("value",), [[value]]) if table is None else _counted(table)
    if form == "csv":
        named = _safe(csv_line(rows.columns).rstrip("\n"), safe)
        return Lines(tuple(named), len(rows.rows), lambda n: _safe(csv_line(rows.rows[n]).rstrip("\n"), safe), "row")
    head = (_md_line(rows.columns), f"|{'|'.join('---' for _ in rows.columns)}|")
    return Lines(
        tuple(_safe(head[0], safe)) + head[1:], len(rows.rows), lambda n: _safe(_md_line(rows.rows[n]), safe), "row"
    )


def table_of(value: Any) -> Table | None:
    """Return a value as a table: a list of objects, any other list, an object; None for what is none of these, or is empty."""
    if isinstance(value, Table):
        return value
    if isinstance(value, list) and value:
        if isinstance(value[0], dict) and all(isinstance(item, dict) for item in value):
            columns = tuple(dict.fromkeys(str(key) for item in value for key in item))
            return Table(columns, _Rows(value, columns), frozenset(columns[:1]))
        return Table(("#", "value"), _Numbered(value), folds=True)
    if isinstance(value, dict) and value:
        return Table(("key", "value"), [[key, entry] for key, entry in value.items()], folds=True)
    return None


class _Rows(Sequence[Sequence[Any]]):
    """Objects as rows, made when they are asked for."""

    def __init__(self, items: Sequence[dict[str, Any]], columns: tuple[str, ...]) -> None:
        self._items = items
        self._columns = columns

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [[item.get(column) for column in self._columns] for item in self._items[index]]
        item = self._items[index]
        return [item.get(column) for column in self._columns]


class _Numbered(Sequence[Sequence[Any]]):
    """Anything in a list as rows with a number."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [[number, self._items[number]] for number in range(*index.indices(len(self._items)))]
        return [index, self._items[index]]


def _counted(table: Table) -> Table:
    """Return a table for a program: its counts are numbers."""
    if not table.counts:
        return table
    counts = [number for number, column in enumerate(table.columns) if column in table.counts]
    rows = [[_number(value) if at in counts else value for at, value in enumerate(row)] for row in table.rows]
    return evolve(table, rows=rows)


def _number(text: Any) -> Any:
    plain_text = text.replace(",", "") if isinstance(text, str) else ""
    return int(plain_text) if plain_text.isdecimal() else None if text == "" else text


def _json(value: Any) -> str:
    if isinstance(value, Table):
        value = [dict(zip(value.columns, row, strict=True)) for row in _counted(value).rows]
    elif isinstance(value, Page):
        value = value.data if value.data is not None else value.text
    return json.dumps(plain(value), ensure_ascii=False, indent=2)


def _text(text: str, width: int | None, safe: bool) -> Lines:
    body = text.removesuffix("\n")
    plain_lines = body.split("\n")
    lines = folded(body, width) if width is not None else list(map(printable, plain_lines)) if safe else plain_lines
    return Lines((), len(lines), lambda number: (lines[number],))


def _safe(text: str, safe: bool) -> Sequence[str]:
    return ["\n".join(map(printable, text.split("\n")))] if safe else [text]


_MARKUP = {ord(sign): f"\\{sign}" for sign in "\\|`[]*"} | {ord("<"): "&lt;", ord(">"): "&gt;", ord("&"): "&amp;"}
"""What a text in a cell could begin something with: a column, code, a link, a picture, a tag."""


def _md_line(values: Sequence[Any]) -> str:
    return f"| {' | '.join(cell(value).translate(_MARKUP).replace(chr(13), '').replace(chr(10), '<br>') for value in values)} |"
