"""What any engine behind the port to graphs has to do. A new adapter adds itself to ``ADAPTERS`` and passes.

The graph is small and told in full; every method of the port is asked something.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from knotwork.adapters.graph import AdapterError, Caps, GraphAdapter, GraphResult, Plan
from knotwork.lang.catalogue.schema import Schema
from knotwork.lang.trees.conditions import And, Comparison, Condition, Constant, Field, Items, Not, NullTest
from knotwork.lang.trees.gasl import Order, Path

NODES = [
    ("ada", {"kind": "PERSON", "born": 1815, "name": "Ada Lovelace"}),
    ("charles", {"kind": "PERSON", "born": 1791, "name": "Charles Babbage", "home": {"city": "London"}}),
    ("mary", {"kind": "PERSON", "name": "Mary Somerville"}),
    ("engine", {"kind": "MACHINE", "name": "Analytical Engine", "tags": ["brass", "steam"]}),
    ("notes", {"kind": "TEXT", "born": 1843, "name": "Notes"}),
]
EDGES = [
    ("ada", "notes", {"relation": "wrote", "weight": 3}),
    ("ada", "charles", {"relation": "knew", "weight": 2}),
    ("charles", "engine", {"relation": "designed", "weight": 5}),
    ("mary", "ada", {"relation": "taught", "weight": 1}),
    ("notes", "engine", {"relation": "describes", "weight": 4}),
]


def networkx_directed(strict: bool = False) -> GraphAdapter:
    import networkx as nx
    from knotwork.adapters.graph_networkx import NetworkXAdapter

    graph: Any = nx.DiGraph()
    graph.add_nodes_from(NODES)
    graph.add_edges_from(EDGES)
    return NetworkXAdapter(graph, "contract", strict)


ADAPTERS: dict[str, Callable[[], GraphAdapter]] = {
    "networkx": networkx_directed,
    "networkx, strict": lambda: networkx_directed(True),
}


@pytest.fixture(params=ADAPTERS)
def graph(request: pytest.FixtureRequest) -> GraphAdapter:
    return ADAPTERS[request.param]()


def test(name: str, operator: Any, value: Any) -> Condition:
    right = Items(tuple(Constant(each) for each in value)) if isinstance(value, tuple) else Constant(value)
    return Comparison(Field(tuple(name.split("."))), operator, right)


test.__test__ = False  # type: ignore[attr-defined]


def ids(found: GraphResult) -> list[Any]:
    return [item["id"] for item in found.items]


def test_it_is_a_graph_adapter(graph: GraphAdapter) -> None:
    assert isinstance(graph, GraphAdapter)


def test_all_nodes_and_edges_in_the_graphs_own_order(graph: GraphAdapter) -> None:
    assert graph.find_nodes() == [{"id": id, **attributes} for id, attributes in NODES]
    assert {(item["source"], item["target"]) for item in graph.find_edges()} == {(s, t) for s, t, _ in EDGES}
    json.dumps([*graph.find_nodes(), *graph.find_edges()])


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (test("kind", "=", "PERSON"), ["ada", "charles", "mary"]),
        (test("kind", "=", "person"), []),
        (test("born", ">", 1800), ["ada", "notes"]),
        (Not(test("born", ">", 1800)), ["charles"]),
        (NullTest(Field(("born",))), ["mary", "engine"]),
        (test("kind", "NOT IN", ("PERSON", "TEXT")), ["engine"]),
        (test("home.city", "=", "London"), ["charles"]),
        (test("tags", "CONTAINS", "steam"), ["engine"]),
        (test("name", "MATCHES", "^[MN]"), ["mary", "notes"]),
        (test("degree", ">=", 3), ["ada"]),
        (test("id", "IN", ("notes", "ada", "nobody")), ["ada", "notes"]),
        (And((test("kind", "=", "PERSON"), test("name", "STARTS_WITH", "A"))), ["ada"]),
    ],
)
def test_conditions_on_nodes(graph: GraphAdapter, where: Condition, found: list[str]) -> None:
    assert ids(graph.nodes(where)) == found
    assert [item["id"] for item in graph.find_nodes(where, 1)] == found[:1]


def test_the_different_texts_of_a_field(graph: GraphAdapter) -> None:
    for _ in range(2):  # before and after a search that may have made columns
        assert list(graph.texts("nodes", "kind")) == ["PERSON", "MACHINE", "TEXT"]
        assert list(graph.texts("nodes", "kind", 2)) == ["PERSON", "MACHINE"]
        assert list(graph.texts("nodes", "kind", 0)) == []
        assert list(graph.texts("nodes", "id")) == [id for id, _ in NODES]
        assert list(graph.texts("nodes", "home.city")) == ["London"]
        assert list(graph.texts("nodes", "born")) == list(graph.texts("nodes", "tags")) == []
        assert list(graph.texts("nodes", "nothing")) == list(graph.texts("nodes", "degree")) == []
        assert set(graph.texts("edges", "relation")) == {"wrote", "knew", "designed", "taught", "describes"}
        for name in ("kind", "id", "home.city", "born", "tags"):
            graph.nodes(test(name, "=", "x"))
        graph.edges(test("relation", "=", "x"))


def test_conditions_on_edges_reach_their_ends(graph: GraphAdapter) -> None:
    edges = graph.find_edges(And((test("source.kind", "=", "PERSON"), test("target.kind", "!=", "PERSON"))))
    assert edges == [
        {"source": "ada", "target": "notes", "relation": "wrote", "weight": 3},
        {"source": "charles", "target": "engine", "relation": "designed", "weight": 5},
    ]
    assert graph.find_edges(test("target", "=", "ada")) == [
        {"source": "mary", "target": "ada", "relation": "taught", "weight": 1}
    ]


def test_order_puts_null_last_either_way(graph: GraphAdapter) -> None:
    born = Path(("born",))
    assert ids(graph.nodes(None, order=[Order(born)])) == ["charles", "ada", "notes", "mary", "engine"]
    assert ids(graph.nodes(None, order=[Order(born, True)])) == ["notes", "ada", "charles", "mary", "engine"]
    both = [Order(Path(("kind",))), Order(born, True)]
    assert ids(graph.nodes(None, order=both, limit=3)) == ["engine", "ada", "charles"]


def test_a_cap_that_cuts_is_named_and_a_limit_is_none(graph: GraphAdapter) -> None:
    assert graph.nodes(None, caps=Caps(max_results=2)).caps_hit == ("max_results",)
    assert graph.nodes(None, limit=2, caps=Caps(max_results=2)).caps_hit == ()
    assert graph.nodes(None, caps=Caps(max_results=5)).caps_hit == ()
    assert graph.paths(None, None, caps=Caps(max_paths=2)).caps_hit == ("max_paths",)


def test_paths(graph: GraphAdapter) -> None:
    found = graph.paths(["ada"], ["engine"])
    assert [item["nodes"] for item in found.items] == [["ada", "notes", "engine"], ["ada", "charles", "engine"]]
    assert found.items[0] == {
        "source": "ada", "target": "engine", "length": 2, "nodes": ["ada", "notes", "engine"],
        "edges": [
            {"source": "ada", "target": "notes", "relation": "wrote", "weight": 3},
            {"source": "notes", "target": "engine", "relation": "describes", "weight": 4},
        ],
    }  # fmt: skip
    assert graph.find_paths(["engine"], ["ada"], 3) == []
    assert graph.find_paths(["mary"], ["engine"], 2) == []
    assert len(graph.find_paths(["mary"], ["engine"], 3)) == 2


def test_conditions_on_paths(graph: GraphAdapter) -> None:
    def nodes(**asked: Any) -> list[list[Any]]:
        starts, ends = asked.pop("starts", None), asked.pop("ends", None)
        return [item["nodes"] for item in graph.paths(starts, ends, **asked).items]

    people = test("kind", "=", "PERSON")
    assert nodes(starts=people, ends=people) == [["ada", "charles"], ["mary", "ada"], ["mary", "ada", "charles"]]
    assert nodes(where=And((test("source.id", "=", "ada"), test("length", "=", 1)))) == [
        ["ada", "notes"],
        ["ada", "charles"],
    ]
    assert nodes(starts=["ada"], ends=["engine"], via=test("weight", ">", 2)) == [["ada", "notes", "engine"]]
    anyone = Comparison(Field(("node", "kind"), "any"), "=", Constant("TEXT"))
    nobody = Comparison(Field(("node", "kind"), "none"), "=", Constant("TEXT"))
    heavy = Comparison(Field(("edge", "weight"), "all"), ">", Constant(2))
    assert nodes(starts=["ada"], ends=["engine"], where=anyone) == [["ada", "notes", "engine"]]
    assert nodes(starts=["ada"], ends=["engine"], where=nobody) == [["ada", "charles", "engine"]]
    assert nodes(starts=["ada"], ends=["engine"], where=heavy) == [["ada", "notes", "engine"]]
    assert nodes(starts=["mary"], ends=["charles", "engine"], shortest=True) == [
        ["mary", "ada", "charles"], ["mary", "ada", "notes", "engine"], ["mary", "ada", "charles", "engine"]
    ]  # fmt: skip


def test_a_node_by_id_or_name(graph: GraphAdapter) -> None:
    assert graph.get_node("notes") == graph.get_node("Notes") == {"id": "notes", **dict(NODES)["notes"]}
    assert graph.get_node("Nobody") is None


def test_around_nodes(graph: GraphAdapter) -> None:
    assert set(ids(graph.walk(["ada"]))) == {"notes", "charles"}
    assert set(ids(graph.walk(["ada"], depth=2))) == {"notes", "charles", "engine"}
    assert set(ids(graph.walk(["engine"], direction="in"))) == {"charles", "notes"}
    assert ids(graph.walk(["ada"], via=test("relation", "=", "wrote"))) == ["notes"]
    (part,) = graph.subgraph(["mary"], 1).items
    assert {node["id"] for node in part["nodes"]} == {"mary", "ada"}
    assert [(edge["source"], edge["target"]) for edge in part["edges"]] == [("mary", "ada")]
    assert {item["relation"] for item in graph.connect(["engine"], ["notes", "charles"]).items} == {
        "designed",
        "describes",
    }


def test_measures(graph: GraphAdapter) -> None:
    assert {"pagerank", "degree", "betweenness", "components", "communities"} <= set(graph.measures)
    assert graph.measure("degree", ["ada"]).items[0] == {"id": "ada", "degree": 3}
    assert len(graph.measure("pagerank").items) == 5
    with pytest.raises(AdapterError):
        graph.measure("astrology")


def test_the_schema(graph: GraphAdapter) -> None:
    schema = graph.schema
    assert isinstance(schema, Schema)
    assert (schema.directed, schema.multi, schema.nodes, schema.edges) == (True, False, 5, 5)
    assert schema.node_attributes["born"].count == 3


def test_explaining_runs_nothing_and_says_how(graph: GraphAdapter) -> None:
    for plan in (
        graph.explain("nodes", test("kind", "=", "PERSON")),
        graph.explain("edges", None),
        graph.explain("paths", None, starts=["ada"], ends=test("kind", "=", "MACHINE"), limit=1),
    ):
        assert isinstance(plan, Plan)
        assert plan.used
        assert plan.rows >= 0
    graph.invalidate()
    assert len(graph.nodes(None).items) == 5
