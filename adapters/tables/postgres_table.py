"""Reads a PostgreSQL query with psycopg (extra ``postgres``), by a server-side cursor in a read-only transaction."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..postgres import reason, without_password
from .port import (
    BATCH_ROWS,
    BaseTable,
    Batch,
    Column,
    ColumnType,
    MissingExtra,
    QueryRefused,
    TableError,
    checked_columns,
)

_CONNECT_SECONDS = 10
_TYPES: dict[str, ColumnType] = {
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid", "char"), "text"), **dict.fromkeys(("int2", "int4", "int8", "oid"), "int"),
    **dict.fromkeys(("float4", "float8"), "float"), "numeric": "decimal", "bool": "bool", "date": "date",
    **dict.fromkeys(("timestamp", "timestamptz"), "datetime"), "bytea": "blob", **dict.fromkeys(("json", "jsonb"), "json"),
}  # fmt: skip


class PostgresTable(BaseTable):
    """The rows of a SELECT. Raises ``MissingExtra``, ``QueryRefused`` and ``TableError``."""

    def __init__(self, url: str, query: str | None) -> None:
        self.name = without_password(url)
        try:
            import psycopg
        except ImportError:
            raise MissingExtra(f"reading {self.name}", "postgres") from None
        if query is None:
            raise TableError(f"{self.name} needs a query", 'add --query "SELECT ... FROM ..."')
        self._query = query.strip().rstrip(";")
        self._url = url
        with self._translated():
            self._connection = psycopg.connect(url, connect_timeout=_CONNECT_SECONDS, autocommit=False)
        try:
            self._connection.read_only = True
            with self._translated():
                self.columns = checked_columns(self._described(), self.name)
                self._connection.rollback()
        except BaseException:
            self.close()
            raise

    def _described(self) -> list[Column]:
        """Return the columns of the query without running it. If the query has several statements, the server refuses it."""
        from psycopg.pq import ExecStatus

        with self._connection.cursor() as cursor:
            cursor.execute("SELECT 1")  # begins the read-only transaction
        pg = self._connection.pgconn
        encoding = self._connection.info.encoding
        for result in (pg.prepare(b"", self._query.encode(encoding)), pg.describe_prepared(b"")):
            if result.status != ExecStatus.COMMAND_OK:
                raise QueryRefused(
                    f"the query is refused: {reason(result.error_message.decode(encoding, 'replace'))}", _ONE_SELECT
                )
        found = []
        for place in range(result.nfields):
            known = self._connection.adapters.types.get(oid := result.ftype(place))
            name = "text" if known is None else known.name
            is_array = known is not None and known.array_oid == oid
            found.append(
                Column(
                    (result.fname(place) or b"").decode(encoding),
                    "list" if is_array else _TYPES.get(name, "other"),
                    name,
                )
            )
        if not found:
            raise QueryRefused("the query is not a SELECT", _ONE_SELECT)
        return found

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Batch]:
        """Yield the rows; see ``Table.batches``."""
        places = self.positions(names)
        pick = None if places == list(range(len(self.columns))) else places
        with self._translated():
            try:
                with self._connection.cursor(name="knotwork") as cursor:
                    cursor.itersize = BATCH_ROWS
                    cursor.execute(self._query.encode(self._connection.info.encoding))
                    first = 0
                    while rows := cursor.fetchmany(BATCH_ROWS):
                        yield Batch(
                            first, rows if pick is None else [tuple([row[place] for place in pick]) for row in rows]
                        )
                        first += len(rows)
            finally:
                if not self._connection.closed:
                    self._connection.rollback()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn psycopg's errors into ``TableError``. The messages of a server don't contain the password."""
        import psycopg

        try:
            yield
        except (
            psycopg.errors.ReadOnlySqlTransaction,
            psycopg.errors.SyntaxError,
            psycopg.errors.FeatureNotSupported,
        ) as error:
            raise QueryRefused(
                f"the query is refused: {reason(str(error), self._url, self.name)}", _ONE_SELECT
            ) from None
        except psycopg.Error as error:
            raise TableError(f"{self.name} can't be read: {reason(str(error), self._url, self.name)}") from None
        except UnicodeError as error:
            raise TableError(f"{self.name} can't be read: {error}") from None

    def close(self) -> None:
        """Close the connection; may be called more than once."""
        connection: Any = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()


_ONE_SELECT = "--query takes a single SELECT; the transaction is read-only"
