"""MEASURE as a command: derived graphs, weights, settings, pairs, refusals, and the evidence of a value."""

from typing import Any

import networkx as nx
import pytest
from knotwork.adapters.graph import AdapterError
from support.executing import executor, library
from support.runners import evidence, plain, run, session


def links() -> Any:
    """Four people and a place; people know each other, and some live at the place."""
    graph: Any = nx.Graph()
    for name in ("ann", "bob", "cid", "dee"):
        graph.add_node(name, kind="person")
    graph.add_node("york", kind="place")
    graph.add_edge("ann", "bob", times=3)
    graph.add_edge("bob", "cid", times=1)
    graph.add_edge("ann", "york")
    graph.add_edge("cid", "york")
    return graph


def test_a_part_of_the_graph_is_measured_on_its_own() -> None:
    at = session(links())
    run('FIND nodes WHERE kind = "person" AS people', at)
    run("CONNECT people TO people AS inner", at)
    found = run("MEASURE people ON inner USING betweenness AS b", at)
    assert plain(found) == [
        {"id": "ann", "betweenness": 0.0}, {"id": "bob", "betweenness": pytest.approx(1 / 3)},
        {"id": "cid", "betweenness": 0.0}, {"id": "dee", "betweenness": 0.0},
    ]  # fmt: skip
    assert plain(run("MEASURE graph ON inner USING degree AS d", at)) == [
        {"id": "ann", "degree": 1}, {"id": "bob", "degree": 2}, {"id": "cid", "degree": 1},
    ]  # fmt: skip
    assert plain(run("MEASURE graph ON inner USING degree BY times AS d", at))[1] == {"id": "bob", "degree": 4.0}


def test_paths_subgraphs_and_rows_are_graphs_too() -> None:
    at = session(links())
    run('FIND paths FROM (id = "ann") TO (id = "cid") AS ways', at)
    assert plain(run("MEASURE graph ON ways USING summary AS s", at))[0]["edges"] == 4, "every edge once"
    run('FIND nodes WHERE id = "bob" AS bob', at)
    run("SUBGRAPH bob RADIUS 1 AS near", at)
    assert plain(run("MEASURE graph ON near USING summary AS s", at))[0]["nodes"] == 3
    rows = [
        {"source": "x", "target": "y", "n": 2},
        {"source": "y", "target": "z", "n": None},
        {"source": "x", "target": "y", "n": 1},
    ]
    found = run("MEASURE graph ON rows USING degree BY n AS d", at, rows=rows)
    assert plain(found) == [{"id": "x", "degree": 3.0}, {"id": "y", "degree": 3.0}, {"id": "z", "degree": 0.0}]
    assert found.summary["nulls"] == {"n": {"missing": 1}}
    assert found.message == "1 edge without n was not used"
    wrong = run("MEASURE graph ON bob USING degree AS d", at)
    assert (wrong.status, wrong.message) == ("schema_mismatch", 'item 1 of bob ("bob") is not an edge')
    assert run("MEASURE graph ON none USING degree AS d", at, none=[]).message == "none has no nodes to measure"


@pytest.mark.parametrize(
    ("by", "message"),
    [("n - 5", "n - 5 of item 1 of rows is -3; a weight must be at least 0"), ("t", 'is the text "a", not a number')],
)
def test_a_weight_that_can_not_be_used(by: str, message: str) -> None:
    rows = [{"source": "x", "target": "y", "n": 2, "t": "a"}]
    found = run(f"MEASURE graph ON rows USING degree BY {by} AS d", rows=rows)
    assert found.status == "schema_mismatch" and message in found.message
    at = session(links())
    found = run("MEASURE graph USING pagerank BY 2 - times AS r", at)
    assert (found.status, found.message) == (
        "schema_mismatch", "2 - times of the edge from ann to bob is below 0: -1; a cost or a weight must be at least 0"
    )  # fmt: skip


def test_pairs() -> None:
    at = session(links())
    assert plain(run("MEASURE graph USING common_neighbors AS p", at)) == [
        {"source": "ann", "target": "cid", "common_neighbors": 2}, {"source": "bob", "target": "york", "common_neighbors": 2},
    ]  # fmt: skip
    run('FIND nodes WHERE kind = "person" AS people', at)
    assert len(plain(run("MEASURE people USING jaccard AS p", at))) == 6
    pairs = [{"source": "cid", "target": "ann"}, {"source": "ann", "target": "nobody"}]
    assert plain(run("MEASURE pairs USING jaccard AS p", at, pairs=pairs)) == [
        {"source": "cid", "target": "ann", "jaccard": 1.0}
    ]


def test_edges_hits_and_the_summary() -> None:
    at = session(links())
    assert {"source": "ann", "target": "bob", "bridges": False} in plain(run("MEASURE graph USING bridges AS b", at))
    assert list(plain(run("MEASURE graph USING hits AS h", at))[0]) == ["id", "hub", "authority"]
    row = {
        "nodes": 5, "edges": 4, "density": 0.4, "components": 2, "largest_component": 4, "transitivity": 0.0,
        "reciprocity": None,
    }  # fmt: skip
    assert plain(run("MEASURE graph USING summary AS s", at)) == [row]


def test_every_node_and_every_linked_pair_of_the_measured_graph_has_a_row() -> None:
    graph: Any = nx.MultiGraph([("a", "b"), ("b", "c"), ("b", "c"), ("c", "c")])
    graph.add_node("alone")
    at = session(graph)
    cut = plain(run("MEASURE graph USING articulation AS m", at))
    assert [(row["id"], row["articulation"]) for row in cut] == [
        ("a", False),
        ("b", True),
        ("c", False),
        ("alone", False),
    ]
    assert plain(run("MEASURE graph USING bridges AS m", at)) == [
        {"source": "a", "target": "b", "bridges": True}, {"source": "b", "target": "c", "bridges": False},
        {"source": "c", "target": "c", "bridges": False},
    ]  # fmt: skip
    run('FIND edges WHERE source = "a" AS e', at)
    run("FIND nodes AS n", at)
    assert [row["id"] for row in plain(run("MEASURE graph ON e USING articulation AS m", at))] == ["a", "b"]
    assert len(plain(run("MEASURE n ON e USING articulation AS m", at))) == 4


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("louvain", "unknown algorithm louvain", 'did you mean communities(method = "louvain")?'),
        ("k_core", "unknown algorithm k_core", "did you mean core_number?"),
        ("pagerank(dampin = 1)", "pagerank has no setting dampin", "did you mean damping?"),
        ("triangles BY times", "triangles takes no weight", "remove BY; algorithms with a weight: pagerank"),
        ("in_degree", "in_degree needs a directed graph", "use degree"),
    ],
)
def test_what_is_refused(text: str, message: str, hint: str) -> None:
    with executor(graph=links()) as at:
        record = at.execute_one(f"MEASURE graph USING {text} AS x")
    assert record.status == "error"
    assert record.error is not None and record.error["message"].startswith(message)
    assert record.error["hint"].startswith(hint)


def test_the_evidence_tells_how_a_value_was_computed() -> None:
    at = session(links())
    graph = at.graph.schema.hash
    pieces = evidence(run("MEASURE graph USING pagerank(damping = 0.5) BY times AS r", at))[0]
    assert pieces[0]["kind"] == "graph" and pieces[0]["nodes"] == ["ann"]
    assert pieces[1] == {
        "kind": "computed", "step": "", "algorithm": "pagerank", "settings": {"damping": 0.5}, "weight": "times",
        "note": "pagerank, weighted by times; on the whole graph (5 nodes, 4 edges)", "graph": graph,
    }  # fmt: skip
    rows = [{"source": "x", "target": "y"}]
    assert evidence(run("MEASURE graph ON rows USING degree AS d", at, rows=rows))[0] == [
        {
            "kind": "computed",
            "step": "",
            "algorithm": "degree",
            "on": "rows",
            "note": "degree, unweighted without BY; on the graph made of rows (2 nodes, 1 edge)",
        }
    ]
    pair = evidence(run("MEASURE graph USING jaccard AS p", at))[0]
    assert pair[0] == {"kind": "graph", "nodes": ["ann", "cid"]}


@pytest.mark.parametrize(
    ("command", "note"),
    [
        ("MEASURE graph USING degree AS d",
         "degree, unweighted without BY (BY times would weight the edges, as a strength); on the whole graph (5 nodes, 4 edges)"),
        ("MEASURE graph USING closeness BY times AS d",
         "closeness, weighted by times; on the whole graph (5 nodes, 4 edges)"),
        ("MEASURE two USING triangles AS d",
         "triangles, unweighted: triangles takes no weight; on the whole graph (5 nodes, 4 edges); "
         "the rows are those of the 2 nodes in two"),
        ("MEASURE known USING core_number AS d",
         "core_number, unweighted: core_number takes no weight; on the whole graph (5 nodes, 4 edges); "
         "the rows are those of the 3 nodes in known; MEASURE graph ON known measures only its edges"),
        ("MEASURE known USING summary AS d",
         "summary, unweighted: summary takes no weight; on the whole graph (5 nodes, 4 edges); "
         "the nodes of known have no effect on the summary; MEASURE graph ON known measures only its edges"),
        ("MEASURE two ON known USING pagerank BY times AS d",
         "pagerank, weighted by times; on the graph made of known (3 nodes, 2 edges); the rows are those of the 2 nodes in two"),
        ("MEASURE graph ON rows USING pagerank AS d",
         "pagerank, unweighted: weight is negative on 1 of 2 edges (the first is -1, on the edge from y to z); "
         "on the graph made of rows (3 nodes, 2 edges)"),
    ],
)  # fmt: skip
def test_a_note_says_what_was_measured(command: str, note: str) -> None:
    at = session(links())
    run('FIND nodes WHERE id IN ("ann", "bob") AS two', at)
    run("FIND edges WHERE times > 0 AS known", at)
    rows = [{"source": "x", "target": "y", "weight": 2}, {"source": "y", "target": "z", "weight": -1}]
    assert run(command, at, rows=rows).notes == (note,)


def test_measured_values_are_kept_with_their_evidence() -> None:
    with executor(graph=library()) as at:
        at.execute_one("MEASURE graph USING pagerank AS ranks")
        at.execute_one("RANK ranks BY pagerank DESC LIMIT 1 AS top")
        at.execute_one("DECLARE top AS LIST")
        record = at.execute_one("UPDATE top WITH top")
        assert record.status == "success"
        assert record.provenance_summary["items"] == 1


def test_unnested_rows_of_one_edge_are_parallel_edges() -> None:
    graph: Any = nx.Graph()
    graph.add_edge("a", "b", ws=[1, 2, 4])
    graph.add_edge("b", "c", ws=[8])
    at = session(graph)
    run("FIND edges AS e", at)
    run("UNNEST e BY ws AS v AS u", at)
    found = plain(run("MEASURE graph ON u USING degree BY v AS m", at))
    assert {row["id"]: row["degree"] for row in found} == {"a": 7.0, "b": 15.0, "c": 8.0}


def test_weights_whose_sum_is_infinite_are_refused_or_scaled() -> None:
    graph: Any = nx.DiGraph()
    graph.add_edge("a", "b", weight=1e308)
    graph.add_edge("a", "c", weight=1e308)
    with pytest.raises(AdapterError, match="divide the weights"):
        run("MEASURE graph USING degree BY weight AS d", session(graph))
    ranks = plain(run("MEASURE graph USING pagerank AS p", session(graph)))
    assert sum(row["pagerank"] for row in ranks) == pytest.approx(1.0)
