"""Opens tables. No other module names a concrete adapter of tables."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .port import BaseTable, Table, TableError, table_suffix

TEXT_SUFFIXES = (".csv", ".tsv")
JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")
_KINDS = "tables are .csv, .tsv, .jsonl, .json, .parquet and .duckdb files, folders of .parquet files, and postgresql:// URLs"


def open_table(source: Any, *, query: str | None = None, encoding: str = "utf-8") -> Table:
    """Open a table for reading.

    ``source`` is one of:

    - a path, as ``Path`` or string: a ``.csv`` or ``.tsv`` file in this ``encoding``, a ``.json`` or ``.jsonl`` file, all of
      these also with ``.gz``; a ``.parquet`` file, a folder of them, or a pattern such as ``data/*.parquet``; a ``.duckdb``
      file, with ``query``, a SELECT
    - ``postgresql://...`` with ``query``
    - a pandas or polars data frame, a DuckDB relation, an object with ``__arrow_c_stream__``, or an iterable of dictionaries
    - a table, which is returned unchanged

    Raises ``TableError`` and its subclasses if the source can't be read; the message gives the reason.
    """
    if isinstance(source, BaseTable):
        return source
    if isinstance(source, str | Path):
        return _named(source, query, encoding)
    if query is not None:
        raise TableError("a query needs a .duckdb file or a postgresql:// URL")
    return _object(source)


def is_table_name(name: str) -> bool:
    """Return whether a name means a table: a file with a table's suffix (not plain JSON), a folder, or a database's URL."""
    from ..postgres import SCHEMES

    return (
        name.startswith(SCHEMES)
        or table_suffix(name) in (*TEXT_SUFFIXES, ".parquet", ".duckdb")
        or (table_suffix(name) in JSON_SUFFIXES and name.lower().endswith(".gz"))
        or Path(name).is_dir()
    )


def shown_name(name: str) -> str:
    """Return the name of a source for messages and stored runs: a URL without its password, any other name unchanged."""
    from ..postgres import SCHEMES, without_password

    return without_password(name) if name.startswith(SCHEMES) else name


def _named(source: str | Path, query: str | None, encoding: str) -> Table:
    from ..postgres import SCHEMES
    from .postgres_table import PostgresTable

    if str(source).startswith(SCHEMES):
        return PostgresTable(str(source), query)
    suffix, path = table_suffix(source), Path(source)
    if suffix == ".duckdb":
        from .duckdb_table import open_database

        return open_database(path, query)
    if query is not None:
        raise TableError("--query needs a .duckdb file or a postgresql:// URL")
    if suffix == ".parquet" or path.is_dir():
        from .duckdb_table import open_parquet

        return open_parquet(source)
    if suffix in TEXT_SUFFIXES:
        from .csv_table import CsvTable

        return CsvTable(path, encoding=encoding)
    if suffix in JSON_SUFFIXES:
        from .json_table import JsonTable

        return JsonTable(path)
    raise TableError(f"{source} is not a table", _KINDS)


def _object(source: Any) -> Table:
    from .frame_table import PandasTable, PolarsTable, RowsTable

    library, kind = type(source).__module__.partition(".")[0], type(source).__name__
    if library == "pandas" and kind == "DataFrame":
        return PandasTable(source)
    if library == "polars" and kind in ("DataFrame", "LazyFrame"):
        return PolarsTable(source)
    if hasattr(source, "__arrow_c_stream__"):
        from .duckdb_table import open_arrow

        return open_arrow(source, "the relation" if library in ("duckdb", "_duckdb") else f"the {kind}")
    if isinstance(source, Iterable) and not isinstance(source, Mapping | bytes):
        return RowsTable(source)
    raise TableError(f"a {kind} is not a table", "such as a path, a data frame, or a list of dictionaries")
