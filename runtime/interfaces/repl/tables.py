"""Renders the values of outcomes as text: a table fitted to a width, JSON, CSV or Markdown.

Lines are created on demand, because tables can be long.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from attrs import evolve, frozen
from rich.cells import cell_len, set_cell_size

from ....lang.diagnostic import printable
from ...api.figures import Table, cell, csv_line, table_of
from ...api.session_data import Page
from ...results import plain

# The layout of a table: column widths, hidden columns, and its lines.


_SAMPLE = 1_000
"""The column widths of a long table are computed from this many first rows, and from about as many of the later rows."""
_CELL = 60
"""Maximum width of a column while other columns need space."""
_LEAST = 6
_FOLDED = 12
"""Maximum number of lines of a wrapped cell on a terminal."""
_GAP = "  "
_JSON = json.JSONEncoder(ensure_ascii=False, default=str)


@frozen
class Grid:
    """The layout of a table: its header lines, the lines of each row, and its hidden columns (``left_out``).

    If a row has more than ``most`` lines, only its first lines are shown. A last line gives the number of hidden lines.
    """

    table: Table
    columns: tuple[int, ...]
    widths: tuple[int, ...]
    right: frozenset[int]
    left_out: tuple[str, ...] = ()
    most: int | None = None

    @property
    def head(self) -> tuple[str, str]:
        """The line with the column names, and the rule below it."""
        names = [self._cell(flat(self.table.columns[number]), number, width) for number, width in self._placed]
        return _GAP.join(names).rstrip(), _GAP.join("─" * width for width in self.widths)

    def lines(self, index: int) -> list[str]:
        """Return the lines of a row."""
        row = self.table.rows[index]
        texts = [flat(row[number], _CELL * 4) for number in self.columns]
        if not self.table.folds or not texts:
            return [self._line(texts)]
        last = self._shortened(folded(_text_of(row[self.columns[-1]]), self.widths[-1]))
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
    """Return a value on one line, safe for a terminal: a string without quotes, "" for None, any other value as JSON."""
    text = _json_start(value, most + 1) if isinstance(value, list | dict) else _text_of(value)
    if len(text) > most:
        text = text[: most - 1] + "…"
    return printable(" ".join(text.split()) if "\n" in text or "\r" in text else text)


def _cells(text: str) -> int:
    """Return the width of a terminal-safe string in terminal cells."""
    return len(text) if text.isascii() else cell_len(text)


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else _JSON.encode(value)


def _json_start(value: Any, most: int) -> str:
    """Return the beginning of the value's JSON: at least ``most`` characters, or the complete JSON if it is shorter.

    The rest is not generated, because a list in a cell may have a million entries.
    """
    parts, size = list[str](), 0
    for part in _JSON.iterencode(value):
        parts.append(part)
        size += len(part)
        if size >= most:
            break
    return "".join(parts)


def folded(text: str, width: int) -> list[str]:
    """Wrap a text to lines of at most ``width`` terminal cells. Lines are broken between words if possible."""
    return [part for line in text.split("\n") for part in _fold_line(printable(line.replace("\t", "    ")), width)]


def _fold_line(line: str, width: int) -> Iterator[str]:
    at, size = 0, len(line)
    while (end := _line_end(line, at, width)) < size:
        cut = line.rfind(" ", at, end)
        taken = cut if cut - at > width // 3 else end
        yield line[at:taken].rstrip()
        at = taken
        while at < size and line[at] == " ":
            at += 1
    if at < size or not at:
        yield line[at:]


def _line_end(line: str, at: int, width: int) -> int:
    """Return the end of the longest part that begins at ``at`` and fits into ``width`` cells.

    The part has at least one character.
    """
    if line[at : at + width + 1].isascii():
        return min(at + max(width, 1), len(line))
    available = width
    for place in range(at, min(at + width, len(line))):
        available -= cell_len(line[place])
        if available < 0:
            return max(place, at + 1)
    # More zero-width characters may fit.
    place = min(at + width, len(line))
    while place < len(line) and (wide := cell_len(line[place])) <= available:
        available -= wide
        place += 1
    return place


def layout(table: Table, width: int | None) -> Grid:
    """Return the layout of a table, fitted to ``width`` terminal cells, or to the values if ``width`` is None.

    Columns that do not fit are narrowed, starting with the widest. If the columns still don't fit, columns are hidden,
    beginning with the last; those in ``table.wide`` are hidden after all others. The first column is never hidden.
    """
    rows = table.rows if width is None else _sample_rows(table.rows)
    most = 10_000 if width is None else _CELL * 4
    columns = list(zip(*rows, strict=True)) or [()] * len(
        table.columns
    )  # evaluated once, because rows are created on demand
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


def _sample_rows(rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
    """Return the first ``_SAMPLE`` rows, and about as many from the remaining rows, because later ids may be longer."""
    return [*rows[:_SAMPLE], *rows[_SAMPLE :: max(len(rows) // _SAMPLE, 1)]]


def _shrunk(natural: list[int], width: int, wide: list[bool], folds: bool) -> list[int]:
    """Return column widths that fit ``width``. Columns that are not ``wide`` are narrowed first, down to a few cells."""
    available = width - len(_GAP) * (len(natural) - 1)
    if sum(natural) <= available:
        return natural
    widths = [min(n, _CELL) if len(natural) > 1 and not folds else n for n in natural]
    for may_shrink in ([not each for each in wide], [True] * len(natural)):
        while (over := sum(widths) - available) > 0:
            candidates = [n for n, may in enumerate(may_shrink) if may and widths[n] > min(_LEAST, natural[n])]
            if not candidates:
                break
            widest = max(candidates, key=lambda n: widths[n])
            second = max((widths[n] for n in candidates if n != widest), default=0)
            step = max(1, min(over, widths[widest] - max(second, _LEAST)))
            widths[widest] -= step
    return [max(1, min(each, available)) for each in widths]


def is_numeric(values: Sequence[Any]) -> bool:
    """Return whether all values of a column are numbers. None and "" are ignored; a column without other values is not numeric."""
    seen = [value for value in values if value is not None and value != ""]
    return bool(seen) and all(_is_number(value) for value in seen)


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return value.replace(",", "").isdecimal()
    return isinstance(value, int | float) and not isinstance(value, bool)


# Renders a value as lines in one of the formats: table, JSON, CSV, Markdown.

Form = Literal["table", "json", "csv", "md"]


@frozen
class Lines:
    """A value as lines of text: the header lines (``head``), followed by a number of rows or lines (``count``), called parts.

    ``part`` creates the lines of a part on demand. ``noun`` is the kind of the parts. ``left_out`` lists the hidden columns.
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


def value_lines(value: Any, form: Form, width: int | None, *, safe: bool) -> Lines:
    """Return the lines of a value. ``width`` is the terminal's width; None allows lines of any length.

    With ``safe``, terminal control characters are escaped. Otherwise JSON, CSV and strings are unchanged, for use by programs.
    """
    if form == "json":
        return _text(_json(value), None, safe)
    if isinstance(value, Page):
        return _text(value.text, width if form == "table" else None, safe)
    table = table_of(value)
    if form == "table":
        if isinstance(value, list | dict) and not value:
            return Lines((), 0, lambda number: ())  # the outcome's messages describe it
        if table is None:
            return _text(value if isinstance(value, str) else cell(value) or "null", width, safe)
        grid = layout(table, width)
        return Lines(grid.head, len(table.rows), grid.lines, "row", grid.left_out)
    rows = Table(("value",), [[value]]) if table is None else _plain_numbers(table)
    if form == "csv":
        named = _safe(csv_line(rows.columns).rstrip("\n"), safe)
        return Lines(tuple(named), len(rows.rows), lambda n: _safe(csv_line(rows.rows[n]).rstrip("\n"), safe), "row")
    head = (_md_line(rows.columns), f"|{'|'.join('---' for _ in rows.columns)}|")
    return Lines(
        tuple(_safe(head[0], safe)) + head[1:], len(rows.rows), lambda n: _safe(_md_line(rows.rows[n]), safe), "row"
    )


def _plain_numbers(table: Table) -> Table:
    """Return the table for use by a program: counts are plain numbers, without thousands separators."""
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
        value = [dict(zip(value.columns, row, strict=True)) for row in _plain_numbers(value).rows]
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
"""Maps characters in a cell that could begin Markdown syntax (a column, code, a link, an image, a tag) to their escapes."""


def _md_line(values: Sequence[Any]) -> str:
    return f"| {' | '.join(cell(value).translate(_MARKUP).replace(chr(13), '').replace(chr(10), '<br>') for value in values)} |"
