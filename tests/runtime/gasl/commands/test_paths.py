"""FIND paths with SHORTEST k, BY, DIRECTION and INCREASING, FIND cycles and WALK TRACE, as commands."""

from typing import Any

import networkx as nx
import pytest
from knotwork.adapters.graph import Caps
from support.executing import executor
from support.runners import plain, run, session


def bank() -> Any:
    """Transfers between accounts, some of them parallel, with fees and days; one fee is missing."""
    graph: Any = nx.MultiDiGraph()
    for source, target, fee, day in (
        ("A1", "B2", 5, "2024-01-01"), ("A1", "C3", 1, "2024-01-02"), ("C3", "B2", 1.5, "2024-01-03"),
        ("C3", "B2", 9, "2023-12-01"), ("B2", "Z9", 2, "2024-01-02"), ("B2", "A1", None, "2024-02-01"),
    ):  # fmt: skip
        graph.add_edge(source, target, fee=fee, day=day)
    return graph


def nodes(result: Any) -> list[Any]:
    return [item["nodes"] for item in plain(result)]


def test_shortest_k_by_a_cost() -> None:
    found = run('FIND paths FROM (id = "A1") TO (id = "Z9") SHORTEST 3 BY fee AS ways', session(bank()))
    assert [(item["cost"], item["nodes"]) for item in plain(found)] == [
        (4.5, ["A1", "C3", "B2", "Z9"]), (7, ["A1", "B2", "Z9"]), (12, ["A1", "C3", "B2", "Z9"]),
    ]  # fmt: skip
    assert (found.status, found.summary) == ("success", {"count": 3, "nulls": {"fee": {"missing": 1}}})
    assert found.message == "1 edge without fee was not used"
    assert found.used == "paths from nodes by scan to nodes by scan, by cost"
    assert len(plain(run('FIND paths FROM (id = "A1") TO (id = "Z9") SHORTEST 2 AS ways', session(bank())))) == 2


def test_shortest_k_of_a_variable() -> None:
    for number in (1, 2):
        found = run(
            'FIND paths FROM (id = "A1") TO (id = "Z9") SHORTEST ${k} BY fee AS ways', session(bank()), k=number
        )
        assert len(plain(found)) == number
    found = run('FIND paths FROM (id = "A1") TO (id = "Z9") SHORTEST ${k} AS ways', session(bank()), k=0)
    assert (found.status, found.message) == (
        "schema_mismatch", "SHORTEST takes a whole number of at least 1, but ${k} is 0",
    )  # fmt: skip


def test_a_value_is_computed_for_each_edge() -> None:
    found = run('FIND paths FROM (id = "A1") TO (id = "B2") SHORTEST BY 10 - fee AS ways', session(bank()))
    assert [(item["cost"], item["length"]) for item in plain(found)] == [(5, 1)]
    found = run(
        'FIND paths FROM (id = "A1") TO (id = "B2") SHORTEST BY coalesce(fee, 0) WHERE cost > 3 AS x', session(bank())
    )
    assert [item["cost"] for item in plain(found)] == [5]


@pytest.mark.parametrize(
    ("by", "message", "hint"),
    [
        ("fee - 4", "fee - 4 of the edge from A1 to C3 (0) is below 0: -3", "grows with the cost, such as max(0, fee - 4)"),
        ("-fee", "-fee of the edge from A1 to B2 (0) is below 0: -5", "grows with the cost, such as 1 / (1 + fee)"),
        ("day", 'day of the edge from A1 to B2 (0) is the text "2024-01-01", not a number', "write number(day)"),
    ],
)  # fmt: skip
def test_a_cost_that_can_not_be_used_names_its_edge(by: str, message: str, hint: str) -> None:
    found = run(f'FIND paths FROM (id = "A1") TO (id = "Z9") SHORTEST BY {by} AS ways', session(bank()))
    assert found.status == "schema_mismatch"
    assert found.message.startswith(message) and hint in found.hint


def test_direction() -> None:
    there = 'FIND paths FROM (id = "Z9") TO (id = "A1") MAXLEN 2'
    assert run(f"{there} AS x", session(bank())).status == "empty"
    assert nodes(run(f"{there} DIRECTION in AS x", session(bank()))) == [["Z9", "B2", "A1"]]
    both = nodes(run(f"{there} DIRECTION both AS x", session(bank())))
    assert both == [["Z9", "B2", "A1"], ["Z9", "B2", "A1"]], "by either of the edges between A1 and B2"
    assert nodes(run('FIND paths FROM (id = "Z9") TO (id = "C3") SHORTEST DIRECTION in AS x', session(bank()))) == [
        ["Z9", "B2", "C3"], ["Z9", "B2", "C3"],
    ]  # fmt: skip


def test_increasing_values() -> None:
    found = run('FIND paths FROM (id = "A1") TO (id = "Z9") WHERE INCREASING edge.day AS x', session(bank()))
    assert nodes(found) == [["A1", "B2", "Z9"]]
    cheap = run(
        'FIND paths FROM (id = "A1") TO (id = "Z9") WHERE INCREASING edge.day SHORTEST BY fee AS x', session(bank())
    )
    assert [item["cost"] for item in plain(cheap)] == [7]


def test_increasing_dates_are_moments() -> None:
    graph: Any = nx.DiGraph()
    for source, target, at in (
        ("a", "b", "2024-03-05T23:00:00-05:00"), ("b", "c", "2024-03-06T01:00:00Z"), ("b", "d", "2024-03-06T04:00:00"),
        ("d", "e", "2024-03-07"), ("d", "f", "later"),
    ):  # fmt: skip
        graph.add_edge(source, target, at=at)
    at = session(graph)
    rising = [["a", "b", "d"], ["b", "d", "e"], ["a", "b", "d", "e"]]
    assert nodes(run("FIND paths WHERE INCREASING edge.at AND length > 1 AS x", at)) == rising
    run("FIND paths WHERE length > 1 AS all", at)
    assert nodes(run("SELECT all WHERE INCREASING edge.at AS x", at)) == rising, "the same without the search"


def test_nothing_found_for_want_of_costs() -> None:
    found = run('FIND paths FROM (id = "B2") TO (id = "A1") SHORTEST BY fee AS ways', session(bank()))
    assert found.status == "empty"
    assert found.message == "no path was found along edges with a value of fee; 1 edge without fee was not used"


def test_cycles() -> None:
    found = run("FIND cycles AS loops", session(bank()))
    assert nodes(found) == [["A1", "B2", "A1"], ["A1", "C3", "B2", "A1"], ["A1", "C3", "B2", "A1"]]
    assert (found.status, found.count) == ("success", 3)
    in_order = run("FIND cycles WHERE INCREASING edge.day LIMIT 5 AS loops", session(bank()))
    assert nodes(in_order) == [["A1", "B2", "A1"], ["A1", "C3", "B2", "A1"], ["C3", "B2", "A1", "C3"]][:2]
    assert run("FIND cycles VIA fee > 100 AS x", session(bank())).status == "empty"
    assert run("FIND cycles AS x", session(nx.path_graph(4))).message == "the graph has no cycle"


def test_cycles_at_a_cap() -> None:
    ring = session(nx.cycle_graph(6))
    found = run("FIND cycles AS x", ring)
    assert (found.status, found.caps_hit) == ("partial", ("max_path_length",))
    assert found.message.endswith("because the command has no MAXLEN; no cycle was found, but longer cycles may exist")
    assert found.hint.startswith("write MAXLEN with a larger number (at most 8); MEASURE graph USING bridges")
    assert run("FIND cycles MAXLEN 6 AS x", ring).count == 1
    found = run("FIND cycles MAXLEN 5 AS x", ring)
    assert (found.status, found.message) == ("empty", "no cycle of at most 5 edges was found")
    assert run("FIND cycles MAXLEN 9 AS x", ring).status == "success", "nothing is longer"
    found = run("FIND cycles MAXLEN 9 AS x", session(nx.cycle_graph(9, create_using=nx.DiGraph)))
    assert (found.status, found.message) == (
        "partial", "MAXLEN 9 is above the host's ceiling of 8 edges; no cycle was found, but longer cycles may exist",
    )  # fmt: skip
    assert found.hint.startswith("MEASURE graph USING strong_components")
    found = run("FIND cycles AS x", session(nx.Graph([(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 6), (6, 3)])))
    assert (found.status, found.count) == ("partial", 1), "one of two"
    found = run("FIND cycles AS x", session(nx.complete_graph(6), caps=Caps(max_paths=4)))
    assert (found.status, found.count, found.caps_hit) == ("partial", 4, ("max_paths",))


def test_a_traced_walk() -> None:
    at = session(bank())
    run('FIND nodes WHERE id = "A1" AS a', at)
    found = run("WALK a DEPTH 3 TRACE AS y", at)
    assert plain(found) == [
        {"id": "B2", "depth": 1, "parent": "A1"}, {"id": "C3", "depth": 1, "parent": "A1"},
        {"id": "Z9", "depth": 2, "parent": "B2"},
    ]  # fmt: skip
    assert plain(run("RANK y BY depth DESC, degree DESC LIMIT 1 AS z", at))[0]["id"] == "Z9"


@pytest.mark.parametrize(
    ("command", "how", "notes"),
    [
        (
            'FIND paths FROM (id = "A1") TO (id = "Z9") SHORTEST 3 BY fee AS x',
            "paths from nodes by scan to nodes by scan",
            ["cheapest first from both ends; the 3 shortest of each pair, of any length",
             "the cost of every edge is computed once: fee"],
        ),
        ('FIND paths FROM (id = "A1") TO (id = "Z9") DIRECTION both WHERE INCREASING edge.day AS x', "paths from",
         ["edges are followed in either direction", "a path is dropped as soon as a value decreases"]),
        ("FIND cycles VIA fee > 1 MAXLEN 4 AS x", "cycles along edges by", ["lengths 1 to 4"]),
        ("MEASURE graph USING pagerank(damping = 0.5) BY fee AS x", "pagerank in memory",
         ["damping = 0.5", "an edge's strength is fee"]),
    ],
)  # fmt: skip
def test_explain(command: str, how: str, notes: list[str]) -> None:
    with executor(graph=bank()) as at:
        record = at.execute_one(f"EXPLAIN {command}")
    assert record.value["how"].startswith(how)
    assert set(notes) <= set(record.value["notes"]), record.value["notes"]
