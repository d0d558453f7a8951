"""A Ladybug database (the successor of Kuzu): a file with node and relationship tables, opened read-only in this process."""

import re
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from threading import Lock, Thread
from time import sleep
from typing import TYPE_CHECKING, Any, TypeVar

from ..graph import AdapterError
from ..graph_networkx.rows import Deadline
from .address import Address
from .database import Dialect, EdgeTable, Family, NodeTable, Property, Row, Statement, Tables, quoted

if TYPE_CHECKING:
    import pyarrow as pa

DIALECT = Dialect("ladybug", "offset(id({}))", writes_integers=True)

_FAMILIES: Mapping[str, tuple[Family, str]] = {
    "STRING": ("text", "text"),
    "BOOL": ("boolean", "boolean"),
    "DOUBLE": ("float", "float"),
    **dict.fromkeys(("INT64", "INT32", "INT16", "INT8", "UINT32", "UINT16", "UINT8", "SERIAL"), ("integer", "integer")),
    **dict.fromkeys(("INT128", "UINT64"), ("other", "integer")),
    **dict.fromkeys(("FLOAT", "DECIMAL"), ("other", "float")),
    **dict.fromkeys(("MAP",), ("other", "object")),
    **dict.fromkeys(("LIST", "ARRAY"), ("other", "list")),
}
"""Maps each type to its family and its JSON kind. All other types are text in items."""

_MOST_TEXTS = 100
"""A connection is replaced after this number of different statements, because it keeps every statement that it has prepared."""
_POLL = 0.05
"""Number of seconds after which it is checked again whether the caller has cancelled."""


def load_ladybug() -> Any:
    """Import the package ``ladybug``, with the symbols of its extension module kept to itself.

    The package loads that module with ``RTLD_GLOBAL``. A library of C++ that is loaded after it, such as the one of the local
    model, then takes some of its own symbols from there, and the process is aborted at the import. A module that is loaded already
    is taken by the package as it is.
    """
    name = "ladybug._lbug"
    package = find_spec("ladybug")
    if name not in sys.modules and package is not None:
        spec = PathFinder.find_spec(name, list(package.submodule_search_locations or ()))
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            sys.modules[name] = module
            try:
                spec.loader.exec_module(module)
            except ImportError:  # the package falls back to its C API, and says why
                del sys.modules[name]
    return import_module("ladybug")


_Read = TypeVar("_Read")


class LadybugDatabase:
    """A database file. A connection runs one statement at a time, so several threads use several connections."""

    dialect = DIALECT

    def __init__(self, address: Address) -> None:
        if find_spec("ladybug") is None:
            raise AdapterError(
                f"{address.name}: the optional dependencies are not installed", hint="pip install 'knotwork[ladybug]'"
            )
        ladybug = load_ladybug()

        self.name = address.name
        path = Path(address.path).expanduser()
        if not path.exists():
            raise AdapterError(f"{self.name}: the file does not exist", hint="name the file of a Ladybug database")
        if path.is_dir():
            raise AdapterError(f"{self.name}: a folder, not a database file", hint="name a file in it")
        self._library = ladybug
        try:
            self._database = ladybug.Database(str(path), read_only=True)
        except RuntimeError as error:
            raise AdapterError(
                f"{self.name}: can't be opened: {_reason(error)}",
                hint="check that no other process writes to it, and that its version of Ladybug is the installed one",
            ) from None
        self._is_closed = False
        self._watcher = _Watcher()
        self._idle: dict[bool, list[tuple[Any, set[str]]]] = {False: [], True: []}
        """Connections that run no statement, each with the texts of its statements; those for short statements have one thread."""

    def run(self, statement: Statement, deadline: Deadline) -> list[Row]:
        """Return the rows of a statement; see ``Database.run``."""
        return self._executed(statement, deadline, _rows_of) or []

    def few(self, statement: Statement, most: int, deadline: Deadline) -> list[Row] | None:
        """Return the rows of a statement, or None if there are more than ``most``; see ``Database.few``."""

        def read(result: Any, deadline: Deadline) -> list[Row] | None:
            return None if result.get_num_tuples() > most else _rows_of(result, deadline)

        return self._executed(statement, deadline, read)

    def columns(self, statement: Statement, deadline: Deadline) -> "pa.Table | None":
        """Return the columns of a statement; see ``Database.columns``."""
        return None if find_spec("pyarrow") is None else self._executed(statement, deadline, _arrow_of)

    def _executed(
        self, statement: Statement, deadline: Deadline, read: Callable[[Any, Deadline], _Read]
    ) -> _Read | None:
        """Return what ``read`` makes of the result of a statement; None if the deadline passes."""
        if self._is_closed:
            raise AdapterError(f"{self.name}: the database is closed")
        if deadline.passed():
            return None
        idle = self._idle[statement.is_short]
        try:
            connection, texts = idle.pop()
        except IndexError:
            threads = 1 if statement.is_short else 0  # 0: all threads
            connection, texts = self._library.Connection(self._database, threads), set()
        running = self._watcher.begin(connection, deadline)
        try:
            result = connection.execute(statement.text, dict(statement.parameters))
            made = read(result, deadline)
            result.close()
        except RuntimeError as error:
            if deadline.hit and "interrupt" in str(error).lower():
                return None
            raise AdapterError(f"{self.name}: the database refused a statement: {_reason(error)}") from None
        finally:
            self._watcher.end(running)
        if deadline.hit:
            return None
        texts.add(statement.text)
        if len(texts) <= _MOST_TEXTS:
            idle.append((connection, texts))
        return made

    def tables(self, deadline: Deadline) -> Tables:
        """Return the tables in the order of their creation. Raises ``AdapterError`` for a table that can't be addressed."""
        listed = self._all("CALL show_tables() RETURN id, name, type ORDER BY id", deadline)
        nodes: dict[str, NodeTable] = {}
        for _, name, kind in listed:
            if kind == "NODE":
                self._check_name(name)
                columns = self._all(f"CALL table_info({_text(name)}) RETURN *", deadline)
                properties = {str(row[1]): property_of(row[1], row[2]) for row in columns}
                key = next(properties[row[1]] for row in columns if row[4])
                if key.family not in ("text", "integer"):
                    raise AdapterError(
                        f"{self.name}: the primary key {name}.{key.name} has the type {key.type}",
                        hint="ids of nodes are texts or integers of at most 64 bits",
                    )
                nodes[name] = NodeTable(name, key, properties, len(nodes))
        edges: list[EdgeTable] = []
        for _, name, kind in listed:
            if kind == "REL":
                self._check_name(name)
                columns = self._all(f"CALL table_info({_text(name)}) RETURN *", deadline)
                properties = {str(row[1]): property_of(row[1], row[2]) for row in columns}
                for source, target, *_ in self._all(f"CALL show_connection({_text(name)}) RETURN *", deadline):
                    edges.append(EdgeTable(name, nodes[source], nodes[target], properties, len(edges)))
        return Tables(tuple(nodes.values()), tuple(edges))

    def close(self) -> None:
        """Close the file."""
        if not self._is_closed:
            self._is_closed = True
            self._database.close()

    def _all(self, text: str, deadline: Deadline) -> list[Row]:
        return self.run(Statement(text), deadline)

    def _check_name(self, name: str) -> None:
        quoted(name)
        if "." in name:
            raise AdapterError(f"{self.name}: Ladybug can't query the table {name!r}", hint="rename it without the dot")


class _Watcher:
    """Interrupts the statements whose deadline has passed. One thread watches all; it ends after a time without statements."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: dict[int, tuple[Any, Deadline]] = {}
        self._begun = 0
        self._is_awake = False

    def begin(self, connection: Any, deadline: Deadline) -> int:
        """Watch the statement that a connection begins, and return its number."""
        with self._lock:
            self._begun += 1
            self._running[self._begun] = (connection, deadline)
            if not self._is_awake:
                self._is_awake = True
                Thread(target=self._watch, name="ladybug deadlines", daemon=True).start()
            return self._begun

    def end(self, number: int) -> None:
        """Stop watching a statement. It is not interrupted after this call."""
        with self._lock:
            del self._running[number]

    def _watch(self) -> None:
        idle = 0
        while True:
            sleep(_POLL)
            with self._lock:
                idle = 0 if self._running else idle + 1
                if idle > _IDLE_POLLS:
                    self._is_awake = False
                    return
                for connection, deadline in self._running.values():
                    if deadline.passed():
                        connection.interrupt()


_IDLE_POLLS = 40


_ARROW_FROM = 256
"""A result with fewer rows is read row by row."""
_ARROW_BATCH = 65_536
_ARROW_TYPES = frozenset(
    ("STRING", "BOOL", "DOUBLE", "INT64", "INT32", "INT16", "INT8", "UINT32", "UINT16", "UINT8", "SERIAL")
)
"""The types whose values are equal whether they are read row by row or as Arrow columns."""


def _rows_of(result: Any, deadline: Deadline) -> list[Row]:
    """Return the rows of a result; a part of them if the deadline passes."""
    types = result.get_column_data_types()
    rows: list[Row] = []
    if result.get_num_tuples() >= _ARROW_FROM and _ARROW_TYPES.issuperset(types) and find_spec("pyarrow") is not None:
        for batch in result.get_as_arrow(_ARROW_BATCH).to_batches():
            if deadline.passed():
                break
            rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        return rows
    while not deadline.passed() and (some := result.get_n(_BLOCK)):
        rows += some
    exact = [at for at, kind in enumerate(types) if kind == "INT128"]
    return [_with_integers(row, exact) for row in rows] if exact else rows


def _arrow_of(result: Any, deadline: Deadline) -> "pa.Table | None":
    """Return the columns of a result; None if a type has no equal values in Arrow columns."""
    if not _ARROW_TYPES.issuperset(result.get_column_data_types()) or deadline.passed():
        return None
    return result.get_as_arrow(_ARROW_BATCH)


_BLOCK = 10_000


def property_of(name: str, type_name: str) -> Property:
    """Return the property of a column; the engine describes its type by a text such as ``STRUCT(city STRING, n INT64)``."""
    written = type_name.strip()
    if written.endswith("]"):
        return Property(name, "other", "list", written)
    head, bracket, rest = written.partition("(")
    if head == "STRUCT" and bracket:
        parts = tuple(property_of(*part.strip().split(" ", 1)) for part in _split(rest[:-1]) if " " in part.strip())
        return Property(name, "other", "object", written, parts)
    family, kind = _FAMILIES.get(head, ("other", "text"))
    return Property(name, family, kind, written)


def _split(text: str) -> list[str]:
    """Split the fields of a type at the commas that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _with_integers(row: Row, exact: list[int]) -> Row:
    """Return a row with its 128-bit integers as integers, because the library returns them as decimals."""
    made = list(row)
    for at in exact:
        if isinstance(made[at], Decimal):
            made[at] = int(made[at])
    return made


def _text(name: str) -> str:
    """Return a name as a string literal, because table functions accept no parameters."""
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _reason(error: Exception) -> str:
    return re.sub(r"\s+", " ", str(error)).strip()[:300] or type(error).__name__
