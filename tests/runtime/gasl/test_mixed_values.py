"""Values that a command leaves out or separates, because their types differ: the record counts them and names the first ones."""

from typing import Any

import networkx as nx
import pytest
from knotwork import gasl
from knotwork.adapters.graph_networkx import find_plan
from knotwork.runtime.gasl.records import unused_rows


def houses() -> Any:
    graph = nx.DiGraph()
    for node, built, sold in (
        ("h1", 1900, True),
        ("h2", "1950", "true"),
        ("h3", 1950, False),
        ("h4", "old", "True"),
        ("h5", None, "no"),
    ):
        graph.add_node(node, built=built, sold=sold, kind="house" if node < "h4" else "shed")
    graph.nodes["h1"]["empty"], graph.nodes["h2"]["empty"] = True, 1
    graph.add_edge("h1", "h2", price="7")
    graph.add_edge("h2", "h3", price=7)
    return graph


@pytest.mark.parametrize("small", [1, 256])
@pytest.mark.parametrize(
    ("program", "note"),
    [
        (
            "FIND nodes WHERE built > 1940 AS x",
            'built > 1940 left out 2 rows whose values have another type (h2 "1950", h4 "old")',
        ),
        (
            'FIND nodes WHERE built STARTS_WITH "19" AS x',
            'built STARTS_WITH "19" left out 2 rows whose values have another type (h1 1900, h3 1950)',
        ),
        (
            "FIND nodes WHERE built = 1950 AS x",
            'built = 1950 left out 1 row with the same value in another type (h2 "1950")',
        ),
        (
            'FIND nodes WHERE built IN ("1950", "x") AS x',
            'built IN ("1950", "x") left out 1 row with the same value in another type (h3 1950)',
        ),
        (
            "FIND nodes WHERE built != 1950 AS x",
            'built != 1950 kept 1 row with the same value in another type (h2 "1950")',
        ),
        (
            "FIND nodes WHERE NOT built = 1950 AS x",
            'built = 1950 kept 1 row with the same value in another type (h2 "1950")',
        ),
        (
            "FIND nodes WHERE sold = true AS x",
            'sold = true left out 2 rows with the same value in another type (h2 "true", h4 "True")',
        ),
        (
            "FIND nodes WHERE empty = true AS x",
            "empty = true left out 1 row with the same value in another type (h2 1)",
        ),
        ("FIND nodes WHERE empty = 1 AS x", "empty = 1 left out 1 row with the same value in another type (h1 true)"),
        ('FIND nodes WHERE kind = "shed" AND built = 1950 AS x', ""),
        ('FIND nodes WHERE kind = "house" OR built = 1950 AS x', ""),
        (
            "FIND nodes WHERE built = 1950 OR built = 1900 AS x",
            'built = 1950 left out 1 row with the same value in another type (h2 "1950")',
        ),
        (
            "FIND edges WHERE price = 7 AS x",
            'price = 7 left out 1 row with the same value in another type (h1 → h2 "7")',
        ),
        (
            "FIND edges WHERE target.built > 0 AS x",
            'target.built > 0 left out 1 row whose values have another type (h1 → h2 "1950")',
        ),
        ("FIND nodes ORDER BY built DESC LIMIT 1 AS x", 'built sorts 2 numbers before 2 strings (h2 "1950", h4 "old")'),
        ('FIND nodes WHERE kind = "shed" ORDER BY built AS x', ""),
        ("FIND nodes AS all\nRANK all BY sold AS x", "sold sorts 3 strings before 2 booleans (h1 true, h3 false)"),
        (
            "FIND nodes AS all\nSELECT all WHERE built = 1950 AS x",
            'built = 1950 left out 1 row with the same value in another type (h2 "1950")',
        ),
        (
            "FIND nodes AS all\nSELECT all FIELDS id, built AS rows\nSELECT rows WHERE built != 1950 AS x",
            'built != 1950 kept 1 row with the same value in another type (h2 "1950")',
        ),
        (
            "FIND edges AS all\nSELECT all WHERE price > 1 AS x",
            'price > 1 left out 1 row whose values have another type (h1 → h2 "7")',
        ),
        (
            "FIND patterns (p)-[r]->(q) WHERE q.built > 0 AS x",
            'q.built > 0 left out 2 rows whose values have another type (h2 "1950", h4 "old")',
        ),
        (
            "FIND paths WHERE target.built > 0 MAXLEN 1 AS x",
            'target.built > 0 left out 2 rows whose values have another type (h2 "1950", h4 "old")',
        ),
    ],
)
def test_the_note_says_how_many_values_and_which(
    program: str, note: str, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_plan, "_SMALL", small)
    with gasl.open(houses()) as executor:
        for command in program.split("\n"):
            record = executor.execute_one(command)
        assert record.ok, record.error
        assert unused_rows(record.metrics) == note


@pytest.mark.parametrize("small", [1, 256])
def test_numbers_come_before_strings_in_both_directions(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_plan, "_SMALL", small)
    up, down = ["h1", "h3", "h2", "h4", "h5"], ["h3", "h1", "h4", "h2", "h5"]
    with gasl.open(houses()) as executor:
        executor.execute_one("FIND nodes AS all")
        executor.execute_one("SELECT all FIELDS id, built AS rows")
        for command in ("FIND nodes ORDER BY built {} AS x", "RANK all BY built {} AS x", "RANK rows BY built {} AS x"):
            for direction, ids in (("ASC", up), ("DESC", down)):
                assert [row["id"] for row in executor.execute_one(command.format(direction)).value] == ids
