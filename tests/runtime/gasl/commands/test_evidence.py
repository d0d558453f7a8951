"""Evidence: what lies beside items, and how it is carried along, lazily and bounded."""

from typing import Any

import pytest
from knotwork.runtime.gasl.commands.evidence import MOST, Lazy, derived, united
from knotwork.runtime.gasl.records import Value
from support.runners import evidence, plain, run, session


def piece(node: Any) -> dict[str, Any]:
    return {"kind": "graph", "nodes": [node]}


def test_a_node_bears_its_id_its_sources_and_a_snippet() -> None:
    result = run('FIND nodes WHERE id IN ("Ada", "Engines") AS x')
    assert evidence(result) == [
        [{"kind": "graph", "nodes": ["Ada"], "source_id": ["c1"], "snippet": "Ada wrote papers."}],
        [{"kind": "graph", "nodes": ["Engines"], "source_id": ["c1", "c3"], "doc_id": ["d1"]}],
    ]


def test_an_edge_bears_its_ends() -> None:
    result = run('FIND edges WHERE source = "Ada" AS x')
    assert evidence(result) == [
        [{"kind": "graph", "edges": [["Ada", "Engines"]], "source_id": ["c1"], "file_path": ["a.txt"]}]
    ]


def test_what_stands_first_tells_a_node_from_an_edge() -> None:
    import networkx as nx

    graph: nx.Graph[str] = nx.Graph()
    graph.add_node("a", source="wiki", target="all")
    graph.add_edge("a", "b", id="e1")
    at = session(graph)
    assert evidence(run('FIND nodes WHERE id = "a" AS n', at)) == [[{"kind": "graph", "nodes": ["a"]}]]
    assert evidence(run("FIND edges AS e", at)) == [[{"kind": "graph", "edges": [["a", "b"]]}]]
    assert [item["id"] for item in plain(run("WALK n AS x", at))] == ["b"]
    assert run("WALK e AS x", at).message == "no node is reached from e", "both ends are where it begins"


def test_a_path_bears_its_nodes_its_edges_and_their_sources() -> None:
    at = session(variables={"ada": ["Ada"], "logic": ["Logic"]})
    assert evidence(run("FIND paths FROM ada TO logic AS x", at)) == [
        [
            {
                "kind": "graph", "nodes": ["Ada", "Engines", "Logic"], "edges": [["Ada", "Engines"], ["Engines", "Logic"]],
                "source_id": ["c1"], "file_path": ["a.txt"],
            }
        ]
    ]  # fmt: skip


def test_a_subgraph_bears_what_is_in_it() -> None:
    (pieces,) = evidence(run("SUBGRAPH ada RADIUS 1 AS x", ada=["Ada"]))
    assert pieces[0]["nodes"] == ["Ada", "Engines"]
    assert pieces[0]["edges"] == [["Ada", "Engines"]]
    assert pieces[0]["source_id"] == ["c1", "c3"]


def test_the_snippet_is_of_the_chunk_around_the_name_and_short() -> None:
    chunks = {"c1": "word " * 200 + "and then Ada\nspoke " + "word " * 200}
    result = run('FIND nodes WHERE id = "Ada" AS x', session(chunks=chunks.get))
    snippet = evidence(result)[0][0]["snippet"]
    assert "and then Ada spoke" in snippet
    assert len(snippet) <= 240
    assert snippet.startswith("…") and snippet.endswith("…")


def test_sources_in_one_text_are_parted() -> None:
    import networkx as nx

    graph: nx.Graph[str] = nx.Graph()
    graph.add_node("a", source_id="c1<SEP>c2<SEP>c1", doc_id=7)
    assert evidence(run("FIND nodes AS x", session(graph))) == [
        [{"kind": "graph", "nodes": ["a"], "source_id": ["c1", "c2"], "doc_id": ["7"]}]
    ]


def test_evidence_is_made_when_it_is_asked_for() -> None:
    asked: list[str] = []

    def chunks(chunk: str) -> str | None:
        asked.append(chunk)
        return None

    result = run("FIND nodes AS x", session(chunks=chunks))
    assert result.value is not None
    assert len(result.value.evidence) == 7
    assert asked == []
    result.value.evidence_at(0)
    assert asked == ["c1"]


def test_filters_projections_and_ranks_keep_each_items_own() -> None:
    at = session(variables={"v": Value([{"n": 1}, {"n": 3}, {"n": 2}], [[piece("a")], [piece("b")], [piece("c")]])})
    assert evidence(run("SELECT v WHERE n > 1 AS x", at)) == [[piece("b")], [piece("c")]]
    assert evidence(run("SELECT v FIELDS n AS x", at)) == [[piece("a")], [piece("b")], [piece("c")]]
    assert evidence(run("RANK v BY n DESC LIMIT 2 AS x", at)) == [[piece("b")], [piece("c")]]


def test_groups_unite_that_of_their_members() -> None:
    at = session(
        variables={
            "v": Value(
                [{"k": 1}, {"k": 2}, {"k": 1}, {"k": 1}], [[piece("a")], [piece("b")], [piece("c")], [piece("a")]]
            )
        }
    )
    assert evidence(run("COUNT v BY k AS x", at)) == [[piece("a"), piece("c")], [piece("b")]]
    made = {"kind": "computed", "step": "", "columns": {"count": "count()"}}
    assert evidence(run("AGGREGATE v BY k COMPUTE count() AS x", at)) == [
        [piece("a"), piece("c"), {**made, "over": 3}],
        [piece("b"), {**made, "over": 1}],
    ]
    assert evidence(run("AGGREGATE v COMPUTE count() AS x", at))[0][-1] == {**made, "over": 4}
    assert evidence(run("COUNT v AS x", at)) == [[piece("a"), piece("b"), piece("c")]]


def test_joins_and_sets_unite_that_of_both_sides() -> None:
    left, right = Value([{"k": 1}], [[piece("a")]]), Value([{"k": 1}], [[piece("b")]])
    at = session(variables={"a": left, "b": right})
    for text in ("JOIN a WITH b ON k", "UNION a WITH b", "UNION a WITH b ON k", "INTERSECT a WITH b ON k"):
        assert evidence(run(f"{text} AS x", at)) == [[piece("a"), piece("b")]], text
    assert plain(run("EXCEPT a WITH b AS x", at)) == []


@pytest.mark.slow
def test_what_stands_for_many_bears_a_bounded_part_and_says_how_much_is_left_out() -> None:
    made: list[int] = []

    def make(index: int) -> list[Any]:
        made.append(index)
        return [piece(index)]

    items = [{"k": 1}] * 100_000
    at = session(variables={"v": Value(items, Lazy(len(items), make))})
    (pieces,) = evidence(run("COUNT v BY k AS x", at))
    assert len(pieces) == MOST
    assert pieces[-1] == {**piece(MOST - 1), "more": 100_000 - MOST}
    assert len(made) == MOST


def test_derived_of_derived_is_made_at_once_before_it_lies_too_deep() -> None:
    value = Value([1, 2], [[piece("a")], [piece("b")]])
    made: list[int] = []

    def below(value: Value, level: int) -> Any:
        def make(at: int) -> Any:
            made.append(level)
            return value.evidence_at(at)

        return make

    for level in range(100):
        value = Value([1, 2], derived(2, below(value, level), [value]))
        assert isinstance(value.evidence, Lazy) and value.evidence.depth <= 32
    assert value.evidence_at(1) == [piece("b")]
    assert len(made) <= 200, "each row of each is made once"


def test_united_keeps_order_and_drops_what_is_the_same() -> None:
    assert united([[piece(1), piece(2)], [piece(2)], [], [piece(True)]]) == [piece(1), piece(2), piece(True)]


def test_items_without_evidence_have_none() -> None:
    assert evidence(run("SELECT v FIELDS n AS x", v=[{"n": 1}])) == [[]]


def test_each_count_of_a_counter_has_the_evidence_of_its_own_rows() -> None:
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(
        (number, {"kind": "even" if number % 2 == 0 else "odd" if number < 7 else None}) for number in range(200)
    )
    at = session(graph)
    for text in ("FIND nodes AS x", "COUNT x BY kind AS c", "DECLARE k AS COUNTER", "UPDATE k WITH c"):
        run(text, at)
    pieces = at.state.snapshot().evidence("k")
    nodes: dict[str, list[int]] = {}
    for each in pieces:
        nodes.setdefault(each["key"], []).extend(each["nodes"])
    assert nodes == {"even": list(range(0, 128, 2)), "odd": [1, 3, 5], "null": list(range(7, 135, 2))}
    assert {each["key"]: each["more"] for each in pieces if "more" in each} == {"even": 36, "null": 33}


@pytest.mark.slow
def test_a_counter_of_many_keys_has_bounded_evidence_and_says_so() -> None:
    rows = [{"kind": f"k{number}", "count": 50} for number in range(2_000)]
    proof = [[piece(f"{number}.{at}") for at in range(50)] for number in range(2_000)]
    at = session(variables={"c": Value(rows, proof)})
    for text in ("DECLARE k AS COUNTER", "UPDATE k WITH c"):
        run(text, at)
    pieces = at.state.snapshot().evidence("k")
    assert len(pieces) == 2_000 * 8
    assert [each.get("more") for each in pieces[:8]] == [None] * 7 + [42]
