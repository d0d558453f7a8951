"""``FIND paths``: simple paths, shorter first, pruned from both ends, found over the adjacency in compressed rows.

For each length in turn, blocks of partial paths grow by one edge at a time, as arrays. What can't reach an end in exactly
the edges that are left is dropped at once: the nodes that can are grown backwards from the ends, as far as that is cheaper
than growing forwards from the starts. A block that would grow too large is split, so memory stays bounded however many
paths there are. Among paths of one length the order is that of the starts, then of the edges in the graph.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from ...lang.evaluate.conditions import Predicate
from .rows import Deadline
from .tables import Adjacency, Table, distinct

__all__ = ["Block", "Endpoints", "Filter", "search_paths", "split"]


# Which nodes or edges may be on a path, asked once of each that a search comes by.


_UNASKED, _NO, _YES = 0, 1, 2


class Filter:
    """A condition on the nodes or edges of a table; the answers are kept for the time of one search."""

    def __init__(self, table: Table, predicate: Predicate) -> None:
        self._table = table
        self._holds = predicate.holds
        self._answers = np.zeros(len(table), np.uint8)

    def allowed(self, positions: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each position whether what is there may be on a path."""
        answers = self._answers[positions]
        unasked = positions[answers == _UNASKED]
        if len(unasked):
            new = distinct(unasked)
            holds = self._holds
            self._answers[new] = [_YES if holds(*row) else _NO for row in self._table.rows(new.tolist())]
            answers = self._answers[positions]
        allowed: NDArray[np.bool_] = answers == _YES
        return allowed


_BLOCK = 1 << 16
"""Edges by which a block of partial paths may grow in one step."""

Array = NDArray[Any]


@frozen(eq=False)
class Endpoints:
    """Where paths start and end: positions of nodes in their order; ``ends`` None means anywhere."""

    starts: Array
    ends: Array | None


@frozen(eq=False)
class Block:
    """Paths of one length: ``nodes[i]`` are the nodes of the i-th, ``edges[i]`` its edges, by position."""

    nodes: Array
    edges: Array


@define
class _Levels:
    """For each number of edges left, the nodes from which a walk of just so many reaches an end; None: not known, or any."""

    forward: Adjacency
    backward: Adjacency | None
    size: int
    points: Endpoints
    _back: Array = field(init=False)
    _masks: list[Array] = field(factory=list)

    def grow(self, length: int) -> None:
        """Grow backwards from the ends, as long as that is cheaper than going forwards from the starts over ``length`` edges."""
        if self.points.ends is None or self.backward is None:
            return
        if not self._masks:
            self._back = self.points.ends
            self._masks.append(self._mask(self._back))
        ahead = float(self.forward.degrees(self.points.starts).sum())
        spread = max(len(self.forward.heads) / max(self.size, 1), 1.0)
        steps = 0  # that are left to going forwards
        while steps + len(self._masks) <= length:
            if int(self.backward.degrees(self._back).sum()) <= ahead:
                self._back = self.backward.reached(self._back)
                self._masks.append(self._mask(self._back))
            else:
                steps, ahead = steps + 1, ahead * spread

    def open(self, left: int) -> Array | None:
        """Return which nodes may stand with ``left`` edges to go; None where all may."""
        return self._masks[left] if left < len(self._masks) else None

    def _mask(self, nodes: Array) -> Array:
        mask = np.zeros(self.size, np.bool_)
        mask[nodes] = True
        return mask


def search_paths(
    points: Endpoints,
    forward: Adjacency,
    backward: Adjacency | None,
    lengths: Sequence[int],
    nodes: Filter | None,
    edges: Filter | None,
    deadline: Deadline,
) -> Iterator[Block]:
    """Yield the simple paths from a start to an end (start ≠ end) of each of ``lengths``, rising, in blocks.

    ``nodes`` and ``edges`` say which may be on a path. The caller stops asking when it has enough; the search stops when
    ``deadline`` has passed.
    """
    starts = points.starts
    if nodes is not None:
        starts = starts[nodes.allowed(starts)]
    levels = _Levels(forward, backward, len(forward.first) - 1, Endpoints(starts, points.ends))
    for length in lengths:
        if deadline.passed():
            return
        levels.grow(length)
        first = starts
        mask = levels.open(length)
        if mask is not None:
            first = first[mask[first]]
        block = Block(first.reshape(-1, 1), np.empty((len(first), 0), np.int32))
        yield from _grown(block, length, forward, levels, nodes, edges, deadline)


def _grown(
    block: Block,
    length: int,
    forward: Adjacency,
    levels: _Levels,
    nodes: Filter | None,
    edges: Filter | None,
    deadline: Deadline,
) -> Iterator[Block]:
    stack = [block]
    while stack:
        if deadline.passed():
            return
        current = stack.pop()
        if not len(current.nodes):
            continue
        at = current.edges.shape[1]
        if at == length:
            yield current
            continue
        current, rest = split(current, forward)
        if rest is not None:
            stack.append(rest)
        stack.append(_step(current, forward, levels.open(length - at - 1), nodes, edges))


def split(block: Block, forward: Adjacency, most: int = _BLOCK) -> tuple[Block, Block | None]:
    """Return as many of the first paths as may grow in one step by ``most`` edges, at least one, and the others."""
    total = np.cumsum(forward.degrees(block.nodes[:, -1]))
    if total[-1] <= most:
        return block, None
    many = max(1, int(np.searchsorted(total, most, side="right")))
    if many >= len(block.nodes):
        return block, None
    return Block(block.nodes[:many], block.edges[:many]), Block(block.nodes[many:], block.edges[many:])


def _step(block: Block, forward: Adjacency, mask: Array | None, nodes: Filter | None, edges: Filter | None) -> Block:
    """Grow every path of ``block`` by each edge that may follow."""
    keep: Array
    owner, place = forward.expand(block.nodes[:, -1])
    heads = forward.heads[place]
    if mask is not None:
        keep = np.flatnonzero(mask[heads])
        owner, place, heads = owner[keep], place[keep], heads[keep]
    keep = np.ones(len(heads), np.bool_)
    for column in range(block.nodes.shape[1]):
        keep &= heads != block.nodes[owner, column]
    if not keep.all():
        owner, place, heads = owner[keep], place[keep], heads[keep]
    if nodes is not None:
        keep = nodes.allowed(heads)
        owner, place, heads = owner[keep], place[keep], heads[keep]
    taken = forward.edges[place]
    if edges is not None:
        keep = edges.allowed(taken)
        owner, taken, heads = owner[keep], taken[keep], heads[keep]
    return Block(
        np.concatenate([block.nodes[owner], heads[:, None]], axis=1),
        np.concatenate([block.edges[owner], taken[:, None]], axis=1),
    )
