"""The models that a server offers: opened once for its event loop, with separate limits for each run.

Clients know models only by the names that the server gives them: a spec, an address or a key is never accepted from a client or
sent to one.
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

# The server's settings: address, models, files and limits.


@frozen
class Model:
    """An offered model: its name for clients, and its spec, which is not disclosed."""

    name: str
    spec: str


@frozen
class RunLimits:
    """Spending limits of one run (None: no limit) and its time limit in seconds. ``price`` is per million tokens."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    price: Price | None = None
    seconds: float = 600.0

    def ledger(self) -> Ledger:
        """Return a ledger for a new run."""
        return Ledger(self.max_calls, self.max_tokens, self.max_cost)


@frozen
class ServerSettings:
    """The settings of ``create_app``. ``models``: at least one; the first is the default.

    ``history``: the SQLite file of answers. ``keys``: the key file (``http.access.Keys``). ``templates``: the file of named
    prompts. ``keep``: maximum number of stored runs per key. ``cors``: allowed origins of other pages (default: none). ``grace``:
    seconds given to active answers at shutdown. ``cache``: whether calls are cached. ``log``: whether to log each request on
    stderr.
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


# Routes whose body ``Bodies`` has parsed already: FastAPI does not parse it again.


class Route(APIRoute):
    """A route that uses the body already parsed by ``Bodies``."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the request handler."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            return await handle(_Parsed(request.scope, request.receive))

        return handled


class _Parsed(Request):
    async def json(self) -> Any:
        """Return the parsed body."""
        return self.state.json


# A budget for each run: all runs share the models' clients, but calls are charged to the run that makes them.
# The counting layer is below the cache and the retries, so that cached answers cost nothing and every request sent is counted.
# The context of the call selects the run's ledger.


class RunsLedger(Ledger):
    """The ledger of the shared clients: it delegates to the ledger of the current context's run."""

    def __init__(self, limits: RunLimits) -> None:
        super().__init__(limits.max_calls, limits.max_tokens, limits.max_cost)
        self.current: ContextVar[Ledger] = ContextVar("the run's ledger")

    async def reserve(self, need: Any, price: Price) -> Usage:
        """Make a reservation in the run's ledger."""
        return await self.current.get().reserve(need, price)

    def again(self, hold: Usage, price: Price, notice: Notice) -> None:
        """Count a repeated request in the run's ledger."""
        self.current.get().again(hold, price, notice)

    def settle(self, hold: Usage, used: Usage, price: Price) -> None:
        """Replace a reservation in the run's ledger with the actual usage of the call."""
        self.current.get().settle(hold, used, price)


class Charged(Layer):
    """A shared client whose calls are charged to one run. The server closes the client."""

    def __init__(self, inner: Client, shared: RunsLedger, ledger: Ledger) -> None:
        super().__init__(inner)
        self._shared = shared
        self._ledger = ledger

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the client's answer. Raises ``BudgetExceeded`` if the run's budget is used up."""
        token = self._shared.current.set(self._ledger)
        try:
            return await self._inner.generate(prompt, **options)
        finally:
            self._shared.current.reset(token)

    async def aclose(self) -> None:
        """Leave the shared client open."""


SEED_DEFAULT = "gpt-4o"
"""Default of the request field ``model``."""

_LISTED = 50


@frozen
class ForRun:
    """The clients of one run: its model, all models by name, and the ledger for their total spending."""

    name: str
    spec: str
    client: Client = field(repr=False)
    named: Mapping[str, Client] = field(repr=False)
    ledger: Ledger = field(repr=False)
    instead: str = ""
    """Message that another model than the requested one answers; empty if the requested one does."""


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
        """Open a client for each of ``models``; ``cache`` returns the cache file of a spec, or None. Raises ``NotConfigured``."""
        clients, ledger = {}, RunsLedger(limits)
        for model in models:
            settings = ModelSettings(model.spec, cache(model.spec), ledger, limits.price)
            clients[model.name] = open_model(settings, environ, warn=warn)
        return cls({model.name: model for model in models}, models[0].name, limits, clients, ledger)

    @property
    def names(self) -> tuple[str, ...]:
        """The names allowed in requests, the default first."""
        return tuple(self.models)

    def find(self, name: str | None) -> Model:
        """Return the model ``name``; for None, or for ``SEED_DEFAULT`` if not offered, the server's default.

        Raises ``Problem`` (422) with the list of names.
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
        """Return a message if the server's default answers instead of the requested model, else an empty string."""
        if name != SEED_DEFAULT or name in self.models:
            return ""
        return (
            f"the request names the model {SEED_DEFAULT!r}, which this server does not offer; {self.default!r} answered"
        )

    def for_run(self, name: str | None = None) -> ForRun:
        """Return the clients for one run, all charged to one ledger with the server's limits per run; do not close them.

        Raises ``Problem`` like ``find``.
        """
        found, ledger = self.find(name), self.limits.ledger()
        named: dict[str, Client] = {
            each: Charged(client, self._ledger, ledger) for each, client in self._clients.items()
        }
        return ForRun(found.name, found.spec, named[found.name], named, ledger, self.instead_of(name))

    async def aclose(self) -> None:
        """Close every client."""
        for client in self._clients.values():
            await client.aclose()


# Shared objects of the routes, as parameters ``parts: TheParts`` and ``who: TheCaller``.


@frozen
class Parts:
    """The server's settings, keys, gate and models, for the lifetime of the app."""

    settings: ServerSettings
    keys: Keys
    gate: Gate
    offered: Offered


def parts_of(request: Request) -> Parts:
    """Return the parts of the app that received ``request``."""
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
    """Return the owner of the request. ``http.access.Guard`` has verified the key before the body was read."""
    who: Who = request.state.who
    return who


TheParts = Annotated[Parts, Depends(parts_of)]
TheCaller = Annotated[Who, Depends(who_of)]
