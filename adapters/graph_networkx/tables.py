"""Nodes and edges by position: the lists and arrays that columns, indexes and the path search use.

A position is the index of a node or edge in the graph's own order, from 0. The tables refer to the live attribute mappings, so
values are read on access and not copied.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import islice
from threading import RLock
from typing import Any, Protocol, TypeVar

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from ...lang.evaluate.conditions import identity
from ...lang.evaluate.conditions.interpreter import leaf_test
from ...lang.trees.conditions import And, Comparison, Condition, Constant, Field, Increasing, Not, NullTest, Or
from .column_types import Array, Coded, Leaf, Mask, Numbers, numbers_of
from .rows import Kind, plain

Positions = NDArray[np.int32]
_LOOK = 8192
"""Rows read between two checks of the clock."""


@define
class NodeTable:
    """All nodes: ``nodes[i]`` has the attributes ``data[i]``."""

    kind: Kind
    nodes: list[Any]
    data: Sequence[Mapping[Any, Any]]
    _positions: dict[Any, int] = field(factory=dict)

    @classmethod
    def of(cls, graph: Any) -> "NodeTable":
        """Create the table of the nodes of ``graph``; a graph opened from a prepared copy already has one."""
        if (stored := getattr(graph, "node_table", None)) is not None:
            return stored  # type: ignore[no-any-return]  # of a CopiedGraph
        nodes = list(graph.nodes)
        return cls("nodes", nodes, [graph.nodes[node] for node in nodes])

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def positions(self) -> dict[Any, int]:
        """The position of each node."""
        if not self._positions:
            self._positions = {node: at for at, node in enumerate(self.nodes)}
        return self._positions

    def rows(self, positions: Iterable[int]) -> list[tuple[Any, ...]]:
        """Return ``(node, attributes)`` for each position."""
        nodes, data = self.nodes, self.data
        return [(nodes[at], data[at]) for at in positions]


@define
class EdgeTable:
    """All edges: edge i leads from ``sources[i]`` to ``targets[i]`` (node positions) and has the attributes ``data[i]``."""

    kind: Kind
    ends: NodeTable
    sources: Positions
    targets: Positions
    keys: list[Any] | None
    data: Sequence[Mapping[Any, Any]]

    @classmethod
    def of(cls, graph: Any, ends: NodeTable, look: Callable[[], None] = lambda: None) -> "EdgeTable":
        """Create the table of the edges of ``graph``. ``ends`` is the table of the nodes.

        ``look`` is called periodically and may raise an exception to cancel the work. A graph opened from a prepared copy already has a
        table.
        """
        if (stored := getattr(graph, "edge_table", None)) is not None:
            return stored  # type: ignore[no-any-return]  # of a CopiedGraph
        at = ends.positions
        if graph.is_directed() and not graph.is_multigraph():
            targets: list[int] = []
            data: list[Mapping[Any, Any]] = []
            counts: list[int] = []
            numbered = ends.nodes == list(range(len(ends)))  # if true, a node is its own position
            for number, (_, neighbours) in enumerate(graph.adjacency()):
                if number % _LOOK == 0:
                    look()
                counts.append(len(neighbours))
                targets.extend(neighbours if numbered else map(at.__getitem__, neighbours))
                data.extend(neighbours.values())
            look()
            sources = np.repeat(np.arange(len(ends), dtype=np.int32), counts)
            return cls("edges", ends, sources, np.array(targets, np.int32), None, data)
        several = graph.is_multigraph()
        edges = iter(graph.edges(keys=True, data=True) if several else graph.edges(data=True))
        tails: list[int] = []
        heads: list[int] = []
        keys: list[Any] = []
        attributes: list[Mapping[Any, Any]] = []
        while rows := list(islice(edges, _LOOK)):
            look()
            tails.extend([at[row[0]] for row in rows])
            heads.extend([at[row[1]] for row in rows])
            attributes.extend([row[-1] for row in rows])
            if several:
                keys.extend([row[2] for row in rows])
        look()
        return cls(
            "edges", ends, np.array(tails, np.int32), np.array(heads, np.int32), keys if several else None, attributes
        )

    def __len__(self) -> int:
        return len(self.data)

    def rows(self, positions: Sequence[int] | Positions) -> list[tuple[Any, ...]]:
        """Return ``(source, target, key, attributes)`` for each position; the key is None outside multigraphs."""
        nodes, data, keys = self.ends.nodes, self.data, self.keys
        chosen = np.asarray(positions, np.int64)
        sources, targets = self.sources[chosen].tolist(), self.targets[chosen].tolist()
        return [
            (nodes[source], nodes[target], None if keys is None else keys[at], data[at])
            for source, target, at in zip(sources, targets, chosen.tolist(), strict=True)
        ]


Table = NodeTable | EdgeTable


# Adjacency as compressed sparse rows: the edges that leave (or enter) each node are contiguous in one array.


@frozen(eq=False)
class Adjacency:
    """The edges of node ``i`` are ``edges[first[i]:first[i + 1]]``; ``heads`` contains, at the same indices, the nodes at their other ends.

    Edges are in the graph's own order. In an undirected graph every edge is listed at both of its ends.
    """

    first: NDArray[np.int64]
    heads: Positions
    edges: Positions

    def degrees(self, nodes: NDArray[Any]) -> NDArray[np.int64]:
        """Return the number of edges that this adjacency lists for each of ``nodes``."""
        degrees: NDArray[np.int64] = self.first.take(nodes + 1) - self.first.take(nodes)
        return degrees

    def expand(self, nodes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return, for every edge of ``nodes``, the index of its node in ``nodes``, and its own index in ``heads``."""
        counts = self.degrees(nodes)
        before = np.cumsum(counts) - counts
        owner = np.repeat(np.arange(len(nodes)), counts)
        return owner, np.arange(len(owner)) + (self.first[nodes] - before)[owner]

    def only(self, used: NDArray[np.bool_]) -> "Adjacency":
        """Return the adjacency that has only the edges for which ``used``, at the edge's position, is true."""
        keep = used[self.edges]
        before = np.concatenate([[0], np.cumsum(keep)])
        return Adjacency(before[self.first], self.heads[keep], self.edges[keep])

    def reached(self, nodes: NDArray[Any]) -> NDArray[Any]:
        """Return the distinct positions of the nodes at the other ends of the edges of ``nodes``."""
        return distinct(self.heads[self.expand(nodes)[1]])


def distinct(positions: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct ``positions``, ascending. For a few thousand positions, ``np.unique`` takes ten times as long."""
    ordered = np.sort(positions)
    keep = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def outgoing(table: EdgeTable, directed: bool, look: Callable[[], None] = lambda: None) -> Adjacency:
    """Return the edges that leave each node. ``look`` is called between steps and may raise an exception to cancel."""
    return _adjacency(table, table.sources, table.targets, directed, look)


def incoming(table: EdgeTable, directed: bool, look: Callable[[], None] = lambda: None) -> Adjacency:
    """Return the edges that enter each node. The heads are the sources of these edges. See ``outgoing`` for ``look``."""
    return _adjacency(table, table.targets, table.sources, directed, look)


def _adjacency(
    table: EdgeTable, tails: Positions, heads: Positions, directed: bool, look: Callable[[], None]
) -> Adjacency:
    look()
    edges = np.arange(len(table), dtype=np.int32)
    if not directed:
        other = tails != heads  # a loop is listed only once
        tails, heads, edges = (
            np.concatenate([tails, heads[other]]),
            np.concatenate([heads, tails[other]]),
            np.concatenate([edges, edges[other]]),
        )
    if not directed or (len(tails) and (np.diff(tails) < 0).any()):
        # Sort by node, then by edge position: lexsort's last key is the primary key. The edges of a directed graph are in this order
        # if its nodes are.
        look()
        order = np.lexsort((edges, tails))
        look()
        tails, heads, edges = tails[order], heads[order], edges[order]
    first = np.zeros(len(table.ends) + 1, np.int64)
    np.cumsum(np.bincount(tails, minlength=len(table.ends)), out=first[1:])
    return Adjacency(first, heads, edges)


# Data computed from a graph and cached next to it until the graph changes.
# The cache is in ``graph.__networkx_cache__``, which NetworkX clears whenever one of its methods changes the graph. Writing an
# attribute directly (``graph.nodes[a]["x"] = 1``) does not clear the cache: see ``find.agrees_with_graph``. A view is not notified
# when its graph changes, so nothing is cached for views.

_KEY = "knotwork"
_MOST_PREPARED = 512
_WIDE = 50
Made = TypeVar("Made")


class Computed:
    """Tables, adjacency, columns and compiled conditions of one graph, each computed on first use.

    Threads may share the object: the first thread that needs a part computes it, and other threads wait. Copying or pickling a
    graph does not copy the cache.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._parts: dict[Hashable, Any] = {}
        self._prepared: dict[Hashable, tuple[Condition, Any]] = {}
        self.turn = 0
        """Number of searches so far, used to check different rows in each search."""

    def __reduce__(self) -> tuple[type["Computed"], tuple[()]]:
        return (Computed, ())

    def part(self, name: Hashable, make: Callable[[], Made]) -> Made:
        """Return the part ``name``; ``make`` computes it on first use."""
        if name in self._parts:
            return self._parts[name]  # type: ignore[no-any-return]  # what `make` of this name made
        with self._lock:
            if name not in self._parts:
                self._parts[name] = make()
            return self._parts[name]  # type: ignore[no-any-return]  # the same

    def has(self, name: Hashable) -> bool:
        """Return whether the part has been computed."""
        return name in self._parts

    def take_over(self, other: "Computed") -> None:
        """Copy from an equal graph's cache the parts without references to its attributes: columns, adjacency, schema."""
        with self._lock:
            for name, part in other._parts.items():
                if name in ("schema", "outgoing", "incoming") or (isinstance(name, tuple) and name[:1] == ("column",)):
                    self._parts.setdefault(name, part)

    def prepared(self, name: Hashable, condition: Condition, make: Callable[[], Made]) -> Made:
        """Return the result of ``make`` for ``condition``, cached for equivalent conditions. A few hundred results are cached."""
        meaning = _meaning(condition)
        key = (name, id(condition) if meaning is None else meaning)
        known = self._prepared.get(key)
        if known is not None:
            return known[1]  # type: ignore[no-any-return]  # what `make` of this name made
        made = make()
        with self._lock:
            if len(self._prepared) >= _MOST_PREPARED:
                self._prepared.clear()
            self._prepared[key] = (condition, made)  # holding the condition prevents reuse of its id
        return made

    def size(self, graph: Any, kind: str) -> int:
        """Return the number of nodes or edges. (To count edges, NetworkX adds up the degrees of all nodes.)"""
        return int(graph.number_of_nodes() if kind == "nodes" else self.part("size", graph.number_of_edges))

    def nodes(self, graph: Any) -> "NodeTable":
        """Return the table of nodes."""
        return self.part("nodes", lambda: NodeTable.of(graph))

    def edges(self, graph: Any, look: Callable[[], None] = lambda: None) -> "EdgeTable":
        """Return the table of edges. ``look`` is called periodically while the table is built; if it raises, nothing is cached."""
        return self.part("edges", lambda: EdgeTable.of(graph, self.nodes(graph), look))

    def table(self, graph: Any, kind: str) -> "Table":
        """Return the table of ``kind``."""
        return self.nodes(graph) if kind == "nodes" else self.edges(graph)

    def outgoing(self, graph: Any, look: Callable[[], None] = lambda: None) -> "Adjacency":
        """Return the edges that leave each node. See ``edges`` for ``look``."""

        return self.part("outgoing", lambda: outgoing(self.edges(graph, look), graph.is_directed(), look))

    def incoming(self, graph: Any, look: Callable[[], None] = lambda: None) -> "Adjacency":
        """Return the edges that enter each node; if undirected, the same as ``outgoing``. See ``edges`` for ``look``."""
        if not graph.is_directed():
            return self.outgoing(graph, look)

        return self.part("incoming", lambda: incoming(self.edges(graph, look), True, look))

    def either(self, graph: Any) -> "Adjacency":
        """Return the edges of each node in either direction; each edge is listed at both of its ends, a loop once."""
        if not graph.is_directed():
            return self.outgoing(graph)
        return self.part("either", lambda: outgoing(self.edges(graph), False))


def keeps(graph: Any) -> bool:
    """Return whether data can be cached for ``graph``: the graph is not a view, and NetworkX clears its cache."""
    return isinstance(getattr(graph, "__networkx_cache__", None), dict) and not hasattr(graph, "_graph")


def computed(graph: Any, strict: bool = False) -> Computed:
    """Return the cache of ``graph``. If nothing can be cached for it, return an empty object for temporary use."""
    if strict or not keeps(graph):
        return Computed()
    kept: Computed = graph.__networkx_cache__.setdefault(_KEY, Computed())
    return kept


def forget(graph: Any) -> None:
    """Discard the cache of ``graph``."""
    if keeps(graph):
        graph.__networkx_cache__.pop(_KEY, None)


def _meaning(condition: Condition) -> Hashable | None:
    """Return a key. Two keys are equal only if their conditions have the same meaning. Return None for a large condition.

    Conditions themselves can't be keys: conditions with equal constants are equal, and in Python 1 equals true.
    """
    if isinstance(condition, Comparison):
        left, right = condition.left, condition.right
        if left.__class__ is not Field or right.__class__ is not Constant:
            return _in_words(condition)
        value: Any = right.value
        if value.__class__ not in (str, int, float, bool):
            return _in_words(condition)
        return (left, condition.operator, value.__class__, value)
    if isinstance(condition, And | Or | Not):
        operands = (condition.operand,) if isinstance(condition, Not) else condition.operands
        if len(operands) > _WIDE:
            return None
        inner = tuple([_meaning(operand) for operand in operands])
        return None if None in inner else (condition.__class__, inner)
    return _in_words(condition)


def _in_words(leaf: Comparison | NullTest | Increasing) -> str | None:
    right = getattr(leaf, "right", None)
    items = getattr(right, "items", getattr(right, "value", ()))
    return repr(leaf) if not isinstance(items, tuple | list | dict) or len(items) <= _WIDE else None


# Columns: the values of one field in all rows, as an array, so that one comparison covers all rows.
# A column of numbers stores the numbers, with NaN for null. Other columns store codes: ``codes[i]`` is the code of the value in row i,
# and a comparison is evaluated once per distinct value. If there are many distinct strings, they are searched in one buffer. The
# tests of ``lang.evaluate`` are used, so the results are the same.


class Column(Protocol):
    """The values of one field in all rows. ``at`` are positions of rows; None means all rows."""

    def mask(self, leaf: Leaf, wanted: bool, at: Array | None) -> Mask | None:
        """Return, for each row, whether the result of ``leaf`` is ``wanted`` (true or false); None if the column can't evaluate it."""
        ...

    def count(self, leaf: Leaf) -> int | None:
        """Return the number of rows for which ``leaf`` is true, counted by an index; None if no index can count them."""
        ...

    def positions(self, leaf: Leaf) -> Array:
        """Return the ascending positions of the rows for which ``leaf`` is true. Call this only if ``count`` is not None."""
        ...

    def ranks(self, at: Array | None, descending: bool = False) -> NDArray[np.float64]:
        """Return numbers with the order, or the ``descending`` order, of the values at ``at`` (None: all rows); NaN for null."""
        ...

    def others(self, is_other: Callable[[Any], bool]) -> Mask | None:
        """Return, for each row, whether its value has a type that ``is_other`` accepts; None if no value has such a type."""
        ...

    def agrees(self, at: int, value: Any) -> bool:
        """Return whether the column's value in row ``at`` equals ``value``, which comes from the live graph."""
        ...


@frozen(eq=False)
class Through:
    """A column of edges that reads a field of one end. ``inner`` is the column of nodes; ``ends[i]`` is the end of edge i."""

    inner: Column
    ends: Array
    _index: list[tuple[Array, Array]] = field(factory=list)

    def mask(self, leaf: Leaf, wanted: bool, at: Array | None) -> Mask | None:
        """See ``Column``."""
        if at is not None:
            return self.inner.mask(leaf, wanted, self.ends[at])
        mask = self.inner.mask(leaf, wanted, None)
        return None if mask is None else mask[self.ends]

    def _by_node(self) -> tuple[Array, Array]:
        if not self._index:
            order = np.argsort(self.ends, kind="stable").astype(np.int32)
            counts = np.bincount(self.ends)
            self._index.append((order, np.concatenate([[0], np.cumsum(counts)])))
        return self._index[0]

    def _nodes(self, leaf: Leaf) -> Array:
        nodes, known = self.inner.positions(leaf), len(self._by_node()[1]) - 1
        return nodes[nodes < known]

    def count(self, leaf: Leaf) -> int | None:
        """See ``Column``."""
        many = self.inner.count(leaf)
        if many is None:
            return None
        if many > len(self.ends):
            return len(self.ends)
        first, nodes = self._by_node()[1], self._nodes(leaf)
        return int((first[nodes + 1] - first[nodes]).sum())

    def positions(self, leaf: Leaf) -> Array:
        """See ``Column``."""
        order, first = self._by_node()
        nodes = self._nodes(leaf)
        counts = first[nodes + 1] - first[nodes]
        owner = np.repeat(np.arange(len(nodes)), counts)
        return np.sort(order[np.arange(len(owner)) + (first[nodes] - np.cumsum(counts) + counts)[owner]])

    def ranks(self, at: Array | None, descending: bool = False) -> NDArray[np.float64]:
        """See ``Column``."""
        return self.inner.ranks(self.ends if at is None else self.ends[at], descending)

    def others(self, is_other: Callable[[Any], bool]) -> Mask | None:
        """See ``Column``."""
        mask = self.inner.others(is_other)
        return None if mask is None else mask[self.ends]

    def agrees(self, at: int, value: Any) -> bool:
        """See ``Column``."""
        return self.inner.agrees(int(self.ends[at]), value)


def column_of(raw: Sequence[Any]) -> Column:
    """Return the column of ``raw``, the live values of all rows.

    Raises ``AdapterError`` or ``ConditionError`` for a value that nests too deeply to be compared.
    """
    kinds = set(map(type, raw))
    if kinds <= {int, float, type(None)} and kinds & {int, float}:
        numbers = numbers_of(raw, int in kinds)
        if numbers is not None:
            return Numbers(numbers, None if {int, float} <= kinds else int in kinds)
    if kinds <= {str, type(None)}:
        values = [value for value in dict.fromkeys(raw) if value is not None]
        codes: Any = map(dict(zip([None, *values], range(len(values) + 1), strict=True)).__getitem__, raw)
        return Coded.of(np.fromiter(codes, _width(len(values)), len(raw)), values, values)
    keys: dict[Hashable, int] = {}
    values, coded = [], []
    for each in raw:
        value = plain(each)
        key = value if isinstance(value, str) else identity(value)
        code = 0 if key is None else keys.setdefault(key, len(keys) + 1)
        if code > len(values):
            values.append(value)
        coded.append(code)
    return Coded.of(np.array(coded, _width(len(values))), values, list(keys))


def _width(many: int) -> type[np.unsignedinteger[Any]]:
    return np.uint8 if many < 255 else np.uint16 if many < 65_535 else np.uint32


# Conditions over columns: all matching rows at once. As in the generated code, NOT asks for the rows where its operand is false.

Columns = Callable[[Field], Column | None]


def mask_of(columns: Columns, condition: Condition, wanted: bool, at: Array | None, rows: int) -> Mask | None:
    """Return, for each row at ``at`` (None: all rows), whether the result is ``wanted``; None if a column can't evaluate it."""
    if isinstance(condition, Not):
        return mask_of(columns, condition.operand, not wanted, at, rows)
    if isinstance(condition, Increasing):
        return None
    if isinstance(condition, Comparison | NullTest):
        left: Any = condition.left
        if isinstance(left, Constant):
            return np.full(rows if at is None else len(at), leaf_test(condition)(left.value) is wanted, np.bool_)
        column = columns(left)
        return None if column is None else column.mask(condition, wanted, at)
    # Combine the masks one by one into the first mask, so that memory does not hold one mask per operand.
    joined: Mask | None = None
    join = np.bitwise_and if isinstance(condition, And) is wanted else np.bitwise_or
    for operand in condition.operands:
        mask = mask_of(columns, operand, wanted, at, rows)
        if mask is None:
            return None
        joined = mask if joined is None else join(joined, mask, out=joined)
    return joined
