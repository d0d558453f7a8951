"""The interface to tables: columns, rows in batches, and errors.

An adapter reads one source: a file, a folder of files, a query or a data frame. Values keep the types of the source; ``cells`` turns them
into JSON values. A table may be read several times, from its beginning each time. Tables only read their source.

The errors::

    TableError          the table can't be read or written; the base of the others
        LineError       a line of a file can't be read
        MissingExtra    the optional package that reads this source is not installed
        UnknownColumn   a requested column does not exist
        RowError        a row can't be read, for callers that need every row
        TooManyFaults   more than 1 % of the rows can't be read
        QueryRefused    the query is not a single SELECT, or reads what it must not read
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from attrs import field, frozen

from ...lang.diagnostic import nearest
from ...lang.errors import KnotworkError
from ...lang.unicode_forms import canonical

ColumnType = Literal["text", "int", "float", "bool", "date", "datetime", "decimal", "json", "list", "blob", "other"]
"""The type of a column. ``list`` is a list of any values, ``json`` any other nested value, ``other`` a type that is read as text."""

BATCH_ROWS = 2_048
"""Maximum number of rows in a batch."""
MAX_COLUMNS = 10_000
"""Maximum number of columns of a table."""
MAX_CELL = 16 << 20
"""Maximum number of characters of a cell."""
MAX_FAULTY_SHARE = 0.01
"""Maximum share of rows that can't be read. A table that exceeds it, with more than one such row, is refused."""

_LARGE = 1 << 30
_RATIO = 1_000
"""Rows with a total of more than ``_LARGE`` bytes may be at most this many times as large as the source's files."""


@frozen
class Column:
    """A column. ``source_type`` is the type's name in the source, such as ``DECIMAL(10,2)``; "" for sources without types."""

    name: str
    type: ColumnType = "text"
    source_type: str = ""


@frozen
class RowFault:
    """The reason why a row can't be read. ``line`` counts lines from 1. ``cells`` are the cells of the row, as far as they are known."""

    line: int
    reason: str
    cells: tuple[Any, ...] = ()

    @property
    def message(self) -> str:
        """The fault as a message, such as "line 12: 5 cells, but the header has 4"."""
        return f"line {self.line:,}: {self.reason}"


@frozen
class Batch:
    """Consecutive rows. ``first`` is the number of the first row, from 0.

    Each row has the values of the requested columns, in the order of the request. ``faults`` maps positions in ``rows`` to faults; the
    row at such a position is empty.
    """

    first: int
    rows: Sequence[Sequence[Any]]
    faults: Mapping[int, RowFault] = field(factory=dict)


class TableError(KnotworkError):
    """Raised if a table can't be read or written. ``hint`` suggests a fix."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)


class LineError(TableError):
    """Raised if a line of a file can't be read; ``line`` counts lines from 1."""

    def __init__(self, table: str, line: int, reason: str, hint: str = "") -> None:
        super().__init__(f"{table}, line {line:,}: {reason}", hint)
        self.line, self.reason = line, reason


class MissingExtra(TableError):
    """Raised if the package for this kind of table is not installed. ``hint`` is the command that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs the extra {extra!r}, which is not installed", f"pip install 'knotwork[{extra}]'"
        )
        self.extra = extra


def position_of(name: str, columns: Sequence[Column]) -> int | None:
    """Return the position of a column, whose name may be written in another Unicode form; None if there is no such column."""
    form = canonical(name)
    found = [place for place, column in enumerate(columns) if canonical(column.name) == form]
    return next((place for place in reversed(found) if columns[place].name == name), found[0] if found else None)


class UnknownColumn(TableError):
    """Raised if the table does not have a column of this name. The message lists the columns and suggests the nearest name."""

    def __init__(self, name: str, columns: Sequence[Column], table: str = "") -> None:
        known = [column.name for column in columns]
        like = nearest(name, known)
        meant = f"; did you mean {like!r}?" if like else ""
        super().__init__(
            f"unknown column {name!r}{f' of {table}' if table else ''}{meant}", f"the columns are: {listed(known)}"
        )
        self.name = name


class RowError(TableError):
    """Raised if a row can't be read and the caller needs every row."""


class TooManyFaults(TableError):
    """Raised if more than 1 % of the rows can't be read."""

    def __init__(self, table: str, faults: int, rows: int, first: Sequence[RowFault], hint: str = "") -> None:
        examples = "; ".join(fault.message for fault in first)
        super().__init__(
            f"{table}: {faults:,} of {rows:,} rows can't be read, more than the allowed {MAX_FAULTY_SHARE:.0%} ({examples})",
            hint,
        )


class QueryRefused(TableError):
    """Raised if a query is not a single SELECT, or if it reads or writes anything but the tables of its database."""


@runtime_checkable
class Table(Protocol):
    """A table that is open for reading."""

    @property
    def name(self) -> str:
        """The name of the source for messages, without passwords."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns in the order of the source."""
        ...

    @property
    def has_types(self) -> bool:
        """Whether the source has typed values. Without types (CSV), all values are text, and an empty cell may mean null."""
        ...

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Batch]:
        """Yield the rows from the beginning. ``names`` are the columns to read (default: all, in the order of ``columns``).

        Raises ``UnknownColumn``, and ``TableError`` if the source can't be read. Raises ``TooManyFaults`` during iteration or
        after the last row, if more than 1 % of the rows (and more than one row) can't be read.
        """
        ...

    def grouped(self, names: Sequence[str]) -> Iterator[list[tuple[Any, ...]]] | None:
        """Return batches of all rows, in which the rows of each group are adjacent; None if the table can't sort them itself.

        Rows with equal values in the columns ``names`` are a group; if this is a single column of texts, null and "" are equal.
        Each row consists of the number of its group's first row, its own number (both from 0), and its cells. Groups are in the
        order of their first rows, the rows of a group in their original order. Iteration raises ``TableError``.
        """
        ...

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dictionaries with all columns. Raises ``RowError`` for the first row that can't be read."""
        ...

    def close(self) -> None:
        """Release files and connections; may be called more than once."""
        ...


class BaseTable:
    """The parts that adapters share: ``rows``, ``close`` and the context manager. Subclasses define the rest of ``Table``."""

    name: str
    columns: tuple[Column, ...]
    has_types: bool = True
    size: int | None = None
    """Total size of the source's files in bytes, if they are compressed; None otherwise."""

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Batch]:
        """Yield the rows; see ``Table.batches``."""
        raise NotImplementedError

    def grouped(self, names: Sequence[str]) -> Iterator[list[tuple[Any, ...]]] | None:
        """Return None: the table can't sort its rows by group; see ``Table.grouped``."""
        return None

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dictionaries; see ``Table.rows``."""
        names = [column.name for column in self.columns]
        for batch in self.batches():
            for fault in batch.faults.values():
                raise RowError(f"{self.name}, {fault.message}")
            for row in batch.rows:
                yield dict(zip(names, row, strict=True))

    def close(self) -> None:
        """Release files and connections; may be called more than once."""

    def __enter__(self) -> "BaseTable":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def positions(self, names: Sequence[str] | None) -> list[int]:
        """Return the positions of ``names`` among the columns (None: of all columns). Raises ``UnknownColumn``."""
        if names is None:
            return list(range(len(self.columns)))
        found = []
        for name in names:
            if (place := position_of(name, self.columns)) is None:
                raise UnknownColumn(name, self.columns, self.name)
            found.append(place)
        return found


def checked_columns(columns: Iterable[Column], table: str) -> tuple[Column, ...]:
    """Return the columns. Raises ``TableError`` for a table without columns, with too many columns, or with equal names."""
    found = tuple(columns)
    if not found:
        raise TableError(f"no columns in {table}")
    check_width(len(found), table)
    seen = set[str]()
    for column in found:
        if column.name in seen:
            raise TableError(f"two columns of {table} have the name {column.name!r:.80}", "rename one of them")
        seen.add(column.name)
    return found


def check_width(width: int, table: str) -> None:
    """Raise ``TableError`` if a table has too many columns."""
    if width > MAX_COLUMNS:
        raise TableError(
            f"{table} has {width:,} columns; at most {MAX_COLUMNS:,} are supported", "select the columns that you need"
        )


def check_expansion(name: str, total: int, size: int | None) -> None:
    """Raise ``TableError`` if the rows have ``total`` bytes, which is far more than their files (``size``; None: unknown)."""
    if total > _LARGE and size is not None and total > _RATIO * size:
        raise TableError(f"{name} expands to more than {_RATIO:,} times its size")


def listed(names: Sequence[str], most: int = 30) -> str:
    """Return names for a message, at most ``most`` of them."""
    shown = ", ".join(name if len(name) <= 60 else f"{name[:60]}…" for name in names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def table_suffix(name: str | Path) -> str:
    """Return the suffix that determines a file's kind, in lower case. A suffix ``.gz`` is ignored."""
    path = Path(name)
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
