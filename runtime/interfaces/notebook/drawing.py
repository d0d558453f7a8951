"""Graphs as SVG that stands for itself: colours are in it, it loads nothing, and it can be read on light and on dark paper."""

from collections.abc import Sequence
from html import escape

from ....lang.dependencies import layers
from ....lang.diagnostic import printable
from ...report.drawing import Drawing
from .flow import Box

__all__ = ["MOST", "evidence_svg", "flow_svg"]

MOST = 150
"""Boxes that are drawn."""
_LETTER, _PAD, _HIGH, _GAP, _DOWN, _EDGE = 7.0, 14.0, 40.0, 24.0, 44.0, 12.0
_TITLE = 26
_COLOURS = ("#3b7dd8", "#d9822b", "#3f9d5a", "#b04fc0", "#c9413a", "#1d9aa8", "#9a7b1f", "#6c6f85")
_INK = "#6c7480"
_FONT = 'font-family="system-ui,sans-serif" font-size="12"'


def flow_svg(boxes: Sequence[Box], mark: str = "k") -> str:
    """Return the graph from top to bottom; each box is below all that it takes from. ``mark`` makes the names inside the SVG its own."""
    graph = {str(number): tuple(map(str, box.takes)) for number, box in enumerate(boxes[:MOST])}
    rows = [[int(name) for name in layer] for layer in layers(graph)]
    wide = {number: _width(boxes[number]) for row in rows for number in row}
    spans = [sum(wide[number] for number in row) + _GAP * (len(row) - 1) for row in rows]
    width = max(spans, default=0) + 2 * _EDGE
    height = len(rows) * _HIGH + max(len(rows) - 1, 0) * _DOWN + 2 * _EDGE
    places: dict[int, tuple[float, float]] = {}
    for depth, (row, span) in enumerate(zip(rows, spans, strict=True)):
        left = (width - span) / 2
        for number in _ordered(row, boxes, places):
            places[number] = (left, _EDGE + depth * (_HIGH + _DOWN))
            left += wide[number] + _GAP
    head = _EDGE / 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
        f' style="max-width:100%;height:auto" role="img" aria-label="{len(boxes)} steps, and what they take from each other">',
        f'<defs><marker id="{mark}-end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="{head}" markerHeight="{head}" orient="auto">'
        f'<path d="M0,0 L8,4 L0,8 z" fill="{_INK}"/></marker></defs>',
    ]
    for number, (x, y) in places.items():
        for other in boxes[number].takes:
            if other in places:
                lines.append(_arrow(places[other], wide[other], (x, y), wide[number], mark))
    lines += [_box(boxes[number], x, y, wide[number]) for number, (x, y) in places.items()]
    return "\n".join([*lines, "</svg>"])


def _ordered(row: Sequence[int], boxes: Sequence[Box], places: dict[int, tuple[float, float]]) -> list[int]:
    """Return a row so that each box stands near what it takes from: fewer arrows cross."""

    def middle(number: int) -> float:
        above = [places[other][0] for other in boxes[number].takes if other in places]
        return sum(above) / len(above) if above else 0.0

    return sorted(row, key=middle)


def _width(box: Box) -> float:
    return max(len(_cut(box.name)), len(_cut(box.does)), 6) * _LETTER + 2 * _PAD


def _cut(text: str) -> str:
    shown = printable(" ".join(text.split()))
    return shown if len(shown) <= _TITLE else shown[: _TITLE - 1] + "…"


def _arrow(source: tuple[float, float], wide: float, target: tuple[float, float], other: float, mark: str) -> str:
    x1, y1, x2, y2 = source[0] + wide / 2, source[1] + _HIGH, target[0] + other / 2, target[1]
    bend = (y2 - y1) / 2
    return (
        f'<path d="M{x1:.1f},{y1:.1f} C{x1:.1f},{y1 + bend:.1f} {x2:.1f},{y2 - bend:.1f} {x2:.1f},{y2:.1f}" fill="none"'
        f' stroke="{_INK}" stroke-width="1.3" marker-end="url(#{mark}-end)"/>'
    )


def _box(box: Box, x: float, y: float, wide: float) -> str:
    colour = _COLOURS[7] if box.given else _COLOURS[0]
    dash = ' stroke-dasharray="4 3"' if box.given else ""
    middle = x + wide / 2
    name, does = escape(_cut(box.name)), escape(_cut(box.does))
    title = escape("\n".join(map(printable, box.text[:600].split("\n"))))
    return (
        f'<g><title>{title}</title><rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{_HIGH:.0f}" rx="6" fill="{colour}"'
        f' fill-opacity=".12" stroke="{colour}"{dash}/>'
        f'<text x="{middle:.1f}" y="{y + 17:.1f}" text-anchor="middle" {_FONT} font-weight="600" fill="currentColor">{name}'
        f'</text><text x="{middle:.1f}" y="{y + 32:.1f}" text-anchor="middle" {_FONT} fill="{_INK}">{does}</text></g>'
    )


def evidence_svg(drawing: Drawing) -> str:
    """Return the part of the graph that findings rest on."""
    high = drawing.height + (28 if drawing.kinds else 0)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {drawing.width:.0f} {high:.0f}" width="{drawing.width:.0f}"'
        f' height="{high:.0f}" style="max-width:100%;height:auto" role="img"'
        f' aria-label="{len(drawing.spots)} nodes and {len(drawing.lines)} edges that the findings name">'
    ]
    for line in drawing.lines:
        title = f"<title>{_shown(line.title)}</title>" if line.title else ""
        lines.append(
            f'<line x1="{line.x1}" y1="{line.y1}" x2="{line.x2}" y2="{line.y2}" stroke="{_INK}" stroke-opacity=".5">{title}</line>'
        )
    for spot in drawing.spots:
        lines.append(
            f'<g><title>{_shown(spot.title)}</title><circle cx="{spot.x}" cy="{spot.y}" r="7" fill="{_COLOURS[spot.colour]}"/>'
            f'<text x="{spot.label_x}" y="{spot.label_y}" text-anchor="{spot.anchor}" {_FONT} fill="currentColor">{_shown(spot.label)}'
            "</text></g>"
        )
    left = 12.0
    for kind, colour in drawing.kinds:
        lines.append(
            f'<circle cx="{left:.0f}" cy="{drawing.height + 12:.0f}" r="5" fill="{_COLOURS[colour]}"/>'
            f'<text x="{left + 10:.0f}" y="{drawing.height + 16:.0f}" {_FONT} fill="currentColor">{escape(_cut(kind))}</text>'
        )
        left += 36 + len(_cut(kind)) * _LETTER
    return "\n".join([*lines, "</svg>"])


def _shown(text: str) -> str:
    return escape(printable(text))
