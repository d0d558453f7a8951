"""``FIND paths``: evaluates the conditions (start, end, intermediate nodes and edges) and returns the resulting items."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from attrs import define, field, frozen

from ...lang.evaluate.conditions import ConditionError, Predicate, Reader, compiled, evaluate, look_up
from ...lang.trees import walk
from ...lang.trees.conditions import And, Comparison, Condition, Constant, Field, Not, NullTest
from ..graph import Caps, GraphResult, NodeId, Plan
from .find import plan_of, positions_of, predicate_of
from .find_plan import operands_of
from .neighbourhood import resolved
from .paths import Block, Endpoints, Filter, Shortest, search_paths
from .rows import Deadline, Items, edge_item, edge_readers, node_id, node_readers, path_item, plain
from .tables import Computed

# Parts of a path condition that can be checked early: conditions on the path's ends, length, nodes and edges.
# Only operands of the outermost AND are recognised. Every path found is checked against the full condition, so a part that is not
# recognised costs time but never changes the result.


@frozen
class PathParts:
    """The parts of a condition. ``starts`` and ``ends`` are conditions on the path's end nodes, ``nodes`` and ``edges``
    conditions on every node and every edge, ``lengths`` conditions on the length alone."""

    starts: Condition | None = None
    ends: Condition | None = None
    nodes: Condition | None = None
    edges: Condition | None = None
    lengths: tuple[Condition, ...] = field(default=())

    def allows(self, length: int) -> bool:
        """Return whether a path of ``length`` edges may satisfy the condition."""
        return all(evaluate(condition, lambda _: length) is True for condition in self.lengths)

    def longest(self) -> int | None:
        """Return the greatest length that may satisfy the condition; None if the length is not bounded."""
        numbers = [0.0]
        for condition in self.lengths:
            for node in walk(condition):
                if isinstance(node, Constant) and isinstance(node.value, int | float) and math.isfinite(node.value):
                    numbers.append(node.value)
        last = math.floor(max(numbers)) + 1  # the result for lengths changes only at a number in the condition
        return None if self.allows(last) else last


def both(left: Condition | None, right: Condition | None) -> Condition | None:
    """Return the conjunction of both conditions. None means a condition that is always true."""
    if left is None or right is None:
        return left or right
    return And((left, right))


def parts_of(where: Condition | None) -> PathParts:
    """Split a condition on paths into its parts."""
    parts = PathParts()
    for operand in operands_of(where):
        fields = [node for node in walk(operand) if isinstance(node, Field)]
        prefixes = {(at.path[0] if at.path else "", at.quantifier) for at in fields}
        if prefixes == {("source", None)}:
            parts = attrs.evolve(parts, starts=both(parts.starts, _without_prefix(operand)))
        elif prefixes == {("target", None)}:
            parts = attrs.evolve(parts, ends=both(parts.ends, _without_prefix(operand)))
        elif prefixes == {("length", None)}:
            parts = attrs.evolve(parts, lengths=(*parts.lengths, operand))
        elif isinstance(operand, Comparison | NullTest) and fields and fields[0].quantifier in ("all", "none"):
            each = _without_prefix(operand)
            if fields[0].quantifier == "none":
                each = Not(each)
            if fields[0].path[0] == "node":
                parts = attrs.evolve(parts, nodes=both(parts.nodes, each))
            else:
                parts = attrs.evolve(parts, edges=both(parts.edges, each))
    return parts


def _without_prefix(condition: Condition) -> Condition:
    """Return the condition with the first name removed from its fields; a field ``source`` or ``target`` alone becomes ``id``."""
    if isinstance(condition, Not):
        return Not(_without_prefix(condition.operand))
    if isinstance(condition, Comparison | NullTest):
        assert isinstance(condition.left, Field)  # noqa: S101  # conditions come bound
        return attrs.evolve(condition, left=Field(condition.left.path[1:] or ("id",)))
    return attrs.evolve(condition, operands=tuple(_without_prefix(operand) for operand in condition.operands))


def path_readers(graph: Any) -> Any:
    """Return the field readers for rows ``(nodes, edges)``; an edge is ``(source, target, key, attributes)``."""
    of_node, of_edge, attributes = node_readers(graph), edge_readers(graph), graph.nodes

    def read(at: Field) -> Reader:
        first, rest = at.path[0], at.path[1:]
        if at.quantifier is not None:
            if first == "node":
                node = of_node(Field(rest))
                return Reader((0,), function=lambda nodes: [node.read(each, attributes[each]) for each in nodes])
            edge = of_edge(Field(rest))
            return Reader((1,), function=lambda edges: [edge.read(*each) for each in edges])
        if first in ("source", "target"):
            end, inner = (0 if first == "source" else -1), of_node(Field(rest or ("id",)))
            return Reader((0,), function=lambda nodes: inner.read(nodes[end], attributes[nodes[end]]))
        if at.path == ("length",):
            return Reader((1,), function=len)
        if at.path == ("nodes",):
            return Reader((0,), function=lambda nodes: [node_id(node) for node in nodes])
        if first == "edges":
            return Reader(
                (1,), function=lambda edges: look_up({"edges": [edge_item(*each) for each in edges]}, at.path)
            )
        if first in ("node", "edge"):
            raise ConditionError(f"{'.'.join(at.path)} must follow ANY, ALL or NONE")
        return Reader((0,), function=lambda nodes: None)

    return read


_FEW = 64
_ESTIMATED = 3
"""Path length from which on the number of shortest paths is estimated."""


@frozen
class PathQuery:
    """A ``FIND paths`` query. ``starts`` and ``ends`` are ids, a condition on nodes, or None for any node.

    ``max_length`` is the value of MAXLEN. If it is None, the cap applies; the length of shortest paths is then unbounded.
    """

    starts: Sequence[NodeId] | Condition | None = None
    ends: Sequence[NodeId] | Condition | None = None
    via: Condition | None = None
    where: Condition | None = None
    shortest: bool = False
    limit: int | None = None
    max_length: int | None = None


class _Late(Exception):
    """The time limit passed before the graph's tables were built."""


def find_paths(graph: Any, kept: Computed, query: PathQuery, caps: Caps, strict: bool) -> GraphResult:
    """Find paths. The time limit includes the building of the tables for the first search. Raises ``ConditionError``."""
    deadline = Deadline.of(caps)

    def look() -> None:
        if deadline.passed():
            raise _Late

    try:
        kept.outgoing(graph, look)
        kept.incoming(graph, look)
    except _Late:
        return GraphResult((), ("timeout_s",), "tables of the graph (not yet complete)")
    return _find_paths(graph, kept, query, caps, strict, deadline)


def _find_paths(
    graph: Any, kept: Computed, query: PathQuery, caps: Caps, strict: bool, deadline: Deadline
) -> GraphResult:
    predicate, parts = _prepared(graph, kept, query.where)
    starts = _ends(graph, kept, query.starts, parts.starts, deadline, strict)
    ends = _ends(graph, kept, query.ends, parts.ends, deadline, strict)
    everywhere = np.arange(len(kept.nodes(graph)), dtype=np.int32)
    points = Endpoints(everywhere if starts.at is None else starts.at, ends.at)
    size = len(kept.nodes(graph))
    lengths, too_long = ([], False) if query.shortest else lengths_of(parts, _longest(query, caps), size)
    nodes = None if parts.nodes is None else Filter(kept.nodes(graph), predicate_of(graph, "nodes", parts.nodes))
    over = both(query.via, parts.edges)
    edges = None if over is None else Filter(kept.edges(graph), predicate_of(graph, "edges", over))
    backward = None if ends.at is None else kept.incoming(graph)
    keep = _path_filter(graph, predicate, starts.holds, ends.holds)
    search = Shortest(points, kept.outgoing(graph), kept.incoming(graph), nodes, edges, deadline)

    def longer(lengths: Sequence[int], starts: Any) -> Iterator[Block]:
        some = points if starts is None else Endpoints(starts, points.ends)
        return search_paths(some, kept.outgoing(graph), backward, lengths, nodes, edges, deadline)

    each = _EachPair(graph, kept, search, parts, keep, longer, min(query.max_length or size, max(size - 1, 0)))
    blocks = each.blocks() if query.shortest else longer(lengths, None)
    cap = min(caps.max_paths, caps.max_results)
    most = cap if query.limit is None else min(query.limit, cap)
    found, examined = _first_paths(graph, kept, blocks, None if query.shortest else keep, most + 1)
    capped = len(found) > cap and (query.limit is None or query.limit > cap)
    hit = []
    if too_long:
        hit.append("max_path_length")
    if capped:
        hit.append("max_paths" if caps.max_paths <= caps.max_results else "max_results")
    if each.cut and query.shortest:
        hit.append("MAXLEN")
    asked_for = query.shortest or query.max_length is not None or parts.lengths or query.limit == 0
    if not (found or hit or deadline.hit or asked_for) and lengths and search.has_more(lengths[-1]):
        hit.append("max_path_length")
    if deadline.hit:
        hit.append("timeout_s")
    used = f"paths from {starts.used} to {ends.used}"
    return GraphResult(
        Items(found[:most], lambda row: path_item(row[0], [edge_item(*edge) for edge in row[1]])),
        tuple(hit),
        used,
        examined,
    )


def _prepared(graph: Any, kept: Computed, where: Condition | None) -> tuple[Predicate | None, PathParts]:
    """Return the condition as a predicate over rows ``(nodes, edges)``, and the parts that are checked early."""
    if where is None:
        return None, PathParts()

    def make() -> tuple[Predicate, PathParts]:
        return compiled(where, path_readers(graph), arity=2, plain=plain), parts_of(where)

    return kept.prepared("paths", where, make)


def _longest(query: PathQuery, caps: Caps) -> Caps:
    return caps if query.max_length is None else attrs.evolve(caps, max_path_length=query.max_length)


def lengths_of(parts: PathParts, caps: Caps, nodes: int) -> tuple[list[int], bool]:
    """Return the path lengths to search, and whether the condition asks for longer paths than the cap allows.

    A condition that does not mention the length asks only for paths up to the cap.
    """
    longest = min(caps.max_path_length, max(nodes - 1, 0))
    lengths = [length for length in range(1, longest + 1) if parts.allows(length)]
    # `length >= 2` is unbounded and also means "up to the cap"; `length = 5` and `length > 4` ask for paths beyond the cap.
    beyond = [length for length in range(longest + 1, min(nodes, longest + 65)) if parts.allows(length)]
    open_ended = bool(beyond) and beyond[-1] >= min(nodes, longest + 65) - 1
    return lengths, bool(parts.lengths and beyond and (not lengths or not open_ended))


@frozen(eq=False)
class _End:
    """The start or end of paths: positions (None: any node), the kind of search used, and the condition still to check."""

    at: Any
    used: str
    holds: Callable[..., bool] | None = None


def _ends(
    graph: Any,
    kept: Computed,
    given: Sequence[NodeId] | Condition | None,
    also: Condition | None,
    deadline: Deadline,
    strict: bool,
) -> _End:
    if given is None or not isinstance(given, Sequence):
        where = both(given, also)
        if where is None:
            return _End(None, "any node")
        positions, used, predicate = positions_of(graph, kept, "nodes", where, deadline, strict)
        return _End(positions, f"nodes by {used}", predicate.holds)
    at = kept.nodes(graph).positions
    nodes = resolved(graph, given)
    if also is not None:
        holds, data = predicate_of(graph, "nodes", also).holds, graph.nodes
        nodes = [node for node in nodes if holds(node, data[node])]
    return _End(np.array([at[node] for node in nodes], np.int32), f"{len(nodes):,} nodes")


def _path_filter(
    graph: Any,
    predicate: Predicate | None,
    start: Callable[..., bool] | None,
    end: Callable[..., bool] | None,
) -> "Keep | None":
    """Return a filter that checks paths on the live graph against all conditions; None if nothing needs to be checked."""
    if predicate is None and start is None and end is None:
        return None
    data = graph.nodes

    def keep(rows: "list[Row]") -> "list[Row]":
        if predicate is not None:
            rows = predicate.select(rows)
        if start is not None:
            rows = [row for row in rows if start(row[0][0], data[row[0][0]])]
        if end is not None:
            rows = [row for row in rows if end(row[0][-1], data[row[0][-1]])]
        return rows

    return keep


Row = tuple[list[Any], list[tuple[Any, ...]]]
Keep = Callable[[list[Row]], list[Row]]


def _rows(graph: Any, kept: Computed, block: Block) -> list[Row]:
    """Return ``(nodes, edges)`` for each path."""
    nodes, table = kept.nodes(graph).nodes, kept.edges(graph)
    length = block.edges.shape[1]
    edges = table.rows(block.edges.ravel())
    return [
        ([nodes[at] for at in path], edges[length * i : length * (i + 1)])
        for i, path in enumerate(block.nodes.tolist())
    ]


def _first_paths(
    graph: Any, kept: Computed, blocks: Iterator[Block], keep: Keep | None, most: int
) -> tuple[list[Row], int]:
    """Return at most ``most`` paths accepted by ``keep``, and the number of paths examined."""
    found: list[Row] = []
    examined = 0
    for block in blocks:
        done, size = 0, _FEW  # the pieces grow, because the first paths are often enough
        while done < len(block.nodes):
            piece = Block(block.nodes[done : done + size], block.edges[done : done + size])
            done, size = done + size, min(size * 2, 8192)
            examined += len(piece.nodes)
            rows = _rows(graph, kept, piece)
            found += rows if keep is None else keep(rows)
            if len(found) >= most:
                return found[:most], examined
    return found, examined


@define(eq=False)
class _EachPair:
    """The shortest paths accepted by ``keep`` for each pair of start and end, with at most ``longest`` edges.

    If ``keep`` accepts none of a pair's shortest paths, ``longer`` yields the pair's simple paths of the next lengths. ``cut``:
    whether a pair may have a path longer than ``longest``.
    """

    graph: Any
    kept: Computed
    search: Shortest
    parts: PathParts
    keep: Keep | None
    longer: Callable[[Sequence[int], Any], Iterator[Block]]
    longest: int
    cut: bool = False
    _left: dict[tuple[int, int], None] = field(factory=dict)
    """Pairs for which no path has been accepted yet."""

    def blocks(self) -> Iterator[Block]:
        """Yield the paths, shorter ones first."""
        length, deadline = 0, self.search.deadline
        bound = self.parts.longest()
        while (not self.search.is_over or self._left) and not deadline.hit:
            if bound is not None and length >= bound:
                return
            if length >= self.longest:
                self.cut = bool(self._left) and self.longest < len(self.kept.nodes(self.graph)) - 1
                self.cut = self.cut or self.search.has_more(length)
                return
            length += 1
            before = list(self._left)
            for reached in self.search.at(length):
                pairs = [(reached.start, end) for end in reached.ends.tolist()]
                self._left.update(dict.fromkeys(pairs))
                if self.parts.allows(length):
                    yield from self._of(reached.blocks, pairs)
            if before and self.parts.allows(length):
                starts = np.array(list(dict.fromkeys(start for start, _ in before)), np.int32)
                yield from self._of(self.longer([length], starts), before)

    def _of(self, blocks: Iterator[Block], pairs: Sequence[tuple[int, int]]) -> Iterator[Block]:
        """Yield the accepted paths of ``pairs``. A pair with an accepted path needs no longer paths."""
        wanted, done = set(pairs), set[tuple[int, int]]()
        for block in blocks:
            couples = list(zip(block.nodes[:, 0].tolist(), block.nodes[:, -1].tolist(), strict=True))
            open_ = [i for i, couple in enumerate(couples) if couple in wanted]
            if self.keep is not None and open_:
                rows = _rows(self.graph, self.kept, Block(block.nodes[open_], block.edges[open_]))
                kept_rows = set(map(id, self.keep(rows)))
                open_ = [i for i, row in zip(open_, rows, strict=True) if id(row) in kept_rows]
            done.update(couples[i] for i in open_)
            if open_:
                yield Block(block.nodes[open_], block.edges[open_])
        for pair in done:
            self._left.pop(pair, None)


def path_plan(graph: Any, kept: Computed, query: PathQuery, caps: Caps, strict: bool) -> Plan:
    """Return the plan that ``find_paths`` would use: starts and ends, early checks, estimated number of paths."""
    parts = _prepared(graph, kept, query.where)[1]
    starts, used_starts, many_starts = _end_plan(graph, kept, query.starts, parts.starts, strict)
    ends, used_ends, many_ends = _end_plan(graph, kept, query.ends, parts.ends, strict)
    if query.shortest:
        caps = attrs.evolve(caps, max_path_length=min(query.max_length or _ESTIMATED, _ESTIMATED))
    lengths, too_long = lengths_of(parts, caps if query.shortest else _longest(query, caps), len(kept.nodes(graph)))
    notes = [f"lengths {lengths[0]} to {lengths[-1]}" if lengths else "no length satisfies the condition"]
    if query.shortest:
        bound = "of any length" if query.max_length is None else f"of at most {query.max_length:,} edges"
        notes, too_long = [f"breadth first from each start, {bound}"], False
    notes += [*starts, *ends]
    if many_ends is not None:
        notes.append("pruned from both ends")
    if parts.nodes is not None:
        notes.append("a condition on every node is tested while paths grow")
    if both(query.via, parts.edges) is not None:
        notes.append("a condition on every edge is tested while paths grow")
    if too_long:
        notes.append("the condition allows longer paths than max_path_length")
    size, edges = len(kept.nodes(graph)), len(kept.edges(graph))
    branching = edges * (1 if graph.is_directed() else 2) / max(size, 1)
    hitting = 1.0 if many_ends is None else many_ends / max(size, 1)
    many = size if many_starts is None else many_starts
    rows = sum(many * branching**length * hitting for length in lengths)
    most = min(caps.max_paths, caps.max_results, caps.max_paths if query.limit is None else query.limit)
    return Plan(f"paths from {used_starts} to {used_ends}", min(round(rows), most), tuple(notes))


def _end_plan(
    graph: Any, kept: Computed, given: Sequence[NodeId] | Condition | None, also: Condition | None, strict: bool
) -> tuple[tuple[str, ...], str, int | None]:
    """Return notes, the way the ends would be found, and their estimated number; None for all nodes."""
    if given is None or not isinstance(given, Sequence):
        where = both(given, also)
        if where is None:
            return (), "any node", None
        plan = plan_of(graph, kept, "nodes", where, strict)
        return plan.notes, f"nodes by {plan.used}", plan.rows
    return (), f"{len(given):,} nodes", len(given)
