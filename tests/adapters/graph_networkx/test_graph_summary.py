"""A graph in summary, and its hash."""

import math
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.adapters.graph_networkx.graph_summary import MOST_DISTINCT, graph_hash, summarise
from knotwork.adapters.graph_networkx.loader import read_graph
from support.graphs import GRAPHML, people, write


def nodes_with(values: list[Any], name: str = "x") -> Any:
    graph = nx.Graph()
    graph.add_nodes_from((number, {name: value}) for number, value in enumerate(values))
    return graph


def test_sizes_kinds_and_attributes() -> None:
    schema = summarise(people(), "people")
    assert (schema.name, schema.directed, schema.multi, schema.nodes, schema.edges) == ("people", True, True, 5, 6)
    assert schema.label_attribute == "kind"
    assert schema.labels == {"person": 5}
    assert schema.relation_attribute == "relation"
    assert schema.relations == {"knows": 4, "pays": 2}
    age = schema.node_attributes["age"]
    assert (age.count, age.types, age.distinct) == (4, {"integer": 4}, 4)
    assert age.values == ((28, 1), (35, 1), (41, 1), (60, 1))


def test_types_are_those_of_json_and_one_is_not_true() -> None:
    found = summarise(nodes_with([1, 1.0, True, "1", None, [1], {"a": 1}, math.nan])).node_attributes["x"]
    assert found.types == {"integer": 1, "float": 1, "boolean": 1, "text": 1, "null": 2, "list": 1, "object": 1}
    assert sorted(found.values, key=repr) == [("1", 1), (1, 2), (True, 1)]
    assert found.distinct == 3


def test_nested_attributes_by_their_dotted_names() -> None:
    names = summarise(nodes_with([{"city": "Ulm", "at": {"x": {"y": 1}}}], "address")).node_attributes
    assert list(names) == ["address", "address.city", "address.at", "address.at.x"]
    assert names["address.city"].values == (("Ulm", 1),)


def test_frequent_values_come_first_and_twenty_at_most() -> None:
    values = summarise(nodes_with([str(n // 3) for n in range(100)] + ["7"])).node_attributes["x"].values
    assert len(values) == 20
    assert values[0] == ("7", 4)
    assert values[1] == ("0", 3)


@pytest.mark.slow
def test_different_values_are_counted_up_to_a_bound() -> None:
    many = summarise(nodes_with(["a", *map(str, range(MOST_DISTINCT + 10)), "a", "a"])).node_attributes["x"]
    assert many.distinct is None
    assert many.values[0] == ("a", 3)
    few = summarise(nodes_with([str(n) for n in range(MOST_DISTINCT - 1)])).node_attributes["x"]
    assert few.distinct == MOST_DISTINCT - 1


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([{"entity_type": "A"}, {"entity_type": "B"}], "entity_type"),
        ([{"type": "A", "label": "x"}] * 4, "type"),
        ([{"label": f"name {n}"} for n in range(9)], None),  # each its own: no kinds
        ([{"label": f"kind {n % 2}"} for n in range(9)], "label"),
        ([{"type": n} for n in range(9)], None),
        ([{"age": 3}], None),
    ],
)
def test_the_attribute_that_tells_kinds_apart(rows: list[dict[str, Any]], told: str | None) -> None:
    graph = nx.Graph()
    graph.add_nodes_from(enumerate(rows))
    assert summarise(graph).label_attribute == told


def test_keys_may_be_the_relations() -> None:
    graph = nx.MultiDiGraph()
    for n in range(6):
        graph.add_edge(n, n + 1, key="likes" if n % 2 else "knows")
    schema = summarise(graph)
    assert (schema.relation_attribute, schema.relations) == ("key", {"knows": 3, "likes": 3})


def test_a_graph_that_was_not_loaded_is_shown_as_its_items_are() -> None:
    graph = nx.Graph()
    graph.add_node((1, 2), id="x", when={1, 2})
    assert summarise(graph).node_attributes.keys() == {"attr.id", "when"}
    assert summarise(graph).node_attributes["when"].types == {"list": 1}


def test_an_empty_graph() -> None:
    schema = summarise(nx.DiGraph())
    assert (schema.nodes, schema.edges, schema.label_attribute, schema.node_attributes) == (0, 0, None, {})


# -- hash ---------------------------------------------------------------------------------------------------------------


def test_the_hash_is_that_of_the_content(tmp_path: Path) -> None:
    path = write(tmp_path, "x.graphml", GRAPHML)
    first = graph_hash(read_graph(path)[0])
    assert first == graph_hash(read_graph(path)[0])
    assert len(first) == 64
    for old, new in (
        ("41", "42"),
        ("Co", "co"),
        ("0.5", "0.25"),
        ('"directed"', '"undirected"'),
        ('id="bob"', 'id="bo"'),
    ):
        assert graph_hash(read_graph(write(tmp_path, "y.graphml", GRAPHML.replace(old, new)))[0]) != first


def test_the_order_of_attributes_does_not_count_but_that_of_nodes_does() -> None:
    one, two, three = nx.Graph(), nx.Graph(), nx.Graph()
    one.add_node("a", x=1, y=2)
    two.add_node("a", y=2, x=1)
    assert graph_hash(one) == graph_hash(two)
    one.add_node("b")
    three.add_nodes_from(["b", ("a", {"x": 1, "y": 2})])
    assert graph_hash(one) != graph_hash(three)  # a LIMIT would show another node


def test_what_is_not_json_has_a_hash_too() -> None:
    graph = nx.Graph()
    graph.add_node((1, 2), x={3, 4}, y=2**70, z="\ud800")
    assert graph_hash(graph) == graph_hash(graph.copy())


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.text(max_size=2)), max_size=6))
def test_a_copy_has_the_same_hash_and_one_more_edge_another(edges: list[tuple[int, int, str]]) -> None:
    graph = nx.MultiDiGraph()
    graph.add_edges_from((s, t, {"x": x}) for s, t, x in edges)
    before = graph_hash(graph)
    assert graph_hash(graph.copy()) == before
    graph.add_edge(9, 9)
    assert graph_hash(graph) != before


def test_the_range_of_numbers_and_of_dates() -> None:
    graph = nx.Graph()
    graph.add_node(
        1, n=2, f=1.5, day="2024-02-01", month="2023-12", at="2024-01-01T10:00:00Z", text="2024-02-01", mixed=1, part=3
    )
    graph.add_node(
        2, n=-3, f=float("inf"), day="2023-11-30", month="2024-01", at="2024-01-01T09:00:00Z", text="soon", mixed="a"
    )
    graph.add_node(3, n=7.5, f=float("nan"), flag=True, items=[1, 2])
    found = summarise(graph).node_attributes
    ranges = {name: (each.lowest, each.highest) for name, each in found.items()}
    assert ranges == {
        "n": (-3, 7.5), "f": (1.5, 1.5), "day": ("2023-11-30", "2024-02-01"), "month": ("2023-12", "2024-01"),
        "at": ("2024-01-01T09:00:00Z", "2024-01-01T10:00:00Z"), "text": (None, None), "mixed": (None, None), "part": (3, 3),
        "flag": (None, None), "items": (None, None),
    }  # fmt: skip


def test_a_few_ids_and_the_types_of_all() -> None:
    graph = nx.path_graph(50)
    graph.add_node("x")
    found = summarise(graph)
    assert found.ids == (0, 8, 16, 24, 32, 40)
    assert found.id_types == {"integer": 50, "text": 1}
    assert summarise(nx.path_graph(["a", "b"])).ids == ("a", "b")
    assert summarise(nx.Graph()).ids == ()
