"""The server over streamable HTTP, behind the same door as ``knotwork serve``: host, origin, key, rate and size are looked at first."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from attrs import define, field, frozen
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ..http.admission import Gate
from ..http.keys import Keys
from ..http.middleware import door
from ..http.server import LAST, configured, listening, stop, url_of
from ..http.server import Server as HttpServer
from ..http.server_settings import Limits
from .server import create_server
from .stdio_transport import fault_of, quieten
from .workspace import LOCAL, Ground

__all__ = ["PATH", "Door", "create_app", "serve_http"]


# The sessions of HTTP clients that begin with a handshake: each key has its own, which no other key can use, end or crowd out.
# The SDK's manager knows sessions by their id alone unless its own kind of login is in front, and counts all together. So each key
# gets a manager of its own: an id of another key's is one that it has never heard of.


_LOCAL_SESSIONS, _SESSIONS_OF_A_KEY = 64, 16
_FORGOTTEN = 600.0
"""Seconds after which a session that says nothing is forgotten."""
_OURS = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""The SDK's own look at Host and Origin, which knows no keys: ``http.guarding`` has looked before."""


@define(eq=False)
class _Own:
    """The manager of one key, and the task that keeps it open: the SDK wants it opened and closed by the same one."""

    manager: StreamableHTTPSessionManager
    task: "asyncio.Task[None]" = field(init=False)
    _ready: asyncio.Event = field(factory=asyncio.Event)

    def __attrs_post_init__(self) -> None:
        self.task = asyncio.create_task(self._keep_open(), name="sessions")

    async def _keep_open(self) -> None:
        async with self.manager.run():
            self._ready.set()
            await asyncio.Event().wait()

    async def opened(self) -> StreamableHTTPSessionManager:
        await self._ready.wait()
        return self.manager


@define(eq=False)
class Sessions:
    """The application behind the door: it hands each request to the sessions of whoever asks. ``open`` while it serves."""

    server: Server[object]
    body_bytes: int
    _of: dict[str, _Own] = field(factory=dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, of which the door has said whose it is."""
        if (fault := _fault(scope)) is not None:
            await fault(scope, receive, send)
            return
        who = str(scope["state"]["who"].id)
        if who not in self._of:
            self._of[who] = _Own(
                StreamableHTTPSessionManager(
                    self.server, security_settings=_OURS, max_request_body_size=self.body_bytes,
                    session_idle_timeout=_FORGOTTEN,
                    max_sessions=_LOCAL_SESSIONS if who == LOCAL else _SESSIONS_OF_A_KEY,
                )
            )  # fmt: skip
        manager = await self._of[who].opened()
        await manager.handle_request(scope, receive, send)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """End all sessions when it is left."""
        try:
            yield
        finally:
            tasks = [own.task for own in self._of.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _fault(scope: Scope) -> Response | None:
    """Return the answer to a body that is no message, in our words: the SDK would answer in those of a library, or not at all."""
    if "json" not in scope["state"]:
        return None
    fault = fault_of(scope["state"]["json"])
    if fault is None:
        return None
    written = fault.model_dump_json(exclude={"error": {"data"}})
    return Response(written, status_code=400, media_type="application/json")


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
        await HttpServer(config, ready, stop).serve([made])


@contextlib.asynccontextmanager
async def _closing(ground: Ground) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await ground.idle(LAST)
        await ground.aclose()
