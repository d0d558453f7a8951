"""``MEASURE``: NetworkX's algorithms by name, called through NetworkX's dispatching functions, so that a backend can be used.

Results are deterministic: seeds are fixed, and groups are numbered by size. If an algorithm can't process a graph, the graph is
refused or adapted in the usual way (for example, parallel edges are merged); ``GraphResult.used`` names the adaptation.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from numbers import Real
from random import Random
from types import MappingProxyType
from typing import Any, TypeAlias

import networkx as nx
from attrs import define, field, frozen

from ...lang.diagnostic import nearest
from ..graph import DEFAULT_CAPS, AdapterError, Caps, GraphResult, NodeId
from .cancellable import Alarm, Ended, Late, watched
from .neighbourhood import resolved
from .rows import Deadline, node_id

# Betweenness is computed source by source, so that partial results can be used at the time limit.
# The algorithm is that of Brandes (2001), as in ``networkx.betweenness_centrality``, but on lists of integers.


class PathSums:
    """Number of shortest paths through each node, from the sources processed so far; ``processed`` is the number of these sources."""

    def __init__(self, graph: Any) -> None:
        import numpy as np

        self.nodes = list(graph)
        place = {node: at for at, node in enumerate(self.nodes)}
        self._next = [[place[other] for other in graph.adj[node]] for node in self.nodes]
        self._directed = bool(graph.is_directed())
        self._state: tuple[int, Any] = (0, np.zeros(len(self.nodes)))

    @property
    def processed(self) -> int:
        """Number of sources processed."""
        return self._state[0]

    def add(self, source: int) -> None:
        """Add the shortest paths from one node. After an interruption, either all or none of these paths are counted."""
        import numpy as np

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


_STEPS_A_SECOND = 1_000_000
"""Approximate number of edges that a Python search traverses per second; used to decide whether betweenness is estimated."""

_LOUVAIN_STEPS_A_SECOND = 20_000
"""Approximate number of nodes and edge ends that louvain processes per second, over all its rounds."""

_GRACE = 0.25
"""Seconds after the time limit at which an algorithm is interrupted; algorithms that check the clock have ended by then."""

_SEED = 0


Values: TypeAlias = Mapping[Any, Any]


@define
class _Task:
    """The input of an algorithm, and the notes that it makes while it runs. ``nodes``: the nodes whose values are wanted."""

    graph: Any
    nodes: list[Any]
    whole: bool
    deadline: Deadline
    seconds: float
    notes: list[str] = field(factory=list)
    caps_hit: list[str] = field(factory=list)
    partial: Callable[[], Values] | None = None
    """Returns the partial result at the time limit; None if a partial result is of no use."""

    def simple(self, *, directed: bool = True, loops: bool = True, rows: bool = False) -> Any:
        """Return the graph in the form that algorithms need: without attributes, parallel edges merged, interruptible.

        ``rows``: see ``watched``.
        """
        return watched(self._simple(directed, loops), self.deadline.ended, rows=rows)

    def _simple(self, directed: bool, loops: bool) -> Any:
        graph = self.graph
        undirect = graph.is_directed() and not directed
        drop = not loops and any(True for _ in islice(nx.selfloop_edges(graph), 1))
        if not (graph.is_multigraph() or undirect or drop):
            return graph
        if graph.is_multigraph():
            self.notes.append("parallel edges merged")
        if undirect:
            self.notes.append("edges taken as undirected")
        if drop:
            self.notes.append("loops omitted")
        made: Any = nx.DiGraph() if graph.is_directed() and directed else nx.Graph()
        made.add_nodes_from(graph)
        made.add_edges_from((s, t) for s, t in graph.edges() if loops or s != t)
        return made

    def weight(self) -> str | None:
        """Return "weight" if the weight of every edge that has one is a finite number of at least 0, else None."""
        seen = False
        for _, _, value in self.graph.edges(data="weight"):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < math.inf:
                self.notes.append("unweighted: a weight is not a number of at least 0")
                return None
            seen = True
        self.notes.append("weighted" if seen else "unweighted")
        return "weight" if seen else None


def measure(
    graph: Any, algorithm: str, among: Sequence[NodeId] | None = None, *, caps: Caps = DEFAULT_CAPS
) -> GraphResult:
    """Return ``{"id", algorithm: value}`` for each node, or for each of ``among`` in that order.

    ``Stoppable`` caps can cancel the computation. The whole graph is always measured; ``among`` selects the nodes shown. Counts and
    groups are integers, other values floats. Values not computed within the time limit are omitted; betweenness is estimated from
    the shortest paths from sampled nodes. In both cases ``caps_hit`` contains ``timeout_s``. Raises ``AdapterError``, also if the
    time limit left no result.
    """
    name = algorithm.lower()
    if (known := MEASURES.get(name)) is None:
        near = nearest(name, MEASURES)
        raise AdapterError(
            f"unknown algorithm {algorithm[:60]!r}",
            hint=f"did you mean {near}?" if near else f"known: {', '.join(MEASURES)}",
        )
    if known.directed and not graph.is_directed():
        raise AdapterError(f"{name} needs a directed graph; this one is undirected", hint=known.instead)
    nodes = list(graph) if among is None else resolved(graph, among)
    capped = len(nodes) > caps.max_results
    task = _Task(graph, nodes[: caps.max_results], among is None, Deadline.of(caps), caps.timeout_s)
    try:
        values = (
            Alarm[Values](caps.timeout_s + _GRACE, task.deadline.ended).run(lambda: known.compute(task))
            if task.nodes
            else {}
        )
    except Late:
        values = _done_in_time(task, name)
    except (nx.NetworkXException, ArithmeticError, ImportError) as error:
        raise AdapterError(f"{name} can't be computed on this graph: {str(error)[:200]}") from None
    items = [{"id": node_id(node), name: values[node]} for node in task.nodes if node in values]
    hit = (*(["max_results"] if capped else []), *task.caps_hit)
    return GraphResult(items, hit, ", ".join([name, *task.notes]), graph.number_of_nodes())


def _done_in_time(task: _Task, name: str) -> Values:
    """Return an algorithm's partial result at the time limit. Raises ``AdapterError`` if it has no partial result."""
    values = task.partial() if task.partial is not None else {}
    if not values:
        raise AdapterError(
            f"{name} did not finish within {task.seconds:g} s on {task.graph.number_of_nodes():,} nodes and "
            f"{task.graph.number_of_edges():,} edges",
            hint=f"SET adapter.caps.timeout_s = {math.ceil(task.seconds * 10)}, or measure a part of the graph",
        )
    if "timeout_s" not in task.caps_hit:
        task.caps_hit.append("timeout_s")
    return values


# -- algorithms ---------------------------------------------------------------------------------------------------------


def _pagerank(task: _Task) -> Values:
    weight = task.weight()
    if nx.config.backend_priority.algos:
        ranks: Values = nx.pagerank(task.graph, weight=weight)
        return ranks
    return power_iteration(task.graph, weight)


def power_iteration(graph: Any, weight: str | None, *, damping: float = 0.85, rounds: int = 1000) -> dict[Any, float]:
    """Return PageRank as ``networkx.pagerank`` does, using only numpy (NetworkX needs scipy). Values sum to 1.

    Stops at a total change of 1e-6 per node, like NetworkX. Source: Page, Brin, Motwani, Winograd 1999.
    """
    import numpy as np

    nodes = list(graph)
    place = {node: at for at, node in enumerate(nodes)}
    count, edges = len(nodes), graph.number_of_edges()
    both = [
        (place[s], place[t], 1.0 if weight is None or w is None else float(w))
        for s, t, w in graph.edges(data=weight if weight is not None else "weight")
    ]
    table = np.array(both, dtype=float).reshape(edges, 3)
    if not graph.is_directed():
        turned = table[table[:, 0] != table[:, 1]][:, [1, 0, 2]]
        table = np.concatenate([table, turned])
    source, target, weights = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2]
    out = np.bincount(source, weights, count)
    share = np.divide(weights, out[source], out=np.zeros_like(weights), where=out[source] > 0)
    dangling = out == 0
    rank = np.full(count, 1.0 / count)
    for _ in range(rounds):
        flow = np.bincount(target, rank[source] * share, count)
        new = damping * (flow + rank[dangling].sum() / count) + (1 - damping) / count
        settled = float(np.abs(new - rank).sum()) < count * 1e-6
        rank = new
        if settled:
            break
    return dict(zip(nodes, rank.tolist(), strict=True))


def _betweenness(task: _Task) -> Values:
    graph = task.simple()
    if nx.config.backend_priority.algos:
        values: Values = nx.betweenness_centrality(graph)
        return values
    sums = PathSums(graph)
    count, cost = len(sums.nodes), graph.number_of_nodes() + 2 * graph.number_of_edges()
    enough = int(task.seconds * _STEPS_A_SECOND / max(1, cost))
    sources = list(range(count))
    if enough < 4 * count:  # the time may not suffice; if so, the first sources represent all nodes
        sources = Random(_SEED).sample(sources, max(1, min(enough, count)))  # noqa: S311 - a sample, no secret

    def estimated() -> Values:
        if sums.processed < count:
            task.notes.append(f"estimated from {sums.processed:,} sampled nodes (seed {_SEED})")
            task.caps_hit.append("timeout_s")
        return sums.values()

    task.partial = estimated
    for source in sources:
        if task.deadline.ended():
            raise Ended
        sums.add(source)
    return estimated()


def _closeness(task: _Task) -> Values:
    graph = task.simple()
    towards = graph.reverse(copy=False) if graph.is_directed() else graph
    count = graph.number_of_nodes()
    values: dict[Any, float] = {}
    task.partial = lambda: _so_far(task, values)
    for node in task.nodes:
        if task.deadline.passed():
            _out_of_time(task, len(values))
            break
        distances = nx.single_source_shortest_path_length(towards, node)
        total, reached = sum(distances.values()), len(distances) - 1
        values[node] = reached / total * reached / (count - 1) if total > 0 and count > 1 else 0.0
    return values


def _eigenvector(task: _Task) -> Values:
    graph = task.simple(rows=True)
    steps = graph.number_of_nodes() + 2 * graph.number_of_edges()
    rounds = max(20, min(1000, int(task.seconds * _STEPS_A_SECOND / steps)))
    try:
        values: Values = nx.eigenvector_centrality(graph, max_iter=rounds)
    except nx.PowerIterationFailedConvergence:
        hint = "use pagerank, which always converges"
        if rounds < 1000:
            hint += ", or SET adapter.caps.timeout_s higher"
        raise AdapterError(f"eigenvector did not converge in {rounds:,} rounds", hint=hint) from None
    return values


def _clustering(task: _Task) -> Values:
    graph = task.simple()
    values = _by_pieces(task, lambda nodes: nx.clustering(graph, nodes))
    return {node: float(value) for node, value in values.items()}


def _triangles(task: _Task) -> Values:
    graph = task.simple(directed=False)
    return _by_pieces(task, lambda nodes: nx.triangles(graph, nodes))


def _by_pieces(task: _Task, compute: Callable[[list[Any]], Values]) -> Values:
    values: dict[Any, Any] = {}
    task.partial = lambda: _so_far(task, values)
    nodes = iter(task.nodes)
    while piece := list(islice(nodes, 256)):
        if task.deadline.passed():
            _out_of_time(task, len(values))
            break
        values.update(compute(piece))
    return values


def _so_far(task: _Task, values: Values) -> Values:
    if values:
        _out_of_time(task, len(values))
    return values


def _out_of_time(task: _Task, done: int) -> None:
    task.notes.append(f"only {done:,} of {len(task.nodes):,} nodes within the time limit")
    task.caps_hit.append("timeout_s")


def _components(task: _Task) -> Values:
    if not task.graph.is_directed():
        return _numbered(task.graph, nx.connected_components(task.graph))
    task.notes.append("edges taken as undirected")
    return _numbered(task.graph, nx.weakly_connected_components(task.graph))


def _communities(task: _Task) -> Values:
    weight = task.weight()
    # The nodes are integers: louvain iterates over sets, whose order must not depend on this process's string hashing.
    nodes = list(task.graph)
    levels: list[Iterable[Collection[int]]] = []

    def coarse() -> Values:
        task.notes.append("refinement incomplete")
        return _numbered(task.graph, ([nodes[at] for at in group] for group in levels[-1])) if levels else {}

    task.partial = coarse
    place = {node: at for at, node in enumerate(nodes)}
    made: Any = nx.Graph()
    made.add_nodes_from(range(len(nodes)))
    for s, t, w in task.graph.edges(data=weight if weight is not None else "weight"):
        source, target, add = place[s], place[t], 1.0 if weight is None or w is None else float(w)
        if add > 0:
            sum_ = made.adj[source].get(target, {}).get("weight", 0.0) + add
            made.add_edge(source, target, weight=sum_)
    if task.graph.is_directed():
        # NetworkX's louvain may not terminate on directed graphs.
        task.notes.append("edges taken as undirected")
    if not made.number_of_edges():
        return _numbered(task.graph, ({node} for node in nodes))
    return _numbered(
        task.graph,
        (
            [nodes[at] for at in group]
            for group in _partition(task, watched(made, task.deadline.ended, rows=True), levels)
        ),
    )


def _partition(task: _Task, graph: Any, levels: list[Iterable[Collection[int]]]) -> Iterable[Collection[int]]:
    if task.seconds * _LOUVAIN_STEPS_A_SECOND < graph.number_of_nodes() + 2 * graph.number_of_edges():
        task.notes.append(f"by label propagation, as louvain would take too long (seed {_SEED})")
        task.caps_hit.append("timeout_s")
        quick: Iterable[Collection[int]] = nx.community.fast_label_propagation_communities(
            graph, weight="weight", seed=_SEED
        )
        return quick
    task.notes.append(f"by louvain (seed {_SEED})")
    found: Iterable[Collection[int]] = []
    for level in nx.community.louvain_partitions(graph, seed=_SEED):
        found = level
        levels.append(level)
        if task.deadline.passed():
            task.notes.append("refinement incomplete")
            task.caps_hit.append("timeout_s")
            break
    return found


def _numbered(graph: Any, groups: Iterable[Collection[Any]]) -> Values:
    """Return each node's group number. Group 0 is the largest; groups of one size are ordered by the node added first."""
    place = {node: at for at, node in enumerate(graph)}
    ranked = sorted((-len(group), min(place[node] for node in group), list(group)) for group in groups)
    return {node: number for number, (_, _, group) in enumerate(ranked) for node in group}


@frozen
class Measure:
    """An algorithm: its function, whether it needs a directed graph, and its alternative names."""

    compute: Callable[[_Task], Values]
    directed: bool = False
    instead: str = ""


MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "pagerank": Measure(_pagerank),
        "degree": Measure(lambda task: dict(task.graph.degree(task.nodes))),
        "in_degree": Measure(lambda task: dict(task.graph.in_degree(task.nodes)), directed=True, instead="use degree"),
        "out_degree": Measure(
            lambda task: dict(task.graph.out_degree(task.nodes)), directed=True, instead="use degree"
        ),
        "betweenness": Measure(_betweenness),
        "closeness": Measure(_closeness),
        "eigenvector": Measure(_eigenvector),
        "clustering": Measure(_clustering),
        "triangles": Measure(_triangles),
        "core_number": Measure(lambda task: nx.core_number(task.simple(loops=False))),
        "components": Measure(_components),
        "strong_components": Measure(
            lambda task: _numbered(task.graph, nx.strongly_connected_components(task.graph)),
            directed=True,
            instead="use components",
        ),
        "communities": Measure(_communities),
    }
)
"""Algorithms by name, for ``GraphAdapter.measures``."""
