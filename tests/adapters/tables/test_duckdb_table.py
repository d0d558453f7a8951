"""Parquet and DuckDB files, Arrow streams: real files, and queries that try to leave their database."""

import contextlib
import datetime
from pathlib import Path
from typing import Any

import pytest
from knotwork.adapters.tables.factory import open_table
from knotwork.adapters.tables.port import QueryRefused, TableError

duckdb = pytest.importorskip("duckdb", reason="the extra data is not installed")


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "r.parquet"
    duckdb.connect().execute(
        f"COPY (SELECT i AS id, 'text ' || i AS body, i * 1.25::DECIMAL(6,2) AS price, DATE '2024-01-01' + i::INT AS day, "
        f"{{'k': i}} AS s, [i] AS l, 'ab'::BLOB AS b FROM range(300) t(i)) TO '{path}' (ROW_GROUP_SIZE 100)"
    )
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "r.duckdb"
    connection = duckdb.connect(str(path))
    connection.execute("CREATE TABLE reviews AS SELECT i AS id, 'text ' || i AS body FROM range(10) t(i)")
    connection.execute("CREATE VIEW leaky AS SELECT * FROM read_text('/etc/hostname')")
    connection.close()
    return path


def count(table: Any) -> int:
    return sum(len(batch.rows) for batch in table.batches())


@pytest.mark.slow
def test_parquet_keeps_its_types(parquet: Path) -> None:
    with open_table(parquet) as table:
        assert {column.name: column.type for column in table.columns} == {
            "id": "int", "body": "text", "price": "decimal", "day": "date", "s": "json", "l": "list", "b": "blob",
        }  # fmt: skip
        assert table.columns[2].source_type.startswith("DECIMAL")
        rows = list(table.rows())
    assert (len(rows), rows[2]["body"], rows[2]["day"], rows[2]["s"]) == (
        300,
        "text 2",
        datetime.date(2024, 1, 3),
        {"k": 2},
    )
    assert next(list(batch.rows[1]) for batch in open_table(parquet).batches(["body", "id"])) == ["text 1", 1]


@pytest.mark.slow
def test_folders_patterns_and_odd_names(parquet: Path, tmp_path: Path) -> None:
    folder = tmp_path / "more" / "2024"
    folder.mkdir(parents=True)
    (folder / "a[1]*.parquet").write_bytes(parquet.read_bytes())
    assert count(open_table(tmp_path)) == 600
    assert count(open_table(str(tmp_path / "*.parquet"))) == 300
    assert count(open_table(folder / "a[1]*.parquet")) == 300
    (tmp_path / "empty").mkdir()
    for name, told in (
        ("empty", "no .parquet files"),
        ("x*.parquet", "no file matches"),
        ("x.parquet", "does not exist"),
    ):
        with pytest.raises(TableError, match=told):
            open_table(tmp_path / name)


POSITIONS = [8, pytest.param(80, marks=pytest.mark.slow)]


@pytest.mark.slow
@pytest.mark.parametrize("positions", POSITIONS)
def test_a_parquet_file_cut_anywhere_is_refused(parquet: Path, positions: int) -> None:
    whole = parquet.read_bytes()
    for end in {
        0,
        3,
        4,
        8,
        len(whole) - 9,
        len(whole) - 4,
        len(whole) - 1,
        *range(9, len(whole), len(whole) // positions),
    }:
        parquet.write_bytes(whole[:end])
        with pytest.raises(TableError):
            count(open_table(parquet))


@pytest.mark.slow
@pytest.mark.parametrize("positions", POSITIONS)
def test_a_damaged_parquet_file_raises_no_other_error(parquet: Path, positions: int) -> None:
    whole = parquet.read_bytes()
    for place in range(4, len(whole) - 8, len(whole) // positions):
        parquet.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with contextlib.suppress(TableError):
            count(open_table(parquet))


@pytest.mark.slow
def test_a_wide_parquet_file_is_refused(tmp_path: Path) -> None:
    wide = tmp_path / "wide.parquet"
    columns = ", ".join(f"1 AS c{n}" for n in range(10_001))
    duckdb.connect().execute(f"COPY (SELECT {columns}) TO '{wide}'")
    with pytest.raises(TableError, match="10,001 columns"):
        open_table(wide)


@pytest.mark.slow
def test_a_parquet_bomb_is_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.parquet"
    duckdb.connect().execute(
        f"COPY (SELECT i AS id, repeat('x', 20000000) AS text FROM range(3) t(i)) TO '{bomb}' (COMPRESSION zstd)"
    )
    assert bomb.stat().st_size < 1 << 20
    with pytest.raises(TableError, match="a cell of 'text' has more than"):
        count(open_table(bomb))


@pytest.mark.slow
def test_a_database_needs_a_query_unless_it_has_one_table(database: Path, tmp_path: Path) -> None:
    with pytest.raises(TableError, match="needs a query") as caught:
        open_table(database)
    assert "leaky, reviews" in caught.value.hint
    assert count(open_table(database, query="SELECT * FROM reviews WHERE id > 3 ORDER BY id;")) == 6
    assert next(iter(open_table(database, query="WITH x AS (FROM reviews) SELECT body AS text FROM x").rows())) == {
        "text": "text 0"
    }
    alone = tmp_path / "alone.duckdb"
    connection = duckdb.connect(str(alone))
    connection.execute("CREATE TABLE single AS SELECT 1 AS a")
    connection.close()
    assert list(open_table(alone).rows()) == [{"a": 1}]


@pytest.mark.parametrize(
    "query",
    [
        "INSERT INTO reviews VALUES (1, 'x')", "DROP TABLE reviews", "CREATE TABLE t AS SELECT 1", "CREATE TEMP TABLE t AS SELECT 1",
        "COPY reviews TO '{folder}/out.csv'", "EXPORT DATABASE '{folder}/out'", "ATTACH '{folder}/other.duckdb'", "INSTALL httpfs",
        "LOAD httpfs",
        "PRAGMA version", "SET enable_external_access = true", "CALL force_checkpoint()", "SELECT 1; DROP TABLE reviews", "", "SELEC 1",
        "SELECT * FROM read_text('{folder}/secret.txt')", "SELECT * FROM read_blob('{folder}/*')", "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM '{folder}/other.csv'", "SELECT * FROM read_csv('{folder}/other.csv')", "SELECT * FROM leaky",
        "SELECT * FROM reviews WHERE body IN (SELECT content FROM read_text('{folder}/secret.txt'))", "EXPLAIN ANALYZE SELECT 1",
        "SELECT * FROM 'https://127.0.0.1:9/x.parquet'", "SELECT * FROM query('DROP TABLE reviews')", "SELECT * FROM local_rows",
    ],
)  # fmt: skip
def test_a_query_only_reads_its_database(database: Path, tmp_path: Path, query: str) -> None:
    local_rows = [1, 2, 3]  # DuckDB must not find Python's variables
    assert local_rows
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "other.csv").write_text("a\n1\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(TableError) as caught:
        count(open_table(database, query=query.format(folder=tmp_path)))
    assert "secret" not in caught.value.message.replace("secret.txt", "")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_refusals_name_the_rule(database: Path) -> None:
    with pytest.raises(QueryRefused, match="the query is DROP, not SELECT"):
        open_table(database, query="DROP TABLE reviews")
    with pytest.raises(QueryRefused, match="reads or writes something outside of"):
        count(open_table(database, query="SELECT * FROM read_text('/etc/hostname')"))


def test_what_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "x.duckdb").write_bytes(b"nothing" * 1000)
    with pytest.raises(TableError, match=r"x\.duckdb can't be read"):
        open_table(tmp_path / "x.duckdb", query="SELECT 1")
    with pytest.raises(TableError, match="does not exist"):
        open_table(tmp_path / "y.duckdb")


class OneStream:
    """An Arrow stream that can be read only once."""

    def __init__(self, source: Any) -> None:
        self.source, self.read = source, 0

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        self.read += 1
        assert self.read == 1
        return self.source.__arrow_c_stream__(requested_schema)


def test_relations_and_arrow_streams() -> None:
    relation = duckdb.sql("SELECT i AS id, 'x' || i AS text FROM range(5000) t(i)")
    for source in (relation, OneStream(relation)):
        table = open_table(source)
        assert [column.name for column in table.columns] == ["id", "text"]
        for _ in range(2):
            assert count(table) == 5000
        table.close()
