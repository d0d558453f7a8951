"""What any engine behind the port to graphs has to do. A new adapter adds itself to ``ADAPTERS`` and passes.

The graph is small and told in full; every method of the port is asked something.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import finalize

import pytest
from knotwork.adapters.graph import AdapterError, Caps, GraphAdapter, GraphResult, Plan
from knotwork.lang.catalogue.schema import Schema
from knotwork.lang.trees import walk
from knotwork.lang.trees.conditions import And, Comparison, Condition, Constant, Field, Items, Not, NullTest
from knotwork.lang.trees.gasl import Order
from support.bolt_server import PASSWORD, bolt_server, installed
from support.graph_databases import write_ladybug

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


def ladybug() -> GraphAdapter:
    """The same graph in a database, where the kind of a node is its label and the relation of an edge its type."""
    from knotwork.adapters.graph_cypher import open_database

    folder = TemporaryDirectory()
    common = {"id": "STRING", "name": "STRING", "born": "INT64"}
    tables = {
        "PERSON": {**common, "home": "STRUCT(city STRING)"},
        "MACHINE": {**common, "tags": "STRING[]"},
        "TEXT": common,
    }
    labels = {id: attributes["kind"] for id, attributes in NODES}
    path = write_ladybug(
        Path(folder.name) / "contract.lbug",
        tables,
        [(attributes["kind"], {"id": id, **_without(attributes, "kind")}) for id, attributes in NODES],
        [(each["relation"], labels[source], labels[target], {"weight": "INT64"}) for source, target, each in EDGES],
        [
            (each["relation"], (labels[source], source), (labels[target], target), _without(each, "relation"))
            for source, target, each in EDGES
        ],
    )
    adapter = open_database(f"ladybug:{path}?label=kind")
    finalize(adapter, folder.cleanup)
    return adapter


def _without(attributes: dict[str, Any], name: str) -> dict[str, Any]:
    return {each: value for each, value in attributes.items() if each != name}


def bolt() -> GraphAdapter:
    """The same graph on a real server, flattened: ArcadeDB refuses maps as properties, so ``home`` is a text."""
    from knotwork.adapters.graph_cypher.adapter import CypherAdapter
    from knotwork.adapters.graph_cypher.address import parse_address
    from knotwork.adapters.graph_cypher.bolt_database import BoltDatabase

    stack = ExitStack()
    server = stack.enter_context(bolt_server())
    statements: list[tuple[str, dict[str, Any]]] = []
    for id, attributes in NODES:
        values = {name: _flat(value) for name, value in _without(attributes, "kind").items()}
        statements.append((f"CREATE (n:{attributes['kind']} $values)", {"values": {"id": id, **values}}))
    for source, target, each in EDGES:
        text = f"MATCH (a), (b) WHERE a.id = $a AND b.id = $b CREATE (a)-[:{each['relation']} $values]->(b)"
        statements.append((text, {"a": source, "b": target, "values": _without(each, "relation")}))
    server.write_all(statements)
    address = parse_address(server.url("?id=id&label=kind"))
    adapter = CypherAdapter(BoltDatabase(address, {"KNOTWORK_GRAPH_PASSWORD": PASSWORD}), address)
    stack.callback(adapter.close)
    SERVERS.append(stack)
    return adapter


def _flat(value: Any) -> Any:
    return ", ".join(map(str, value.values())) if isinstance(value, dict) else value


SERVERS: list[ExitStack] = []
"""Servers that the tests of this file have started."""
MAPS = "ArcadeDB refuses maps as properties, so the graph on the server has no home.city"


@pytest.fixture(scope="session", autouse=True)  # another process may hand over tests of this file after its last one
def ended_servers() -> Iterator[None]:
    yield
    while SERVERS:
        SERVERS.pop().close()


ADAPTERS: dict[str, Callable[[], GraphAdapter]] = {
    "networkx": networkx_directed,
    "networkx, strict": lambda: networkx_directed(True),
    "ladybug": cache(ladybug),
    "bolt": cache(bolt),
}


def _param(name: str) -> Any:
    needs = pytest.mark.skipif(installed() is None, reason="the server needs: pip install arcadedb-embedded")
    return pytest.param(name, marks=[pytest.mark.slow, needs] if name == "bolt" else [])


@pytest.fixture(params=[_param(name) for name in ADAPTERS])
def graph(request: pytest.FixtureRequest) -> GraphAdapter:
    return ADAPTERS[request.param]()


@pytest.fixture
def has_maps(request: pytest.FixtureRequest) -> bool:
    """Whether the graph has an attribute that is an object."""
    return bool(request.node.callspec.params["graph"] != "bolt")


def test(name: str, operator: Any, value: Any) -> Condition:
    right = Items(tuple(Constant(each) for each in value)) if isinstance(value, tuple) else Constant(value)
    return Comparison(Field(tuple(name.split("."))), operator, right)


test.__test__ = False  # type: ignore[attr-defined]


def ids(found: GraphResult) -> list[Any]:
    return [item["id"] for item in found.items]


def test_it_is_a_graph_adapter(graph: GraphAdapter) -> None:
    assert isinstance(graph, GraphAdapter)


def test_all_nodes_and_edges_in_the_graphs_own_order(graph: GraphAdapter, has_maps: bool) -> None:
    nodes = [{"id": id, **attributes} for id, attributes in NODES]
    shown = nodes if has_maps else [{name: _flat(value) for name, value in node.items()} for node in nodes]
    assert graph.find_nodes() == shown
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
def test_conditions_on_nodes(graph: GraphAdapter, has_maps: bool, where: Condition, found: list[str]) -> None:
    if not has_maps and any(isinstance(node, Field) and node.path == ("home", "city") for node in walk(where)):
        pytest.skip(MAPS)
    assert ids(graph.nodes(where)) == found
    assert [item["id"] for item in graph.find_nodes(where, 1)] == found[:1]


def test_the_different_texts_of_a_field(graph: GraphAdapter, has_maps: bool) -> None:
    for _ in range(2):  # before and after a search that may have made columns
        assert list(graph.texts("nodes", "kind")) == ["PERSON", "MACHINE", "TEXT"]
        assert list(graph.texts("nodes", "kind", 2)) == ["PERSON", "MACHINE"]
        assert list(graph.texts("nodes", "kind", 0)) == []
        assert list(graph.texts("nodes", "id")) == [id for id, _ in NODES]
        assert list(graph.texts("nodes", "home.city")) == (["London"] if has_maps else [])
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
    born = Field(("born",))
    assert ids(graph.nodes(None, order=[Order(born)])) == ["charles", "ada", "notes", "mary", "engine"]
    assert ids(graph.nodes(None, order=[Order(born, True)])) == ["notes", "ada", "charles", "mary", "engine"]
    both = [Order(Field(("kind",))), Order(born, True)]
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
    assert graph.measure("pagerank").used == "pagerank, weighted by weight"
    assert graph.measure("betweenness").used == "betweenness, unweighted without BY, exact"
    cut = graph.measure("articulation").items
    assert {item["id"] for item in cut} == {name for name, _ in NODES}
    assert [item["id"] for item in cut if item["articulation"]] == ["ada"]
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
