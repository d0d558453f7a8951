"""A server's lease in a history that several servers share: it tells the others that this server, and thus its runs, are alive.

Each server renews a row with an expiry, by the database's clock. If a server has no such row, or its row has expired, its runs
were interrupted. A server that could not reach the database for a while ignores the expiry of other servers for the duration of
a lease, because they may have been unable to renew their rows, too.

The same task looks at the rows of active and followed runs. It uses no advisory locks and no notifications, which fail behind a
connection pool in transaction mode.
"""

import asyncio
import math
import secrets
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Literal

from attrs import define, field

from ...api.server_runs import PostgresError, PostgresPool
from ..http.middleware import LOG
from .history import FollowsEnded, LocalRuns
from .postgres_schema import RUNS, SERVERS

LEASE_SECONDS = 15.0
"""Seconds after which a lease expires unless it is renewed."""
_RENEW_SECONDS, _RETRY_SECONDS = 5.0, 1.0
"""Seconds between renewals, and between attempts to reach the database again."""
POLL_SECONDS = 0.5
"""Seconds between two reads of the rows of active and followed runs. Without such runs, only the lease is renewed."""
_CLOSE_SECONDS = 3.0

CANCEL, DELETE = 1, 2
"""The values of the column ``wish``: what another server asks of the server of the run."""
_WISHES: dict[int, Literal["cancel", "delete"]] = {CANCEL: "cancel", DELETE: "delete"}

IS_ELSEWHERE = (
    f"(r.status = 'running' AND r.server <> %(server)s AND EXISTS (SELECT FROM {SERVERS} AS s WHERE s.id = r.server"
    " AND (s.until >= now() OR NOT %(sure)s)))"
)
"""The condition that another server has the run ``r`` active. The parameters of the condition are ``ServerLease.view``."""

_MISSING = ("", 0)
"""The state of a run that does not exist."""

_RENEW = f"UPDATE {SERVERS} SET until = now() + %s * interval '1 second' WHERE id = %s AND until >= now()"  # noqa: S608 - the names are ours
_TAKE = (
    f"INSERT INTO {SERVERS} (id, until) VALUES (%s, now() + %s * interval '1 second')"  # noqa: S608
    " ON CONFLICT (id) DO UPDATE SET until = EXCLUDED.until"
)
# Servers do these at the same time. Rows that another one has locked are skipped, so that the statements can't deadlock.
_MARK = (
    f"UPDATE {RUNS} SET status = 'interrupted' WHERE id IN (SELECT r.id FROM {RUNS} AS r WHERE r.status = 'running'"  # noqa: S608
    f" AND NOT EXISTS (SELECT FROM {SERVERS} AS s WHERE s.id = r.server AND s.until >= now()) FOR UPDATE SKIP LOCKED)"
)
_CLEAN = (
    f"DELETE FROM {SERVERS} WHERE id IN (SELECT id FROM {SERVERS} WHERE until < now() - interval '1 hour'"  # noqa: S608
    " FOR UPDATE SKIP LOCKED)"
)
_PURGE = (
    f"DELETE FROM {RUNS} WHERE id IN (SELECT id FROM {RUNS} WHERE wish = {DELETE} AND status <> 'running'"  # noqa: S608
    " FOR UPDATE SKIP LOCKED)"
)
_OWN = f"SELECT id FROM {RUNS} WHERE server = %s AND status = 'running'"  # noqa: S608
_END = f"UPDATE {RUNS} SET status = 'interrupted' WHERE id = ANY(%s) AND status = 'running'"  # noqa: S608
_END_ALL = f"UPDATE {RUNS} SET status = 'interrupted' WHERE server = %s AND status = 'running'"  # noqa: S608
_LEAVE = f"DELETE FROM {SERVERS} WHERE id = %s"  # noqa: S608
_LOOK = f"SELECT r.id, r.status, r.last_event, {IS_ELSEWHERE}, r.wish FROM {RUNS} AS r WHERE r.id = ANY(%(runs)s)"  # noqa: S608


@define(eq=False)
class _Followed:
    """A run at another server that streams of this server follow: its last known status and last event."""

    state: tuple[str, int] | None = None
    followers: int = 0


@define(eq=False)
class ServerLease:
    """The lease of one server. The lease has its own ``pool``, so that requests of clients can't delay the renewal."""

    _pool: PostgresPool
    id: str = field(factory=lambda: secrets.token_hex(16))
    _local: LocalRuns | None = None
    _followed: dict[str, _Followed] = field(factory=dict)
    _looked: asyncio.Event = field(factory=asyncio.Event)
    _renew_at: float = 0.0
    _back_at: float = -math.inf
    _is_out: bool = False
    _is_ending: bool = False
    _tasks: "set[asyncio.Task[None]]" = field(factory=set)
    _restoring: "asyncio.Task[None] | None" = None

    @property
    def view(self) -> dict[str, Any]:
        """The parameters of ``IS_ELSEWHERE``: the id of this server, and whether an expired lease means a stopped server."""
        return {"server": self.id, "sure": self._is_sure}

    @property
    def _is_sure(self) -> bool:
        return not self._is_out and asyncio.get_running_loop().time() - self._back_at >= LEASE_SECONDS

    async def begin(self) -> int:
        """Acquire the lease, mark runs of stopped servers as interrupted, and return their number. Raises ``PostgresError``."""
        return await self._renew()

    def attend(self, local: LocalRuns) -> None:
        """Renew the lease from now on, and carry out what other servers ask of ``local``."""
        self._local = local
        self._start(self._attend())

    async def changed(self, run: str, known: tuple[str, int], patience: float) -> bool:
        """See ``RunHistory.changed``."""
        return await self._seen(run, lambda state: state != known, patience)

    async def deleted(self, run: str, patience: float) -> bool:
        """Wait until a run no longer exists, at most ``patience`` seconds; return whether it is gone."""
        with suppress(FollowsEnded):
            return await self._seen(run, lambda state: state == _MISSING, patience)
        return False

    async def _seen(self, run: str, is_wanted: Callable[[tuple[str, int]], bool], patience: float) -> bool:
        """Wait until ``is_wanted`` is true for the state of a run, at most ``patience`` seconds; return whether it is true."""
        followed = self._followed.setdefault(run, _Followed())
        followed.followers += 1
        try:
            async with asyncio.timeout(patience):
                while followed.state is None or not is_wanted(followed.state):
                    if self._is_ending:
                        raise FollowsEnded
                    await self._looked.wait()
        except TimeoutError:
            return False
        else:
            return True
        finally:
            followed.followers -= 1
            if not followed.followers:
                self._followed.pop(run, None)

    def end_follows(self) -> None:
        """See ``RunHistory.end_follows``."""
        self._is_ending = True
        self._wake()

    async def aclose(self) -> None:
        """Release the lease, so that runs whose end could not be stored count as interrupted at once."""
        self.end_follows()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

        async def leave(cursor: Any) -> None:
            await cursor.execute(_END_ALL, (self.id,))
            await cursor.execute(_LEAVE, (self.id,))

        with suppress(PostgresError, TimeoutError):  # otherwise the lease expires
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._pool.write(leave)
        await self._pool.aclose()

    async def _attend(self) -> None:
        while True:
            await asyncio.sleep(_RETRY_SECONDS if self._is_out else POLL_SECONDS)
            try:
                if asyncio.get_running_loop().time() >= self._renew_at:
                    await self._renew()
                await self._look()
            except PostgresError as error:
                self._renew_at = 0.0
                if not self._is_out:
                    self._is_out = True
                    LOG.warning("the history can't be used for now: %s", error.message)
            except Exception as error:  # the lease must be renewed in any case
                LOG.error("looking at the history failed: %s", type(error).__name__)

    async def _renew(self) -> int:
        """Renew the lease, mark the runs of stopped servers as interrupted, and return the number of these runs."""
        is_sure = self._is_sure

        async def renew(cursor: Any) -> tuple[bool, int, list[str]]:
            await cursor.execute(_RENEW, (LEASE_SECONDS, self.id))
            has_lapsed = not cursor.rowcount
            if has_lapsed:
                await cursor.execute(_TAKE, (self.id, LEASE_SECONDS))
            marked = 0
            if is_sure:
                await cursor.execute(_MARK)
                marked = cursor.rowcount
                await cursor.execute(_CLEAN)
            await cursor.execute(_PURGE)
            await cursor.execute(_OWN, (self.id,))
            return has_lapsed, marked, [run for (run,) in await cursor.fetchall()]

        has_lapsed, marked, own = await self._pool.write(renew)
        now = asyncio.get_running_loop().time()
        self._renew_at = now + _RENEW_SECONDS
        local = self._local
        if local is None:
            return marked
        if marked:
            LOG.warning("%d run%s of a stopped server: marked as interrupted", marked, "" if marked == 1 else "s")
        # A run is active before its row exists, so a row without an active run is one whose end could not be stored.
        active = local.active()
        if ended := [run for run in own if run not in active]:
            await self._pool.write(lambda cursor: cursor.execute(_END, (ended,)))
        if self._is_out:
            self._is_out, self._back_at = False, now
            LOG.warning("the history can be used again")
            self._restore(local)
        elif has_lapsed:
            LOG.warning("the lease of this server had expired; other servers may have shown its runs as interrupted")
            self._restore(local)
        return marked

    async def _look(self) -> None:
        """Read the rows of active and followed runs, and react to changes."""
        local = self._local
        active = set() if local is None else set(local.active())
        runs = sorted(active | self._followed.keys())
        if not runs:
            return

        async def look(cursor: Any) -> dict[str, tuple[str, int, bool, int]]:
            await cursor.execute(_LOOK, {**self.view, "runs": runs})
            return {run: tuple(state) for run, *state in await cursor.fetchall()}

        found = await self._pool.read(look)
        if local is not None:
            own = [state for run, state in found.items() if run in active]
            for run, (_, _, _, wish) in found.items():
                if run in active and wish in _WISHES:
                    local.obey(run, _WISHES[wish])
            # Another server marked a run when the lease had expired. The others must see the lease before they see the run again.
            if any(status == "interrupted" for status, *_ in own):
                await self._renew()
                self._restore(local)
        for run, followed in self._followed.items():
            if run in runs:
                status, last, is_elsewhere, wish = found.get(run, (*_MISSING, False, 0))
                if status == "running" and not is_elsewhere:
                    status = "interrupted"
                followed.state = ("deleted", last) if wish == DELETE else (status, last)
        self._wake()

    def _wake(self) -> None:
        self._looked.set()
        self._looked = asyncio.Event()

    def _restore(self, local: LocalRuns) -> None:
        if self._restoring is None or self._restoring.done():
            self._restoring = self._start(local.restore())

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
