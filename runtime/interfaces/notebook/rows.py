"""A graph in rows: each box below all that it takes from, and what goes past a row goes between its boxes."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from attrs import frozen

from ....lang.dependencies import layers
from .flow import Box

__all__ = ["EDGE", "HIGH", "Laid", "Spot", "laid_out"]

HIGH, EDGE = 40.0, 12.0
_DOWN, _GAP, _THREAD = 44.0, 24.0, 2.0

_Item = int | tuple[int, int]
"""A box, or what leads on from one past a row: the box, and the row's depth."""


@frozen
class Spot:
    """Where something stands in its row: its left and upper corner, and how wide it is."""

    x: float
    y: float
    wide: float

    @property
    def middle(self) -> float:
        """The middle of its width."""
        return self.x + self.wide / 2


@frozen
class Laid:
    """The boxes' places by their numbers, and lines: each from an upper to a lower one; the last of a way ``arrives``."""

    places: Mapping[int, Spot]
    lines: Sequence[tuple[Spot, Spot, bool]]
    width: float
    height: float


def laid_out(boxes: Sequence[Box], widths: Sequence[float]) -> Laid:
    """Return where the boxes stand, and the lines between them."""
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
    """Place row by row, each item near what leads to it: fewer lines cross."""
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
