"""``MEASURE``: algorithms by name, equal to NetworkX's own."""

import functools
import math
import subprocess
import sys
import time
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.graph import AdapterError, Caps
from knotwork.adapters.graph_networkx import group_measures, node_measures
from knotwork.adapters.graph_networkx.measured_graph import MeasuredGraph
from knotwork.adapters.graph_networkx.measures import measure
from knotwork.adapters.graph_networkx.rows import Deadline
from knotwork.adapters.graph_networkx.tables import computed
from knotwork.lang.catalogue.measures import MEASURES
from knotwork.lang.trees.conditions import Constant, Field
from support.cpu_time import pace
from support.graphs import people

DIRECTED = nx.gnp_random_graph(30, 0.1, seed=2, directed=True)


def values(graph: Any, algorithm: str, **more: Any) -> dict[Any, Any]:
    return {item["id"]: item[algorithm] for item in measure(graph, algorithm, **more).items}


def simple(graph: Any) -> Any:
    return nx.DiGraph(graph) if graph.is_directed() else nx.Graph(graph)


OURS: dict[str, Any] = {
    "degree": lambda g: dict(g.degree()),
    "in_degree": lambda g: dict(g.in_degree()),
    "out_degree": lambda g: dict(g.out_degree()),
    "betweenness": lambda g: nx.betweenness_centrality(simple(g)),
    "closeness": lambda g: nx.closeness_centrality(simple(g)),
    "eigenvector": lambda g: nx.eigenvector_centrality(simple(g), max_iter=1000),
    "clustering": lambda g: nx.clustering(simple(g)),
    "triangles": lambda g: nx.triangles(nx.Graph(g)),
    "core_number": lambda g: nx.core_number(nx.restricted_view(simple(g), [], list(nx.selfloop_edges(simple(g))))),
}


@pytest.mark.parametrize("algorithm", OURS)
@pytest.mark.parametrize(
    "graph", [nx.les_miserables_graph(), DIRECTED, people(), nx.path_graph(1)], ids=["lm", "d", "p", "1"]
)
def test_values_are_those_of_networkx(algorithm: str, graph: Any) -> None:
    if MEASURES[algorithm].directed and not graph.is_directed():
        with pytest.raises(AdapterError, match="needs a directed graph"):
            measure(graph, algorithm)
        return
    if algorithm == "eigenvector" and graph.number_of_nodes() == 5:
        return  # does not settle; see below
    assert values(graph, algorithm) == pytest.approx(OURS[algorithm](graph))


def test_what_was_put_right_is_said() -> None:
    assert measure(people(), "core_number").used.endswith(", parallel edges merged, loops omitted")
    assert measure(people(), "triangles").used.endswith(", parallel edges merged, direction of edges ignored")
    found = measure(nx.path_graph(2), "degree", [0, "nobody"])
    assert found.used == "degree, unweighted without BY, 1 of 2 ids without a node"
    found = measure(nx.path_graph(3), "jaccard", pairs=[(0, 2), (0, "nobody")])
    assert found.used == "jaccard, unweighted: jaccard takes no weight, 1 of 2 pairs without two nodes"


@pytest.mark.parametrize(
    ("edges", "used", "rank"),
    [
        ([{"weight": 9}, {"weight": 1}], "weighted by weight", 0.42),
        ([{"Weight": 9}, {"Weight": 1}], "weighted by Weight", 0.42),
        ([{"weight": 9}, {}], "weighted by weight (1 of 2 edges have no weight, which counts as 1)", 0.42),
        ([{"weight": 9, "WEIGHT": "x"}, {"weight": 1}], "weighted by weight", 0.42),
        ([{"Weight": 9, "WEIGHT": 1}, {}],
         "unweighted: no edge has an attribute weight, but there are WEIGHT and Weight", 0.26),
        ([{"mass": 9}, {"mass": 1}], "unweighted: no edge has an attribute weight", 0.26),
        ([{"weight": 9}, {"weight": -1}],
         "unweighted: weight is negative on 1 of 2 edges (the first is -1, on the edge from hub to ben)", 0.26),
        ([{"weight": "9"}, {"weight": math.inf}],
         'unweighted: weight is a text on 1 of 2 edges and not finite on 1 of 2 edges '
         '(the first is "9", on the edge from hub to ida)', 0.26),
        ([{"weight": "9"}, {"weight": 1}],
         'unweighted: weight is a text on 1 of 2 edges (the first is "9", on the edge from hub to ida; '
         'BY number(weight) reads numbers in texts)', 0.26),
        ([{"weight": 10**400}, {"weight": True}], "unweighted: weight is not finite on 1 of 2 edges and not a number", 0.26),
    ],
)  # fmt: skip
def test_the_weight_of_pagerank_is_named_or_the_reason_why_there_is_none(
    edges: list[dict[str, Any]], used: str, rank: float
) -> None:
    graph: Any = nx.DiGraph()
    graph.add_edge("hub", "ida", **edges[0])
    graph.add_edge("hub", "ben", **edges[1])
    graph.add_edges_from([("ida", "hub"), ("ben", "hub")], **({"weight": 1} if "weight" in edges[0] else {}))
    found = measure(graph, "pagerank")
    assert found.used.startswith(f"pagerank, {used}".replace("of 2 edges", "of 4 edges"))
    assert {item["id"]: item["pagerank"] for item in found.items}["ida"] == pytest.approx(rank, abs=0.01)


def reference(graph: Any, weight: str | None) -> Any:
    """PageRank as NetworkX's plain Python form computes it (its public one needs scipy)."""
    from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python

    return _pagerank_python(graph, weight=weight, tol=1e-9, max_iter=500)


def ranks(graph: Any, weight: str | None) -> dict[Any, float]:
    return values(graph, "pagerank", weight=Constant(1) if weight is None else None)


@pytest.mark.parametrize("weight", ["weight", None])
@pytest.mark.parametrize("graph", [nx.les_miserables_graph(), DIRECTED, people(), nx.path_graph(4), nx.empty_graph(3)])
def test_pagerank_is_that_of_networkx(graph: Any, weight: str | None) -> None:
    ours = ranks(graph, weight)
    assert ours == pytest.approx(reference(graph, weight), abs=len(graph) * 1e-5)
    assert sum(ours.values()) == pytest.approx(1)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.sampled_from([0, 1, 2.5])), min_size=1, max_size=12))
@settings(max_examples=40)
def test_pagerank_of_any_graph(edges: list[tuple[int, int, float]]) -> None:
    for kind in (nx.DiGraph, nx.Graph, nx.MultiDiGraph):
        graph = kind()
        graph.add_weighted_edges_from(edges)
        ours = ranks(graph, "weight")
        assert sum(ours.values()) == pytest.approx(1)
        assert ours == pytest.approx(reference(graph, "weight"), abs=len(graph) * 1e-5)


# -- groups -------------------------------------------------------------------------------------------------------------


def test_components_are_numbered_by_size_then_by_their_first_node() -> None:
    graph = nx.Graph([("x", "y"), ("a", "b"), ("b", "c")])
    graph.add_node("lone")
    assert values(graph, "components") == {"a": 0, "b": 0, "c": 0, "x": 1, "y": 1, "lone": 2}
    chain = nx.DiGraph([("a", "b"), ("b", "a"), ("b", "c")])
    assert values(chain, "components") == {"a": 0, "b": 0, "c": 0}
    assert values(chain, "strong_components") == {"a": 0, "b": 0, "c": 1}


@pytest.mark.parametrize("graph", [nx.les_miserables_graph(), people(), DIRECTED, nx.empty_graph(3)])
def test_communities_are_a_partition_numbered_by_size(graph: Any) -> None:
    found = values(graph, "communities")
    assert list(found) == list(graph)
    sizes = [list(found.values()).count(number) for number in range(max(found.values()) + 1)]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == len(graph)


def test_communities_find_what_everyone_sees() -> None:
    found = values(nx.barbell_graph(6, 0), "communities")
    assert [found[n] for n in range(12)] == [0] * 6 + [1] * 6


@pytest.mark.parametrize("has_igraph", [group_measures.has_igraph(), False])
def test_communities_of_a_graph_too_large_for_the_time_are_found_another_way_and_it_says_so(
    has_igraph: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_measures, "has_igraph", lambda: has_igraph)
    graph = nx.barbell_graph(6, 0)
    engine = " of igraph" if has_igraph else ""
    assert measure(graph, "communities").used.endswith(f", by louvain{engine} (seed 0)")
    found = measure(graph, "communities", caps=Caps(timeout_s=0.0))
    assert found.caps_hit == ("timeout_s",)
    assert "by label propagation (seed 0): louvain found no groups in half of the time limit" in found.used
    assert [item["communities"] for item in found.items] == [0] * 6 + [1] * 6


@pytest.mark.skipif(not group_measures.has_igraph(), reason="needs igraph")
@pytest.mark.parametrize("graph", [nx.les_miserables_graph(), nx.planted_partition_graph(8, 25, 0.4, 0.02, seed=1)])
def test_louvain_of_igraph_is_repeatable_and_as_good_as_that_of_networkx(
    graph: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> tuple[list[Any], float]:
        items = measure(graph, "communities").items
        groups: dict[int, set[Any]] = {}
        for item in items:
            groups.setdefault(item["communities"], set()).add(item["id"])
        return items, nx.community.modularity(graph, groups.values())

    items, modularity = found()
    assert found() == (items, modularity)
    monkeypatch.setattr(group_measures, "has_igraph", lambda: False)
    assert modularity == pytest.approx(found()[1], rel=0.01)


@pytest.mark.slow
@pytest.mark.skipif(not group_measures.has_igraph(), reason="needs igraph")
def test_leiden_ends_near_its_time_limit_and_says_so() -> None:
    began = time.monotonic()
    found = measure(large(), "communities", settings={"method": "leiden"}, caps=Caps(timeout_s=8.0))
    assert found.caps_hit == ("timeout_s",) and "the refinement of the groups is incomplete" in found.used
    assert len(found.items) == 60_000
    assert time.monotonic() - began < 15 * pace()  # to the end, it takes more than a minute


@pytest.mark.slow
def test_communities_do_not_hang_on_how_texts_are_hashed() -> None:
    code = (
        "import networkx as nx; from knotwork.adapters.graph_networkx.measures import measure;"
        "print([i['communities'] for i in measure(nx.les_miserables_graph(), 'communities').items])"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


# -- which nodes, how many, how long -------------------------------------------------------------------------------------


def test_among_chooses_what_is_shown_and_measures_the_whole_graph() -> None:
    graph = nx.les_miserables_graph()
    whole = values(graph, "betweenness")
    assert values(graph, "betweenness", among=["Javert", "Valjean", "Javert", "nobody"]) == {
        name: whole[name] for name in ("Javert", "Valjean")
    }
    assert list(measure(graph, "degree", ["Valjean"]).items) == [{"id": "Valjean", "degree": 36}]
    assert list(measure(nx.empty_graph(0), "pagerank").items) == []


def test_caps() -> None:
    graph = nx.les_miserables_graph()
    found = measure(graph, "degree", caps=Caps(max_results=3))
    assert (len(found.items), found.caps_hit) == (3, ("max_results",))
    for algorithm in ("closeness", "clustering", "triangles"):
        found = measure(graph, algorithm, caps=Caps(timeout_s=0.0))
        assert (len(found.items), found.caps_hit) == (0, ("timeout_s",))
        assert "only 0 of 77 nodes within the time limit" in found.used


@pytest.mark.slow
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_weighted_betweenness_is_that_of_networkx(kind: Any) -> None:
    graph = kind(nx.les_miserables_graph())
    expected = nx.betweenness_centrality(graph, weight="weight")
    found = measure(graph, "betweenness", weight=Field(("weight",)))
    assert found.caps_hit == () and {item["id"]: item["betweenness"] for item in found.items} == pytest.approx(expected)


class Steps(Deadline):
    """A time limit that passes after a number of looks at the clock."""

    def __init__(self, looks: int) -> None:
        super().__init__(3600.0)
        self.looks = looks

    def passed(self) -> bool:
        self.looks -= 1
        self.hit = self.looks < 0
        return self.hit


def limited(graph: Any, looks: int) -> tuple[MeasuredGraph, Any]:
    task = MeasuredGraph(graph, computed(graph, False), range(len(graph)), {}, Steps(looks), 3600.0)
    return task, node_measures.betweenness(task)


def test_betweenness_is_estimated_only_if_the_time_ends_and_says_from_how_many_nodes() -> None:
    graph = nx.les_miserables_graph()
    exact = values(graph, "betweenness")
    task, found = limited(graph, 77)
    assert (task.caps_hit, task.notes) == ([], ["exact"]) and found == pytest.approx(exact)
    task, found = limited(graph, 51)
    assert (task.caps_hit, task.notes) == (["timeout_s"], task.limits)
    assert task.limits == ["estimated from the paths of 51 of 77 nodes, sampled with seed 0"]
    assert len(found) == 77 and max(found, key=found.__getitem__) == max(exact, key=exact.__getitem__) == "Valjean"
    with pytest.raises(AdapterError, match="betweenness did not finish within 0 s on 77 nodes and 254 edges"):
        measure(graph, "betweenness", caps=Caps(timeout_s=0.0))


def test_an_algorithm_that_is_not_known() -> None:
    with pytest.raises(AdapterError) as error:
        measure(people(), "pagrank")
    assert error.value.hint == "did you mean pagerank?"
    assert measure(people(), "PageRank", ["eve"]).items[0].keys() == {"id", "pagerank"}


def test_what_does_not_settle_says_so() -> None:
    with pytest.raises(AdapterError, match="did not converge"):
        measure(nx.path_graph(30, create_using=nx.DiGraph), "eigenvector")


def test_the_check_without_a_graph_knows_the_same_algorithms() -> None:
    from knotwork.adapters.graph_networkx.measures import MEASURES as engine
    from knotwork.lang.linter.gasl.arguments import MEASURES as named

    assert set(named) == set(MEASURES) == set(engine)


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # hypothesis' own, in a collection of garbage
@pytest.mark.parametrize(
    "algorithm", [name for name, each in MEASURES.items() if not each.directed and each.shape != "pairs"]
)
def test_every_algorithm_ends_near_its_time_limit(algorithm: str) -> None:
    """On a graph on which most would take minutes: what is done in the time is there, or it says that nothing is."""
    graph = large()
    began, spent = time.monotonic(), time.process_time()
    try:
        found = measure(graph, algorithm, caps=Caps(timeout_s=0.5))
    except AdapterError as error:
        assert "did not finish within 0.5 s" in error.message or "did not converge" in error.message
        assert "adapter.caps.timeout_s" in (error.hint or "")
    else:
        shape = MEASURES[algorithm].shape
        rows = 1 if shape == "summary" else min(graph.number_of_edges(), 100_000) if shape == "edges" else len(graph)
        assert len(found.items) == rows or "timeout_s" in found.caps_hit
    assert time.process_time() - spent < 2.5 * pace()
    assert time.monotonic() - began < 10, "the machine may be busy; a minute it would be without the limit"


@functools.cache
def large() -> Any:
    return nx.gnm_random_graph(60_000, 300_000, seed=1)


@pytest.mark.slow
def test_betweenness_is_what_networkx_computes() -> None:
    for graph in (nx.karate_club_graph(), nx.gnm_random_graph(40, 200, seed=2, directed=True), nx.path_graph(2)):
        expected = nx.betweenness_centrality(graph)
        assert values(graph, "betweenness") == pytest.approx(expected)
