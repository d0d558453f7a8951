"""Commands on very many rows: the same results as on few, an end at the time limit and on cancellation, and bounded memory."""

import asyncio
import time
from typing import Any

import networkx as nx
import pytest
from knotwork import gasl
from knotwork.lang.evaluate.conditions import values
from knotwork.runtime.gasl import column_cells, relation
from knotwork.runtime.gasl.commands import aggregates, array_arithmetic, groups, row_commands
from support.cpu_time import pace


def numbered(size: int) -> Any:
    """Nodes with columns of every kind: numbers, repeated and different texts, mixed types, nulls, lists."""
    graph: Any = nx.DiGraph()
    for at in range(size):
        graph.add_node(
            at, k=1, w=at * 0.5, n=at % 7, name=f"name {at % 5}", text=f"a{at}b", tags=[f"t{at % 3}", f"u{at}"],
            mixed=[at % 4, f"x{at % 3}", None, True, [1, at % 2], 0.5 * at][at % 6], one=at if at == 3 else None,
        )  # fmt: skip
    return graph


COMMANDS = (
    "SELECT j WHERE w > 3 AND name != right.name AS x",
    "SELECT j WHERE mixed > 1 AS x",
    "SELECT j FIELDS w, name, right.mixed AS m AS x",
    "SELECT j FIELDS w * right.n AS a, n + right.n AS b, upper(name) AS c, coalesce(mixed, w) AS d, w / n AS e AS x",
    "SELECT j FIELDS if(n > 3, n, one) AS a, if(n > 3, 1, 0.5) AS b, if(n > 5, name, n) AS c, text + text AS d AS x",
    "SELECT DISTINCT j FIELDS n, right.mixed AS m AS x",
    "SELECT DISTINCT j AS x",
    "SELECT j WHERE n = 2 SAMPLE 5 AS x",
    "SELECT n WHERE text = 'no' AS x",
    "COUNT j BY mixed AS x",
    "COUNT j BY n, right.n, name AS x",
    "COUNT l BY right.one AS x",
    "AGGREGATE j BY name COMPUTE sum(w), max(right.w), min(text), count(mixed), collect(DISTINCT n), count(one) AS x",
    "AGGREGATE j COMPUTE sum(w), median(right.n), stdev(w), percentile(w, 0.9), count(DISTINCT mixed), max(text) AS x",
    "AGGREGATE j BY mixed COMPUTE mean(w * right.w) AS m, collect(text) AS x",
    "RANK j BY w DESC, right.w AS x",
    "RANK j BY mixed DESC, right.mixed LIMIT 20 AS x",
    "RANK j BY lower(text) LIMIT 2 PER name, mixed AS x",
    "FIND nodes ORDER BY w DESC LIMIT 2 PER mixed AS x",
    "UNNEST j BY tags AS tag AS x",
    "UNNEST j BY split(text, '1') AS part AS x",
    "JOIN j WITH n ON n AS x",
    "LEFT JOIN n WITH few ON n = n, name AS x",
    "LEFT JOIN l WITH n ON right.one = one AS x",
    "JOIN j WITH n AS other ON mixed = mixed AS x",
    "UNION j WITH j AS x",
    "UNION few WITH n AS x",
    "UNION n WITH few ON mixed AS x",
    "INTERSECT n WITH few AS x",
    "INTERSECT j WITH few ON mixed AS x",
    "EXCEPT n WITH few AS x",
    "EXCEPT n WITH few ON one AS x",
    "SELECT rows FIELDS a, c AS x",
    "COUNT rows BY c, a AS x",
    "AGGREGATE rows BY c COMPUTE sum(a), max(c) AS m, min(b) AS x",
    "RANK rows BY c DESC, b LIMIT 3 AS x",
    "SELECT rows WHERE a > 2 OR c = 'NAME 1' AS x",
    "MEASURE n ON links USING degree AS x",
)


def results(size: int) -> list[Any]:
    """Return the status, the items, the evidence and the summary of each command."""
    with gasl.open(numbered(size)) as opened:
        for text in (
            "FIND nodes AS n",
            "FIND nodes WHERE w > 4 AND n < 5 AS few",
            "JOIN n WITH n ON k AS j",
            "LEFT JOIN n WITH few ON w = w AS l",
            "SELECT j FIELDS w * right.n AS a, w AS b, upper(name) AS c AS rows",
            "SELECT j FIELDS id AS source, right.id AS target AS links",
        ):
            assert opened.execute_one(text).status == "success"
        found = []
        for text in COMMANDS:
            record = opened.execute_one(text)
            assert record.status in ("success", "empty"), (text, record.error)
            summary = {name: value for name, value in record.metrics.items() if name != "duration"}
            found.append((text, record.status, record.value, summary, str(record.provenance_summary)))
        return found


@pytest.mark.slow
def test_many_rows_give_what_few_rows_give(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = results(15)
    for module, name, value in (
        (relation, "LARGE", 10), (row_commands, "LARGE", 10), (aggregates, "LARGE", 10), (column_cells, "BLOCK", 4),
        (column_cells, "LARGE", 10),
        (aggregates, "BLOCK", 4), (row_commands, "BLOCK", 4), (groups, "_STEP", 8), (array_arithmetic, "_STEP", 8),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    for one, other in zip(results(15), expected, strict=True):
        assert one == other, one[0]


# The time limit, and cancellation.

SLOW = (
    "SELECT j WHERE mixed > 100 AS x",
    "SELECT j FIELDS mixed, right.mixed AS m AS x",
    "COUNT j BY mixed AS x",
    "AGGREGATE j COMPUTE count(DISTINCT mixed), collect(DISTINCT right.text) AS x",
    "RANK j BY mixed AS x",
    "SELECT DISTINCT j AS x",
    "UNION j WITH j AS x",
    "INTERSECT j WITH n AS x",
    "EXCEPT j WITH n ON mixed AS x",
    "JOIN j WITH n ON text AS x",
    "UNNEST j BY tags AS x",
    "MEASURE n ON links USING degree AS x",
)


LINKS = "SELECT j FIELDS id AS source, right.id AS target AS links"
MOST = 3.0
"""Seconds after which a command with a time limit of 0.2 s has ended, also on a busy machine."""


@pytest.fixture(scope="module")
def opened() -> Any:
    """An executor with a variable of four million rows."""
    with gasl.open(numbered(2_000), caps=gasl.Caps(timeout_s=60, max_results=100)) as executor:
        executor.execute_one("FIND nodes AS n")
        record = executor.execute_one("JOIN n WITH n ON k AS j")
        assert record.metrics["count"] == 4_000_000
        executor.execute_one(LINKS)
        yield executor


@pytest.mark.slow
@pytest.mark.parametrize("command", SLOW)
def test_commands_on_rows_end_at_the_time_limit(command: str, opened: Any) -> None:
    opened.execute_one("SET adapter.caps.timeout_s = 0.2")
    began = time.monotonic()
    record = opened.execute_one(command)
    assert time.monotonic() - began < MOST * pace()
    opened.execute_one("SET adapter.caps.timeout_s = 60")
    assert record.status in ("error", "partial")
    assert "timeout_s" in str(record.error) or "timeout_s" in record.metrics["caps_hit"]


@pytest.mark.slow
@pytest.mark.parametrize("command", SLOW)
def test_commands_on_rows_end_when_they_are_cancelled(command: str) -> None:
    async def scenario() -> Any:
        with gasl.open(numbered(1_500), caps=gasl.Caps(timeout_s=60, max_results=100)) as executor:
            await executor.aexecute_one("FIND nodes AS n")
            await executor.aexecute_one("JOIN n WITH n ON k AS j")
            await executor.aexecute_one(LINKS)
            cancel = asyncio.Event()
            asyncio.get_running_loop().call_later(0.2, cancel.set)
            began = time.monotonic()
            return await executor.aexecute_one(command, cancel=cancel), began

    record, began = asyncio.run(scenario())  # ends only after the threads of the loop have ended
    assert record.status == "cancelled"
    assert time.monotonic() - began < MOST * pace()


# Memory.


@pytest.mark.parametrize(
    "command",
    [
        'SELECT n FIELDS replace(text, "a", "aaaaaaaaaaaaaaaa") AS y AS x',
        'SELECT n FIELDS split(text, "a") AS y AS x',
        "SELECT n FIELDS text + text AS y AS x",
        'UNNEST n BY split(text, "a") AS y AS x',
        'RANK n BY replace(text, "a", "aaaaaaaaaaaaaaaa") AS x',
        'FIND nodes ORDER BY replace(text, "a", "aaaaaaaaaaaaaaaa") AS x',
        'AGGREGATE n COMPUTE count(DISTINCT replace(text, "a", "aaaaaaaaaaaaaaaa")) AS y AS x',
        'JOIN n WITH n ON replace(text, "a", "aaaaaaaaaaaaaaaa") AS x',
        'UNION n WITH n ON replace(text, "a", "aaaaaaaaaaaaaaaa") AS x',
    ],
)
def test_values_that_take_too_much_memory_are_refused(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "MOST_BYTES", 1 << 20)
    graph: Any = nx.Graph()
    graph.add_nodes_from((at, {"text": f"a{at}" * 400}) for at in range(1_000))
    with gasl.open(graph) as executor:
        executor.execute_one("FIND nodes AS n")
        record = executor.execute_one(command)
        assert record.status == "error"
        assert record.error is not None and "take more than 1 MiB" in record.error["message"]
        assert executor.execute_one("COUNT n AS x").status == "success", "the next command has its own memory"


def test_texts_of_the_graph_and_repeated_texts_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "MOST_BYTES", 1 << 20)
    graph: Any = nx.Graph()
    graph.add_nodes_from((at, {"text": f"a{at}" * 400}) for at in range(2_000))
    with gasl.open(graph) as executor:
        executor.execute_one("FIND nodes AS n")
        for command in (
            'SELECT n FIELDS coalesce(text, "") AS y AS x',
            "COUNT n BY text AS x",
            "SELECT n WHERE LEN (text + text) > 5 AS x",
            "UNNEST n BY text AS x",
        ):
            assert executor.execute_one(command).status == "success", command
