"""GASL programs on a database whose results are larger than those that are fetched at once, against a NetworkX graph."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from knotwork import gasl
from knotwork.adapters.graph import Caps
from knotwork.adapters.graph_cypher import open_database, rows_in_database
from knotwork.adapters.graph_cypher.ladybug_database import LadybugDatabase
from support.graph_databases import write_ladybug

pytestmark = pytest.mark.slow

PROGRAM = """
FIND nodes WHERE label = "Person" AS people
COUNT people AS number
COUNT people BY name, born AS by_name
AGGREGATE people BY born COMPUTE sum(score) AS total, mean(score) AS average, count() AS n, count(DISTINCT name) AS names AS sums
RANK people BY score DESC, name LIMIT 5 AS best
SELECT people FIELDS id, lower(name) AS low WHERE born > 1915 AND score < 0.5 AS chosen
SELECT DISTINCT people FIELDS name AS names
FIND edges WHERE weight >= 0 AS edges
COUNT edges BY relation AS relations
AGGREGATE edges BY source.born COMPUTE sum(weight) AS total, count() AS n AS ages
JOIN edges WITH people ON source = id AS joined
COUNT joined BY name AS joined_names
FIND nodes ORDER BY degree DESC, id LIMIT 7 AS hubs
WALK hubs DEPTH 1 DIRECTION both AS around
EXCEPT people WITH around ON id AS others
UNNEST people BY tags AS tags
COUNT tags BY tags AS tag_counts
FIND patterns (p:Person)-[r:KNOWS]->(q:Person) WHERE p.born = q.born AND r.weight > 50 AS pairs
MEASURE graph USING degree AS degrees
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = Random(5)
    people = [
        ("Person", {"id": f"p{at}", "name": f"N{at % 37}", "born": random.choice((None, *range(1900, 1930))),
                    "score": random.random(), "tags": random.sample(["a", "b", "c"], random.randrange(3)) or None})
        for at in range(1_300)
    ]  # fmt: skip
    edges = [
        ("KNOWS", ("Person", f"p{random.randrange(1_300)}"), ("Person", f"p{random.randrange(400)}"), {"weight": random.randrange(100)})
        for _ in range(1_600)
    ]  # fmt: skip
    return write_ladybug(
        tmp_path_factory.mktemp("programs") / "people.lbug",
        {"Person": {"id": "STRING", "name": "STRING", "born": "INT64", "score": "DOUBLE", "tags": "STRING[]"},
         "City": {"id": "STRING", "name": "STRING"}},
        [*people, ("City", {"id": "c", "name": "N1"})],
        [("KNOWS", "Person", "Person", {"weight": "INT64"})],
        edges,
    )  # fmt: skip


def test_the_values_of_all_variables(database: Path) -> None:
    graph = open_database(f"ladybug:{database}")
    copy: Any = graph._whole("a test", Caps())
    found = []
    for adapter in (graph, copy):
        executor = gasl.open(adapter)
        records = executor.run_plan(PROGRAM)
        found.append((executor, records))
    first, second = found
    assert {record.status for record in first[1]} == {"success"}
    assert [record.status for record in first[1]] == [record.status for record in second[1]]
    for name in ("people", "number", "by_name", "sums", "best", "chosen", "names", "edges", "relations", "ages", "joined",
                 "joined_names", "hubs", "around", "others", "tags", "tag_counts", "pairs", "degrees"):  # fmt: skip
        mine, other = (each[0].context.get(name) for each in found)
        assert list(mine) == list(other) if isinstance(mine, list) else mine == other, name


def test_the_rows_that_are_fetched_for_groups(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_in_database, "_FEW", 100)
    monkeypatch.setattr(rows_in_database, "_LARGE", 100)
    graph = open_database(f"ladybug:{database}")
    fetched: list[int] = []
    run = LadybugDatabase.run

    def counted(self: Any, statement: Any, deadline: Any) -> Any:
        rows = run(self, statement, deadline)
        fetched.append(len(rows))
        return rows

    executor = gasl.open(graph)
    find = 'FIND nodes WHERE label = "Person" AND born > 1905 AS people'
    executor.execute_one(find)
    monkeypatch.setattr(LadybugDatabase, "run", counted)
    monkeypatch.setattr(LadybugDatabase, "columns", None)
    fetched.clear()
    assert executor.execute_one("COUNT people AS number").ok
    assert fetched == []
    record = executor.execute_one("COUNT people BY name AS names")
    assert record.metrics["used"] == "grouped by the database, 37 rows fetched"
    assert executor.execute_one("AGGREGATE people BY name COMPUTE sum(born) AS s, min(score) AS low AS sums").ok
    assert max(fetched) == 37
    plan = executor.execute_one("EXPLAIN COUNT people BY name AS names").value
    assert plan["how"] == "grouped by the graph database"
    assert "RETURN n.`name`, count(*), min(offset(id(n))): one row for each group is fetched" in plan["notes"][1]
