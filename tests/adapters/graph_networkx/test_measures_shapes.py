"""MEASURE's rows, weights, settings and derived graphs: equal to NetworkX on every kind of graph, with and without igraph."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.graph import AdapterError, Caps, Links, UnusableValue
from knotwork.adapters.graph_networkx import group_measures
from knotwork.adapters.graph_networkx.measures import measure
from knotwork.adapters.graph_networkx.stale import StaleGraphWarning
from knotwork.lang.catalogue.measures import MEASURES, columns_of, faults_of, meant_algorithm
from knotwork.lang.trees.conditions import Constant, Field
from support.conditions import KINDS
from support.examples import many

WEIGHT = Field(("w",))


@st.composite
def weighted(draw: st.DrawFn) -> Any:
    """Graphs of the four kinds with weights ``w``, of which some are null; nodes are not in the order of their names."""
    graph = draw(st.sampled_from(KINDS))()
    ids = draw(st.permutations([f"n{number}" for number in range(draw(st.integers(1, 8)))]))
    graph.add_nodes_from(ids)
    acyclic = draw(st.booleans())
    for source, target in draw(st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), max_size=16)):
        if source < target or not acyclic:
            graph.add_edge(source, target)
    for *_, data in graph.edges(data=True):
        data["w"] = draw(st.sampled_from([1, 2, 3, 0.5, None]))
    return graph


def simple(graph: Any, merge: str = "", *, directed: bool = True, loops: bool = True) -> Any:
    """Return the graph without parallel edges; ``merge``: their weights are added ("sum"), or the least is taken."""
    made: Any = nx.DiGraph() if graph.is_directed() and directed else nx.Graph()
    made.add_nodes_from(graph)
    for source, target, data in graph.edges(data=True):
        if (merge and data["w"] is None) or not (loops or source != target):
            continue
        weight = data["w"] if merge else 1
        if merge and made.has_edge(source, target):
            known = made[source][target]["weight"]
            weight = known + weight if merge == "sum" else min(known, weight)
        made.add_edge(source, target, weight=weight)
    return made


def counted(graph: Any) -> Any:
    """Return the graph with the number of parallel edges as the weight of an edge."""
    made: Any = nx.DiGraph() if graph.is_directed() else nx.Graph()
    made.add_nodes_from(graph)
    for source, target in graph.edges():
        made.add_edge(source, target, weight=made.adj[source].get(target, {}).get("weight", 0) + 1)
    return made


def numbered(groups: Any, graph: Any) -> dict[Any, int]:
    place = {node: at for at, node in enumerate(graph)}
    ranked = sorted((-len(group), min(place[node] for node in group), list(group)) for group in groups)
    return {node: number for number, (_, _, group) in enumerate(ranked) for node in group}


def strengths(graph: Any, by: bool) -> Any:
    """Return the graph, or only its edges with a weight."""
    if not by:
        return graph
    made = type(graph)()
    made.add_nodes_from(graph)
    made.add_edges_from((s, t, data) for s, t, data in graph.edges(data=True) if data["w"] is not None)
    return made


def pagerank(graph: Any, by: bool) -> Any:
    from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python

    return _pagerank_python(simple(graph, "sum") if by else counted(graph), tol=1e-10, max_iter=3000)


def hubs(graph: Any, by: bool) -> Any:
    from networkx.algorithms.link_analysis.hits_alg import _hits_python

    return _hits_python(simple(graph, "sum") if by else counted(graph), max_iter=10_000, tol=1e-11)


def eccentricity(graph: Any, node: Any) -> float:
    return max(nx.single_source_dijkstra_path_length(graph, node).values())


ORACLE: dict[str, Any] = {
    "degree": lambda g, by: dict(strengths(g, by).degree(weight="w" if by else None)),
    "in_degree": lambda g, by: dict(strengths(g, by).in_degree(weight="w" if by else None)),
    "out_degree": lambda g, by: dict(strengths(g, by).out_degree(weight="w" if by else None)),
    "pagerank": pagerank,
    "betweenness": lambda g, by: nx.betweenness_centrality(simple(g, "min" * by), weight="weight" if by else None),
    "edge_betweenness": lambda g, by: nx.edge_betweenness_centrality(
        simple(g, "min" * by), weight="weight" if by else None
    ),
    "closeness": lambda g, by: nx.closeness_centrality(simple(g, "min" * by), distance="weight" if by else None),
    "harmonic": lambda g, by: nx.harmonic_centrality(simple(g, "min" * by), distance="weight" if by else None),
    "eccentricity": lambda g, by: {node: eccentricity(simple(g, "min" * by), node) for node in g},
    "clustering": lambda g, by: nx.clustering(simple(g)),
    "triangles": lambda g, by: nx.triangles(nx.Graph(g)),
    "core_number": lambda g, by: nx.core_number(simple(g, loops=False)),
    "components": lambda g, by: numbered(nx.connected_components(nx.Graph(g)), g),
    "strong_components": lambda g, by: numbered(nx.strongly_connected_components(g), g),
    "articulation": lambda g, by: {node: node in set(nx.articulation_points(nx.Graph(g))) for node in g},
    "topological_generation": lambda g, by: {
        node: number for number, nodes in enumerate(nx.topological_generations(g)) for node in nodes
    },
}


def bridges(graph: Any) -> dict[Any, bool]:
    made: Any = nx.MultiGraph()
    made.add_nodes_from(graph)
    made.add_edges_from(graph.edges())
    cut = {frozenset(edge) for edge in nx.bridges(made)}
    return {edge[:2]: frozenset(edge[:2]) in cut for edge in graph.edges}


PAIRS: dict[str, Any] = {
    "jaccard": nx.jaccard_coefficient,
    "adamic_adar": nx.adamic_adar_index,
    "resource_allocation": nx.resource_allocation_index,
    "common_neighbors": lambda g, pairs: [(s, t, len(list(nx.common_neighbors(g, s, t)))) for s, t in pairs],
}


def shown(items: Any, name: str) -> dict[Any, Any]:
    if items and "source" in items[0]:
        return {(item["source"], item["target"]): item[name] for item in items}
    return {item["id"]: item[name] for item in items}


def check_all(graph: Any) -> None:
    for name, spec in MEASURES.items():
        if spec.directed and not graph.is_directed():
            continue
        for by in (False, True) if spec.weight else (False,):
            if name == "topological_generation" and not nx.is_directed_acyclic_graph(graph):
                with pytest.raises(AdapterError, match="has a cycle"):
                    measure(graph, name)
                continue
            if name in ("communities", "hits", "eigenvector") or spec.shape in ("pairs", "summary"):
                continue
            found = shown(list(measure(graph, name, weight=WEIGHT if by else None).items), name)
            expected = bridges(graph) if name == "bridges" else ORACLE[name](graph, by)
            if name == "edge_betweenness":
                expected = {(ends if ends in found else ends[::-1]): value for ends, value in expected.items()}
            assert found == pytest.approx(expected, abs=1e-4), (name, by)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(weighted())
def test_every_measure_is_that_of_networkx(graph: Any) -> None:
    check_all(graph)


@pytest.mark.slow
@settings(max_examples=many(800), deadline=None)
@given(weighted())
def test_many_more_graphs(graph: Any) -> None:
    check_all(graph)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(weighted())
def test_a_result_does_not_depend_on_igraph(graph: Any) -> None:
    for name in ("strong_components", "bridges", "articulation"):
        if graph.is_directed() or not MEASURES[name].directed:
            found = []
            for there in (False, group_measures.has_igraph()):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(group_measures, "has_igraph", lambda there=there: there)
                    found.append(measure(graph, name))
            assert list(found[0].items) == list(found[1].items)
            assert found[0].used == found[1].used


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(weighted(), st.data())
def test_pairs_are_those_of_networkx(graph: Any, data: st.DataObject) -> None:
    plain = simple(graph, directed=False, loops=False)
    some = data.draw(st.lists(st.sampled_from(list(graph)), min_size=1, unique=True))
    drawn = st.tuples(st.sampled_from(list(graph)), st.sampled_from(list(graph)))
    pairs = data.draw(
        st.lists(drawn.filter(lambda pair: pair[0] != pair[1]) if len(graph) > 1 else st.nothing(), unique=True)
    )
    unlinked = [(s, t) for s, t in combinations(graph, 2) if t not in plain[s] and set(plain[s]) & set(plain[t])]
    for name, oracle in PAIRS.items():
        for found, expected in (
            (measure(graph, name), unlinked),
            (measure(graph, name, some), list(combinations(some, 2))),
            (measure(graph, name, pairs=pairs), pairs),
        ):
            assert list(shown(list(found.items), name)) == expected
            values = {(s, t): value for s, t, value in oracle(plain, expected)}
            assert shown(list(found.items), name) == pytest.approx(values)


def test_too_many_pairs_are_refused_with_their_number() -> None:
    few = Caps(max_examined=100)
    with pytest.raises(AdapterError, match="190 pairs of nodes have a common neighbour; at most 100 are examined"):
        measure(nx.star_graph(20), "jaccard", caps=few)
    with pytest.raises(AdapterError, match="210 pairs of 21 nodes; at most 100 are examined"):
        measure(nx.star_graph(20), "jaccard", list(range(21)), caps=few)
    found = measure(nx.star_graph(10), "jaccard", caps=Caps(max_results=5))
    assert (len(found.items), found.caps_hit) == (5, ("max_results",))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(weighted())
def test_the_summary_is_that_of_networkx(graph: Any) -> None:
    (row,) = measure(graph, "summary").items
    whole, one_way = nx.Graph(graph), simple(graph, loops=False)
    reciprocity = None
    if graph.is_directed() and one_way.number_of_edges():
        reciprocity = nx.overall_reciprocity(one_way)
    assert tuple(row) == columns_of("summary")
    assert row == pytest.approx(
        {
            "nodes": len(graph), "edges": graph.number_of_edges(), "density": nx.density(graph),
            "components": nx.number_connected_components(whole),
            "largest_component": max(map(len, nx.connected_components(whole))),
            "transitivity": nx.transitivity(simple(graph, directed=False, loops=False)), "reciprocity": reciprocity,
        }
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("by", [False, True])
@pytest.mark.parametrize("graph", [nx.les_miserables_graph(), nx.gnp_random_graph(30, 0.15, seed=2, directed=True)])
def test_hubs_and_authorities_are_those_of_networkx(graph: Any, by: bool) -> None:
    for number, (*_, data) in enumerate(graph.edges(data=True)):
        data["w"] = 1 + number % 3
    hub, authority = hubs(graph, by)
    found = measure(graph, "hits", weight=WEIGHT if by else None).items
    assert {item["id"]: item["hub"] for item in found} == pytest.approx(hub, abs=1e-6)
    assert {item["id"]: item["authority"] for item in found} == pytest.approx(authority, abs=1e-6)
    assert list(measure(nx.empty_graph(2), "hits").items) == [{"id": n, "hub": 0.0, "authority": 0.0} for n in (0, 1)]
    assert shown(measure(graph, "eigenvector", weight=WEIGHT).items, "eigenvector") == pytest.approx(
        nx.eigenvector_centrality(graph, max_iter=1000, weight="w"), abs=1e-6
    )


# -- settings, weights, derived graphs -----------------------------------------------------------------------------------


def test_settings() -> None:
    graph = nx.les_miserables_graph()
    ranks = shown(measure(graph, "pagerank", settings={"damping": 0.5}).items, "pagerank")
    from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python

    assert ranks == pytest.approx(_pagerank_python(graph, alpha=0.5, tol=1e-10, max_iter=1000), abs=1e-4)
    many = measure(graph, "communities", settings={"resolution": 3}).items
    few = measure(graph, "communities", settings={"resolution": 0.2}).items
    assert max(item["communities"] for item in many) > max(item["communities"] for item in few)
    assert (
        "by label propagation (seed 0)" in measure(graph, "communities", settings={"method": "label_propagation"}).used
    )


def test_leiden_is_refused_without_igraph_and_is_repeatable_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = nx.les_miserables_graph()
    if group_measures.has_igraph():
        found = measure(graph, "communities", settings={"method": "leiden"})
        assert found.items == measure(graph, "communities", settings={"method": "leiden"}).items
        groups: dict[int, set[Any]] = {}
        for item in found.items:
            groups.setdefault(item["communities"], set()).add(item["id"])
        assert nx.community.modularity(graph, groups.values()) > 0.55
        assert "by leiden (seed 0)" in found.used
    monkeypatch.setattr(group_measures, "has_igraph", lambda: False)
    with pytest.raises(AdapterError) as error:
        measure(graph, "communities", settings={"method": "leiden"})
    assert error.value.message == "leiden needs igraph, which is not installed"
    assert error.value.hint == 'pip install "knotwork[fast]", or use communities'


@pytest.mark.parametrize(
    ("algorithm", "given", "by", "message"),
    [
        ("pagerank", {"damping": 2}, False, "damping of pagerank takes a number from 0 to 1, not 2"),
        ("pagerank", {"dampin": 0.5}, False, "pagerank has no setting dampin"),
        ("communities", {"method": "infomap"}, False, 'method of communities takes "louvain" or "leiden"'),
        ("triangles", {}, True, "triangles takes no weight"),
        ("degree", {"damping": True}, False, "degree has no setting damping"),
    ],
)
def test_settings_and_weights_that_an_algorithm_does_not_take(
    algorithm: str, given: Mapping[str, Any], by: bool, message: str
) -> None:
    fault = faults_of(algorithm, given, weighted=by)
    assert fault is not None and fault[0].startswith(message)
    with pytest.raises(AdapterError, match=message):
        measure(nx.path_graph(3), algorithm, settings=given, weight=WEIGHT if by else None)


def test_weights() -> None:
    graph: Any = nx.DiGraph()
    graph.add_edge("a", "b", w=3, weight=1)
    graph.add_edge("b", "c", weight=2)
    found = measure(graph, "out_degree", weight=WEIGHT)
    assert shown(found.items, "out_degree") == {"a": 3.0, "b": 0.0, "c": 0.0}
    assert (found.unused_edges, found.used) == (1, "out_degree, weighted by w")
    plain = measure(graph, "pagerank", weight=Constant(1))
    assert plain.used == "pagerank, unweighted (BY 1)"
    graph.edges["b", "c"]["w"] = -1
    with pytest.warns(StaleGraphWarning), pytest.raises(UnusableValue, match="w of the edge from b to c is below 0"):
        measure(graph, "out_degree", weight=WEIGHT)


@pytest.mark.parametrize("name", ["betweenness", "edge_betweenness"])
def test_paths_along_edges_of_length_0_are_not_counted(name: str) -> None:
    graph: Any = nx.cycle_graph(3)
    nx.set_edge_attributes(graph, {(0, 1): 0, (0, 2): 0, (1, 2): 2}, "w")
    message = f"w is 0 on 2 of 3 edges \\(the first is the edge from 0 to 1\\); {name} needs distances above 0"
    with pytest.raises(UnusableValue, match=message):
        measure(graph, name, weight=WEIGHT)
    assert measure(graph, "closeness", weight=WEIGHT).items[0]["closeness"] == 0.0
    derived = Links([0, 1], [(0, 1)], [0.0])
    with pytest.raises(UnusableValue, match="the weight is 0 on 1 of 1 edges"):
        measure(graph, name, links=derived)


def test_a_derived_graph_is_measured_on_its_own() -> None:
    graph = nx.path_graph(4)
    links = Links(["x", "y", "z", 0], [("x", "y"), ("y", "z"), ("x", "y")], [1.0, 2.0, 3.0])
    found = measure(graph, "degree", links=links)
    assert shown(found.items, "degree") == {"x": 4.0, "y": 6.0, "z": 2.0, 0: 0.0}
    unweighted = Links(["x", "y", "z"], [("x", "y"), ("y", "z")])
    assert shown(measure(graph, "betweenness", ["y"], links=unweighted).items, "betweenness") == {"y": 1.0}
    assert [item["source"] for item in measure(graph, "bridges", links=unweighted).items] == ["x", "y"]


def test_the_names_of_other_tools() -> None:
    for name, meant in (
        ("louvain", 'communities(method = "louvain")'), ("k_core", "core_number"), ("hubs", "hits"),
        ("PageRank", "pagerank"), ("betweenness_centrality", "betweenness"), ("pagerang", "pagerank"), ("xyzzy", ""),
    ):  # fmt: skip
        assert meant_algorithm(name) == meant
    with pytest.raises(AdapterError) as error:
        measure(nx.path_graph(2), "k_core")
    assert error.value.hint == "did you mean core_number?"
