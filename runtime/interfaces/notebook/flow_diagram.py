"""Draws graphs as self-contained SVG, which loads nothing and is readable on light and dark backgrounds."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

from attrs import evolve, frozen

from ....lang.diagnostic import printable
from ...api.data_flow import Box, Drawing
from ...api.data_flow import Spot as Point

_NAMED = 8
"""Maximum number of names in the first line of a data flow's text."""


def flow_text(boxes: Sequence[Box]) -> str:
    """Return a data flow as text. The first line is a summary; each further line describes one box."""
    names = list(dict.fromkeys(box.name for box in boxes if not box.is_external))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    lines = [f"data flow: {', '.join(names[:_NAMED])}{more}"]
    for box in boxes:
        source = f" ← {', '.join(boxes[number].name for number in box.inputs)}" if box.inputs else ""
        lines.append(f"{box.name} · {box.operation}{source}")
    return "\n".join(lines)


# Lays out a graph in rows: each box is below its inputs. Lines that pass through a row run between the boxes of that row.

HIGH, EDGE = 40.0, 12.0
_DOWN, _GAP, _THREAD = 44.0, 24.0, 2.0

_Item = int | tuple[int, int]
"""The number of a box or, for a point where a line passes through a row, the number of the line's first box and the row."""


@frozen
class Spot:
    """A position in a row: the upper left corner and the width."""

    x: float
    y: float
    width: float

    @property
    def middle(self) -> float:
        """The x position of the middle."""
        return self.x + self.width / 2


@frozen
class Layout:
    """The positions of boxes and lines. ``places`` maps the number of each box to its position.

    Each of ``lines`` is one segment: its upper position, its lower position, and whether the segment ends at a box.
    """

    places: Mapping[int, Spot]
    lines: Sequence[tuple[Spot, Spot, bool]]
    width: float
    height: float


def lay_out(boxes: Sequence[Box], widths: Sequence[float]) -> Layout:
    """Return the positions of the boxes, and the lines between them."""
    depth = {number: box.layer for number, box in enumerate(boxes) if box.layer >= 0}
    rows: list[list[_Item]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for number, row in depth.items():
        rows[row].append(number)
    routes: list[list[_Item]] = [
        [source, *((source, row) for row in range(depth[source] + 1, depth[number])), number]
        for number in sorted(depth, key=lambda number: depth[number])
        for source in boxes[number].inputs
        if source in depth
    ]
    above: dict[_Item, list[_Item]] = {}
    for route in routes:
        for one, other in pairwise(route):
            above.setdefault(other, []).append(one)
            if isinstance(other, tuple) and other not in rows[other[1]]:
                rows[other[1]].append(other)
    spots = _spots(rows, above, widths)
    lines = {
        (one, other): (spots[one], spots[other], place == len(route) - 2)
        for route in routes
        for place, (one, other) in enumerate(pairwise(route))
    }
    right = max((spot.x + spot.width for spot in spots.values()), default=EDGE)
    height = len(rows) * HIGH + max(len(rows) - 1, 0) * _DOWN + 2 * EDGE
    places = {item: spot for item, spot in spots.items() if isinstance(item, int)}
    return Layout(places, list(lines.values()), right + EDGE, height)


def _spots(
    rows: Sequence[list[_Item]], above: Mapping[_Item, Sequence[_Item]], widths: Sequence[float]
) -> dict[_Item, Spot]:
    """Place items row by row. Each item is placed near its inputs, so that fewer lines cross."""
    wide = {item: _THREAD if isinstance(item, tuple) else widths[item] for row in rows for item in row}
    spans = [sum(wide[item] for item in row) + _GAP * (len(row) - 1) for row in rows]
    width, spots = max(spans, default=0.0), dict[_Item, Spot]()

    def near(item: _Item) -> float:
        found = [spots[other].middle for other in above.get(item, ())]
        return sum(found) / len(found) if found else 0.0

    for number, (row, span) in enumerate(zip(rows, spans, strict=True)):
        left = EDGE + (width - span) / 2
        for item in sorted(row, key=near):
            spots[item] = Spot(left, EDGE + number * (HIGH + _DOWN), wide[item])
            left += wide[item] + _GAP
    return spots


MAX_BOXES = 150
"""Maximum number of boxes drawn."""
_LETTER, _PAD = 7.0, 14.0
_TITLE, _LABEL = 26, 200
_COLOURS = ("#3b7dd8", "#d9822b", "#3f9d5a", "#b04fc0", "#c9413a", "#1d9aa8", "#9a7b1f", "#6c6f85")
_SOFT = 0.72
"""Opacity of less important parts. These parts stay readable on any background on which the text is readable."""
_FONT = 'font-family="system-ui,sans-serif" font-size="12"'


def flow_svg(boxes: Sequence[Box], mark: str = "k") -> str:
    """Return a data flow as SVG, from top to bottom; each box is below its inputs. ``mark`` makes the ids in the SVG unique."""
    boxes = boxes[:MAX_BOXES]
    layout = lay_out(boxes, [_width(box) for box in boxes])
    head = EDGE / 2
    names = printable(", ".join(dict.fromkeys(box.name for box in boxes if not box.is_external)))[:_LABEL]
    lines = [
        *_svg(0, 0, layout.width, layout.height, f"data flow: {names}"),
        f'<defs><marker id="{mark}-end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="{head}" markerHeight="{head}" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="currentColor"/></marker></defs>',
        *(_line(one, other, mark, arrives=arrives) for one, other, arrives in layout.lines),
        *(_box(boxes[number], spot) for number, spot in layout.places.items()),
        "</svg>",
    ]
    return "\n".join(lines)


def _svg(x: float, y: float, width: float, height: float, label: str) -> Sequence[str]:
    """Return the opening tag of an SVG picture. ``label`` is the text for screen readers."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{x:.0f} {y:.0f} {width:.0f} {height:.0f}" width="{width:.0f}"'
        f' height="{height:.0f}" style="max-width:100%;height:auto" role="img" aria-label="{escape(label)}">',
    )


def _width(box: Box) -> float:
    return max(len(_cut(box.name)), len(_cut(box.operation)), 6) * _LETTER + 2 * _PAD


def _cut(text: str) -> str:
    shown = printable(" ".join(text.split()))
    return shown if len(shown) <= _TITLE else shown[: _TITLE - 1] + "…"


def _line(one: Spot, other: Spot, mark: str, *, arrives: bool) -> str:
    """Return a line from one row to the next. If ``arrives`` is False, the line continues to the lower edge of the next row."""
    x1, y1, x2, y2 = one.middle, one.y + HIGH, other.middle, other.y
    bend = (y2 - y1) / 2
    end = f' marker-end="url(#{mark}-end)"' if arrives else ""
    on = "" if arrives else f" V{y2 + HIGH:.1f}"
    return (
        f'<path d="M{x1:.1f},{y1:.1f} C{x1:.1f},{y1 + bend:.1f} {x2:.1f},{y2 - bend:.1f} {x2:.1f},{y2:.1f}{on}" fill="none"'
        f' stroke="currentColor" stroke-opacity="{_SOFT}" stroke-width="1.3"{end}/>'
    )


def _box(box: Box, spot: Spot) -> str:
    colour = _COLOURS[7] if box.is_external else _COLOURS[0]
    dash = ' stroke-dasharray="4 3"' if box.is_external else ""
    name, operation = escape(_cut(box.name)), escape(_cut(box.operation))
    title = escape("\n".join(map(printable, box.text[:600].split("\n"))))
    return (
        f'<g><title>{title}</title><rect x="{spot.x:.1f}" y="{spot.y:.1f}" width="{spot.width:.1f}" height="{HIGH:.0f}" rx="6"'
        f' fill="{colour}" fill-opacity=".12" stroke="{colour}"{dash}/>'
        f'<text x="{spot.middle:.1f}" y="{spot.y + 17:.1f}" text-anchor="middle" {_FONT} font-weight="600" fill="currentColor">{name}'
        f'</text><text x="{spot.middle:.1f}" y="{spot.y + 32:.1f}" text-anchor="middle" {_FONT} fill="currentColor"'
        f' fill-opacity="{_SOFT}">{operation}</text></g>'
    )


def evidence_svg(drawing: Drawing) -> str:
    """Return an SVG picture of the part of the graph that supports the findings. The picture is as large as its content."""
    wide, high = _scale(len(drawing.spots))
    spots = [
        evolve(each, x=each.x * wide, y=each.y * high, label_x=each.label_x + each.x * (wide - 1),
               label_y=each.label_y + each.y * (high - 1))
        for each in drawing.spots
    ]  # fmt: skip
    left, top = min(_left(each) for each in spots) - EDGE, min(each.y for each in spots) - 2 * EDGE
    right, low = max(_right(each) for each in spots) + EDGE, max(max(each.y, each.label_y) for each in spots) + 2 * EDGE
    legend, right_end = _legend(drawing.kinds, left + EDGE, low + EDGE)
    lines, count = list[str](), len(drawing.lines)
    label = f"{len(spots)} nodes and {count} edge{'' if count == 1 else 's'} named by the findings"
    lines += _svg(left, top, max(right, right_end) - left, low - top + (28 if legend else 0), label)
    for line in drawing.lines:
        title = f"<title>{_svg_text(line.title)}</title>" if line.title else ""
        lines.append(
            f'<line x1="{line.x1 * wide:.1f}" y1="{line.y1 * high:.1f}" x2="{line.x2 * wide:.1f}" y2="{line.y2 * high:.1f}"'
            f' stroke="currentColor" stroke-opacity=".45">{title}</line>'
        )
    for spot in spots:
        lines.append(
            f'<g><title>{_svg_text(spot.title)}</title><circle cx="{spot.x:.1f}" cy="{spot.y:.1f}" r="7" fill="{_COLOURS[spot.colour]}"/>'
            f'<text x="{spot.label_x:.1f}" y="{spot.label_y:.1f}" text-anchor="{spot.anchor}" {_FONT} fill="currentColor">'
            f"{_svg_text(spot.label)}</text></g>"
        )
    return "\n".join([*lines, *legend, "</svg>"])


def _scale(count: int) -> tuple[float, float]:
    """Return the horizontal and the vertical scale of a picture with ``count`` nodes. Pictures with few nodes are smaller."""
    return min(1.0, 0.3 + 0.08 * count), min(1.0, 0.1 + 0.1 * count)


def _left(spot: Point) -> float:
    return min(
        spot.x - 7, spot.label_x - len(spot.label) * _LETTER * {"start": 0, "middle": 0.5, "end": 1}[spot.anchor]
    )


def _right(spot: Point) -> float:
    return max(
        spot.x + 7, spot.label_x + len(spot.label) * _LETTER * {"start": 1, "middle": 0.5, "end": 0}[spot.anchor]
    )


def _legend(kinds: Sequence[tuple[str, int]], left: float, y: float) -> tuple[list[str], float]:
    """Return the legend of colours, and the x position at which the legend ends."""
    lines = []
    for kind, colour in kinds:
        lines.append(
            f'<circle cx="{left:.0f}" cy="{y:.0f}" r="5" fill="{_COLOURS[colour]}"/>'
            f'<text x="{left + 10:.0f}" y="{y + 4:.0f}" {_FONT} fill="currentColor">{escape(_cut(kind))}</text>'
        )
        left += 36 + len(_cut(kind)) * _LETTER
    return lines, left


def _svg_text(text: str) -> str:
    return escape(printable(text))
