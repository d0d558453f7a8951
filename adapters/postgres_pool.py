"""Transactions in a PostgreSQL database over a fixed number of connections (extra ``postgres``), for one event loop.

No state is kept in a session, so a connection pool such as pgbouncer may be in transaction mode.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from attrs import define

from .postgres import reason, without_password

_T = TypeVar("_T")

_SERVER_SECONDS = 2.0
"""The server ends a transaction this number of seconds after the client's time limit."""


class PostgresError(Exception):
    """Raised if a transaction fails. ``message`` contains no password.

    ``code`` is the SQLSTATE; it is empty if the server did not answer. If the connection was lost during the commit, the transaction
    may have been committed.
    """

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code


@define(eq=False)
class _Use:
    """A connection that a transaction is using; None while the connection is being opened."""

    connection: Any = None
    is_committing: bool = False


class PostgresPool:
    """At most ``size`` connections to the database at ``url``, opened when they are needed and opened again if they are lost.

    ``seconds`` is the time limit for waiting for a free connection and, separately, for a transaction, including opening its
    connection. Raises ``PostgresError`` without psycopg.
    """

    def __init__(self, url: str, *, size: int = 4, seconds: float = 8.0) -> None:
        self.name = without_password(url)
        try:
            import psycopg
        except ImportError:
            raise PostgresError(f"{self.name} needs psycopg, which is not installed") from None
        self._lost = (psycopg.OperationalError, psycopg.InterfaceError)
        self._failed = (psycopg.Error, OSError, UnicodeError, OverflowError)
        self._url = url
        self._size, self._seconds = size, seconds
        self._places = asyncio.Semaphore(size)
        self._idle: list[Any] = []
        self._is_closed = False
        limit = int(1000 * (seconds + _SERVER_SECONDS))
        self._settings = (
            f"SET LOCAL statement_timeout = {limit}; SET LOCAL idle_in_transaction_session_timeout = {limit}"
        )

    async def read(self, work: Callable[[Any], Awaitable[_T]]) -> _T:
        """Run ``work`` with a cursor in a read-only transaction whose queries all see the same state. Raises ``PostgresError``."""
        return await self._run(work, "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")

    async def write(self, work: Callable[[Any], Awaitable[_T]]) -> _T:
        """Run ``work`` with a cursor in a transaction, and return its result after the commit. Raises ``PostgresError``."""
        return await self._run(work, "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE")

    async def aclose(self) -> None:
        """Close the connections. Later transactions fail. May be called more than once."""
        self._is_closed = True
        while self._idle:
            connection = self._idle.pop()  # psycopg warns of a connection that is dropped before it is closed
            connection.pgconn.finish()

    async def _run(self, work: Callable[[Any], Awaitable[_T]], begin: str) -> _T:
        try:
            async with asyncio.timeout(self._seconds):
                await self._places.acquire()
        except TimeoutError:
            raise PostgresError(f"all {self._size} connections have been in use for {self._seconds:g} s") from None
        try:
            return await self._limited(work, begin)
        finally:
            self._places.release()

    async def _limited(self, work: Callable[[Any], Awaitable[_T]], begin: str) -> _T:
        if self._is_closed:
            raise PostgresError("the connections are closed")
        use = _Use()
        task = asyncio.ensure_future(self._transaction(use, work, begin))
        is_late = False
        try:
            await asyncio.wait({task}, timeout=self._seconds)
        finally:
            if is_late := not task.done():
                if use.connection is not None:
                    use.connection.pgconn.finish()  # before the task is cancelled, or psycopg would wait for the server again
                task.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await task
        if is_late:
            raise PostgresError(f"no answer within {self._seconds:g} s")
        error = task.exception()
        if error is None:
            return task.result()
        if isinstance(error, self._failed):
            code = getattr(error, "sqlstate", None) or ""
            raise PostgresError(reason(str(error), self._url, self.name), code=code) from None
        raise error

    async def _transaction(self, use: _Use, work: Callable[[Any], Awaitable[_T]], begin: str) -> _T:
        """Run the transaction. If an idle connection proves lost before the commit, another one is used."""
        while True:
            is_reused = bool(self._idle)
            use.connection = connection = self._idle.pop() if is_reused else await self._connect()
            try:
                await connection.execute(f"{begin}; {self._settings}")
                async with connection.cursor(binary=True) as cursor:
                    result = await work(cursor)
                use.is_committing = True
                await connection.execute("COMMIT")
            except BaseException as error:
                is_lost = connection.closed or isinstance(error, self._lost) or not isinstance(error, Exception)
                if not is_lost:
                    try:
                        await connection.execute("ROLLBACK")
                    except self._failed:
                        is_lost = True
                if not is_lost:
                    self._keep(connection)
                else:
                    connection.pgconn.finish()
                    if isinstance(error, self._lost) and is_reused and not use.is_committing:
                        use.connection = None
                        continue
                raise
            self._keep(connection)
            return result

    def _keep(self, connection: Any) -> None:
        if self._is_closed:
            connection.pgconn.finish()
        else:
            self._idle.append(connection)

    async def _connect(self) -> Any:
        import psycopg

        return await psycopg.AsyncConnection.connect(
            self._url,
            autocommit=True,  # the transactions are begun and committed here
            connect_timeout=max(2, int(self._seconds)),
            application_name="knotwork",
            client_encoding="utf8",
            prepare_threshold=None,
        )
