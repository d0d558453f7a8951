"""``FIND paths ... SHORTEST``: the shortest paths of each pair, breadth first, however long they are.

From each start the distances grow level by level. The paths to the ends of one level are grown forwards along edges that lead one level
further, through nodes that were reached backwards from these ends: each partial path is the beginning of a path that is found.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from .paths import Block, Endpoints, Filter, split
from .rows import Deadline
from .tables import Adjacency, distinct

__all__ = ["Reached", "Shortest"]

_BLOCK = 1 << 12
"""Edges by which a block of partial paths may grow in one step: the first paths come soon, however many there are."""
_KEPT = 50_000_000
"""Distances that are kept from one level to the next; with more of them, each level is computed from its start."""

Array = NDArray[Any]


@define(eq=False)
class _Distances:
    """How far the nodes are from one start: -1 where that is not known. ``last`` are those of the last level."""

    start: int
    far: Array
    last: Array
    level: int = 0
    open: int = 0
    """Ends that were not reached."""


@frozen(eq=False)
class Reached:
    """A start, the ends at one distance from it, and the paths to them."""

    start: int
    ends: Array
    blocks: Iterator[Block]


@define(eq=False)
class Shortest:
    """The shortest paths between two sets of nodes. ``nodes`` and ``edges`` say which may be on a path."""

    points: Endpoints
    forward: Adjacency
    backward: Adjacency
    nodes: Filter | None
    edges: Filter | None
    deadline: Deadline
    _size: int = field(init=False)
    _starts: Array = field(init=False)
    _targets: Array | None = field(init=False)
    _kept: dict[int, _Distances] = field(factory=dict)
    _done: set[int] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        """Leave out the starts that may not be on a path."""
        self._size = len(self.forward.first) - 1
        starts = self.points.starts
        self._starts = starts if self.nodes is None else starts[self.nodes.allowed(starts)]
        self._targets = None
        if self.points.ends is not None:
            self._targets = np.zeros(self._size, np.bool_)
            self._targets[self.points.ends] = True

    @property
    def is_over(self) -> bool:
        """Whether every end that can be reached has been reached."""
        return len(self._done) == len(self._starts)

    def at(self, length: int) -> Iterator[Reached]:
        """Yield each start that has ends at this distance, in order. Ask for rising lengths, from 1 on."""
        for number in range(len(self._starts)):
            if number in self._done:
                continue
            if self.deadline.passed():
                return
            known = self._grown(number, length)
            if known is None:
                return
            ends = known.last if self._targets is None else known.last[self._targets[known.last]]
            if len(ends):
                yield Reached(known.start, ends, self._paths(known, ends, length))

    def has_more(self, length: int) -> bool:
        """Say whether an end is further away than ``length``. When time is up, ``deadline`` says so."""
        while not self.is_over and not self.deadline.passed():
            length += 1
            if next(self.at(length), None) is not None:
                return True
        return False

    def _grown(self, number: int, length: int) -> _Distances | None:
        """Return the distances up to ``length``; None when time is up."""
        known = self._kept.get(number)
        if known is None or known.level > length:
            start = int(self._starts[number])
            known = _Distances(start, np.full(self._size, -1, np.int32), np.array([start], np.int32))
            known.far[start] = 0
            if self._targets is not None:
                known.open = int(np.count_nonzero(self._targets)) - int(self._targets[start])
            if len(self._starts) * self._size <= _KEPT:
                self._kept[number] = known
        while known.level < length:
            if self.deadline.passed():
                return None
            self._step(known)
        if not len(known.last) or (self._targets is not None and not known.open):
            self._done.add(number)
            self._kept.pop(number, None)
        return known

    def _step(self, known: _Distances) -> None:
        place = self.forward.expand(known.last)[1]
        place = place[known.far[self.forward.heads[place]] < 0]
        if self.edges is not None:
            place = place[self.edges.allowed(self.forward.edges[place])]
        heads = distinct(self.forward.heads[place])
        if self.nodes is not None:
            heads = heads[self.nodes.allowed(heads)]
        known.level += 1
        known.far[heads] = known.level
        known.last = heads
        if self._targets is not None:
            known.open -= int(np.count_nonzero(self._targets[heads]))

    def _paths(self, known: _Distances, ends: Array, length: int) -> Iterator[Block]:
        leads = self._leading(known.far, ends, length)
        if leads is None:
            return
        stack = [Block(np.array([[known.start]], np.int32), np.empty((1, 0), np.int32))]
        while stack and not self.deadline.passed():
            current = stack.pop()
            at = current.edges.shape[1]
            if at == length:
                yield current
                continue
            current, rest = split(current, self.forward, _BLOCK)
            if rest is not None:
                stack.append(rest)
            owner, place = self.forward.expand(current.nodes[:, -1])
            heads = self.forward.heads[place]
            ahead = leads[heads] & (known.far[heads] == at + 1)
            owner, place, heads = owner[ahead], place[ahead], heads[ahead]
            taken = self.forward.edges[place]
            if self.edges is not None:
                keep = self.edges.allowed(taken)
                owner, taken, heads = owner[keep], taken[keep], heads[keep]
            stack.append(
                Block(
                    np.concatenate([current.nodes[owner], heads[:, None]], axis=1),
                    np.concatenate([current.edges[owner], taken[:, None]], axis=1),
                )
            )

    def _leading(self, far: Array, ends: Array, length: int) -> Array | None:
        """Return which nodes stand on a shortest path to one of ``ends``; None when time is up."""
        leads = np.zeros(self._size, np.bool_)
        leads[ends] = True
        current = ends
        for level in range(length - 1, -1, -1):
            if self.deadline.passed():
                return None
            place = self.backward.expand(current)[1]
            place = place[far[self.backward.heads[place]] == level]
            if self.edges is not None:
                place = place[self.edges.allowed(self.backward.edges[place])]
            current = distinct(self.backward.heads[place])
            leads[current] = True
        return leads
