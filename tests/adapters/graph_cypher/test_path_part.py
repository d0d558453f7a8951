"""Paths and walks in a Ladybug database, on the fetched part of the graph, against the NetworkX adapter on the same graph."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.graph import AdapterError, Caps
from knotwork.adapters.graph_cypher import open_database
from knotwork.adapters.graph_cypher.adapter import CypherAdapter
from knotwork.adapters.graph_networkx import NetworkXAdapter
from knotwork.lang.evaluate.conditions import counted
from support.examples import many
from support.graph_databases import write_ladybug
from support.path_commands import path_searches, walks

IDS = ("a0", "a1", "a2", "a3", "a4", "a9", "b0", "b1", 0, 1, 2, "nobody")
NODES = ("label = 'A'", "label = 'C'", "t = 'a'", "i > 0", "degree > 3", "t MATCHES '^a'", "label = 'Z'")
EDGES = (
    "relation = 'R'",
    "w > 0",
    "source.t = 'a'",
    "target.label = 'C'",
    "w > 0 OR t MATCHES 'a'",
    "source.degree > 4",
    "t != 'a'",
)
PATHS = ("length >= 2", "source.t = 'a'", "target.label = 'C'", "ANY node.label = 'C'", "ALL edge.w > 0", "NONE node.t = 'b'",
         "length = 1 OR length = 5", "source.i > 0 AND target.x = TRUE")  # fmt: skip


def some(count: int) -> int:
    return count if many(count) == count else count // 12


def told(graph: Any, ask: Any) -> Any:
    with counted():
        found = ask(graph)
    return [json.dumps(item, sort_keys=True, default=str) for item in found.items], found.caps_hit


@pytest.fixture(scope="module")
def apart(typed: CypherAdapter) -> CypherAdapter:
    """The database opened once more, so that it keeps no copy of the whole graph."""
    return open_database(typed.name, strict=True)


@pytest.mark.slow
@given(search=path_searches(IDS, NODES, EDGES, PATHS), most=st.integers(1, 40), longest=st.integers(1, 4))
@settings(max_examples=some(600))
def test_paths(apart: CypherAdapter, same: NetworkXAdapter, search: Any, most: int, longest: int) -> None:
    starts, ends, named = search
    caps = Caps(max_paths=most, max_path_length=longest)
    found = [
        told(graph, lambda graph: graph.paths(_tree(starts), _tree(ends), caps=caps, **named))
        for graph in (apart, same)
    ]
    assert found[0] == found[1]


@pytest.mark.slow
@given(search=path_searches(IDS, NODES, EDGES, PATHS), count=st.integers(1, 3))
@settings(max_examples=some(200))
def test_several_shortest_paths(apart: CypherAdapter, same: NetworkXAdapter, search: Any, count: int) -> None:
    starts, ends, named = search
    named = {**named, "shortest": True, "count": count}
    found = [told(graph, lambda graph: graph.paths(_tree(starts), _tree(ends), **named)) for graph in (apart, same)]
    assert found[0] == found[1]


@pytest.mark.slow
@given(walk=walks(IDS, EDGES))
@settings(max_examples=some(400))
def test_walks(apart: CypherAdapter, same: NetworkXAdapter, walk: Any) -> None:
    starts, named = walk
    assert told(apart, lambda graph: graph.walk(starts, **named)) == told(
        same, lambda graph: graph.walk(starts, **named)
    )


def _tree(given: Any) -> Any:
    from knotwork.adapters.graph import tree_of

    return tree_of(given) if isinstance(given, str) else given


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two chains of 30 nodes that meet at the end of the first."""
    nodes = [("N", {"id": at}) for at in range(60)]
    edges = [("E", ("N", at), ("N", at + 1), {}) for at in range(59)]
    return write_ladybug(
        tmp_path_factory.mktemp("chain") / "chain.lbug", {"N": {"id": "INT64"}}, nodes, [("E", "N", "N", {})], edges
    )


def test_only_the_part_between_the_ends_is_fetched(chain: Path) -> None:
    graph = open_database(f"ladybug:{chain}?pull=20")
    found = graph.paths([10], [13], max_length=3)
    assert [item["nodes"] for item in found.items] == [[10, 11, 12, 13]]
    assert found.caps_hit == ()
    assert found.used.startswith("paths from 1 nodes to 1 nodes; ")
    # Whether longer paths exist is not known within the ceiling.
    assert graph.paths([10], [13]).caps_hit == ("max_path_length",)
    assert len(graph.paths([3], [9], shortest=True).items) == 1
    with pytest.raises(AdapterError, match="FIND paths reaches more than 20 nodes and edges"):
        graph.paths([0], [59], shortest=True)
    plan = graph.explain("paths", None, starts=[10], ends="id > 57", max_length=3)
    assert plan.used == "paths from 1 nodes to 2 nodes, in the fetched part of the graph"
    assert "forwards from the starts and backwards from the ends, for paths of at most 3 edges" in plan.notes[-1]
    with pytest.raises(AdapterError, match="FIND paths needs the whole graph in memory"):
        graph.paths(None, None)
