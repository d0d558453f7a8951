"""Whether a bound of the length has kept paths or cycles out of a result: told if it has, and only then."""

from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.graph import Caps
from knotwork.adapters.graph_networkx import NetworkXAdapter, longer_paths
from knotwork.lang.trees.conditions import Comparison, Constant, Field, Increasing
from support.conditions import KINDS
from support.examples import many
from support.path_oracle import all_cycles, ranked_paths

COST = Field(("w",))
IN_ORDER = Increasing(Field(("edge", "t")))
CUT = ("max_path_length",)


@st.composite
def valued(draw: st.DrawFn, most: int = 7) -> Any:
    """Graphs of the four kinds whose edges have a cost ``w`` and a time ``t``, both with nulls."""
    graph = draw(st.sampled_from(KINDS))()
    size = draw(st.integers(1, most))
    graph.add_nodes_from(range(size))
    ends = st.integers(0, size - 1)
    for source, target in draw(st.lists(st.tuples(ends, ends), max_size=11)):
        graph.add_edge(source, target)
    for *_, data in graph.edges(data=True):
        data["w"] = draw(st.sampled_from([0, 1, 1, 2, 3, None]))
        data["t"] = draw(st.sampled_from([1, 2, 3, 3, 4, None]))
    return graph


def check_paths(graph: Any, data: Any) -> None:
    some = st.lists(st.sampled_from(list(graph)), min_size=1, max_size=3, unique=True)
    starts, ends = data.draw(some), data.draw(st.one_of(some, st.none()))
    increasing, via = data.draw(st.booleans()), data.draw(st.booleans())
    direction, limit = data.draw(st.sampled_from(["out", "in", "both"])), data.draw(st.sampled_from([None, 1, 4]))
    caps = Caps(max_path_length=data.draw(st.integers(1, 4)))
    if via:  # the oracle knows no VIA
        graph = graph.edge_subgraph([tuple(edge) for *edge, w in graph.edges(data="w", **keys(graph)) if w == 1]).copy()
        graph.add_nodes_from([node for node in [*starts, *(ends or [])] if node not in graph])
    found = NetworkXAdapter(graph).paths(
        starts, ends, direction=direction, limit=limit, where=IN_ORDER if increasing else None, caps=caps
    )
    every = ranked_paths(
        graph, starts, list(graph) if ends is None else ends, count=10**6,
        increasing="t" if increasing else None, direction=direction,
    )  # fmt: skip
    longer = [nodes for nodes, _ in every if len(nodes) - 1 > caps.max_path_length]
    full = limit is not None and len(every) - len(longer) >= limit
    assert found.caps_hit == (CUT if longer and not full else ())
    asked = NetworkXAdapter(graph).paths(starts, ends, direction=direction, max_length=caps.max_path_length)
    assert asked.caps_hit == (), "this bound was asked for"


def keys(graph: Any) -> dict[str, bool]:
    return {"keys": True} if graph.is_multigraph() else {}


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(valued(), st.data())
def test_paths_that_the_default_length_leaves_out_are_told(graph: Any, data: st.DataObject) -> None:
    check_paths(graph, data)


def check_ranked(graph: Any, data: Any) -> None:
    some = st.lists(st.sampled_from(list(graph)), min_size=1, max_size=3, unique=True)
    starts, ends = data.draw(some), data.draw(st.one_of(some, st.none()))
    count, cost = data.draw(st.sampled_from([None, 1, 2, 5])), data.draw(st.booleans())
    increasing, longest = data.draw(st.booleans()), data.draw(st.integers(1, 4))
    limit = data.draw(st.sampled_from([None, 1, 4]))
    found = NetworkXAdapter(graph).paths(
        starts, ends, shortest=True, count=count, cost=COST if cost else None, max_length=longest, capped=True,
        limit=limit, where=IN_ORDER if increasing else None,
    )  # fmt: skip
    either = [
        ranked_paths(
            graph, starts, list(graph) if ends is None else ends, count=count, cost="w" if cost else None,
            longest=bound, increasing="t" if increasing else None, limit=limit,
        )
        for bound in (longest, None)
    ]  # fmt: skip
    if count is None and not cost and not increasing:
        either = [sorted(each) for each in either]
    assert found.caps_hit == (CUT if either[0] != either[1] else ())


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(valued(), st.data())
def test_shortest_and_cheapest_paths_that_a_cap_leaves_out_are_told(graph: Any, data: st.DataObject) -> None:
    check_ranked(graph, data)


def check_cycles(graph: Any, data: Any) -> None:
    increasing, via = data.draw(st.booleans()), data.draw(st.booleans())
    caps = Caps(max_path_length=data.draw(st.integers(1, 5)))
    found = NetworkXAdapter(graph).cycles(
        via=Comparison(COST, "<", Constant(3)) if via else None, where=IN_ORDER if increasing else None, caps=caps
    )
    longest = len(graph)
    every = all_cycles(
        graph, longest, only=(lambda each: each["w"] is not None and each["w"] < 3) if via else None,
        increasing="t" if increasing else None,
    )  # fmt: skip
    longer = any(len(nodes) - 1 > caps.max_path_length for nodes in every)
    assert found.caps_hit == (CUT if longer else ())


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(valued(), st.data())
def test_cycles_that_the_default_length_leaves_out_are_told(graph: Any, data: st.DataObject) -> None:
    check_cycles(graph, data)


@pytest.mark.slow
@settings(max_examples=many(2_000), deadline=None)
@given(valued(), st.data())
def test_many_more_paths_and_cycles(graph: Any, data: st.DataObject) -> None:
    for check in (check_paths, check_ranked, check_cycles):
        check(graph, data)


def test_a_condition_on_the_length_is_a_bound_that_is_asked_for() -> None:
    adapter = NetworkXAdapter(nx.path_graph(9))

    def length(operator: Any, number: int) -> tuple[str, ...]:
        where = Comparison(Field(("length",)), operator, Constant(number))
        return adapter.paths([0], None, where=where).caps_hit

    assert length("<=", 2) == length("=", 3) == length("<", 4) == length("=", 70) == ()
    assert length("<=", 5) == length("=", 5) == length(">", 1) == length(">", 3) == CUT


@pytest.mark.slow
def test_nothing_longer_in_wide_graphs_is_known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walks and reachable ends tell most: no path is followed."""
    monkeypatch.setattr(longer_paths, "_MOST", 0)
    layers: Any = nx.DiGraph()
    layers.add_edges_from(
        (f"{layer} {at}", f"{layer + 1} {to}") for layer in range(3) for at in range(6) for to in range(6)
    )
    assert NetworkXAdapter(layers).paths(None, None).caps_hit == ()
    assert NetworkXAdapter(nx.path_graph(99, nx.DiGraph)).paths([5], [3]).caps_hit == ()


def test_a_search_that_takes_too_long_says_that_there_may_be_more(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = NetworkXAdapter(nx.balanced_tree(3, 6))
    assert tree.paths([0], [1]).caps_hit == ()
    monkeypatch.setattr(longer_paths, "_MOST", 100)
    assert tree.paths([0], [1]).caps_hit == CUT
