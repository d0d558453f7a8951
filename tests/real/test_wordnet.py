"""WordNet as a directed multigraph of 41,000 synsets: every operator against a loop over the data, and NetworkX's own answers."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import networkx as nx
import pytest
from knotwork import gasl
from support.cpu_time import pace
from support.folders import DATA

WORDS = DATA / "graphs/wn18rr"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WORDS.is_dir(), reason="the graph is not at hand (KNOTWORK_TEST_DATA names its folder)"),
]


@pytest.fixture(scope="module")
def graph() -> "nx.MultiDiGraph[str]":
    """Read the graph: a name and a definition at each node, a relation at each edge."""
    made: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for line in (WORDS / "entity2text.txt").read_text(encoding="utf-8").splitlines():
        node, text = line.split("\t", 1)
        name, _, definition = text.partition(",")
        made.add_node(node, name=name, definition=definition.strip())
    for part in ("train", "dev", "test"):
        for line in (WORDS / f"{part}.tsv").read_text(encoding="utf-8").splitlines():
            head, relation, tail = line.split("\t")
            made.add_edge(head, tail, relation=relation.lstrip("_"))
    return made


@pytest.fixture(scope="module")
def words(graph: Any) -> Iterator[gasl.GASLExecutor]:
    with gasl.open(graph) as opened:
        yield opened


def found(words: gasl.GASLExecutor, text: str) -> Any:
    """Run a command and return its value; it takes no more than 10 s of the processor."""
    began = process_time()
    record = words.execute_one(text)
    assert process_time() - began < 10 * pace(), text
    assert record.status in ("success", "empty"), (text, record.error)
    return record.value or []


OPERATORS: dict[str, Callable[[str, dict[str, Any], int], bool]] = {
    'name = "dog"': lambda node, at, degree: at["name"] == "dog",
    'name != "dog"': lambda node, at, degree: at["name"] != "dog",
    'name <> "dog"': lambda node, at, degree: at["name"] != "dog",
    "degree > 50": lambda node, at, degree: degree > 50,
    "degree >= 50 AND degree < 60": lambda node, at, degree: 50 <= degree < 60,
    "degree <= 1": lambda node, at, degree: degree <= 1,
    'name IN ("dog", "cat")': lambda node, at, degree: at["name"] in ("dog", "cat"),
    'name NOT IN ("dog", "cat")': lambda node, at, degree: at["name"] not in ("dog", "cat"),
    'definition CONTAINS "domestic"': lambda node, at, degree: "domestic" in at["definition"],
    'name STARTS_WITH "dog"': lambda node, at, degree: at["name"].startswith("dog"),
    'name ENDS_WITH "dog"': lambda node, at, degree: at["name"].endswith("dog"),
    'definition MATCHES "^any of .* dogs?"': lambda node, at, degree: bool(re.search("^any of .* dogs?", at["definition"])),
    "name IS NULL": lambda node, at, degree: False,
    "name IS NOT NULL": lambda node, at, degree: True,
    'NOT (name = "dog" OR degree > 3)': lambda node, at, degree: not (at["name"] == "dog" or degree > 3),
    'id > "14" AND name < "b"': lambda node, at, degree: node > "14" and at["name"] < "b",
}  # fmt: skip


@pytest.mark.parametrize("condition", OPERATORS)
def test_nodes_are_those_of_a_loop(words: gasl.GASLExecutor, graph: Any, condition: str) -> None:
    test, degrees = OPERATORS[condition], dict(graph.degree())
    wanted = [node for node, at in graph.nodes(data=True) if test(node, at, degrees[node])]
    assert [item["id"] for item in found(words, f"FIND nodes WHERE {condition} AS x")] == wanted
    found(words, "FIND nodes AS every")
    if "degree" not in condition:
        assert [item["id"] for item in found(words, f"SELECT every WHERE {condition} AS x")] == wanted


def test_edges_are_those_of_a_loop(words: gasl.GASLExecutor, graph: Any) -> None:
    name, degrees = graph.nodes(data="name"), dict(graph.degree())
    edges = list(graph.edges(keys=True, data="relation"))
    for condition, wanted in (
        ('relation = "hypernym" AND source.name STARTS_WITH "dog"',
         [e[:3] for e in edges if e[3] == "hypernym" and name[e[0]].startswith("dog")]),
        ('relation MATCHES "^has_part$" AND target.degree > 20',
         [e[:3] for e in edges if e[3] == "has_part" and degrees[e[1]] > 20]),
        ("key > 0", [e[:3] for e in edges if e[2] > 0]),
    ):  # fmt: skip
        items = found(words, f"FIND edges WHERE {condition} AS x")
        assert [(item["source"], item["target"], item["key"]) for item in items] == wanted


def test_paths_are_networkx_simple_paths(words: gasl.GASLExecutor, graph: Any) -> None:
    found(words, 'FIND nodes WHERE name STARTS_WITH "dog" AS dogs')
    paths = found(words, "FIND paths FROM dogs TO (degree > 100) MAXLEN 3 AS paths")
    starts = [node for node, name in graph.nodes(data="name") if name.startswith("dog")]
    ends = {node for node, degree in graph.degree() if degree > 100}
    wanted = Counter(
        tuple([edge[0] for edge in path] + [path[-1][1]])
        for start in starts
        for path in nx.all_simple_edge_paths(graph, start, ends - {start}, cutoff=3)
    )
    assert Counter(tuple(path["nodes"]) for path in paths) == wanted
    assert [path["length"] for path in paths] == sorted(path["length"] for path in paths)


def test_walks_measures_joins_and_groups(words: gasl.GASLExecutor, graph: Any) -> None:
    found(words, 'FIND nodes WHERE name = "dog" AS dog')
    (dog,) = (node for node, name in graph.nodes(data="name") if name == "dog")
    up = nx.DiGraph((a, b) for a, b, relation in graph.edges(data="relation") if relation == "hypernym")
    above = nx.single_source_shortest_path_length(up, dog, cutoff=4)
    walked = found(words, 'WALK dog VIA relation = "hypernym" DEPTH 4 DIRECTION out AS above')
    assert {item["id"] for item in walked} == set(above) - {dog}

    ranks = {item["id"]: item["pagerank"] for item in found(words, "MEASURE graph USING pagerank AS ranks")}
    assert (len(ranks), sum(ranks.values())) == (len(graph), pytest.approx(1))
    best = found(words, "RANK ranks BY pagerank DESC LIMIT 3 AS best")
    assert [item["pagerank"] for item in best] == sorted(ranks.values(), reverse=True)[:3]

    found(words, "FIND nodes AS every")
    found(words, "FIND edges AS edges")
    joined = found(words, "JOIN edges WITH every ON source = id AS joined")
    assert len(joined) == graph.number_of_edges()
    assert all(item["name"] == graph.nodes[item["source"]]["name"] for item in joined)
    rows = found(words, "AGGREGATE edges BY relation COMPUTE count() AS rows")
    wanted = Counter(relation for _, _, relation in graph.edges(data="relation"))
    assert {row["relation"]: row["count"] for row in rows} == wanted
    assert {row["relation"]: row["count"] for row in found(words, "COUNT edges BY relation AS counts")} == wanted


def test_a_cap_is_told_and_the_rest_is_there(words: gasl.GASLExecutor) -> None:
    record = words.execute_one("FIND paths AS some")
    assert (record.status, len(record.value)) == ("partial", 10_000)
    assert "max_paths" in record.error["message"]


def test_all_of_it_is_kept_once(graph: Any) -> None:
    with gasl.open(graph) as opened:
        for text in ("FIND nodes AS every", "DECLARE synsets AS LIST", *["UPDATE synsets WITH every"] * 2):
            found(opened, text)
        assert len(opened.state.get("synsets")) == graph.number_of_nodes()
