"""The models that a server offers: opened once for its event loop, and for each run with limits of its own.

Clients know models by the names that the server gives them; a spec, an address or a key never comes from outside, and is never
told.
"""

import os
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, Unpack

from attrs import field, frozen
from fastapi import Depends, Request, Response, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from ....adapters.llm import Completion, Notice, Options, Usage
from ....adapters.llm.budget import Ledger, Price
from ....adapters.llm.middleware import Client, Layer
from ....lang.diagnostic import nearest, printable
from ...models.factory import ModelSettings, open_model
from ..http.access import Gate, Keys, Who
from ..http.problems import Problem
from ..http.server import Limits

__all__ = ["ForRun", "Model", "Offered", "Parts", "Route", "RunLimits", "ServerSettings", "TheCaller", "TheParts"]


# What a server is told at its start: where it listens, which models it offers, where it keeps things, and its limits.


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


# A budget for each run, though all runs share the models' clients: calls are charged to the run that makes them.
# The layer that counts stands below the cache and the re-asks, so that an answer out of the cache costs nothing and every request
# that is sent counts; which run's ledger it counts in is told by the context of the call.


class RunsLedger(Ledger):
    """The ledger that the shared clients have: it passes on to that of the run under way in the context."""

    def __init__(self, limits: RunLimits) -> None:
        super().__init__(limits.max_calls, limits.max_tokens, limits.max_cost)
        self.current: ContextVar[Ledger] = ContextVar("the run's ledger")

    async def reserve(self, need: Any, price: Price) -> Usage:
        """Reserve room in the run's ledger."""
        return await self.current.get().reserve(need, price)

    def again(self, hold: Usage, price: Price, notice: Notice) -> None:
        """Count a request that is sent again in the run's ledger."""
        self.current.get().again(hold, price, notice)

    def settle(self, hold: Usage, used: Usage, price: Price) -> None:
        """Replace a reservation in the run's ledger by what the call took."""
        self.current.get().settle(hold, used, price)


class Charged(Layer):
    """A shared client whose calls are charged to one run. It needs no closing: the client is the server's."""

    def __init__(self, inner: Client, shared: RunsLedger, ledger: Ledger) -> None:
        super().__init__(inner)
        self._shared = shared
        self._ledger = ledger

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the client's answer; raise ``BudgetExceeded`` where the run may spend no more."""
        token = self._shared.current.set(self._ledger)
        try:
            return await self._inner.generate(prompt, **options)
        finally:
            self._shared.current.reset(token)

    async def aclose(self) -> None:
        """Leave the shared client open."""


SEED_DEFAULT = "gpt-4o"
"""The model of a request in which the client names none."""

_LISTED = 50


@frozen
class ForRun:
    """What one run asks: its model, all models by their names, and the ledger that counts what they spend together."""

    name: str
    spec: str
    client: Client = field(repr=False)
    named: Mapping[str, Client] = field(repr=False)
    ledger: Ledger = field(repr=False)
    instead: str = ""
    """That another model answers than the request names; "" where that is not so."""


@frozen
class Offered:
    """The open models. The first of ``models`` is the default."""

    models: Mapping[str, Model]
    default: str
    limits: RunLimits
    _clients: Mapping[str, Client] = field(repr=False)
    _ledger: RunsLedger = field(repr=False)

    @classmethod
    def open(
        cls,
        models: tuple[Model, ...],
        limits: RunLimits,
        *,
        cache: Callable[[str], Path | None] = lambda spec: None,
        warn: Callable[[str], None] | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> "Offered":
        """Open a client for each of ``models``; ``cache`` says where the calls of a spec are cached. Raises ``NotConfigured``."""
        clients, ledger = {}, RunsLedger(limits)
        for model in models:
            settings = ModelSettings(model.spec, cache(model.spec), ledger, limits.price)
            clients[model.name] = open_model(settings, environ, warn=warn)
        return cls({model.name: model for model in models}, models[0].name, limits, clients, ledger)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that requests may say, the default first."""
        return tuple(self.models)

    def find(self, name: str | None) -> Model:
        """Return the model called ``name``; None, and the seed's own default where it isn't offered, are the server's default.

        Raises ``Problem`` (422), which lists the names.
        """
        if name is None or (name == SEED_DEFAULT and name not in self.models):
            name = self.default
        model = self.models.get(name)
        if model is None:
            like = nearest(name, self.models)
            hint = f"did you mean {like!r}?" if like else f"there are: {', '.join(self.names[:_LISTED])}"
            raise Problem(
                "unknown-model", 422, "The server does not offer this model",
                f"no model is offered under the name {printable(name[:80])!r}; {hint}", models=list(self.names[:_LISTED]),
            )  # fmt: skip
        return model

    def instead_of(self, name: str | None) -> str:
        """Say that the server's default answers in the place of the model that a request names; "" where it does not."""
        if name != SEED_DEFAULT or name in self.models:
            return ""
        return (
            f"the request names the model {SEED_DEFAULT!r}, which this server does not offer; {self.default!r} answered"
        )

    def for_run(self, name: str | None = None) -> ForRun:
        """Return the clients for one run, all on one ledger with the server's limits of a run. They need no closing.

        Raises ``Problem`` as ``find`` does.
        """
        found, ledger = self.find(name), self.limits.ledger()
        named: dict[str, Client] = {
            each: Charged(client, self._ledger, ledger) for each, client in self._clients.items()
        }
        return ForRun(found.name, found.spec, named[found.name], named, ledger, self.instead_of(name))

    async def aclose(self) -> None:
        """Let go of every client."""
        for client in self._clients.values():
            await client.aclose()


# What the routes of a server share, and how a route gets at it: ``parts: TheParts`` and ``who: TheCaller`` as parameters.


@frozen
class Parts:
    """The server's settings, keys, gate and models. They live as long as the app does."""

    settings: ServerSettings
    keys: Keys
    gate: Gate
    offered: Offered


def parts_of(request: Request) -> Parts:
    """Return the parts of the app that ``request`` came to."""
    parts: Parts = request.app.state.parts
    return parts


_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="key",
    description="A key that `knotwork serve --add-key NAME` made. A server that only its own machine reaches may need none.",
)


def who_of(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],  # for the OpenAPI document
) -> Who:
    """Return whose request it is. ``guarding.Guard`` has looked at the key before the body came."""
    who: Who = request.state.who
    return who


TheParts = Annotated[Parts, Depends(parts_of)]
TheCaller = Annotated[Who, Depends(who_of)]
