"""The adapter for databases against the NetworkX adapter: what runs on a copy, the summary, EXPLAIN, ceilings and refusals."""

import subprocess
import sys
from pathlib import Path
from typing import Any
from unicodedata import normalize

import attrs
import pytest
from knotwork.adapters.graph import AdapterError, Caps
from knotwork.adapters.graph_cypher import is_database, open_database, pull
from knotwork.adapters.graph_cypher.adapter import CypherAdapter
from knotwork.adapters.graph_networkx import NetworkXAdapter
from knotwork.lang.evaluate.conditions import ConditionError
from knotwork.lang.parse.gasl import parse_condition, parse_gasl
from knotwork.lang.trees.conditions import Field
from knotwork.lang.trees.gasl import Order
from support.graph_databases import write_ladybug
from support.typed_graph import PATHS


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    nodes = [
        ("Person", {"id": 1, "name": "Ada"}),
        ("Person", {"id": 2, "name": "Bo"}),
        ("City", {"id": 1, "name": "Ulm"}),
    ]
    return write_ladybug(
        tmp_path_factory.mktemp("people") / "people.lbug",
        {"Person": {"id": "INT64", "name": "STRING"}, "City": {"id": "INT64", "name": "STRING"}},
        nodes,
        [("LIVES_IN", "Person", "City", {})],
        [("LIVES_IN", ("Person", 1), ("City", 1), {})],
    )


@pytest.fixture(scope="module")
def cities(tmp_path_factory: pytest.TempPathFactory) -> CypherAdapter:
    """Cities whose names are composed in one column and partly decomposed in another; ``plain`` is ASCII."""
    names = [
        "Z\u00fcrich",
        "Zu\u0308rich",
        "Zug",
        "Bern",
        "Gene\u0300ve",
        "Gen\u00e8ve",
        "K\u00f6niz",
        "\u212ao\u0308niz",
    ]
    rows = [
        ("City", {"id": f"{name}{at}", "name": name, "composed": normalize("NFC", name), "plain": f"c{at % 3}"})
        for at, name in enumerate(names)
    ]
    columns = dict.fromkeys(("id", "name", "composed", "plain"), "STRING")
    path = write_ladybug(tmp_path_factory.mktemp("cities") / "cities.lbug", {"City": columns}, rows)
    return open_database(f"ladybug:{path}")


@pytest.mark.parametrize("field", ["name", "composed"])
@pytest.mark.parametrize(
    ("test", "count"),
    [
        ('= "Zu\u0308rich"', 2), ('!= "Z\u00fcrich"', 6), ('IN ("K\u00f6niz", "Bern")', 3), ('NOT IN ("Gene\u0300ve")', 6),
        ('CONTAINS "\u00fc"', 2), ('CONTAINS "u"', 1), ('STARTS_WITH "Gen\u00e8"', 2), ('ENDS_WITH "o\u0308niz"', 2),
        ('MATCHES "^Z\u00fc"', 2), ('MATCHES "^Zu"', 1), ('>= "Zz"', 2), ('= "Bern"', 1),
    ],
)  # fmt: skip
def test_a_database_compares_unicode_forms_as_gasl_does(
    cities: CypherAdapter, field: str, test: str, count: int
) -> None:
    where, _ = parse_condition(f"{field} {test}")
    assert len(cities.find_nodes(where)) == count
    whole, _ = parse_condition(f"NOT ({field} {test})")
    assert len(cities.find_nodes(whole)) == 8 - count


def test_a_database_orders_and_groups_only_composed_texts(cities: CypherAdapter) -> None:
    for field in ("name", "composed"):
        order = (Order(Field((field,)), True),)
        found = cities.nodes(None, order=order, limit=3)
        assert [normalize("NFC", item[field]) for item in found.items] == ["Z\u00fcrich", "Z\u00fcrich", "Zug"]
    assert "test" not in cities.explain("nodes", parse_condition('composed CONTAINS "\u00fc"')[0]).used
    assert "test" in cities.explain("nodes", parse_condition('name CONTAINS "\u00fc"')[0]).used
    assert "test" not in cities.explain("nodes", parse_condition('name = "Bern"')[0]).used


@pytest.mark.slow
def test_a_database_and_the_local_model_share_a_process(people: Path) -> None:
    """The extension module of Ladybug once aborted the process in which the library of the local model was loaded after it."""
    pytest.importorskip("xllamacpp")
    text = (
        "from knotwork.adapters.graph_cypher import open_database\n"
        f"graph = open_database({'ladybug:' + str(people)!r})\n"
        "print(graph.database.dialect.name)\n"
        "import xllamacpp\n"
        "print(xllamacpp.__name__)\n"
    )
    ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "ladybug\nxllamacpp\n"), ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["in", "out", "both"])
@pytest.mark.parametrize("via", [None, 'relation = "R"', "target.degree > 3", "w > 0 OR t MATCHES 'a'"])
def test_around_nodes(typed: CypherAdapter, same: NetworkXAdapter, direction: Any, via: Any) -> None:
    for starts in (["a0", "a2"], [0, 1, "nobody", True], []):
        for depth in (1, 2, 3):
            found = [
                list(each.walk(starts, via=via, depth=depth, direction=direction, trace=True).items)
                for each in (typed, same)
            ]
            assert found[0] == found[1]
    found = [list(each.connect(["a0", "a1", "a2"], ["a3", 0, 1], via=via).items) for each in (typed, same)]
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("most", [0, 3, 2_000])
@pytest.mark.parametrize("direction", ["in", "out", "both"])
def test_edges_of_nodes_that_were_reached_together(
    typed: CypherAdapter, same: NetworkXAdapter, direction: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are fetched by one statement, or one by one if there are too many."""
    monkeypatch.setattr(pull, "_FEWEST_TOGETHER", 1)
    monkeypatch.setattr(pull, "_MOST_TOGETHER", most)
    for via in (None, "w > 0", "source.t = 'a' OR relation = 'R'"):
        for starts in (["a0"], ["a2", 0, 1]):
            found = [
                list(each.walk(starts, via=via, depth=4, direction=direction, trace=True).items)  # type: ignore[arg-type]
                for each in (typed, same)
            ]
            assert found[0] == found[1]
    assert list(typed.subgraph(["a0", 3], 3).items) == list(same.subgraph(["a0", 3], 3).items)


@pytest.mark.slow
def test_commands_on_a_copy(typed: CypherAdapter, same: NetworkXAdapter) -> None:
    (command,) = parse_gasl("FIND patterns (a:A)-[r]->(b)-[s]->(c) WHERE r.w > 0 AS x").statements
    patterns = command.command.patterns
    asked: list[Any] = [
        lambda graph: graph.subgraph(["a0", 3], 1).items,
        lambda graph: graph.subgraph(["a1"], 2).items,
        lambda graph: graph.paths(["a0"], None, max_length=3).items,
        lambda graph: graph.paths("t = 'a'", "label = 'C'", direction="both", shortest=True).items,
        lambda graph: graph.cycles(max_length=3).items,
        lambda graph: graph.patterns(patterns, command.command.where).items,
        lambda graph: graph.measure("pagerank").items,
        lambda graph: graph.measure("degree", ["a0", 1]).items,
        lambda graph: [graph.get_node(each) for each in ("a1", 1, "nobody", 2**70, "\ud800", -1)],
        lambda graph: [graph.has_node(each) for each in ("a1", 1, True, None, 1.0)],
        lambda graph: [graph.node_values(["a0", 1, "b3", "x", True], path) for path in (*PATHS, ("o", "z"))],
        lambda graph: [graph.texts("nodes", ".".join(path)) for path in PATHS],
        lambda graph: [graph.texts("nodes", "t", most) for most in (0, 1, 4)],
        lambda graph: [set(graph.texts("edges", name)) for name in ("t", "relation", "attr.relation", "source.t")],
    ]
    for ask in asked:
        assert list(ask(typed)) == list(ask(same))


@pytest.mark.slow
def test_the_summary(typed: CypherAdapter, same: NetworkXAdapter) -> None:
    mine, other = typed.schema, same.schema
    assert (mine.nodes, mine.edges, mine.directed, mine.multi) == (
        other.nodes,
        other.edges,
        other.directed,
        other.multi,
    )
    assert (mine.label_attribute, mine.labels) == (other.label_attribute, other.labels)
    assert (mine.relation_attribute, mine.relations) == ("relation", {"R": 24, "S s": 12})
    assert mine.id_types == {"text": 30, "integer": 15}
    assert mine.all_ids is not None
    assert "a0" in mine.all_ids
    for ours, theirs in ((mine.node_attributes, other.node_attributes), (mine.edge_attributes, other.edge_attributes)):
        for name, attribute in theirs.items():
            # A list or an object of a table is described by its type.
            if {"list", "object"} & set(attribute.types):
                assert (ours[name].count, ours[name].types) == (attribute.count, attribute.types)
            else:
                assert attrs.evolve(ours[name], values=()) == attrs.evolve(attribute, values=()), name
                assert sorted(map(str, ours[name].values)) == sorted(map(str, attribute.values))


@pytest.mark.slow
def test_what_runs_where(typed: CypherAdapter) -> None:
    plan = typed.explain("nodes", 't = "a" AND i < 1.5 AND t MATCHES "^a" AND label = "A"')  # type: ignore[arg-type]
    assert plan.used == "Cypher, then a test of the fetched rows"
    assert plan.notes[0].startswith(
        "MATCH (n:`A`) WHERE n.`t` = $p0 AND n.`i` <= 1 AND n.`t` STARTS WITH $p1; $p0 = 'a'; $p1 = 'a': "
    )
    assert plan.notes[1] == 'tested here: t MATCHES "^a"'
    found = typed.nodes('t MATCHES "^a" AND label = "A"')  # type: ignore[arg-type]
    matching = len(typed.find_nodes('t STARTS_WITH "a" AND label = "A"'))  # type: ignore[arg-type]
    assert matching < 15
    assert found.used == f'Cypher, {matching} rows fetched; tested here: t MATCHES "^a"'
    assert found.examined == matching
    none = typed.explain("edges", 'relation = "T"')  # type: ignore[arg-type]
    assert (none.rows, none.notes) == (0, ("no table has such edges: no statement is run",))
    assert "a copy of the graph in memory: 45 nodes and 36 edges are fetched" in typed.explain("cycles", None).notes


def test_the_same_id_twice(people: Path) -> None:
    with pytest.raises(AdapterError, match="Person and City both have a node 1") as refused:
        open_database(f"ladybug:{people}").nodes(None)
    assert "?ids=label" in refused.value.hint
    graph = open_database(f"ladybug:{people}?ids=label")
    assert graph.find_nodes("label = 'City'") == [{"id": "City:1", "label": "City", "name": "Ulm", "attr.id": 1}]  # type: ignore[arg-type]
    assert graph.find_edges() == [{"source": "Person:1", "target": "City:1", "relation": "LIVES_IN"}]
    assert [item["id"] for item in graph.walk(["Person:1", "Person:01", 1]).items] == ["City:1"]
    assert graph.get_node("Ada") == graph.get_node("Person:1")
    assert [node["id"] for node in graph.find_nodes("id IN ('Person:2', 'Person:x', 'City:1')")] == [
        "Person:2",
        "City:1",
    ]  # type: ignore[arg-type]


def test_ceilings_and_limits(people: Path) -> None:
    graph = open_database(f"ladybug:{people}?ids=label&pull=3&label=kind")
    with pytest.raises(
        AdapterError, match="FIND paths needs the whole graph in memory: 3 nodes and 1 edges are more than 3"
    ):
        graph.paths(None, None)
    assert graph.find_nodes("kind = 'City'")  # type: ignore[arg-type]
    small = open_database(f"ladybug:{people}?ids=label&pull=1")
    with pytest.raises(AdapterError, match="WALK reaches more than 1 nodes and edges"):
        small.walk(["Person:1"])
    assert graph.nodes(None, caps=Caps(timeout_s=0)).caps_hit == ("timeout_s",)
    with pytest.raises(ConditionError):
        graph.nodes("name MATCHES '('")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ladybug:", "has no path"),
        ("ladybug:/nowhere/x.lbug", "the file does not exist"),
        ("ladybug:.", "a folder, not a database file"),
        ("ladybug:pyproject.toml", "not a valid"),
        ("ladybug:x?lable=kind", "unknown option 'lable'"),
        ("ladybug:x?pull=many", "is not a number"),
        ("ladybug:x?ids=both", "is unknown"),
        ("ladybug:x?label=degree", "a computed field of nodes"),
        ("ladybug:x?relation=source", "a field of edges"),
    ],
)
def test_urls_that_are_refused(url: str, message: str) -> None:
    assert is_database(url)
    with pytest.raises(AdapterError, match=message):
        open_database(url)


def test_a_missing_extra(monkeypatch: pytest.MonkeyPatch, people: Path) -> None:
    monkeypatch.setattr("knotwork.adapters.graph_cypher.ladybug_database.find_spec", lambda name: None)
    with pytest.raises(AdapterError) as refused:
        open_database(f"ladybug:{people}")
    assert refused.value.hint == "pip install 'knotwork[ladybug]'"


def test_nothing_is_written(people: Path) -> None:
    graph = open_database(f"ladybug:{people}?ids=label")
    before = people.read_bytes()
    graph.find_nodes()
    with pytest.raises(AdapterError, match="read-only"):
        from knotwork.adapters.graph_cypher.database import Statement
        from knotwork.adapters.graph_networkx.rows import Deadline

        graph.database.run(Statement("CREATE (:City {id: 7})"), Deadline(10))
    graph.close()
    with pytest.raises(AdapterError, match="closed"):
        graph.find_nodes()
    assert people.read_bytes() == before
