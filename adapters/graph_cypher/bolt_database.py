"""A server that speaks Bolt (Neo4j, Memgraph, ArcadeDB), accessed through the official driver of Neo4j.

The labels, relations and property names of such a server are found in its data, and a property may have values of any type. There
is one node table and one edge table.
"""

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from threading import Lock, Thread
from typing import Any

from ..graph import AdapterError
from ..graph_networkx.rows import Deadline
from .address import Address
from .database import Dialect, EdgeTable, NodeTable, Property, Row, Statement, Tables, quoted

DIALECT = Dialect("bolt", "elementId({})", text_order=False, is_typed=False, longest_list=10_000)
PASSWORDS = ("KNOTWORK_GRAPH_PASSWORD", "NEO4J_PASSWORD")
"""The environment variables with the password, in the order in which they are read."""

_POLL = 0.02
"""Number of seconds after which it is checked again whether the caller has cancelled."""
_CONNECT_SECONDS = 10.0
_RETRY_SECONDS = 15.0
"""Maximum time for repeating a statement after a transient error or a lost connection."""


class BoltDatabase:
    """A server. Each statement runs in a read transaction, which is repeated after transient errors and lost connections."""

    dialect = DIALECT

    def __init__(self, address: Address, environ: Mapping[str, str] = os.environ) -> None:
        if find_spec("neo4j") is None:
            raise AdapterError(
                f"{address.name}: the optional dependencies are not installed", hint="pip install 'knotwork[bolt]'"
            )
        self.name = address.name
        self._address = address
        self._password = next((environ[name] for name in PASSWORDS if environ.get(name)), "")
        self._driver: Any = None
        self._lock = Lock()
        self._is_closed = False
        # Python prints the warnings of a library that has no handler.
        logging.getLogger("neo4j").addHandler(logging.NullHandler())

    def run(self, statement: Statement, deadline: Deadline) -> list[Row]:
        """Return the rows of a statement; see ``Database.run``.

        The statement runs in a separate thread, which is abandoned at the deadline. The server gets the same time limit.
        """
        if self._is_closed:
            raise AdapterError(f"{self.name}: the connection is closed")
        if deadline.passed():
            return []
        found: list[list[Row]] = []
        failed: list[Exception] = []

        def work() -> None:
            try:
                found.append(self._read(statement, deadline))
            except Exception as error:
                failed.append(error)

        worker = Thread(target=work, name="bolt statement", daemon=True)
        worker.start()
        while worker.is_alive():
            worker.join(_POLL)
            if worker.is_alive() and deadline.passed():
                self._abandon()
                return []
        if failed:
            if deadline.passed():
                return []
            raise self._refused(failed[0]) from None
        return found[0]

    def few(self, statement: Statement, most: int, deadline: Deadline) -> list[Row] | None:
        """Return the rows of a statement, or None if there are more than ``most``; see ``Database.few``."""
        rows = self.run(statement, deadline)
        return None if deadline.hit or len(rows) > most else rows

    def columns(self, statement: Statement, deadline: Deadline) -> None:
        """Return None, because a server sends rows; see ``Database.columns``."""

    def _read(self, statement: Statement, deadline: Deadline) -> list[Row]:
        import neo4j

        def fetch(transaction: Any) -> list[Row]:
            rows: list[Row] = []
            for record in transaction.run(statement.text, dict(statement.parameters)):
                rows.append([_plain(value) for value in record.values()])
                if len(rows) % 1_000 == 0 and deadline.passed():
                    break
            return rows

        work = neo4j.unit_of_work(timeout=max(0.1, min(deadline.seconds_left, 86_400.0)))(fetch)
        database = self._address.database or None
        with self._opened().session(database=database, default_access_mode=neo4j.READ_ACCESS) as session:
            rows: list[Row] = session.execute_read(work)
            return rows

    def _opened(self) -> Any:
        import neo4j

        address = self._address
        with self._lock:
            if self._driver is None:
                host = f"[{address.host}]" if ":" in address.host else address.host
                port = f":{address.port}" if address.port else ""
                auth = (address.user, self._password) if address.user or self._password else None
                self._driver = neo4j.GraphDatabase.driver(
                    f"{address.scheme}://{host}{port}",
                    auth=auth,
                    connection_timeout=_CONNECT_SECONDS,
                    max_transaction_retry_time=_RETRY_SECONDS,
                    user_agent="knotwork",
                )
            return self._driver

    def _abandon(self) -> None:
        """Abandon the connections without closing them. One of them still waits for the server, so closing it would block."""
        with self._lock:
            driver, self._driver = self._driver, None
        if driver is not None:
            Thread(target=_quietly(driver.close), name="bolt close", daemon=True).start()

    def _refused(self, error: Exception) -> AdapterError:
        from neo4j import exceptions

        if isinstance(error, exceptions.AuthError):
            who = f"user {self._address.user!r}" if self._address.user else "a login without a user"
            return AdapterError(
                f"{self.name}: the server refused {who}",
                hint=f"write the user in the URL, bolt://user@host, and set {PASSWORDS[0]} in the environment",
            )
        why = self._without_password(" ".join(str(getattr(error, "message", None) or error).split()))[:300]
        if isinstance(error, exceptions.ServiceUnavailable | exceptions.SessionExpired):
            return AdapterError(
                f"{self.name}: no connection to the server: {why}", hint="check that it runs, and its host and port"
            )
        if isinstance(error, exceptions.Neo4jError):
            return AdapterError(f"{self.name}: the server refused a statement: {why}")
        return AdapterError(f"{self.name}: {type(error).__name__}: {why}")

    def _without_password(self, text: str) -> str:
        return text.replace(self._password, "***") if self._password else text

    def tables(self, deadline: Deadline) -> Tables:
        """Return one node table and one edge table. Raises ``AdapterError`` if the property with the ids is not unique."""
        name = self._address.id
        key = Property(name or "elementId", "other", "text")
        nodes = NodeTable("", key, {}, 0, is_open=True)
        if name:
            text = f"n.{quoted(name)}"
            counted = self.run(Statement(f"MATCH (n) RETURN count(*), count({text}), count(DISTINCT {text})"), deadline)
            total, present, distinct = counted[0] if counted else (0, 0, 0)
            if not total == present == distinct:
                raise AdapterError(
                    f"{self.name}: {name} is not an id: {total:,} nodes have {present:,} values, {distinct:,} different",
                    hint="write ?id=NAME with a property that each node has, or omit it: then the server's ids are used",
                )
        return Tables((nodes,), (EdgeTable("", nodes, nodes, {}, 0, is_open=True),))

    def close(self) -> None:
        """Close the connections."""
        self._is_closed = True
        with self._lock:
            driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()


def _quietly(close: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        with suppress(Exception):
            close()

    return run


def _plain(value: Any) -> Any:
    """Return a value from the driver, with dates and times converted to ISO 8601 text."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value.iso_format() if hasattr(value, "iso_format") else value
