"""Measures end when nobody waits for them any more, and give the same bit for bit as long as somebody does."""

import asyncio
import threading
import time
from collections.abc import Callable

import networkx as nx
import pytest
from knotwork.adapters.graph import Caps, Stoppable
from knotwork.adapters.graph_networkx import group_measures
from knotwork.adapters.graph_networkx.cancellable import Ended, watched
from knotwork.adapters.graph_networkx.measures import measure
from knotwork.lang.catalogue.measures import MEASURES
from knotwork.runtime.gasl.commands.find import searched


def graph(nodes: int = 300, directed: bool = False) -> "nx.Graph[int]":
    made = nx.barabasi_albert_graph(nodes, 3, seed=1)
    nx.set_edge_attributes(made, 1.0, "weight")
    return nx.DiGraph(made) if directed else made


@pytest.mark.slow
@pytest.mark.parametrize("directed", [False, True])
def test_a_watched_graph_gives_what_the_graph_gives_bit_for_bit(directed: bool) -> None:
    plain = graph(directed=directed)
    seen, rows = watched(plain, lambda: False), watched(plain, lambda: False, rows=True)
    assert list(seen) == list(plain) and list(rows.edges(data=True)) == list(plain.edges(data=True))
    assert nx.betweenness_centrality(seen) == nx.betweenness_centrality(plain)
    assert nx.betweenness_centrality(seen, k=40, seed=0) == nx.betweenness_centrality(plain, k=40, seed=0)
    assert nx.eigenvector_centrality(rows, max_iter=500) == nx.eigenvector_centrality(plain, max_iter=500)
    found, expected = (list(nx.community.louvain_partitions(each, seed=0)) for each in (rows, plain))
    assert found == expected


def test_the_graph_itself_is_left_as_it_was() -> None:
    plain = graph(20)
    assert plain.edges and plain.degree and plain.nodes and plain.adj  # views that it keeps
    seen = watched(plain, lambda: True, rows=True)
    for look in (lambda: list(seen), lambda: seen[0], lambda: seen.nodes, lambda: seen.degree):
        with pytest.raises(Ended):
            look()
    assert len(list(plain)) == 20 and plain[0] and dict(plain.degree) and dict(plain.nodes)
    seen.add_edge(0, 19)
    assert plain.has_edge(0, 19), "it is the same graph"


class Later:
    """Says that it is over when it has been asked so often: no clock decides what a test sees."""

    def __init__(self, asked: int) -> None:
        self.left = asked

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize(
    ("algorithm", "timeout"),
    [
        ("betweenness", 30.0),
        ("eigenvector", 30.0),
        ("communities", 30.0),
        ("communities", 0.0),
    ],
)
def test_a_measure_that_takes_long_ends_in_the_middle(
    algorithm: str, timeout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_measures, "has_igraph", lambda: False)  # igraph can't be interrupted
    ended = Later(20)
    with pytest.raises(Ended):
        measure(graph(), algorithm, caps=Stoppable(timeout_s=timeout, ended=ended))
    assert ended.left >= -2, "it did not go on"


@pytest.mark.parametrize("algorithm", ["closeness", "clustering", "triangles"])
def test_a_measure_that_goes_node_by_node_stops_where_it_is(algorithm: str) -> None:
    found = measure(graph(600), algorithm, caps=Stoppable(ended=Later(1)))
    assert len(found.items) < 600 and "timeout_s" in found.caps_hit


@pytest.mark.slow
def test_caps_that_never_end_change_nothing() -> None:
    for algorithm, each in MEASURES.items():
        plain = graph(60, directed=each.directed)
        if algorithm == "topological_generation":
            plain.remove_edges_from([edge for edge in plain.edges if edge[0] >= edge[1]])
        assert measure(plain, algorithm, caps=Caps()) == measure(plain, algorithm, caps=Stoppable()), algorithm


def test_a_search_whose_caller_is_cancelled_is_told_to_end() -> None:
    begun, told = threading.Event(), threading.Event()

    def search(caps: Caps) -> None:
        ended: Callable[[], bool] = caps.ended  # type: ignore[attr-defined]
        begun.set()
        while not ended():
            time.sleep(0.002)
        told.set()
        raise Ended

    async def work() -> None:
        task = asyncio.create_task(searched(search, Caps()))  # type: ignore[arg-type]
        await asyncio.to_thread(begun.wait)
        task.cancel()
        await asyncio.wait([task])
        await asyncio.to_thread(told.wait)

    asyncio.run(work())
