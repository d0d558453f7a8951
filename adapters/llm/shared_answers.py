"""A call cache that machines share: answers in a PostgreSQL table, behind each machine's local file (extra ``postgres``).

Whoever can write to the table can forge answers of models. Therefore an answer from the table is checked like an answer of a
model.

A process claims a missing key before it makes the call; other processes that miss the key wait for the answer. A claim is a row
with an expiry, which its owner renews. Advisory locks would release the claims of a killed process immediately. But the locks
of a session fail behind a connection pool in transaction mode (pgbouncer), they are lost with the connection although the call
continues, and each of them takes space in the lock memory that all users of the server share. With an expiry, the keys of a
killed process remain claimed for at most ``_CLAIM_SECONDS``.
"""

import asyncio
import logging
import math
import os
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, Final, TypeVar

from attrs import define

from ..postgres import reason, without_password
from . import NotConfigured
from .shared_cache import StoredAnswer

_T = TypeVar("_T")

_TABLE, _CLAIMS = "knotwork_answers_1", "knotwork_claims_1"
_MAKE = (
    f"CREATE TABLE IF NOT EXISTS {_TABLE} (key bytea PRIMARY KEY, text bytea NOT NULL, finish_reason text NOT NULL,"
    " model text NOT NULL, digest bytea NOT NULL, prompt_tokens bigint NOT NULL, completion_tokens bigint NOT NULL,"
    " at timestamptz NOT NULL DEFAULT now())"
)
_MAKE_CLAIMS = (
    f"CREATE UNLOGGED TABLE IF NOT EXISTS {_CLAIMS}"
    " (key bytea PRIMARY KEY, owner bytea NOT NULL, until timestamptz NOT NULL)"
)
_RIGHTS = (
    f"SELECT has_table_privilege('{_TABLE}', 'INSERT') AND current_setting('transaction_read_only') = 'off',"  # noqa: S608 - the names are ours
    f" (SELECT bool_and(has_table_privilege(to_regclass('{_CLAIMS}')::oid, name))"
    " FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS name)"
)
_FIND = (
    "SELECT key, text, finish_reason, model, digest, prompt_tokens, completion_tokens"  # noqa: S608
    f" FROM {_TABLE} WHERE key = ANY(%s)"
)
_INSERT = (
    f"INSERT INTO {_TABLE} (key, text, finish_reason, model, digest, prompt_tokens, completion_tokens)"  # noqa: S608
    " VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
)
# Statements on claims can't deadlock: those that insert rows take the keys in order, and all others skip locked rows.
_CLAIM = (
    f"WITH free AS (SELECT key FROM {_CLAIMS} WHERE key = ANY(%(keys)s) AND (until < now() OR owner = %(owner)s)"  # noqa: S608
    f" FOR UPDATE SKIP LOCKED), taken AS (UPDATE {_CLAIMS} AS held SET owner = %(owner)s,"
    " until = now() + %(seconds)s * interval '1 second' FROM free WHERE held.key = free.key RETURNING held.key),"
    f" made AS (INSERT INTO {_CLAIMS} (key, owner, until)"
    " SELECT key, %(owner)s, now() + %(seconds)s * interval '1 second' FROM unnest(%(keys)s) AS key ORDER BY key"
    " ON CONFLICT DO NOTHING RETURNING key) SELECT key FROM taken UNION ALL SELECT key FROM made"
)
_RENEW = (
    f"UPDATE {_CLAIMS} SET until = now() + %s * interval '1 second' WHERE key IN"  # noqa: S608
    f" (SELECT key FROM {_CLAIMS} WHERE key = ANY(%s) AND owner = %s FOR UPDATE SKIP LOCKED)"
)
_RELEASE = (
    f"DELETE FROM {_CLAIMS} WHERE key IN"  # noqa: S608
    f" (SELECT key FROM {_CLAIMS} WHERE key = ANY(%s) AND owner = %s FOR UPDATE SKIP LOCKED)"
)
_CLEAN = f"DELETE FROM {_CLAIMS} WHERE key IN (SELECT key FROM {_CLAIMS} WHERE until < now() FOR UPDATE SKIP LOCKED)"  # noqa: S608
_KEYS, _KEY_SECONDS = 64, 0.002
"""Look-ups are collected and sent together: as soon as there are about this many, or after this number of seconds."""
_ROWS, _ROW_SECONDS = 100, 0.2
"""The same for storing answers and releasing claims. A process that waits for another one sends its own at each look-up."""
_SECONDS = 10.0
"""Maximum seconds for a look-up or for storing, including the connection. A server that takes longer is no longer used."""
_PAUSES = (0.0, 0.0, 0.5, 2.0)
"""Seconds before each attempt, because a restarting server refuses connections. If it never answered, two attempts are made."""
_CLAIM_SECONDS, _RENEW_SECONDS = 15.0, 5.0
"""Number of seconds after which a claim expires unless it is renewed, and number of seconds between renewals."""
_POLL_SECONDS, _LONGEST_POLL = 0.05, 1.0
"""First and longest wait, in seconds, before a key held by another process is looked up again. It grows by half each time."""
_HELD: Final = "held"
"""The result of a look-up whose key is claimed by another call."""


@define(eq=False)
class _LookUp:
    """A caller that waits for a look-up. ``claims``: whether it claims a missing key; ``claimed``: whether it got the claim."""

    future: asyncio.Future[StoredAnswer | str | None]
    claims: bool
    claimed: bool = False


class SharedAnswers:
    """The tables in the database at ``url``. They are created if they are missing, and used by one event loop.

    Keys are looked up in groups, and answers are stored in groups. If the server can't be reached, takes too long, or fails
    repeatedly, ``warn`` is called once and the tables are no longer used. The local file and the run are not affected. Raises
    ``NotConfigured`` without psycopg.
    """

    def __init__(self, url: str, *, warn: Callable[[str], None] | None = None) -> None:
        try:
            import psycopg
        except ImportError:
            raise NotConfigured(
                f"the shared cache {without_password(url)} needs psycopg, which is not installed",
                hint='pip install "knotwork[postgres]"',
            ) from None
        self.name = without_password(url)
        self.broken = False
        self._denied = (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)
        self._url = url
        self._warn = warn or logging.getLogger("knotwork").warning
        self._connection: Any = None
        self._was_connected = False
        self._lock = asyncio.Lock()
        self._wanted: dict[bytes, list[_LookUp]] = {}
        self._rows: list[StoredAnswer] = []
        self._owner = os.urandom(16)
        self._held: set[bytes] = set()
        self._released: set[bytes] = set()
        self._has_claims = self._is_closed = self._is_readable_only = self._has_warned_of_claims = False
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def find(self, key: bytes, wait: float = 0.0) -> StoredAnswer | None:
        """Return the answer stored under ``key``; None if it is missing or can't be read.

        If ``wait`` is above 0, a missing key is claimed: None then means that the caller must make the call of the model, and
        afterwards call ``keep`` or ``release``. If another call holds the claim, this method waits for the answer of that call,
        at most ``wait`` seconds.
        """
        loop = asyncio.get_running_loop()
        end, delay = loop.time() + wait, _POLL_SECONDS
        while not (self.broken or self._is_closed):
            found = await self._look_up(key, claims=wait > 0)
            if not isinstance(found, str):
                return found
            now = loop.time()
            if now >= end:
                return None
            # The callers that wait wake at multiples of the same time, so that their look-ups form a group.
            wake = math.ceil((now + delay) / _POLL_SECONDS) * _POLL_SECONDS
            await asyncio.sleep(min(wake, end) - now)
            delay = min(1.5 * delay, _LONGEST_POLL)
            if self._rows or self._released:
                self._send("write", True, 0.0, self._write_group)  # somebody may wait for them in turn
        return None

    def keep(self, answer: StoredAnswer) -> None:
        """Store an answer soon, and release the claim on its key. An answer that PostgreSQL can't represent is not stored."""
        if self.broken or self._is_readable_only or "\0" in answer.finish_reason + answer.model:
            self.release(answer.key)
            return
        self._rows.append(answer)
        self._send("write", len(self._rows) >= _ROWS, _ROW_SECONDS, self._write_group)

    def release(self, key: bytes) -> None:
        """Release the claim on ``key`` soon. A key that ``find`` has not claimed is ignored."""
        if key in self._held and not self.broken:
            self._released.add(key)
            self._send("write", len(self._released) >= _ROWS, _ROW_SECONDS, self._write_group)

    async def aclose(self) -> None:
        """Store the unsaved answers, release the claims, and close the connection; repeated calls are allowed."""
        self._is_closed = True
        while True:
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()
            if not self._tasks:
                break
            await asyncio.wait(self._tasks)  # each ends in time; a look-up may claim keys
        self._released |= self._held
        await self._write_group()
        self._disconnect()
        for look_ups in self._wanted.values():
            for each in look_ups:
                each.future.cancel()

    async def _look_up(self, key: bytes, *, claims: bool) -> StoredAnswer | str | None:
        look_up = _LookUp(asyncio.get_running_loop().create_future(), claims)
        self._wanted.setdefault(key, []).append(look_up)
        self._send("find", len(self._wanted) >= _KEYS, _KEY_SECONDS, self._find_group)
        try:
            async with asyncio.timeout(_SECONDS):
                return await look_up.future
        except TimeoutError as error:
            self._give_up(error)
            return None
        except asyncio.CancelledError:
            if look_up.claimed:  # the result came at the moment of the cancellation
                self.release(key)
            raise

    def _send(self, name: str, is_full: bool, seconds: float, group: Callable[[], Any]) -> None:
        """Run ``group`` now if the group is full, else after ``seconds``."""
        if is_full:
            if (timer := self._timers.pop(name, None)) is not None:
                timer.cancel()
            self._start(group)
        elif name not in self._timers:

            def run() -> None:
                self._timers.pop(name, None)
                self._start(group)

            self._timers[name] = asyncio.get_running_loop().call_later(seconds, run)

    def _start(self, group: Callable[[], Any]) -> None:
        task = asyncio.get_running_loop().create_task(group())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _find_group(self) -> None:
        wanted, self._wanted = self._wanted, {}
        found: dict[bytes, StoredAnswer] = {}
        claimed: set[bytes] = set()
        try:
            if wanted:
                found, claimed = await self._run(lambda cursor: self._find_or_claim(cursor, wanted)) or (found, claimed)
        finally:
            again = {key for key in self._released & wanted.keys() if key not in found}  # another call of ours failed
            self._released -= again
            claimed |= again
            self._held |= claimed
            for key, look_ups in wanted.items():
                self._deliver(key, look_ups, found.get(key), is_claimed=key in claimed)
            if self._held:
                self._send("renew", False, _RENEW_SECONDS, self._renew_group)

    async def _find_or_claim(
        self, cursor: Any, wanted: dict[bytes, list[_LookUp]]
    ) -> tuple[dict[bytes, StoredAnswer], set[bytes]]:
        """Return the stored answers, and the keys that are claimed from now on."""
        found = await _answers(cursor, wanted)
        asked = {key for key, look_ups in wanted.items() if any(each.claims for each in look_ups)}
        missing = sorted(asked - found.keys() - self._held)
        if not missing or not self._has_claims:
            return found, set()
        await cursor.execute(_CLAIM, {"keys": missing, "owner": self._owner, "seconds": _CLAIM_SECONDS})
        claimed = {bytes(key) for (key,) in await cursor.fetchall()}
        if claimed:  # an owner stores the answer before it releases the claim, so that this second look finds it
            found |= await _answers(cursor, claimed)
        return found, claimed

    def _deliver(self, key: bytes, look_ups: list[_LookUp], found: StoredAnswer | None, *, is_claimed: bool) -> None:
        """Give each caller its result. If the key was claimed, one caller gets the claim; an unneeded claim is released."""
        waits = self._has_claims and not self.broken
        for each in look_ups:
            if each.future.done():
                continue
            if found is None and each.claims and is_claimed:
                is_claimed, each.claimed = False, True
                each.future.set_result(None)
            else:
                each.future.set_result(_HELD if found is None and each.claims and waits else found)
        if is_claimed:
            self.release(key)

    async def _write_group(self) -> None:
        """Store the unsaved answers. Then release their claims and the claims of failed calls."""
        rows, self._rows = self._rows, []
        keys = (self._released | {row.key for row in rows}) & self._held
        self._released = set()
        encoded = sorted(
            (row.key, body, *row[2:]) for row in rows if (body := _encoded(row.text)) is not None
        )  # in order, so that two processes that store the same answers don't deadlock

        async def write(cursor: Any) -> None:
            if encoded:
                await cursor.executemany(_INSERT, encoded)
            if keys:
                await cursor.execute(_RELEASE, (sorted(keys), self._owner))

        try:
            if encoded or keys:
                await self._run(write, writes=True)
        finally:
            self._held -= keys

    async def _renew_group(self) -> None:
        """Renew the claims of the calls that are running."""
        if held := sorted(self._held):
            await self._run(lambda cursor: cursor.execute(_RENEW, (_CLAIM_SECONDS, held, self._owner)), writes=True)
            if not (self.broken or self._is_closed):
                self._send("renew", False, _RENEW_SECONDS, self._renew_group)

    async def _run(self, query: Callable[[Any], Awaitable[_T]], *, writes: bool = False) -> _T | None:
        """Run a query and return its result; None if it fails. A lost connection is opened again."""
        async with self._lock:
            for attempt, pause in enumerate(_PAUSES, 1):
                await asyncio.sleep(pause)
                if self.broken:
                    break
                task = asyncio.ensure_future(self._query(query))
                await asyncio.wait({task}, timeout=_SECONDS)
                if not task.done():
                    self._disconnect()  # before the task is cancelled, or psycopg would wait for the server again
                    task.cancel()
                    self._give_up(TimeoutError())
                    break
                error = task.exception()
                if error is None:
                    return task.result()
                if writes and isinstance(error, self._denied):
                    self._is_readable_only = True
                    self._has_claims = False
                    self._warn(f"the shared cache {self.name} is only read: {self._reason(error)}")
                    break
                self._disconnect()
                if attempt == (len(_PAUSES) if self._was_connected else 2) or isinstance(error, self._denied):
                    self._give_up(error)
        return None

    async def _query(self, query: Callable[[Any], Awaitable[_T]]) -> _T:
        if self._connection is None:
            await self._connect()
        async with self._connection.cursor(binary=True) as cursor:
            return await query(cursor)

    async def _connect(self) -> None:
        import psycopg

        connection: Any = await psycopg.AsyncConnection.connect(
            self._url,
            autocommit=True,
            connect_timeout=int(_SECONDS),
            application_name="knotwork",
            prepare_threshold=None,
        )
        self._connection, self._was_connected = connection, True
        query = "SELECT to_regclass(%s) IS NULL, to_regclass(%s) IS NULL"
        lacks_answers, lacks_claims = await (await connection.execute(query, (_TABLE, _CLAIMS))).fetchone()
        # Another process may create a table at the same moment.
        at_once = (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateTable)
        if lacks_answers:
            with suppress(*at_once):
                await connection.execute(_MAKE)
        if lacks_claims:
            with suppress(*at_once, *self._denied):
                await connection.execute(_MAKE_CLAIMS)
        may_store, may_claim = await (await connection.execute(_RIGHTS)).fetchone()
        self._has_claims = bool(may_store and may_claim)
        if self._has_claims:
            await connection.execute(_CLEAN)
        elif may_store and not self._has_warned_of_claims:
            self._has_warned_of_claims = True
            self._warn(
                f"the shared cache {self.name} has no claims, so processes at work at the same time may pay for the same answer twice: "
                f"the role needs SELECT, INSERT, UPDATE and DELETE on {_CLAIMS}"
            )

    def _disconnect(self) -> None:
        """Close the connection without a message to the server, which may not answer."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.pgconn.finish()

    def _give_up(self, error: BaseException) -> None:
        if not self.broken:
            self.broken = True
            self._warn(f"the shared cache {self.name} can't be used and is ignored: {self._reason(error)}")

    def _reason(self, error: BaseException) -> str:
        """Return the first line of an error's message, without the URL, which may contain a password."""
        if isinstance(error, TimeoutError):
            return f"no answer within {_SECONDS:g} s"
        return reason(str(error), self._url, self.name)


async def _answers(cursor: Any, keys: Iterable[bytes]) -> dict[bytes, StoredAnswer]:
    """Return a mapping from each key to its stored answer. An answer whose text is not UTF-8 is left out."""
    await cursor.execute(_FIND, (list(keys),), binary=True)
    rows = [(bytes(key), _decoded(text), *rest) for key, text, *rest in await cursor.fetchall()]
    return {key: StoredAnswer(key, text, *rest) for key, text, *rest in rows if text is not None}


def _encoded(text: str) -> bytes | None:
    """Return the text as UTF-8; None if it contains a lone surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def _decoded(text: bytes) -> str | None:
    """Return the text of a row; None if it is not UTF-8."""
    try:
        return bytes(text).decode()
    except UnicodeDecodeError:
        return None
