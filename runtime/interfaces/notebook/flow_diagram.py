"""Graphs as self-contained SVG: colours are included, nothing is loaded, and it is readable on light and dark backgrounds."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise

from attrs import evolve, frozen

from ....lang.dependencies import layers
from ....lang.diagnostic import printable
from ....lang.parse.gasl import parse_gasl
from ....lang.parse.lwt import parse_lwt
from ....lang.printer.lwt_printer import format_value
from ....lang.service.navigation import occurrences_in
from ...report.drawings import Drawing
from ...report.drawings import Spot as Point
from ..repl.reader import Piece, expression_of

# The data flow of a text: its commands, steps and expressions as one graph, by the names that they bind and refer to.

_KEY = "\0"
"""Prefix of a key of the state, to distinguish it from names of values: no name begins so."""
_NAMED = 8
"""Maximum number of names in the first line of the text."""


@frozen
class Box:
    """A command, a step, an expression, or a value from outside. ``takes`` are the numbers of its inputs."""

    name: str
    does: str
    text: str
    takes: tuple[int, ...] = ()
    given: bool = False


@frozen
class _Part:
    """A part of the flow: ``binds`` are the names visible to others, ``wants`` the names it reads."""

    name: str
    does: str
    text: str
    binds: tuple[str, ...]
    wants: tuple[str, ...]
    at_once: bool = False
    """Whether it is a step: adjacent steps have no order."""


def flow_of(pieces: Iterable[Piece]) -> tuple[Box, ...]:
    """Return the graph of pieces without errors, values from outside first."""
    parts = [part for piece in pieces for part in _parts(piece)]
    makers: list[dict[str, int]] = _makers(parts)
    given = list(
        dict.fromkeys(
            name
            for part, maker in zip(parts, makers, strict=True)
            for name in part.wants
            if name not in maker and not name.startswith(_KEY)
        )
    )
    place = {name: number for number, name in enumerate(given)}
    shift = len(given)
    boxes = [Box(name, "given", name, given=True) for name in given]
    for part, maker in zip(parts, makers, strict=True):
        found = (maker[name] + shift if name in maker else place.get(name) for name in part.wants)
        takes = dict.fromkeys(number for number in found if number is not None)
        boxes.append(Box(part.name, part.does, part.text, tuple(takes)))
    return tuple(boxes)


def told_of(boxes: Sequence[Box]) -> str:
    """Return the graph as a text; the first line is its summary."""
    made = [box for box in boxes if not box.given]
    names = list(dict.fromkeys(box.name for box in made))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    head = f"what takes from what: {', '.join(names[:_NAMED])}{more}"
    return "\n".join([head, *(_flow_line(box, boxes) for box in boxes)])


def _flow_line(box: Box, boxes: Sequence[Box]) -> str:
    source = f" ← {', '.join(boxes[number].name for number in box.takes)}" if box.takes else ""
    return f"{box.name} · {box.does}{source}"


def _makers(parts: Sequence[_Part]) -> list[dict[str, int]]:
    """Return for each part the earlier parts that bound each name. Adjacent steps see each other, in any order."""
    found: list[dict[str, int]] = []
    bound: dict[str, int] = {}
    for number, part in enumerate(parts):
        if part.at_once and not (number and parts[number - 1].at_once):
            together = number
            while together < len(parts) and parts[together].at_once:
                bound |= dict.fromkeys(parts[together].binds, together)
                together += 1
        found.append(dict(bound))
        bound |= dict.fromkeys(part.binds, number)
    return found


def _parts(piece: Piece) -> list[_Part]:
    match piece.language:
        case "gasl":
            return _commands(piece)
        case "lwt":
            return _steps(piece)
        case "expr":
            name, text = expression_of(piece.text)
            wants = tuple(
                dict.fromkeys(o.name for o in occurrences_in("expr", text) if o.kind == "variable" and not o.scope)
            )
            binds = () if name is None else (name,)
            return [_Part(name or "…", "=", piece.text, binds, wants)]
        case _:
            return []


def _commands(piece: Piece) -> list[_Part]:
    program = parse_gasl(piece.source)
    named = occurrences_in("gasl", piece.text)
    found = []
    for statement in program.statements:
        span = statement.command.span
        text = program.source.slice(span)
        inside = [each for each in named if span.start <= each.span.start < span.end]
        names = [each for each in inside if each.kind == "variable" and each.name != "error"]
        binds = tuple(dict.fromkeys(each.name for each in names if each.defines))
        wants = tuple(dict.fromkeys(each.name for each in names if not each.defines))
        # A key is declared inside of another one.
        keys = [each for each in inside if each.kind == "key"]
        name = ", ".join(binds or dict.fromkeys(each.name for each in keys)) or "…"
        declared = tuple(_KEY + each.name for each in keys if each.defines)
        parents = [parent for each in keys if each.defines and (parent := each.name.rpartition(".")[0])]
        used = tuple(_KEY + key for key in (*(each.name for each in keys if not each.defines), *parents))
        found.append(_Part(name, text.split(None, 1)[0].upper(), text, binds + declared, wants + used))
    return found


def _steps(piece: Piece) -> list[_Part]:
    script = parse_lwt(piece.source)
    named = occurrences_in("lwt", piece.text)
    found = []
    for step in script.steps:
        inside = [each for each in named if step.span.start <= each.span.start < step.span.end and not each.defines]
        wants = tuple(dict.fromkeys(each.name for each in inside if each.name not in ("item", "index")))
        when = step.call.option("when")
        does = step.call.operation if when is None else f"{step.call.operation}, when {format_value(when)}"
        found.append(_Part(step.id, does, script.source.slice(step.span), (step.id,), wants, True))
    return found


# A graph in rows: each box is below its inputs, and lines that pass a row run between its boxes.

HIGH, EDGE = 40.0, 12.0
_DOWN, _GAP, _THREAD = 44.0, 24.0, 2.0

_Item = int | tuple[int, int]
"""A box, or a line's passage through a row: the box, and the row's depth."""


@frozen
class Spot:
    """A position in a row: the upper left corner, and the width."""

    x: float
    y: float
    wide: float

    @property
    def middle(self) -> float:
        """The horizontal middle."""
        return self.x + self.wide / 2


@frozen
class Laid:
    """The boxes' positions by number, and lines from an upper to a lower position; a line's last segment ``arrives``."""

    places: Mapping[int, Spot]
    lines: Sequence[tuple[Spot, Spot, bool]]
    width: float
    height: float


def laid_out(boxes: Sequence[Box], widths: Sequence[float]) -> Laid:
    """Return the positions of the boxes, and the lines between them."""
    graph = {str(number): tuple(map(str, box.takes)) for number, box in enumerate(boxes)}
    rows: list[list[_Item]] = [[int(name) for name in layer] for layer in layers(graph)]
    depth = {item: number for number, row in enumerate(rows) for item in row if isinstance(item, int)}
    ways = [_way(other, number, depth) for number in depth for other in boxes[number].takes if other in depth]
    above: dict[_Item, list[_Item]] = {}
    for way in ways:
        for one, other in pairwise(way):
            above.setdefault(other, []).append(one)
            if isinstance(other, tuple) and other not in rows[other[1]]:
                rows[other[1]].append(other)
    spots = _spots(rows, above, widths)
    lines = {
        (one, other): (spots[one], spots[other], place == len(way) - 2)
        for way in ways
        for place, (one, other) in enumerate(pairwise(way))
    }
    right = max((spot.x + spot.wide for spot in spots.values()), default=EDGE)
    return Laid(
        {item: spot for item, spot in spots.items() if isinstance(item, int)},
        list(lines.values()),
        right + EDGE,
        len(rows) * HIGH + max(len(rows) - 1, 0) * _DOWN + 2 * EDGE,
    )


def _way(source: int, target: int, depth: Mapping[int, int]) -> list[_Item]:
    return [source, *((source, row) for row in range(depth[source] + 1, depth[target])), target]


def _spots(
    rows: Sequence[list[_Item]], above: Mapping[_Item, Sequence[_Item]], widths: Sequence[float]
) -> dict[_Item, Spot]:
    """Place items row by row, each near its inputs: fewer lines cross."""
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


MOST = 150
"""Maximum number of boxes drawn."""
_LETTER, _PAD = 7.0, 14.0
_TITLE, _SPOKEN = 26, 200
_COLOURS = ("#3b7dd8", "#d9822b", "#3f9d5a", "#b04fc0", "#c9413a", "#1d9aa8", "#9a7b1f", "#6c6f85")
_SOFT = 0.72
"""Opacity of less important parts: readable on any background on which the text is."""
_FONT = 'font-family="system-ui,sans-serif" font-size="12"'


def flow_svg(boxes: Sequence[Box], mark: str = "k") -> str:
    """Return the graph as SVG from top to bottom; each box is below its inputs. ``mark`` makes the ids in the SVG unique."""
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
    """Return the start of an SVG picture; ``said`` is its text for screen readers."""
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
    """Return a line from one row to the next; if it does not arrive there, it continues to the row's end."""
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
    """Return the part of the graph that supports the findings, sized to its content."""
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
    """Return the scale of a picture: one with few nodes is smaller."""
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
    """Return the legend of colours, and its end position."""
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
