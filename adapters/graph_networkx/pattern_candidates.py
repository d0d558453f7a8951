"""The candidates of a pattern's elements: the nodes or edges that can match an element, and the adjacency of the candidates.

At first, the candidates are all nodes or edges that satisfy the element's own conditions. If many rows are expected, the
candidates are then reduced: an edge is kept only if both its ends are candidates, and a node only if it has a candidate edge
for each of its links. The remaining edges are stored as a separate adjacency, so that the search encounters few dead ends.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from ...lang.evaluate.conditions import Predicate
from ...lang.trees.conditions import Condition
from .column_types import Array, Mask
from .find import predicate_of
from .find_plan import count_left_out, decide, operands_of, selected
from .key_set import KeySet
from .left_out import Counter, counter_of, with_name
from .paths import Filter
from .pattern_shape import Link, Spot, joined
from .pattern_values import RowValues
from .rows import Deadline, Kind, readers_of
from .tables import Adjacency, Computed, EdgeTable, Table, outgoing


class RowFilter(Filter):
    """A condition that is tested row by row, once for each element that a search examines. Testing stops at the time limit."""

    def __init__(self, table: Table, predicate: Predicate, deadline: Deadline, left_out: Counter | None = None) -> None:
        self._within = deadline
        super().__init__(table, predicate, left_out)

    def allowed(self, positions: NDArray[Any]) -> NDArray[np.bool_]:
        """See ``Filter``. After the time limit, the result is False for the remaining elements."""
        if len(positions) <= _ROWS:
            return super().allowed(positions)
        mask = np.zeros(len(positions), np.bool_)
        for begin in range(0, len(positions), _ROWS):
            if self._within.passed():
                break
            mask[begin : begin + _ROWS] = super().allowed(positions[begin : begin + _ROWS])
        return mask


_ROWS = 4096
"""Number of rows tested between two checks of the clock."""


@define(eq=False)
class Candidates:
    """The nodes or edges of the graph that satisfy the conditions of one element of a pattern.

    ``mask`` marks the elements that satisfy the conditions that columns can evaluate (None: all elements); ``count`` is their number.
    ``rest`` tests the other conditions. ``used`` names the kind of search.
    """

    size: int
    mask: Mask | None
    count: int
    used: str
    rest: RowFilter | None

    def positions(self) -> Array:
        """Return the ascending positions of the candidates, before ``rest``."""
        found: Array = np.arange(self.size, dtype=np.int32)
        return found if self.mask is None else np.flatnonzero(self.mask).astype(np.int32)

    def settle(self) -> None:
        """Apply ``rest`` to all candidates now."""
        if self.rest is None:
            return
        positions = self.positions()
        positions = positions[self.rest.allowed(positions)]
        self.narrow(_mask(self.size, positions))
        self.rest = None

    def narrow(self, mask: Mask) -> None:
        """Keep only the candidates that are also in ``mask``."""
        self.mask = mask if self.mask is None else self.mask & mask
        self.count = int(np.count_nonzero(self.mask))


def _mask(size: int, positions: Array) -> Mask:
    mask = np.zeros(size, np.bool_)
    mask[positions] = True
    return mask


def candidates_of(graph: Any, kept: Computed, element: Spot | Link, strict: bool, deadline: Deadline) -> Candidates:
    """Return the candidates of an element of a pattern. Raises ``ConditionError``."""
    kind: Kind = element.kind
    table = kept.table(graph, kind)
    size = len(table)
    where = joined(element.conditions)
    if where is None:
        return Candidates(size, None, size, "any node" if kind == "nodes" else "any edge", None)
    predicate = predicate_of(
        graph, kind, where
    )  # raises for an invalid condition, even if the graph has no such elements
    decision = decide(graph, kept, kind, where, strict)
    operands, mask = operands_of(where), None
    shown, left_out = with_name(element.name or ""), None  # conditions on elements without a name compare only labels
    if decision.way == "scan":
        left_out = counter_of(where, readers_of(graph, kind), lambda: predicate, shown)
    else:
        count_left_out(graph, kept, kind, where, predicate, by_columns=True, shown=shown)
        mask = _mask(size, selected(graph, kept, kind, decision))
        answered = [*decision.rest, *([] if decision.first is None else [decision.first])]
        operands = [operand for operand in operands if not any(operand is each for each in answered)]
        operands, mask = _computed_on_columns(graph, kept, kind, operands, mask, size)
    rest = joined(operands)
    found = Candidates(
        size,
        mask,
        size if mask is None else int(np.count_nonzero(mask)),
        decision.used,
        None if rest is None else RowFilter(table, predicate_of(graph, kind, rest), deadline, left_out),
    )
    if size < _FEW:
        found.settle()
    return found


_FEW = 256
"""In a graph with fewer elements, all conditions are tested immediately, so that the numbers of candidates are exact."""


def _computed_on_columns(
    graph: Any, kept: Computed, kind: Kind, operands: Sequence[Condition], mask: Mask, size: int
) -> tuple[list[Condition], Mask]:
    """Return the operands that columns can't evaluate, and the mask of the elements that satisfy all other operands."""
    values = RowValues(graph, kept, lambda at: (0, kind, at.path))
    rest: list[Condition] = []
    rows = {0: np.arange(size, dtype=np.int32)}
    for operand in operands:
        found = values.mask(operand, rows, size)
        if found is None:
            rest.append(operand)
        else:
            mask = mask & found
    return rest, mask


@frozen(eq=False)
class Pairs:
    """The edges sorted by their ends, for the look-up of the edges between two nodes.

    ``keys`` contains ``tail * nodes + head`` for each edge, ascending; equal keys are in the order of the edges.
    """

    keys: KeySet
    edges: Array
    nodes: int

    @classmethod
    def of(cls, table: EdgeTable, either: bool) -> "Pairs":
        """Sort the edges of ``table``; if ``either``, each edge is listed in both directions (a loop only once)."""
        tails, heads = table.sources.astype(np.int64), table.targets.astype(np.int64)
        edges = np.arange(len(table), dtype=np.int32)
        if either:
            other = tails != heads
            tails, heads = np.concatenate([tails, heads[other]]), np.concatenate([heads, tails[other]])
            edges = np.concatenate([edges, edges[other]])
        nodes = len(table.ends)
        keys = tails * nodes + heads
        order = np.lexsort((edges, keys))
        return cls(KeySet.of(keys[order]), edges[order], nodes)

    def between(self, tails: Array, heads: Array) -> tuple[Array, Array, Array]:
        """Return the indices of the pairs (tail, head) that have edges. Also return the place and the number of edges of each pair.

        The edges of a pair are ``edges[place:place + number]``.
        """
        keys = tails.astype(np.int64)
        keys *= self.nodes
        keys += heads
        maybe = self.keys.candidates(keys)
        keys = keys.take(maybe)
        first = np.searchsorted(self.keys.keys, keys, "left")
        counts = np.searchsorted(self.keys.keys, keys, "right") - first
        some = np.flatnonzero(counts)
        return maybe.take(some), first.take(some), counts.take(some)


@define(eq=False)
class LinkEdges:
    """The candidates of a link, and the adjacency over them.

    ``forth[i]`` is true if edge i can match the link with the link's tail at the edge's source; ``back[i]``, with the tail at
    its target. ``back`` is None unless the link matches in either direction. Before ``reduce``, both are None, and every
    candidate can match.
    """

    graph: Any
    kept: Computed
    link: Link
    found: Candidates
    forth: Mask | None = None
    back: Mask | None = None
    every: bool = True
    """Whether every edge of the graph can match the link, in each of its directions."""
    _made: dict[bool, Adjacency] = field(factory=dict)

    @property
    def reduced(self) -> bool:
        """Whether the adjacency contains only edges whose ends are candidates."""
        return self.forth is not None

    def entries(self) -> int:
        """Return the number of ways in which edges can match the link."""
        if self.forth is None:
            return self.found.count * (2 if self.link.either else 1)
        return int(np.count_nonzero(self.forth)) + (0 if self.back is None else int(np.count_nonzero(self.back)))

    def base(self, from_tail: bool) -> Adjacency:
        """Return the graph's adjacency in the direction of the search."""
        if self.link.either:
            return either_way(self.graph, self.kept)
        return self.kept.outgoing(self.graph) if from_tail else self.kept.incoming(self.graph)

    def adjacency(self, from_tail: bool) -> Adjacency:
        """Return the adjacency from one end of the link to the other."""
        made = self._made.get(from_tail)
        if made is None:
            base = self.base(from_tail)
            made = self._made[from_tail] = base if self.every else _restricted(base, self._keep(base, from_tail))
        return made

    def _keep(self, base: Adjacency, from_tail: bool) -> Mask:
        """Return, for each entry of the graph's adjacency ``base``, whether it is a candidate."""
        assert self.forth is not None  # noqa: S101  # otherwise every entry is a candidate
        if self.back is None:
            return self.forth.take(base.edges)
        # Two bits for each edge, so that one look-up gives both directions.
        bits = (self.forth.view(np.uint8) | (self.back.view(np.uint8) << 1)).take(base.edges)
        bits >>= (_at_source(self.graph, self.kept, base) != from_tail).view(np.uint8)
        bits &= 1
        return bits.view(np.bool_)

    def kept_pairs(self, edges: Array, tails: Array) -> Mask | None:
        """Return, for each edge, whether it can match the link with the given tail. Return None if all edges can."""
        if self.forth is None:
            return None if self.found.mask is None else self.found.mask[edges]
        if self.back is None:
            return self.forth[edges]
        return np.where(self.kept.edges(self.graph).sources[edges] == tails, self.forth[edges], self.back[edges])

    def pairs(self) -> Pairs:
        """Return the edges sorted by their ends."""
        either = self.link.either
        return self.kept.part(("pairs", either), lambda: Pairs.of(self.kept.edges(self.graph), either))


def either_way(graph: Any, kept: Computed, look: Callable[[], None] = lambda: None) -> Adjacency:
    """Return the adjacency in which every edge is listed at both of its ends. See ``Computed.edges`` for ``look``."""
    if not graph.is_directed():
        return kept.outgoing(graph, look)
    return kept.part("either", lambda: outgoing(kept.edges(graph, look), False, look))


def _at_source(graph: Any, kept: Computed, base: Adjacency) -> Mask:
    """Return, for each entry of the adjacency in both directions, whether it is listed at the source of its edge."""

    def make() -> Mask:
        nodes = np.repeat(np.arange(len(base.first) - 1, dtype=np.int32), np.diff(base.first))
        found: Mask = kept.edges(graph).sources[base.edges] == nodes
        return found

    return kept.part("at source", make)


def _restricted(base: Adjacency, keep: Mask) -> Adjacency:
    before = np.zeros(len(keep) + 1, np.int64)
    np.cumsum(keep, out=before[1:])
    at = np.flatnonzero(keep)  # much faster than two selections by a mask
    return Adjacency(before.take(base.first), base.heads.take(at), base.edges.take(at))


Local = Callable[[Link, Any, Mask], Mask | None]
"""A function that returns which rows (tail, head, edge) satisfy the conditions on only these elements.

None if there are no such conditions. The given mask tells which of the rows are still possible.
"""


def reduce(spots: Sequence[Candidates], links: Sequence[LinkEdges], local: Local, deadline: Deadline) -> None:
    """For each link, keep only edges between candidates of its ends. Remove nodes that lack an edge for one of their links."""
    for each in links:
        link, table = each.link, each.kept.edges(each.graph)
        every = np.arange(len(table), dtype=np.int32)
        each.forth = _possible(each, spots, local, table.sources, table.targets, every)
        if link.either:
            each.back = _possible(each, spots, local, table.targets, table.sources, every)
        if deadline.passed():
            return
    if any(
        each.entries() < _FEW_ENTRIES * len(each.forth) * (2 if each.link.either else 1)
        for each in links
        if each.forth is not None
    ):
        _agree(spots, links, deadline)
    for each in links:
        each.every = bool(each.forth is None or (each.forth.all() and (each.back is None or each.back.all())))


_FEW_ENTRIES = 0.3
"""``_agree`` runs only if a link has less than this share of the edges. Otherwise it would remove few candidates."""


def _agree(spots: Sequence[Candidates], links: Sequence[LinkEdges], deadline: Deadline) -> None:
    """Remove candidates that don't fit together. Go over the links forwards and backwards, at most twice."""
    for _ in range(2):
        changed = False
        for each in (*links, *reversed(links[:-1])):
            changed = _narrowed(each, spots) or changed
            if deadline.passed():
                return
        if not changed:
            return


def _possible(
    each: LinkEdges, spots: Sequence[Candidates], local: Local, tails: Array, heads: Array, every: Array
) -> Mask:
    mask = np.ones(len(every), np.bool_) if each.found.mask is None else each.found.mask.copy()
    link = each.link
    for spot, ends in ((link.tail, tails), (link.head, heads)):
        allowed = spots[spot].mask
        if allowed is not None:
            mask &= allowed[ends]
    if link.tail == link.head:
        mask &= tails == heads
    found = local(link, {link.tail: tails, link.head: heads, link.slot: every}, mask)
    return mask if found is None else mask & found


def _narrowed(each: LinkEdges, spots: Sequence[Candidates]) -> bool:
    """Make the candidates of a link and of its two spots agree; return whether a candidate was removed."""
    link, table = each.link, each.kept.edges(each.graph)
    assert each.forth is not None  # noqa: S101  # the caller has set it
    changed = False
    sides = [(each.forth, table.sources, table.targets)]
    if each.back is not None:
        sides.append((each.back, table.targets, table.sources))
    ends = {link.tail: np.zeros(spots[link.tail].size, np.bool_), link.head: np.zeros(spots[link.head].size, np.bool_)}
    for mask, tails, heads in sides:
        for spot, at in ((link.tail, tails), (link.head, heads)):
            allowed = spots[spot].mask
            if allowed is not None:
                mask &= allowed[at]
        ends[link.tail][tails[mask]] = True
        ends[link.head][heads[mask]] = True
    for spot, reached in ends.items():
        before = spots[spot].count
        spots[spot].narrow(reached)
        changed = changed or spots[spot].count < before
    return changed
