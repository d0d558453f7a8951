"""Measures of nodes and edges: centralities, degrees, cores, triangles, generations, and edge betweenness."""

import math
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random
from typing import Any

import networkx as nx
import numpy as np
from attrs import frozen

from ..graph import AdapterError
from .cancellable import Ended, Late
from .key_set import KeySet
from .measured_graph import Array, MeasuredGraph, Values, sums
from .tables import Adjacency, distinct

_LARGEST = 2.0**500
"""If a weight is larger than this, all weights are divided by the largest weight."""
_SEED = 0
_BLOCK = 1 << 20
"""Approximate number of pairs of neighbours that are examined in one step."""


def pagerank(task: MeasuredGraph) -> Values:
    """Return PageRank as ``networkx.pagerank`` does, using only numpy (NetworkX needs scipy). Values sum to 1.

    The iteration stops if the total change is less than 1e-6 per node, as in NetworkX. Source: Page, Brin, Motwani, Winograd
    1999.
    """
    damping = float(task.settings["damping"])
    if nx.config.backend_priority.algos and task.used is None and task.weights is None:
        ranks: Values = nx.pagerank(task.graph, alpha=damping, weight=None)
        return ranks
    return power_iteration(task, damping).tolist()  # type: ignore[no-any-return]


def power_iteration(task: MeasuredGraph, damping: float = 0.85, rounds: int = 1000) -> Array:
    """Return PageRank; the edges that enter each node are contiguous, so each round is one gather and one sum over segments."""
    into, count = task.into, len(task.nodes)
    if not count:
        return np.empty(0)
    if task.weights is None:
        outgoing = np.diff(task.out.first).astype(float)
        weights = None
    else:
        weights = task.weights[into.edges]
        if (largest := weights.max(initial=0)) > _LARGEST:
            weights = weights / largest  # only ratios count, and sums of such weights could be infinite
        outgoing = np.bincount(into.heads, weights, count)
    share = np.divide(1.0, outgoing, out=np.zeros(count), where=outgoing > 0)
    dangling = np.flatnonzero(outgoing == 0)
    some = np.flatnonzero(into.first[:-1] < into.first[1:])
    starts, heads = into.first[some], into.heads
    rank = np.full(count, 1.0 / count)
    for _ in range(rounds):
        if task.deadline.ended():
            raise Ended
        given = (rank * share)[heads]
        if weights is not None:
            given *= weights
        new = np.full(count, damping * float(rank[dangling].sum()) / count + (1 - damping) / count)
        if len(starts):
            new[some] += damping * np.add.reduceat(given, starts)
        settled = float(np.abs(new - rank).sum()) < count * 1e-6
        rank = new
        if settled:
            break
    return rank


def hits(task: MeasuredGraph) -> Values:
    """Return the hub and authority scores of each node, like ``networkx.hits``; each score sums to 1. Source: Kleinberg 1999."""
    out, into, count = task.out, task.into, len(task.nodes)
    leaving = 1.0 if task.weights is None else task.weights[out.edges]
    entering = 1.0 if task.weights is None else task.weights[into.edges]
    hub = np.full(count, 1.0 / max(count, 1))
    for _ in range(1000):
        if task.deadline.ended():
            raise Ended
        authority = sums(hub[into.heads] * entering, into)
        new = sums(authority[out.heads] * leaving, out)
        if not new.any():
            return [(0.0, 0.0)] * count  # no edge has a weight
        new /= new.max()
        authority /= authority.max()
        settled = float(np.abs(new - hub).sum()) < 1e-8
        hub = new
        if settled:
            break
    else:
        raise AdapterError("hits did not converge in 1,000 rounds", hint="use pagerank, which always converges")
    return list(zip((hub / hub.sum()).tolist(), (authority / authority.sum()).tolist(), strict=True))


def degree(task: MeasuredGraph) -> Values:
    """Return the number of edges of each node, or the sum of their weights; a loop counts twice."""
    if task.directed:
        return _added(_ends(task, task.out), _ends(task, task.into))
    loops = task.kept.edges(task.graph)
    at = np.flatnonzero(loops.sources == loops.targets)
    if task.used is not None:
        at = at[task.used[at]]
    weights = None if task.weights is None else task.weights[at]
    again = np.bincount(loops.sources[at], weights, minlength=len(task.nodes))
    return _added(_ends(task, task.out), again)


def _added(left: Array, right: Array) -> list[Any]:
    return (left + right).tolist()  # type: ignore[no-any-return]


def _ends(task: MeasuredGraph, adjacency: Any) -> Array:
    return np.diff(adjacency.first) if task.weights is None else sums(task.weights[adjacency.edges], adjacency)


def in_degree(task: MeasuredGraph) -> Values:
    """Return the number of edges that enter each node, or the sum of their weights."""
    return _ends(task, task.into).tolist()  # type: ignore[no-any-return]


def out_degree(task: MeasuredGraph) -> Values:
    """Return the number of edges that leave each node, or the sum of their weights."""
    return _ends(task, task.out).tolist()  # type: ignore[no-any-return]


# Betweenness is computed source by source, so that partial results can be used at the time limit.
# The algorithm is that of Brandes (2001), as in ``networkx.betweenness_centrality``, but on lists of integers.


class PathSums:
    """Adds up, for one source after another, the shares of shortest paths through each node.

    If ``weighted`` is true, the length of an edge is its attribute ``weight``.
    """

    def __init__(self, graph: Any, *, weighted: bool = False) -> None:
        self._graph, self._weighted = graph, weighted
        self.nodes = list(graph)
        place = {node: at for at, node in enumerate(self.nodes)}
        self._next = [[place[other] for other in graph.adj[node]] for node in self.nodes]
        self._directed = bool(graph.is_directed())
        self._state: tuple[int, Any] = (0, np.zeros(len(self.nodes)))

    @property
    def processed(self) -> int:
        """Number of sources whose shortest paths are counted so far."""
        return self._state[0]

    def add(self, source: int) -> None:
        """Add the shortest paths from one node. After an interruption, either all or none of these paths are counted."""
        if self._weighted:
            self._add_weighted(source)
            return
        nexts = self._next
        distance = [-1] * len(nexts)
        paths = [0.0] * len(nexts)
        distance[source], paths[source] = 0, 1.0
        order, before = [source], dict[int, list[int]]()
        for node in order:
            beyond, through = distance[node] + 1, paths[node]
            for other in nexts[node]:
                if distance[other] < 0:
                    distance[other] = beyond
                    order.append(other)
                if distance[other] == beyond:
                    paths[other] += through
                    before.setdefault(other, []).append(node)
        share = [0.0] * len(nexts)
        for node in reversed(order):
            if node == source:
                continue
            part = (1 + share[node]) / paths[node]
            for earlier in before[node]:
                share[earlier] += paths[earlier] * part
        share[source] = 0.0
        count, sums = self._state
        self._state = (count + 1, sums + np.array(share))

    def _add_weighted(self, source: int) -> None:
        nodes = self.nodes
        found = nx.betweenness_centrality_subset(self._graph, [nodes[source]], nodes, weight="weight")
        twice = 1.0 if self._directed else 2.0  # NetworkX halves the sums of undirected graphs
        count, sums = self._state
        self._state = (count + 1, sums + twice * np.fromiter(found.values(), float, len(nodes)))

    def values(self) -> dict[Any, float]:
        """Return the normalised betweenness of each node; the values are estimates if not every node was a source."""
        done, sums = self._state
        count = len(self.nodes)
        if not done:
            return {}
        scale = 1.0 if count <= 2 else 1 / ((count - 1) * (count - 2))
        if done < count:
            scale *= count / done
        return dict(zip(self.nodes, (sums * scale).tolist(), strict=True))


def betweenness(task: MeasuredGraph) -> Values:
    """Return the share of shortest paths through each node; at the time limit, an estimate from sampled nodes."""
    task.check_distances("betweenness")
    graph = task.simple(merge="least")
    weighted = task.weights is not None
    if nx.config.backend_priority.algos:
        values: Values = nx.betweenness_centrality(graph, weight="weight" if weighted else None)
        return values
    sums_ = PathSums(graph, weighted=weighted)
    count = len(sums_.nodes)

    def found() -> Values:
        if sums_.processed < count:
            note = f"estimated from the paths of {sums_.processed:,} of {count:,} nodes, sampled with seed {_SEED}"
            task.limited_by_time(note)
        else:
            task.notes.append("exact")
        return sums_.values()

    task.partial = found
    # The order is random, so that the first sources represent all nodes if the time ends before the last one.
    for source in Random(_SEED).sample(range(count), count):  # noqa: S311 - a sample, no secret
        if task.deadline.passed():
            break
        sums_.add(source)
    if task.deadline.ended():
        raise Ended
    if not sums_.processed:
        raise Late
    return found()


def edge_betweenness(task: MeasuredGraph) -> dict[tuple[Any, Any], float]:
    """Return the share of shortest paths through each pair of adjacent nodes."""
    task.check_distances("edge_betweenness")
    graph = task.simple(merge="least")
    values: dict[tuple[Any, Any], float] = nx.edge_betweenness_centrality(
        graph, weight=None if task.weights is None else "weight"
    )
    return values


# Distances, node by node


def _distances(task: MeasuredGraph, *, towards: bool) -> Iterator[tuple[Any, dict[Any, float]]]:
    """Yield each wanted node with the distances from this node or, if ``towards``, to this node; stop at the time limit."""
    graph = task.simple(merge="least")
    if graph.is_directed() and towards:
        graph = graph.reverse(copy=False)
    nodes = task.nodes
    for done, at in enumerate(task.wanted):
        if task.deadline.passed():
            task.out_of_time(done)
            return
        if task.weights is None:
            yield nodes[at], nx.single_source_shortest_path_length(graph, nodes[at])
        else:
            yield nodes[at], nx.single_source_dijkstra_path_length(graph, nodes[at], weight="weight")


def _of_distances(task: MeasuredGraph, of: Callable[[dict[Any, float]], float], *, towards: bool) -> Values:
    values: dict[Any, float] = {}
    task.partial = lambda: _so_far(task, values)
    for node, distances in _distances(task, towards=towards):
        values[node] = of(distances)
    return values


def closeness(task: MeasuredGraph) -> Values:
    """Return, for each node, the inverse mean distance from the nodes that reach it, times the share of nodes that reach it."""
    count = len(task.nodes)

    def of(distances: dict[Any, float]) -> float:
        total, reached = sum(distances.values()), len(distances) - 1
        return reached / total * reached / (count - 1) if total > 0 and count > 1 else 0.0

    return _of_distances(task, of, towards=True)


def harmonic(task: MeasuredGraph) -> Values:
    """Return the sum of the inverse distances to each node from the other nodes."""
    return _of_distances(
        task, lambda distances: math.fsum(1 / each for each in distances.values() if each > 0), towards=True
    )


def eccentricity(task: MeasuredGraph) -> Values:
    """Return the largest distance from each node to a node that it reaches."""
    return _of_distances(task, lambda distances: max(distances.values()), towards=False)


def _so_far(task: MeasuredGraph, values: Any) -> Values:
    if values:
        task.out_of_time(len(values))
    return values  # type: ignore[no-any-return]


def eigenvector(task: MeasuredGraph) -> Values:
    """Return the eigenvector centrality of each node."""
    graph = task.simple(rows=True, merge="sum")
    weight = None if task.weights is None else "weight"
    try:
        values: Values = nx.eigenvector_centrality(graph, max_iter=1000, weight=weight)
    except nx.PowerIterationFailedConvergence:
        hint = "use pagerank, which always converges"
        raise AdapterError("eigenvector did not converge in 1,000 rounds", hint=hint) from None
    return values


# Triangles and cores


def clustering(task: MeasuredGraph) -> Values:
    """Return, for each node, the share of the pairs of its neighbours that are connected by an edge."""
    if task.directed:
        graph = task.simple()
        values = _by_pieces(task, lambda nodes: nx.clustering(graph, nodes))
        return {node: float(value) for node, value in values.items()}
    task.say_simple()
    found = triangle_counts(task)
    if found is None:
        return {}
    degrees = np.diff(task.neighbours.first)
    pairs = degrees * (degrees - 1) / 2
    return np.divide(found, pairs, out=np.zeros(len(pairs)), where=pairs > 0).tolist()  # type: ignore[no-any-return]


def triangles(task: MeasuredGraph) -> Values:
    """Return, for each node, the number of triangles that contain it."""
    task.say_simple(directed=False)
    found = triangle_counts(task)
    return {} if found is None else found.tolist()


def _by_pieces(task: MeasuredGraph, compute: Callable[[list[Any]], Any]) -> Any:
    values: dict[Any, Any] = {}
    task.partial = lambda: _so_far(task, values)
    nodes = iter([task.nodes[at] for at in task.wanted])
    while piece := list(islice(nodes, 256)):
        if task.deadline.passed():
            task.out_of_time(len(values))
            break
        values.update(compute(piece))
    return values


def triangle_counts(task: MeasuredGraph) -> Array | None:
    """Return the number of triangles of each node; None at the time limit.

    Each edge is directed from its node of lower degree to its node of higher degree, so few pairs of neighbours are examined
    (Chiba and Nishizeki 1985).
    """
    up: _Upward = task.kept.part("upward", lambda: _Upward.of(task.neighbours))
    size, tails, heads, first = len(task.nodes), up.tails, up.heads, up.first
    counts = np.zeros(size, np.int64)
    begin = 0
    while begin < len(heads):
        if task.deadline.passed():
            task.out_of_time(0)
            return None
        before = int(up.total[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(up.total, before + _BLOCK, side="right")))
        widths, total = up.widths[begin:end], up.total[begin:end]
        owner = np.repeat(np.arange(begin, end, dtype=np.int32), widths)
        third = np.repeat(first.take(heads[begin:end]) - (total - widths), widths)
        third += np.arange(before, before + len(owner))
        third = heads.take(third)
        wanted = (tails[begin:end] * size).take(owner - begin)
        wanted += third
        closed = up.pairs.among(wanted)
        owner = owner.take(closed)
        for corner in (tails.take(owner), heads.take(owner), third.take(closed)):
            counts += np.bincount(corner, minlength=size)
        begin = end
    return counts


@frozen(eq=False)
class _Upward:
    """Each edge between different nodes once, from its node of lower degree, in ascending order of ``tails * size + heads``.

    The edges that leave node i are those from ``first[i]`` to ``first[i + 1]``. ``widths`` has, for each edge, the number of
    edges that leave its head; ``total`` has the running sums of ``widths``.
    """

    tails: Array
    heads: Array
    first: Array
    widths: Array
    total: Array
    pairs: KeySet

    @classmethod
    def of(cls, near: Adjacency) -> "_Upward":
        """Direct the edges of a graph; ``near`` has the neighbours of each node, ascending."""
        degrees = np.diff(near.first)
        size = len(degrees)
        tails = np.repeat(np.arange(size), degrees)
        rank = np.empty(size, np.int64)
        rank[np.lexsort((np.arange(size), degrees))] = np.arange(size)
        up = np.flatnonzero(rank[tails] < rank[near.heads])
        tails, heads = tails.take(up), near.heads.take(up).astype(np.int64)
        first = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(tails, minlength=size), out=first[1:])
        widths = first[heads + 1] - first[heads]
        return cls(tails, heads, first, widths, np.cumsum(widths), KeySet.of(tails * size + heads))


def core_number(task: MeasuredGraph) -> Values:
    """Return the core number of each node: the largest k for which a k-core contains the node (Batagelj, Zaversnik 2003)."""
    size = len(task.nodes)
    task.say_simple(loops=False)
    if task.directed:
        out = task.out
        tails = np.repeat(np.arange(size, dtype=np.int64), np.diff(out.first))
        keep = tails != out.heads
        pairs = distinct(tails[keep] * size + out.heads[keep])
        ends = np.concatenate([pairs // size, pairs % size]), np.concatenate([pairs % size, pairs // size])
        order = np.argsort(ends[0], kind="stable")
        heads = ends[1][order]
        first = np.concatenate([[0], np.cumsum(np.bincount(ends[0], minlength=size))])
    else:
        first, heads = task.neighbours.first, task.neighbours.heads
    degrees = np.diff(first)
    core = np.zeros(size, np.int64)
    left = np.arange(size)
    alive = np.ones(size, np.bool_)
    level = 0
    while len(left):
        if task.deadline.passed():
            task.out_of_time(0)
            return {}
        level = max(level, int(degrees[left].min()))
        going = left[degrees[left] <= level]
        while len(going):
            core[going], alive[going] = level, False
            counts = degrees_of = first[going + 1] - first[going]
            owner = np.repeat(first[going] - (np.cumsum(counts) - counts), degrees_of)
            reached = heads[owner + np.arange(len(owner))]
            reached = reached[alive[reached]]
            near, lost = np.unique(reached, return_counts=True)
            degrees[near] -= lost
            going = near[degrees[near] <= level]
        left = left[alive[left]]
    return core.tolist()


def topological_generation(task: MeasuredGraph) -> Values:
    """Return the number of edges on the longest path that ends at each node. Raises ``AdapterError`` for a graph with a cycle."""
    out = task.out
    missing = np.diff(task.into.first)
    found = np.full(len(task.nodes), -1)
    going, level = np.flatnonzero(missing == 0), 0
    while len(going):
        if task.deadline.passed():
            raise Ended
        found[going] = level
        near, lost = np.unique(out.heads[out.expand(going)[1]], return_counts=True)
        missing[near] -= lost
        going, level = near[missing[near] == 0], level + 1
    if (found < 0).any():
        raise AdapterError(
            "topological_generation needs a graph without cycles; this graph has a cycle",
            hint="FIND cycles AS name finds its cycles; ON name measures a part of the graph",
        )
    return found.tolist()
