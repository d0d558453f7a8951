"""Counts of the elements that conditions leave out for the types of their values: every search against plain Python, on random graphs."""

import random
from typing import Any

import networkx as nx
import pytest
from knotwork import gasl
from knotwork.adapters.graph_networkx import find_plan

VALUES = [1, 5, 10, 2.5, "n/a", "20", None, True, [3]]
KINDS = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_other(value: Any) -> bool:
    return value is not None and not is_number(value)


def above(value: Any, least: float) -> bool | None:
    return value > least if is_number(value) else None


def either(left: bool | None, right: bool | None) -> bool | None:
    if left or right:
        return True
    return None if left is None or right is None else False


def told(counts: dict[str, int]) -> dict[str, int] | None:
    return {text: count for text, count in counts.items() if count} or None


class Oracle:
    """A random graph and what plain loops over it count."""

    def __init__(self, seed: int) -> None:
        choose = random.Random(seed)
        self.graph: Any = KINDS[seed % 4]()
        for node in range(14):
            self.graph.add_node(node, a=choose.choice(VALUES))
        for _ in range(25):
            source, target = choose.randrange(14), choose.randrange(14)
            if source != target:
                self.graph.add_edge(source, target, w=choose.choice(VALUES))
        self.edges = list(self.graph.edges(data="w"))
        turned = [] if self.graph.is_directed() else [(target, source, w) for source, target, w in self.edges]
        self.rows = [*self.edges, *turned]

    def a(self, node: int) -> Any:
        return self.graph.nodes[node]["a"]

    def next_to(self, nodes: set[int], direction: str) -> list[int]:
        """Return the indices of the edges that a step from ``nodes`` tests."""
        out = direction != "in" or not self.graph.is_directed()
        into = direction != "out" or not self.graph.is_directed()
        return [
            at
            for at, (source, target, _) in enumerate(self.edges)
            if (out and source in nodes) or (into and target in nodes)
        ]

    def walked(self, start: set[int], depth: int) -> int:
        """Return how many edges a walk in both directions leaves out for their type."""
        reached, frontier, tested = set(start), set(start), set[int]()
        for _ in range(depth):
            near = self.next_to(frontier, "both")
            tested.update(near)
            ends = {node for at in near if above(self.edges[at][2], 3) for node in self.edges[at][:2]}
            frontier = ends - reached
            reached |= frontier
        return sum(is_other(self.edges[at][2]) for at in tested)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))
def test_every_search_counts_like_plain_python(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_plan, "_SMALL", 1 if seed % 3 else 256)
    oracle, some = Oracle(seed), {0, 1, 2}
    of_edges = sum(is_other(w) for *_, w in oracle.edges)
    unknown = [
        (source, target)
        for source, target, _ in oracle.rows
        if either(above(oracle.a(source), 3), above(oracle.a(target), 7)) is None
    ]
    sources, targets = (sum(is_other(oracle.a(pair[end])) for pair in unknown) for end in (0, 1))
    wanted = {
        "FIND edges WHERE w > 3": {"w > 3": of_edges},
        "FIND paths VIA w > 3 MAXLEN 2": {"w > 3": of_edges},
        "FIND patterns (p)-[r]->(q) WHERE r.w > 3": {"r.w > 3": of_edges},
        "FIND patterns (p)-[r]->(q) WHERE p.a > 3": {"p.a > 3": sum(map(is_other, map(oracle.a, oracle.graph)))},
        "FIND patterns (p)-[r]->(q) WHERE p.a > 3 OR q.a > 7": {"p.a > 3": sources, "q.a > 7": targets},
        "FIND paths WHERE source.a > 3 OR target.a > 7 MAXLEN 1": {"source.a > 3": sources, "target.a > 7": targets},
        "WALK some VIA w > 3 DEPTH 3 DIRECTION both": {"w > 3": oracle.walked(some, 3)},
        "CONNECT some TO whole VIA w > 3": {"w > 3": oracle.walked(some, 1)},
    }
    for direction in ("out", "in"):
        near = oracle.next_to(some, direction)
        wanted[f"WALK some VIA w > 3 DIRECTION {direction}"] = {
            "w > 3": sum(is_other(oracle.edges[at][2]) for at in near)
        }
    with gasl.open(oracle.graph) as executor:
        executor.execute_one("FIND nodes WHERE id < 3 AS some")
        executor.execute_one("FIND nodes AS whole")
        for command, counts in wanted.items():
            assert executor.execute_one(f"{command} AS x").metrics.get("mismatched") == told(counts), command


@pytest.mark.parametrize("command", ["FIND nodes WHERE age < ${n} AS x", "FIND edges WHERE w < ${n} AS x"])
def test_a_number_that_is_not_finite_is_counted_too(command: str) -> None:
    graph = nx.Graph()
    graph.add_node(1, age=3)
    graph.add_node(2, age="old")
    graph.add_edge(1, 2, w="x")
    with gasl.open(graph) as executor:
        executor.session.context.set("n", float("inf"))
        record = executor.execute_one(command)
    assert record.status != "error"
    assert record.summary["mismatched"] == {"a comparison with a number that is not finite": 1}
