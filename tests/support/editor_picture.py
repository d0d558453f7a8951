"""A drawing of an editor's window, of what the server told of a text: nothing in it is written by hand."""

from collections.abc import Sequence
from html import escape

from attrs import field, frozen

__all__ = ["Box", "Mark", "Run", "Window"]

CELL, LINE, TOP, LEFT = 9.0, 24, 62, 66
"""Pixels: a character's width, a line's height, where the text begins."""
COLOURS = {
    "keyword": "#c586c0", "macro": "#569cd6", "variable": "#9cdcfe", "class": "#4ec9b0", "function": "#dcdcaa", "string": "#ce9178",
    "number": "#b5cea8", "operator": "#d4d4d4", "comment": "#6a9955", "property": "#9cdcfe", "type": "#4ec9b0",
    "plain": "#d4d4d4", "dim": "#7f848e", "error": "#f14c4c", "warning": "#cca700", "strong": "#ffffff",
}  # fmt: skip


@frozen
class Run:
    """A piece of a line in one colour; ``column`` counts from 0."""

    column: int
    text: str
    colour: str


@frozen
class Mark:
    """A wavy line under columns ``[start, end)`` of a line, and what is said of it behind the line, if it is said."""

    line: int
    start: int
    end: int
    colour: str
    said: str = ""


@frozen
class Box:
    """A box over the text: a list of completions, a hover. ``chosen`` is the row that is lit."""

    line: int
    column: int
    width: int
    rows: Sequence[Sequence[Run]]
    chosen: int | None = None


@frozen
class Window:
    """An editor with one text; lines count from 0. ``cursor`` is a line and a column."""

    title: str
    lines: Sequence[Sequence[Run]]
    marks: Sequence[Mark]
    boxes: Sequence[Box]
    cursor: tuple[int, int]
    columns: int = field(default=104)
    rows: int = field(default=12)

    def svg(self) -> str:
        """Return the drawing."""
        width, height = int(LEFT + self.columns * CELL) + 16, TOP + self.rows * LINE + 14
        drawn = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="Fira Code, monospace" font-size="15">',
            f'<rect width="{width}" height="{height}" rx="8" fill="#1e1e1e" stroke="#454545"/>',
            *(f'<circle cx="{22 + 22 * n}" cy="22" r="7" fill="{c}"/>' for n, c in enumerate(("#ff5f57", "#febc2e", "#28c840"))),
            f'<text x="{width // 2}" y="27" fill="#c5c8c6" text-anchor="middle">{escape(self.title)}</text>',
            f'<rect x="1" y="{_y(self.cursor[0])}" width="{width - 2}" height="{LINE}" fill="#2a2d2e"/>',
        ]  # fmt: skip
        for number, runs in enumerate(self.lines):
            shown = str(number + 1)
            drawn.append(_text(number, -2 - len(shown), shown, COLOURS["dim"]))
            drawn += [_text(number, run.column, run.text, COLOURS[run.colour]) for run in runs]
        for mark in self.marks:
            drawn.append(_wave(mark))
            if mark.said:
                behind = max((run.column + len(run.text) for run in self.lines[mark.line]), default=0) + 3
                drawn.append(_text(mark.line, behind, mark.said, COLOURS[mark.colour]))
        line, column = self.cursor
        drawn.append(f'<rect x="{_x(column)}" y="{_y(line) + 2}" width="2" height="{LINE - 4}" fill="#aeafad"/>')
        for box in self.boxes:
            drawn += _box(box)
        return "\n".join([*drawn, "</svg>", ""])


def _x(column: int) -> float:
    return LEFT + column * CELL


def _y(line: int) -> int:
    return TOP + line * LINE - 18


def _text(line: int, column: int, text: str, colour: str) -> str:
    """Draw a text in its cells, whatever font there is."""
    body = text.strip()
    column += len(text) - len(text.lstrip())
    return (
        f'<text x="{_x(column)}" y="{TOP + line * LINE - 1}" fill="{colour}" textLength="{len(body) * CELL}" xml:space="preserve">'
        f"{escape(body)}</text>"
    )


def _wave(mark: Mark) -> str:
    y, steps = TOP + mark.line * LINE + 4, int((mark.end - mark.start) * CELL / 3)
    path = " ".join(f"{_x(mark.start) + 3 * step:g},{y - 3 * (step % 2)}" for step in range(max(steps, 2) + 1))
    return f'<polyline points="{path}" fill="none" stroke="{COLOURS[mark.colour]}" stroke-width="1.3"/>'


def _box(box: Box) -> list[str]:
    x, y, width = _x(box.column) - 5, _y(box.line) + 2, box.width * CELL + 10
    drawn = [
        f'<rect x="{x}" y="{y}" width="{width}" height="{len(box.rows) * LINE + 4}" fill="#252526" stroke="#454545"/>'
    ]
    if box.chosen is not None:
        drawn.append(f'<rect x="{x}" y="{y + 2 + box.chosen * LINE}" width="{width}" height="{LINE}" fill="#04395e"/>')
    for row, runs in enumerate(box.rows):
        drawn += [_text(box.line + row, box.column + run.column, run.text, COLOURS[run.colour]) for run in runs]
    return drawn
