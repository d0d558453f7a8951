"""Patterns with more rows than anything could hold end in time, in bounded memory, as partial results."""

import tracemalloc
from collections.abc import Iterator
from time import monotonic
from typing import Any

import networkx as nx
import pytest
from knotwork.adapters.graph import Caps, GraphResult
from knotwork.adapters.graph_networkx import NetworkXAdapter
from knotwork.lang.parse.gasl import parse_command
from knotwork.lang.trees.gasl import FindPatterns
from support.cpu_time import pace

pytestmark = pytest.mark.slow

LONGEST = 2.0
"""Seconds of the time limit in these tests."""
SIX = "(a)-[r]-(b)-[s]-(c)-[t]-(d)-[u]-(e)-[v]-(f)-[w]-(g)"


@pytest.fixture(scope="module")
def star() -> Any:
    """A star of 100,000 leaves, with a text and a number at each."""
    graph = nx.star_graph(100_000)
    for node, data in graph.nodes(data=True):
        data.update(entity_type="LEAF" if node else "HUB", name=f"n{node}", n=node % 7)
    return graph


@pytest.fixture(scope="module")
def clique() -> Any:
    """A clique of 400 nodes."""
    graph = nx.complete_graph(400)
    for node, data in graph.nodes(data=True):
        data.update(name=f"n{node}")
    return graph


def bounded(graph: Any, text: str, **caps: Any) -> GraphResult:
    """Search within the time limit plus a second, and 256 MiB."""
    command = parse_command(f"FIND patterns {text} AS x").statements[0].command
    assert isinstance(command, FindPatterns)
    adapter = NetworkXAdapter(graph)
    assert adapter.schema
    limit = command.limit
    assert limit is None or isinstance(limit, int)
    given = Caps(timeout_s=LONGEST, **caps)
    began = monotonic()
    result = adapter.patterns(
        command.patterns, command.where, order=command.order, limit=limit, per=command.per, caps=given
    )
    items = list(result.items[:1000])
    assert monotonic() - began < (LONGEST + 1) * pace()
    assert len(items) <= 1000
    tracemalloc.start()
    try:
        adapter.invalidate()
        adapter.patterns(command.patterns, command.where, order=command.order, limit=limit, per=command.per, caps=given)
        assert tracemalloc.get_traced_memory()[1] < 256 * 2**20
    finally:
        tracemalloc.stop()
    return result


STARS: tuple[tuple[str, set[str]], ...] = (
    ("(a)-[r]-(h)-[s]-(b)", {"max_results"}),
    ("(a)-[r]-(h)-[s]-(b) WHERE a.name < b.name", {"max_results"}),
    ("(a)-[r]-(h)-[s]-(b) WHERE a.n + b.n > 100", {"max_examined", "timeout_s"}),
    ("(a)-[r]-(h)-[s]-(b) WHERE lower(a.name) = upper(b.name)", {"max_examined", "timeout_s"}),
    ("(a)-[r]-(h)-[s]-(b) ORDER BY a.n + b.n DESC LIMIT 10", {"max_examined", "timeout_s"}),
    ("(a)-[r]-(h)-[s]-(b) ORDER BY b.name, a.name", {"max_examined", "timeout_s", "max_results"}),
    ("(a)-[r]-(h)-[s]-(b) LIMIT 1 PER a.id, b.id", {"max_examined", "timeout_s", "max_results"}),
    ("(a)-[r]-(h)-[s]-(b)-[t]-(i)-[u]-(c)", {"max_results", "max_examined", "timeout_s"}),
    (SIX, {"max_results", "max_examined", "timeout_s"}),
    (f"{SIX} ORDER BY g.name LIMIT 3", {"max_examined", "timeout_s"}),
)  # fmt: skip


@pytest.mark.parametrize(("text", "hit"), STARS)
def test_stars(star: Any, text: str, hit: set[str]) -> None:
    result = bounded(star, text)
    assert result.caps_hit
    assert set(result.caps_hit) <= hit


def test_the_first_rows_of_a_star_need_little_work(star: Any) -> None:
    result = bounded(star, "(a)-[r]-(h)-[s]-(b) LIMIT 5")
    assert (len(result.items), result.caps_hit) == (5, ())
    assert result.examined < 300_000


@pytest.mark.parametrize(
    "text",
    [
        "(a)-[r]-(b)-[s]-(c)-[t]-(a)",
        "(a)-[r]-(b)-[s]-(c)-[t]-(a) WHERE a.name < b.name AND b.name < c.name",
        "(a)-[r]-(b)-[s]-(c)-[t]-(d)-[u]-(a), (a)-[v]-(c), (b)-[w]-(d)",
        SIX,
        "(a)-[r]-(b)-[s]-(c)-[t]-(d)-[u]-(e)-[v]-(f)-[w]-(a) ORDER BY f.name DESC LIMIT 10",
        "(a)-[r]-(b)-[s]-(c)-[t]-(d) WHERE a.name + b.name = c.name + d.name",
    ],
)
def test_cliques(clique: Any, text: str) -> None:
    result = bounded(clique, text)
    assert set(result.caps_hit) & {"max_results", "max_examined", "timeout_s"}


def test_many_rows_that_are_allowed_fit_too(star: Any) -> None:
    result = bounded(star, "(a)-[r]-(h)-[s]-(b)", max_results=4_000_000)
    assert len(result.items) == 4_000_000 or "timeout_s" in result.caps_hit


def parallel() -> Iterator[Any]:
    """Two nodes with 20,000 parallel edges."""
    graph = nx.MultiDiGraph()
    graph.add_edges_from((0, 1) for _ in range(20_000))
    yield graph


def test_parallel_edges() -> None:
    for graph in parallel():
        result = bounded(graph, "(a)-[r]->(b), (a)-[s]->(b), (a)-[t]->(b)")
        assert result.caps_hit
