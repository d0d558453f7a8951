"""A graph in summary (``lang.schema``), from one pass over its attributes, and the hash that tells whether it changed."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from typing import Any

import networkx as nx
import orjson
from attrs import define, field
from blake3 import blake3

from ...lang.catalogue.schema import Attribute, Schema
from .json_values import item_value, json_value, node_id
from .rows import reserved

__all__ = ["graph_hash", "summarise"]

MOST_DISTINCT = 10_000
"""Different values that are counted of an attribute; with more, ``distinct`` is None and the frequent values are of what was counted."""

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
    """What is counted of an attribute while the graph is read. Numbers, booleans and texts apart: 1 is 1.0 but not true."""

    count: int = 0
    types: Counter[str] = field(factory=Counter)
    texts: Counter[str] = field(factory=Counter)
    numbers: Counter[float] = field(factory=Counter)
    booleans: Counter[bool] = field(factory=Counter)

    def add(self, values: Sequence[Any]) -> None:
        self.count += len(values)
        kinds = Counter(map(type, values))
        for kind, times in kinds.items():
            self.types[_KINDS[kind]] += times
        if len(kinds) == 1:
            only = next(iter(kinds))
            if (counter := self._counter(only)) is not None:
                _count(counter, values)
            return
        for kind in kinds:
            if (counter := self._counter(kind)) is not None:
                _count(counter, [value for value in values if type(value) is kind])

    def _counter(self, kind: type) -> Counter[Any] | None:
        if kind is str:
            return self.texts
        if kind is int or kind is float:
            return self.numbers
        return self.booleans if kind is bool else None

    def done(self, name: str) -> Attribute:
        counted: list[tuple[Any, int]] = [
            *self.texts.items(),
            *self.numbers.items(),
            *self.booleans.items(),
        ]
        # Frequent first; equally frequent ones in an order that does not hang on the graph's.
        frequent = nsmallest(MOST_VALUES, counted, key=lambda pair: (-pair[1], type(pair[0]) is not str, str(pair[0])))
        full = any(len(counter) >= MOST_DISTINCT for counter in (self.texts, self.numbers))
        return Attribute(
            name, self.count, dict(self.types.most_common()), tuple(frequent), None if full else len(counted)
        )


def _count(counter: Counter[Any], values: Sequence[Any]) -> None:
    """Count until there are ``MOST_DISTINCT`` different ones, then only those."""
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
    """Return the graph in summary. Nested attributes are listed by their dotted names too (three levels).

    Takes time in proportion to the graph (its hash included); the adapter keeps the result.
    """
    multi = graph.is_multigraph()
    nodes = _attributes((data for _, data in graph.nodes(data=True)), reserved("nodes", multi))
    edges = _attributes((data for _, _, data in graph.edges(data=True)), reserved("edges", multi))
    label, labels = _telling(nodes, _LABELS)
    if multi:
        keys = _Tally()
        keys.add([node_id(key) for _, _, key in graph.edges(keys=True)])
        relation, relations = _telling({"key": keys, **edges}, _RELATIONS)
    else:
        relation, relations = _telling(edges, _RELATIONS)
    return Schema(
        directed=graph.is_directed(),
        multi=multi,
        nodes=graph.number_of_nodes(),
        edges=graph.number_of_edges(),
        node_attributes={at: tally.done(at) for at, tally in nodes.items()},
        edge_attributes={at: tally.done(at) for at, tally in edges.items()},
        label_attribute=label,
        labels=labels,
        relation_attribute=relation,
        relations=relations,
        name=name,
        hash=graph_hash(graph),
    )


def _attributes(rows: Iterable[Mapping[Any, Any]], own: frozenset[str]) -> dict[str, _Tally]:
    tallies: dict[str, _Tally] = {}
    _tally(rows, "", own, tallies, 1)
    return tallies


def _tally(
    rows: Iterable[Mapping[Any, Any]], above: str, own: frozenset[str], tallies: dict[str, _Tally], depth: int
) -> None:
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
        # Values as items show them; a graph that was loaded holds them so already.
        if not set(map(type, values)) <= _SHOWN:
            values = [value if type(value) in _SHOWN else item_value(value) for value in values]
        tallies.setdefault(dotted, _Tally()).add(values)
        if depth < _DEEPEST and (inner := [value for value in values if type(value) is dict]):
            _tally(inner, f"{dotted}.", frozenset(), tallies, depth + 1)


def _telling(tallies: Mapping[str, _Tally], names: Sequence[str]) -> tuple[str | None, dict[str, int]]:
    """Return the first of ``names`` whose values tell kinds apart, and the kinds with counts, most frequent first.

    Most of its values are texts; and it is a name for just that, or its values repeat (a label may also be each node's own name).
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
    """Return blake3 of the graph's kind, nodes and edges with their attributes, in the graph's own order (which results have).

    Two loads of one file give the same; the order of attributes does not count.
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
            # A graph that was not normalised: names that are no texts, numpy values, integers past 64 bits.
            written = orjson.dumps(json_value(piece), option=_OPTIONS)
        digest.update(written)
