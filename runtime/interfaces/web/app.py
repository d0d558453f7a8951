"""The application: its middleware in order, its routes, and what lives as long as it does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from ...runs.directories import cache_file
from ..http.door import door
from ..http.faults import LOG
from ..http.gate import Gate
from ..http.keys import Keys
from .answers.router import router as answers
from .answers.runs import Runs
from .documenting import describe
from .faults import add_handlers
from .heads import Heads
from .health import router as health
from .lab.serving import router as lab
from .models import Offered
from .parts import Parts
from .scripts.router import router as scripts
from .settings import ServerSettings

__all__ = ["create_app"]


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
    for router in (answers, scripts, lab, health):
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
