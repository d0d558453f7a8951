"""HTTP on the wire: uvicorn's own protocol, which waits for a request's head only so long."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["impatient"]


def impatient(seconds: float) -> type[H11Protocol]:
    """Return the protocol that ends a connection whose next request's head isn't there ``seconds`` after its first byte.

    uvicorn's own timer is for connections that say nothing between requests; a client that sends a byte now and then would keep
    a connection for ever, and a few hundred of them the server from everybody else.
    """

    class Impatient(H11Protocol):
        """The protocol of one connection."""

        _head: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Wait for the first request."""
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            """Take bytes: of a head that is waited for, or of a body."""
            if self._between():
                self._wait()
            super().data_received(data)
            if not self._between():
                self._stop_waiting()

        def connection_lost(self, exc: Exception | None) -> None:
            """Let go."""
            self._stop_waiting()
            super().connection_lost(exc)

        def _between(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _wait(self) -> None:
            if self._head is None:
                self._head = self.loop.call_later(seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._head is not None:
                self._head.cancel()
                self._head = None

    return Impatient
