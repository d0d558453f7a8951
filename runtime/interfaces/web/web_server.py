"""The server as a process: where it listens, what it says on stderr, and how it ends without losing what is finished.

The first SIGTERM or Ctrl-C closes the door for new runs and gives those under way their grace, then cancels them: what they finished
is kept, and whoever follows is told the end. The second cancels at once. uvicorn waits for open streams before it ends an
application, so runs are ended before uvicorn is told to stop.
"""

import asyncio
import socket
from collections.abc import Callable

from fastapi import FastAPI

from ..http.middleware import LOG
from ..http.server import LAST, Server, configured, listening, url_of
from .app import create_app
from .web_settings import ServerSettings

__all__ = ["serve"]

_IDLE = 30
"""Seconds that a connection may say nothing between requests."""


def serve(settings: ServerSettings, ready: Callable[[str], None]) -> bool:
    """Listen until a signal comes; ``ready`` is called with the address once requests are taken.

    Returns False where a second signal cut the end short. Raises ``NoPort``, ``NotConfigured``, and what ``Runs.open`` does.
    """
    with listening(settings.host, settings.port) as made:
        return asyncio.run(_serve(settings, made, lambda: ready(url_of(made))))


async def _serve(settings: ServerSettings, made: socket.socket, ready: Callable[[], None]) -> bool:
    app = create_app(settings)
    config = configured(app, head_seconds=settings.limits.body_seconds, idle=_IDLE, lifespan="off")
    async with app.router.lifespan_context(app):
        server = Server(config, ready, _Ending(app, settings.grace).heard)
        await server.serve([made])
    return not server.force_exit


class _Ending:
    """How the server ends: in our order, not in uvicorn's."""

    def __init__(self, app: FastAPI, grace: float) -> None:
        self._application = app
        self._grace = grace
        self._under_way: asyncio.Task[None] | None = None

    def heard(self, server: Server, number: int) -> None:
        """Begin to end; cut it short where that is under way."""
        gate = self._application.state.parts.gate
        if self._under_way is None:
            gate.close()
            if gate.runs:
                many = f"{gate.runs} run{'' if gate.runs == 1 else 's'} under way"
                LOG.warning("stopping; %s, %g s to finish; again cancels at once", many, self._grace)
            self._under_way = asyncio.ensure_future(self._end(server))
        else:
            server.force_exit = True
            self._under_way.cancel()

    async def _end(self, server: Server) -> None:
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
            await gate.emptied(LAST)
        finally:
            server.should_exit = True
