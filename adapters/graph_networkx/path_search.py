"""``FIND paths``: chooses the search, evaluates the conditions (start, end, nodes and edges) and returns the resulting items."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from attrs import define, field, frozen

from ...lang.evaluate.conditions import Predicate, compiled
from ...lang.evaluate.conditions.values import uncounted
from ...lang.trees.conditions import Condition, Value
from ..graph import Caps, Direction, GraphResult, NodeId
from .edge_costs import EdgeCosts, cached_costs, live_costs
from .find import count_types, positions_of, predicate_of
from .left_out import counter_of, with_name
from .longer_paths import has_longer_path
from .neighbourhood import resolved
from .path_conditions import PathParts, both, order_of, parts_of, path_readers
from .paths import Block, Endpoints, Filter, Shortest, search_paths
from .ranked_paths import RankedPath, RankedSearch
from .rows import Deadline, Items, edge_item, edge_readers, node_readers, path_item, plain
from .stale import warn_stale
from .tables import Adjacency, Computed, forget

_FEW = 64


@frozen
class PathQuery:
    """A ``FIND paths`` query. ``starts`` and ``ends`` are ids, a condition on nodes, or None for any node.

    ``max_length`` is the maximum length. If it is None, the cap is the maximum length, but the length of shortest paths is
    unbounded. If ``capped`` is true, ``max_length`` is a cap: the result is incomplete if it lacks longer paths. ``count`` is
    the number of shortest paths to return for each pair; None means all paths with the smallest length or cost. ``cost`` is the
    value that is computed for each edge as its cost.
    """

    starts: Sequence[NodeId] | Condition | None = None
    ends: Sequence[NodeId] | Condition | None = None
    via: Condition | None = None
    where: Condition | None = None
    shortest: bool = False
    limit: int | None = None
    max_length: int | None = None
    count: int | None = None
    cost: Value | None = None
    direction: Direction = "out"
    capped: bool = False


class _Late(Exception):
    """Raised if the time limit passes before the graph's tables are built."""


def find_paths(graph: Any, kept: Computed, query: PathQuery, caps: Caps, strict: bool) -> GraphResult:
    """Find paths. The time limit includes building the tables for the first search. Raises ``ConditionError``."""
    deadline = Deadline.of(caps)

    def look() -> None:
        if deadline.passed():
            raise _Late

    try:
        kept.outgoing(graph, look)
        kept.incoming(graph, look)
    except _Late:
        return GraphResult((), ("timeout_s",), "tables of the graph (not yet complete)")
    parts = parts_of(query.where)
    if query.count is not None or query.cost is not None or (query.shortest and parts.increasing):
        try:
            return _find_ranked(graph, kept, query, caps, strict, deadline)
        except _Late:
            return GraphResult((), ("timeout_s",), "costs of the edges (not yet complete)")
    return _find_paths(graph, kept, query, caps, strict, deadline)


def _adjacencies(graph: Any, kept: Computed, direction: Direction) -> tuple[Adjacency, Adjacency]:
    """Return the edges that a path may follow from each node, and those by which a path may reach each node."""
    if direction == "both":
        return kept.either(graph), kept.either(graph)
    if direction == "in":
        return kept.incoming(graph), kept.outgoing(graph)
    return kept.outgoing(graph), kept.incoming(graph)


def _find_paths(
    graph: Any, kept: Computed, query: PathQuery, caps: Caps, strict: bool, deadline: Deadline
) -> GraphResult:
    predicate, parts = prepared(graph, kept, query.where)
    forward, incoming = _adjacencies(graph, kept, query.direction)
    order = order_of(graph, kept, parts)
    starts = _ends(graph, kept, query.starts, "source", parts.starts, deadline, strict)
    ends = _ends(graph, kept, query.ends, "target", parts.ends, deadline, strict)
    everywhere = np.arange(len(kept.nodes(graph)), dtype=np.int32)
    points = Endpoints(everywhere if starts.at is None else starts.at, ends.at)
    size = len(kept.nodes(graph))
    lengths, beyond = ([], None) if query.shortest else lengths_of(parts, longest_caps(query, caps), size)
    nodes, edges = _filters(graph, kept, query, parts)
    backward = None if ends.at is None else incoming
    keep = path_filter(graph, predicate, query.where, starts.holds, ends.holds)
    search = Shortest(points, forward, incoming, nodes, edges, deadline)

    def longer(lengths: Sequence[int], starts: Any) -> Iterator[Block]:
        some = points if starts is None else Endpoints(starts, points.ends)
        return search_paths(some, forward, backward, lengths, nodes, edges, deadline, order)

    most_edges = max(size - 1, 0) if query.max_length is None else min(query.max_length, max(size - 1, 0))
    each = _EachPair(graph, kept, search, parts, keep, longer, most_edges, query.capped)
    blocks = each.blocks() if query.shortest else longer(lengths, None)
    cap = min(caps.max_paths, caps.max_results)
    most = cap if query.limit is None else min(query.limit, cap)
    found, examined = first_paths(graph, kept, blocks, None if query.shortest else keep, most + 1)
    hit = []
    if len(found) > cap and (query.limit is None or query.limit > cap):
        hit.append("max_paths" if caps.max_paths <= caps.max_results else "max_results")
    if deadline.hit:
        hit.append("timeout_s")
    capped = query.capped or (query.max_length is None and not query.shortest)
    if capped and not hit and (query.limit is None or len(found) < query.limit):
        cut = each.cut
        if not query.shortest and beyond is not None:
            cut = has_longer_path(points, forward, incoming, beyond - 1, nodes, edges, order, deadline)
        hit += ["max_path_length"] if cut else []
    used = f"paths from {starts.used} to {ends.used}"
    return GraphResult(
        Items(found[:most], lambda row: path_item(row[0], [edge_item(*edge) for edge in row[1]])),
        tuple(hit),
        used,
        examined,
    )


def _filters(graph: Any, kept: Computed, query: PathQuery, parts: PathParts) -> tuple[Filter | None, Filter | None]:
    """Return a filter for the nodes, and a filter for the edges, that may be on a path."""
    over = both(query.via, parts.edges)
    nodes = None if parts.nodes is None else Filter(kept.nodes(graph), predicate_of(graph, "nodes", parts.nodes))
    if over is None:
        return nodes, None
    via = query.via or over
    left_out = counter_of(query.via, edge_readers(graph), lambda: predicate_of(graph, "edges", via))
    return nodes, Filter(kept.edges(graph), predicate_of(graph, "edges", over), left_out)


def _find_ranked(
    graph: Any, kept: Computed, query: PathQuery, caps: Caps, strict: bool, deadline: Deadline
) -> GraphResult:
    """Find the cheapest paths of each pair. Raises ``UnusableValue``.

    The costs of the paths found are compared with the live graph. If they differ, attributes were written without NetworkX's
    methods: the cache is discarded with a warning, and the search is repeated.
    """
    costs, live = None, None
    if query.cost is not None:

        def look() -> None:
            if deadline.passed():
                raise _Late

        costs = cached_costs(graph, kept, query.cost, look)
        live = live_costs(graph, query.cost)
    parts = parts_of(query.where)
    total = None if live is None else lambda rows: _sum(live(rows))
    predicate = None
    if query.where is not None:
        predicate = compiled(query.where, path_readers(graph, total), arity=2, plain=plain)
    starts = _ends(graph, kept, query.starts, "source", parts.starts, deadline, strict)
    ends = _ends(graph, kept, query.ends, "target", parts.ends, deadline, strict)
    size = len(kept.nodes(graph))
    everywhere = np.arange(size, dtype=np.int32)
    nodes, edges = _filters(graph, kept, query, parts)
    unused = 0
    if costs is not None:
        unused = costs.check(kept.edges(graph), lambda at: _allowed(edges, at))
    keep = path_filter(graph, predicate, query.where, starts.holds, ends.holds, total)
    forward, backward = _adjacencies(graph, kept, query.direction)
    bounds = [each for each in (query.max_length, parts.longest()) if each is not None and each < size - 1]
    dearest = parts.dearest() if costs is not None else None

    def accepts(path: RankedPath) -> bool:
        return keep is None or bool(keep(_rows_of_path(graph, kept, path)))

    search = RankedSearch(
        Endpoints(everywhere if starts.at is None else starts.at, ends.at),
        forward,
        backward,
        accepts,
        deadline,
        query.count,
        None if costs is None else costs.exact,
        frozenset() if costs is None else frozenset((*costs.nulls.tolist(), *costs.faults)),
        nodes,
        edges,
        order_of(graph, kept, parts),
        min(bounds, default=None),
        None if dearest is None or costs is None else dearest << costs.bits,
    )
    cap = min(caps.max_paths, caps.max_results)
    most = cap if query.limit is None else min(query.limit, cap)
    found = search.first(most + 1)
    if costs is not None and live is not None and _is_stale(graph, kept, found[:most], costs, live):
        warn_stale()
        forget(graph)
        return _find_ranked(graph, Computed(), query, caps, strict, deadline)
    hit = []
    if len(found) > cap and (query.limit is None or query.limit > cap):
        hit.append("max_paths" if caps.max_paths <= caps.max_results else "max_results")
    if deadline.hit:
        hit.append("timeout_s")
    if query.capped and not hit and search.cut:
        with uncounted():  # these paths were counted already
            more = attrs.evolve(search, longest=parts.longest(), examined=0).first(most)
        if deadline.hit or [path.key for path in more] != [path.key for path in found[:most]]:
            hit.append("max_path_length")
    by = "cost" if costs is not None else "length"
    used = f"paths from {starts.used} to {ends.used}, by {by}"
    items = [_ranked_item(graph, kept, path, costs) for path in found[:most]]
    return GraphResult(items, tuple(hit), used, search.examined, unused_edges=unused)


def _allowed(edges: Filter | None, positions: Any) -> Any:
    return np.ones(len(positions), np.bool_) if edges is None else edges.allowed(positions)


def _sum(costs: Sequence[Any]) -> Any:
    return None if None in costs else sum(costs)


def _rows_of_path(graph: Any, kept: Computed, path: RankedPath) -> "list[Row]":
    names, table = kept.nodes(graph).nodes, kept.edges(graph)
    return [([names[at] for at in path.nodes], table.rows(path.edges))]


def _is_stale(
    graph: Any,
    kept: Computed,
    paths: Sequence[RankedPath],
    costs: EdgeCosts,
    live: Callable[[Sequence[Any]], list[Any]],
) -> bool:
    used = list(dict.fromkeys(edge for path in paths for edge in path.edges))
    return live(kept.edges(graph).rows(used)) != [costs.values[at] for at in used]


def _ranked_item(graph: Any, kept: Computed, path: RankedPath, costs: EdgeCosts | None) -> Any:
    ((nodes, edges),) = _rows_of_path(graph, kept, path)
    item = path_item(nodes, [edge_item(*edge) for edge in edges])
    if costs is None:
        return item
    ends, rest = ("source", "target", "length"), ("nodes", "edges")
    return {name: item[name] for name in ends} | {"cost": costs.total(path.edges)} | {name: item[name] for name in rest}


def prepared(graph: Any, kept: Computed, where: Condition | None) -> tuple[Predicate | None, PathParts]:
    """Return the condition as a predicate over rows ``(nodes, edges)``, and its parts that a search can check early."""
    if where is None:
        return None, PathParts()

    def make() -> tuple[Predicate, PathParts]:
        return compiled(where, path_readers(graph), arity=2, plain=plain), parts_of(where)

    return kept.prepared("paths", where, make)


def longest_caps(query: PathQuery, caps: Caps) -> Caps:
    """Return ``caps``. If the query has a maximum length, this length replaces ``max_path_length``."""
    return caps if query.max_length is None else attrs.evolve(caps, max_path_length=query.max_length)


def lengths_of(parts: PathParts, caps: Caps, nodes: int) -> tuple[list[int], int | None]:
    """Return the path lengths to search, and the next length that the condition allows; None if it allows no longer paths."""
    longest = min(caps.max_path_length, max(nodes - 1, 0))
    lengths = [length for length in range(1, longest + 1) if parts.allows(length)]
    return lengths, next(
        (length for length in range(longest + 1, min(nodes, longest + 65)) if parts.allows(length)), None
    )


@frozen(eq=False)
class _End:
    """The starts or the ends of paths: positions (None: any node), the kind of search used, and the condition left to check."""

    at: Any
    used: str
    holds: Callable[..., bool] | None = None


def _ends(
    graph: Any,
    kept: Computed,
    given: Sequence[NodeId] | Condition | None,
    name: str,
    also: Condition | None,
    deadline: Deadline,
    strict: bool,
) -> _End:
    """Return the starts or ends (``name``: "source" or "target"). ``also`` is the part of a path condition about them."""
    shown = with_name(name, also) if also is not None else lambda leaf: leaf
    if given is None or not isinstance(given, Sequence):
        where = both(given, also)
        if where is None:
            return _End(None, "any node")
        positions, used, predicate = positions_of(graph, kept, "nodes", where, deadline, strict)
        count_types(graph, kept, "nodes", where, strict, shown)
        return _End(positions, f"nodes by {used}", predicate.holds)
    at = kept.nodes(graph).positions
    nodes = resolved(graph, given)
    if also is not None:
        predicate, data = predicate_of(graph, "nodes", also), graph.nodes
        left_out = counter_of(also, node_readers(graph), lambda: predicate, shown)
        rows = [(node, data[node]) for node in nodes]
        nodes = [node for node, attributes in rows if predicate.holds(node, attributes)]
        if left_out is not None:
            left_out(rows)
    return _End(np.array([at[node] for node in nodes], np.int32), f"{len(nodes):,} nodes")


def path_filter(
    graph: Any,
    predicate: Predicate | None,
    where: Condition | None,
    start: Callable[..., bool] | None = None,
    end: Callable[..., bool] | None = None,
    cost: Callable[[Sequence[Any]], Any] | None = None,
) -> "Keep | None":
    """Return a filter that checks paths on the live graph against all conditions; None if nothing needs to be checked.

    ``predicate`` is the compiled condition ``where``. See ``path_readers`` for ``cost``.
    """
    if predicate is None and start is None and end is None:
        return None
    data = graph.nodes
    left_out = None if predicate is None else counter_of(where, path_readers(graph, cost), lambda: predicate)

    def keep(rows: "list[Row]") -> "list[Row]":
        if predicate is not None:
            if left_out is not None:
                left_out(rows)
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
    """Return the row ``(nodes, edges)`` of each path."""
    nodes, table = kept.nodes(graph).nodes, kept.edges(graph)
    length = block.edges.shape[1]
    edges = table.rows(block.edges.ravel())
    return [
        ([nodes[at] for at in path], edges[length * i : length * (i + 1)])
        for i, path in enumerate(block.nodes.tolist())
    ]


def first_paths(
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


class _ByStart:
    """Divides blocks of paths, which are sorted by start, into the paths from each start."""

    def __init__(self, blocks: Iterator[Block]) -> None:
        self._blocks = blocks
        self._rest: Block | None = None

    def of(self, start: int) -> Iterator[Block]:
        """Yield the paths from ``start``. Call this for each start, in order; read all its paths before the next call."""
        while (block := self._rest or next(self._blocks, None)) is not None:
            others = np.flatnonzero(block.nodes[:, 0] != start)
            own = int(others[0]) if len(others) else len(block.nodes)
            self._rest = Block(block.nodes[own:], block.edges[own:]) if len(others) else None
            if own:
                yield Block(block.nodes[:own], block.edges[:own])
            if self._rest is not None:
                return


@define(eq=False)
class _EachPair:
    """The shortest paths accepted by ``keep`` for each pair of start and end, with at most ``longest`` edges.

    If ``keep`` accepts none of a pair's shortest paths, the pair's simple paths of the next lengths are tried; ``longer``
    yields them. ``cut`` is true if a pair may have a path longer than ``longest``; it is set only if ``capped`` is true.
    """

    graph: Any
    kept: Computed
    search: Shortest
    parts: PathParts
    keep: Keep | None
    longer: Callable[[Sequence[int], Any], Iterator[Block]]
    longest: int
    capped: bool = False
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
                if self.capped and self.longest < len(self.kept.nodes(self.graph)) - 1:
                    self.cut = bool(self._left) or self.search.has_more(length)
                return
            length += 1
            before: dict[int, list[tuple[int, int]]] = {}
            for pair in self._left:
                before.setdefault(pair[0], []).append(pair)
            if not self.parts.allows(length):
                for reached in self.search.at(length):
                    self._left.update(dict.fromkeys((reached.start, end) for end in reached.ends.tolist()))
                continue
            yield from self._at(length, before)

    def _at(self, length: int, before: Mapping[int, Sequence[tuple[int, int]]]) -> Iterator[Block]:
        """Yield the paths of ``length`` edges, sorted by start: the shortest paths of new pairs, and paths of earlier pairs.

        The earlier pairs are in ``before``; none of their paths has been accepted yet. If a start has both new and earlier
        pairs, all of its paths are read from ``longer``, which yields them sorted by their edges.
        """
        places = {start: place for place, start in enumerate(self.search.starts)} if before else {}
        later = sorted(before, key=places.__getitem__)
        rest = _ByStart(self.longer([length], np.array(later, np.int32)) if later else iter(()))
        done = 0
        for reached in self.search.at(length):
            while done < len(later) and places[later[done]] < places[reached.start]:
                yield from self._of(rest.of(later[done]), before[later[done]])
                done += 1
            new = [(reached.start, end) for end in reached.ends.tolist()]
            self._left.update(dict.fromkeys(new))
            if reached.start in before:
                yield from self._of(rest.of(reached.start), [*before[reached.start], *new])
                done += 1
            else:
                yield from self._of(reached.blocks, new)
        for start in later[done:]:
            yield from self._of(rest.of(start), before[start])

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
