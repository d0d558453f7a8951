"""The ``GraphAdapter`` for NetworkX graphs: each method calls the module that implements it."""

from collections.abc import Mapping, Sequence
from sys import maxsize
from typing import TYPE_CHECKING, Any, Literal, Protocol

import attrs

from ...lang.catalogue.measures import MEASURES
from ...lang.diagnostic import nearest
from ...lang.evaluate.conditions.values import uncounted
from ...lang.trees.conditions import Comparison, Condition, Constant, Field, Or, Value
from ...lang.trees.gasl import Order, Pattern
from ..graph import (
    DEFAULT_CAPS,
    MOST_TEXTS,
    AdapterError,
    Caps,
    Direction,
    GraphResult,
    Item,
    Links,
    NodeId,
    Plan,
    Schema,
    tree_of,
)
from .find import MISSING, find, find_node, plan_of
from .graph_summary import summarise
from .rows import DEGREES, item_value, node_item, readers_of
from .tables import Computed, computed, forget

if TYPE_CHECKING:
    import networkx as nx

    from .copied_graph import CopiedGraph
    from .path_search import PathQuery

_MOST_PATHS = 1_000_000
_NAMES = ("name", "label", "title")
_MOST_COMPARED = 20_000
"""In a graph with more nodes, no similar id is looked for. At this size, the look-up takes 0.1 s."""


class _Opened(Protocol):
    """An adapter whose graph is open."""

    @property
    def schema(self) -> Schema: ...
    def has_node(self, node_id: object) -> bool: ...
    def texts(self, kind: Literal["nodes", "edges"], name: str, most: int = MOST_TEXTS) -> Sequence[str]: ...
    def nodes(self, where: Condition | None, *, limit: int | None = None) -> GraphResult: ...
    def edges(self, where: Condition | None, *, limit: int | None = None) -> GraphResult: ...


class AllIds:
    """The ids of the nodes of an open graph; see ``NodeIds``."""

    def __init__(self, adapter: "_Opened") -> None:
        self._adapter = adapter

    def __contains__(self, node_id: object) -> bool:
        return self._adapter.has_node(node_id)

    def nearest(self, node_id: str) -> str | None:
        """Return the id that was most likely meant; see ``NodeIds``."""
        if self._adapter.schema.nodes > _MOST_COMPARED:
            return None
        return nearest(node_id, self._adapter.texts("nodes", "id"))

    def matching(
        self, whose: Literal["nodes", "edges"], condition: Condition, most: int
    ) -> Sequence[Mapping[str, Any]]:
        """Return the first nodes or edges that satisfy a condition; see ``NodeIds``."""
        search = self._adapter.nodes if whose == "nodes" else self._adapter.edges
        with uncounted():
            return list(search(condition, limit=most).items)


class NetworkXAdapter:
    """A ``Graph``, ``DiGraph``, ``MultiGraph`` or ``MultiDiGraph`` as a graph engine. See ``GraphAdapter`` for the methods.

    Derived data (columns, indexes, adjacency) is cached next to the graph until one of NetworkX's methods changes the graph.
    With ``strict``, nothing is cached and every search reads the live graph. Use ``strict`` if attributes are written directly
    (``graph.nodes[a]["x"] = 1``); after occasional direct writes, call ``invalidate`` instead. ``told`` describes the changes
    made while loading, one string each.
    """

    def __init__(
        self, graph: "nx.Graph[Any] | CopiedGraph", name: str = "", strict: bool = False, told: Sequence[str] = ()
    ) -> None:
        self._source: Any = graph
        self.name = name
        self.strict = strict
        self.told = tuple(told)

    def __repr__(self) -> str:
        return f"<NetworkXAdapter {self.name or type(self._source).__name__}>"

    @property
    def graph(self) -> "nx.Graph[Any]":
        """The NetworkX graph. If the graph was opened from a prepared copy, it is built on first use."""
        source = self._source
        if hasattr(source, "networkx"):
            made = source.networkx()
            computed(made).take_over(computed(source))
            self._source = source = made
        return source

    def find_nodes(self, conditions: Condition | None = None, limit: int | None = None) -> list[Item]:
        """Return the nodes for which the condition is true, in the graph's own order.

        Raises ``ConditionError``. Raises ``AdapterError`` if the search takes longer than ``Caps`` allow.
        """
        return _all_items(self.nodes(conditions, limit=limit, caps=Caps(max_results=maxsize)))

    def find_edges(self, conditions: Condition | None = None, limit: int | None = None) -> list[Item]:
        """Return the edges for which the condition is true, in the graph's own order. Raises the same errors as ``find_nodes``."""
        return _all_items(self.edges(conditions, limit=limit, caps=Caps(max_results=maxsize)))

    def find_paths(self, starts: Sequence[NodeId], ends: Sequence[NodeId], max_length: int) -> list[list[NodeId]]:
        """Return the simple paths from a start to an end as lists of ids. Paths that differ only in parallel edges appear once.

        Raises ``AdapterError`` if there are more than a million paths or the search takes longer than ``Caps`` allow.
        """
        caps = Caps(max_path_length=max_length, max_paths=_MOST_PATHS, max_results=_MOST_PATHS)
        found = _all_items(self.paths(starts, ends, max_length=max_length, caps=caps))
        return [list(nodes) for nodes in dict.fromkeys(tuple(item["nodes"]) for item in found)]

    def has_node(self, node_id: object) -> bool:
        """Return whether a node has this id."""
        return find_node(self._source, self._computed(), node_id) is not MISSING

    def get_node(self, name_or_id: NodeId) -> Item | None:
        """Return the node with this id, else the node with this name, label or title; None unless exactly one node matches."""
        node = find_node(self._source, self._computed(), name_or_id)
        if node is not MISSING:
            return node_item(node, self._source.nodes[node])
        if not isinstance(name_or_id, str):
            return None
        named = Or(tuple(Comparison(Field((name,)), "=", Constant(name_or_id)) for name in _NAMES))
        found = self.find_nodes(named, 2)
        return found[0] if len(found) == 1 else None

    @property
    def schema(self) -> Schema:
        """The summary of the graph, computed once."""
        kept = self._computed()
        summary = kept.part("schema", lambda: summarise(self._source, self.name))
        return kept.part("open schema", lambda: attrs.evolve(summary, all_ids=AllIds(self)))

    def texts(self, kind: Literal["nodes", "edges"], name: str, most: int = MOST_TEXTS) -> list[str]:
        """Return the distinct strings of a field; see ``GraphAdapter.texts``."""
        from .find_plan import texts_of

        return texts_of(self._source, self._computed(), kind, name, most)

    def node_values(self, ids: Sequence[Any], path: tuple[str, ...]) -> list[Any] | None:
        """Return the value of a field or a degree for each node in ``ids``; see ``GraphAdapter.node_values``."""

        graph, kept = self._source, self._computed()
        read = readers_of(graph, "nodes")(Field(path)).read
        nodes = [find_node(graph, kept, each) for each in ids]
        found = [None if node is MISSING else item_value(read(node, graph.nodes[node])) for node in nodes]
        if path in (("id",), *((name,) for name in DEGREES)) or any(value is not None for value in found):
            return found
        # The value is null for all these nodes; the field is unknown only if no node of the graph has it.
        known = any(
            path[0] in data if len(path) == 1 else read(node, data) is not None for node, data in graph.nodes.items()
        )
        return found if known else None

    def nodes(
        self,
        where: Condition | None,
        *,
        order: Sequence[Order] = (),
        limit: int | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Find nodes; see ``GraphAdapter.nodes``. Raises ``ConditionError``."""
        return find(self._source, self._computed(), "nodes", tree_of(where), order, limit, caps, self.strict)

    def edges(
        self,
        where: Condition | None,
        *,
        order: Sequence[Order] = (),
        limit: int | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Find edges; see ``GraphAdapter.edges``. Raises ``ConditionError``."""
        return find(self._source, self._computed(), "edges", tree_of(where), order, limit, caps, self.strict)

    def paths(
        self,
        starts: Sequence[NodeId] | Condition | None,
        ends: Sequence[NodeId] | Condition | None,
        *,
        via: Condition | None = None,
        where: Condition | None = None,
        shortest: bool = False,
        limit: int | None = None,
        max_length: int | None = None,
        count: int | None = None,
        cost: Value | None = None,
        direction: Direction = "out",
        capped: bool = False,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Find simple paths; see ``GraphAdapter.paths``. Parallel edges give separate paths.

        Unknown ids are ignored. Raises ``ConditionError``, ``UnusableValue``.
        """
        from .path_search import find_paths

        query = _query(starts, ends, via, where, shortest, limit, max_length, count, cost, direction, capped)
        return find_paths(self._source, self._computed(), query, caps, self.strict)

    def cycles(
        self,
        *,
        via: Condition | None = None,
        where: Condition | None = None,
        limit: int | None = None,
        max_length: int | None = None,
        capped: bool = False,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Find simple cycles; see ``GraphAdapter.cycles``. Raises ``ConditionError``."""
        from .cycles import find_cycles

        return find_cycles(
            self._source, self._computed(), tree_of(via), tree_of(where), limit, max_length, capped, caps, self.strict
        )

    def patterns(
        self,
        patterns: Sequence[Pattern],
        where: Condition | None = None,
        *,
        order: Sequence[Order] = (),
        limit: int | None = None,
        per: Sequence[Value] = (),
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Find the rows that match patterns; see ``GraphAdapter.patterns``. Raises ``AdapterError``, ``ConditionError``."""
        from .patterns import PatternQuery, find_patterns

        query = PatternQuery(tuple(patterns), tree_of(where), tuple(order), limit, tuple(per))
        return find_patterns(self._source, self._computed(), query, caps, self.strict, lambda: self.schema)

    def walk(
        self,
        starts: Sequence[NodeId],
        *,
        via: Condition | None = None,
        depth: int = 1,
        direction: Direction = "out",
        trace: bool = False,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Return the nodes reached from ``starts``; see ``GraphAdapter.walk``. Raises ``AdapterError``, ``ConditionError``."""
        from .neighbourhood import walk

        return walk(self._source, starts, via=tree_of(via), depth=depth, direction=direction, trace=trace, caps=caps)

    def subgraph(self, centers: Sequence[NodeId], radius: int, *, caps: Caps = DEFAULT_CAPS) -> GraphResult:
        """Return the nodes and edges within ``radius`` of the centers; see ``GraphAdapter.subgraph``. Raises ``AdapterError``."""
        from .neighbourhood import subgraph

        return subgraph(self._source, centers, radius, caps=caps)

    def connect(
        self,
        left: Sequence[NodeId],
        right: Sequence[NodeId],
        *,
        via: Condition | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Return the edges between two sets; see ``GraphAdapter.connect``. Raises ``AdapterError``, ``ConditionError``."""
        from .neighbourhood import connect

        return connect(self._source, left, right, via=tree_of(via), caps=caps)

    def measure(
        self,
        algorithm: str,
        among: Sequence[NodeId] | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        weight: Value | None = None,
        links: Links | None = None,
        pairs: Sequence[tuple[NodeId, NodeId]] | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Return the rows of an algorithm; see ``GraphAdapter.measure``. Raises ``AdapterError``, ``UnusableValue``."""
        from .measures import measure

        return measure(
            self.graph, algorithm, among, settings=settings, weight=weight, links=links, pairs=pairs, caps=caps,
            strict=self.strict,
        )  # fmt: skip

    @property
    def measures(self) -> tuple[str, ...]:
        """The algorithm names that ``measure`` accepts."""
        return tuple(MEASURES)

    def explain(
        self, kind: Literal["nodes", "edges", "paths", "cycles", "patterns"], where: Condition | None, **rest: Any
    ) -> Plan:
        """Return the plan of a search without running the search. Missing columns may be built for the plan.

        ``rest`` are the other arguments of ``paths``, ``cycles`` or ``patterns``.

        Raises ``ConditionError``.
        """
        if kind == "patterns":
            from .patterns import PatternQuery, explain_patterns

            caps = rest.pop("caps", Caps())
            given = {name: rest.get(name, ()) for name in ("patterns", "order", "per")}
            made: dict[str, Any] = {name: tuple(value) for name, value in given.items()}
            query = PatternQuery(where=tree_of(where), limit=rest.get("limit"), **made)
            return explain_patterns(self._source, self._computed(), query, caps, self.strict, lambda: self.schema)
        if kind in ("nodes", "edges"):
            return plan_of(self._source, self._computed(), kind, tree_of(where), self.strict)
        caps = rest.pop("caps", Caps())
        if kind == "cycles":
            from .cycles import cycle_plan

            via, limit, most = tree_of(rest.get("via")), rest.get("limit"), rest.get("max_length")
            return cycle_plan(self._source, self._computed(), via, tree_of(where), limit, most, caps, self.strict)
        from .path_plan import path_plan

        return path_plan(self._source, self._computed(), _query(where=where, **rest), caps, self.strict)

    def invalidate(self) -> None:
        """Discard all cached data; call this after writing attributes without NetworkX's own methods."""
        if not hasattr(self._source, "networkx"):  # a prepared copy does not change
            forget(self._source)

    def _computed(self) -> Computed:
        return computed(self._source, self.strict)


def _all_items(found: GraphResult) -> list[Item]:
    """Return all items; raise an error if a cap cut the result short."""
    if found.caps_hit:
        raise AdapterError(f"the search was cut short by {', '.join(found.caps_hit)}", hint="pass higher caps")
    return list(found.items)


def _query(
    starts: Sequence[NodeId] | Condition | None = None,
    ends: Sequence[NodeId] | Condition | None = None,
    via: Condition | None = None,
    where: Condition | None = None,
    shortest: bool = False,
    limit: int | None = None,
    max_length: int | None = None,
    count: int | None = None,
    cost: Value | None = None,
    direction: Direction = "out",
    capped: bool = False,
) -> "PathQuery":
    from .path_search import PathQuery

    begins, stops = (tree_of(end) if isinstance(end, str) or hasattr(end, "tree") else end for end in (starts, ends))
    conditions = (tree_of(via), tree_of(where))
    return PathQuery(begins, stops, *conditions, shortest, limit, max_length, count, cost, direction, capped)
