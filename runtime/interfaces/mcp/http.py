"""The server over streamable HTTP, behind the same door as ``knotwork serve``: host, origin, key, rate and size are looked at first."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable

from attrs import field, frozen
from starlette.applications import Starlette
from starlette.routing import Route

from ..http.door import door
from ..http.gate import Gate
from ..http.keys import Keys
from ..http.listening import listening, url_of
from ..http.server import LAST, Server, configured, stop
from ..http.settings import Limits
from .ground import Ground
from .server import create_server
from .sessions import Sessions
from .transports import quieten

__all__ = ["PATH", "Door", "create_app", "serve_http"]

PATH = "/mcp"
_IDLE = 5
"""Seconds that a connection may say nothing between requests."""


@frozen
class Door:
    """Where the server listens, and who gets in: it is the ``http.settings.Entrance`` of this server."""

    host: str
    port: int
    keys: Keys
    cors: tuple[str, ...] = ()
    limits: Limits = field(factory=lambda: Limits(rate=600.0))
    log: bool = False


def create_app(ground: Ground, version: str, entrance: Door) -> Starlette:
    """Return the application: the SDK's, with the door before it."""
    sessions = Sessions(create_server(ground, version), entrance.limits.body_bytes)
    app = Starlette(routes=[Route(PATH, sessions)], lifespan=lambda app: sessions.open())
    for layer in reversed(door(entrance, entrance.keys, Gate(entrance.limits))):
        app.add_middleware(layer.cls, *layer.args, **layer.kwargs)
    return app


def serve_http(ground: Ground, version: str, entrance: Door, ready: Callable[[str], None]) -> None:
    """Listen until a signal comes; ``ready`` is called with the address. Raises ``NoPort``."""
    quieten()
    with listening(entrance.host, entrance.port) as made:
        app = create_app(ground, version, entrance)
        asyncio.run(_serve(ground, app, entrance, made, lambda: ready(f"{url_of(made)}{PATH}")))


async def _serve(
    ground: Ground, app: Starlette, entrance: Door, made: socket.socket, ready: Callable[[], None]
) -> None:
    async with _closing(ground):
        config = configured(app, head_seconds=entrance.limits.body_seconds, idle=_IDLE, lifespan="on")
        await Server(config, ready, stop).serve([made])


@contextlib.asynccontextmanager
async def _closing(ground: Ground) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await ground.idle(LAST)
        await ground.aclose()
