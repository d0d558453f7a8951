"""FIND over NetworkX graphs: equal to asking the interpreter of every node, edge and path, however it is searched."""

import json
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import networkx as nx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from knotwork.adapters.graph import Caps
from knotwork.adapters.graph_networkx import NetworkXAdapter, find
from knotwork.adapters.graph_networkx.rows import node_id, plain
from knotwork.adapters.graph_networkx.tables import Computed
from knotwork.lang.evaluate.conditions import evaluate, sort_key
from knotwork.lang.parse.gasl import parse_condition
from knotwork.lang.trees.conditions import And, Comparison, Condition, Constant, Field, Items, Not, NullTest
from knotwork.lang.trees.gasl import Order, Path
from support.conditions import conditions, graphs
from support.examples import many
from support.graph_oracle import edges_of, of_edge, of_node, right_edges, right_nodes

pytestmark = pytest.mark.usefixtures("columns_for_small_graphs_too")


NODE_PATHS = [("a",), ("b",), ("a", "b"), ("a.b",), ("id",), ("degree",), ("attr", "id"), ("attr", "degree"), ("none",)]
EDGE_PATHS = [
    ("a",), ("b",), ("a", "b"), ("source",), ("target",), ("key",), ("attr", "key"), ("attr", "source"),
    ("source", "a"), ("target", "degree"), ("source", "attr", "id"), ("target", "a", "b"),
]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(graphs(), conditions(NODE_PATHS))
def test_nodes_are_those_that_the_interpreter_finds(graph: Any, where: Condition) -> None:
    wanted = [node_id(node) for node in right_nodes(graph, where)]
    for adapter in (NetworkXAdapter(graph), NetworkXAdapter(graph, strict=True)):
        assert [item["id"] for item in adapter.nodes(where).items] == wanted
        assert [item["id"] for item in adapter.find_nodes(where, 1)] == wanted[:1]


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(graphs(), conditions(EDGE_PATHS))
def test_edges_are_those_that_the_interpreter_finds(graph: Any, where: Condition) -> None:
    wanted = [tuple(map(node_id, edge)) for edge in right_edges(graph, where)]
    names = ("source", "target", "key") if graph.is_multigraph() else ("source", "target")
    for adapter in (NetworkXAdapter(graph), NetworkXAdapter(graph, strict=True)):
        assert [tuple(item[name] for name in names) for item in adapter.edges(where).items] == wanted


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(graphs(), conditions(NODE_PATHS), st.sampled_from(NODE_PATHS), st.booleans())
def test_large_results_are_ordered_by_columns_as_small_ones(
    graph: Any, where: Condition, path: tuple[str, ...], descending: bool
) -> None:
    order = [Order(Path(path), descending)]
    found = right_nodes(graph, where)
    keyed = [(sort_key(plain(of_node(graph, node, path))), node) for node in found]
    present = sorted((p for p in keyed if p[0] != sort_key(None)), key=lambda p: p[0], reverse=descending)
    wanted = [node_id(node) for _, node in present + [p for p in keyed if p[0] == sort_key(None)]]
    for rechecked in (-1, 1024):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(find, "_RECHECKED", rechecked)
            patch.setattr(find, "_SAMPLED", 1)
            assert [item["id"] for item in NetworkXAdapter(graph).nodes(where, order=order).items] == wanted


PATH_FIELDS = st.one_of(
    st.sampled_from([("source", "a"), ("target", "id"), ("target", "a"), ("length",), ("source",)]).map(Field),
    st.tuples(
        st.sampled_from([("node", "a"), ("node", "degree"), ("edge", "a"), ("edge", "source", "a")]),
        st.sampled_from(["any", "all", "none"]),
    ).map(lambda pair: Field(*pair)),
)


def all_paths(graph: Any, longest: int) -> list[list[Any]]:
    """Every simple path as its edges, ``(from, to, edge as the graph has it)``, by NetworkX."""
    found = []
    known = set(edges_of(graph))
    for start, end in product(graph, graph):
        if start != end:
            for path in nx.all_simple_edge_paths(graph, start, end, cutoff=longest):
                steps = [(s, t, edge if edge in known else (t, s, *edge[2:])) for edge in path for s, t in [edge[:2]]]
                found += [steps] if steps else []
    return found


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(graphs(), conditions([], PATH_FIELDS), st.integers(1, 4), st.booleans())
def test_paths_are_those_of_networkx_that_the_interpreter_keeps(
    graph: Any, where: Condition, longest: int, shortest: bool
) -> None:
    def value(steps: Any, at: Field) -> Any:
        nodes = [steps[0][0], *(step[1] for step in steps)]
        first, rest = at.path[0], at.path[1:]
        if first == "length":
            return len(steps)
        if first in ("source", "target"):
            return plain(of_node(graph, nodes[-(first == "target")], rest or ("id",)))
        if first == "node":
            return [plain(of_node(graph, node, rest)) for node in nodes]
        return [plain(of_edge(graph, step[2], rest)) for step in steps]

    kept = [steps for steps in all_paths(graph, longest) if evaluate(where, lambda at: value(steps, at)) is True]  # noqa: B023
    if shortest:
        least: dict[Any, int] = {}
        for steps in kept:
            pair = (steps[0][0], steps[-1][1])
            least[pair] = min(least.get(pair, 99), len(steps))
        kept = [steps for steps in kept if len(steps) == least[steps[0][0], steps[-1][1]]]
    found = NetworkXAdapter(graph).paths(
        None,
        None,
        where=where,
        shortest=shortest,
        max_length=longest,
        caps=Caps(max_path_length=longest, max_paths=10**6),
    )
    shown = sorted(
        repr((item["nodes"], [edge["key"] if graph.is_multigraph() else None for edge in item["edges"]]))
        for item in found.items
    )
    assert shown == sorted(
        repr(([node_id(steps[0][0]), *(node_id(step[1]) for step in steps)],
              [step[2][2] if graph.is_multigraph() else None for step in steps]))
        for steps in kept
    )  # fmt: skip
    lengths = [item["length"] for item in found.items]
    assert lengths == sorted(lengths)
    for item in found.items:
        assert all(
            {e["source"], e["target"]} == {*pair}
            for e, pair in zip(item["edges"], pairwise(item["nodes"]), strict=True)
        )


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(graphs(), conditions([("a",), ("b",), ("source", "a")]), st.data())
def test_paths_pass_only_what_via_allows(graph: Any, via: Condition, data: st.DataObject) -> None:
    assume(len(graph))
    nodes = list(graph)
    starts, ends = (data.draw(st.lists(st.sampled_from(nodes), min_size=1, unique=True)) for _ in range(2))
    allowed = set(right_edges(graph, via))
    wanted = {
        tuple(map(node_id, [steps[0][0], *(step[1] for step in steps)]))
        for steps in all_paths(graph, 3)
        if steps[0][0] in starts and steps[-1][1] in ends and all(step[2] in allowed for step in steps)
    }
    found = NetworkXAdapter(graph).paths([node_id(n) for n in starts], [node_id(n) for n in ends], via=via)
    assert {tuple(item["nodes"]) for item in found.items} == wanted


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(graphs())
def test_items_are_json(graph: Any) -> None:
    adapter = NetworkXAdapter(graph)
    for found in (adapter.nodes(None), adapter.edges(None), adapter.paths(None, None)):
        again = json.loads(json.dumps(list(found.items), allow_nan=False))
        assert again == found.items


MORE: list[tuple[Any, tuple[Any, ...]]] = [
    (test_nodes_are_those_that_the_interpreter_finds, (graphs(), conditions(NODE_PATHS))),
    (test_edges_are_those_that_the_interpreter_finds, (graphs(), conditions(EDGE_PATHS))),
    (
        test_paths_are_those_of_networkx_that_the_interpreter_keeps,
        (graphs(), conditions([], PATH_FIELDS), st.integers(1, 4), st.booleans()),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("check", "strategies"), MORE, ids=["nodes", "edges", "paths"])
def test_many_more_examples(check: Any, strategies: tuple[Any, ...]) -> None:
    settings(max_examples=many(1_500), deadline=None)(given(*strategies)(check.hypothesis.inner_test))()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(2, 9), st.sampled_from([None, 1, 2, 3]), st.booleans())
def test_the_shortest_paths_are_those_of_networkx_and_what_hides_some_is_said(
    data: Any, size: int, longest: int | None, directed: bool
) -> None:
    pairs = st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=2 * size)
    graph: Any = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from(data.draw(pairs))
    ends = st.lists(st.integers(0, size - 1), min_size=1, max_size=4, unique=True)
    starts, targets = data.draw(ends), data.draw(ends)
    found = NetworkXAdapter(graph).paths(starts, targets, shortest=True, max_length=longest, capped=longest is not None)
    expected, hidden = [], False
    for start in starts:
        for end in targets:
            if start != end and nx.has_path(graph, start, end):
                far = nx.shortest_path_length(graph, start, end) > (longest or size)
                hidden |= far
                expected += [] if far else nx.all_shortest_paths(graph, start, end)
    assert sorted(item["nodes"] for item in found.items) == sorted(expected)
    assert found.caps_hit == (("max_path_length",) if hidden else ())
    assert NetworkXAdapter(graph).paths(starts, targets, shortest=True, max_length=longest).caps_hit == ()


@pytest.mark.slow
def test_the_shortest_path_has_any_length_and_time_is_a_cap() -> None:
    graph = nx.path_graph(300)
    adapter = NetworkXAdapter(graph)
    (path,) = adapter.paths([0], [299], shortest=True).items
    assert path["length"] == 299
    assert adapter.paths([0], [299], shortest=True, caps=Caps(timeout_s=1e-9)).caps_hit == ("timeout_s",)
    length = Comparison(Field(("length",)), "=", Constant(5))
    assert [len(item["nodes"]) for item in adapter.paths([0], None, where=length, shortest=True).items] == [6]
    assert adapter.paths([0], [299], where=length, shortest=True).caps_hit == (), "the condition asks for no more"
    assert adapter.paths([0], [299]).caps_hit == ("max_path_length",), "nothing of 3 edges, and a longer one exists"
    assert adapter.paths([0], [299], max_length=3).caps_hit == ()
    two = nx.union(nx.path_graph(3), nx.path_graph(["a", "b"]))
    assert NetworkXAdapter(two).paths([0], ["b"], shortest=True, max_length=1).caps_hit == ()


def test_a_longer_path_is_found_where_the_condition_refuses_the_shortest() -> None:
    graph = nx.cycle_graph(7)
    graph.nodes[5]["here"] = True
    here = Comparison(Field(("node", "here"), "any"), "=", Constant(True))
    found = NetworkXAdapter(graph).paths([0], [3], where=here, shortest=True)
    assert [item["nodes"] for item in found.items] == [[0, 6, 5, 4, 3]]
    found = NetworkXAdapter(graph).paths([0], [3], where=here, shortest=True, max_length=3, capped=True)
    assert found.caps_hit == ("max_path_length",)


@pytest.mark.parametrize(
    ("field", "expected"), [("degree", [4, 1, 1]), ("in_degree", [3, 0, 0]), ("out_degree", [1, 1, 1])]
)
def test_degrees_are_fields_of_every_graph(field: str, expected: list[int]) -> None:
    graph: Any = nx.DiGraph()
    graph.add_nodes_from(range(3))
    graph.add_edges_from([(1, 0), (2, 0), (0, 0)])
    graph.nodes[1]["in_degree"] = 9
    for at, number in enumerate(expected):
        where = Comparison(Field((field,)), "=", Constant(number))
        assert at in [item["id"] for item in NetworkXAdapter(graph).nodes(where).items]
        same = Comparison(Field((field,)), "=", Constant(graph.to_undirected().degree[at]))
        assert at in [item["id"] for item in NetworkXAdapter(graph.to_undirected()).nodes(same).items]
    order = (Order(Path((field,)), descending=True),)
    assert [item["id"] for item in NetworkXAdapter(graph, strict=True).nodes(None, order=order).items] == [0, 1, 2]
    assert NetworkXAdapter(graph).get_node(1) == {"id": 1, "attr.in_degree": 9}


@pytest.mark.parametrize(
    "values", [[1, 2, None], [1.5, None, 2.5], ["a", None, "b"], [[1], None, "b"], [True, None, False]]
)
def test_an_empty_list_has_an_answer_for_null(values: list[Any]) -> None:
    graph = nx.Graph()
    graph.add_nodes_from((number, {"n": value}) for number, value in enumerate(values))
    graph.add_node(len(values))
    graph.add_edges_from(((0, 1, {"n": values[0]}), (1, 2, {})))
    adapter = NetworkXAdapter(graph)
    nothing = Items(())
    for _ in range(2):  # the second time columns and indexes are there
        for condition, found in (
            (Comparison(Field(("n",)), "NOT IN", nothing), 4),
            (Not(Comparison(Field(("n",)), "IN", nothing)), 4),
            (Comparison(Field(("n",)), "IN", nothing), 0),
            (Not(Comparison(Field(("n",)), "NOT IN", nothing)), 0),
            (And((Comparison(Field(("n",)), "NOT IN", nothing), NullTest(Field(("n",))))), 2),
        ):
            assert len(adapter.nodes(condition).items) == found
    assert len(adapter.edges(Comparison(Field(("n",)), "NOT IN", nothing)).items) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [nx.Graph, *(pytest.param(kind, marks=pytest.mark.slow) for kind in (nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph))],
)
def test_the_time_limit_ends_the_making_of_tables_and_what_was_made_is_kept(kind: Any) -> None:
    graph = kind(nx.path_graph(30_000))
    whole, looks = Computed(), []
    whole.outgoing(graph, lambda: looks.append(1))
    whole.incoming(graph, lambda: looks.append(1))
    assert len(looks) > 5
    for last in range(len(looks)):
        left = iter(range(last))

        def look(left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise TimeoutError

        kept = Computed()
        with pytest.raises(TimeoutError):
            kept.outgoing(graph, look)
            kept.incoming(graph, look)
        assert kept.has("nodes") and not (kept.has("outgoing") and kept.has("incoming"))
        again, right = kept.incoming(graph), whole.incoming(graph)
        assert (again.first == right.first).all() and (again.heads == right.heads).all()
        assert (again.edges == right.edges).all()
    adapter = NetworkXAdapter(graph)
    found = adapter.paths([0], [9], caps=Caps(timeout_s=1e-9))
    assert (len(found.items), found.caps_hit) == (0, ("timeout_s",))
    assert len(adapter.paths([0], [3]).items) == 1


@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiGraph])
def test_paths_of_an_undirected_graph_are_in_the_order_of_its_edges(kind: Any) -> None:
    graph = kind()
    graph.add_nodes_from("abc")
    graph.add_edges_from([("a", "b"), ("b", "c")])  # each edge begins at the node where the one before ends
    for shortest in (False, True):
        found = NetworkXAdapter(graph).paths([*"abc"], None, max_length=1, shortest=shortest)
        assert [item["nodes"] for item in found.items] == [["a", "b"], ["b", "a"], ["b", "c"], ["c", "b"]]


@pytest.mark.parametrize("strict", [False, True])
def test_canonically_equivalent_texts_are_equal_and_stay_as_they_were_written(strict: bool) -> None:
    """With columns and without (``strict``), also for a column that has other values too."""
    graph = nx.DiGraph()
    names = ["Zu\u0308rich", "Z\u00fcrich", "Bern", "Zug"]
    graph.add_nodes_from((at, {"name": names[at % 4], "mixed": [*names[:2], 7, True][at % 4]}) for at in range(40))
    graph.add_edges_from((at, at + 1) for at in range(39))
    graph.add_nodes_from(["Rene\u0301", "Ren\u00e9"])
    adapter = NetworkXAdapter(graph, strict=strict)

    def count(text: str, kind: str = "nodes") -> int:
        found = getattr(adapter, kind)(parse_condition(text)[0])
        return len(found.items)

    for name in names[:2]:
        assert count(f'name = "{name}"') == count(f'name IN ("{name}", "x")') == count(f'mixed = "{name}"') == 20
        assert count(f'name != "{name}"') == 20 and count(f'mixed NOT IN ("{name}")') == 20
        assert count(f'source.name = "{name}"', "edges") == 20
    assert (count('name STARTS_WITH "Z\u00fc"'), count('name STARTS_WITH "Zu"'), count('name > "Zz"')) == (20, 10, 20)
    found = adapter.nodes(parse_condition('name = "Z\u00fcrich"')[0], order=[Order(Field(("name",)))])
    assert {item["name"] for item in found.items} == set(names[:2])
    assert [item["id"] for item in found.items][:4] == [0, 1, 4, 5]  # equal texts keep the order of the graph
    assert count('id = "Ren\u00e9"') == 2
    assert adapter.get_node("Ren\u00e9") == {"id": "Ren\u00e9"} and adapter.get_node("Rene\u0301") == {
        "id": "Rene\u0301"
    }
