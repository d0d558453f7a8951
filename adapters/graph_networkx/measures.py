"""``MEASURE``: runs the algorithm with a given name and returns its rows.

The engine is numpy if there is a fast implementation, else NetworkX. Results are deterministic: seeds are fixed, and groups are
numbered by size. If an algorithm can't process a graph unchanged, the graph is refused or adapted (for example, parallel edges
are merged). ``GraphResult.used`` describes the adaptation.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import networkx as nx

from ...lang.catalogue.measures import MEASURES as SPECS
from ...lang.catalogue.measures import faults_of, meant_algorithm
from ...lang.trees.conditions import Value
from ..graph import DEFAULT_CAPS, AdapterError, Caps, GraphResult, Item, Links, NodeId
from . import group_measures as groups
from . import node_measures as nodes
from .cancellable import Alarm, Late
from .find import MISSING, find_node
from .measured_graph import MeasuredGraph, Values, graph_of, look
from .pair_measures import measured_pairs, positions_of_pairs
from .rows import Deadline, Items, node_id
from .tables import Computed, computed

_GRACE = 0.25
"""An algorithm is interrupted this many seconds after the time limit. Algorithms that check the clock end earlier."""

MEASURES: Mapping[str, Callable[[MeasuredGraph], Any]] = MappingProxyType(
    {
        "pagerank": nodes.pagerank,
        "degree": nodes.degree,
        "in_degree": nodes.in_degree,
        "out_degree": nodes.out_degree,
        "betweenness": nodes.betweenness,
        "closeness": nodes.closeness,
        "harmonic": nodes.harmonic,
        "eccentricity": nodes.eccentricity,
        "eigenvector": nodes.eigenvector,
        "clustering": nodes.clustering,
        "triangles": nodes.triangles,
        "core_number": nodes.core_number,
        "components": groups.components,
        "strong_components": groups.strong_components,
        "communities": groups.communities,
        "articulation": groups.articulation,
        "topological_generation": nodes.topological_generation,
        "hits": nodes.hits,
        "bridges": groups.bridges,
        "edge_betweenness": nodes.edge_betweenness,
        "jaccard": lambda task: {},
        "adamic_adar": lambda task: {},
        "common_neighbors": lambda task: {},
        "resource_allocation": lambda task: {},
        "summary": groups.summary,
    }
)
"""Maps the names in ``GraphAdapter.measures`` to the algorithms. ``pair_measures`` implements the pair algorithms."""


def measure(
    graph: Any,
    algorithm: str,
    among: Sequence[NodeId] | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    weight: Value | None = None,
    links: Links | None = None,
    pairs: Sequence[tuple[NodeId, NodeId]] | None = None,
    caps: Caps = DEFAULT_CAPS,
    strict: bool = False,
) -> GraphResult:
    """Return the rows of an algorithm; see ``GraphAdapter.measure``.

    If ``caps`` are ``Stoppable``, the caller can cancel the computation. The entire graph is always measured. With ``among``,
    the result has only the rows of these nodes, in that order, or of the edges between two of them. Counts and groups are
    integers, other values floats. Values not computed within the time limit are omitted; betweenness is then estimated from the
    shortest paths from the nodes that were processed, in random order. In both cases ``caps_hit`` contains ``timeout_s``.
    Raises ``UnusableValue``. Raises
    ``AdapterError``, for example if there is no result in time.
    """
    name = algorithm.lower()
    if (known := SPECS.get(name)) is None:
        meant = meant_algorithm(name)
        raise AdapterError(
            f"unknown algorithm {algorithm[:60]!r}",
            hint=f"did you mean {meant}?" if meant else f"the algorithms are {', '.join(SPECS)}",
        )
    if known.directed and not graph.is_directed():
        raise AdapterError(
            f"{name} needs a directed graph; this graph is undirected",
            hint=f"use {known.instead}" if known.instead else "",
        )
    given = settings or {}
    if fault := faults_of(
        name, given, weighted=weight is not None or (links is not None and links.weights is not None)
    ):
        raise AdapterError(fault[0], hint=fault[1])
    if given.get("method") == "leiden" and not groups.has_igraph():
        raise AdapterError(
            "leiden needs igraph, which is not installed", hint='pip install "knotwork[fast]", or use communities'
        )
    deadline = Deadline.of(caps)
    kept = computed(graph, strict)
    if links is not None:
        try:
            graph, kept = graph_of(links, graph.is_directed(), deadline), Computed()
            kept.edges(graph, lambda: look(deadline))
        except Late:
            raise _out_of_time(name, caps.timeout_s, len(links.nodes), len(links.edges)) from None
    chosen = {each: given.get(each, setting.default) for each, setting in known.settings.items()}
    wanted, unknown = _wanted(graph, kept, among)
    task = MeasuredGraph(graph, kept, wanted[: caps.max_results], chosen, deadline, caps.timeout_s)
    try:
        task.take_weight(name, weight, links)
    except Late:
        _done_in_time(task, name)

    if unknown:
        task.notes.append(f"{unknown:,} of {len(among or ()):,} ids without a node")
    given_pairs = None if pairs is None else positions_of_pairs(_finder(graph, kept), pairs)
    if given_pairs is not None and len(given_pairs) < len(pairs or ()):
        task.notes.append(f"{len(pairs or ()) - len(given_pairs):,} of {len(pairs or ()):,} pairs without two nodes")

    def of_pairs() -> Any:
        among_them = None if among is None else wanted
        return measured_pairs(task, name, given_pairs, among_them, caps.max_results + 1, caps.max_examined)

    compute = of_pairs if known.shape == "pairs" else lambda: MEASURES[name](task)
    values: Any = {}
    if len(task.nodes) and (wanted or known.shape != "nodes"):
        try:
            values = Alarm[Any](caps.timeout_s + _GRACE, deadline.ended).run(compute)
        except Late:
            values = _done_in_time(task, name)
        except (nx.NetworkXException, ArithmeticError, ImportError) as error:
            raise AdapterError(f"{name} can't be computed on this graph: {str(error)[:200]}") from None
    rows = _Rows(task, name, among is not None)
    items, capped = rows.of(known.shape, values, caps.max_results)
    capped = capped or (known.shape in ("nodes", "hits") and len(wanted) > caps.max_results)
    if deadline.hit and "timeout_s" not in task.caps_hit and known.shape == "pairs":
        task.caps_hit.append("timeout_s")
    hit = (*(["max_results"] if capped else []), *task.caps_hit)
    used = ", ".join([name, *dict.fromkeys(task.notes)])
    limits = tuple(dict.fromkeys(task.limits))
    return GraphResult(
        items, hit, used, len(task.nodes), notes=limits, unused_edges=task.unused, weight=task.weight
    )  # fmt: skip


def _wanted(graph: Any, kept: Computed, among: Sequence[NodeId] | None) -> tuple[Sequence[int], int]:
    """Return the positions of the wanted nodes, without duplicates, and the number of ids without a node."""
    if among is None:
        return range(graph.number_of_nodes()), 0
    find = _finder(graph, kept)
    found = [find(identifier) for identifier in among]
    return list(dict.fromkeys(at for at in found if at is not None)), sum(at is None for at in found)


def _finder(graph: Any, kept: Computed) -> Callable[[NodeId], int | None]:
    places = kept.nodes(graph).positions

    def place(identifier: NodeId) -> int | None:
        node = find_node(graph, kept, identifier)
        return None if node is MISSING else places[node]

    return place


def _done_in_time(task: MeasuredGraph, name: str) -> Values:
    """Return an algorithm's partial result at the time limit. Raises ``AdapterError`` if no partial result exists."""
    values = task.partial() if task.partial is not None else {}
    if not values:
        raise _out_of_time(name, task.seconds, task.graph.number_of_nodes(), task.graph.number_of_edges())
    return values


def _out_of_time(name: str, seconds: float, nodes: int, edges: int) -> AdapterError:
    return AdapterError(
        f"{name} did not finish within {seconds:g} s on {nodes:,} nodes and {edges:,} edges",
        hint=f"SET adapter.caps.timeout_s = {math.ceil(seconds * 10)}, or measure a part of the graph",
    )


class _Rows:
    """Converts the values of an algorithm to result rows."""

    def __init__(self, task: MeasuredGraph, name: str, chosen: bool) -> None:
        self._task = task
        self._name = name
        self._chosen = chosen

    def of(self, shape: str, values: Any, most: int) -> tuple[Sequence[Item], bool]:
        """Return at most ``most`` rows, and whether there are more."""
        if shape in ("nodes", "hits"):
            return self._of_nodes(shape, values), False
        if shape == "summary":
            return ([values] if values else []), False
        if shape == "edges":
            rows = self._of_edges(values)
        else:
            names = self._task.nodes
            rows = [self._row(names[source], names[target], value) for source, target, value in values]
        return rows[:most], len(rows) > most

    def _of_nodes(self, shape: str, values: Values) -> Sequence[Item]:
        name, names, wanted = self._name, self._task.nodes, self._task.wanted
        if isinstance(values, Mapping):
            found = [(names[at], values[names[at]]) for at in wanted if names[at] in values]
        elif isinstance(wanted, range) and len(wanted) == len(names):
            found = list(zip(names, values, strict=True))
        else:
            found = [(names[at], values[at]) for at in wanted]
        if shape == "hits":
            return Items(found, lambda row: {"id": node_id(row[0]), "hub": row[1][0], "authority": row[1][1]})
        return Items(found, lambda row: {"id": node_id(row[0]), name: row[1]})

    def _of_edges(self, values: Mapping[tuple[Any, Any], Any]) -> list[Item]:
        """Return a row for each pair of adjacent nodes, in the order and the direction of the graph's edges."""
        task, rows = self._task, dict[tuple[int, int], Item]()
        names, table = task.nodes, task.kept.edges(task.graph)
        inside = set(task.wanted) if self._chosen else None
        for source, target in zip(table.sources.tolist(), table.targets.tolist(), strict=True):
            if (source, target) in rows or (inside is not None and not (source in inside and target in inside)):
                continue
            ends = names[source], names[target]
            value = values.get(ends)
            if value is None and not task.directed:
                value = values.get((ends[1], ends[0]))
            if value is not None:
                rows[source, target] = self._row(*ends, value)
        return list(rows.values())

    def _row(self, source: Any, target: Any, value: Any) -> Item:
        return {"source": node_id(source), "target": node_id(target), self._name: value}
