"""Prepared copies: equal to the file in every answer, used while the file is unchanged, made anew when damaged, bounded."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork import gasl
from knotwork.adapters.graph import Caps
from knotwork.adapters.graph_networkx import NetworkXAdapter, find, loader, prepared_copy
from knotwork.adapters.graph_networkx.cleanup import normalise
from knotwork.adapters.graph_networkx.graph_summary import graph_hash
from knotwork.adapters.graph_networkx.loader import load
from knotwork.adapters.graph_networkx.prepared_copy import CopyFolder, PreparedGraph
from knotwork.adapters.graph_networkx.stored_columns import NotStorable
from knotwork.adapters.graph_networkx.tables import computed
from knotwork.lang.parse.gasl import parse_gasl
from knotwork.lang.trees.conditions import Field
from knotwork.lang.trees.gasl import Order
from support.conditions import conditions, graphs
from support.examples import many
from support.graphs import SAMPLES, people, write

pytestmark = pytest.mark.usefixtures("columns_for_small_graphs_too")


def tables_of(graph: Any) -> Any:
    return computed(graph).nodes(graph), computed(graph).edges(graph)


def copied(folder: Path, graph: Any) -> tuple[NetworkXAdapter, NetworkXAdapter, PreparedGraph]:
    """Return the adapters of a normalised graph and of its copy, and the copy. Raises ``NotStorable``."""
    live = NetworkXAdapter(graph, name="g")
    report = loader.LoadReport("g", "json", graph.is_directed(), graph.is_multigraph(), len(graph), graph.size(), 0.0)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    prepared_copy._write(folder, "n", graph, report, live.schema, tables_of(graph))
    found = prepared_copy._opened(folder, "n", "g", 0.0)
    adapter = NetworkXAdapter(found.graph, name="g")
    computed(found.graph).part("schema", lambda: found.schema)
    return live, adapter, found


def whole(graph: Any) -> str:
    """Return all of a graph as text: types, values, the order of nodes, neighbours, keys and attributes."""
    told = [
        type(graph).__name__,
        list(graph.graph.items()),
        [(node, list(data.items())) for node, data in graph.nodes.items()],
    ]
    for views in ("_succ", "_pred") if graph.is_directed() else ("_adj",):
        for node, neighbours in getattr(graph, views).items():
            for end, data in neighbours.items():
                told.append([node, end, list(data.items())])
    return repr(told)


def shown(found: Any) -> list[Any]:
    columns = None if found.columnar is None else found.columnar()
    return [
        list(found.items),
        repr(list(found.items)),
        found.caps_hit,
        found.used,
        None if columns is None else [columns.fields(), repr([columns.values(path) for path in COLUMNS])],
    ]


COLUMNS = [("a",), ("b",), ("a.b",), ("id",), ("degree",), ("source",), ("key",), ("attr.id",)]
NODE_PATHS = [("a",), ("b",), ("a", "b"), ("a.b",), ("id",), ("degree",), ("in_degree",), ("attr", "id"), ("none",)]
EDGE_PATHS = [("a",), ("b",), ("a", "b"), ("source",), ("key",), ("attr", "key"), ("source", "a"), ("target", "degree")]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(graphs(), st.booleans(), st.randoms(use_true_random=False))
def test_a_copy_is_the_graph(tmp_path_factory: pytest.TempPathFactory, graph: Any, raw: bool, random: Any) -> None:
    edges = list(graph.edges(keys=True, data=True) if graph.is_multigraph() else graph.edges(data=True))
    random.shuffle(edges)  # so that the neighbours of a node are in another order than the edges
    graph.remove_edges_from([edge[:-1] for edge in edges])
    graph.add_edges_from(edges)
    graph.graph.update(name="é\ud800", size=10**30, ratio=0.5)
    graph = normalise(graph, raw=raw)[0]
    live, adapter, found = copied(tmp_path_factory.getbasetemp() / "copy", graph)
    assert adapter.schema == live.schema
    assert all(node["id"] in adapter.schema.all_ids for node in live.find_nodes())
    assert "no such id" not in adapter.schema.all_ids
    assert graph_hash(found.graph) == graph_hash(graph)
    assert whole(adapter.graph) == whole(graph)
    assert adapter.graph is adapter.graph


PATTERNS = [
    parse_gasl(f"FIND patterns {text} AS p").items[0].command.patterns  # type: ignore[union-attr]
    for text in ("(p)-[r]->(o)<-[s]-(q)", "(p)-[r]-(q)-[s]-(p)", "(p)-[r]->(p)")
]
SEARCHES = st.tuples(
    graphs(), conditions(NODE_PATHS), conditions(EDGE_PATHS), st.sampled_from(NODE_PATHS), st.booleans()
)


def compare(folder: pytest.TempPathFactory, drawn: tuple[Any, ...], data: st.DataObject) -> None:
    graph, where, via, path, descending = drawn
    graph = normalise(graph)[0]
    live, adapter, _ = copied(folder.getbasetemp() / "copy", graph)
    order = [Order(Field(path), descending)]
    caps = Caps(max_results=data.draw(st.sampled_from([0, 2, 100])))
    some = data.draw(st.lists(st.sampled_from([0, 1, 2, "a", "b", "1", "(0, 1)", "x"]), max_size=3))
    direction = data.draw(st.sampled_from(["out", "in", "both"]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("knotwork.adapters.graph_networkx.stored_columns._FEW", data.draw(st.sampled_from([1, 32])))
        patch.setattr(find, "_LARGE", data.draw(st.sampled_from([1, 256])))
        patch.setattr(find, "_RECHECKED", data.draw(st.sampled_from([-1, 64])))
        for call in (
            lambda each: shown(each.nodes(where, caps=caps)),
            lambda each: shown(each.nodes(where, order=order)),
            lambda each: shown(each.nodes(None, order=order, limit=3)),
            lambda each: shown(each.nodes(None, limit=2, caps=caps)),
            lambda each: shown(each.edges(via, caps=caps)),
            lambda each: shown(each.edges(None, caps=caps)),
            lambda each: shown(each.edges(None, order=[Order(Field(("a",)), descending)])),
            lambda each: shown(each.paths(where, None, via=via, limit=20)),
            lambda each: shown(each.paths(None, where, shortest=True, limit=20)),
            *(lambda each, shape=shape: shown(each.patterns(shape, limit=20)) for shape in PATTERNS),
            lambda each: shown(each.walk(some, depth=2, direction=direction, caps=caps)),
            lambda each: shown(each.walk(some, via=via, depth=2, direction=direction, trace=True)),
            lambda each: shown(each.cycles(via=via, max_length=4, limit=20)),
            lambda each: shown(each.subgraph(some, 1, caps=caps)),
            lambda each: shown(each.connect(some, [0, "a", "b"], via=via)),
            lambda each: [each.get_node(id) for id in some],
            lambda each: each.node_values(some, path),
            lambda each: [each.texts(kind, name) for kind in ("nodes", "edges") for name in ("a", "b", "a.b")],
            lambda each: [each.explain("nodes", where), each.explain("edges", via), each.explain("paths", where)],
            lambda each: shown(each.measure("degree")),
        ):
            assert call(adapter) == call(live)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(SEARCHES, st.data())
def test_every_search_has_the_same_result(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[Any, ...], data: st.DataObject
) -> None:
    compare(tmp_path_factory, drawn, data)


@pytest.mark.slow
@settings(max_examples=many(1_000), deadline=None)
@given(SEARCHES, st.data())
def test_many_searches_have_the_same_results(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[Any, ...], data: st.DataObject
) -> None:
    compare(tmp_path_factory, drawn, data)


def test_values_that_json_changes_are_not_stored(tmp_path: Path) -> None:
    graph = nx.Graph()
    graph.add_node("a", x=(1, 2))
    with pytest.raises(NotStorable):
        copied(tmp_path / "copy", graph)
    report = loader.LoadReport("g", "json", False, False, 1, 0, 0.0)
    folder = CopyFolder(tmp_path / "copies")
    adapter = NetworkXAdapter(graph)
    folder.keep("x", graph, report, adapter.schema, tables_of(graph))
    assert (folder.notes, folder.entries(), os.listdir(folder.path)) == ([], [], [])


def test_what_is_written_to_the_graph_is_found(tmp_path: Path) -> None:
    _, adapter, _ = copied(tmp_path / "copy", normalise(people())[0])
    assert len(adapter.find_nodes('kind = "person"')) == 5
    adapter.graph.add_node("fay", kind="person")
    assert len(adapter.find_nodes('kind = "person"')) == 6
    adapter.graph.nodes["ann"]["kind"] = "robot"
    with pytest.warns(find.StaleGraphWarning):
        assert len(adapter.find_nodes('kind = "person"')) == 5


# Programs on files, with and without copies.

PROGRAM = """
DECLARE kept AS LIST WITH_DESCRIPTION "What was found."
FIND nodes AS all
FIND nodes ORDER BY age DESC LIMIT 2 AS oldest
FIND nodes WHERE age > 30 OR name IS NULL AS some
FIND edges WHERE weight >= 0.5 AND source.age > 1 AS heavy
FIND edges ORDER BY weight DESC LIMIT 3 AS heaviest
FIND paths FROM (age > 0) TO (degree >= 0) MAXLEN 3 AS ways
FIND paths FROM (id IN ("ann", "a")) TO (degree >= 1) SHORTEST AS short
FIND patterns (p)-[r]->(o)<-[s]-(q) WHERE p.id < q.id AND r.weight >= s.weight AS forks
FIND cycles MAXLEN 4 LIMIT 30 AS loops
FIND paths FROM (age > 30) TO (age < 30) SHORTEST 2 BY 1 + weight DIRECTION both LIMIT 20 AS cheap
WALK some DEPTH 2 DIRECTION both TRACE AS traced
WALK some DEPTH 2 DIRECTION both AS near
CONNECT some TO near AS between
SUBGRAPH some RADIUS 1 AS part
MEASURE graph USING pagerank AS ranks
MEASURE graph USING components AS groups
COUNT all BY degree AS degrees
AGGREGATE heavy BY source COMPUTE sum(weight) AS total AS totals
SELECT all FIELDS id, age AS pairs
JOIN ranks WITH groups ON id AS both
RANK both BY pagerank DESC LIMIT 2 AS top
EXPLAIN FIND nodes WHERE age > 30 AS x
UPDATE kept WITH top
UPDATE kept WITH heaviest
""".strip().splitlines()


def answers(path: Path, **options: Any) -> list[Any]:
    told: list[Any] = []
    with gasl.open(path, **options) as opened:
        told.append(opened.adapter.schema)
        for line in PROGRAM:
            record = opened.execute_one(line)
            metrics = {name: value for name, value in record.metrics.items() if name not in ("duration", "seconds")}
            told.append([line, record.status, record.value, repr(record.value), record.error, record.summary, metrics])
        told.append([opened.state.hash, opened.state.get("kept")])
        told.append(opened.adapter.told)
    return told


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(prepared_copy, "SMALLEST_FILE", 0)
    monkeypatch.setattr(
        "knotwork.runtime.models.factory.graph_copies", lambda: CopyFolder(tmp_path / "home", smallest=0)
    )
    monkeypatch.setattr(prepared_copy, "_FRESH", -(10**18))  # the files of a test are always new
    return tmp_path / "home"


def odd(kind: type) -> Any:
    """Return a graph with ids, keys and attributes of every kind that the formats can hold."""
    graph = kind()
    for at, (id, data) in enumerate({
        "ann": {"age": 41, "name": "Ann <SEP> \u00e9\U0001f600", "n": "007"}, "bob": {"age": 35}, "": {"name": "", "age": 1},
        "a b": {"age": -1, "name": "x" * 300}, "\u540d\u524d": {"name": '"quoted"'}, "cid": {},
    }.items()):  # fmt: skip
        graph.add_node(id, **data)
        for other in list(graph)[: at + 1 : 2]:
            graph.add_edge(id, other, weight=at / 4, note=f"n{at}")
    if graph.is_multigraph():
        graph.add_edge("bob", "ann", weight=7.5, note="again")
    return graph


def files(folder: Path) -> list[Path]:
    made = [write(folder, f"sample.{suffix}", text) for suffix, text in SAMPLES.items()]
    for kind in (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph):
        graph, name = odd(kind), kind.__name__
        nx.write_graphml(graph, folder / f"{name}.graphml")
        nx.write_gexf(graph, folder / f"{name}.gexf")
        nested = graph.copy()
        for node, data in nested.nodes(data=True):
            data.update(
                nested={"b": [1, None, {"c": node}], "a": 1.0}, flag=node == "ann", list=[1, 1.0, True, "1"], null=None
            )
        write(folder, f"{name}.json", json.dumps(nx.node_link_data(nested, edges="edges")))
        plain = nx.relabel_nodes(graph, {"": "none"})
        nx.write_gml(plain, folder / f"{name}.gml")
        made += [folder / f"{name}.{suffix}" for suffix in ("graphml", "gexf", "json", "gml")]
    return made


@pytest.mark.slow
def test_programs_have_the_same_answers_on_every_format_and_kind_of_graph(tmp_path: Path, home: Path) -> None:
    for path in files(tmp_path):
        for raw in (False, True):
            plain = answers(path, raw=raw, cache=False)
            first = answers(path, raw=raw)
            assert not load(path, raw=raw, copies=None).report.prepared
            assert load(path, raw=raw, copies=CopyFolder(home, smallest=0)).report.prepared, path
            again = answers(path, raw=raw)
            assert first == plain, path
            assert again == plain, path


@pytest.mark.slow
def test_the_report_of_the_loading_is_kept(tmp_path: Path, home: Path) -> None:
    for path in files(tmp_path):
        first, again = (load(path, copies=CopyFolder(home, smallest=0)).report for _ in range(2))
        assert (first.prepared, again.prepared) == (False, True)
        assert again.messages == first.messages
        same = {"seconds": 0, "prepared": False}
        assert {**again.as_json(), **same} == {**first.as_json(), **same}
