"""Writes tables: ``.csv .tsv .json .jsonl`` and, with DuckDB, ``.parquet .duckdb``.

A file is written under a temporary name and then renamed.

A writer receives columns with types, and rows of JSON values. In CSV, Parquet and DuckDB files, nested values are JSON texts.
"""

import contextlib
import csv
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from ..permissions import NAMED
from .port import Column, TableError

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".duckdb")
"""The suffixes of files that can be written."""
_INSERTED = 8_192
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Characters that make a spreadsheet treat a cell as a formula if the cell begins with them."""
_SQL: Mapping[str, str] = {
    "int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN", "date": "DATE", "datetime": "TIMESTAMP", "decimal": "DOUBLE",
}  # fmt: skip
_OWN_TYPE = re.compile(
    r"(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|"
    r"FLOAT|DOUBLE|DATE|BOOLEAN|UUID|TIMESTAMP(_S|_MS|_NS)?|TIMESTAMP WITH TIME ZONE|DECIMAL\(\d+, ?\d+\))"
)

Rows = Iterable[Sequence[Any]]


def write_table(
    path: Path, columns: Sequence[Column], rows: Rows, *, table: str = "results", spreadsheet: bool = False,
    about: Mapping[str, str] | None = None, suffix: str | None = None,
) -> None:  # fmt: skip
    """Write a table to ``path``. An existing file is replaced when the new one is complete.

    ``suffix``, one of ``SUFFIXES``, determines the format (default: the suffix of ``path``). ``table`` is the name of the table
    in a ``.duckdb`` file. With ``spreadsheet``, text cells of CSV that begin like a formula get a ``'``. ``about`` is written
    to the metadata of a Parquet file. Raises ``MissingExtra``, ``TableError`` and ``OSError``; in these cases an existing file
    is unchanged.
    """
    suffix = path.suffix.lower() if suffix is None else suffix
    if suffix in (".parquet", ".duckdb"):
        from .database import import_duckdb

        import_duckdb(f"writing {path}")

        def fill(target: Path) -> None:
            _write_duckdb(target, columns, rows, suffix, table, about or {})
    elif suffix in (".csv", ".tsv"):

        def fill(target: Path) -> None:
            with open(target, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
                write_csv(file, columns, rows, "\t" if suffix == ".tsv" else ",", spreadsheet=spreadsheet)
    elif suffix in (".jsonl", ".ndjson", ".json"):

        def fill(target: Path) -> None:
            names = [column.name for column in columns]
            write_objects(target, (dict(zip(names, row, strict=True)) for row in rows), is_list=suffix == ".json")
    else:
        raise TableError(
            f"can't write {path.suffix or 'a file without a suffix'}: {path}", f"write {', '.join(SUFFIXES)}"
        )
    replace_whole(path, fill)


def write_csv(
    file: IO[str], columns: Sequence[Column], rows: Rows, delimiter: str = ",", *, spreadsheet: bool = False
) -> None:
    """Write rows as CSV with a header (RFC 4180). Null is an empty cell."""
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerow([column.name for column in columns])
    is_text = [column.type in ("text", "json") for column in columns]
    for row in rows:
        writer.writerow(csv_cells(row, is_text, spreadsheet))


def csv_cells(row: Sequence[Any], is_text: Sequence[bool], spreadsheet: bool = False) -> list[Any]:
    """Return the cells of a row as they are written to CSV. ``is_text`` tells which columns contain texts."""
    cells = [_cell(value) for value in row]
    if spreadsheet:
        return [
            f"'{cell}" if text and cell.startswith(_FORMULA) else cell
            for cell, text in zip(cells, is_text, strict=True)
        ]
    return cells


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def write_objects(target: Path, objects: Iterable[Any], *, is_list: bool = False) -> None:
    """Write JSON objects, one per line; with ``is_list`` as one JSON list with one object per line. Raises ``OSError``."""
    with open(target, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        if not is_list:
            for each in objects:
                file.write(json.dumps(each, ensure_ascii=False, allow_nan=False) + "\n")
            return
        file.write("[")
        for number, each in enumerate(objects):
            file.write((",\n" if number else "\n") + json.dumps(each, ensure_ascii=False, allow_nan=False))
        file.write("\n]\n")


def replace_whole(path: Path, fill: Callable[[Path], None]) -> None:
    """Call ``fill`` with a new file in the folder of ``path``, and rename that file to ``path`` when it is complete and on the disk.

    The mode of an existing file is kept. If ``path`` is a pipe or a device, the content is copied to it. Raises ``OSError`` and
    the exceptions of ``fill``; in these cases the new file is removed.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():  # a pipe or a device, which is written into
        with tempfile.TemporaryDirectory(prefix="knotwork-") as spool:
            fill(Path(spool) / "table")
            with open(Path(spool) / "table", "rb") as made, open(path, "wb") as stream:
                shutil.copyfileobj(made, stream)
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(2, "the folder does not exist", str(path.parent))
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    whole = folder / target.name
    try:
        fill(whole)
        with open(whole, "rb+") as file:
            os.fsync(file.fileno())
        mask = os.umask(0o077)
        os.umask(mask)
        with contextlib.suppress(FileNotFoundError):
            mode = target.stat().st_mode & 0o7777
            os.chmod(whole, mode)
        if not target.exists():
            os.chmod(whole, NAMED & ~mask)
        os.replace(whole, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_duckdb(
    target: Path, columns: Sequence[Column], rows: Rows, suffix: str, table: str, about: Mapping[str, str]
) -> None:  # fmt: skip
    import duckdb

    from .database import MEMORY

    own = suffix == ".duckdb"
    with contextlib.ExitStack() as stack:
        spilled = tempfile.mkdtemp(prefix="knotwork-")
        stack.callback(shutil.rmtree, spilled, ignore_errors=True)
        connection = duckdb.connect(
            str(target) if own else ":memory:", config={"memory_limit": MEMORY, "threads": 2, "temp_directory": spilled}
        )
        stack.callback(connection.close)
        try:
            _insert_all(connection, columns, rows, table)
            if not own:
                told = ", ".join(f"{_quoted(name)}: {_literal(value)}" for name, value in about.items())
                more = f", KV_METADATA {{{told}}}" if about else ""
                copy = f"COPY {_quoted(table)} TO {_literal(str(target))} (FORMAT parquet, COMPRESSION zstd{more})"
                connection.execute(copy)
        except duckdb.Error as error:
            raise TableError(f"{target.name} can't be written: {str(error).splitlines()[0]}") from None


def _insert_all(connection: Any, columns: Sequence[Column], rows: Rows, table: str) -> None:
    import numpy as np

    types = [_sql_type(column) for column in columns]
    declared = ", ".join(f"{_quoted(column.name)} {kind}" for column, kind in zip(columns, types, strict=True))
    connection.execute(f"CREATE TABLE {_quoted(table)} ({declared})")
    casts = ", ".join(f"CAST(c{place} AS {kind})" for place, kind in enumerate(types))
    insert = f"INSERT INTO {_quoted(table)} SELECT {casts} FROM added"  # noqa: S608 - names are quoted, types are this module's
    for part in _parts(rows):
        texts = [[_text(value) for value in cells] for cells in zip(*part, strict=True)]
        connection.register("added", {f"c{place}": np.array(cells, dtype=object) for place, cells in enumerate(texts)})
        connection.execute(insert)
        connection.unregister("added")


def _parts(rows: Rows) -> Iterator[list[Sequence[Any]]]:
    iterator = iter(rows)
    while part := list(islice(iterator, _INSERTED)):
        yield part


def _sql_type(column: Column) -> str:
    """Return the column's SQL type: its type in the source if this type can be kept, else the default for ``column.type``."""
    if column.source_type and _OWN_TYPE.fullmatch(column.source_type):
        return column.source_type
    return _SQL.get(column.type, "VARCHAR")


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value if value is None or value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    return json.dumps(value, ensure_ascii=False)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
