"""Reads Parquet files, DuckDB files and Arrow streams (for example of a DuckDB relation) with DuckDB (extra ``data``).

DuckDB is opened with settings that let it read only the named files. It can't access other files or the network, load
extensions or change settings. It spills to a private temporary folder, which ``close`` removes.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .database import MEMORY, Database, import_duckdb, literal_path
from .port import (
    BATCH_ROWS,
    MAX_CELL,
    BaseTable,
    Batch,
    Column,
    ColumnType,
    QueryRefused,
    TableError,
    check_expansion,
    check_width,
    checked_columns,
    listed,
)  # fmt: skip

_BATCH_CHARACTERS = 32 << 20
"""Approximate maximum number of characters of a batch. Because of it, rows with long texts are read in smaller batches."""
_TYPES: dict[str, ColumnType] = {
    "varchar": "text", "enum": "text", "uuid": "text", "boolean": "bool", "float": "float", "double": "float", "decimal": "decimal",
    "date": "date", "timestamp": "datetime", "timestamp with time zone": "datetime", "blob": "blob", "bit": "blob", "struct": "json",
    "map": "json", "union": "json", "json": "json", "variant": "json", "list": "list", "array": "list", "null": "text",
    **dict.fromkeys(("timestamp_s", "timestamp_ms", "timestamp_ns"), "datetime"),
    **dict.fromkeys((f"{sign}{size}int" for sign in ("", "u") for size in ("tiny", "small", "big", "huge")), "int"),
    **dict.fromkeys(("integer", "uinteger", "bignum"), "int"),
}  # fmt: skip
_GROUPED = {
    "VARCHAR", "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
}  # fmt: skip
"""Source types whose values are equal in DuckDB if they are equal in Python."""


class DuckdbTable(BaseTable):
    """The result of a query. ``source`` is a complete query if ``is_query``, else the SQL of the table to select from."""

    def __init__(
        self, database: Database, name: str, source: str, parameters: Sequence[Any] = (), *, is_query: bool = False
    ) -> None:
        self.name = name
        self._database = database
        self._source = source
        self._parameters = list(parameters)
        self._is_query = is_query
        with _translated(name):
            if is_query:
                relation = database.connection.sql(source)  # binds the query, and does not run it
                described: Sequence[tuple[Any, ...]] = list(zip(relation.columns, relation.types, strict=True))
            else:
                query = f"SELECT * FROM {source} LIMIT 0"  # noqa: S608 - the source is this module's own text
                described = database.connection.execute(query, self._parameters or None).description or []
        check_width(len(described), name)
        self.columns = checked_columns((Column(each[0], _type(each[1]), str(each[1])) for each in described), name)

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Batch]:
        """Yield the rows; see ``Table.batches``."""
        places = self.positions(names)
        query, pick = self._source, None if places == list(range(len(self.columns))) else places
        if not self._is_query:
            chosen = ", ".join(_guarded(self.columns[place]) for place in places) or "1"
            query, pick = f"SELECT {chosen} FROM {self._source}", None  # noqa: S608 - names are quoted
        with _translated(self.name):
            cursor = self._database.connection.cursor()
            try:
                cursor.execute(query, self._parameters or None)
                yield from _batches(cursor, pick)
            finally:
                cursor.close()

    def grouped(self, names: Sequence[str]) -> Iterator[list[tuple[Any, ...]]] | None:
        """Return all rows sorted by group; see ``Table.grouped``. DuckDB sorts them, and spills to disk.

        Return None for a query, because the order of its rows is not certain in a subquery. Also return None if values of a
        group column may be equal in Python but not in DuckDB, or if a column may have unreadable values.
        """
        kinds = {self.columns[place].source_type for place in self.positions(names)}
        if self._is_query or not kinds <= _GROUPED or any(c.type in ("json", "list", "other") for c in self.columns):
            return None
        return self._sorted(names)

    def _sorted(self, names: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
        places = self.positions(names)
        keys = [_key(self.columns[place], is_single=len(places) == 1) for place in places]
        # The first pass finds the first row of each group and the size of the texts; the second sorts the rows by group.
        sizes = "".join(
            f" + coalesce(strlen({_quoted(c.name)}), 0)" for c in self.columns if c.source_type == "VARCHAR"
        )
        named = ", ".join(f"{key} AS k{place}" for place, key in enumerate(keys))
        cells = ", ".join(f"{_guarded(column)} AS c{place}" for place, column in enumerate(self.columns))
        equal = " AND ".join(f"s.k{place} IS NOT DISTINCT FROM f.k{place}" for place in range(len(keys)))
        number = "row_number() OVER () - 1 AS n"
        with _translated(self.name):
            cursor = self._database.connection.cursor()
            try:
                cursor.execute(
                    f"CREATE TEMP TABLE firsts AS SELECT {', '.join(f'k{place}' for place in range(len(keys)))}, "  # noqa: S608
                    f"min(n) AS first, sum(size) AS size FROM (SELECT {named}, {number}, 8{sizes} AS size FROM {self._source}) "
                    "GROUP BY ALL",
                    self._parameters or None,
                )
                total = cursor.execute("SELECT coalesce(sum(size), 0) FROM firsts").fetchall()[0][0]
                check_expansion(self.name, int(total), self.size)
                cursor.execute(
                    f"SELECT f.first, s.n, {', '.join(f's.c{place}' for place in range(len(self.columns)))} "  # noqa: S608
                    f"FROM (SELECT {named}, {cells}, {number} FROM {self._source}) s JOIN firsts f ON {equal} "
                    "ORDER BY f.first, s.n",
                    self._parameters or None,
                )
                yield from _fetched(cursor)
            finally:
                cursor.close()

    def close(self) -> None:
        """Close the database; may be called more than once."""
        self._database.close()


def _batches(cursor: Any, places: Sequence[int] | None) -> Iterator[Batch]:
    first = 0
    for rows in _fetched(cursor):
        if places is not None:
            rows = [tuple([row[place] for place in places]) for row in rows]
        yield Batch(first, rows)
        first += len(rows)


def _fetched(cursor: Any) -> Iterator[list[tuple[Any, ...]]]:
    size = 64
    while rows := cursor.fetchmany(size):
        yield rows
        longest = max(
            sum(len(value) for value in row if type(value) is str) for row in (rows[0], rows[len(rows) // 2], rows[-1])
        )
        size = max(1, min(BATCH_ROWS, _BATCH_CHARACTERS // (longest + 1)))


def open_parquet(source: str | Path) -> DuckdbTable:
    """Open a Parquet file, a folder of such files (also in subfolders), or the files that a pattern with ``*`` matches.

    Raises ``MissingExtra`` and ``TableError``.
    """
    path = Path(source)
    if path.is_dir():
        files = sorted(found for found in path.rglob("*.parquet") if found.is_file())
        missing = f"the folder {source} has no .parquet files"
    elif path.exists() or not _is_pattern(str(source)):
        files, missing = [path] if path.exists() else [], f"{source} does not exist"
    else:
        import glob

        files = sorted(Path(found) for found in glob.glob(str(source), recursive=True) if Path(found).is_file())
        missing = f"no file matches {source}"
    import_duckdb(f"reading {source}")
    if not files:
        raise TableError(missing)
    names = [file.absolute() for file in files]
    _check_sizes(names, str(source))
    database = Database(f"reading {source}", names)
    try:
        made = DuckdbTable(database, str(source), "read_parquet(?)", [[literal_path(file) for file in names]])
        made.size = sum(file.stat().st_size for file in names)
        return made
    except BaseException:
        database.close()
        raise


def open_database(path: Path, query: str | None) -> DuckdbTable:
    """Open a DuckDB file for reading. Without ``query``, the file must have exactly one table or view.

    Raises ``MissingExtra``, ``QueryRefused`` and ``TableError``.
    """
    import_duckdb(f"reading {path}")
    if not path.is_file():
        raise TableError(f"{path} does not exist")
    with _translated(str(path)):
        database = Database(f"reading {path}", database=path)
    try:
        if query is not None:
            return DuckdbTable(database, str(path), checked_query(query), is_query=True)
        found = database.connection.execute(
            "SELECT table_name FROM information_schema.tables ORDER BY table_name"
        ).fetchall()
        if len(found) != 1:
            what = f"the tables are: {listed([name for (name,) in found])}" if found else "the file has no tables"
            raise TableError(
                f"{path} needs a query" if found else f"{path} has no tables",
                f'add --query "SELECT * FROM NAME"; {what}',  # noqa: S608 - a hint
            )
        return DuckdbTable(database, str(path), _quoted(found[0][0]))
    except BaseException:
        database.close()
        raise


def open_arrow(source: Any, name: str) -> DuckdbTable:
    """Copy an object with ``__arrow_c_stream__`` into a database, because it may be possible to read a stream only once.

    Raises ``MissingExtra`` and ``TableError``.
    """
    database = Database(f"reading {name}")
    try:
        with _translated(name):
            database.connection.register("stream", source.__arrow_c_stream__())  # needs no library of Arrow
            database.connection.execute("CREATE TABLE source AS SELECT * FROM stream")
            database.connection.unregister("stream")
        return DuckdbTable(database, name, "source")
    except BaseException:
        database.close()
        raise


def checked_query(query: str) -> str:
    """Return the query if it is a single SELECT. Raises ``QueryRefused``."""
    module = import_duckdb("--query")
    try:
        found = module.extract_statements(query)
    except module.Error as error:
        raise QueryRefused(f"the query can't be read: {_first_line(error)}") from None
    if len(found) != 1:
        raise QueryRefused(f"the query has {len(found)} statements", "--query takes a single SELECT")
    if (kind := found[0].type.name) != "SELECT":
        raise QueryRefused(
            f"the query is {kind}, not SELECT", "--query takes a single SELECT; the database is opened for reading only"
        )
    return query


class _translated:
    """Turn DuckDB's errors into ``TableError``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or isinstance(error, TableError | GeneratorExit):
            return
        import duckdb

        if isinstance(error, duckdb.PermissionException):
            raise QueryRefused(
                f"the query reads or writes something outside of {self._name}: {_first_line(error)}",
                "only the named source can be read",
            ) from None
        if isinstance(error, duckdb.OutOfMemoryException):
            raise TableError(f"{self._name} needs more than {MEMORY} of memory at once: {_first_line(error)}") from None
        if isinstance(error, duckdb.Error | MemoryError | UnicodeDecodeError):
            raise TableError(f"{self._name} can't be read: {_first_line(error)}") from None


def _check_sizes(files: Sequence[Path], name: str) -> None:
    """Raise ``TableError`` for a file that can't be read, is empty or is not a Parquet file."""
    for file in files:
        try:
            with open(file, "rb") as opened:
                head = opened.read(4)
        except OSError as error:
            raise TableError(f"{file} can't be read: {error.strerror or error}") from None
        if head != b"PAR1":
            raise TableError(f"{file} is not a Parquet file" if head else f"{file} is empty")


def _guarded(column: Column) -> str:
    """Return SQL that selects a column, and that fails if a cell is too large."""
    name = _quoted(column.name)
    if column.source_type == "VARCHAR":
        message = f"a cell of {column.name[:60]!r} has more than {MAX_CELL:,} bytes".replace("'", "''")
        return f"CASE WHEN strlen({name}) > {MAX_CELL} THEN error('{message}') ELSE {name} END"
    return name


def _key(column: Column, *, is_single: bool) -> str:
    """Return SQL with values that are equal if Python's are. It compares texts as bytes, because bytes have no collation."""
    name = _quoted(column.name)
    if column.source_type != "VARCHAR":
        return name
    return f"coalesce(encode({name}), ''::BLOB)" if is_single else f"encode({name})"


def _type(kind: Any) -> ColumnType:
    name = str(getattr(kind, "id", kind)).lower()
    return _TYPES.get(name, "json" if str(kind) == "JSON" else "other")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _is_pattern(name: str) -> bool:
    return any(character in name for character in "*?[")


def _first_line(error: BaseException) -> str:
    text = str(error).strip().split("\n", 1)[0]
    for prefix in (
        "Invalid Input Error: ",
        "IO Error: ",
        "Permission Error: ",
        "Catalog Error: ",
        "Binder Error: ",
        "Parser Error: ",
    ):
        text = text.removeprefix(prefix)
    return text[:300]
