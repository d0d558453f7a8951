"""A graph that is read from arrays.

It has the parts of a NetworkX graph that searches need, and builds the NetworkX graph on request.

Nodes, edges and each node's neighbours have the same order as in the graph that was stored, so every search has the same results on
both graphs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, frozen
from numpy.typing import NDArray

from ...lang.evaluate.conditions import identity
from .column_types import Coded, Numbers
from .rows import plain
from .stored_columns import ArrayFile, ArrayWriter, Rows, RowView, StoredColumn, write_column, write_rows
from .tables import EdgeTable, NodeTable

if TYPE_CHECKING:
    import networkx as nx

_EXACT = 2**53 - 1
_BLOCK = 8192
Array = NDArray[Any]


@define
class StoredNodes(NodeTable):
    """The table of the nodes. The attributes of each node are ``Rows``."""

    def rows(self, positions: Iterable[int]) -> list[tuple[Any, ...]]:
        """Return ``(node, attributes)`` for each position."""
        chosen = positions if isinstance(positions, np.ndarray) else np.array(list(positions), np.int64)
        nodes, stored = self.nodes, self.data
        assert isinstance(stored, Rows)  # noqa: S101  # made by CopiedGraph
        return [(nodes[at], data) for at, data in zip(chosen.tolist(), stored.take(chosen), strict=True)]


@define
class StoredEdges(EdgeTable):
    """The table of the edges. The attributes of each edge are ``Rows``."""

    def rows(self, positions: Any) -> list[tuple[Any, ...]]:
        """Return ``(source, target, key, attributes)`` for each position; the key is None outside multigraphs."""
        chosen = np.asarray(positions, np.int64)
        nodes, keys, stored = self.ends.nodes, self.keys, self.data
        assert isinstance(stored, Rows)  # noqa: S101  # made by CopiedGraph
        sources, targets = self.sources[chosen].tolist(), self.targets[chosen].tolist()
        places: Any = [None] * len(sources) if keys is None else [keys[at] for at in chosen.tolist()]
        return [
            (nodes[source], nodes[target], key, data)
            for source, target, key, data in zip(sources, targets, places, stored.take(chosen), strict=True)
        ]


class CopiedGraph:
    """A graph in the arrays of ``file``, with the methods that a search needs. ``about`` is the result of ``write_graph``."""

    def __init__(self, file: ArrayFile, about: Mapping[str, Any], attributes: Mapping[str, Any]) -> None:
        self.graph = dict(attributes)
        self.__networkx_cache__: dict[str, Any] = {}  # ``tables.computed`` keeps columns and indexes here
        self._file = file
        self._directed: bool = about["directed"]
        self._multi: bool = about["multi"]
        self._ids = StoredColumn.of(file, "ids", about["ids"], about["nodes"]["size"])
        self._keys = StoredColumn.of(file, "keys", about["keys"], about["edges"]["size"]) if self._multi else None
        self._node_rows = Rows.of(file, "nodes", about["nodes"])
        self._edge_rows = Rows.of(file, "edges", about["edges"])
        self._lock = RLock()
        self._made: nx.Graph[Any] | None = None

    def is_directed(self) -> bool:
        """Return whether the graph is directed."""
        return self._directed

    def is_multigraph(self) -> bool:
        """Return whether the graph may have parallel edges."""
        return self._multi

    def number_of_nodes(self) -> int:
        """Return the number of nodes."""
        return len(self._node_rows)

    def number_of_edges(self) -> int:
        """Return the number of edges."""
        return len(self._edge_rows)

    def __len__(self) -> int:
        return len(self._node_rows)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.node_table.nodes)

    def __contains__(self, node: Any) -> bool:
        return node in self.node_table.positions

    @cached_property
    def node_table(self) -> StoredNodes:
        """The table of the nodes."""
        return StoredNodes("nodes", self._ids.take(), self._node_rows)

    @cached_property
    def edge_table(self) -> StoredEdges:
        """The table of the edges."""
        keys = None if self._keys is None else self._keys.take()
        sources, targets = self._file.array("sources"), self._file.array("targets")
        return StoredEdges("edges", self.node_table, sources, targets, keys, self._edge_rows)

    @cached_property
    def nodes(self) -> "_Nodes":
        """The nodes with their attributes."""
        return _Nodes(self)

    def edges(self, keys: bool = False, data: bool = False) -> Iterator[tuple[Any, ...]]:
        """Yield the edges as ``(source, target, key?, attributes?)``."""
        table = self.edge_table
        for start in range(0, len(table), _BLOCK):
            for source, target, key, attributes in table.rows(np.arange(start, min(start + _BLOCK, len(table)))):
                yield (source, target, *((key,) if keys else ()), *((attributes,) if data else ()))

    def _counts(self, name: str) -> Array:
        return np.bincount(self._file.array(name), minlength=len(self))

    @cached_property
    def in_degree(self) -> "_Degrees":
        """The number of edges that enter each node."""
        return _Degrees(self.node_table, self._counts("targets"))

    @cached_property
    def out_degree(self) -> "_Degrees":
        """The number of edges that leave each node."""
        return _Degrees(self.node_table, self._counts("sources"))

    @cached_property
    def degree(self) -> "_Degrees":
        """The number of edges of each node; a loop counts twice."""
        return _Degrees(self.node_table, self._counts("sources") + self._counts("targets"))

    # Neighbours. A *pair* is all parallel edges from one node to another; they are consecutive in the table of edges.

    @cached_property
    def _pairs(self) -> Array:
        """The position of the first edge of each pair, in order; the last element is the total number of edges."""
        sources, targets = self._file.array("sources"), self._file.array("targets")
        if not self._multi:
            return np.arange(len(sources) + 1)
        return np.append(_first_of_pairs(sources, targets), len(sources))

    @cached_property
    def succ(self) -> "_Neighbours":
        """The nodes at the other ends of the edges that leave each node; only for directed graphs."""
        pairs = self._pairs
        return _Neighbours(self, self._file.array("sources")[pairs[:-1]], np.arange(len(pairs) - 1), "targets")

    @cached_property
    def pred(self) -> "_Neighbours":
        """The nodes at the other ends of the edges that enter each node; only for directed graphs."""
        order = self._file.array("adjacency")
        return _Neighbours(self, self._file.array("targets")[self._pairs[order]], order, "sources")

    @cached_property
    def adj(self) -> "_Neighbours":
        """The neighbours of each node; in a directed graph, the same as ``succ``."""
        return (
            self.succ
            if self._directed
            else _Neighbours(self, self._file.array("owners"), self._file.array("adjacency"), "")
        )

    def networkx(self) -> "nx.Graph[Any]":
        """Return the graph as a NetworkX graph, which is built on the first call."""
        with self._lock:
            if self._made is None:
                self._made = _networkx(self)
            return self._made


@frozen(eq=False)
class _Nodes:
    """The nodes of a ``CopiedGraph`` with their attributes."""

    graph: CopiedGraph

    def __iter__(self) -> Iterator[Any]:
        return iter(self.graph)

    def __len__(self) -> int:
        return len(self.graph)

    def __contains__(self, node: Any) -> bool:
        return node in self.graph

    def __getitem__(self, node: Any) -> Mapping[str, Any]:
        table = self.graph.node_table
        return table.data[table.positions[node]]

    def items(self) -> Iterator[tuple[Any, Mapping[str, Any]]]:
        """Yield each node with its attributes."""
        table = self.graph.node_table
        return zip(table.nodes, table.data, strict=True)

    def __call__(self, data: bool = False) -> Iterator[Any]:
        return self.items() if data else iter(self)


@frozen(eq=False)
class _Degrees:
    """One of the degrees (in, out or total) of every node."""

    table: NodeTable
    values: Array

    def __getitem__(self, node: Any) -> int:
        return int(self.values[self.table.positions[node]])

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return zip(self.table.nodes, self.values.tolist(), strict=True)


class _Neighbours:
    """The neighbours of every node, in order.

    Node ``owners[i]`` and a neighbour form the pair ``pairs[i]``; ``owners`` ascends.

    ``end`` is the name of the array with the neighbours' positions. It is "" for an undirected graph, where the neighbour may
    be at either end.
    """

    def __init__(self, graph: CopiedGraph, owners: Array, pairs: Array, end: str) -> None:
        self._graph, self._pairs = graph, pairs
        self._first = np.zeros(len(graph) + 1, np.int64)
        np.cumsum(np.bincount(owners, minlength=len(graph)), out=self._first[1:])
        edges = graph._pairs[pairs]
        if end:
            self._ends = graph._file.array(end)[edges]
        else:
            sources, targets = graph._file.array("sources")[edges], graph._file.array("targets")[edges]
            self._ends = np.where(sources == owners, targets, sources)

    def __getitem__(self, node: Any) -> "_Neighbourhood":
        at = self._graph.node_table.positions[node]
        chosen = slice(int(self._first[at]), int(self._first[at + 1]))
        return _Neighbourhood(self._graph, self._ends[chosen], self._pairs[chosen])

    def by_node(self) -> Iterator[tuple[list[int], list[int]]]:
        """Yield the positions of each node's neighbours, and the pairs that lead to them."""
        ends, pairs = self._ends.tolist(), self._pairs.tolist()
        for first, last in pairwise(self._first.tolist()):
            yield ends[first:last], pairs[first:last]


@frozen(eq=False)
class _Neighbourhood:
    """The neighbours of one node, each with the attributes of its edge or, in a multigraph, a mapping from keys to edges."""

    graph: CopiedGraph
    ends: Array
    pairs: Array

    def items(self) -> Iterator[tuple[Any, Mapping[Any, Any]]]:
        """Yield each neighbour with its edges."""
        graph = self.graph
        nodes, rows, keys, first = graph.node_table.nodes, graph._edge_rows, graph.edge_table.keys, graph._pairs
        for end, pair in zip(self.ends.tolist(), self.pairs.tolist(), strict=True):
            if keys is None:
                yield nodes[end], RowView(rows, pair)
            else:
                yield (
                    nodes[end],
                    {keys[edge]: RowView(rows, edge) for edge in range(int(first[pair]), int(first[pair + 1]))},
                )


def _first_of_pairs(sources: Array, targets: Array) -> Array:
    new = np.ones(len(sources), np.bool_)
    np.logical_or(sources[1:] != sources[:-1], targets[1:] != targets[:-1], out=new[1:])
    return np.flatnonzero(new)


def _networkx(copied: CopiedGraph) -> "nx.Graph[Any]":
    """Build the NetworkX graph.

    NetworkX's methods can't set the order of the neighbours, so this function fills the graph's internal mappings directly.
    """
    import networkx as nx

    kinds = ((nx.Graph, nx.MultiGraph), (nx.DiGraph, nx.MultiDiGraph))
    graph: Any = kinds[copied.is_directed()][copied.is_multigraph()]()
    graph.graph.update(copied.graph)
    nodes = copied.node_table.nodes
    graph.add_nodes_from(zip(nodes, copied._node_rows.take(None, fresh=True), strict=True))
    data: list[Any] = copied._edge_rows.take(None, fresh=True)
    keys = copied.edge_table.keys
    if keys is not None:
        pairs = copied._pairs.tolist()
        data = [dict(zip(keys[first:last], data[first:last], strict=True)) for first, last in pairwise(pairs)]
    views = (
        ((graph._succ, copied.succ), (graph._pred, copied.pred))
        if copied.is_directed()
        else ((graph._adj, copied.adj),)
    )
    for mapping, neighbours in views:
        for node, (ends, pairs_of_node) in zip(nodes, neighbours.by_node(), strict=True):
            mapping[node].update(zip([nodes[end] for end in ends], [data[pair] for pair in pairs_of_node], strict=True))
    return graph


def write_graph(file: ArrayWriter, graph: Any, nodes: NodeTable, edges: EdgeTable) -> dict[str, Any]:
    """Write a normalised graph as arrays, and return the description that ``CopiedGraph`` needs.

    ``nodes`` and ``edges`` are the tables of the graph. Raises ``NotStorable`` and ``OSError``.
    """
    at = nodes.positions
    ids = write_column(file, "ids", nodes.nodes, None, len(nodes))
    keys = None if edges.keys is None else write_column(file, "keys", edges.keys, None, len(edges))
    file.add("sources", edges.sources)
    file.add("targets", edges.targets)
    neighbours = graph.pred if graph.is_directed() else graph.adj
    counts = [len(neighbours[node]) for node in nodes.nodes]
    ends = np.fromiter((at[end] for node in nodes.nodes for end in neighbours[node]), np.int64, sum(counts))
    owners = np.repeat(np.arange(len(nodes), dtype=np.int64), counts)
    first = _first_of_pairs(edges.sources, edges.targets)
    # A pair as one number; in an undirected graph the source is the end that comes first in the graph.
    size = max(len(nodes), 1)
    pairs = edges.sources[first].astype(np.int64) * size + edges.targets[first]
    wanted = ends * size + owners if graph.is_directed() else np.minimum(ends, owners) * size + np.maximum(ends, owners)
    order = np.argsort(pairs)
    file.add("adjacency", order[np.searchsorted(pairs, wanted, sorter=order)].astype(np.int32))
    if not graph.is_directed():
        file.add("owners", owners.astype(np.int32))
    return {
        "directed": graph.is_directed(),
        "multi": graph.is_multigraph(),
        "ids": ids,
        "keys": keys,
        "nodes": write_rows(file, "nodes", nodes.data),
        "edges": write_rows(file, "edges", edges.data),
    }


# Columns of stored attributes, equal to those that ``tables.column_of`` builds from the values of all rows.


def stored_column(rows: Any, name: str) -> Any:
    """Return the column of an attribute from the file; None if it must be built, or if ``rows`` are not stored in a file."""
    stored = rows.columns.get(name) if isinstance(rows, Rows) else None
    if stored is None:
        return None
    if (numbers := stored.numbers()) is not None:
        values, whole = numbers
        with np.errstate(invalid="ignore"):
            large = whole is not False and bool((np.abs(values) > _EXACT).any())
        return None if large else Numbers(values, whole)
    if (coded := stored.coded()) is None:
        return None
    codes, values_of_codes = coded
    if all(value.__class__ is str for value in values_of_codes):
        return Coded.of(codes, values_of_codes, values_of_codes)
    keys: dict[Any, int] = {}
    kept: list[Any] = []
    table = np.zeros(len(values_of_codes) + 1, codes.dtype)
    for code, value in enumerate(values_of_codes, 1):
        shown = plain(value)
        key = shown if isinstance(shown, str) else identity(shown)
        table[code] = 0 if key is None else keys.setdefault(key, len(keys) + 1)
        if table[code] > len(kept):
            kept.append(shown)
    return Coded.of(table[codes], kept, list(keys))


def stored_values(rows: Any, path: Sequence[str], read: Callable[[Mapping[str, Any]], Any]) -> list[Any] | None:
    """Return the value at ``path`` that ``read`` finds in each row; None if ``rows`` are not stored in a file."""
    if not isinstance(rows, Rows):
        return None
    names = dict.fromkeys(".".join(path[first:last]) for first in (0, 1) for last in range(first + 1, len(path) + 1))
    return [read(row) for row in rows.only(names)]
