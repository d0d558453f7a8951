"""Cheapest paths, increasing paths and cycles in plain Python, from NetworkX's enumerations and sorted as the reference says."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import networkx as nx
from knotwork.lang.evaluate.conditions.interpreter import is_increasing

from support.graph_oracle import edges_of

__all__ = ["all_cycles", "ranked_paths"]


def ranked_paths(
    graph: Any,
    starts: Sequence[Any],
    ends: Sequence[Any],
    *,
    count: int | None = None,
    cost: str | None = None,
    longest: int | None = None,
    increasing: str | None = None,
    direction: str = "out",
    limit: int | None = None,
    accepts: Callable[[list[Any], list[Any]], bool] | None = None,
) -> list[tuple[list[Any], Any]]:
    """Return ``(nodes, cost)`` of the cheapest simple paths of each pair; the cost is the length without ``cost``.

    Only paths that ``accepts`` (nodes, attributes of the edges) count.
    """
    edges = edges_of(graph)
    steps: Any = nx.MultiDiGraph()
    steps.add_nodes_from(graph)
    for at, edge in enumerate(edges):
        source, target = edge[:2]
        if cost is not None and graph.edges[edge].get(cost) is None:
            continue
        if not graph.is_directed() or direction in ("out", "both"):
            steps.add_edge(source, target, key=at)
        if source != target and (not graph.is_directed() or direction in ("in", "both")):
            steps.add_edge(target, source, key=at)
    found = []
    for number, start in enumerate(starts):
        for end in ends:
            paths = []
            for path in nx.all_simple_edge_paths(steps, start, end) if start != end else ():
                used = [step[2] for step in path]
                values = [graph.edges[edges[at]].get(increasing) for at in used] if increasing else []
                if not used or (longest is not None and len(used) > longest) or not is_increasing(values):
                    continue
                total = sum(Fraction(graph.edges[edges[at]][cost]) for at in used) if cost else Fraction(len(used))
                nodes = [start, *(step[1] for step in path)]
                if accepts is None or accepts(nodes, [graph.edges[edges[at]] for at in used]):
                    paths.append((total, len(used), number, used, nodes))
            paths.sort(key=lambda each: each[:4])
            found += [each for each in paths if each[0] == paths[0][0]] if count is None else paths[:count]
    found.sort(key=lambda each: each[:4])
    return [(each[4], float(each[0])) for each in found[:limit]]


def all_cycles(
    graph: Any, longest: int, *, only: Any = None, increasing: str | None = None, limit: int | None = None
) -> list[list[Any]]:
    """Return the nodes of the simple cycles whose edges (by attributes) satisfy ``only``, as the reference orders them."""
    place = {node: at for at, node in enumerate(graph)}
    edges = edges_of(graph)
    simple: Any = nx.DiGraph() if graph.is_directed() else nx.Graph()
    simple.add_nodes_from(graph)
    simple.add_edges_from(edge[:2] for edge in edges)
    found = []
    for cycle in nx.simple_cycles(simple, length_bound=longest):
        ways = [cycle[at:] + cycle[:at] for at in range(len(cycle))]
        if not graph.is_directed() and len(cycle) > 2:
            ways += [[way[0], *way[:0:-1]] for way in ways]
        forms: dict[frozenset[int], list[Any]] = {}
        for way in ways:
            pairs = list(zip(way, way[1:] + way[:1], strict=True))
            between = [
                [at for at, edge in enumerate(edges) if edge[:2] == pair
                 or (not graph.is_directed() and edge[:2] == pair[::-1])]
                for pair in pairs
            ]  # fmt: skip
            for used in product(*between):
                data = [graph.edges[edges[at]] for at in used]
                if only is not None and not all(map(only, data)):
                    continue
                if increasing is not None and not is_increasing([each.get(increasing) for each in data]):
                    continue
                forms.setdefault(frozenset(used), []).append((way, used))
        for ways_of_one in forms.values():
            way, used = min(ways_of_one, key=lambda form: [place[node] for node in form[0]])
            found.append((len(way), place[way[0]], used, [*way, way[0]]))
    found.sort(key=lambda each: each[:3])
    return [each[3] for each in found[:limit]]
