"""A real PostgreSQL server, started for these tests in a folder of its own."""

from collections.abc import Iterator

import pytest
from knotwork.adapters.tables.factory import open_table, shown_name
from knotwork.adapters.tables.port import QueryRefused, TableError
from support.postgres import BINARIES, Server

psycopg = pytest.importorskip("psycopg", reason="the extra postgres is not installed")
pytestmark = pytest.mark.skipif(not BINARIES, reason="PostgreSQL is not installed in /usr/lib/postgresql")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a database with the table ``reviews``."""
    with Server() as running:
        with psycopg.connect(running.url, autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE reviews AS SELECT i AS id, i % 3 AS product, 'text ' || i AS body, (i * 1.5)::numeric(10, 2) AS price, "
                "DATE '2024-05-17' AS day, '{\"a\": 1}'::jsonb AS j, array[1, 2] AS l, '\\x01'::bytea AS b FROM generate_series(1, 5000) i"
            )
        yield running.url


@pytest.mark.slow
def test_a_query_is_read_through_a_cursor(server: str) -> None:
    with open_table(server, query="SELECT * FROM reviews ORDER BY id;") as table:  # type: ignore[attr-defined]
        assert {column.name: column.type for column in table.columns} == {
            "id": "int", "product": "int", "body": "text", "price": "decimal", "day": "date", "j": "json", "l": "list", "b": "blob",
        }  # fmt: skip
        assert [len(batch.rows) for batch in table.batches(["body"])] == [2048, 2048, 904]
        batches = table.batches()
        assert next(batches).rows[1][2] == "text 2"
        batches.close()
        assert len(list(table.rows())) == 5000  # again, after a reading that was left


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE reviews", "SELECT 1; DROP TABLE reviews", "SELECT 1; COMMIT; DROP TABLE reviews", "DELETE FROM reviews RETURNING id",
        "WITH x AS (DELETE FROM reviews RETURNING id) SELECT * FROM x", "COPY reviews TO '/tmp/reviews'", "CREATE TABLE t ()", "", "SELEC",
        "SELECT nope FROM reviews", "SELECT set_config('transaction_read_only', 'off', false), id FROM reviews", "SELECT nextval('s')",
    ],
)  # fmt: skip
def test_a_query_only_reads(server: str, query: str) -> None:
    with pytest.raises(TableError) as caught, open_table(server, query=query) as table:  # type: ignore[attr-defined]
        list(table.batches())
    assert "hunter2" not in str(caught.value) + caught.value.hint
    with open_table(server, query="SELECT id FROM reviews") as table:  # type: ignore[attr-defined]
        assert sum(len(batch.rows) for batch in table.batches()) == 5000


@pytest.mark.slow
def test_refusals(server: str) -> None:
    with pytest.raises(QueryRefused, match="not a SELECT"):
        open_table(server, query="DROP TABLE reviews")
    with pytest.raises(TableError, match="needs a query"):
        open_table(server)
    with pytest.raises(TableError, match="can't be read") as caught:
        open_table(server.replace("kw:", "other:"), query="SELECT 1")
    assert "hunter2" not in caught.value.message


def test_passwords_are_never_shown() -> None:
    for url in (
        "postgresql://u:hunter2@h/db?password=hunter2",
        "postgres://u:hunter2@h:1/db",
        "postgresql://u:hunter2@[bad/x",
    ):
        assert "hunter2" not in shown_name(url)
    with pytest.raises(TableError) as caught:
        open_table("postgresql://u:hunter2@[bad/x", query="SELECT 1")
    assert "hunter2" not in caught.value.message
