"""The graph that ``MEASURE`` measures: its arrays and weights, and a NetworkX graph for NetworkX's algorithms."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from ...lang.catalogue.measures import BY_1, MEASURES, default_weights, no_weight
from ...lang.trees.conditions import Constant, Value
from ..graph import Links, UnusableValue
from .cancellable import Late, watched
from .edge_costs import cached_costs
from .rows import Deadline, node_id
from .tables import Adjacency, Computed, EdgeTable, distinct

Array: TypeAlias = NDArray[Any]
Values: TypeAlias = "Mapping[Any, Any] | Sequence[Any]"
"""A mapping from nodes to values, or a value per node in the graph's order. A value not computed in time is None or missing."""


def graph_of(links: Links, directed: bool, deadline: Deadline) -> Any:
    """Build a NetworkX graph from given edges; edges with equal ends become parallel. Raises ``Late`` after the time limit."""
    edges = links.edges
    pairs: set[Any] = set()
    for some in _steps(edges, deadline):
        pairs.update(edges[some] if directed else map(frozenset, edges[some]))
    if len(pairs) < len(edges):
        made: Any = nx.MultiDiGraph() if directed else nx.MultiGraph()
    else:
        made = nx.DiGraph() if directed else nx.Graph()
    pairs.clear()
    for some in _steps(links.nodes, deadline):
        made.add_nodes_from(links.nodes[some])
    for some in _steps(edges, deadline):
        if links.weights is None:
            made.add_edges_from(edges[some])
        else:
            weights = links.weights[some]
            made.add_weighted_edges_from((*edge, weight) for edge, weight in zip(edges[some], weights, strict=True))
    return made


def _steps(values: Sequence[Any], deadline: Deadline) -> Iterator[slice]:
    """Yield slices that together cover ``values``. Before each slice, raise ``Late`` if the time limit has passed."""
    for start in range(0, len(values), _STEP):
        look(deadline)
        yield slice(start, start + _STEP)


def look(deadline: Deadline) -> None:
    """Raise ``Late`` if the time limit has passed."""
    if deadline.passed():
        raise Late


_STEP = 8192
"""Number of edges or nodes that are added to a graph between two checks of the clock."""


@define(eq=False, slots=False)
class MeasuredGraph:
    """A graph to be measured, and the notes made while it is measured.

    ``wanted`` are the positions of the nodes whose values are wanted. ``weight`` is the value or the attribute that is the weight
    of the edges; "" if it is not known. ``weights`` contains the weight of every edge, in the
    order of the edges; it is None for an unweighted graph. ``used`` marks the edges with a weight; None means all edges. At the
    time limit, ``partial`` returns the values computed so far; it is None if they would not be useful. ``limits`` are the notes
    about effects of the time limit.
    """

    graph: Any
    kept: Computed
    wanted: Sequence[int]
    settings: Mapping[str, Any]
    deadline: Deadline
    seconds: float
    weight: str = ""
    weights: Array | None = None
    used: NDArray[np.bool_] | None = None
    unused: int = 0
    notes: list[str] = field(factory=list)
    limits: list[str] = field(factory=list)
    caps_hit: list[str] = field(factory=list)
    partial: Callable[[], Values] | None = None

    @property
    def nodes(self) -> list[Any]:
        """All nodes in the graph's order."""
        return self.kept.nodes(self.graph).nodes

    @property
    def directed(self) -> bool:
        """Whether the graph is directed."""
        return bool(self.graph.is_directed())

    def take_weight(self, name: str, value: Value | None, links: Links | None) -> None:
        """Read the weights of the algorithm ``name`` from ``value`` or ``links``; without both, use its default.

        A note says what the weights are, or why the graph is unweighted.

        Raises ``UnusableValue``. Raises ``Late`` if the time limit passes.
        """
        table, spec = self.kept.edges(self.graph), MEASURES[name]
        if links is not None:
            if links.weights is not None:
                self.weights = np.array([data["weight"] for data in table.data], float)
            note = links.note
        elif isinstance(value, Constant) and value.value == 1:
            note = BY_1
        elif value is not None:
            costs = cached_costs(self.graph, self.kept, value, self._look)
            self.unused = costs.check(table, lambda at: np.ones(len(at), np.bool_))
            self.weights = np.array([0.0 if each is None else each for each in costs.values], float)
            if self.unused:
                self.used = np.ones(len(table), np.bool_)
                self.used[costs.nulls] = False
            self.weight, note = costs.text, f"weighted by {costs.text}"
        elif spec.weighted:
            self.weight, self.weights, note = self.kept.part("weights", lambda: _default_weights(table))
        else:
            note = no_weight(name)
        if note:
            self.notes.append(note)

    def _look(self) -> None:
        look(self.deadline)

    # Arrays

    @cached_property
    def out(self) -> Adjacency:
        """The edges that leave each node."""
        return self._used(self.kept.outgoing(self.graph))

    @cached_property
    def into(self) -> Adjacency:
        """The edges that enter each node."""
        return self._used(self.kept.incoming(self.graph))

    @cached_property
    def either(self) -> Adjacency:
        """The edges of each node in either direction."""
        return self._used(self.kept.either(self.graph))

    def _used(self, adjacency: Adjacency) -> Adjacency:
        return adjacency if self.used is None else adjacency.only(self.used)

    @cached_property
    def neighbours(self) -> Adjacency:
        """The distinct neighbours of each node in either direction, ascending, without the node itself.

        The array ``edges`` of the result is empty.
        """

        def make() -> Adjacency:
            size, either = len(self.nodes), self.kept.either(self.graph)
            tails = np.repeat(np.arange(size, dtype=np.int64), np.diff(either.first))
            keep = tails != either.heads
            pairs = distinct(tails[keep] * size + either.heads[keep])
            first = np.zeros(size + 1, np.int64)
            np.cumsum(np.bincount(pairs // max(size, 1), minlength=size), out=first[1:])
            return Adjacency(first, (pairs % max(size, 1)).astype(np.int32), np.empty(0, np.int32))

        return self.kept.part("neighbours", make)

    def say_simple(self, *, directed: bool = True, loops: bool = True) -> bool:
        """Add notes about what an algorithm ignores: parallel edges, directions, loops. Return whether the graph has any."""
        undirect = self.directed and not directed
        drop = not loops and any(True for _ in islice(nx.selfloop_edges(self.graph), 1))
        if self.graph.is_multigraph():
            self.notes.append("parallel edges merged")
        if undirect:
            self.notes.append("direction of edges ignored")
        if drop:
            self.notes.append("loops omitted")
        return bool(self.graph.is_multigraph() or undirect or drop)

    # NetworkX

    def simple(self, *, directed: bool = True, loops: bool = True, rows: bool = False, merge: str = "") -> Any:
        """Return the graph in the form that NetworkX's algorithms need.

        Parallel edges are merged, and iteration can be interrupted.

        If ``merge`` is "sum" or "least", edges keep their weights, in the attribute ``weight``; a merged edge has the sum or
        the minimum of the original weights. Without ``merge``, weights are omitted. See ``watched`` for ``rows``.
        """
        return watched(self._simple(directed, loops, merge), self.deadline.ended, rows=rows)

    def _simple(self, directed: bool, loops: bool, merge: str) -> Any:
        weights = self.weights if merge else None
        if not self.say_simple(directed=directed, loops=loops) and weights is None and self.used is None:
            return self.graph
        made: Any = nx.DiGraph() if self.directed and directed else nx.Graph()
        made.add_nodes_from(self.graph)
        table, nodes = self.kept.edges(self.graph), self.nodes
        for at, (s, t) in enumerate(zip(table.sources.tolist(), table.targets.tolist(), strict=True)):
            if (self.used is not None and not self.used[at]) or not (loops or s != t):
                continue
            source, target = nodes[s], nodes[t]
            if weights is None:
                made.add_edge(source, target)
                continue
            weight, known = float(weights[at]), made.adj[source].get(target)
            if known is not None:
                weight = known["weight"] + weight if merge == "sum" else min(known["weight"], weight)
            made.add_edge(source, target, weight=weight)
        return made

    def check_distances(self, name: str) -> None:
        """Raise ``UnusableValue`` if a distance is 0: the shortest paths through such an edge can't be counted."""
        if self.weights is None:
            return
        zero = np.flatnonzero((self.weights == 0) if self.used is None else (self.weights == 0) & self.used)
        if len(zero):
            table, text = self.kept.edges(self.graph), self.weight or "the weight"
            ends = [node_id(self.nodes[side[zero[0]]]) for side in (table.sources, table.targets)]
            raise UnusableValue(
                f"{text} is 0 on {len(zero):,} of {len(table):,} edges (the first is the edge from {ends[0]} to {ends[1]}); "
                f"{name} needs distances above 0",
                hint="write a value that is above 0 for every edge, or leave these edges out with ON",
            )

    def out_of_time(self, done: int, what: str = "nodes") -> None:
        """Add a note that the time limit passed after ``done`` of the wanted nodes."""
        self.limited_by_time(f"only {done:,} of {len(self.wanted):,} {what} within the time limit")

    def limited_by_time(self, note: str) -> None:
        """Add a note about the effect of the time limit on the values."""
        self.notes.append(note)
        self.limits.append(note)
        if "timeout_s" not in self.caps_hit:
            self.caps_hit.append("timeout_s")


def _default_weights(table: EdgeTable) -> tuple[str, Array | None, str]:
    """Return ``default_weights`` of all edges, with the weights as an array."""
    nodes = table.ends.nodes
    name, weights, note = default_weights(
        table.data, lambda at: (node_id(nodes[table.sources[at]]), node_id(nodes[table.targets[at]]))
    )
    return name, None if weights is None else np.array(weights), note


def sums(values: Array, adjacency: Adjacency) -> Array:
    """Return, for each node, the sum of the values of its entries in ``adjacency``. ``values[i]`` is the value of entry i.

    Raises ``FloatingPointError`` if a sum is too large for a float.
    """
    total = np.zeros(len(adjacency.first) - 1, values.dtype)
    if len(values):
        some = adjacency.first[:-1] < adjacency.first[1:]
        with np.errstate(over="ignore"):
            total[some] = np.add.reduceat(values, adjacency.first[:-1][some])
    if total.dtype.kind == "f" and np.isinf(total).any():
        raise FloatingPointError("a sum of weights is too large for a float; divide the weights")
    return total
