"""The reason why patterns have no rows: the first element, from left to right, that no node or edge of the graph matches."""

from typing import Any

import numpy as np

from ...lang.literals import short
from .pattern_candidates import Candidates, candidates_of
from .pattern_plan import PatternPlan
from .pattern_shape import Link, Shape, Spot, condition_text
from .rows import Deadline
from .tables import Computed


def gap_of(graph: Any, kept: Computed, plan: PatternPlan, strict: bool, deadline: Deadline) -> str:
    """Return a sentence about the first element without a candidate; "" if the time limit passes first."""
    shape = plan.shape
    found: dict[int, Candidates] = {}
    for element in _elements(shape):
        slot = element.slot
        if slot not in found:
            found[slot] = candidates_of(graph, kept, element, strict, deadline)
            found[slot].settle()
            if deadline.passed():
                return ""
            if found[slot].count == 0:
                return _without_candidate(element)
    for link in shape.links:
        if said := _without_ends(kept.edges(graph), shape, link, found):
            return said
    said = "each element of the patterns occurs in the graph, but not all of them together"
    if shape.between:
        said += f" with {' and '.join(map(condition_text, shape.between))}"
    return said


def _elements(shape: Shape) -> list[Spot | Link]:
    found: list[Spot | Link] = [shape.spots[0]]
    for link in shape.links:
        found += [shape.spots[link.left], link, shape.spots[link.right]]
    return [*found, *shape.spots]


def _without_candidate(element: Spot | Link) -> str:
    what = "node" if isinstance(element, Spot) else "edge"
    if not element.conditions:
        return f"the graph has no {what}s"
    tests = " and ".join(map(condition_text, element.conditions))
    if element.labels is not None and element.plain and len(element.conditions) == 1:
        attribute = element.conditions[0].left.text  # type: ignore[union-attr]  # a comparison of a field
        return f"no {what} has {attribute} {' or '.join(map(short, element.labels))}"
    return f"no {what} satisfies {tests}"


def _without_ends(table: Any, shape: Shape, link: Link, found: dict[int, Candidates]) -> str:
    """Return a sentence if no candidate of a link is between candidates of its ends; "" otherwise."""
    edges = found[link.slot].positions()

    def count(tails: Any, heads: Any) -> int:
        some = np.ones(len(edges), np.bool_)
        for spot, ends in ((link.tail, tails), (link.head, heads)):
            mask = found[spot].mask
            if mask is not None:
                some &= mask[ends[edges]]
        if link.tail == link.head:
            some &= tails[edges] == heads[edges]
        return int(np.count_nonzero(some))

    forth, back = count(table.sources, table.targets), count(table.targets, table.sources)
    if forth or (link.either and back):
        return ""
    edge = "no edge" if link.labels is None else f"no edge of type {' or '.join(link.labels)}"
    if found[link.slot].count < len(table) and not link.plain:
        edge += " that satisfies the condition"
    tail, head = _described(shape.spots[link.tail]), _described(shape.spots[link.head])
    if link.tail == link.head:
        return f"{edge} goes from {tail} to itself"
    if link.either:
        return f"{edge} is between {tail} and {head}"
    said = f"{edge} goes from {tail} to {head}"
    return said + (f"; {back:,} {'goes' if back == 1 else 'go'} the other way" if back else "")


def _described(spot: Spot) -> str:
    if spot.labels is None:
        return "a node" if not spot.conditions else f"a node ({spot.text}) that satisfies its conditions"
    said = " or ".join(f"{'an' if label[:1].lower() in 'aeiou' else 'a'} {label}" for label in spot.labels)
    return said if spot.plain else f"{said} that satisfies its conditions"
