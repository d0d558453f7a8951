"""What a server is told at its start: where it listens, which models it offers, where it keeps things, and its limits."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from attrs import field, frozen
from fastapi import Request, Response
from fastapi.routing import APIRoute

from ....adapters.llm.budget import Ledger, Price
from ..http.server_settings import Limits

__all__ = ["Model", "Route", "RunLimits", "ServerSettings"]


@frozen
class Model:
    """A model that is offered: the name that clients know it by, and its spec, which they never see."""

    name: str
    spec: str


@frozen
class RunLimits:
    """What one run may spend (None: no limit) and how long it may take, in seconds. ``price`` is of a million tokens."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    price: Price | None = None
    seconds: float = 600.0

    def ledger(self) -> Ledger:
        """Return a new run's ledger."""
        return Ledger(self.max_calls, self.max_tokens, self.max_cost)


@frozen
class ServerSettings:
    """All that ``create_app`` needs. ``models``: at least one; the first is the default.

    ``history``: the SQLite file of the answers, ``keys``: that of the keys (``http.keys.Keys``), ``templates``: the prompts by name.
    ``keep``: runs of one key that the history keeps. ``cors``: origins whose pages may ask; none by default. ``grace``: seconds that
    running answers get at shutdown.
    ``cache``: whether calls are cached. ``log``: a line on stderr for each request.
    """

    models: tuple[Model, ...]
    history: Path
    keys: Path
    host: str = "127.0.0.1"
    port: int = 8000
    keep: int = 1000
    templates: Path | None = None
    cors: tuple[str, ...] = ()
    limits: Limits = field(factory=Limits)
    run: RunLimits = field(factory=RunLimits)
    grace: float = 30.0
    cache: bool = True
    log: bool = False

    def __attrs_post_init__(self) -> None:
        if not self.models:
            raise ValueError("a server needs a model")


# Routes whose body ``http.bodies.Bodies`` has parsed: FastAPI does not parse it again.


class Route(APIRoute):
    """A route that takes the body as ``Bodies`` has parsed it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            return await handle(_Parsed(request.scope, request.receive))

        return handled


class _Parsed(Request):
    async def json(self) -> Any:
        """Return the body's value."""
        return self.state.json
