"""A table that fits: how wide each column is, which have no room, and its lines one by one."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import frozen
from rich.cells import cell_len, set_cell_size

from .....lang.diagnostic import printable
from ..outcome import Table

__all__ = ["Grid", "flat", "folded", "is_numeric", "layout"]

_LOOKED = 1_000
"""Rows by which the columns of a long table are sized."""
_CELL = 60
"""The widest that a column is where others want room."""
_LEAST = 6
_FOLDED = 12
"""Lines of a folded cell on a terminal."""
_GAP = "  "
_JSON = json.JSONEncoder(ensure_ascii=False, default=str)


@frozen
class Grid:
    """A table laid out: the lines of its head, those of a row, and the columns that had no room.

    A row of more than ``most`` lines has its first ones, and one that counts the others.
    """

    table: Table
    columns: tuple[int, ...]
    widths: tuple[int, ...]
    right: frozenset[int]
    left_out: tuple[str, ...] = ()
    most: int | None = None

    @property
    def head(self) -> tuple[str, str]:
        """The names of the columns, and the line under them."""
        names = [self._cell(flat(self.table.columns[number]), number, width) for number, width in self._placed]
        return _GAP.join(names).rstrip(), _GAP.join("─" * width for width in self.widths)

    def lines(self, index: int) -> list[str]:
        """Return the lines of a row."""
        row = self.table.rows[index]
        texts = [flat(row[number], _CELL * 4) for number in self.columns]
        if not self.table.folds or not texts:
            return [self._line(texts)]
        last = self._shortened(folded(_whole(row[self.columns[-1]]), self.widths[-1]))
        return [
            self._line([*(texts[:-1] if not number else [""] * (len(texts) - 1)), part])
            for number, part in enumerate(last)
        ]

    def _shortened(self, lines: list[str]) -> list[str]:
        if self.most is None or len(lines) <= self.most:
            return lines
        return [*lines[: self.most - 1], f"… {len(lines) - self.most + 1:,} more lines"]

    @property
    def _placed(self) -> list[tuple[int, int]]:
        return list(zip(self.columns, self.widths, strict=True))

    def _line(self, texts: Sequence[str]) -> str:
        return _GAP.join(
            self._cell(text, n, width) for text, (n, width) in zip(texts, self._placed, strict=True)
        ).rstrip()

    def _cell(self, text: str, number: int, width: int) -> str:
        size = _cells(text)
        if size > width:
            return set_cell_size(text, width - 1).rstrip() + "…" if width > 1 else "…"
        return " " * (width - size) + text if number in self.right else text + " " * (width - size)


def flat(value: Any, most: int = 10_000) -> str:
    """Return a value on one line, safe for a terminal: a text as it is, nothing for null, anything else as JSON."""
    text = _begun(value, most + 1) if isinstance(value, list | dict) else _whole(value)
    if len(text) > most:
        text = text[: most - 1] + "…"
    return printable(" ".join(text.split()) if "\n" in text or "\r" in text else text)


def _cells(text: str) -> int:
    """Return how wide a text is that is safe for a terminal."""
    return len(text) if text.isascii() else cell_len(text)


def _whole(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else _JSON.encode(value)


def _begun(value: Any, most: int) -> str:
    """Return JSON as far as it is shown: a list in a cell may have a million entries."""
    parts, size = list[str](), 0
    for part in _JSON.iterencode(value):
        parts.append(part)
        size += len(part)
        if size >= most:
            break
    return "".join(parts)


def folded(text: str, width: int) -> list[str]:
    """Return a text as lines of at most ``width`` cells, broken between words where that can be."""
    return [part for line in text.split("\n") for part in _folds(printable(line.replace("\t", "    ")), width)]


def _folds(line: str, width: int) -> Iterator[str]:
    at, size = 0, len(line)
    while (end := _fitting(line, at, width)) < size:
        cut = line.rfind(" ", at, end)
        taken = cut if cut - at > width // 3 else end
        yield line[at:taken].rstrip()
        at = taken
        while at < size and line[at] == " ":
            at += 1
    if at < size or not at:
        yield line[at:]


def _fitting(line: str, at: int, width: int) -> int:
    """Return where a part that begins at ``at`` ends when it is as long as may be; it has one character at least."""
    if line[at : at + width + 1].isascii():
        return min(at + max(width, 1), len(line))
    room = width
    for place in range(at, min(at + width, len(line))):
        room -= cell_len(line[place])
        if room < 0:
            return max(place, at + 1)
    # Of signs without a width more than that may fit.
    place = min(at + width, len(line))
    while place < len(line) and (wide := cell_len(line[place])) <= room:
        room -= wide
        place += 1
    return place


def layout(table: Table, width: int | None) -> Grid:
    """Lay a table out for ``width`` cells; None: as wide as it must be.

    Columns shrink, the widest first, and of those that have no room even so the last ones are left out.
    """
    rows = table.rows if width is None else _looked_at(table.rows)
    most = 10_000 if width is None else _CELL * 4
    columns = list(zip(*rows, strict=True)) or [()] * len(
        table.columns
    )  # at once: rows are made when they are asked for
    natural = [
        max(_cells(flat(name)), max((_cells(flat(value, most)) for value in values), default=0), 1)
        for name, values in zip(table.columns, columns, strict=True)
    ]
    right = frozenset(number for number, values in enumerate(columns) if is_numeric(values))
    if width is None:
        return Grid(table, tuple(range(len(natural))), tuple(natural), right)
    kept = list(range(len(natural)))
    while len(kept) > 1 and sum(min(natural[n], _LEAST) for n in kept) + len(_GAP) * (len(kept) - 1) > width:
        kept.pop(max(range(1, len(kept)), key=lambda at: (table.columns[kept[at]] not in table.wide, at)))
    widths = _shrunk([natural[n] for n in kept], width, [table.columns[n] in table.wide for n in kept], table.folds)
    left_out = tuple(table.columns[n] for n in range(len(natural)) if n not in kept)
    return Grid(table, tuple(kept), tuple(widths), right, left_out, _FOLDED)


def _looked_at(rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
    """Return the first rows, and as many from all over the others: ids grow longer."""
    return [*rows[:_LOOKED], *rows[_LOOKED :: max(len(rows) // _LOOKED, 1)]]


def _shrunk(natural: list[int], width: int, wide: list[bool], folds: bool) -> list[int]:
    """Return widths that fit; columns that are not ``wide`` give way first, down to a few cells."""
    room = width - len(_GAP) * (len(natural) - 1)
    if sum(natural) <= room:
        return natural
    widths = [min(n, _CELL) if len(natural) > 1 and not folds else n for n in natural]
    for may_shrink in ([not each for each in wide], [True] * len(natural)):
        while (over := sum(widths) - room) > 0:
            candidates = [n for n, may in enumerate(may_shrink) if may and widths[n] > min(_LEAST, natural[n])]
            if not candidates:
                break
            widest = max(candidates, key=lambda n: widths[n])
            second = max((widths[n] for n in candidates if n != widest), default=0)
            step = max(1, min(over, widths[widest] - max(second, _LEAST)))
            widths[widest] -= step
    return [max(1, min(each, room)) for each in widths]


def is_numeric(values: Sequence[Any]) -> bool:
    """Say whether a column has nothing but numbers."""
    seen = [value for value in values if value is not None and value != ""]
    return bool(seen) and all(_is_number(value) for value in seen)


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return value.replace(",", "").isdecimal()
    return isinstance(value, int | float) and not isinstance(value, bool)
