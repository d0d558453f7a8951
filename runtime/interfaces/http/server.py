"""uvicorn as our servers run it: a request's head must come soon, a signal ends it in order, and nothing of a client's is logged."""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from types import FrameType
from typing import Literal, Protocol

import uvicorn
from attrs import frozen
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["LAST", "Entrance", "Limits", "NoPort", "Server", "configured", "is_loopback", "listening", "stop", "url_of"]

# Where a server listens: the socket, made before anything else is, and its address as clients write it.


class NoPort(Exception):
    """The server can't listen where it should."""


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Give a socket that takes connections at this address. Raises ``NoPort``."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        raise NoPort(f"{host} is no address of this machine: {error.strerror}") from None
    with made:
        try:
            if sys.platform != "win32":  # there it would let a second server take the port
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
            made.listen(2048)
        except OSError as error:
            raise NoPort(f"can't listen on {host}:{port}: {(error.strerror or str(error)).lower()}") from None
        made.setblocking(False)
        yield made


def url_of(made: socket.socket) -> str:
    """Return the URL of what listens at ``made``, without a path."""
    host, port = made.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


# HTTP on the wire: uvicorn's own protocol, which waits for a request's head only so long.


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


LAST = 5
"""Seconds for sending what is left when all work has ended."""
_HEAD = 32 << 10
"""The most bytes of a request's head."""


def configured(app: ASGIApp, *, head_seconds: float, idle: int, lifespan: Literal["on", "off"]) -> uvicorn.Config:
    """Return uvicorn's settings.

    ``head_seconds``: for a request's head to come; ``idle``: seconds that a connection may say nothing between requests;
    ``lifespan``: "off" where the application's is entered by whoever serves it.
    """
    # uvicorn would log tracebacks, with texts of clients in them; what matters of that ``faults`` logs.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL + 1)
    return uvicorn.Config(
        app, http=impatient(head_seconds), ws="none", lifespan=lifespan, log_config=None, access_log=False,
        server_header=False, proxy_headers=False, h11_max_incomplete_event_size=_HEAD, timeout_keep_alive=idle,
        timeout_graceful_shutdown=LAST,
    )  # fmt: skip


class Server(uvicorn.Server):
    """uvicorn's server, which says when it takes requests, and has ``heard`` do what a signal asks. Make it in its loop."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], heard: "Callable[[Server, int], None]"
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._heard = heard
        self._loop = asyncio.get_running_loop()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take requests, and say so."""
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal. It is not raised again at the end, as uvicorn would do: ending in order is no failure."""
        self._loop.call_soon_threadsafe(self._heard, self, sig)


def stop(server: Server, number: int) -> None:
    """End when the requests under way are answered; a second Ctrl-C waits for nothing."""
    if server.should_exit and number == signal.SIGINT:
        server.force_exit = True
    server.should_exit = True


# What the door of a server is told at its start: where the server listens, whose pages may ask, and what clients may ask of it.


@frozen
class Limits:
    """What clients may ask of the server.

    ``rate``: requests a minute of one key. ``runs``: under way at once, of all; ``runs_per_key``: of one key. Where no keys are
    needed only ``runs`` counts. ``body_bytes``: the most of a request's body; ``body_seconds``: for receiving it.
    """

    rate: float = 120.0
    runs: int = 16
    runs_per_key: int = 4
    body_bytes: int = 1 << 20
    body_seconds: float = 10.0


class Entrance(Protocol):
    """Where a server listens, whose pages may ask, and how much: each server's own settings have it."""

    @property
    def host(self) -> str:
        """The address that it listens on."""
        ...

    @property
    def cors(self) -> tuple[str, ...]:
        """Origins whose pages may ask."""
        ...

    @property
    def limits(self) -> Limits:
        """What clients may ask of it."""
        ...

    @property
    def log(self) -> bool:
        """Whether each request is a line on stderr."""
        ...


def is_loopback(host: str) -> bool:
    """Say whether ``host`` (a name, or an address as URLs write it) is this machine's own and no other."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False
