"""The server over streamable HTTP, behind the same door as ``knotwork serve``: host, origin, key, rate and size are looked at first."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable

import uvicorn
from attrs import field, frozen
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware

from ..web.access import Access
from ..web.bodies import Bodies
from ..web.faults import Catching
from ..web.gate import Gate
from ..web.guarding import Guard
from ..web.headers import Headers
from ..web.keys import Keys
from ..web.protocol import impatient
from ..web.serving import listening
from ..web.settings import Limits, is_loopback
from .ground import Ground
from .server import create_server
from .transports import quieten

__all__ = ["PATH", "Door", "create_app", "serve_http"]

PATH = "/mcp"
_SESSIONS = 64
_IDLE = 600.0
"""Seconds after which a session of an older client that says nothing is forgotten."""
_LAST = 5
_OURS = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""The SDK's own look at Host and Origin, which knows no keys: ``Guard`` has looked before."""
_HEAD = 32 << 10


@frozen
class Door:
    """Where the server listens, and who gets in: see ``web.settings.ServerSettings``."""

    host: str
    port: int
    keys: Keys
    cors: tuple[str, ...] = ()
    limits: Limits = field(factory=lambda: Limits(rate=600.0))
    log: bool = False

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)


def create_app(ground: Ground, version: str, door: Door) -> Starlette:
    """Return the application: the SDK's, with the door before it."""
    app = create_server(ground, version).streamable_http_app(
        streamable_http_path=PATH, max_request_body_size=door.limits.body_bytes, session_idle_timeout=_IDLE,
        max_sessions=_SESSIONS, host=door.host, transport_security=_OURS,
    )  # fmt: skip
    layers = [Middleware(Access)] if door.log else []
    layers += [
        Middleware(Headers), Middleware(Catching), Middleware(Guard, settings=door, keys=door.keys, gate=Gate(door.limits)),
        Middleware(Bodies, limits=door.limits),
    ]  # fmt: skip
    for layer in reversed(layers):
        app.add_middleware(layer.cls, *layer.args, **layer.kwargs)
    return app


def serve_http(ground: Ground, version: str, door: Door, ready: Callable[[str], None]) -> None:
    """Listen until a signal comes; ``ready`` is called with the address. Raises ``NoPort``."""
    quieten()
    with listening(door.host, door.port) as socket:
        host, port = socket.getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"
        app = create_app(ground, version, door)
        config = uvicorn.Config(
            app, http=impatient(door.limits.body_seconds), ws="none", lifespan="on", log_config=None, access_log=False,
            server_header=False, proxy_headers=False, h11_max_incomplete_event_size=_HEAD, timeout_graceful_shutdown=_LAST,
        )  # fmt: skip
        asyncio.run(_serve(ground, _Server(config, lambda: ready(url)), socket))


async def _serve(ground: Ground, server: "_Server", socket: object) -> None:
    async with _closing(ground):
        await server.serve([socket])  # type: ignore[list-item]


@contextlib.asynccontextmanager
async def _closing(ground: Ground) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await ground.idle(_LAST)
        await ground.aclose()


class _Server(uvicorn.Server):
    """uvicorn's server, which says when it takes requests, and ends on a signal without raising it again."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: "list[object] | None" = None) -> None:  # type: ignore[override]
        """Take requests, and say so."""
        await super().startup(sockets)  # type: ignore[arg-type]
        self._ready()

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        """Take SIGTERM and Ctrl-C as the end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
