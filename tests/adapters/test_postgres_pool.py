"""Transactions over a fixed number of connections, in a real PostgreSQL server that stops, starts, or is silent."""

import asyncio
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from knotwork.adapters.postgres_pool import PostgresError, PostgresPool
from support.postgres import BINARIES, Server

pytest.importorskip("psycopg", reason="the extra postgres is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BINARIES, reason="PostgreSQL is not installed in /usr/lib/postgresql"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


async def one(cursor: Any) -> Any:
    await cursor.execute("SELECT 1")
    return (await cursor.fetchone())[0]


async def pids(cursor: Any) -> int:
    await cursor.execute("SELECT pg_backend_pid(), pg_sleep(0.02)")
    return int((await cursor.fetchone())[0])


async def test_many_transactions_share_few_connections(server: Server) -> None:
    pool = PostgresPool(server.url, size=3)
    used = await asyncio.gather(*(pool.read(pids) for _ in range(30)))
    assert len(set(used)) <= 3
    await pool.aclose()
    with pytest.raises(PostgresError, match="closed"):
        await pool.read(one)


async def test_a_transaction_that_fails_leaves_nothing_and_its_connection_is_used_again(server: Server) -> None:
    pool = PostgresPool(server.url, size=1)
    await pool.write(lambda cursor: cursor.execute("CREATE TABLE pieces (number integer PRIMARY KEY)"))

    async def twice(cursor: Any) -> None:
        await cursor.execute("INSERT INTO pieces VALUES (1)")
        await cursor.execute("INSERT INTO pieces VALUES (1)")

    first = await pool.read(pids)
    with pytest.raises(PostgresError, match="duplicate key") as raised:
        await pool.write(twice)
    assert raised.value.code == "23505"
    with pytest.raises(PostgresError, match="read-only"):
        await pool.read(lambda cursor: cursor.execute("INSERT INTO pieces VALUES (2)"))
    with pytest.raises(ZeroDivisionError):
        await pool.write(lambda cursor: one(1 / 0))
    assert await pool.read(pids) == first
    assert server.rows("SELECT * FROM pieces") == []
    await pool.aclose()


async def test_a_server_that_restarts_costs_nothing_if_nobody_asks_meanwhile(server: Server) -> None:
    pool = PostgresPool(server.url, size=2)
    await asyncio.gather(pool.read(pids), pool.read(pids))
    await asyncio.to_thread(server.stop)
    with pytest.raises(PostgresError) as raised:
        await pool.read(one)
    assert "hunter2" not in raised.value.message
    await asyncio.to_thread(server.start)
    assert await pool.read(one) == 1
    await pool.aclose()


async def test_a_caller_that_goes_away_ends_its_transaction(server: Server) -> None:
    pool = PostgresPool(server.url, size=1)
    began = time.monotonic()
    task = asyncio.ensure_future(pool.read(lambda cursor: cursor.execute("SELECT pg_sleep(30)")))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await pool.read(one) == 1
    assert time.monotonic() - began < 20
    await pool.aclose()


async def test_a_server_that_is_silent_is_given_up_and_does_not_hold_the_loop() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        pool = PostgresPool(f"postgresql://kw:hunter2@127.0.0.1:{silent.getsockname()[1]}/x", size=1, seconds=0.3)
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        task = asyncio.ensure_future(tick())
        with pytest.raises(PostgresError, match="no answer within"):
            await pool.read(one)
        task.cancel()
        assert ticks > 2
        first = asyncio.ensure_future(pool.read(one))
        with pytest.raises(PostgresError, match=r"no answer|all 1 connections"):
            await pool.read(one)
        with pytest.raises(PostgresError):
            await first
        await pool.aclose()


async def test_a_transaction_that_takes_too_long_is_ended_and_its_place_is_free(server: Server) -> None:
    pool = PostgresPool(server.url, size=1, seconds=1.0)
    with pytest.raises(PostgresError, match="no answer within 1 s"):
        await pool.read(lambda cursor: cursor.execute("SELECT pg_sleep(30)"))
    assert await pool.read(one) == 1
    await pool.aclose()
