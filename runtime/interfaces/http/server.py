"""uvicorn as our servers run it: a request's head must come soon, a signal ends it in order, and nothing of a client's is logged."""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import Literal

import uvicorn
from starlette.types import ASGIApp

from .protocol import impatient

__all__ = ["LAST", "Server", "configured", "stop"]

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
