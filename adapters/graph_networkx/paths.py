"""``FIND paths``: finds simple paths, shorter ones first, in an adjacency of compressed sparse rows.

The lengths are searched one after the other. Partial paths are stored in blocks of arrays, which grow by one edge at a time.
Partial paths that can't reach an end with exactly the remaining edges are dropped. To know the nodes that can reach an end, the
search also goes backwards from the ends, as long as that is cheaper than growing forwards from the starts. A block that would
grow too large is split, so memory stays bounded for any number of paths. Paths of one length are sorted by their starts, then
by their edges.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from ...lang.evaluate.conditions import Predicate
from .left_out import Counter
from .path_conditions import PathOrder
from .rows import Deadline
from .tables import Adjacency, Table, distinct

# A filter for the nodes or edges allowed on a path, evaluated once for each node or edge that a search visits.

_UNASKED, _NO, _YES = 0, 1, 2


class Filter:
    """A condition on the nodes or edges of a table; results are cached for one search. ``left_out`` gets the rejected rows."""

    def __init__(self, table: Table, predicate: Predicate, left_out: Counter | None = None) -> None:
        self._table = table
        self._holds = predicate.holds
        self._left_out = left_out
        self._answers = np.zeros(len(table), np.uint8)

    def allowed(self, positions: NDArray[Any]) -> NDArray[np.bool_]:
        """Return, for each position, whether the node or edge at the position may be on a path."""
        answers = self._answers[positions]
        unasked = positions[answers == _UNASKED]
        if len(unasked):
            new = distinct(unasked)
            holds, rows = self._holds, self._table.rows(new.tolist())
            found = [_YES if holds(*row) else _NO for row in rows]
            self._answers[new] = found
            if self._left_out is not None:
                self._left_out([row for row, answer in zip(rows, found, strict=True) if answer == _NO])
            answers = self._answers[positions]
        allowed: NDArray[np.bool_] = answers == _YES
        return allowed


_BLOCK = 1 << 16
"""Maximum number of edges that a block of partial paths follows in one step."""

Array = NDArray[Any]


@frozen(eq=False)
class Endpoints:
    """The positions of the start and end nodes, in order. If ``ends`` is None, any node is an end."""

    starts: Array
    ends: Array | None


@frozen(eq=False)
class Block:
    """Paths of one length. ``nodes[i]`` has the positions of the nodes of path i, ``edges[i]`` the positions of its edges."""

    nodes: Array
    edges: Array


@define
class _Levels:
    """For each number of edges, the nodes from which a walk of that many edges reaches an end."""

    forward: Adjacency
    backward: Adjacency | None
    size: int
    points: Endpoints
    _back: Array = field(init=False)
    _masks: list[Array] = field(factory=list)

    def grow(self, length: int) -> None:
        """Search backwards from the ends, as long as that is cheaper than searching ``length`` edges forwards from the starts."""
        if self.points.ends is None or self.backward is None:
            return
        if not self._masks:
            self._back = self.points.ends
            self._masks.append(self._mask(self._back))
        ahead = float(self.forward.degrees(self.points.starts).sum())
        spread = max(len(self.forward.heads) / max(self.size, 1), 1.0)
        steps = 0  # steps left to the forward search
        while steps + len(self._masks) <= length:
            if int(self.backward.degrees(self._back).sum()) <= ahead:
                self._back = self.backward.reached(self._back)
                self._masks.append(self._mask(self._back))
            else:
                steps, ahead = steps + 1, ahead * spread

    def open(self, left: int) -> Array | None:
        """Return a mask of the nodes allowed with ``left`` edges remaining; None if all nodes are allowed."""
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
    order: PathOrder | None = None,
) -> Iterator[Block]:
    """Yield the simple paths from a start to an end (start ≠ end) in blocks, for each of ``lengths``, which are ascending.

    ``nodes`` and ``edges`` filter the nodes and edges allowed on a path; ``order`` are the values that must increase. The caller stops
    iterating when it has enough paths; the search stops after ``deadline``.
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
        yield from _grow(block, length, forward, levels, nodes, edges, deadline, order)


def _grow(
    block: Block,
    length: int,
    forward: Adjacency,
    levels: _Levels,
    nodes: Filter | None,
    edges: Filter | None,
    deadline: Deadline,
    order: PathOrder | None,
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
        grown = _step(current, forward, levels.open(length - at - 1), nodes, edges)
        stack.append(grown if order is None else in_order(grown, order))


def split(block: Block, forward: Adjacency, most: int = _BLOCK) -> tuple[Block, Block | None]:
    """Split a block: the first paths (at least one) that together have at most ``most`` next edges, and the remaining paths."""
    total = np.cumsum(forward.degrees(block.nodes[:, -1]))
    if total[-1] <= most:
        return block, None
    many = max(1, int(np.searchsorted(total, most, side="right")))
    if many >= len(block.nodes):
        return block, None
    return Block(block.nodes[:many], block.edges[:many]), Block(block.nodes[many:], block.edges[many:])


def _step(block: Block, forward: Adjacency, mask: Array | None, nodes: Filter | None, edges: Filter | None) -> Block:
    """Extend every path of ``block`` by each edge that may follow."""
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
    return _extended(block, owner, heads, forward.edges[place], edges)


def _extended(block: Block, owner: Array, heads: Array, taken: Array, edges: Filter | None) -> Block:
    """Return the paths at ``owner``, each extended by its edge in ``taken`` and node in ``heads``, if ``edges`` allows it."""
    if edges is not None:
        keep = edges.allowed(taken)
        owner, taken, heads = owner[keep], taken[keep], heads[keep]
    return Block(
        np.concatenate([block.nodes[owner], heads[:, None]], axis=1),
        np.concatenate([block.edges[owner], taken[:, None]], axis=1),
    )


def in_order(block: Block, order: PathOrder) -> Block:
    """Return the paths of ``block`` whose last edge may follow the edges before it."""
    nodes, edges = block.nodes, block.edges
    if edges.shape[1] == 1:
        keep = order.may_begin(nodes[:, -2], edges[:, -1], nodes[:, -1])
    else:
        keep = order.may_follow(edges[:, -2], nodes[:, -2], edges[:, -1], nodes[:, -1])
    return Block(nodes[keep], edges[keep])


# ``FIND paths ... SHORTEST``: the shortest paths of each pair, of any length, by breadth-first search.
# From each start, distances are computed level by level. The paths to the ends of one level grow forwards along edges that lead one
# level further. They use only nodes that were reached backwards from these ends, so every partial path is a prefix of a result.
_PAIRS_BLOCK = 1 << 12
"""The same limit as ``_BLOCK``, for shortest paths. It is small, so that the first paths are found soon."""
_KEPT = 50_000_000
"""Maximum number of distances cached between levels. If there are more, each level is computed again from its start."""

PathArray = NDArray[Any]


@define(eq=False)
class _Distances:
    """The distance of each node from one start (-1: unknown). ``last`` are the nodes of the last level."""

    start: int
    far: PathArray
    last: PathArray
    level: int = 0
    open: int = 0
    """Number of ends not reached yet."""


@frozen(eq=False)
class Reached:
    """A start, its ends at one distance, and the paths to them."""

    start: int
    ends: PathArray
    blocks: Iterator[Block]


@define(eq=False)
class Shortest:
    """The shortest paths between two sets of nodes. ``nodes`` and ``edges`` filter the nodes and edges allowed on a path."""

    points: Endpoints
    forward: Adjacency
    backward: Adjacency
    nodes: Filter | None
    edges: Filter | None
    deadline: Deadline
    _size: int = field(init=False)
    _starts: PathArray = field(init=False)
    _targets: PathArray | None = field(init=False)
    _kept: dict[int, _Distances] = field(factory=dict)
    _done: set[int] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        """Drop the starts that are not allowed on a path."""
        self._size = len(self.forward.first) - 1
        starts = self.points.starts
        self._starts = starts if self.nodes is None else starts[self.nodes.allowed(starts)]
        self._targets = None
        if self.points.ends is not None:
            self._targets = np.zeros(self._size, np.bool_)
            self._targets[self.points.ends] = True

    @property
    def is_over(self) -> bool:
        """Whether every reachable end has been reached."""
        return len(self._done) == len(self._starts)

    @property
    def starts(self) -> list[int]:
        """The starts that are allowed on a path, in order."""
        return self._starts.tolist()  # type: ignore[no-any-return]

    def at(self, length: int) -> Iterator[Reached]:
        """Yield each start that has ends at distance ``length``, in order. Call this with ascending lengths, from 1."""
        for number in range(len(self._starts)):
            if number in self._done:
                continue
            if self.deadline.passed():
                return
            known = self._grow(number, length)
            if known is None:
                return
            ends = known.last if self._targets is None else known.last[self._targets[known.last]]
            if len(ends):
                yield Reached(known.start, ends, self._paths(known, ends, length))

    def has_more(self, length: int) -> bool:
        """Return whether the distance from a start to an end is more than ``length``. On timeout, ``deadline.hit`` is true."""
        while not self.is_over and not self.deadline.passed():
            length += 1
            if next(self.at(length), None) is not None:
                return True
        return False

    def _grow(self, number: int, length: int) -> _Distances | None:
        """Return the distances up to ``length``; None on timeout."""
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

    def _paths(self, known: _Distances, ends: PathArray, length: int) -> Iterator[Block]:
        leads = self._nodes_on_paths(known.far, ends, length)
        if leads is None:
            return
        stack = [Block(np.array([[known.start]], np.int32), np.empty((1, 0), np.int32))]
        while stack and not self.deadline.passed():
            current = stack.pop()
            at = current.edges.shape[1]
            if at == length:
                yield current
                continue
            current, rest = split(current, self.forward, _PAIRS_BLOCK)
            if rest is not None:
                stack.append(rest)
            owner, place = self.forward.expand(current.nodes[:, -1])
            heads = self.forward.heads[place]
            ahead = leads[heads] & (known.far[heads] == at + 1)
            taken = self.forward.edges[place[ahead]]
            stack.append(_extended(current, owner[ahead], heads[ahead], taken, self.edges))

    def _nodes_on_paths(self, far: PathArray, ends: PathArray, length: int) -> PathArray | None:
        """Return the nodes on a shortest path to one of ``ends``; None on timeout."""
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
