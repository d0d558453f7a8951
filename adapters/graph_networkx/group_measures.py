"""Measures of a graph's structure: components, communities, bridges, articulation points, and a summary of the graph.

Groups are numbered by size; groups of equal size are in the order of their first nodes in the graph.
"""

import math
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import networkx as nx
import numpy as np

from ..graph import AdapterError
from .cancellable import Ended, watched
from .measured_graph import Array, MeasuredGraph, Values
from .node_measures import triangle_counts
from .tables import Adjacency, distinct

_IGRAPH_MOST, _IGRAPH_STEPS_A_SECOND = 120_000, 60_000
"""Limits of igraph's louvain: the maximum number of nodes and edge ends, and how many of them it processes per second.

The speed is that on random graphs, the worst case. igraph can't be interrupted, and it takes minutes on random graphs of five
times this size.
"""
_SEED = 0
_WAVES = 64
"""Maximum number of breadth-first steps. Nodes that are not reached get labels in a logarithmic number of rounds."""


def components(task: MeasuredGraph) -> Values:
    """Return, for each node, the number that identifies its component. The direction of edges is ignored."""
    if task.directed:
        task.notes.append("direction of edges ignored")
    return _numbered_labels(component_labels(task.either))


def component_labels(adjacency: Adjacency) -> Array:
    """Return, for each node, the smallest position of a node in its component.

    Most graphs have one large component, which is found breadth first. The other nodes are labelled in rounds. In each round, a
    node first gets the smallest label among its own and its neighbours'. A label is the position of a node. The label of each
    node is then replaced by the label of the node at that position, until no label changes (Shiloach and Vishkin 1982).
    """
    size = len(adjacency.first) - 1
    labels = np.arange(size)
    if not len(adjacency.heads):
        return labels
    near = _wave(adjacency, int(np.diff(adjacency.first).argmax()))
    labels[near] = int(near.min())
    inside = np.zeros(size, np.bool_)
    inside[near] = True
    edge = np.flatnonzero(~inside[adjacency.heads])  # each edge is listed at both of its ends
    tails = np.searchsorted(adjacency.first, edge, side="right") - 1
    heads = adjacency.heads[edge]
    while len(edge):
        least = np.minimum(labels[tails], labels[heads])
        np.minimum.at(labels, labels[heads], least)
        np.minimum.at(labels, labels[tails], least)
        while True:
            jumped = labels[labels]
            if (jumped == labels).all():
                break
            labels = jumped
        open_ = labels[tails] != labels[heads]
        edge, tails, heads = edge[open_], tails[open_], heads[open_]
    return labels


def _wave(adjacency: Adjacency, start: int) -> Array:
    """Return the nodes that are reached from ``start`` in at most ``_WAVES`` steps."""
    seen = np.zeros(len(adjacency.first) - 1, np.bool_)
    seen[start] = True
    going = np.array([start])
    for _ in range(_WAVES):
        heads = adjacency.heads[adjacency.expand(going)[1]]
        heads = heads[~seen[heads]]
        if not len(heads):
            break
        seen[heads] = True
        going = distinct(heads) if len(heads) < len(seen) // 8 else _new(seen, heads)
    return np.flatnonzero(seen)


def _new(seen: Array, heads: Array) -> Array:
    """Return the distinct ``heads``. If there are many, this is faster than sorting."""
    mark = np.zeros(len(seen), np.bool_)
    mark[heads] = True
    return np.flatnonzero(mark)


def _numbered_labels(labels: Array) -> list[int]:
    """Return the group number of each node. The label of a node is the smallest position in its group."""
    counts = np.bincount(labels, minlength=len(labels))
    roots = np.flatnonzero(counts)
    order = np.lexsort((roots, -counts[roots]))
    number = np.empty(len(labels), np.int64)
    number[roots[order]] = np.arange(len(roots))
    return number[labels].tolist()  # type: ignore[no-any-return]


def numbered(graph: Any, groups: Iterable[Collection[Any]]) -> Mapping[Any, int]:
    """Map each node to its group number."""
    place = {node: at for at, node in enumerate(graph)}
    ranked = sorted((-len(group), min(place[node] for node in group), list(group)) for group in groups)
    return {node: number for number, (_, _, group) in enumerate(ranked) for node in group}


def strong_components(task: MeasuredGraph) -> Values:
    """Return, for each node, the number that identifies its strongly connected component."""
    if has_igraph():
        return _numbered_members(igraph_of(task, directed=True).connected_components(mode="strong").membership)
    return numbered(task.graph, nx.strongly_connected_components(task.graph))


# igraph (the extra ``fast``) computes leiden, and the algorithms whose results are equal to NetworkX's.


def has_igraph() -> bool:
    """Return whether igraph is installed."""
    return find_spec("igraph") is not None


def igraph_of(task: MeasuredGraph, *, directed: bool) -> Any:
    """Return the graph as an igraph graph, with its edges in the graph's order; it is built once."""

    def make() -> Any:
        import igraph

        table = task.kept.edges(task.graph)
        ends = list(zip(table.sources.tolist(), table.targets.tolist(), strict=True))
        return igraph.Graph(len(task.nodes), ends, directed=directed)

    return task.kept.part(("igraph", directed), make)


# Communities


def communities(task: MeasuredGraph) -> Values:
    """Return, for each node, the number that identifies its community."""
    # The nodes are integers: louvain iterates over sets, whose order must not depend on this process's string hashing.
    nodes = task.nodes
    levels: list[Iterable[Collection[int]]] = []

    def coarse() -> Values:
        task.limited_by_time("the refinement of the groups is incomplete")
        return _named(task, levels[-1]) if levels else {}

    task.partial = coarse
    if task.directed:
        # NetworkX's louvain may not terminate on directed graphs.
        task.notes.append("direction of edges ignored")
    links = _summed(task)
    if not links:
        return numbered(task.graph, ({node} for node in nodes))
    method = task.settings["method"]
    if method == "leiden":
        return _leiden(task, links)
    steps = len(nodes) + 2 * len(links)
    if method == "louvain" and has_igraph() and steps <= min(_IGRAPH_MOST, task.seconds * _IGRAPH_STEPS_A_SECOND):
        return _multilevel(task, links)
    made: Any = nx.Graph()
    made.add_nodes_from(range(len(nodes)))
    made.add_weighted_edges_from(links)
    if method == "label_propagation":
        task.notes.append(f"by label propagation (seed {_SEED})")
        return _named(task, _labels_spread(task, made))
    return _named(task, _partition(task, made, levels))


def _named(task: MeasuredGraph, groups: Iterable[Collection[int]]) -> Values:
    nodes = task.nodes
    return numbered(task.graph, ([nodes[at] for at in group] for group in groups))


def _summed(task: MeasuredGraph) -> list[tuple[int, int, float]]:
    """Return the pairs of adjacent nodes as positions, in the order of their first edges, with the sum of the weights of their edges.

    The direction of edges is ignored. Pairs without a weight above 0 are left out.
    """
    table = task.kept.edges(task.graph)
    weights = np.ones(len(table)) if task.weights is None else task.weights
    used = weights > 0 if task.used is None else task.used & (weights > 0)
    sources, targets, weights = (array[used].astype(kind) for array, kind in (
        (table.sources, np.int64), (table.targets, np.int64), (weights, np.float64)
    ))  # fmt: skip
    pairs = np.minimum(sources, targets) * len(task.nodes) + np.maximum(sources, targets)
    _, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
    sums = np.bincount(inverse, weights, len(first))
    order = np.argsort(first)
    first = first[order]
    return list(zip(sources[first].tolist(), targets[first].tolist(), sums[order].tolist(), strict=True))


def _labels_spread(task: MeasuredGraph, graph: Any) -> Iterable[Collection[int]]:
    found: Iterable[Collection[int]] = nx.community.fast_label_propagation_communities(
        watched(graph, task.deadline.ended, rows=True), weight="weight", seed=_SEED
    )
    return found


def _partition(task: MeasuredGraph, graph: Any, levels: list[Iterable[Collection[int]]]) -> Iterable[Collection[int]]:
    """Return the communities that louvain finds.

    If louvain finds no level in half of the time, label propagation, which is faster, has the other half.
    """
    half, resolution = task.deadline.half(), float(task.settings["resolution"])
    graph_for_half = watched(graph, lambda: half.ended() or (not levels and half.passed()), rows=True)
    try:
        for level in nx.community.louvain_partitions(graph_for_half, seed=_SEED, resolution=resolution):
            levels.append(level)
            if task.deadline.passed():
                task.limited_by_time("the refinement of the groups is incomplete")
                break
    except Ended:
        if half.ended():
            raise
        task.limited_by_time(f"by label propagation (seed {_SEED}): louvain found no groups in half of the time limit")
        return _labels_spread(task, graph)
    task.notes.append(f"by louvain (seed {_SEED})")
    return levels[-1]


def _multilevel(task: MeasuredGraph, links: Sequence[tuple[int, int, float]]) -> Values:
    """Return the communities that igraph's louvain finds. It is about twenty times as fast as NetworkX's louvain."""
    graph, weights = _weighted(task, links)
    task.notes.append(f"by louvain of igraph (seed {_SEED})")
    with _seeded():
        found = graph.community_multilevel(weights=weights, resolution=float(task.settings["resolution"]))
    return _numbered_members(found.membership)


def _weighted(task: MeasuredGraph, links: Sequence[tuple[int, int, float]]) -> tuple[Any, list[float]]:
    """Return an igraph graph with the pairs of ``links`` as edges, and the weights of the edges."""
    import igraph

    return igraph.Graph(len(task.nodes), [link[:2] for link in links]), [link[2] for link in links]


def _numbered_members(membership: Sequence[int]) -> list[int]:
    """Return the group number of each node. ``membership`` has, for each node, an arbitrary number of its group."""
    groups = np.array(membership, np.int64)
    first = np.full(int(groups.max()) + 1, len(groups))
    np.minimum.at(first, groups, np.arange(len(groups)))
    return _numbered_labels(first[groups])


@contextmanager
def _seeded() -> Iterator[None]:
    """Let igraph draw the same random numbers each time."""
    import igraph

    igraph.set_random_number_generator(random.Random(_SEED))  # noqa: S311 - repeatable, no secret
    try:
        yield
    finally:
        igraph.set_random_number_generator(random)


def _leiden(task: MeasuredGraph, links: Sequence[tuple[int, int, float]]) -> Values:
    """Return the communities that igraph's leiden finds. Raises ``AdapterError`` without igraph."""
    if not has_igraph():
        raise AdapterError(
            "leiden needs igraph, which is not installed", hint='pip install "knotwork[fast]", or use communities'
        )
    graph, weights = _weighted(task, links)
    task.notes.append(f"by leiden (seed {_SEED})")
    membership: Sequence[int] = ()
    quality = -math.inf

    def unfinished() -> Values:
        task.limited_by_time("the refinement of the groups is incomplete")
        return _numbered_members(membership) if membership else {}

    task.partial = unfinished
    with _seeded():
        while True:  # igraph can't be interrupted, so that the time limit is checked after each iteration
            found = graph.community_leiden(
                objective_function="modularity", weights=weights, resolution=float(task.settings["resolution"]),
                n_iterations=1, initial_membership=membership or None,
            )  # fmt: skip
            if found.quality <= quality:
                break
            membership, quality = found.membership, found.quality
            if task.deadline.passed():
                return unfinished()
    return _numbered_members(membership)


# Bridges, articulation points, and the summary of the graph in one row


def bridges(task: MeasuredGraph) -> dict[tuple[Any, Any], bool]:
    """Return, for each pair of adjacent nodes, whether only one edge joins them and removing it disconnects them."""
    if task.directed:
        task.notes.append("direction of edges ignored")
    table = task.kept.edges(task.graph)
    nodes = task.nodes
    if has_igraph():
        found = set(igraph_of(task, directed=False).bridges())
        cut = np.zeros(len(table), np.bool_)
        cut[list(found)] = True
    else:
        made: Any = nx.MultiGraph()
        made.add_nodes_from(range(len(nodes)))
        made.add_edges_from(zip(table.sources.tolist(), table.targets.tolist(), strict=True))
        ends = {frozenset(edge) for edge in nx.bridges(watched(made, task.deadline.ended))}
        pairs = zip(table.sources.tolist(), table.targets.tolist(), strict=True)
        cut = np.array([frozenset(pair) in ends for pair in pairs], np.bool_)
    result: dict[tuple[Any, Any], bool] = {}
    for s, t, is_cut in zip(table.sources.tolist(), table.targets.tolist(), cut.tolist(), strict=True):
        result[nodes[s], nodes[t]] = is_cut
    return result


def articulation(task: MeasuredGraph) -> Values:
    """Return, for each node, whether removing it disconnects its component."""
    cut = [False] * len(task.nodes)
    if has_igraph():
        task.say_simple(directed=False)
        found: Sequence[int] = igraph_of(task, directed=False).articulation_points()
    else:
        places = task.kept.nodes(task.graph).positions
        found = [places[node] for node in nx.articulation_points(task.simple(directed=False))]
    for at in found:
        cut[at] = True
    return cut


def summary(task: MeasuredGraph) -> dict[str, Any]:
    """Return one row for the entire graph. ``reciprocity`` is the share of edges whose reverse exists; null if undirected."""
    count, table = len(task.nodes), task.kept.edges(task.graph)
    number = len(table)
    sizes = np.bincount(component_labels(task.either), minlength=1) if count else np.zeros(1, np.int64)
    possible = count * (count - 1) / (1 if task.directed else 2)
    found = triangle_counts(task)
    degrees = np.diff(task.neighbours.first)
    wedges = int((degrees * (degrees - 1) // 2).sum())
    reciprocity = None
    if task.directed:
        other = table.sources != table.targets
        size = max(count, 1)
        pairs = distinct(table.sources[other].astype(np.int64) * size + table.targets[other])
        back = np.isin(pairs % size * size + pairs // size, pairs)
        reciprocity = float(np.count_nonzero(back) / len(pairs)) if len(pairs) else None
    return {
        "nodes": count,
        "edges": number,
        "density": number / possible if possible else 0.0,
        "components": int(np.count_nonzero(sizes)),
        "largest_component": int(sizes.max()),
        "transitivity": None if found is None else float(found.sum()) / wedges if wedges else 0.0,
        "reciprocity": reciprocity,
    }
