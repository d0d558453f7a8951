"""The history of one server: a SQLite file, written and read by one thread.

When the file is opened, a run without an end counts as interrupted, because only one server at a time can open the file.
"""

import asyncio
import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, TypeVar

from ...api.server_runs import private_folder
from ..http.problems import json_bytes
from .history import (
    COLUMNS,
    EVALUATION_COLUMNS,
    HistoryError,
    LocalRuns,
    Row,
    StoredEvaluation,
    StoredIteration,
    StoredRun,
    read_evaluation,
    read_kept,
    read_row,
)

T = TypeVar("T")

_APPLICATION = 0x6B6E6F74
"""SQLite's application id: "knot"."""
_VERSION = 1

_TABLES = (
    "CREATE TABLE runs (id TEXT PRIMARY KEY, owner TEXT NOT NULL, created REAL NOT NULL, status TEXT NOT NULL,"
    " stopped TEXT NOT NULL, model TEXT NOT NULL, instruct TEXT NOT NULL, iter_max INTEGER NOT NULL,"
    " score_threshold REAL NOT NULL, score REAL, best INTEGER, iterations INTEGER NOT NULL, seconds REAL NOT NULL,"
    " calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cost REAL,"
    " last_event INTEGER NOT NULL, request BLOB NOT NULL, metadata BLOB NOT NULL)",
    "CREATE INDEX runs_by_owner ON runs (owner, id)",
    "CREATE INDEX runs_by_status ON runs (status) WHERE status = 'running'",
    "CREATE TABLE iterations (run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, number INTEGER NOT NULL,"
    " event INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (run, number))",
)
_EVALUATIONS = (
    "CREATE TABLE IF NOT EXISTS evaluations (id TEXT PRIMARY KEY, owner TEXT NOT NULL, created REAL NOT NULL,"
    " status TEXT NOT NULL, target BLOB NOT NULL, body BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS evaluations_by_owner ON evaluations (owner, id)",
)
"""The tables that files of earlier releases lack. Earlier releases ignore these tables."""
_OWN_FAULT = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, OverflowError, UnicodeEncodeError)
"""Errors that a single write causes. If a transaction with several writes fails in this way, each write is tried in its own transaction."""


class SqliteHistory:
    """The runs of all owners in the file ``path`` (created with mode 0600, its folder with 0700).

    ``keep`` is the maximum number of runs per owner; the oldest finished runs are deleted. ``busy`` is the number of seconds to
    wait if another process has locked the file. Only one server at a time can open the history. An instance belongs to one
    event loop. The methods are those of ``RunHistory``.
    """

    def __init__(self, path: Path, keep: int, busy: float = 2.0) -> None:
        self.path = path
        self._keep = keep
        self._busy = busy
        self._lock = -1
        self._file: sqlite3.Connection | None = None
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="knotwork-history")
        self._pending: list[tuple[Callable[[sqlite3.Connection], Any], asyncio.Future[Any]]] = []
        self._flushing: asyncio.Task[None] | None = None
        self._closed = False

    async def open(self) -> int:
        """Open the file, mark runs without an end as interrupted, and return the number of these runs. Raises ``HistoryError``."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, self._open)
        except BaseException:
            await self.aclose()
            raise

    async def add_run(self, row: Row, request: Mapping[str, Any]) -> None:
        """Store a new run and delete the owner's oldest runs beyond the limit. Raises ``HistoryError``."""
        body = json_bytes(request)
        await self._write(lambda file: self._begin(file, row, body))

    async def add_iteration(self, row: Row, part: StoredIteration) -> None:
        """Store a finished iteration and the updated row of the run. Raises ``HistoryError``."""
        await self._write(lambda file: _insert(file, row, (part,)))

    async def finish_run(self, row: Row, metadata: Mapping[str, Any]) -> None:
        """Store the end of a run. Raises ``HistoryError``."""
        body = json_bytes(metadata)
        await self._write(lambda file: _update(file, row, body))

    async def replace_run(self, run: StoredRun, *, is_new: bool) -> None:
        """Store all of a run in one transaction; this replaces earlier data about the run. Raises ``HistoryError``."""
        row, request, metadata, parts = run.row, run.request, run.metadata, run.parts
        request_body, body = json_bytes(request), json_bytes(metadata)

        def write(file: sqlite3.Connection) -> None:
            file.execute("DELETE FROM runs WHERE id = ?", (row.id,))
            self._begin(file, row, request_body)
            _insert(file, row, parts)
            _update(file, row, body)

        await self._write(write)

    async def delete_run(self, owner: str, run: str) -> bool:
        """Delete a run and return whether it existed. Raises ``HistoryError``."""
        query = "DELETE FROM runs WHERE owner = ? AND id = ?"
        return bool(await self._write(lambda file: file.execute(query, (owner, run)).rowcount))

    async def find(self, owner: str, run: str) -> StoredRun | None:
        """Return the run with its iterations; None if the owner has no run with this id. Raises ``HistoryError``."""

        def read(file: sqlite3.Connection) -> StoredRun | None:
            query = f"SELECT {COLUMNS}, request, metadata FROM runs WHERE owner = ? AND id = ?"  # noqa: S608 - a constant
            found = file.execute(query, (owner, run)).fetchone()
            if found is None:
                return None
            query = "SELECT number, event, body FROM iterations WHERE run = ? ORDER BY number"
            return read_kept(found, file.execute(query, (run,)).fetchall())

        return await self._read(read)

    async def page(self, owner: str, limit: int, before: str | None = None) -> tuple[list[Row], bool]:
        """Return the newest ``limit`` runs of the owner, and whether more runs follow.

        If ``before`` is given, only older runs are returned.

        Raises ``HistoryError``.
        """

        def read(file: sqlite3.Connection) -> tuple[list[Row], bool]:
            query = f"SELECT {COLUMNS} FROM runs WHERE owner = ? AND id < ? ORDER BY id DESC LIMIT ?"  # noqa: S608 - a constant
            found = file.execute(query, (owner, before or "~", limit + 1)).fetchall()  # "~" sorts after every id
            return [read_row(one) for one in found[:limit]], len(found) > limit

        return await self._read(read)

    async def add_evaluation(self, evaluation: StoredEvaluation) -> None:
        """Store a finished evaluation; see ``RunHistory``. Raises ``HistoryError``."""
        body = json_bytes(evaluation.body)

        def write(file: sqlite3.Connection) -> None:
            query = f"INSERT INTO evaluations ({EVALUATION_COLUMNS}, body) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608 - constants
            file.execute(query, (*evaluation.values(), body))
            query = (
                "DELETE FROM evaluations WHERE owner = ?1 AND id <="
                " (SELECT id FROM evaluations WHERE owner = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)"
            )
            file.execute(query, (evaluation.owner, self._keep))

        await self._write(write)

    async def evaluations(
        self, owner: str, limit: int, before: str | None = None
    ) -> tuple[list[StoredEvaluation], bool]:
        """Return the newest ``limit`` evaluations of the owner, and whether more follow; see ``RunHistory``. Raises ``HistoryError``."""

        def read(file: sqlite3.Connection) -> tuple[list[StoredEvaluation], bool]:
            query = f"SELECT {EVALUATION_COLUMNS} FROM evaluations WHERE owner = ? AND id < ? ORDER BY id DESC LIMIT ?"  # noqa: S608
            found = file.execute(query, (owner, before or "~", limit + 1)).fetchall()
            return [read_evaluation(one) for one in found[:limit]], len(found) > limit

        return await self._read(read)

    async def find_evaluation(self, owner: str, evaluation: str) -> StoredEvaluation | None:
        """Return an evaluation; None if the owner has no evaluation with this id. Raises ``HistoryError``."""
        query = f"SELECT {EVALUATION_COLUMNS}, body FROM evaluations WHERE owner = ? AND id = ?"  # noqa: S608 - a constant
        found = await self._read(lambda file: file.execute(query, (owner, evaluation)).fetchone())
        return None if found is None else read_evaluation(found)

    async def delete_evaluation(self, owner: str, evaluation: str) -> bool:
        """Delete an evaluation and return whether it existed. Raises ``HistoryError``."""
        query = "DELETE FROM evaluations WHERE owner = ? AND id = ?"
        return bool(await self._write(lambda file: file.execute(query, (owner, evaluation)).rowcount))

    def attend(self, local: LocalRuns) -> None:
        """Do nothing: no other server uses the file."""

    async def ask(self, owner: str, run: str, wish: Literal["cancel", "delete"]) -> bool:
        """Return False: no other server has active runs in the file."""
        return False

    async def changed(self, run: str, known: tuple[str, int], patience: float) -> bool:
        """Return False: no other server has active runs in the file."""
        return False

    def end_follows(self) -> None:
        """Do nothing: no run of another server is followed."""

    async def aclose(self) -> None:
        """Finish pending writes and close the file; may be called more than once."""
        if self._closed:
            return
        if self._flushing is not None:
            await asyncio.wait([self._flushing])
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(self._worker, self._shut)
        self._worker.shutdown(wait=False)

    async def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        return await self._work(lambda: self._one(read))

    async def _write(self, write: Callable[[sqlite3.Connection], Any]) -> Any:
        """Run ``write`` in the next transaction. Writes that arrive during a transaction share the next transaction."""
        if self._closed:
            raise HistoryError("the history is closed")
        done = asyncio.get_running_loop().create_future()
        self._pending.append((write, done))
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush())
        return await done

    async def _flush(self) -> None:
        while self._pending:
            batch, self._pending = self._pending, []
            results = await self._work(lambda batch=batch: self._together([write for write, _ in batch]))  # type: ignore[misc]
            for (_, done), outcome in zip(batch, results, strict=True):
                if done.done():  # the waiting task was cancelled
                    continue
                if isinstance(outcome, HistoryError):
                    done.set_exception(outcome)
                else:
                    done.set_result(outcome)

    async def _work(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise HistoryError("the history is closed")
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    # The methods below run in the worker thread.

    def _open(self) -> int:
        try:
            private_folder(self.path.parent)
            self._lock = _locked(self.path)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._file = sqlite3.connect(self.path, timeout=self._busy, isolation_level=None, check_same_thread=False)
            self._prepare(self._file)
            left = self._file.execute("UPDATE runs SET status = 'interrupted' WHERE status = 'running'")
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise _damaged(self.path, str(error)) from None
            raise HistoryError(f"the history can't be opened: {error} ({self.path})") from None
        except OSError as error:
            raise HistoryError(f"the history can't be opened: {error.strerror or error} ({self.path})") from None
        return left.rowcount

    def _prepare(self, file: sqlite3.Connection) -> None:
        """Create the tables in a new file; check that an existing file is a history and is not damaged."""
        (application,), (version,) = (
            file.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        if not file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] and not application:
            file.execute("PRAGMA journal_mode=WAL")
            file.execute("BEGIN IMMEDIATE")
            for table in _TABLES:
                file.execute(table)
            file.execute(f"PRAGMA application_id={_APPLICATION}")
            file.execute(f"PRAGMA user_version={_VERSION}")
            file.execute("COMMIT")
        elif application != _APPLICATION:
            raise HistoryError(
                f"{self.path} is a database of another program", hint="choose another file for the history"
            )
        elif version != _VERSION:
            raise HistoryError(
                f"{self.path} has version {version}, not {_VERSION}", hint="choose another file for the history"
            )
        (whole,) = file.execute("PRAGMA quick_check(1)").fetchone()
        if whole != "ok":
            raise _damaged(self.path, whole)
        file.execute("PRAGMA journal_mode=WAL")
        file.execute("PRAGMA synchronous=FULL")  # an iteration takes seconds; a sync takes milliseconds
        file.execute("PRAGMA foreign_keys=ON")
        for table in _EVALUATIONS:
            file.execute(table)

    def _begin(self, file: sqlite3.Connection, row: Row, request: bytes) -> None:
        marks = ", ".join("?" * (len(row.values()) + 2))
        query = f"INSERT INTO runs ({COLUMNS}, request, metadata) VALUES ({marks})"  # noqa: S608 - constants
        file.execute(query, (*row.values(), request, b"{}"))
        # LIMIT 1 OFFSET finds the newest run beyond the limit. With fewer runs, the result is NULL and nothing is deleted.
        query = (
            "DELETE FROM runs WHERE owner = ?1 AND status != 'running' AND id <="
            " (SELECT id FROM runs WHERE owner = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)"
        )
        file.execute(query, (row.owner, self._keep))

    def _one(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._file is None:
            raise HistoryError("the history is not open")
        try:
            return work(self._file)
        except sqlite3.Error as error:
            raise HistoryError(f"the history can't be read: {error}") from None

    def _together(self, writes: list[Callable[[sqlite3.Connection], Any]]) -> list[Any]:
        """Run all ``writes`` in one transaction; return the result or the error for each write."""
        file = self._file
        if file is None:
            return [HistoryError("the history is not open")] * len(writes)
        try:
            file.execute("BEGIN IMMEDIATE")
            results = [write(file) for write in writes]
            file.execute("COMMIT")
        except (sqlite3.Error, OverflowError, UnicodeEncodeError) as error:
            with contextlib.suppress(sqlite3.Error):  # SQLite may already have rolled back
                if file.in_transaction:
                    file.execute("ROLLBACK")
            if len(writes) > 1 and isinstance(error, _OWN_FAULT):
                return [self._together([write])[0] for write in writes]
            return [HistoryError(f"the history can't be written: {error}") for _ in writes]
        return results

    def _shut(self) -> None:
        if self._file is not None:
            with contextlib.suppress(sqlite3.Error):  # everything important is committed
                self._file.close()
            self._file = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _insert(file: sqlite3.Connection, row: Row, parts: tuple[StoredIteration, ...]) -> None:
    for part in parts:
        file.execute("INSERT INTO iterations (run, number, event, body) VALUES (?, ?, ?, ?)", (row.id, *part.values()))
    _update(file, row, None)


def _update(file: sqlite3.Connection, row: Row, metadata: bytes | None) -> None:
    query = (
        "UPDATE runs SET status = ?, stopped = ?, score = ?, best = ?, iterations = ?, seconds = ?, calls = ?,"
        " prompt_tokens = ?, completion_tokens = ?, cost = ?, last_event = ?, metadata = coalesce(?, metadata) WHERE id = ?"
    )
    if not file.execute(query, (*row.changing(), metadata, row.id)).rowcount:
        raise sqlite3.IntegrityError("the history does not contain the run")


def _locked(path: Path) -> int:
    """Lock the lock file next to ``path`` and return its file descriptor; the system releases the lock when the process ends."""
    lock = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise HistoryError(
            f"another server is using {path}", hint="choose another history file for this server"
        ) from None
    return lock


def _damaged(path: Path, why: str) -> HistoryError:
    return HistoryError(
        f"the history is damaged: {why} ({path})", hint="move the file away; the server then creates a new one"
    )
