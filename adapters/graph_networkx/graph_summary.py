"""The summary of a graph (``lang.catalogue.schema``), computed in one pass over its attributes, and the hash that detects changes."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any

import orjson
from attrs import define, field
from blake3 import blake3

from ...lang.catalogue.schema import Attribute
from ..graph import NodeId, Schema
from .rows import item_value, json_value, node_id, reserved

if TYPE_CHECKING:
    import networkx as nx

MOST_DISTINCT = 10_000
"""Maximum number of distinct strings and of distinct numbers counted per attribute. If it is reached, ``distinct`` is None."""

MOST_VALUES = 20
MOST_LABELS = 200
_DEEPEST = 3
_MOST_ATTRIBUTES = 2_000

LABELS = ("entity_type", "node_type", "type", "label", "kind", "category", "class", "labels", "group")
RELATIONS = (
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
class Tally:
    """Value counts of one attribute. Numbers, booleans and strings are counted separately: 1 equals 1.0 but not true."""

    count: int = 0
    types: Counter[str] = field(factory=Counter)
    texts: Counter[str] = field(factory=Counter)
    numbers: Counter[float] = field(factory=Counter)
    booleans: Counter[bool] = field(factory=Counter)
    range: tuple[Any, Any] | None = None
    """The smallest and the largest number."""
    dates: tuple[str, str] | None = None
    """The earliest and the latest date; None as soon as a string is not a date."""

    def add(self, values: Sequence[Any]) -> None:
        """Add values."""
        self.count += len(values)
        kinds = Counter(map(type, values))
        counters: dict[type, Counter[Any]]
        counters = {str: self.texts, int: self.numbers, float: self.numbers, bool: self.booleans}
        for kind, times in kinds.items():
            self.types[_KINDS[kind]] += times
            if kind in counters:
                of_kind: Sequence[Any] = values if len(kinds) == 1 else [each for each in values if type(each) is kind]
                if kind is str:
                    self._add_dates(of_kind, self.types["text"] == times)
                elif kind is int or (kind is float and (of_finite := [each for each in of_kind if isfinite(each)])):
                    self.range = _range(of_kind if kind is int else of_finite, self.range)
                _count(counters[kind], of_kind)

    def add_counted(self, pairs: Sequence[tuple[Any, int]]) -> None:
        """Add distinct values with their counts. The values are JSON values."""
        texts, times_of_texts = [], 0
        for value, times in pairs:
            kind = type(value)
            self.count += times
            self.types[_KINDS[kind]] += times
            if kind is str:
                texts.append(value)
                times_of_texts += times
                self.texts[value] += times
            elif kind is bool:
                self.booleans[value] += times
            elif kind is int or kind is float:
                self.numbers[value] += times
                self.range = _range([value], self.range)
        if texts:
            self._add_dates(texts, self.types["text"] == times_of_texts)

    def _add_dates(self, texts: Sequence[str], first: bool) -> None:
        """Extend the range of dates by ``texts``. ``first`` is true if these are the attribute's first strings."""
        if (first or self.dates is not None) and all(map(_DATE.match, texts)):
            self.dates = _range(texts, self.dates)
        else:
            self.dates = None

    def attribute(self, name: str) -> Attribute:
        """Return the summary of the attribute with this name."""
        counted: list[tuple[Any, int]] = [*self.texts.items(), *self.numbers.items(), *self.booleans.items()]
        # The most frequent values come first; the order of ties does not depend on the graph's order.
        frequent = nsmallest(MOST_VALUES, counted, key=lambda pair: (-pair[1], type(pair[0]) is not str, str(pair[0])))
        full = any(len(counter) >= MOST_DISTINCT for counter in (self.texts, self.numbers))
        lowest, highest = (None if self.range and self.texts else self.range or self.dates) or (None, None)
        types, distinct = dict(self.types.most_common()), None if full else len(counted)
        return Attribute(name, self.count, types, tuple(frequent), distinct, lowest, highest)


_DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])(-[0-3]\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?)?\Z")
"""Pattern of an ISO 8601 date, with or without a time."""


def _range(values: Sequence[Any], known: tuple[Any, Any] | None) -> tuple[Any, Any]:
    """Return the range ``known`` (minimum, maximum), extended by ``values``."""
    low, high = min(values), max(values)
    return (low, high) if known is None else (min(low, known[0]), max(high, known[1]))


def _count(counter: Counter[Any], values: Sequence[Any]) -> None:
    """Count ``values``. If the counter has ``MOST_DISTINCT`` distinct values, no other value is added to it."""
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

    The time, including that for the hash, is proportional to the size of the graph. The adapter caches the result.
    """
    multi = graph.is_multigraph()
    nodes, edges = dict[str, Tally](), dict[str, Tally]()
    _tally(nodes, (data for _, data in graph.nodes(data=True)), reserved("nodes", multi))
    _tally(edges, (data for _, _, data in graph.edges(data=True)), reserved("edges", multi))
    label, labels = classifier(nodes, LABELS)
    keys = Tally()
    if multi:
        keys.add([node_id(key) for _, _, key in graph.edges(keys=True)])
    relation, relations = classifier({"key": keys, **edges} if multi else edges, RELATIONS)
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
        ids=_sample_of_ids(graph),
        id_types=dict(Counter(_KINDS[type(node_id(node))] for node in graph).most_common()),
    )


_IDS = 6
"""Number of node ids in a summary."""


def _sample_of_ids(graph: "nx.Graph[Any]") -> tuple[NodeId, ...]:
    """Return the ids of a few nodes, spread evenly over the graph's order."""
    step = max(1, graph.number_of_nodes() // _IDS)
    return tuple(map(node_id, islice(graph, 0, step * _IDS, step)))


def _tally(
    tallies: dict[str, Tally],
    rows: Iterable[Mapping[Any, Any]],
    own: frozenset[str] = frozenset(),
    above: str = "",
    depth: int = 1,
) -> None:
    """Add the attributes in ``rows`` to ``tallies``. ``own`` are the names of the item's own fields."""
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
        tallies.setdefault(dotted, Tally()).add(values)
        if depth < _DEEPEST and (inner := [value for value in values if type(value) is dict]):
            _tally(tallies, inner, above=f"{dotted}.", depth=depth + 1)


def classifier(tallies: Mapping[str, Tally], names: Sequence[str]) -> tuple[str | None, dict[str, int]]:
    """Return the first attribute in ``names`` that classifies items, and its values with their counts, most frequent first.

    An attribute classifies items if most of its values are strings, and either its name always means a type or its values
    repeat. The values of an attribute such as ``label`` must repeat, because ``label`` may also contain the names of the nodes.
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
