"""Puts the names of nodes where they cover each other, and the nodes, as little as can be."""

from collections.abc import Sequence
from typing import TypeAlias

__all__ = ["place_labels"]

Place: TypeAlias = tuple[float, float, str]
_Box: TypeAlias = tuple[float, float, float, float]

_LETTER, _LINE, _RADIUS = 6.2, 13.0, 9.0
"""A letter's width on average, a line's height, and a node's radius with some room, in units of the drawing."""


def place_labels(spots: Sequence[Place], *, width: float, height: float) -> list[Place]:
    """Return for each spot (x, y, name) where its name begins: x, y of the baseline, and SVG's text-anchor.

    One after the other, each takes of the places to the right, to the left, below and above the one that covers least.
    """
    taken: list[_Box] = [(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y, _ in spots]
    found: list[Place] = []
    for number, (x, y, name) in enumerate(spots):
        long = len(name) * _LETTER
        tried: list[tuple[float, int, Place, _Box]] = []
        for order, (at_x, at_y, anchor) in enumerate(
            ((x + 11, y + 4, "start"), (x - 11, y + 4, "end"), (x, y + 21, "middle"), (x, y - 12, "middle"))
        ):
            left = {"start": at_x, "end": at_x - long, "middle": at_x - long / 2}[anchor]
            box = (left, at_y - _LINE + 3, left + long, at_y + 3)
            covered = sum(_common(box, other) for each, other in enumerate(taken) if each != number)
            outside = long * _LINE - _common(box, (0, 0, width, height))
            tried.append((covered + 4 * outside, order, (round(at_x, 1), round(at_y, 1), anchor), box))
        _, _, place, box = min(tried)
        found.append(place)
        taken.append(box)
    return found


def _common(one: _Box, other: _Box) -> float:
    """Return the area that two boxes share."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0.0
