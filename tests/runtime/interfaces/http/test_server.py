"""uvicorn as both servers run it: where it listens is told when it takes requests, and a signal ends it without being raised again."""

import asyncio
import signal
from collections.abc import Sequence

import httpx2
import pytest
from knotwork.runtime.interfaces.http.server import Server, listening_socket, stop, url_of, uvicorn_config
from starlette.applications import Starlette

INT, TERM = signal.SIGINT, signal.SIGTERM


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signals", "forced"), [([TERM], False), ([INT], False), ([TERM, TERM], False), ([INT, INT], True), ([TERM, INT], True)]
)  # fmt: skip
def test_a_signal_ends_it_and_a_second_ctrl_c_waits_for_nothing(signals: Sequence[int], forced: bool) -> None:
    async def serving() -> Server:
        with listening_socket("127.0.0.1", 0) as made:
            told = asyncio.Event()
            config = uvicorn_config(Starlette(), head_seconds=5, idle=5, lifespan="on")
            server = Server(config, told.set, stop)
            task = asyncio.create_task(server.serve([made]))
            await told.wait()
            async with httpx2.AsyncClient(trust_env=False) as client:
                assert (await client.get(url_of(made))).status_code == 404
            for number in signals:
                signal.raise_signal(number)
            async with asyncio.timeout(60):
                await task
        return server

    before = [signal.getsignal(number) for number in (INT, TERM)]
    server = asyncio.run(serving())  # a signal that is raised again would end this process
    assert (server.should_exit, server.force_exit) == (True, forced)
    assert [signal.getsignal(number) for number in (INT, TERM)] == before
