"""Graphs as SVG that stands for itself: colours are in it, it loads nothing, and it can be read on light and on dark paper."""

from collections.abc import Sequence
from html import escape

from attrs import evolve

from ....lang.diagnostic import printable
from ...report.graph_drawing import Drawing
from ...report.graph_drawing import Spot as Point
from .flow import Box
from .rows import EDGE, HIGH, Spot, laid_out

__all__ = ["MOST", "evidence_svg", "flow_svg"]

MOST = 150
"""Boxes that are drawn."""
_LETTER, _PAD = 7.0, 14.0
_TITLE, _SPOKEN = 26, 200
_COLOURS = ("#3b7dd8", "#d9822b", "#3f9d5a", "#b04fc0", "#c9413a", "#1d9aa8", "#9a7b1f", "#6c6f85")
_SOFT = 0.72
"""How much of the text's colour what is less important has: it can be read on any paper that the text can."""
_FONT = 'font-family="system-ui,sans-serif" font-size="12"'


def flow_svg(boxes: Sequence[Box], mark: str = "k") -> str:
    """Return the graph from top to bottom; each box is below all that it takes from. ``mark`` makes the names inside the SVG its own."""
    boxes = boxes[:MOST]
    laid = laid_out(boxes, [_width(box) for box in boxes])
    head = EDGE / 2
    names = printable(", ".join(dict.fromkeys(box.name for box in boxes if not box.given)))[:_SPOKEN]
    lines = [
        *_svg(0, 0, laid.width, laid.height, f"what takes from what: {names}"),
        f'<defs><marker id="{mark}-end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="{head}" markerHeight="{head}" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="currentColor"/></marker></defs>',
        *(_line(one, other, mark, arrives=arrives) for one, other, arrives in laid.lines),
        *(_box(boxes[number], spot) for number, spot in laid.places.items()),
        "</svg>",
    ]
    return "\n".join(lines)


def _svg(x: float, y: float, width: float, height: float, said: str) -> Sequence[str]:
    """Return how a picture begins; ``said`` is for who does not see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{x:.0f} {y:.0f} {width:.0f} {height:.0f}" width="{width:.0f}"'
        f' height="{height:.0f}" style="max-width:100%;height:auto" role="img" aria-label="{escape(said)}">',
    )


def _width(box: Box) -> float:
    return max(len(_cut(box.name)), len(_cut(box.does)), 6) * _LETTER + 2 * _PAD


def _cut(text: str) -> str:
    shown = printable(" ".join(text.split()))
    return shown if len(shown) <= _TITLE else shown[: _TITLE - 1] + "…"


def _line(one: Spot, other: Spot, mark: str, *, arrives: bool) -> str:
    """Return a line from one row to the next; where it does not arrive there it goes on to the row's end."""
    x1, y1, x2, y2 = one.middle, one.y + HIGH, other.middle, other.y
    bend = (y2 - y1) / 2
    end = f' marker-end="url(#{mark}-end)"' if arrives else ""
    on = "" if arrives else f" V{y2 + HIGH:.1f}"
    return (
        f'<path d="M{x1:.1f},{y1:.1f} C{x1:.1f},{y1 + bend:.1f} {x2:.1f},{y2 - bend:.1f} {x2:.1f},{y2:.1f}{on}" fill="none"'
        f' stroke="currentColor" stroke-opacity="{_SOFT}" stroke-width="1.3"{end}/>'
    )


def _box(box: Box, spot: Spot) -> str:
    colour = _COLOURS[7] if box.given else _COLOURS[0]
    dash = ' stroke-dasharray="4 3"' if box.given else ""
    name, does = escape(_cut(box.name)), escape(_cut(box.does))
    title = escape("\n".join(map(printable, box.text[:600].split("\n"))))
    return (
        f'<g><title>{title}</title><rect x="{spot.x:.1f}" y="{spot.y:.1f}" width="{spot.wide:.1f}" height="{HIGH:.0f}" rx="6"'
        f' fill="{colour}" fill-opacity=".12" stroke="{colour}"{dash}/>'
        f'<text x="{spot.middle:.1f}" y="{spot.y + 17:.1f}" text-anchor="middle" {_FONT} font-weight="600" fill="currentColor">{name}'
        f'</text><text x="{spot.middle:.1f}" y="{spot.y + 32:.1f}" text-anchor="middle" {_FONT} fill="currentColor"'
        f' fill-opacity="{_SOFT}">{does}</text></g>'
    )


def evidence_svg(drawing: Drawing) -> str:
    """Return the part of the graph that findings rest on; as large as it has to be for what is in it."""
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
    said = f"{len(spots)} nodes and {count} edge{'' if count == 1 else 's'} that the findings name"
    lines += _svg(left, top, max(right, right_end) - left, low - top + (28 if legend else 0), said)
    for line in drawing.lines:
        title = f"<title>{_shown(line.title)}</title>" if line.title else ""
        lines.append(
            f'<line x1="{line.x1 * wide:.1f}" y1="{line.y1 * high:.1f}" x2="{line.x2 * wide:.1f}" y2="{line.y2 * high:.1f}"'
            f' stroke="currentColor" stroke-opacity=".45">{title}</line>'
        )
    for spot in spots:
        lines.append(
            f'<g><title>{_shown(spot.title)}</title><circle cx="{spot.x:.1f}" cy="{spot.y:.1f}" r="7" fill="{_COLOURS[spot.colour]}"/>'
            f'<text x="{spot.label_x:.1f}" y="{spot.label_y:.1f}" text-anchor="{spot.anchor}" {_FONT} fill="currentColor">'
            f"{_shown(spot.label)}</text></g>"
        )
    return "\n".join([*lines, *legend, "</svg>"])


def _scale(count: int) -> tuple[float, float]:
    """Return by how much a picture of a few nodes is made smaller: they need no room for others."""
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
    """Return what the colours are, and where that ends."""
    lines = []
    for kind, colour in kinds:
        lines.append(
            f'<circle cx="{left:.0f}" cy="{y:.0f}" r="5" fill="{_COLOURS[colour]}"/>'
            f'<text x="{left + 10:.0f}" y="{y + 4:.0f}" {_FONT} fill="currentColor">{escape(_cut(kind))}</text>'
        )
        left += 36 + len(_cut(kind)) * _LETTER
    return lines, left


def _shown(text: str) -> str:
    return escape(printable(text))
