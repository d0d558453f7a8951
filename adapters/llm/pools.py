"""Connection pools for many concurrent requests."""

from collections.abc import AsyncIterator, Callable
from time import monotonic
from typing import cast

import httpx2
from attrs import define, field

# Connections are kept in many small pools: httpx's pool checks all its connections for each request, which is slow with hundreds.
# A pool is filled before the next pool is used, so that few concurrent calls share few connections.

_EACH = 4
"""Concurrent requests per pool. For 200 concurrent requests, several pools need a quarter less CPU time than a single pool."""
_IDLE = 5.0
"""A pool that is unused for this many seconds is closed, with its open connections."""


@define(eq=False)
class _Pool:
    transport: httpx2.AsyncBaseTransport
    under_way: int = 0
    left: float = 0.0  # end of the pool's last request, on the monotonic clock

    def leave(self) -> None:
        self.under_way -= 1
        self.left = monotonic()


class _Body(httpx2.AsyncByteStream):
    """A response's body. The request counts as running until the response's body is closed."""

    def __init__(self, body: httpx2.AsyncByteStream, pool: _Pool) -> None:
        self._body = body
        self._pool: _Pool | None = pool

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._body:
            yield chunk

    async def aclose(self) -> None:
        try:
            await self._body.aclose()
        finally:
            if self._pool is not None:
                self._pool.leave()
                self._pool = None


@define(eq=False)
class Pools(httpx2.AsyncBaseTransport):
    """A transport over several pools, which ``make`` creates when concurrent requests need them. A transport belongs to one event loop."""

    make: Callable[[], httpx2.AsyncBaseTransport]
    _pools: list[_Pool] = field(factory=list, init=False)
    _looked: float = field(factory=monotonic, init=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send ``request`` through the first pool with free capacity."""
        await self._close_idle()
        pool = next((pool for pool in self._pools if pool.under_way < _EACH), None)
        if pool is None:
            pool = _Pool(self.make())
            self._pools.append(pool)
        pool.under_way += 1
        try:
            response = await pool.transport.handle_async_request(request)
        except BaseException:
            pool.leave()
            raise
        response.stream = _Body(cast(httpx2.AsyncByteStream, response.stream), pool)
        return response

    async def _close_idle(self) -> None:
        now = monotonic()
        if now - self._looked < _IDLE:
            return
        self._looked = now
        idle = [pool for pool in self._pools[1:] if not pool.under_way and now - pool.left > _IDLE]
        self._pools = [pool for pool in self._pools if pool not in idle]
        for pool in idle:
            await pool.transport.aclose()

    async def aclose(self) -> None:
        """Close every pool."""
        for pool in self._pools:
            await pool.transport.aclose()
