"""``WALK``, ``SUBGRAPH`` and ``CONNECT``: the neighbourhood of nodes, and the edges between two sets of nodes.

Results have a fixed order. Nodes are sorted by distance, nearest first, then in adjacency order; edges are in the graph's own
order. If a cap ends a search early, the partial result is returned and the cap is reported.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ...lang.evaluate.conditions import Predicate
from ...lang.trees.conditions import Condition
from ..graph import DEFAULT_CAPS, Caps, Direction, GraphResult, Item, NodeId
from .find import MISSING, find_node, predicate_of
from .find_plan import fields_of
from .left_out import Counter, counter_of
from .rows import Deadline, Items, edge_item, edge_readers, node_id, node_item
from .tables import computed

_CHUNK = 4096
_ENDS = ("source", "target")
Row = tuple[Any, Any, Any, Any]
"""An edge as conditions read it: source, target, key (None if the graph has no keys) and attributes."""


def resolved(graph: Any, ids: Iterable[NodeId]) -> list[Any]:
    """Return the graph's nodes for the item ids ``ids``, in the same order, without duplicates. Unknown ids are ignored."""
    kept = computed(graph)
    found = (find_node(graph, kept, id) for id in ids)
    return list(dict.fromkeys(node for node in found if node is not MISSING))


def walk(
    graph: Any,
    starts: Sequence[NodeId],
    *,
    via: Condition | None = None,
    depth: int = 1,
    direction: Direction = "out",
    trace: bool = False,
    caps: Caps = DEFAULT_CAPS,
) -> GraphResult:
    """Return the nodes reached in 1 to ``depth`` edges that satisfy ``via``; see ``GraphAdapter.walk``."""
    deadline = Deadline.of(caps)
    origin = resolved(graph, starts)
    places = computed(graph).nodes(graph).positions if trace else None
    reached, examined, hit = _spread(
        graph, origin, _Edges(graph, via), depth, direction, caps.max_results, deadline, places
    )
    found = list(reached)[len(origin) :]
    attributes = graph.nodes

    def build(node: Any) -> Item:
        item = node_item(node, attributes[node])
        if trace:
            for name in ("depth", "parent"):
                if name in item:
                    item[f"attr.{name}"] = item.pop(name)
            item["depth"], parent = reached[node]
            item["parent"] = node_id(parent)
        return item

    return GraphResult(Items(found, build), hit, "adjacency", examined)


def subgraph(graph: Any, centers: Sequence[NodeId], radius: int, *, caps: Caps = DEFAULT_CAPS) -> GraphResult:
    """Return one item: the nodes within ``radius`` of a center and the edges between them. No item if all centers are unknown.

    The item has at most ``caps.max_results`` nodes and as many edges. See ``GraphAdapter.subgraph``.
    """
    deadline = Deadline.of(caps)
    origin = resolved(graph, centers)
    if not origin:
        return GraphResult([], used="adjacency")
    room = max(0, caps.max_results - len(origin))
    reached, examined, hit = _spread(graph, origin, _Edges(graph, None), radius, "both", room, deadline)
    nodes = list(reached)
    if len(nodes) > caps.max_results:
        nodes, hit = nodes[: caps.max_results], _with(hit, "max_results")
    inside = set(nodes)
    edges: list[Item] = []
    for row in _edges_between(graph, inside, inside):
        examined += 1
        if len(edges) >= caps.max_results:
            hit = _with(hit, "max_results")
            break
        if examined % _CHUNK == 0 and deadline.passed():
            hit = _with(hit, "timeout_s")
            break
        edges.append(edge_item(*row))
    item = {"nodes": [node_item(node, graph.nodes[node]) for node in nodes], "edges": edges}
    return GraphResult([item], hit, "adjacency", examined)


def connect(
    graph: Any,
    left: Sequence[NodeId],
    right: Sequence[NodeId],
    *,
    via: Condition | None = None,
    caps: Caps = DEFAULT_CAPS,
) -> GraphResult:
    """Return the edges between two sets of nodes, in both directions, in graph order; see ``GraphAdapter.connect``."""
    deadline = Deadline.of(caps)
    test = _Test(graph, via)
    rows = _edges_between(graph, set(resolved(graph, left)), set(resolved(graph, right)))
    found: list[Row] = []
    examined = 0
    while len(found) <= caps.max_results and not deadline.passed():
        chunk = list(islice(rows, _CHUNK))
        if not chunk:
            break
        examined += len(chunk)
        found += test.select(chunk)
    hit = _with((), "max_results") if len(found) > caps.max_results else ()
    items = Items(found[: caps.max_results], lambda row: edge_item(*row))
    return GraphResult(items, _with(hit, "timeout_s") if deadline.hit else hit, "adjacency", examined)


# -- implementation -----------------------------------------------------------------------------------------------------


def _spread(
    graph: Any,
    origin: list[Any],
    edges: "_Edges",
    depth: int,
    direction: Direction,
    room: int,
    deadline: Deadline,
    places: Mapping[Any, int] | None = None,
) -> tuple[dict[Any, tuple[int, Any]], int, tuple[str, ...]]:
    """Return the reached nodes, each with its distance and its predecessor; the number of edges examined; and the caps hit.

    The nodes are ``origin`` and at most ``room`` nodes around ``origin``, nearest first. If several nodes can be the
    predecessor of a node, the one with the first position in ``places`` is chosen; without ``places``, any of them.
    """
    reached: dict[Any, tuple[int, Any]] = dict.fromkeys(origin, (0, None))
    frontier, examined = origin, 0
    for level in range(1, depth + 1):
        following: list[Any] = []
        full = False
        for end, start, seen in edges.ends(frontier, direction):
            examined += seen
            if end is not None and end not in reached:
                full = full or len(reached) - len(origin) >= room
                if full and places is None:
                    return reached, examined, ("max_results",)
                if not full:
                    reached[end] = (level, start)
                    following.append(end)
            elif end is not None and places is not None and reached[end][0] == level:
                reached[end] = (level, min(start, reached[end][1], key=places.__getitem__))
            if examined % 256 == 0 and deadline.passed():
                return reached, examined, ("timeout_s",)
        if full:
            return reached, examined, ("max_results",)
        if not following:
            break
        frontier = following
    return reached, examined, ()


class _Test:
    """A condition on edges. Counts the edges that it leaves out because of the types of their values, each edge once."""

    def __init__(self, graph: Any, via: Condition | None) -> None:
        self._predicate: Predicate | None = None
        self._left_out: Counter | None = None
        if via is not None:
            self._predicate = predicate = predicate_of(graph, "edges", via)
            self._left_out = counter_of(via, edge_readers(graph), lambda: predicate, once=True)

    def select(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the rows that satisfy the condition."""
        if self._predicate is None:
            return rows
        if self._left_out is not None:
            self._left_out(rows)
        return self._predicate.select(rows)


class _Edges:
    """Steps along the edges that satisfy a condition."""

    def __init__(self, graph: Any, via: Condition | None) -> None:
        self._graph = graph
        self._test = None if via is None else _Test(graph, via)
        # In an undirected graph, conditions treat the end that was added first as the source, whatever the walking direction.
        turned = via is not None and not graph.is_directed() and any(at.path[0] in _ENDS for at in fields_of(via))
        self._place = {node: at for at, node in enumerate(graph)} if turned else None

    def ends(self, frontier: Iterable[Any], direction: Direction) -> Iterator[tuple[Any, Any, int]]:
        """Yield the nodes one edge away from ``frontier``, in order and with repetitions.

        Each node comes with its predecessor and the number of edges examined (1). If the edge does not satisfy the condition,
        None is yielded in place of the node.
        """
        steps = self._steps(frontier, direction)
        if self._test is None:
            for end, start, _ in steps:
                yield end, start, 1
            return
        # Start with small batches: a cap may end the walk early.
        size = 64
        while batch := list(islice(steps, size)):
            size = min(_CHUNK, 2 * size)
            hold = {id(row) for row in self._test.select([row for _, _, row in batch])}
            for end, start, row in batch:
                yield (end if id(row) in hold else None), start, 1

    def _steps(self, frontier: Iterable[Any], direction: Direction) -> Iterator[tuple[Any, Any, Row]]:
        graph = self._graph
        if not graph.is_directed():
            sides: list[tuple[Any, bool]] = [(graph.adj, True)]
        else:
            sides = [(graph.succ, True)] if direction != "in" else []
            sides += [(graph.pred, False)] if direction != "out" else []
        for node in frontier:
            for adjacency, forward in sides:
                for end, data in adjacency[node].items():
                    pairs = data.items() if graph.is_multigraph() else ((None, data),)
                    if self._place is not None:
                        forward = self._place[node] <= self._place[end]
                    first, second = (node, end) if forward else (end, node)
                    for key, attributes in pairs:
                        yield end, node, (first, second, key, attributes)


def _edges_between(graph: Any, left: set[Any], right: set[Any]) -> Iterator[Row]:
    """Yield the edges with an end in each set, in the order and direction of ``graph.edges``."""
    both, multi = left | right, graph.is_multigraph()
    done: set[Any] = set()
    for node in graph:
        if node not in both:
            continue
        in_left, in_right = node in left, node in right
        for end, data in graph.adj[node].items():
            if end in done or not ((in_left and end in right) or (in_right and end in left)):
                continue
            for key, attributes in data.items() if multi else ((None, data),):
                yield node, end, key, attributes
        if not graph.is_directed():
            done.add(node)


def _with(hit: tuple[str, ...], cap: str) -> tuple[str, ...]:
    return hit if cap in hit else (*hit, cap)
