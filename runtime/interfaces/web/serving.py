"""The server as a process: where it listens, what it says on stderr, and how it ends without losing what is finished.

The first SIGTERM or Ctrl-C closes the door for new runs and gives those under way their grace, then cancels them: what they finished
is kept, and whoever follows is told the end. The second cancels at once. uvicorn waits for open streams before it ends an
application, so runs are ended before uvicorn is told to stop.
"""

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from .app import create_app
from .faults import LOG
from .protocol import impatient
from .settings import ServerSettings

__all__ = ["NoPort", "listening", "serve"]

_HEAD = 32 << 10
"""The most bytes of a request's head."""
_IDLE = 30
"""Seconds that a connection may say nothing between requests."""
_LAST = 5
"""Seconds for sending what is left when all runs have ended."""


class NoPort(Exception):
    """The server can't listen where it should."""


def serve(settings: ServerSettings, ready: Callable[[str], None]) -> bool:
    """Listen until a signal comes; ``ready`` is called with the address once requests are taken.

    Returns False where a second signal cut the end short. Raises ``NoPort``, ``NotConfigured``, and what ``Runs.open`` does.
    """
    with listening(settings.host, settings.port) as made:
        host, port = made.getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        return asyncio.run(_serve(settings, made, lambda: ready(url)))


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


async def _serve(settings: ServerSettings, listening: socket.socket, ready: Callable[[], None]) -> bool:
    app = create_app(settings)
    # uvicorn would log tracebacks, with texts of clients in them; what matters of that ``faults`` logs.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL + 1)
    config = uvicorn.Config(
        app, http=impatient(settings.limits.body_seconds), ws="none", lifespan="off", log_config=None, access_log=False,
        server_header=False, proxy_headers=False, h11_max_incomplete_event_size=_HEAD, timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=_LAST,
    )  # fmt: skip
    async with app.router.lifespan_context(app):
        server = _Server(config, app, settings.grace, ready)
        await server.serve([listening])
    return not server.force_exit


class _Server(uvicorn.Server):
    """uvicorn's server, which ends in our order."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, grace: float, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._application = app
        self._grace = grace
        self._ready = ready
        self._loop = asyncio.get_running_loop()
        self._ending: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take requests, and say so."""
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal. It is not raised again at the end, as uvicorn would do: ending in order is no failure."""
        self._loop.call_soon_threadsafe(self._asked_to_end)

    def _asked_to_end(self) -> None:
        gate = self._application.state.parts.gate
        if self._ending is None:
            gate.close()
            if gate.runs:
                many = f"{gate.runs} run{'' if gate.runs == 1 else 's'} under way"
                LOG.warning("stopping; %s, %g s to finish; again cancels at once", many, self._grace)
            self._ending = asyncio.ensure_future(self._end())
        else:
            self.force_exit = True
            self._ending.cancel()

    async def _end(self) -> None:
        """Let runs finish, cancel what is left, then have uvicorn stop."""
        state = self._application.state
        gate = state.parts.gate
        try:
            await asyncio.gather(state.runs.drain(self._grace), gate.emptied(self._grace))
        except asyncio.CancelledError:
            pass
        except Exception as error:
            LOG.error("ending runs failed: %s", type(error).__name__)
        try:
            gate.cancel_all()
            await gate.emptied(_LAST)
        finally:
            self.should_exit = True
