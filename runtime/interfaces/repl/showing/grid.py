"""A table that fits: how wide each column is, which have no room, and its lines one by one."""

import json
from collections.abc import Sequence
from typing import Any

from attrs import frozen
from rich.cells import cell_len, set_cell_size

from .....lang.diagnostic import printable
from ..outcome import Table

__all__ = ["Grid", "flat", "folded", "layout"]

_LOOKED = 1_000
"""Rows by which the columns of a long table are sized."""
_CELL = 60
"""The widest that a column is where others want room."""
_LEAST = 6
_FOLDED = 12
"""Lines of a folded cell on a terminal."""
_GAP = "  "


@frozen
class Grid:
    """A table laid out: the lines of its head, those of a row (at most ``most``), and the columns that had no room."""

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
        size = cell_len(text)
        if size > width:
            return set_cell_size(text, width - 1).rstrip() + "…" if width > 1 else "…"
        return " " * (width - size) + text if number in self.right else text + " " * (width - size)


def flat(value: Any, most: int = 10_000) -> str:
    """Return a value on one line, safe for a terminal: a text as it is, nothing for null, anything else as JSON."""
    text = _whole(value)
    if len(text) > most:
        text = text[: most - 1] + "…"
    return printable(" ".join(text.split()) if "\n" in text or "\r" in text else text)


def _whole(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def folded(text: str, width: int) -> list[str]:
    """Return a text as lines of at most ``width`` cells, broken between words where that can be."""
    lines: list[str] = []
    for line in text.split("\n"):
        rest = printable(line.replace("\t", "    "))
        while cell_len(rest) > width:
            part = _part(rest, width)
            cut = part.rfind(" ")
            taken = part[:cut] if cut > width // 3 else part
            lines.append(taken.rstrip())
            rest = rest[len(taken) :].lstrip(" ")
        lines.append(rest)
    return lines


def _part(text: str, width: int) -> str:
    size = 0
    for place, character in enumerate(text):
        size += cell_len(character)
        if size > width:
            return text[: max(place, 1)]
    return text


def layout(table: Table, width: int | None) -> Grid:
    """Lay a table out for ``width`` cells; None: as wide as it must be.

    Columns shrink, the widest first, and of those that have no room even so the last ones are left out.
    """
    rows = table.rows if width is None else table.rows[:_LOOKED]
    most = 10_000 if width is None else _CELL * 4
    natural = [
        max(cell_len(flat(name)), max((cell_len(flat(row[number], most)) for row in rows), default=0), 1)
        for number, name in enumerate(table.columns)
    ]
    right = frozenset(number for number in range(len(natural)) if _is_numeric([row[number] for row in rows]))
    if width is None:
        return Grid(table, tuple(range(len(natural))), tuple(natural), right)
    kept = list(range(len(natural)))
    while len(kept) > 1 and sum(min(natural[n], _LEAST) for n in kept) + len(_GAP) * (len(kept) - 1) > width:
        kept.pop(max(range(1, len(kept)), key=lambda at: (table.columns[kept[at]] not in table.wide, at)))
    widths = _shrunk([natural[n] for n in kept], width, [table.columns[n] in table.wide for n in kept], table.folds)
    left_out = tuple(table.columns[n] for n in range(len(natural)) if n not in kept)
    return Grid(table, tuple(kept), tuple(widths), right, left_out, _FOLDED)


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


def _is_numeric(values: Sequence[Any]) -> bool:
    seen = [value for value in values if value is not None and value != ""]
    return bool(seen) and all(_is_number(value) for value in seen)


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return value.replace(",", "").isdecimal()
    return isinstance(value, int | float) and not isinstance(value, bool)
