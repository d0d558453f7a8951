"""``FIND cycles``: finds each simple cycle once, shorter cycles first.

The search runs in both directions from the first node of a cycle. Edges that are not part of any cycle are removed first: nodes
without incoming or outgoing edges are dropped repeatedly. The lengths are searched one after the other. For each length, the
first nodes are processed in blocks. Paths grow forwards from the first node in blocks, as for ``FIND paths``. A backward search
over half of the length finds the nodes from which each first node can still be reached with the remaining edges. Cycles of one
length are sorted by their first nodes, then by their edges.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import define, frozen
from numpy.typing import NDArray

from ...lang.evaluate.conditions import compiled
from ...lang.trees.conditions import Condition
from ..graph import Caps, GraphResult, Plan
from .find import count_types, plan_of, positions_of, predicate_of
from .longer_paths import has_longer_cycle
from .path_conditions import PathOrder, PathParts, both, order_of, parts_of, path_readers
from .path_search import first_paths, path_filter
from .paths import Block, Filter, in_order, split
from .rows import Deadline, Items, edge_item, path_item, plain
from .tables import Adjacency, Computed, distinct

_ROOTS = 1024
"""Number of first nodes in a block."""

_WIDEST = 1 << 22
"""Maximum number of edges that one step of the backward search follows."""

Array = NDArray[Any]


def find_cycles(
    graph: Any,
    kept: Computed,
    via: Condition | None,
    where: Condition | None,
    limit: int | None,
    max_length: int | None,
    capped: bool,
    caps: Caps,
    strict: bool,
) -> GraphResult:
    """Find cycles; see ``GraphAdapter.cycles``. Raises ``ConditionError``."""
    deadline = Deadline.of(caps)
    parts = parts_of(where)
    predicate = None if where is None else compiled(where, path_readers(graph), arity=2, plain=plain)
    longest = caps.max_path_length if max_length is None else max_length
    lengths = [length for length in range(1, longest + 1) if parts.allows(length)]
    search = _CycleSearch.of(graph, kept, via, parts, deadline, strict)
    cap = min(caps.max_paths, caps.max_results)
    most = cap if limit is None else min(limit, cap)
    keep = path_filter(graph, predicate, where)
    found, examined = first_paths(graph, kept, search.blocks(lengths), keep, most + 1)
    hit = []
    if len(found) > cap and (limit is None or limit > cap):
        hit.append("max_paths" if caps.max_paths <= caps.max_results else "max_results")
    if deadline.hit:
        hit.append("timeout_s")
    if (capped or max_length is None) and not hit and (limit is None or len(found) < limit):
        size = len(kept.nodes(graph))
        beyond = next(
            (length for length in range(longest + 1, min(size, longest + 64) + 1) if parts.allows(length)), None
        )
        hit += ["max_path_length"] if beyond is not None and search.has_longer(beyond - 1) else []
    items = Items(found[:most], lambda row: path_item(row[0], [edge_item(*edge) for edge in row[1]]))
    return GraphResult(items, tuple(hit), f"cycles along {len(search.forward.heads):,} edges", examined)


def cycle_plan(
    graph: Any,
    kept: Computed,
    via: Condition | None,
    where: Condition | None,
    limit: int | None,
    max_length: int | None,
    caps: Caps,
    strict: bool,
) -> Plan:
    """Return the plan that ``find_cycles`` would use.

    ``rows`` is not an estimate: it is the maximum that the caps and the limit allow.
    """
    parts, notes = parts_of(where), []
    over = both(via, parts.edges)
    used = "edges by scan" if over is None else f"edges by {plan_of(graph, kept, 'edges', over, strict).used}"
    longest = caps.max_path_length if max_length is None else max_length
    lengths = [length for length in range(1, longest + 1) if parts.allows(length)]
    notes.append(f"lengths {lengths[0]} to {lengths[-1]}" if lengths else "no length satisfies the condition")
    notes.append(
        "edges that are not part of any cycle are removed first; then half of each length is searched backwards"
    )
    if parts.increasing:
        notes.append("a path is dropped as soon as a value decreases")
    most = min(caps.max_paths, caps.max_results)
    return Plan(f"cycles along {used}", most if limit is None else min(most, limit), tuple(notes))


@frozen(eq=False)
class _Links:
    """Pairs of a first node and another node, each as an integer: first node * number of nodes + node. The integers ascend."""

    pairs: Array

    def has(self, pairs: Array) -> NDArray[np.bool_]:
        """Return, for each of ``pairs``, whether it is in this object."""
        if not len(self.pairs):
            return np.zeros(len(pairs), np.bool_)
        at = np.minimum(np.searchsorted(self.pairs, pairs), len(self.pairs) - 1)
        found: NDArray[np.bool_] = self.pairs[at] == pairs
        return found


@define(eq=False)
class _CycleSearch:
    """The usable edges that may be part of a cycle, in both directions; ``loops`` are the positions of the loops."""

    forward: Adjacency
    backward: Adjacency
    loops: Array
    ends: tuple[Array, Array]
    directed: bool
    order: PathOrder | None
    deadline: Deadline

    @classmethod
    def of(
        cls, graph: Any, kept: Computed, via: Condition | None, parts: PathParts, deadline: Deadline, strict: bool
    ) -> "_CycleSearch":
        """Return a search for the cycles in which all edges satisfy ``via`` and all nodes and edges satisfy ``parts``."""
        table, size = kept.edges(graph), len(kept.nodes(graph))
        used = np.ones(len(table), np.bool_)
        over = both(via, parts.edges)
        if over is not None:
            used[:] = False
            used[positions_of(graph, kept, "edges", over, deadline, strict)[0]] = True
            if via is not None:
                count_types(graph, kept, "edges", via, strict)
        if parts.nodes is not None:
            allowed = Filter(kept.nodes(graph), predicate_of(graph, "nodes", parts.nodes)).allowed(np.arange(size))
            used &= allowed[table.sources] & allowed[table.targets]
        loops = np.flatnonzero(used & (table.sources == table.targets))
        used &= table.sources != table.targets
        directed = graph.is_directed()
        forward = kept.outgoing(graph).only(used)
        backward = kept.incoming(graph).only(used)
        inside = _core(forward, backward, size, directed)
        used &= inside[table.sources] & inside[table.targets]
        order = order_of(graph, kept, parts)
        ends = (table.sources, table.targets)
        return cls(forward.only(used), backward.only(used), loops, ends, directed, order, deadline)

    def has_longer(self, length: int) -> bool:
        """Return whether the usable edges have a cycle of more than ``length`` edges."""
        if not length and len(self.loops):
            return True
        roots: list[int] = np.flatnonzero(np.diff(self.forward.first)).tolist()
        return has_longer_cycle(
            self.forward, roots, max(length, 1), directed=self.directed, order=self.order, deadline=self.deadline
        )

    def blocks(self, lengths: list[int]) -> Iterator[Block]:
        """Yield the cycles of each length in blocks; the last node of a cycle is its first node."""
        least = 2 if self.directed else 3
        roots = np.flatnonzero(np.diff(self.forward.first)).astype(np.int64)
        for length in lengths:
            if length == 1 and len(self.loops):
                yield self._loops()
            if length < least:
                continue
            for start in range(0, len(roots), _ROOTS):
                if self.deadline.passed():
                    return
                yield from self._of_length(length, roots[start : start + _ROOTS])

    def _loops(self) -> Block:
        nodes = self.ends[0][self.loops]
        by_node = np.lexsort((self.loops, nodes))
        block = Block(np.stack([nodes, nodes], axis=1)[by_node], self.loops[by_node][:, None])
        if self.order is None:
            return block
        return in_order(block, self.order)

    def _of_length(self, length: int, roots: Array) -> Iterator[Block]:
        size = len(self.forward.first) - 1
        backwards = self._backwards(length // 2, roots, size)
        stack = [Block(roots.reshape(-1, 1), np.empty((len(roots), 0), np.int64))]
        while stack and not self.deadline.passed():
            current = stack.pop()
            if not len(current.nodes):
                continue
            at = current.edges.shape[1]
            if at == length:
                yield from self._once(current)
                continue
            current, rest = split(current, self.forward)
            if rest is not None:
                stack.append(rest)
            stack.append(self._step(current, length - at - 1, backwards, size))

    def _backwards(self, depth: int, roots: Array, size: int) -> list[_Links]:
        """Return, for each length from 0 to at most ``depth``, the nodes from which walks of this length lead to each root."""
        found = [_Links(roots * size + roots)]
        first, nodes = roots, roots
        for _ in range(depth):
            if int(self.backward.degrees(nodes).sum()) > _WIDEST:
                break  # deeper levels would need too much memory; without them, the search is only pruned less
            owner, place = self.backward.expand(nodes)
            first, nodes = first[owner], self.backward.heads[place].astype(np.int64)
            keep = nodes > first if self.order is None else nodes != first
            pairs = distinct(first[keep] * size + nodes[keep])
            found.append(_Links(pairs))
            first, nodes = pairs // size, pairs % size
        return found

    def _step(self, block: Block, left: int, backwards: list[_Links], size: int) -> Block:
        """Extend every path by each edge that may follow. After that, ``left`` more edges are needed to close the cycle."""
        owner, place = self.forward.expand(block.nodes[:, -1])
        heads = self.forward.heads[place].astype(np.int64)
        first = block.nodes[owner, 0]
        if left == 0:
            keep = heads == first
        else:
            # Every cycle is found once: from its first node, unless the order of the values decides where it begins.
            keep = heads > first if self.order is None else heads != first
            if left < len(backwards):
                keep[keep] = backwards[left].has(first[keep] * size + heads[keep])
        owner, place, heads = owner[keep], place[keep], heads[keep]
        for column in range(1, block.nodes.shape[1]):
            keep = heads != block.nodes[owner, column]
            owner, place, heads = owner[keep], place[keep], heads[keep]
        grown = Block(
            np.concatenate([block.nodes[owner], heads[:, None]], axis=1),
            np.concatenate([block.edges[owner], self.forward.edges[place][:, None]], axis=1),
        )
        return grown if self.order is None else in_order(grown, self.order)

    def _once(self, block: Block) -> Iterator[Block]:
        """Yield the cycles of a block, without those that the search also finds from another node or in the other direction."""
        nodes, edges = block.nodes, block.edges
        keep = np.ones(len(nodes), np.bool_) if self.directed else nodes[:, 1] < nodes[:, -2]
        if self.order is not None:
            # If not all values are equal, they increase from only one node in each direction. They increase in both directions of an
            # undirected cycle if they rise only once; the reverse cycle then begins at the node where they rise.
            around = self.order.may_follow(edges[:, -1], nodes[:, -2], edges[:, 0], nodes[:, -1])
            keep = ~around | (keep & (nodes[:, 0] == nodes.min(axis=1)))
            if not self.directed:
                rises = ~self.order.same(edges[:, :-1], edges[:, 1:])
                turn = nodes[np.arange(len(nodes)), rises.argmax(axis=1) + 1]
                keep &= around | (np.count_nonzero(rises, axis=1) != 1) | (nodes[:, 0] < turn)
        if keep.any():
            yield Block(nodes[keep], edges[keep])


def _core(forward: Adjacency, backward: Adjacency, size: int, directed: bool) -> NDArray[np.bool_]:
    """Repeatedly drop nodes without incoming or outgoing edges (undirected: with one neighbour). Return a mask of the rest."""
    inside = np.ones(size, np.bool_)
    if not directed:
        # Parallel edges count once: they are not a cycle in an undirected graph.
        origins = np.repeat(np.arange(size), np.diff(forward.first))
        pairs = distinct(origins * size + forward.heads)
        first = np.concatenate([[0], np.cumsum(np.bincount(pairs // size, minlength=size))])
        forward = backward = Adjacency(first, (pairs % size).astype(np.int32), np.zeros(len(pairs), np.int32))
    least = 1 if directed else 2
    leaving: Array = np.diff(forward.first)
    entering: Array = np.diff(backward.first)
    going: Array = np.flatnonzero((leaving < least) | (entering < least))
    while len(going):
        inside[going] = False
        heads = forward.heads[forward.expand(going)[1]]
        tails = backward.heads[backward.expand(going)[1]]
        for counts, ends in ((entering, heads), (leaving, tails)):
            some, lost = np.unique(ends, return_counts=True)
            counts[some] -= lost
        near: Array = distinct(np.concatenate([heads, tails]))
        going = near[inside[near] & ((leaving[near] < least) | (entering[near] < least))]
    return inside
