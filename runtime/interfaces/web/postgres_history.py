"""The history of several servers: tables in a PostgreSQL database, in which each run names its server.

A write that fails is not repeated here: the run continues, and is stored again as a whole when the database is available again,
or at the end of the run.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeVar

from attrs import fields_dict

from ...api.server_runs import PostgresError, PostgresPool, without_password
from ..http.problems import json_bytes
from .history import (
    CHANGING,
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
from .postgres_schema import EVALUATIONS, ITERATIONS, RUNS, create_tables
from .server_lease import CANCEL, DELETE, IS_ELSEWHERE, ServerLease

_T = TypeVar("_T")

_CONNECTIONS = 3
"""Maximum number of connections, not counting the connection of the lease."""
_DELETE_SECONDS = 12.0
"""Maximum number of seconds to wait until another server has deleted a run. During this time, clients can't find the run."""
_INSTRUCT = list(fields_dict(Row)).index("instruct")

_COUNT = len(COLUMNS.split(", "))
_SET = ", ".join(f"{name} = %s" for name in CHANGING)
_ADD = f"INSERT INTO {RUNS} ({COLUMNS}, request, metadata, server) VALUES ({', '.join(['%s'] * (_COUNT + 3))})"  # noqa: S608 - the names are ours
# OFFSET finds the newest run beyond the limit. With fewer runs, the result is NULL and nothing is deleted. Servers that store runs of the
# same owner at the same time skip each other's rows.
_PRUNE = (
    f"DELETE FROM {RUNS} WHERE id IN (SELECT id FROM {RUNS} WHERE owner = %s AND status <> 'running' AND id <="  # noqa: S608
    f" (SELECT id FROM {RUNS} WHERE owner = %s AND wish <> {DELETE} ORDER BY id DESC LIMIT 1 OFFSET %s) FOR UPDATE SKIP LOCKED)"
)
_UPDATE = f"UPDATE {RUNS} SET {_SET}, metadata = coalesce(%s, metadata) WHERE id = %s"  # noqa: S608
_ADD_ITERATION = f"INSERT INTO {ITERATIONS} (run, number, event, body) VALUES (%s, %s, %s, %s)"  # noqa: S608
_CLEAR = f"DELETE FROM {ITERATIONS} WHERE run = %s"  # noqa: S608
_DELETE = f"DELETE FROM {RUNS} WHERE owner = %s AND id = %s"  # noqa: S608
_FIND = (
    f"SELECT {COLUMNS}, {IS_ELSEWHERE}, request, metadata FROM {RUNS} AS r"  # noqa: S608
    f" WHERE owner = %(owner)s AND r.id = %(run)s AND wish <> {DELETE}"
)
_PARTS = f"SELECT number, event, body FROM {ITERATIONS} WHERE run = %s ORDER BY number"  # noqa: S608
_PAGE = (
    f"SELECT {COLUMNS}, {IS_ELSEWHERE} FROM {RUNS} AS r"  # noqa: S608
    f" WHERE owner = %(owner)s AND id < %(before)s AND wish <> {DELETE} ORDER BY id DESC LIMIT %(most)s"
)
_ASK = (
    f"UPDATE {RUNS} AS r SET wish = greatest(r.wish, %(wish)s::smallint)"  # noqa: S608
    f" WHERE r.owner = %(owner)s AND r.id = %(run)s AND {IS_ELSEWHERE}"
)

_ADD_EVALUATION = f"INSERT INTO {EVALUATIONS} ({EVALUATION_COLUMNS}, body) VALUES (%s, %s, %s, %s, %s, %s)"  # noqa: S608
_PRUNE_EVALUATIONS = (
    f"DELETE FROM {EVALUATIONS} WHERE id IN (SELECT id FROM {EVALUATIONS} WHERE owner = %s AND id <="  # noqa: S608
    f" (SELECT id FROM {EVALUATIONS} WHERE owner = %s ORDER BY id DESC LIMIT 1 OFFSET %s) FOR UPDATE SKIP LOCKED)"
)
_EVALUATIONS_PAGE = (
    f"SELECT {EVALUATION_COLUMNS} FROM {EVALUATIONS} WHERE owner = %s AND id < %s ORDER BY id DESC LIMIT %s"  # noqa: S608
)
_FIND_EVALUATION = f"SELECT {EVALUATION_COLUMNS}, body FROM {EVALUATIONS} WHERE owner = %s AND id = %s"  # noqa: S608
_DELETE_EVALUATION = f"DELETE FROM {EVALUATIONS} WHERE owner = %s AND id = %s"  # noqa: S608


class PostgresHistory:
    """The runs of all owners in the database at ``url``. The tables are created if they are missing.

    ``keep`` is the maximum number of runs per owner; the oldest finished runs are deleted. The methods are those of ``RunHistory``.
    At most four connections are open. Raises ``HistoryError`` without psycopg.
    """

    def __init__(self, url: str, keep: int) -> None:
        self.name = without_password(url)
        self._keep = keep
        try:
            self._pool = PostgresPool(url, size=_CONNECTIONS)
            self._lease = ServerLease(PostgresPool(url, size=1))
        except PostgresError as error:
            raise HistoryError(f"the history {error.message}", hint='pip install "knotwork[postgres]"') from None

    async def open(self) -> int:
        """Create missing tables, mark runs of stopped servers as interrupted, and return their number. Raises ``HistoryError``."""
        try:
            await create_tables(self._pool)
            return await self._lease.begin()
        except PostgresError as error:
            await self.aclose()
            raise HistoryError(
                f"the history can't be opened: {error.message} ({self.name})",
                hint="check the address, the credentials (PGPASSWORD or ~/.pgpass), and the rights of the role",
            ) from None
        except BaseException:
            await self.aclose()
            raise

    def attend(self, local: LocalRuns) -> None:
        """Renew the server's lease from now on, and carry out what other servers ask of ``local``."""
        self._lease.attend(local)

    async def add_run(self, row: Row, request: Mapping[str, Any]) -> None:
        """Store a new run and delete the owner's oldest runs beyond the limit. Raises ``HistoryError``."""
        body = json_bytes(request)
        await self._write(lambda cursor: self._add(cursor, row, body))

    async def add_iteration(self, row: Row, part: StoredIteration) -> None:
        """Store a finished iteration and the updated row of the run. Raises ``HistoryError``."""

        async def write(cursor: Any) -> None:
            await cursor.execute(_ADD_ITERATION, (row.id, *part.values()))
            await _update(cursor, row, None)

        await self._write(write)

    async def finish_run(self, row: Row, metadata: Mapping[str, Any]) -> None:
        """Store the end of a run. Raises ``HistoryError``."""
        body = json_bytes(metadata)
        await self._write(lambda cursor: _update(cursor, row, body))

    async def replace_run(self, run: StoredRun, *, is_new: bool) -> None:
        """Store all of a run in one transaction; see ``RunHistory.replace_run``. Raises ``HistoryError``."""
        row, request, metadata = run.row, json_bytes(run.request), json_bytes(run.metadata)

        async def write(cursor: Any) -> None:
            if is_new:  # what may have been stored of it has no wish of another server, which has not seen the run
                await cursor.execute(_DELETE, (row.owner, row.id))
                await self._add(cursor, row, request)
            await _update(cursor, row, metadata)
            await cursor.execute(_CLEAR, (row.id,))
            for part in run.parts:
                await cursor.execute(_ADD_ITERATION, (row.id, *part.values()))

        await self._write(write)

    async def delete_run(self, owner: str, run: str) -> bool:
        """Delete a run and return whether it existed. Raises ``HistoryError``."""

        async def write(cursor: Any) -> bool:
            await cursor.execute(_DELETE, (owner, run))
            return bool(cursor.rowcount)

        return await self._write(write)

    async def find(self, owner: str, run: str) -> StoredRun | None:
        """Return the run with its iterations; None if the owner has no run with this id. Raises ``HistoryError``."""

        async def read(cursor: Any) -> tuple[Any, list[Any]]:
            await cursor.execute(_FIND, {**self._lease.view, "owner": owner, "run": run})
            found = await cursor.fetchone()
            if found is None:
                return None, []
            await cursor.execute(_PARTS, (run,))
            return found, await cursor.fetchall()

        found, parts = await self._read(read)
        return None if found is None else await asyncio.to_thread(read_kept, _decoded(found), parts)

    async def page(self, owner: str, limit: int, before: str | None = None) -> tuple[list[Row], bool]:
        """Return the newest ``limit`` runs of the owner, and whether more runs follow; see ``RunHistory.page``.

        Raises ``HistoryError``.
        """
        bounds = {"owner": owner, "before": before or "~", "most": limit + 1}  # "~" sorts after every id

        async def read(cursor: Any) -> list[Any]:
            await cursor.execute(_PAGE, {**self._lease.view, **bounds})
            return list(await cursor.fetchall())

        found = await self._read(read)
        return [read_row(_decoded(one)) for one in found[:limit]], len(found) > limit

    async def add_evaluation(self, evaluation: StoredEvaluation) -> None:
        """Store a finished evaluation; see ``RunHistory``. Raises ``HistoryError``."""
        body = json_bytes(evaluation.body)

        async def write(cursor: Any) -> None:
            await cursor.execute(_ADD_EVALUATION, (*evaluation.values(), body))
            await cursor.execute(_PRUNE_EVALUATIONS, (evaluation.owner, evaluation.owner, self._keep))

        await self._write(write)

    async def evaluations(
        self, owner: str, limit: int, before: str | None = None
    ) -> tuple[list[StoredEvaluation], bool]:
        """Return the newest ``limit`` evaluations of the owner, and whether more follow; see ``RunHistory``. Raises ``HistoryError``."""

        async def read(cursor: Any) -> list[Any]:
            await cursor.execute(_EVALUATIONS_PAGE, (owner, before or "~", limit + 1))
            return list(await cursor.fetchall())

        found = await self._read(read)
        return [read_evaluation(one) for one in found[:limit]], len(found) > limit

    async def find_evaluation(self, owner: str, evaluation: str) -> StoredEvaluation | None:
        """Return an evaluation; None if the owner has no evaluation with this id. Raises ``HistoryError``."""

        async def read(cursor: Any) -> Any:
            await cursor.execute(_FIND_EVALUATION, (owner, evaluation))
            return await cursor.fetchone()

        found = await self._read(read)
        return None if found is None else await asyncio.to_thread(read_evaluation, found)

    async def delete_evaluation(self, owner: str, evaluation: str) -> bool:
        """Delete an evaluation and return whether it existed. Raises ``HistoryError``."""

        async def write(cursor: Any) -> bool:
            await cursor.execute(_DELETE_EVALUATION, (owner, evaluation))
            return bool(cursor.rowcount)

        return await self._write(write)

    async def ask(self, owner: str, run: str, wish: Literal["cancel", "delete"]) -> bool:
        """Ask the server of a run to cancel or delete it; see ``RunHistory.ask``. Raises ``HistoryError``."""
        number = CANCEL if wish == "cancel" else DELETE

        async def write(cursor: Any) -> bool:
            await cursor.execute(_ASK, {**self._lease.view, "owner": owner, "run": run, "wish": number})
            return bool(cursor.rowcount)

        is_asked = await self._write(write)
        if is_asked and wish == "delete":
            await self._lease.deleted(run, _DELETE_SECONDS)
        return is_asked

    async def changed(self, run: str, known: tuple[str, int], patience: float) -> bool:
        """Wait until a run of another server changes; see ``RunHistory.changed``."""
        return await self._lease.changed(run, known, patience)

    def end_follows(self) -> None:
        """End every wait in ``changed``, because the server stops."""
        self._lease.end_follows()

    async def aclose(self) -> None:
        """Release the lease and close the connections; may be called more than once."""
        await self._lease.aclose()
        await self._pool.aclose()

    async def _add(self, cursor: Any, row: Row, request: bytes) -> None:
        values: list[Any] = list(row.values())
        values[_INSTRUCT] = row.instruct.encode()
        await cursor.execute(_ADD, (*values, request, b"{}", self._lease.id))
        await cursor.execute(_PRUNE, (row.owner, row.owner, self._keep))

    async def _read(self, read: Callable[[Any], Awaitable[_T]]) -> _T:
        try:
            return await self._pool.read(read)
        except PostgresError as error:
            raise HistoryError(f"the history can't be read: {error.message}") from None

    async def _write(self, write: Callable[[Any], Awaitable[_T]]) -> _T:
        try:
            return await self._pool.write(write)
        except _NoSuchRun:
            raise HistoryError("the history can't be written: the history does not contain the run") from None
        except PostgresError as error:
            raise HistoryError(f"the history can't be written: {error.message}") from None


class _NoSuchRun(Exception):
    """Raised if the row of a run to be updated does not exist."""


async def _update(cursor: Any, row: Row, metadata: bytes | None) -> None:
    await cursor.execute(_UPDATE, (*row.changing(), metadata, row.id))
    if not cursor.rowcount:
        raise _NoSuchRun


def _decoded(found: Any) -> tuple[Any, ...]:
    """Return a row of the table in the form that ``read_row`` accepts."""
    values = list(found)
    values[_INSTRUCT] = bytes(values[_INSTRUCT]).decode()
    return tuple(values)
