"""The cheapest paths, paths with increasing values, and cycles: equal to plain enumerations, on every kind of graph."""

import time
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.graph import Caps, UnusableValue
from knotwork.adapters.graph_networkx import NetworkXAdapter
from knotwork.adapters.graph_networkx.stale import StaleGraphWarning
from knotwork.lang.parse.gasl import parse_condition
from knotwork.lang.trees.conditions import Binary, Comparison, Condition, Constant, Field, Increasing
from support.conditions import KINDS
from support.examples import many
from support.path_oracle import all_cycles, ranked_paths

COST = Field(("w",))
IN_ORDER = Increasing(Field(("edge", "t")))


@st.composite
def valued(draw: st.DrawFn, most: int = 6) -> Any:
    """Graphs of the four kinds whose edges have a cost ``w`` and a time ``t``, both with nulls; ``t`` of mixed types."""
    graph = draw(st.sampled_from(KINDS))()
    size = draw(st.integers(1, most))
    graph.add_nodes_from(range(size))
    ends = st.integers(0, size - 1)
    for source, target in draw(st.lists(st.tuples(ends, ends), max_size=11)):
        graph.add_edge(source, target)
    for *_, data in graph.edges(data=True):
        data["w"] = draw(st.sampled_from([0, 1, 1, 2, 0.1, 0.2, 0.3, None]))
        data["t"] = draw(st.sampled_from([1, 2, 3, 3, "x", None]))
    return graph


def check_ranked(graph: Any, data: Any) -> None:
    some = st.lists(st.sampled_from(list(graph)), min_size=1, max_size=3, unique=True)
    starts, ends = data.draw(some), data.draw(st.one_of(some, st.none()))
    count = data.draw(st.sampled_from([None, 1, 2, 3, 10]))
    cost = data.draw(st.booleans())
    longest = data.draw(st.sampled_from([None, 1, 2, 3]))
    increasing = data.draw(st.booleans())
    direction = data.draw(st.sampled_from(["out", "in", "both"]))
    limit = data.draw(st.sampled_from([None, 1, 3]))
    found = NetworkXAdapter(graph).paths(
        starts, ends, shortest=True, count=count, cost=COST if cost else None, max_length=longest, direction=direction,
        limit=limit, where=IN_ORDER if increasing else None,
    )  # fmt: skip
    expected = ranked_paths(
        graph, starts, list(graph) if ends is None else ends, count=count, cost="w" if cost else None,
        longest=longest, increasing="t" if increasing else None, direction=direction, limit=limit,
    )  # fmt: skip
    assert [item["nodes"] for item in found.items] == [nodes for nodes, _ in expected]
    if cost:
        assert [float(item["cost"]) for item in found.items] == [total for _, total in expected]


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(valued(), st.data())
def test_the_cheapest_paths_are_those_of_a_plain_enumeration(graph: Any, data: st.DataObject) -> None:
    check_ranked(graph, data)


@pytest.mark.slow
@settings(max_examples=many(2_000), deadline=None)
@given(valued(), st.data())
def test_many_more_cheapest_paths(graph: Any, data: st.DataObject) -> None:
    check_ranked(graph, data)


ACCEPTED: dict[str, Any] = {
    "ANY edge.t = 3": lambda nodes, edges: any(each["t"] == 3 for each in edges),
    "ANY node.id = 2": lambda nodes, edges: 2 in nodes,
    "NONE node.id = 1": lambda nodes, edges: 1 not in nodes,
    "ALL edge.t != 3": lambda nodes, edges: all(each["t"] not in (3, None) for each in edges),
    "length != 1": lambda nodes, edges: len(edges) != 1,
    "length % 2 = 0 OR source.id = 0": lambda nodes, edges: len(edges) % 2 == 0 or nodes[0] == 0,
    "length > 2 OR target.id < 3": lambda nodes, edges: len(edges) > 2 or nodes[-1] < 3,
}
"""Conditions on paths that reject some of several paths of the same length, and the same in Python."""


def check_order(graph: Any, data: Any) -> None:
    some = st.lists(st.sampled_from(list(graph)), min_size=1, max_size=4, unique=True)
    starts, ends = data.draw(st.one_of(some, st.none())), data.draw(st.one_of(some, st.none()))
    count, cost = data.draw(st.sampled_from([None, 1, 2, 3])), data.draw(st.booleans())
    limit, direction = data.draw(st.sampled_from([None, 1, 4])), data.draw(st.sampled_from(["out", "in", "both"]))
    longest, where = data.draw(st.sampled_from([None, 2, 4])), data.draw(st.sampled_from(sorted(ACCEPTED)))
    condition, faults = parse_condition(where)
    assert condition is not None and not faults
    found = NetworkXAdapter(graph).paths(
        starts, ends, shortest=True, count=count, cost=COST if cost else None, max_length=longest, direction=direction,
        limit=limit, where=condition,
    )  # fmt: skip
    every = list(graph)
    expected = ranked_paths(
        graph, every if starts is None else starts, every if ends is None else ends, count=count,
        cost="w" if cost else None, longest=longest, direction=direction, limit=limit, accepts=ACCEPTED[where],
    )  # fmt: skip
    assert [item["nodes"] for item in found.items] == [nodes for nodes, _ in expected]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(valued(), st.data())
def test_paths_of_equal_length_are_in_the_graphs_order_whatever_a_condition_rejects(
    graph: Any, data: st.DataObject
) -> None:
    check_order(graph, data)


@pytest.mark.slow
@settings(max_examples=many(3_000), deadline=None)
@given(valued(), st.data())
def test_many_more_orders_under_conditions(graph: Any, data: st.DataObject) -> None:
    check_order(graph, data)


def test_a_pair_that_needs_a_longer_path_keeps_its_place_among_paths_of_this_length() -> None:
    graph: Any = nx.DiGraph()
    graph.add_edges_from([("a", "c"), ("a", "b"), ("b", "c"), ("d", "e"), ("e", "f"), ("b", "g")])
    where = parse_condition('NOT (source.id = "a" AND length = 1)')[0]
    found = NetworkXAdapter(graph).paths(["d", "a"], ["c", "f", "g"], shortest=True, where=where)
    assert [item["nodes"] for item in found.items] == [["d", "e", "f"], ["a", "b", "c"], ["a", "b", "g"]]


def check_cycles(graph: Any, data: Any) -> None:
    longest, increasing = data.draw(st.integers(1, 6)), data.draw(st.booleans())
    via, limit = data.draw(st.booleans()), data.draw(st.sampled_from([None, 2]))
    found = NetworkXAdapter(graph).cycles(
        via=Comparison(COST, "<", Constant(2)) if via else None, where=IN_ORDER if increasing else None,
        max_length=longest, limit=limit,
    )  # fmt: skip
    expected = all_cycles(
        graph, longest, only=(lambda each: each["w"] is not None and each["w"] < 2) if via else None,
        increasing="t" if increasing else None, limit=limit,
    )  # fmt: skip
    assert [item["nodes"] for item in found.items] == expected
    assert all(item["source"] == item["target"] and item["length"] == len(item["edges"]) for item in found.items)
    assert found.caps_hit == ()


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(valued(), st.data())
def test_cycles_are_those_of_networkx_each_once(graph: Any, data: st.DataObject) -> None:
    check_cycles(graph, data)


@pytest.mark.slow
@settings(max_examples=many(2_000), deadline=None)
@given(valued(), st.data())
def test_many_more_cycles(graph: Any, data: st.DataObject) -> None:
    check_cycles(graph, data)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(valued(), st.data())
def test_increasing_prunes_and_changes_nothing_else(graph: Any, data: st.DataObject) -> None:
    direction = data.draw(st.sampled_from(["out", "in", "both"]))
    longest = data.draw(st.integers(1, 4))
    adapter = NetworkXAdapter(graph)
    found = adapter.paths(None, None, where=IN_ORDER, max_length=longest, direction=direction)
    expected = ranked_paths(
        graph, list(graph), list(graph), count=10**6, longest=longest, increasing="t", direction=direction
    )
    assert sorted(item["nodes"] for item in found.items) == sorted(nodes for nodes, _ in expected)
    node: Condition = Increasing(Field(("node", "rank")))
    for at in graph:
        graph.nodes[at]["rank"] = data.draw(st.sampled_from([1, 2, 3, None]))
    ranks = {at: graph.nodes[at]["rank"] for at in graph}
    adapter.invalidate()
    kept = adapter.paths(None, None, where=node, max_length=longest, direction=direction).items
    every = adapter.paths(None, None, max_length=longest, direction=direction).items

    def rises(nodes: Any) -> bool:
        values = [ranks[at] for at in nodes]
        return None not in values and values == sorted(values)

    assert [item["nodes"] for item in kept] == [item["nodes"] for item in every if rises(item["nodes"])]


def chain() -> Any:
    graph: Any = nx.DiGraph()
    graph.add_edge("a", "b", fee=3)
    graph.add_edge("a", "c", fee=1)
    graph.add_edge("c", "b", fee=1.5)
    graph.add_edge("b", "d", fee=None)
    return graph


def test_a_path_has_its_cost_and_edges_without_one_are_not_used() -> None:
    found = NetworkXAdapter(chain()).paths(["a"], ["b"], shortest=True, count=2, cost=Field(("fee",)))
    assert [(item["nodes"], item["cost"], list(item)) for item in found.items] == [
        (["a", "c", "b"], 2.5, ["source", "target", "length", "cost", "nodes", "edges"]),
        (["a", "b"], 3, ["source", "target", "length", "cost", "nodes", "edges"]),
    ]
    assert found.unused_edges == 1
    assert not NetworkXAdapter(chain()).paths(["a"], ["d"], shortest=True, cost=Field(("fee",))).items
    cheap = Comparison(Field(("cost",)), ">", Constant(2.5))
    again = NetworkXAdapter(chain()).paths(["a"], ["b"], shortest=True, cost=Field(("fee",)), where=cheap)
    assert [item["cost"] for item in again.items] == [3]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-2, "fee of the edge from b to d is below 0: -2"),
        ("x", "fee of the edge from b to d is the text"),
        (True, "is true, not a number"),
    ],
)
def test_a_cost_that_is_no_number_of_at_least_0_names_its_edge(value: Any, message: str) -> None:
    graph = chain()
    graph.edges["b", "d"]["fee"] = value
    with pytest.raises(UnusableValue, match=message):
        NetworkXAdapter(graph).paths(["a"], ["b"], shortest=True, cost=Field(("fee",)))
    without = Comparison(Field(("target",)), "!=", Constant("d"))
    assert NetworkXAdapter(graph).paths(["a"], ["b"], shortest=True, cost=Field(("fee",)), via=without).items


def test_costs_are_added_exactly() -> None:
    graph: Any = nx.DiGraph()
    for number, fee in enumerate([0.1] * 10):
        graph.add_edge(number, number + 1, fee=fee)
    graph.add_edge(0, 10, fee=1.0)
    found = NetworkXAdapter(graph).paths([0], [10], shortest=True, cost=Field(("fee",)))
    assert [item["length"] for item in found.items] == [1], "ten times 0.1 is more than 1, exactly added"
    computed = Binary("*", Field(("fee",)), Constant(10))
    assert NetworkXAdapter(graph).paths([0], [3], shortest=True, cost=computed).items[0]["cost"] == 3.0


def test_costs_that_were_written_directly_are_read_again() -> None:
    graph = chain()
    adapter = NetworkXAdapter(graph)
    assert adapter.paths(["a"], ["b"], shortest=True, cost=Field(("fee",))).items[0]["nodes"] == ["a", "c", "b"]
    graph.edges["a", "c"]["fee"] = 9
    with pytest.warns(StaleGraphWarning):
        again = adapter.paths(["a"], ["b"], shortest=True, cost=Field(("fee",))).items
    assert again[0]["nodes"] == ["a", "b"]


def test_bounds_of_cheapest_paths() -> None:
    grid = nx.grid_2d_graph(12, 12)
    nx.set_edge_attributes(grid, 1, "w")
    adapter = NetworkXAdapter(grid)
    first, last = str((0, 0)), str((11, 11))
    found = adapter.paths([first], [last], shortest=True, cost=COST, caps=Caps(max_paths=20))
    assert (len(found.items), found.caps_hit) == (20, ("max_paths",)), "of 705,432 ties"
    assert {item["cost"] for item in found.items} == {22}
    assert adapter.paths([first], [last], shortest=True, count=3).caps_hit == ()
    assert adapter.paths([first], [last], shortest=True, count=3, max_length=5).caps_hit == ()
    assert adapter.paths([first], [last], shortest=True, count=3, max_length=5, capped=True).caps_hit == (
        "max_path_length",
    )
    assert adapter.paths([first], [last], shortest=True, cost=COST, caps=Caps(timeout_s=1e-9)).caps_hit == (
        "timeout_s",
    )
    assert adapter.paths([first], [last], shortest=True, cost=COST, limit=2).caps_hit == ()


@pytest.mark.slow
def test_bounds_of_cycles() -> None:
    ring = NetworkXAdapter(nx.cycle_graph(7))
    assert ring.cycles().caps_hit == ("max_path_length",), "nothing of 3 edges, and a longer one exists"
    assert ring.cycles(max_length=4).caps_hit == ()
    (cycle,) = ring.cycles(max_length=7).items
    assert cycle["nodes"] == [0, 1, 2, 3, 4, 5, 6, 0]
    tree = NetworkXAdapter(nx.path_graph(3000))
    assert (list(tree.cycles().items), tree.cycles().caps_hit) == ([], ())
    clique = NetworkXAdapter(nx.complete_graph(30, nx.DiGraph))
    found = clique.cycles(max_length=8, caps=Caps(max_paths=1000))
    assert (len(found.items), found.caps_hit) == (1000, ("max_paths",))
    assert clique.cycles(max_length=8, caps=Caps(timeout_s=0.2, max_paths=10**9)).caps_hit == ("timeout_s",)
    halves = NetworkXAdapter(nx.complete_bipartite_graph(200, 200))
    found = halves.cycles(max_length=8, caps=Caps(timeout_s=1.0, max_paths=10**9, max_results=10**9))
    assert found.caps_hit == ("timeout_s",) and len(found.items) > 1000
    loop = nx.MultiGraph([(0, 0), (1, 2), (1, 2)])
    assert [item["nodes"] for item in NetworkXAdapter(loop).cycles(max_length=3).items] == [[0, 0]]


def test_a_walk_that_is_traced_has_depths_and_parents() -> None:
    graph: Any = nx.DiGraph([("s", "b"), ("s", "a"), ("b", "x"), ("a", "x"), ("x", "y")])
    graph.nodes["x"].update(depth="deep", parent="none")
    adapter = NetworkXAdapter(graph)
    found = adapter.walk(["s"], depth=3, trace=True).items
    assert [(item["id"], item["depth"], item["parent"]) for item in found] == [
        ("b", 1, "s"), ("a", 1, "s"), ("x", 2, "b"), ("y", 3, "x"),
    ]  # fmt: skip
    assert (found[2]["attr.depth"], found[2]["attr.parent"]) == ("deep", "none")
    assert adapter.walk(["s"], depth=3).items[2] == {"id": "x", "depth": "deep", "parent": "none"}
    later: Any = nx.DiGraph([("b", "x"), ("a", "x")])
    assert NetworkXAdapter(later).walk(["a", "b"], trace=True).items[0]["parent"] == "b", (
        "the first in the graph's order"
    )


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(valued(), st.data())
def test_depths_and_parents_are_those_of_networkx(graph: Any, data: st.DataObject) -> None:
    starts = data.draw(st.lists(st.sampled_from(list(graph)), min_size=1, max_size=2, unique=True))
    direction, depth = data.draw(st.sampled_from(["out", "in", "both"])), data.draw(st.integers(1, 4))
    steps: Any = nx.Graph(graph) if direction == "both" or not graph.is_directed() else nx.DiGraph(graph)
    steps = steps.reverse() if direction == "in" and graph.is_directed() else steps
    far = nx.multi_source_dijkstra_path_length(steps, starts, weight=lambda *edge: 1)
    found = NetworkXAdapter(graph).walk(starts, depth=depth, direction=direction, trace=True).items
    places = list(graph)
    expected = {}
    for node, distance in far.items():
        if 0 < distance <= depth:
            before = [at for at in steps if node in steps[at] and far.get(at) == distance - 1]
            expected[node] = (distance, min(before, key=places.index))
    assert {item["id"]: (item["depth"], item["parent"]) for item in found} == expected


@pytest.mark.slow
def test_a_search_whose_paths_are_all_rejected_ends_at_the_time_limit() -> None:
    adapter = NetworkXAdapter(nx.les_miserables_graph())
    where, _ = parse_condition("ANY edge.weight > 1000")
    began = time.perf_counter()
    found = adapter.paths(["Myriel"], ["Javert"], where=where, shortest=True, count=1, caps=Caps(timeout_s=0.5))
    assert (list(found.items), found.caps_hit) == ([], ("timeout_s",))
    assert time.perf_counter() - began < 5
