"""FIND patterns as a command: statuses, messages, evidence, the record's note, EXPLAIN and SET."""

import networkx as nx
import pytest
from knotwork.adapters.graph import AdapterError, Caps
from support.executing import executor, statuses
from support.runners import evidence, plain, run, session


def test_rows_have_the_items_of_their_names() -> None:
    result = run("FIND patterns (p:PERSON)-[r:WROTE]->(o)-[:ABOUT]->(t) WHERE p.born > 1850 AS rows")
    assert (result.status, result.count) == ("success", 1)
    assert plain(result) == [
        {
            "p": {"id": "Alan", "entity_type": "PERSON", "born": 1912, "source_id": "c2", "description": "Alan wrote papers."},
            "r": {"source": "Alan", "target": "Machines", "relation": "WROTE", "weight": 1.5},
            "o": {"id": "Machines", "entity_type": "PAPER", "year": 1936, "source_id": ["c1", "c3"], "doc_id": "d1"},
            "t": {"id": "Logic", "entity_type": "TOPIC", "info": {"field": "maths"}},
        }
    ]  # fmt: skip


def test_the_evidence_of_a_row_is_its_whole_match() -> None:
    (pieces,) = evidence(run('FIND patterns (p {id: "Ada"})-[:WROTE]->()-[:ABOUT]->(t) AS rows'))
    assert pieces == [
        {
            "kind": "graph",
            "nodes": ["Ada", "Engines", "Logic"],
            "edges": [["Ada", "Engines"], ["Engines", "Logic"]],
            "source_id": ["c1", "c3"],
            "doc_id": ["d1"],
            "file_path": ["a.txt"],
        }
    ]


def test_properties_and_conditions_take_variables() -> None:
    assert [row["o"]["id"] for row in plain(run("FIND patterns (p {id: ${who}})-->(o) AS x", who="Ada"))] == ["Engines"]
    found = run(
        "FIND patterns (p)-[r]->(o) WHERE p.id IN ${some} AND r.weight > ${least} AS x", some=["Ada", "Grace"], least=2
    )
    assert [row["p"]["id"] for row in plain(found)] == ["Grace"]


def test_what_is_missing_is_named() -> None:
    result = run("FIND patterns (p:PAPER)-[:WROTE]->(q:PERSON) AS x")
    assert (result.status, result.message) == (
        "empty", "no edge of type WROTE goes from a PAPER to a PERSON; 3 go the other way",
    )  # fmt: skip
    result = run("FIND patterns (p:PERSN)-->(q) AS x")
    assert (result.message, result.hint) == (
        'no node has entity_type "PERSN"', 'there is no "PERSN"; did you mean PERSON?',
    )  # fmt: skip


def test_several_patterns_of_a_row_use_an_edge_only_once() -> None:
    at = session(nx.DiGraph([("a", "b"), ("a", "c")]))
    found = plain(run("FIND patterns (x)-[r]->(y), (x)-[s]->(z) AS p", at))
    assert [(row["y"]["id"], row["z"]["id"]) for row in found] == [("b", "c"), ("c", "b")]


def test_a_cap_makes_it_partial_and_a_limit_does_not() -> None:
    few = session(caps=Caps(max_results=2))
    result = run("FIND patterns (p)-->(o) AS x", few)
    assert (result.status, result.caps_hit, result.count) == ("partial", ("max_results",), 2)
    assert result.message == "cut short by max_results (2); there may be more"
    assert run("FIND patterns (p)-->(o) LIMIT 2 AS x", few).status == "success"
    result = run("FIND patterns (p)-->(o) AS x", session(caps=Caps(max_examined=1)))
    assert result.message == "cut short by max_examined (1); there may be more"
    assert run("FIND patterns (p)-->(o) AS x", session(caps=Caps(max_rows=1))).caps_hit == ("max_rows",)


def test_the_record_says_that_arrows_of_an_undirected_graph_match_either_way() -> None:
    with executor(graph=nx.path_graph(3)) as opened:
        record = opened.execute_one("FIND patterns (a)-->(b) AS x")
        assert record.metrics["remark"] == "the graph is undirected: an arrow matches either way"
        assert record.metrics["count"] == 4


def test_a_graph_without_labels_refuses_them() -> None:
    with pytest.raises(AdapterError, match="no attribute that distinguishes kinds of nodes"):
        run("FIND patterns (a:PERSON)-->(b) AS x", session(nx.DiGraph([(1, 2)])))


def test_set_changes_the_number_of_edges_up_to_the_ceiling() -> None:
    seven = f"FIND patterns (a){'-->()' * 7} AS x"
    with pytest.raises(AdapterError, match="the patterns have 7 edges; at most 6 are allowed here"):
        run(seven)
    commands = ["SET adapter.caps.max_pattern_edges = 7", seven]
    with executor() as opened:
        assert statuses(opened.run_plan({"plan_id": "p", "why": "a test", "commands": commands})) == [
            "success",
            "empty",
        ]


def test_the_commands_behind_it_read_fields_of_names() -> None:
    text = """\
FIND patterns (p:PERSON)-[:WROTE]->(o:PAPER)<-[:WROTE]-(q:PERSON) WHERE p.id < q.id AS pairs
SELECT pairs FIELDS p.id AS one, q.id AS other, o.year AS year AS rows
COUNT pairs BY o.id AS papers"""
    with executor() as opened:
        pairs, rows, papers = opened.run_plan(text)
        assert [row["one"] + row["other"] for row in rows.value] == ["BenCyd", "CydDee", "CydEve", "DeeEve"]
        assert papers.value == [{"o.id": "Trees", "count": 1}, {"o.id": "Stones", "count": 3}]
        assert pairs.provenance_summary == {"items": 4, "sources": 5}


def test_explain() -> None:
    with executor() as opened:
        record = opened.execute_one("EXPLAIN FIND patterns (p:PERSON)-[r:WROTE]->(o) WHERE p.age < o.year AS x")
    assert record.value["how"] == (
        "start at p:PERSON by scan, 5 nodes; follow r (mean 1.2); check p.age < o.year; "
        "about 6 rows, about 1 examined for each start; no model calls"
    )
    assert (record.value["rows"], record.value["model_calls"]) == (6, 0)


@pytest.mark.parametrize(
    "per",
    ["q.v", "q", "lower(q.v)", "q.v + 1", "q.degree", "LEN q.v", "p.v, q.v", "q.v.k", "r.wt % 3", "number(q.v)",
     "1 / r.wt", "r.source.v", "if(q.v > 1, 1, 0)", "r", "q.t, r.wt % 2"],
)  # fmt: skip
def test_groups_of_rows_are_those_of_rank(per: str) -> None:
    graph: nx.MultiDiGraph = nx.MultiDiGraph()
    for name, value in {
        "a": [1, 2], "b": [1, 3], "c": {"k": 1}, "d": 1, "e": True, "f": "x", "g": None, "h": 1.0, "i": [1, 2],
        "j": 2**60, "k": 2**60 + 1, "l": "1", "m": -0.0, "n": 0, "o": float("inf"), "p": float("nan"),
    }.items():  # fmt: skip
        graph.add_node(name, v=value, t=name < "f")
    for at, name in enumerate(graph):
        graph.add_edge("a", name, wt=at)
        graph.add_edge(name, "b", wt=at)
    with executor(graph=graph) as opened:
        found = opened.execute_one(f"FIND patterns (p)-[r]->(q) LIMIT 2 PER {per} AS x")
        opened.execute_one("FIND patterns (p)-[r]->(q) AS y")
        ranked = opened.execute_one(f"RANK y BY r.wt * 0 LIMIT 2 PER {per} AS z")
        assert (found.status, found.value) == (ranked.status, ranked.value)
        if found.status == "schema_mismatch":
            assert found.error is not None and f"{per} of the node a: " in found.error["message"]
