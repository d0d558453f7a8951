"""``WALK``, ``SUBGRAPH`` and ``CONNECT`` over a graph."""

from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.adapters.graph import Caps
from knotwork.adapters.graph_networkx.neighbourhood import connect, subgraph, walk
from knotwork.lang.trees.conditions import Comparison, Condition, Constant, Field, Not
from support.graphs import people


def where(field: str, value: Any) -> Condition:
    return Comparison(Field(tuple(field.split("."))), "=", Constant(value))


def ids(found: Any) -> list[Any]:
    return [item["id"] for item in found.items]


def pairs(found: Any) -> list[tuple[Any, Any]]:
    return [(item["source"], item["target"]) for item in found.items]


# -- WALK ---------------------------------------------------------------------------------------------------------------


def test_neighbours_nearest_first_starts_left_out() -> None:
    assert ids(walk(people(), ["ann"])) == ["bob"]
    assert ids(walk(people(), ["ann"], depth=2)) == ["bob", "cid"]
    assert ids(walk(people(), ["ann"], depth=99)) == ["bob", "cid", "dee"]
    assert walk(people(), ["ann"]).items[0] == {"id": "bob", "kind": "person", "age": 35}


def test_an_end_that_equals_a_node_in_another_number_type_is_that_node() -> None:
    graph = nx.Graph()
    graph.add_nodes_from([(1, {}), (2, {"kind": "person"})])
    graph.add_edge(1.0, 2.0)
    assert walk(graph, [1]).items == [{"id": 2, "kind": "person"}]
    assert pairs(connect(graph, [1], [2])) == [(1, 2)]


@pytest.mark.parametrize(
    ("direction", "found"), [("out", ["ann", "dee"]), ("in", ["bob"]), ("both", ["ann", "dee", "bob"])]
)
def test_the_direction(direction: Any, found: list[str]) -> None:
    assert ids(walk(people(), ["cid"], direction=direction)) == found
    every = walk(nx.Graph(people()), ["cid"], direction=direction)
    assert sorted(ids(every)) == ["ann", "bob", "dee"]


def test_only_along_edges_that_satisfy_via() -> None:
    assert ids(walk(people(), ["cid"], via=where("relation", "pays"))) == ["dee"]
    assert ids(walk(people(), ["ann"], via=where("relation", "pays"), depth=3)) == ["bob"]
    assert ids(walk(people(), ["ann"], via=where("target.age", 35), depth=3)) == ["bob"]
    assert ids(walk(people(), ["cid"], via=where("source.age", 35), direction="in")) == ["bob"]
    assert ids(walk(people(), ["ann"], via=where("weight", 1))) == []  # unknown is not true


def test_an_undirected_edge_has_the_end_added_first_as_its_source_either_way() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b")
    assert ids(walk(graph, ["a"], via=where("source", "a"))) == ["b"]
    assert ids(walk(graph, ["b"], via=where("source", "a"))) == ["a"]
    assert ids(walk(graph, ["b"], via=Not(where("source.id", "a")))) == []


def test_ids_that_no_node_has_and_no_ids_give_nothing() -> None:
    assert ids(walk(people(), ["zoe", True, 1.0])) == []  # type: ignore[list-item]
    assert ids(walk(people(), [])) == []
    assert ids(walk(people(), ["ann"], depth=0)) == []
    assert ids(walk(nx.grid_2d_graph(2, 2), ["(0, 0)"])) == ["(1, 0)", "(0, 1)"]


def test_caps_cut_a_walk_short_and_say_so() -> None:
    star = nx.star_graph(10)
    found = walk(star, [0], caps=Caps(max_results=4))
    assert (ids(found), found.caps_hit) == ([1, 2, 3, 4], ("max_results",))
    assert walk(star, [0], caps=Caps(max_results=10)).caps_hit == ()
    assert walk(nx.complete_graph(60), [0], depth=9, caps=Caps(timeout_s=0.0)).caps_hit == ("timeout_s",)


@pytest.mark.slow
@given(st.data())
def test_a_walk_finds_what_networkx_finds(data: st.DataObject) -> None:
    graph = nx.gnp_random_graph(12, 0.15, seed=data.draw(st.integers(0, 50)), directed=data.draw(st.booleans()))
    depth = data.draw(st.integers(0, 4))
    starts = data.draw(st.lists(st.integers(0, 11), max_size=3))
    near = {
        n: d
        for s in starts
        for n, d in sorted(nx.single_source_shortest_path_length(graph, s, depth).items(), key=lambda x: -x[1])
    }
    found = ids(walk(graph, starts, depth=depth))
    assert set(found) == set(near) - set(starts)
    distances = [min(nx.shortest_path_length(graph, s, n) for s in starts if nx.has_path(graph, s, n)) for n in found]
    assert distances == sorted(distances)


# -- SUBGRAPH -----------------------------------------------------------------------------------------------------------


def test_all_within_a_radius_edges_either_way() -> None:
    found = subgraph(people(), ["dee"], 1)
    assert len(found.items) == 1
    assert [node["id"] for node in found.items[0]["nodes"]] == ["dee", "cid"]
    assert [(e["source"], e["target"], e["key"]) for e in found.items[0]["edges"]] == [
        ("cid", "dee", 0),
        ("dee", "dee", 0),
    ]
    assert [node["id"] for node in subgraph(people(), ["eve"], 3).items[0]["nodes"]] == ["eve"]


def test_without_a_center_there_is_no_subgraph() -> None:
    assert list(subgraph(people(), [], 2).items) == []


def test_a_subgraph_has_the_edges_of_networkx_in_the_same_order() -> None:
    graph = nx.les_miserables_graph()
    item = subgraph(graph, ["Javert"], 1).items[0]
    inside = {node["id"] for node in item["nodes"]}
    expected = [(s, t, w) for s, t, w in graph.edges(data="weight") if s in inside and t in inside]
    assert [(e["source"], e["target"], e["weight"]) for e in item["edges"]] == expected


def test_caps_cut_a_subgraph_short_and_say_so() -> None:
    found = subgraph(nx.complete_graph(9), [0], 1, caps=Caps(max_results=4))
    assert len(found.items[0]["nodes"]) == 4
    assert len(found.items[0]["edges"]) == 4
    assert found.caps_hit == ("max_results",)
    assert subgraph(nx.path_graph(3), [0, 1, 2], 0, caps=Caps(max_results=2)).caps_hit == ("max_results",)


# -- CONNECT ------------------------------------------------------------------------------------------------------------


def test_edges_between_two_sets_either_way_in_the_order_of_the_graph() -> None:
    assert pairs(connect(people(), ["ann"], ["bob", "cid"])) == [("ann", "bob"), ("ann", "bob"), ("cid", "ann")]
    assert pairs(connect(people(), ["bob", "cid"], ["ann"])) == [("ann", "bob"), ("ann", "bob"), ("cid", "ann")]
    assert pairs(connect(people(), ["ann"], ["bob"], via=where("relation", "pays"))) == [("ann", "bob")]
    assert pairs(connect(people(), ["ann", "bob"], ["dee"])) == []
    assert pairs(connect(people(), ["dee"], ["dee"])) == [("dee", "dee")]


@pytest.mark.slow
@given(st.data())
def test_connect_finds_what_a_look_at_all_edges_finds(data: st.DataObject) -> None:
    directed = data.draw(st.booleans())
    graph = nx.gnp_random_graph(9, 0.4, seed=data.draw(st.integers(0, 50)), directed=directed)
    left, right = (data.draw(st.lists(st.integers(0, 8), max_size=5)) for _ in range(2))
    expected = [(s, t) for s, t in graph.edges if (s in left and t in right) or (s in right and t in left)]
    assert pairs(connect(graph, left, right)) == expected


def test_caps_cut_connect_short_and_say_so() -> None:
    found = connect(nx.complete_graph(9), range(9), range(9), caps=Caps(max_results=5))
    assert (len(found.items), found.caps_hit) == (5, ("max_results",))
    assert connect(nx.complete_graph(9), range(9), range(9), caps=Caps(max_results=36)).caps_hit == ()
    assert connect(nx.complete_graph(9), range(9), range(9), caps=Caps(timeout_s=0.0)).caps_hit == ("timeout_s",)
