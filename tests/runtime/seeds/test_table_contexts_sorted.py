"""Contexts of tables whose rows DuckDB sorts by group: they equal the contexts of rows that are grouped in Python."""

import random
from pathlib import Path
from typing import Any

import pytest
from knotwork import seed
from knotwork.adapters.tables import duckdb_table, port
from knotwork.adapters.tables.port import TableError
from knotwork.runtime.seeds.table_contexts import TableContexts

duckdb = pytest.importorskip("duckdb")
pytestmark = pytest.mark.slow

COLUMNS = """(product VARCHAR, number BIGINT, flag BOOLEAN, day DATE, made TIMESTAMP, price DECIMAL(12,2), score DOUBLE, raw BLOB,
    body VARCHAR)"""
"""The columns of the tables: all types that can be sorted."""


def rows_of(count: int, groups: int) -> list[list[Any]]:
    rng = random.Random(count * 31 + groups)
    products = ["", None, "Ä", "a", "A", "ä\u0301", *(f"p{number}" for number in range(groups))]
    return [
        [
            rng.choice(products), rng.choice((None, 0, 1, -7, 2**62)), rng.choice((None, True, False)),
            rng.choice((None, "2024-05-17")), rng.choice((None, "2024-05-17 10:11:12.5")), rng.choice((None, "0.10", "12.00")),
            rng.choice((None, 0.5, float("nan"), float("inf"))), rng.choice((None, b"\x00\xff")),
            rng.choice((None, "", "good 👍", "x" * 300)),
        ]
        for _ in range(count)
    ]  # fmt: skip


def written(folder: Path, rows: list[list[Any]], *, files: int = 1) -> str:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t {COLUMNS}")
        if rows:
            connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * 9)})", rows)
        for number in range(files):
            start = len(rows) * number // files
            size = len(rows) * (number + 1) // files - start
            connection.execute(f"COPY (FROM t LIMIT {size} OFFSET {start}) TO '{folder}/{number}.parquet'")
    return str(folder)


def both(source: Any, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[Any, Any]:
    """Return the contexts, their total and the warnings, of rows that DuckDB sorts, and of rows that are grouped in Python."""
    table = seed.contexts(source, **options)
    assert isinstance(table, TableContexts)
    names = [column.name for column in table.group_columns]
    assert table.table.grouped(names) is not None
    found = (list(table), table.warnings.copy())
    with monkeypatch.context() as patched:
        patched.setattr(duckdb_table.DuckdbTable, "grouped", lambda self, names: None)
        expected = (list(table), table.warnings.copy())
    return found, expected


@pytest.mark.parametrize("group", [("product",), ("number",), ("flag",), ("product", "flag"), ("number", "product")])
@pytest.mark.parametrize("options", [{}, {"drop_null_groups": True}, {"sample_reviews": 2}])
def test_sorted_rows_give_the_same_contexts(
    group: tuple[str, ...], options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = written(tmp_path, rows_of(60, 6), files=2)
    columns = {"stars": "number", "date": "day"}
    found, expected = both(source, monkeypatch, group=list(group), text="body", columns=columns, **options)
    assert repr(found) == repr(expected)  # repr tells 1, 1.0 and True apart


@pytest.mark.parametrize(("rows", "groups"), [(0, 1), (1, 1), (5_000, 1), (5_000, 3), (5_000, 4_000)])
def test_groups_that_continue_over_batches(
    rows: int, groups: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT 'p' || hash(i) % {groups} AS k, i AS n, 'text ' || i AS text FROM range({rows}) t(i)) "
            f"TO '{tmp_path}/t.parquet'"
        )
    found, expected = both(str(tmp_path), monkeypatch, group="k")
    assert repr(found) == repr(expected)


def test_a_table_of_a_database_with_a_collation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (k VARCHAR COLLATE NOCASE, text VARCHAR)")
        connection.execute("INSERT INTO t VALUES ('a', 'one'), ('A', 'two'), ('a', 'three')")
    found, expected = both(str(path), monkeypatch, group="k")
    assert repr(found) == repr(expected)
    assert [context["name"] for context in found[0]] == ["a", "A"]


def test_an_arrow_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    with duckdb.connect() as connection:
        relation = connection.sql("SELECT i % 7 AS k, 'text ' || i AS text FROM range(50) t(i)")
        found, expected = both(relation, monkeypatch, group="k")
    assert repr(found) == repr(expected)


@pytest.mark.parametrize("group", ["day", "score", "price"])
def test_other_group_columns_are_grouped_in_python(group: str, tmp_path: Path) -> None:
    table = seed.contexts(written(tmp_path, rows_of(20, 2)), group=group, text="body")
    assert table.table.grouped([group]) is None
    assert sum(len(context["reviews"]) for context in table) == 20


def test_rows_far_larger_than_their_file_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "_LARGE", 1_000)
    monkeypatch.setattr(port, "_RATIO", 2)
    source = written(tmp_path, [["a", 1, None, None, None, None, None, None, "x" * 1_000]] * 100)
    with pytest.raises(TableError, match="expands to more than 2 times its size"):
        list(seed.contexts(source, group="product", text="body"))


def test_a_cell_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_table, "MAX_CELL", 100)
    source = written(tmp_path, rows_of(50, 2))
    with pytest.raises(TableError, match="more than 100 bytes"):
        list(seed.contexts(source, group="product", text="body"))
