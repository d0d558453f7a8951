"""Runs uvicorn with a time limit for request heads, orderly shutdown on signals, and no client data in logs."""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Literal, Protocol

import uvicorn
from attrs import frozen
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

# The listening socket, which is created before anything else, and its URL.


class PortUnavailable(Exception):
    """Raised if the server can't listen at the given address."""


@contextmanager
def listening_socket(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a socket that listens at this address. Raises ``PortUnavailable``."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise PortUnavailable(f"{host} is not an address of this machine: {error.strerror}") from None
    with listener:
        try:
            if sys.platform != "win32":  # on Windows, this option would let a second server take the port
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(2048)
        except OSError as error:
            raise PortUnavailable(f"can't listen on {host}:{port}: {(error.strerror or str(error)).lower()}") from None
        listener.setblocking(False)
        yield listener


def url_of(listener: socket.socket) -> str:
    """Return the URL of the socket ``listener``, without a path."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


# The HTTP protocol of uvicorn, with a time limit for the head of a request.


def protocol_with_timeout(seconds: float) -> type[H11Protocol]:
    """Return a protocol that closes the connection if the head of a request is not complete in time.

    The time is counted from the opening of the connection or, for later requests, from the first byte. uvicorn's own timer only
    applies to idle connections between requests: a client that occasionally sends a byte would keep a connection open forever,
    and a few hundred of these connections would block the server.
    """

    class Impatient(H11Protocol):
        """The protocol of one connection."""

        _head: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Start the timer for the head of the first request."""
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            """Receive bytes of a head or of a body."""
            if self._between():
                self._wait()
            super().data_received(data)
            if not self._between():
                self._stop_waiting()

        def connection_lost(self, exc: Exception | None) -> None:
            """Stop the timer."""
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


LAST = 5
"""Maximum number of seconds for sending the remaining data after all work has ended."""
_HEAD = 32 << 10
"""Maximum size in bytes of the head of a request."""


def uvicorn_config(app: ASGIApp, *, head_seconds: float, idle: int, lifespan: Literal["on", "off"]) -> uvicorn.Config:
    """Return uvicorn's settings.

    ``head_seconds`` is the time limit in seconds for the head of a request. ``idle`` is the maximum number of idle seconds between
    requests. ``lifespan`` is "off" if the caller enters the application's lifespan itself.
    """
    # uvicorn would log tracebacks, which may contain client data; ``internal_error`` logs the important part.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL + 1)
    return uvicorn.Config(
        app, http=protocol_with_timeout(head_seconds), ws="none", lifespan=lifespan, log_config=None, access_log=False,
        server_header=False, proxy_headers=False, h11_max_incomplete_event_size=_HEAD, timeout_keep_alive=idle,
        timeout_graceful_shutdown=LAST,
    )  # fmt: skip


class Server(uvicorn.Server):
    """A uvicorn server that calls ``ready`` when it accepts requests, and ``on_signal`` for each signal.

    Create the server in its event loop.
    """

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], on_signal: "Callable[[Server, int], None]"
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._on_signal = on_signal
        self._loop = asyncio.get_running_loop()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept requests, then call ``ready``."""
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal. Unlike uvicorn, don't raise the signal again at the end, because the shutdown is orderly."""
        self._loop.call_soon_threadsafe(self._on_signal, self, sig)


def stop(server: Server, number: int) -> None:
    """Stop the server after the active requests are answered; a second Ctrl-C stops it at once."""
    if server.should_exit and number == signal.SIGINT:
        server.force_exit = True
    server.should_exit = True


# Settings for the access checks: the address of the server, allowed origins, and limits on clients.


@frozen
class Limits:
    """The limits on clients.

    ``rate`` is the maximum number of requests per minute and key. ``runs`` is the maximum number of active runs in total;
    ``runs_per_key`` is the maximum per key. Without keys, only ``runs`` applies. ``body_bytes`` is the maximum size of a request body;
    ``body_seconds`` is the time limit in seconds for receiving it.
    """

    rate: float = 120.0
    runs: int = 16
    runs_per_key: int = 4
    body_bytes: int = 1 << 20
    body_seconds: float = 10.0


class ServerOptions(Protocol):
    """The address, the allowed origins and the limits of a server. The settings of each server include these options."""

    @property
    def host(self) -> str:
        """The address at which the server listens."""
        ...

    @property
    def cors(self) -> tuple[str, ...]:
        """The origins from which pages may send requests."""
        ...

    @property
    def limits(self) -> Limits:
        """The limits on clients."""
        ...

    @property
    def log(self) -> bool:
        """Whether each request is logged on stderr."""
        ...
