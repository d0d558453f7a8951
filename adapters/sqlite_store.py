"""A SQLite file that maps keys to paid results. It is opened at first use, written by one thread, and disabled after an error.

If the file is damaged, locked or not writable, one warning is given and results are not saved, but the run continues.
"""

import asyncio
import logging
import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
from attrs import frozen
from blake3 import blake3

from .permissions import private_folder


@frozen
class Table:
    """A table of the file, with the statements that create, probe, read and write the table. The key is the first column.

    ``what`` describes the file in warnings.
    """

    what: str
    make: str
    find: str
    insert: str
    probe: str


def value_table(name: str, what: str) -> Table:
    """Return the definition of a table that maps keys to JSON values, for ``Values``."""
    return Table(
        what=what,
        make=f"CREATE TABLE IF NOT EXISTS {name}"
        " (key BLOB PRIMARY KEY, value BLOB NOT NULL, digest BLOB NOT NULL, at TEXT DEFAULT CURRENT_TIMESTAMP) WITHOUT ROWID",
        find=f"SELECT value, digest FROM {name} WHERE key = ?",  # noqa: S608 - the name is the program's own
        insert=f"INSERT OR REPLACE INTO {name} (key, value, digest) VALUES (?, ?, ?)",  # noqa: S608
        probe=f"SELECT count(*) FROM (SELECT 1 FROM {name} LIMIT 1)",  # noqa: S608
    )


class SQLiteStore:
    """The file at ``path`` with one table. The store belongs to one event loop.

    The folder is created with mode 0700, the file with mode 0600. ``busy`` is the number of seconds to wait while another process writes.
    """

    def __init__(
        self, path: Path, table: Table, *, warn: Callable[[str], None] | None = None, busy: float = 2.0
    ) -> None:
        self._path = path
        self._table = table
        self._busy = busy
        self._warn = warn or logging.getLogger("knotwork").warning
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="knotwork-cache")
        self._opening: asyncio.Future[None] | None = None
        self._closed = False
        self.broken = False

    async def opened(self) -> None:
        """Wait until the file is open or disabled."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open_both())
        if not self._opening.done():
            await asyncio.shield(self._opening)

    def find(self, key: bytes) -> tuple[Any, ...] | None:
        """Return the row of ``key``; None if it is missing or can't be read.

        This runs in the event loop, because it takes only about ten microseconds to find a row by its primary key.
        """
        if self.broken or self._reader is None:
            return None
        try:
            row: tuple[Any, ...] | None = self._reader.execute(self._table.find, (key,)).fetchone()
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY:
                self.give_up(str(error))
            return None
        return row

    async def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query, none if it fails. A query may read many rows, so it runs in the file's own thread."""
        if self.broken or self._closed:
            return []
        found = await asyncio.get_running_loop().run_in_executor(self._worker, self._rows, query, values)
        if isinstance(found, str):
            self.give_up(found)
            return []
        return found

    async def keep(self, *rows: tuple[Any, ...]) -> None:
        """Write ``rows``; several rows are written in one transaction."""
        if not self.broken and not self._closed:
            loop = asyncio.get_running_loop()
            if problem := await loop.run_in_executor(self._worker, self._keep, rows):
                self.give_up(problem)

    def give_up(self, problem: str) -> None:
        """Disable the file and give one warning with the reason."""
        if not self.broken:
            self.broken = True
            self._warn(f"{self._table.what} can't be used and is ignored: {problem} ({self._path})")

    async def aclose(self) -> None:
        """Close the file; repeated calls are allowed."""
        if self._closed:
            return
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(self._worker, self._shut)
        self._worker.shutdown(wait=False)

    async def _open_both(self) -> None:
        problem = await asyncio.get_running_loop().run_in_executor(self._worker, self._open)
        if problem:
            self.give_up(problem)

    # The following methods run in the worker's thread and return the error message, "" on success.

    def _open(self) -> str:
        deadline = time.monotonic() + self._busy
        while True:
            try:
                self._open_once()
                return ""
            except (OSError, sqlite3.Error) as error:
                # A process that creates the file, or switches it to WAL, holds locks that SQLite's busy timeout does not cover.
                busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not busy or time.monotonic() >= deadline:
                    return str(error)
            self._shut()
            time.sleep(0.01)

    def _open_once(self) -> None:
        private_folder(self._path.parent)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        self._writer = self._connect()
        self._writer.execute("PRAGMA journal_mode=WAL")
        self._writer.execute("PRAGMA synchronous=NORMAL")
        self._writer.execute(self._table.make)
        self._reader = self._connect()
        # Reading does not wait: it runs in the event loop, and in WAL mode writers do not block it.
        self._reader.execute("PRAGMA busy_timeout=0")
        self._reader.execute(self._table.probe).fetchone()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=self._busy, isolation_level=None, check_same_thread=False)

    def _rows(self, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]] | str:
        if self._writer is None:
            return "it is not open"
        try:
            return self._writer.execute(query, values).fetchall()
        except (sqlite3.Error, UnicodeEncodeError) as error:
            return str(error)

    def _keep(self, rows: tuple[tuple[Any, ...], ...]) -> str:
        if self._writer is None:
            return "it is not open"
        try:
            if len(rows) == 1:
                self._writer.execute(self._table.insert, rows[0])
                return ""
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                self._writer.executemany(self._table.insert, rows)
            finally:
                self._writer.execute("COMMIT")  # the rows accepted so far are complete
        except (sqlite3.Error, UnicodeEncodeError) as error:
            return str(error)
        return ""

    def _shut(self) -> None:
        for connection in (self._reader, self._writer):
            if connection is not None:
                try:
                    connection.close()
                except sqlite3.Error as error:
                    logging.getLogger("knotwork").debug("closing %s: %s", self._table.what, error)
        self._reader = self._writer = None


class Values(SQLiteStore):
    """A file with one ``value_table``. A checksum of each value detects damage, because SQLite has no checksums."""

    def value(self, key: bytes, missing: Any = None) -> Any:
        """Return the JSON value of ``key``; ``missing`` if no value is stored or the value is damaged."""
        row = self.find(key)
        if row is None:
            return missing
        body, digest = row
        if isinstance(body, bytes) and digest == blake3(key + body).digest(length=8):
            with suppress(orjson.JSONDecodeError):
                return orjson.loads(body)
        self.give_up("a value in it is damaged")
        return missing

    @staticmethod
    def row(key: bytes, value: Any) -> tuple[bytes, bytes, bytes]:
        """Return the row that stores a value, to be passed to ``keep``."""
        body = orjson.dumps(value)
        return key, body, blake3(key + body).digest(length=8)
