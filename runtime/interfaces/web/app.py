"""The application: its middleware in order, its routes, and what lives as long as it does."""

import asyncio
from collections.abc import AsyncIterator
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
from ...runs.directories import cache_file
from ..http.admission import Gate
from ..http.keys import Keys
from ..http.middleware import LOG, door
from ..http.problems import MEDIA_TYPE
from .answers.live_runs import Runs
from .answers.router import router as answers
from .lab.page import router as lab
from .problem_responses import add_handlers
from .scripts.routes import router as scripts
from .web_models import Offered, Parts, TheParts
from .web_settings import ServerSettings

__all__ = ["create_app"]


# HEAD: what GET would answer, without its body.


class Heads:
    """Middleware that has GET answer HEAD. As soon as the head is sent the route is told that the client has gone."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on."""
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


# ``GET /healthz``: whether the server is there and takes runs. And what stands at the address itself.


health_router = APIRouter(tags=["server"])


class Health(BaseModel):
    """The server is there and takes runs."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "ok"}]})

    status: Literal["ok"] = "ok"


@health_router.get("/healthz", summary="Whether the server takes runs")
async def healthz(parts: TheParts) -> Health:
    """Say that the server is there. Needs no key. At shutdown it is a 503."""
    parts.gate.check_open()
    return Health()


@health_router.get("/", include_in_schema=False)
@health_router.get("/lab/", include_in_schema=False)
async def root() -> RedirectResponse:
    """Lead who typed only the address to the page."""
    return RedirectResponse("/lab")


# The OpenAPI document: title, version, the problems that every operation may answer, and the key.


_ABOUT = """\
Iterative answers (generate, evaluate, feed back, until an answer is good enough) and prompt scripts.

Errors are problem documents (RFC 9457). `type` is `urn:knotwork:problem:NAME` and stays the same for all errors of one kind."""

_PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "A problem document (RFC 9457). Some have more members.",
    "properties": {
        "type": {"type": "string", "examples": ["urn:knotwork:problem:invalid-request"]},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "description": "What is wrong with the request, each with the JSON pointer of its place.",
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
    "401": "A key is needed, or it is not one of this server's",
    "403": "The request came under a foreign name, or from a page of another site",
    "429": "The key asks too often, or has too many runs under way; Retry-After says when to ask again",
    "503": "The server is full or shutting down, or can't read its keys",
}
_WITH_BODY = {
    "400": "The body is not JSON",
    "408": "The body took too long to come",
    "413": "The body is too large",
    "415": "The body is not sent as application/json",
}


def describe(app: FastAPI) -> None:
    """Have ``app`` serve the document at /openapi.json."""

    def made() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(title="knotwork", version=__version__, description=_ABOUT, routes=app.routes)
            app.openapi_schema = _with_problems(document)
        return app.openapi_schema

    app.openapi = made  # type: ignore[method-assign]


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
    """Return the application of ``settings``. What it opens it opens in its lifespan, which raises ``NotConfigured``."""
    keys, gate = Keys(settings.keys), Gate(settings.limits)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        offered = Offered.open(
            settings.models, settings.run, cache=cache_file if settings.cache else _uncached, warn=LOG.warning
        )
        try:
            app.state.parts = Parts(settings, keys, gate, offered)
            runs = app.state.runs = await Runs.open(settings, offered, gate)
            try:
                yield
            finally:
                await runs.aclose()
        finally:
            await offered.aclose()

    app = FastAPI(
        docs_url=None, redoc_url=None, redirect_slashes=False, lifespan=lifespan, middleware=_middleware(settings, keys, gate)
    )  # fmt: skip
    add_handlers(app)
    for router in (answers, scripts, lab, health_router):
        app.include_router(router)
    describe(app)
    return app


def _uncached(spec: str) -> None:
    return None


def _middleware(settings: ServerSettings, keys: Keys, gate: Gate) -> list[Middleware]:
    """Return the layers around the routes, from outside."""
    own = [Middleware(Heads)]
    if settings.cors:
        own.insert(
            0,
            Middleware(
                CORSMiddleware, allow_origins=settings.cors, allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["Authorization", "Content-Type", "Last-Event-ID"], expose_headers=["Location", "Retry-After"],
            ),
        )  # fmt: skip
    return door(settings, keys, gate, own)
