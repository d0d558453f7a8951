"""The history that servers share, in a real PostgreSQL server: leases, wishes, and servers that work at the same time."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from attrs import evolve
from knotwork.runtime.interfaces.web import server_lease
from knotwork.runtime.interfaces.web.event_stream import followed_chunks
from knotwork.runtime.interfaces.web.history import FollowsEnded, HistoryError, Row, StoredIteration, StoredRun
from knotwork.runtime.interfaces.web.postgres_history import PostgresHistory
from support.command import call, cassette
from support.postgres import BINARIES, PGBOUNCER, Server

pytest.importorskip("psycopg", reason="the extra postgres is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BINARIES, reason="PostgreSQL is not installed in /usr/lib/postgresql"),
]
EXPIRE = "UPDATE knotwork_servers_1 SET until = now() - interval '1 s' WHERE id = %s"


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def server(running: Server) -> Server:
    running.rows(
        "DROP TABLE IF EXISTS knotwork_iterations_1, knotwork_runs_1, knotwork_servers_1, knotwork_evaluations_1"
    )
    return running


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_lease, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(server_lease, "_RENEW_SECONDS", 0.1)
    monkeypatch.setattr(server_lease, "_RETRY_SECONDS", 0.1)


class Local:
    """The active runs of a server, and what was asked of them."""

    def __init__(self, *runs: str) -> None:
        self.runs = set(runs)
        self.asked: set[tuple[str, str]] = set()
        self.restored = 0

    def active(self) -> Collection[str]:
        return self.runs

    def obey(self, run: str, wish: Literal["cancel", "delete"]) -> None:
        self.asked.add((run, wish))

    async def restore(self) -> None:
        self.restored += 1


def row(number: int, owner: str = "me", **more: Any) -> Row:
    return Row(f"{number:032x}", owner, 1000.0 + number, "running", "", "m", f"Ask {number}.", 3, 0.8, **more)


def part(number: int) -> StoredIteration:
    return StoredIteration(
        number, number * 10, {"answer": "x", "evaluation": {"score": 0.5}, "error": None, "seconds": 1}
    )


ID = row(1).id


@asynccontextmanager
async def servers(
    server: Server, number: int = 2, keep: int = 1000, url: str = ""
) -> AsyncIterator[list[PostgresHistory]]:
    histories = [PostgresHistory(url or server.url, keep) for _ in range(number)]
    try:
        await asyncio.gather(*(history.open() for history in histories))
        yield histories
    finally:
        await asyncio.gather(*(history.aclose() for history in histories))


async def until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the database tells nothing
            await asyncio.sleep(0.01)


async def status(history: PostgresHistory, run: str = ID) -> tuple[str, bool]:
    """Return the status of a run, and whether another server has it active."""
    found = await history.find("me", run)
    assert found is not None
    return found.row.status, found.row.is_elsewhere


async def test_servers_that_start_at_once_make_one_set_of_tables(server: Server) -> None:
    async with servers(server, 8) as histories:
        await asyncio.gather(*(history.add_run(row(number), {}) for number, history in enumerate(histories)))
        assert len((await histories[0].page("me", 100))[0]) == 8
        (connections,) = server.rows("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'knotwork'")[0]
        assert connections <= 8 * 4
    assert server.rows("SELECT FROM knotwork_servers_1") == []


async def test_a_run_is_elsewhere_while_its_server_has_a_lease(server: Server) -> None:
    async with servers(server) as (a, b):
        await a.add_run(row(1), {})
        assert await status(b) == ("running", True)
        assert await status(a) == ("running", False)
        assert [each.is_elsewhere for each in (await b.page("me", 5))[0]] == [True]
        server.rows(EXPIRE, a._lease.id)
        assert await status(b) == ("running", False)  # which clients read as interrupted
        b.attend(Local())
        await until(lambda: server.rows("SELECT status FROM knotwork_runs_1") == [("interrupted",)])
        # It was only away: it stores its runs again, and what it writes counts.
        local = Local(ID)
        a.attend(local)
        await until(lambda: local.restored)
        await a.replace_run(StoredRun(row(1), {}, {}, ()), is_new=False)
        await a.add_iteration(row(1, iterations=1, last_event=10), part(1))
        assert await status(b) == ("running", True)


async def test_a_server_that_ends_or_starts_marks_what_has_no_server(server: Server) -> None:
    async with servers(server) as (a, b):
        await a.add_run(row(1), {})
        await b.add_run(row(2), {})
        await a.aclose()  # for instance without having stored the end
        assert await status(b) == ("interrupted", False)
        server.rows(EXPIRE, b._lease.id)
        third = PostgresHistory(server.url, 10)
        assert await third.open() == 1
        await third.aclose()


async def test_a_run_whose_end_could_not_be_stored_is_interrupted_although_its_server_lives(server: Server) -> None:
    async with servers(server) as (a, b):
        await a.add_run(row(1), {})
        await a.add_run(row(2), {})
        a.attend(Local(row(2).id))
        await until(
            lambda: server.rows("SELECT status FROM knotwork_runs_1 ORDER BY id") == [("interrupted",), ("running",)]
        )
        assert await status(b, row(2).id) == ("running", True)


async def test_what_is_asked_reaches_the_server_of_the_run(server: Server) -> None:
    async with servers(server) as (a, b):
        for number in (1, 2):
            await a.add_run(row(number), {})
        local = Local(ID, row(2).id)
        a.attend(local)
        b.attend(Local())
        assert not await a.ask("me", ID, "cancel")
        assert not await b.ask("you", ID, "cancel")
        assert await b.ask("me", ID, "cancel")
        await until(lambda: local.asked == {(ID, "cancel")})

        async def obey() -> None:
            await until(lambda: (row(2).id, "delete") in local.asked)
            assert await b.find("me", row(2).id) is None  # already
            assert await a.find("me", row(2).id) is None
            assert await a.delete_run("me", row(2).id)

        asked, _ = await asyncio.gather(b.ask("me", row(2).id, "delete"), obey())
        assert asked
        assert server.rows("SELECT id FROM knotwork_runs_1") == [(ID,)]


async def test_a_run_that_shall_be_deleted_goes_also_if_its_server_is_killed(server: Server) -> None:
    async with servers(server) as (a, b):
        await a.add_run(row(1), {})
        b.attend(Local())
        asking = asyncio.ensure_future(b.ask("me", ID, "delete"))
        await until(lambda: server.rows("SELECT wish FROM knotwork_runs_1") == [(2,)])
        server.rows(EXPIRE, a._lease.id)
        assert await asking
        assert server.rows("SELECT FROM knotwork_runs_1") == []
        # Its server was only away: it does not bring the run back.
        with pytest.raises(HistoryError, match="does not contain the run"):
            await a.replace_run(StoredRun(row(1), {}, {}, (part(1),)), is_new=False)


async def test_after_an_outage_servers_are_not_judged_by_their_leases_for_a_while(server: Server) -> None:
    async with servers(server) as (a, b):
        await a.add_run(row(1), {})
        local = Local()
        b.attend(local)
        await asyncio.to_thread(server.stop)
        await until(lambda: b._lease._is_out)
        with pytest.raises(HistoryError, match="can't be read"):
            await b.page("me", 1)
        with pytest.raises(HistoryError, match="can't be written"):
            await a.add_iteration(row(1, iterations=1), part(1))
        await asyncio.to_thread(server.start)
        server.rows(EXPIRE, a._lease.id)
        await until(lambda: local.restored)
        assert not b._lease._is_out
        assert await status(b) == ("running", True)
        b._lease._back_at -= server_lease.LEASE_SECONDS  # the time goes by
        assert await status(b) == ("running", False)


async def test_the_limit_of_an_owner_holds_for_all_servers_together(server: Server) -> None:
    async with servers(server, 3, keep=5) as histories:

        async def work(number: int, history: PostgresHistory) -> None:
            for each in range(10):
                one = row(10 * each + number)
                await history.add_run(one, {})
                await history.add_iteration(one, part(1))
                await history.finish_run(evolve(one, status="best"), {})

        await asyncio.gather(*(work(number, history) for number, history in enumerate(histories)))
        await histories[0].add_run(row(1000), {})
        assert len((await histories[1].page("me", 100))[0]) == 5


async def test_a_follower_gets_comments_while_nothing_happens_and_goes_when_its_server_stops(server: Server) -> None:
    async with servers(server) as (a, b):
        await a.add_run(row(1), {})
        b.attend(Local())
        found = await b.find("me", ID)
        assert found is not None
        chunks = followed_chunks(b, found, 0, 0.05)
        assert b"event: run\n" in await anext(chunks)
        assert await anext(chunks) == b": ping\n\n"
        await a.add_iteration(row(1, iterations=1, best=0, score=0.5, last_event=10), part(1))
        while (chunk := await anext(chunks)) == b": ping\n\n":
            pass
        assert chunk.endswith(b"id: 10\n\n")
        b.end_follows()
        assert [chunk async for chunk in chunks if chunk != b": ping\n\n"] == []
        with pytest.raises(FollowsEnded):
            await b.changed(ID, ("running", 10), 5)


@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
async def test_a_connection_pool_in_transaction_mode_does(server: Server) -> None:
    with server.pooled() as url:
        async with servers(server, 3, keep=5, url=url) as (a, b, c):
            local = Local(ID)
            await a.add_run(row(1), {})
            for history, its in ((a, local), (b, Local()), (c, Local())):
                history.attend(its)

            async def work(number: int, history: PostgresHistory) -> None:
                for each in range(1, 10):
                    one = row(10 * each + number)
                    await history.add_run(one, {})
                    await history.finish_run(evolve(one, status="best"), {})

            await asyncio.gather(work(2, a), work(3, b), work(4, c))
            assert await status(b) == ("running", True)
            assert await b.ask("me", ID, "cancel")
            await until(lambda: local.asked == {(ID, "cancel")})


async def test_a_database_without_a_server_or_rights_is_told_without_the_password(server: Server) -> None:
    for url in (
        "postgresql://kw:hunter2@127.0.0.1:1/postgres",
        server.url.replace("/postgres?", "/no_such_database?"),
        "postgresql://kw:hunter2@[::1/x",
    ):
        with pytest.raises(HistoryError, match="can't be opened") as raised:
            await PostgresHistory(url, 10).open()
        assert "hunter2" not in raised.value.message + raised.value.hint
    server.rows("DROP ROLE IF EXISTS poor")
    server.rows("CREATE ROLE poor LOGIN")
    with pytest.raises(HistoryError, match="permission denied"):
        await PostgresHistory(server.url.replace("kw:hunter2", "poor"), 10).open()
    async with servers(server):
        pass
    server.rows(
        "GRANT SELECT, INSERT, UPDATE, DELETE ON knotwork_iterations_1, knotwork_runs_1, knotwork_servers_1, knotwork_evaluations_1 TO poor"
    )
    poor = PostgresHistory(
        server.url.replace("kw:hunter2", "poor"), 10
    )  # tables that exist need no right to create some
    assert await poor.open() == 0
    await poor.add_run(row(1), {})
    assert await poor.delete_run("me", ID)
    await poor.aclose()


def test_what_can_not_be_a_history_is_refused_at_the_start(tmp_path: Path, server: Server) -> None:
    words = ("serve", "--keys", tmp_path / "k.json", "--port", "0", "--llm", cassette(tmp_path / "c.jsonl", {"": "x"}))
    for given, code, said in (
        (server.url, 2, "has a password"),
        ("mysql://host/x", 2, "neither a file nor a PostgreSQL database"),
        ("postgresql://127.0.0.1:1/x", 1, "the history can't be opened"),
    ):
        done = call(*words, "--history", given)
        assert done.code == code, done.err
        assert said in done.err
        assert "hunter2" not in done.err and "Traceback" not in done.err
