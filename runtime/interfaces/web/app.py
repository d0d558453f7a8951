"""The application: middleware, routes, lifespan, and the server process."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, ConfigDict
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .... import __version__
from ...api.server_runs import ServedModels
from ..http.access import Admission, Keys
from ..http.middleware import LOG, middleware_layers
from ..http.problems import MEDIA_TYPE
from ..http.server import LAST, Server, listening_socket, url_of, uvicorn_config
from .answer_routes import router as answers
from .evaluations import router as evaluations
from .lab import router as lab
from .live_runs import Runs
from .problem_responses import add_handlers
from .scripts import router as scripts
from .web_models import Context, ServerContext, ServerSettings

# HEAD: the response of GET without its body.


class Heads:
    """Middleware that answers a HEAD request with the route for GET.

    After the head is sent, the route receives a disconnect message.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        begun, given = asyncio.Event(), False

        async def gone() -> Message:
            nonlocal given
            if not given:
                given = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await begun.wait()
            return {"type": "http.disconnect"}

        async def head(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                begun.set()

        await self._app({**scope, "method": "GET"}, gone, head)


# ``GET /healthz`` reports whether the server accepts runs. ``GET /`` redirects to the Lab page.

health_router = APIRouter(tags=["server"])


class Health(BaseModel):
    """The server is up and accepts runs."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "ok"}]})

    status: Literal["ok"] = "ok"


@health_router.get("/healthz", summary="Check whether the server accepts runs")
async def healthz(parts: Context) -> Health:
    """Report that the server is up. Needs no key. Returns 503 during shutdown."""
    parts.gate.check_open()
    return Health()


@health_router.get("/", include_in_schema=False)
@health_router.get("/lab/", include_in_schema=False)
async def root() -> RedirectResponse:
    """Redirect to the Lab page."""
    return RedirectResponse("/lab")


# The OpenAPI document: title, version, the key, and the problems that all operations have in common.

_ABOUT = """\
Iterative answers (generate, evaluate and improve until an answer is good enough) and prompt scripts.

Errors are problem documents (RFC 9457). `type` is `urn:knotwork:problem:NAME` and stays the same for all errors of one kind."""

_PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "A problem document (RFC 9457). Some problems have additional members.",
    "properties": {
        "type": {"type": "string", "examples": ["urn:knotwork:problem:invalid-request"]},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "description": "The faults in the request, each with the JSON pointer of its location.",
            "items": {
                "type": "object",
                "properties": {"pointer": {"type": "string"}, "message": {"type": "string"}},
                "required": ["pointer", "message"],
            },
        },
    },
    "required": ["type", "title", "status"],
}

_COMMON = {
    "401": "The key is missing or unknown",
    "403": "The host name is not accepted, or the request came from a page of another site",
    "429": "The key sends too many requests or has too many active runs; Retry-After is the number of seconds to wait",
    "503": "The server is full or shutting down, or can't read its keys",
}
_WITH_BODY = {
    "400": "The body is not JSON",
    "408": "The body did not arrive in time",
    "413": "The body is too large",
    "415": "The body is not sent as application/json",
}


def describe(app: FastAPI) -> None:
    """Make ``app`` serve the OpenAPI document at /openapi.json."""

    def openapi_document() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(title="knotwork", version=__version__, description=_ABOUT, routes=app.routes)
            app.openapi_schema = _with_problems(document)
        return app.openapi_schema

    app.openapi = openapi_document  # type: ignore[method-assign]


def _with_problems(document: dict[str, Any]) -> dict[str, Any]:
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"] = _PROBLEM
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for path, operations in document["paths"].items():
        for operation in operations.values():
            responses = operation["responses"]
            told = {"422": "The request is not valid"} if "422" in responses else {}
            told |= {
                status: words for status, words in _COMMON.items() if path != "/healthz" or status in ("403", "503")
            }
            if "requestBody" in operation:
                told |= _WITH_BODY
            for status, words in told.items():
                responses[status] = {
                    "description": words,
                    **{key: value for key, value in responses.get(status, {}).items() if key == "headers"},
                    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
    return document


def create_app(settings: ServerSettings) -> FastAPI:
    """Return the application for ``settings``.

    Entering the application's lifespan opens the models and the history, and may raise ``NotConfigured``.
    """
    keys, gate = Keys(settings.keys), Admission(settings.limits)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        served = ServedModels.open(settings.models, settings.run, cache=settings.cache, warn=LOG.warning)
        try:
            app.state.parts = ServerContext(settings, keys, gate, served)
            runs = app.state.runs = await Runs.open(settings, served, gate)
            try:
                yield
            finally:
                await runs.aclose()
        finally:
            await served.aclose()

    app = FastAPI(
        docs_url=None, redoc_url=None, redirect_slashes=False, lifespan=lifespan, middleware=_middleware(settings, keys, gate)
    )  # fmt: skip
    add_handlers(app)
    for router in (answers, scripts, evaluations, lab, health_router):
        app.include_router(router)
    describe(app)
    return app


def _middleware(settings: ServerSettings, keys: Keys, gate: Admission) -> list[Middleware]:
    """Return the middleware around the routes, outermost first."""
    own = [Middleware(Heads)]
    if settings.cors:
        own.insert(
            0,
            Middleware(
                CORSMiddleware, allow_origins=settings.cors, allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["Authorization", "Content-Type", "Last-Event-ID"], expose_headers=["Location", "Retry-After"],
            ),
        )  # fmt: skip
    return middleware_layers(settings, keys, gate, own)


# The server process: listening and graceful shutdown.
# After the first SIGTERM or Ctrl-C, the server refuses new runs, waits for active runs during the grace period, then cancels them:
# finished iterations are saved, and followers receive the end. After the second signal, the server cancels active runs at once. uvicorn
# waits for open streams before it ends an application, so runs are ended before uvicorn is stopped.

_IDLE = 30
"""Seconds that a connection may be idle between requests."""


def serve(settings: ServerSettings, ready: Callable[[str], None]) -> bool:
    """Serve until a signal arrives; ``ready`` is called with the URL when the server accepts requests.

    Returns False if a second signal cut the shutdown short. Raises ``PortUnavailable``, ``NotConfigured`` or the errors of
    ``Runs.open``.
    """
    with listening_socket(settings.host, settings.port) as made:
        return asyncio.run(_serve(settings, made, lambda: ready(url_of(made))))


async def _serve(settings: ServerSettings, made: socket.socket, ready: Callable[[], None]) -> bool:
    app = create_app(settings)
    config = uvicorn_config(app, head_seconds=settings.limits.body_seconds, idle=_IDLE, lifespan="off")
    async with app.router.lifespan_context(app):
        server = Server(config, ready, _Ending(app, settings.grace).handle_signal)
        await server.serve([made])
    return not server.force_exit


class _Ending:
    """Graceful shutdown that ends the runs first and then stops uvicorn."""

    def __init__(self, app: FastAPI, grace: float) -> None:
        self._application = app
        self._grace = grace
        self._under_way: asyncio.Task[None] | None = None

    def handle_signal(self, server: Server, number: int) -> None:
        """Start the shutdown; if the shutdown has already started, cut it short."""
        gate = self._application.state.parts.gate
        if self._under_way is None:
            gate.close()
            if gate.runs:
                many = f"{gate.runs} run{'' if gate.runs == 1 else 's'} in progress"
                LOG.warning("stopping; %s, %g s to finish; a second signal cancels at once", many, self._grace)
            self._under_way = asyncio.ensure_future(self._end(server))
        else:
            server.force_exit = True
            self._under_way.cancel()

    async def _end(self, server: Server) -> None:
        """Wait for active runs, cancel the runs that remain, then stop uvicorn."""
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
