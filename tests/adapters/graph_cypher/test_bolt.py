"""A server that speaks Bolt against the NetworkX adapter on the same graph, and its faults: on a real server, ArcadeDB."""

import socket
from collections.abc import Iterator
from random import Random
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.graph import AdapterError, Caps, tree_of
from knotwork.adapters.graph_cypher import bolt_database, is_database, open_database
from knotwork.adapters.graph_cypher.adapter import CypherAdapter
from knotwork.adapters.graph_cypher.address import parse_address
from knotwork.adapters.graph_cypher.bolt_database import BoltDatabase
from knotwork.adapters.graph_cypher.database import Statement
from knotwork.adapters.graph_networkx import NetworkXAdapter
from knotwork.adapters.graph_networkx.rows import Deadline
from knotwork.lang.trees.conditions import Field
from knotwork.lang.trees.gasl import Order
from support.bolt_server import PASSWORD, BoltServer, Relay, bolt_server, installed
from support.conditions import conditions
from support.examples import many
from support.path_commands import path_searches, walks
from support.typed_graph import BIG, TEXTS

needs_server = pytest.mark.skipif(installed() is None, reason="the server needs: pip install arcadedb-embedded")

VALUES = (*TEXTS, 0, 1, 2, -1, BIG, BIG + 1, 2**63 - 1, 0.0, 1.0, 1.5, -0.5, float(BIG), True, False, ["a"], [1, 2], [])
PATHS = (("id",), ("label",), ("t",), ("i",), ("attr", "label"), ("degree",), ("nothing",), ("odd `name`",), ("l",))
EDGE_PATHS = (("source",), ("relation",), ("w",), ("key",), ("source", "t"), ("target", "label"), ("target", "degree"))


LONG = "UNWIND range(1, 1000000) AS i UNWIND range(1, 50) AS j RETURN i"


def some(count: int) -> int:
    return count if many(count) == count else count // 30


@pytest.fixture(scope="module")
def server() -> Iterator[BoltServer]:
    with bolt_server() as started:
        random = Random(3)
        statements: list[tuple[str, dict[str, Any]]] = []
        for at in range(24):
            labels = random.choice((":P", ":Q", ":P:Q", ":`odd ``label`"))
            values = _present({name: random.choice(VALUES) for name in ("t", "i", "label", "odd `name`", "l")})
            key = f"n{at}" if at % 3 else at
            statements.append((f"CREATE (n{labels} $values)", {"values": {"id": key, **values}}))
        for at in range(40):
            relation = random.choice(("R", "S s"))
            values = _present({"at": at, "w": random.choice(VALUES), "relation": random.choice(TEXTS)})
            first, second = (random.choice((0, 3, "n1", "n2", "n4")) for _ in range(2))
            text = f"MATCH (a), (b) WHERE a.id = $first AND b.id = $second CREATE (a)-[:`{relation}` $values]->(b)"
            statements.append((text, {"first": first, "second": second, "values": values}))
        started.write_all(statements)
        yield started


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


@pytest.fixture(scope="module")
def graph(server: BoltServer) -> Iterator[CypherAdapter]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KNOTWORK_GRAPH_PASSWORD", PASSWORD)
        opened = open_database(server.url("?id=id"))
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def same(server: BoltServer, graph: CypherAdapter) -> NetworkXAdapter:
    """The same graph in memory, read with statements of its own, in the order of the server's ids."""
    made: Any = nx.MultiDiGraph()

    def rows(text: str) -> Any:
        return graph.database.run(Statement(text), Deadline(60))

    def shown(kind: Any, properties: Any, name: str) -> dict[str, Any]:
        kind = kind if isinstance(kind, str) else kind[0] if len(kind) == 1 else sorted(kind)
        return {name: kind} | {
            f"attr.{at}" if at == name else at: value for at, value in properties.items() if at != "id"
        }

    places = {}
    for at, (_, key, labels, properties) in enumerate(
        sorted(rows("MATCH (n) RETURN elementId(n), n.id, labels(n), properties(n)"))
    ):
        made.add_node(key)
        made.nodes[key].update(shown(labels, properties, "label"))
        places[key] = at
    found = rows("MATCH (a)-[r]->(b) RETURN a.id, b.id, elementId(r), type(r), properties(r)")
    for source, target, key, kind, properties in sorted(
        found, key=lambda row: (places[row[0]], places[row[1]], row[2])
    ):
        made.add_edge(source, target, key)
        made.edges[source, target, key].update(shown(kind, properties, "relation"))
    return NetworkXAdapter(made, "same")


def same_rows(graph: Any, same: Any, kind: str, where: Any, **rest: Any) -> None:
    found = [getattr(each, kind)(where, **rest) for each in (graph, same)]
    assert list(found[0].items) == list(found[1].items)
    assert found[0].caps_hit == found[1].caps_hit


@needs_server
@pytest.mark.slow
def test_the_graph(graph: CypherAdapter, same: NetworkXAdapter) -> None:
    assert len(same.find_nodes()) == 24
    same_rows(graph, same, "nodes", None)
    same_rows(graph, same, "edges", None)
    same_rows(graph, same, "nodes", None, order=[Order(Field(("degree",)), True)], limit=5)
    same_rows(graph, same, "nodes", None, limit=5)
    for ask in (
        lambda each: each.walk([0, "n1"], depth=2, direction="both", trace=True).items,
        lambda each: each.subgraph([3], 1).items,
        lambda each: each.connect([0, "n1"], [3, "n2"], via="relation = 'R'").items,
        lambda each: each.paths([0], [3], max_length=3).items,
        lambda each: each.measure("pagerank").items,
        lambda each: [each.get_node(at) for at in (0, "n1", "nobody", 2**70)],
        lambda each: each.node_values([0, "n1", "x"], ("t",)),
        lambda each: each.texts("nodes", "t"),
        lambda each: sorted(each.texts("edges", "relation")),
        lambda each: (each.schema.nodes, each.schema.edges, each.schema.multi, each.schema.labels, each.schema.id_types),
    ):  # fmt: skip
        assert ask(graph) == ask(same)


@needs_server
@pytest.mark.slow
@given(where=conditions(PATHS), limit=st.none() | st.integers(0, 9), most=st.integers(1, 30))
@settings(max_examples=some(4_000))
@pytest.mark.timeout(3_600)  # for a search of new examples
def test_nodes(graph: CypherAdapter, same: NetworkXAdapter, where: Any, limit: int | None, most: int) -> None:
    order = [] if limit is None or limit % 2 else [Order(Field(("i",)), True)]
    same_rows(graph, same, "nodes", where, order=order, limit=limit, caps=Caps(max_results=most))


@needs_server
@pytest.mark.slow
@given(where=conditions(EDGE_PATHS))
@settings(max_examples=some(1_000))
@pytest.mark.timeout(3_600)  # for a search of new examples
def test_edges(graph: CypherAdapter, same: NetworkXAdapter, where: Any) -> None:
    same_rows(graph, same, "edges", where)


IDS = (0, 3, 6, "n1", "n2", "n4", "n5", "nobody")
NODE_TEXTS = ("label = 'P'", "t = 'a'", "i > 0", "degree > 3", "t MATCHES '^a'", "label = 'Z'")
EDGE_TEXTS = (
    "relation = 'R'",
    "w > 0",
    "source.t = 'a'",
    "target.label = 'P'",
    "w > 0 OR relation MATCHES 'S'",
    "w != 'a'",
)
PATH_TEXTS = (
    "length >= 2",
    "source.i > 0",
    "target.label = 'P'",
    "ANY node.label = 'Q'",
    "ALL edge.w > 0",
    "length = 1 OR length = 5",
)


@pytest.fixture(scope="module")
def apart(server: BoltServer) -> Iterator[CypherAdapter]:
    """The graph opened once more, so that it keeps no copy of the whole graph."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KNOTWORK_GRAPH_PASSWORD", PASSWORD)
        opened = open_database(server.url("?id=id"), strict=True)
        yield opened
        opened.close()


def few(count: int) -> int:
    return count if many(count) == count else count // 40


@needs_server
@pytest.mark.slow
@given(
    search=path_searches(IDS, NODE_TEXTS, EDGE_TEXTS, PATH_TEXTS), most=st.integers(1, 40), longest=st.integers(1, 3)
)
@settings(max_examples=few(700))
@pytest.mark.timeout(3_600)  # for a search of new examples
def test_paths(apart: CypherAdapter, same: NetworkXAdapter, search: Any, most: int, longest: int) -> None:
    starts, ends, named = search
    caps = Caps(max_paths=most, max_path_length=longest)
    ends_of = [tree_of(each) if isinstance(each, str) else each for each in (starts, ends)]
    found = [graph.paths(*ends_of, caps=caps, **named) for graph in (apart, same)]
    assert list(found[0].items) == list(found[1].items)
    assert found[0].caps_hit == found[1].caps_hit


@needs_server
@pytest.mark.slow
@given(walk=walks(IDS, EDGE_TEXTS))
@settings(max_examples=few(400))
def test_walks(apart: CypherAdapter, same: NetworkXAdapter, walk: Any) -> None:
    starts, named = walk
    found = [graph.walk(starts, **named) for graph in (apart, same)]
    assert list(found[0].items) == list(found[1].items)


@needs_server
@pytest.mark.slow
def test_refusals_of_the_server(server: BoltServer) -> None:
    def run(url: str, password: str) -> str:
        database = BoltDatabase(parse_address(url), {"NEO4J_PASSWORD": password})
        try:
            with pytest.raises(AdapterError) as refused:
                database.run(Statement("RETURN 1"), Deadline(20))
        finally:
            database.close()
        assert not password or password not in f"{refused.value.message} {refused.value.hint}"
        return f"{refused.value.message}: {refused.value.hint}"

    wrong = run(server.url(), "wrong-password")
    assert "the server refused user 'root'" in wrong
    assert "KNOTWORK_GRAPH_PASSWORD" in wrong
    assert "Cannot open database" in run(server.url().replace("/g", "/nowhere"), PASSWORD)
    assert "is not an id: 24 nodes have" in _message(server.url("?id=t"))


def _message(url: str) -> str:
    database = BoltDatabase(parse_address(url), {"KNOTWORK_GRAPH_PASSWORD": PASSWORD})
    try:
        with pytest.raises(AdapterError) as refused:
            database.tables(Deadline(20))
    finally:
        database.close()
    return refused.value.message


@needs_server
@pytest.mark.slow
def test_a_connection_that_breaks_in_a_result(server: BoltServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bolt_database, "_RETRY_SECONDS", 1.0)
    with Relay(server.port) as relay:
        url = f"bolt://root@127.0.0.1:{relay.port}/g"
        database = BoltDatabase(parse_address(url), {"KNOTWORK_GRAPH_PASSWORD": PASSWORD})
        assert database.run(Statement("RETURN 1"), Deadline(60)) == [[1]]
        relay.cut_after = 200_000
        with pytest.raises(AdapterError, match="no connection to the server"):
            database.run(Statement(LONG), Deadline(60))
        relay.cut_after = None
        assert database.run(Statement("RETURN 2"), Deadline(60)) == [[2]]
        database.close()


@needs_server
@pytest.mark.slow
def test_a_statement_that_takes_too_long(server: BoltServer) -> None:
    database = BoltDatabase(parse_address(server.url()), {"KNOTWORK_GRAPH_PASSWORD": PASSWORD})
    deadline = Deadline(0.5)
    assert database.run(Statement(LONG), deadline) == []
    assert deadline.hit
    assert database.run(Statement("RETURN 2"), Deadline(60)) == [[2]]
    database.close()


@pytest.mark.slow
def test_a_server_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        database = BoltDatabase(parse_address(f"bolt://u@127.0.0.1:{silent.getsockname()[1]}"), {})
        deadline = Deadline(0.3)
        assert database.run(Statement("RETURN 1"), deadline) == []
        assert deadline.hit
        database.close()


@pytest.mark.slow
def test_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bolt_database, "_RETRY_SECONDS", 0.1)
    database = BoltDatabase(parse_address("bolt://127.0.0.1:1"), {})
    with pytest.raises(AdapterError, match="no connection to the server"):
        database.run(Statement("RETURN 1"), Deadline(20))
    database.close()
    with pytest.raises(AdapterError, match="the connection is closed"):
        database.run(Statement("RETURN 1"), Deadline(20))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("bolt://user:secret-word@host/db", "the URL contains a password"),
        ("bolt://user:secret/word@host/db", "the URL contains a password"),
        ("bolt://", "not the URL of a database"),
        ("bolt://host/a/b", "not the URL of a database"),
        ("bolt://host:port/a", "not a URL"),
        ("neo4j+s://host/db?ids=label", "ids has no meaning here"),
        ("bolt://host/db?idd=x", "unknown option"),
    ],
)
def test_urls_that_are_refused(url: str, message: str) -> None:
    assert is_database(url)
    with pytest.raises(AdapterError, match=message) as refused:
        open_database(url)
    assert "secret" not in f"{refused.value.message} {refused.value.hint}"


def test_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bolt_database, "find_spec", lambda name: None)
    with pytest.raises(AdapterError) as refused:
        open_database("bolt://host/db")
    assert refused.value.hint == "pip install 'knotwork[bolt]'"


def test_the_parts_of_a_url() -> None:
    made = parse_address("bolt://ann%40x@host:7688/db?id=key&label=kind&pull=5")
    assert (made.name, made.host, made.port, made.user, made.database) == (
        "bolt://ann%40x@host:7688/db",
        "host",
        7688,
        "ann@x",
        "db",
    )
    assert (made.id, made.label, made.pull) == ("key", "kind", 5)
    assert "ann@x" not in repr(made)
