"""Connections in small pools: few calls share few connections, many get more, and what is idle is closed."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest
from knotwork.adapters.llm import pools as connection_pools
from knotwork.adapters.llm.pools import Pools


class Held(httpx2.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"ok"


class Counting(httpx2.AsyncBaseTransport):
    def __init__(self) -> None:
        self.sent = 0
        self.closed = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.sent += 1
        if request.url.path == "/fails":
            raise httpx2.ConnectError("no")
        return httpx2.Response(200, stream=Held())

    async def aclose(self) -> None:
        self.closed = True


@pytest.fixture
def made() -> list[Counting]:
    return []


def pools(made: list[Counting]) -> Pools:
    def make() -> Counting:
        made.append(Counting())
        return made[-1]

    return Pools(make)


def request(path: str = "/") -> httpx2.Request:
    return httpx2.Request("GET", f"http://127.0.0.1{path}")


def test_one_call_after_the_other_stays_in_one_pool_also_after_failures(made: list[Counting]) -> None:
    async def run() -> None:
        async with httpx2.AsyncClient(transport=pools(made)) as client:
            for path in ["/", "/fails"] * 10:
                try:
                    assert (await client.get(f"http://127.0.0.1{path}")).text == "ok"
                except httpx2.ConnectError:
                    assert path == "/fails"

    asyncio.run(run())
    assert [each.sent for each in made] == [20]
    assert made[0].closed


def test_calls_at_the_same_time_fill_one_pool_after_the_other(made: list[Counting]) -> None:
    async def run() -> None:
        transport = pools(made)
        responses = [await transport.handle_async_request(request()) for _ in range(9)]
        assert [each.sent for each in made] == [4, 4, 1]
        await responses[0].aclose()
        await responses[0].aclose()  # once is enough
        await transport.handle_async_request(request())
        assert [each.sent for each in made] == [5, 4, 1]

    asyncio.run(run())


def test_pools_that_are_idle_are_closed_but_the_first(made: list[Counting], monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        transport = pools(made)
        for response in [await transport.handle_async_request(request()) for _ in range(9)]:
            await response.aclose()
        monkeypatch.setattr(connection_pools, "_IDLE", 0.0)
        await asyncio.sleep(0.01)
        await transport.handle_async_request(request())
        assert [each.closed for each in made] == [False, True, True]

    asyncio.run(run())
