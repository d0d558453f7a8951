"""The graph port's implementation for NetworkX graphs: each method calls the module that implements it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from sys import maxsize
from typing import TYPE_CHECKING, Any, Literal

import networkx as nx
import orjson
from attrs import define, field
from blake3 import blake3

from ...lang.catalogue.schema import Attribute
from ...lang.trees.conditions import Comparison, Condition, Constant, Field, Or
from ...lang.trees.gasl import Order
from ..graph import (
    DEFAULT_CAPS,
    MOST_TEXTS,
    AdapterError,
    Caps,
    Direction,
    GraphResult,
    Item,
    NodeId,
    Plan,
    Schema,
    tree_of,
)
from .find import MISSING, find, find_node, plan_of
from .rows import item_value, json_value, node_id, node_item, reserved
from .tables import Computed, computed, forget

if TYPE_CHECKING:
    from .path_search import PathQuery

_MOST_PATHS = 1_000_000
_NAMES = ("name", "label", "title")


class NetworkXAdapter:
    """A ``Graph``, ``DiGraph``, ``MultiGraph`` or ``MultiDiGraph`` behind the graph port. See ``GraphAdapter`` for the methods.

    Derived data (columns, indexes, adjacency) are cached next to the graph until one of NetworkX's methods changes the graph.
    ``strict`` caches nothing and always reads the live graph, for graphs whose attributes are written directly
    (``graph.nodes[a]["x"] = 1``). After occasional direct writes, call ``invalidate`` instead. ``told`` lists, in words, the
    changes made while loading.
    """

    def __init__(self, graph: "nx.Graph[Any]", name: str = "", strict: bool = False, told: Sequence[str] = ()) -> None:
        self.graph = graph
        self.name = name
        self.strict = strict
        self.told = tuple(told)

    def __repr__(self) -> str:
        return f"<NetworkXAdapter {self.name or type(self.graph).__name__}>"

    def find_nodes(self, conditions: Condition | None = None, limit: int | None = None) -> list[Item]:
        """Return the nodes for which the condition is true, in the graph's own order.

        Raises ``ConditionError``, and ``AdapterError`` if the search takes longer than ``Caps`` allow.
        """
        return _all_items(self.nodes(conditions, limit=limit, caps=Caps(max_results=maxsize)))

    def find_edges(self, conditions: Condition | None = None, limit: int | None = None) -> list[Item]:
        """Return the edges for which the condition is true, in the graph's own order; errors as in ``find_nodes``."""
        return _all_items(self.edges(conditions, limit=limit, caps=Caps(max_results=maxsize)))

    def find_paths(self, starts: Sequence[NodeId], ends: Sequence[NodeId], max_length: int) -> list[list[NodeId]]:
        """Return the simple paths from a start to an end as lists of ids. Paths that differ only in parallel edges appear once.

        Raises ``AdapterError`` if there are more than a million paths or the search takes longer than ``Caps`` allow.
        """
        caps = Caps(max_path_length=max_length, max_paths=_MOST_PATHS, max_results=_MOST_PATHS)
        found = _all_items(self.paths(starts, ends, max_length=max_length, caps=caps))
        return [list(nodes) for nodes in dict.fromkeys(tuple(item["nodes"]) for item in found)]

    def get_node(self, name_or_id: NodeId) -> Item | None:
        """Return the node with this id, else the node with this name, label or title; None if no node or several match."""
        node = find_node(self.graph, self._computed(), name_or_id)
        if node is not MISSING:
            return node_item(node, self.graph.nodes[node])
        if not isinstance(name_or_id, str):
            return None
        named = Or(tuple(Comparison(Field((name,)), "=", Constant(name_or_id)) for name in _NAMES))
        found = self.find_nodes(named, 2)
        return found[0] if len(found) == 1 else None

    @property
    def schema(self) -> Schema:
        """The summary of the graph, computed once."""
        return self._computed().part("schema", lambda: summarise(self.graph, self.name))

    def texts(self, kind: Literal["nodes", "edges"], name: str, most: int = MOST_TEXTS) -> list[str]:
        """Return the distinct texts of a field; see ``GraphAdapter.texts``."""
        from .find_plan import texts_of

        return texts_of(self.graph, self._computed(), kind, name, most)

    def nodes(
        self,
        where: Condition | None,
        *,
        order: Sequence[Order] = (),
        limit: int | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Find nodes; see ``GraphAdapter.nodes``. Raises ``ConditionError``."""
        return find(self.graph, self._computed(), "nodes", tree_of(where), order, limit, caps, self.strict)

    def edges(
        self,
        where: Condition | None,
        *,
        order: Sequence[Order] = (),
        limit: int | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Find edges; see ``GraphAdapter.edges``. Raises ``ConditionError``."""
        return find(self.graph, self._computed(), "edges", tree_of(where), order, limit, caps, self.strict)

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
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Find simple paths; see ``GraphAdapter.paths``. Parallel edges give separate paths.

        Unknown ids are ignored. Raises ``ConditionError``.
        """
        from .path_search import find_paths

        return find_paths(
            self.graph,
            self._computed(),
            _query(starts, ends, via, where, shortest, limit, max_length),
            caps,
            self.strict,
        )

    def walk(
        self,
        starts: Sequence[NodeId],
        *,
        via: Condition | None = None,
        depth: int = 1,
        direction: Direction = "out",
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Return the nodes reached from ``starts``; see ``GraphAdapter.walk``. Raises ``AdapterError``, ``ConditionError``."""
        from .neighbourhood import walk

        return walk(self.graph, starts, via=tree_of(via), depth=depth, direction=direction, caps=caps)

    def subgraph(self, centers: Sequence[NodeId], radius: int, *, caps: Caps = DEFAULT_CAPS) -> GraphResult:
        """Return the nodes and edges within ``radius`` of the centers; see ``GraphAdapter.subgraph``. Raises ``AdapterError``."""
        from .neighbourhood import subgraph

        return subgraph(self.graph, centers, radius, caps=caps)

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

        return connect(self.graph, left, right, via=tree_of(via), caps=caps)

    def measure(
        self, algorithm: str, among: Sequence[NodeId] | None = None, *, caps: Caps = DEFAULT_CAPS
    ) -> GraphResult:
        """Return an algorithm's value for each node; see ``GraphAdapter.measure``. Raises ``AdapterError``."""
        from .measures import measure

        return measure(self.graph, algorithm, among, caps=caps)

    @property
    def measures(self) -> tuple[str, ...]:
        """The algorithm names that ``measure`` accepts."""
        from .measures import MEASURES

        return tuple(MEASURES)

    def explain(self, kind: Literal["nodes", "edges", "paths"], where: Condition | None, **rest: Any) -> Plan:
        """Return the plan of a search without running the search. Columns may be built. ``rest``: the other arguments of ``paths``.

        Raises ``ConditionError``.
        """
        if kind != "paths":
            return plan_of(self.graph, self._computed(), kind, tree_of(where), self.strict)
        from .path_search import path_plan

        caps = rest.pop("caps", Caps())
        return path_plan(self.graph, self._computed(), _query(where=where, **rest), caps, self.strict)

    def invalidate(self) -> None:
        """Discard all cached data; call this after writing attributes without NetworkX's own methods."""
        forget(self.graph)

    def _computed(self) -> Computed:
        return computed(self.graph, self.strict)


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
) -> "PathQuery":
    from .path_search import PathQuery

    begins, stops = (tree_of(end) if isinstance(end, str) or hasattr(end, "tree") else end for end in (starts, ends))
    return PathQuery(begins, stops, tree_of(via), tree_of(where), shortest, limit, max_length)


# Summary of a graph (``lang.schema``), computed in one pass over its attributes, and the hash that detects changes.

MOST_DISTINCT = 10_000
"""Maximum distinct values counted per attribute. If exceeded, ``distinct`` is None and frequent values are of the counted part."""

MOST_VALUES = 20
MOST_LABELS = 200
_DEEPEST = 3
_MOST_ATTRIBUTES = 2_000

_LABELS = ("entity_type", "node_type", "type", "label", "kind", "category", "class", "labels", "group")
_RELATIONS = (
    "relation", "relation_type", "relationship", "relationship_type", "rel_type", "edge_type", "predicate", "type", "label",
    "kind", "key",
)  # fmt: skip
_PLAIN_NAMES = frozenset({"entity_type", "node_type", "relation", "relation_type", "relationship", "relationship_type",
                          "rel_type", "edge_type", "predicate"})  # fmt: skip
_KINDS: Mapping[type, str] = {
    str: "text",
    int: "integer",
    float: "float",
    bool: "boolean",
    list: "list",
    dict: "object",
    type(None): "null",
}
_SHOWN = frozenset(_KINDS) - {float}


@define
class _Tally:
    """Value counts of one attribute. Numbers, booleans and texts are counted separately: 1 equals 1.0 but not true."""

    count: int = 0
    types: Counter[str] = field(factory=Counter)
    texts: Counter[str] = field(factory=Counter)
    numbers: Counter[float] = field(factory=Counter)
    booleans: Counter[bool] = field(factory=Counter)

    def add(self, values: Sequence[Any]) -> None:
        self.count += len(values)
        kinds = Counter(map(type, values))
        counters: dict[type, Counter[Any]]
        counters = {str: self.texts, int: self.numbers, float: self.numbers, bool: self.booleans}
        for kind, times in kinds.items():
            self.types[_KINDS[kind]] += times
            if kind in counters:
                _count(counters[kind], values if len(kinds) == 1 else [each for each in values if type(each) is kind])

    def attribute(self, name: str) -> Attribute:
        counted: list[tuple[Any, int]] = [*self.texts.items(), *self.numbers.items(), *self.booleans.items()]
        # The most frequent values come first; the order of ties does not depend on the graph's order.
        frequent = nsmallest(MOST_VALUES, counted, key=lambda pair: (-pair[1], type(pair[0]) is not str, str(pair[0])))
        full = any(len(counter) >= MOST_DISTINCT for counter in (self.texts, self.numbers))
        return Attribute(
            name, self.count, dict(self.types.most_common()), tuple(frequent), None if full else len(counted)
        )


def _count(counter: Counter[Any], values: Sequence[Any]) -> None:
    """Count values until ``MOST_DISTINCT`` distinct values are known, then count only known values."""
    room = MOST_DISTINCT - len(counter)
    if len(values) <= room or len(set(islice(values, 4 * MOST_DISTINCT))) <= room // 2:
        counter.update(values)
        if len(counter) > MOST_DISTINCT:
            for value, _ in counter.most_common()[MOST_DISTINCT:]:
                del counter[value]
        return
    for value in values:
        if value in counter or len(counter) < MOST_DISTINCT:
            counter[value] += 1


def summarise(graph: "nx.Graph[Any]", name: str = "") -> Schema:
    """Return the summary of the graph. Nested attributes are also listed by their dotted names (three levels).

    Time is proportional to the size of the graph (including its hash); the adapter caches the result.
    """
    multi = graph.is_multigraph()
    nodes, edges = dict[str, _Tally](), dict[str, _Tally]()
    _tally(nodes, (data for _, data in graph.nodes(data=True)), reserved("nodes", multi))
    _tally(edges, (data for _, _, data in graph.edges(data=True)), reserved("edges", multi))
    label, labels = _classifier(nodes, _LABELS)
    keys = _Tally()
    if multi:
        keys.add([node_id(key) for _, _, key in graph.edges(keys=True)])
    relation, relations = _classifier({"key": keys, **edges} if multi else edges, _RELATIONS)
    return Schema(
        directed=graph.is_directed(),
        multi=multi,
        nodes=graph.number_of_nodes(),
        edges=graph.number_of_edges(),
        node_attributes={at: tally.attribute(at) for at, tally in nodes.items()},
        edge_attributes={at: tally.attribute(at) for at, tally in edges.items()},
        label_attribute=label,
        labels=labels,
        relation_attribute=relation,
        relations=relations,
        name=name,
        hash=graph_hash(graph),
    )


def _tally(
    tallies: dict[str, _Tally],
    rows: Iterable[Mapping[Any, Any]],
    own: frozenset[str] = frozenset(),
    above: str = "",
    depth: int = 1,
) -> None:
    """Add the attributes in ``rows`` to ``tallies``. ``own``: the names of the item's own fields."""
    columns: dict[Any, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            try:
                columns[name].append(value)
            except KeyError:
                columns[name] = [value]
    for name, values in columns.items():
        if len(tallies) >= _MOST_ATTRIBUTES:
            return
        dotted = f"{above}attr.{name}" if name in own else f"{above}{name}"
        # Convert values to the form that items show; the values of a loaded graph already have that form.
        if not set(map(type, values)) <= _SHOWN:
            values = [value if type(value) in _SHOWN else item_value(value) for value in values]
        tallies.setdefault(dotted, _Tally()).add(values)
        if depth < _DEEPEST and (inner := [value for value in values if type(value) is dict]):
            _tally(tallies, inner, above=f"{dotted}.", depth=depth + 1)


def _classifier(tallies: Mapping[str, _Tally], names: Sequence[str]) -> tuple[str | None, dict[str, int]]:
    """Return the first of ``names`` that classifies items, and its values with counts, most frequent first.

    An attribute classifies items if most of its values are texts, and if its name means a type or its values repeat. Values must
    repeat because a label may also be each node's name.
    """
    for name in names:
        tally = tallies.get(name)
        if tally is None or 2 * tally.types["text"] <= tally.count or len(tally.texts) >= MOST_DISTINCT:
            continue
        if name in _PLAIN_NAMES or 2 * len(tally.texts) <= tally.types["text"] or len(tally.texts) <= 3:
            ranked = sorted(tally.texts.items(), key=lambda pair: (-pair[1], pair[0]))
            return name, dict(ranked[:MOST_LABELS])
    return None, {}


# -- hash ---------------------------------------------------------------------------------------------------------------

_OPTIONS = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)


def graph_hash(graph: "nx.Graph[Any]") -> str:
    """Return the blake3 hash of the graph's kind, nodes and edges with their attributes.

    The order of nodes and edges matters, because results have that order; the order of attributes does not. Loading a file twice
    gives the same hash.
    """
    digest = blake3()
    digest.update(orjson.dumps([graph.is_directed(), graph.is_multigraph()]))
    _digest(digest, graph.nodes(data=True))
    digest.update(b"|")
    _digest(digest, graph.edges(keys=True, data=True) if graph.is_multigraph() else graph.edges(data=True))
    return digest.hexdigest()


def _digest(digest: blake3, rows: Iterable[Any]) -> None:
    rows = iter(rows)
    while piece := list(islice(rows, 4096)):
        try:
            written = orjson.dumps(piece, option=_OPTIONS)
        except (TypeError, ValueError):
            # The graph was not normalised: it has names that are not strings, numpy values, or integers beyond 64 bits.
            written = orjson.dumps(json_value(piece), option=_OPTIONS)
        digest.update(written)
