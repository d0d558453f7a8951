"""Opens the models of one API call under the limits of the call; collects warnings from files and clients."""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import warning_reporter

if TYPE_CHECKING:
    from ..events import Events
    from ..lwt.operations.operation import Workshop
    from .workspace import Models, OpeningCallbacks, WorkspaceOptions


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
    """Remove the limits from the options of a run, and return an opener that applies them to all models. Raises ``RequestError``."""
    from . import warning_reporter

    return ModelOpener(
        warning_reporter(options.get("events")), **{name: options.pop(name) for name in names if name in options}
    )


def default_spec(*, needed: bool = True) -> str:
    """Return the spec of the default model. If there is none, raises ``NotConfigured``, or returns "" if ``needed`` is false."""
    from ...adapters.llm import NotConfigured
    from ..models.factory import default_spec

    try:
        return default_spec()
    except NotConfigured:
        if needed:
            raise
        return ""


def call_cache(spec: str) -> Path | None:
    """Return the file of the user's call cache for a model; None if its calls are not cached."""
    from ..runs.journal import cache_file

    return cache_file(spec)


class ModelOpener:
    """Opens the models of one run under one shared budget, and closes them at the end of ``async with``. Custom clients are left open.

    ``max_calls``, ``max_tokens`` and ``max_cost`` (US dollars; needs ``price``) limit the calls of the run (None: no limit). ``price`` is
    US dollars for a million prompt and completion tokens, such as ``(0.25, 2)``; ``rate`` is the maximum number of calls a minute.
    ``cache`` names the file of the call cache; True is the user's default cache. ``max_concurrency`` is the maximum number of parallel
    calls of each client. API keys and addresses come from ``environ``. ``ledger`` has the calls and the cost so far. Raises
    ``RequestError``.
    """

    def __init__(
        self, warn: "Callable[[str], None] | None" = None, *, max_calls: int | None = None, max_tokens: int | None = None,
        max_cost: float | None = None, price: Any = None, rate: float | None = None, cache: Any = None,
        max_concurrency: int | None = None, environ: Mapping[str, str] = os.environ,
    ) -> None:  # fmt: skip
        from ...adapters.llm.budget import Ledger, Price
        from ..errors import RequestError, short_repr
        from ..limits import check_limits

        check_limits({"max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost})
        if rate is not None and not (type(rate) in (int, float) and 0 < rate < math.inf):
            raise RequestError("rate", f"{short_repr(rate)} is not a number of calls a minute", "a number over 0")
        self._price = price if price is None or isinstance(price, Price) else Price(*_two(price))
        self._rate = rate
        self._cache = cache if cache is None or isinstance(cache, bool) else file_of("cache", cache)
        self._limited = any(limit is not None for limit in (max_calls, max_tokens, max_cost))
        self.ledger = Ledger(max_calls, max_tokens, max_cost)
        self._max_concurrency, self._environ = max_concurrency, environ
        self._warn = warn
        self._opened: list[Any] = []

    def open(self, model: Any, *, light: bool = False) -> Any:
        """Return the client for a spec, or a custom client with the limits applied. Raises ``NotConfigured``, ``RequestError``.

        ``light``: a custom client without limits may be called without the checks that loops need.
        """
        from ..models.factory import ModelSettings, open_model

        if isinstance(model, str):
            cache = call_cache(model) if self._cache is True else self._cache or None
            settings = ModelSettings(model, cache, self.ledger, self._price, self._rate, self._max_concurrency)
            self._opened.append(open_model(settings, self._environ, warn=self._warn))
            return self._opened[-1]
        from ...adapters.llm.budget import Budget, Priced
        from ...adapters.llm.middleware import Own, Throttled, as_client
        from ..errors import RequestError

        if self._cache:
            raise RequestError("cache", "a custom client has no name that a cache could know it by", "use a spec")
        if light and not self._limited and self._rate is None and self._price is None:
            return _Timed(model) if _is_port(model) and not isinstance(model, Own) else as_client(model)
        client: Any = as_client(model)
        if self._rate is not None:
            client = Throttled(client, per_minute=self._rate)
        if self._limited:
            client = Budget(client, self.ledger, self._price)
        return Priced(client, self._price) if self._price is not None else client

    def open_all(self, spec: str | None, named: Mapping[str, str]) -> "Models":
        """Open and return the default model ``spec`` (None: no default) and the models in ``named``. Raises ``NotConfigured``."""
        from .workspace import Models

        default = None if spec is None else self.open(spec)
        return Models(spec or "", default, {name: self.open(each) for name, each in named.items()}, self.ledger)

    async def __aenter__(self) -> "ModelOpener":
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._opened:
            await client.aclose()


class _Timed:
    """A custom client with the port's interface, whose calls end at the timeout that a script sets.

    ``as_client`` would also apply the timeout, but it sets a timer for each call. This class costs nothing if no timeout is set.
    """

    def __init__(self, client: Any) -> None:
        self._ask = client.generate

    async def generate(self, prompt: str, **options: Any) -> Any:
        """Return the client's answer."""
        timeout = options.get("timeout")
        if timeout is None:
            return await self._ask(prompt, **options)
        import asyncio

        async with asyncio.timeout(timeout):
            return await self._ask(prompt, **options)


def _is_port(model: Any) -> bool:
    """Return whether ``model`` has the port's interface: ``async generate(prompt, **options)``."""
    from inspect import iscoroutinefunction, signature

    generate = getattr(model, "generate", None)
    if not iscoroutinefunction(generate) or isinstance(model, type):
        return False
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature(generate).parameters.values())


class Clients:
    """The clients of one run under one shared budget. Clients that were opened from a spec are closed at the end of ``async with``.

    ``llm`` is the default client, ``spec`` its spec ("" for a custom client). ``judges`` has, for each model of the panel, its name in
    ``named``, or None if it is the default client. Raises ``RequestError``; entering ``async with`` raises ``NotConfigured``.
    """

    def __init__(
        self, model: Any, panel: Sequence[Any], warn: "Callable[[str], None]", **limits: Any,
    ) -> None:  # fmt: skip
        self._opener = ModelOpener(warn, **limits)
        self._given = (model, panel)
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


def _two(price: Any) -> tuple[float, float]:
    """Return the two numbers of a price. Raises ``RequestError``."""
    from ..errors import RequestError, short_repr

    two = tuple(price) if isinstance(price, tuple | list) else ()
    if len(two) != 2 or not all(type(each) in (int, float) and 0 <= each < math.inf for each in two):
        hint = "US dollars for a million prompt and completion tokens: (0.25, 2)"
        raise RequestError("price", f"{short_repr(price)} is not a pair of prices", hint)
    return two[0], two[1]


def file_of(parameter: str, given: Any) -> Path:
    """Return the path of a file. Raises ``RequestError``."""
    from ..errors import RequestError

    try:
        return Path(given)
    except TypeError:
        raise RequestError(parameter, f"a file is wanted, not {type(given).__name__}") from None


# The graph and the state that the ``GASL`` steps of one script run work on. They are opened before the run and closed after it.


@contextmanager
def on_graph(
    options: "WorkspaceOptions",
    models: "Models",
    events: "Events | None",
    callbacks: "OpeningCallbacks | None" = None,
    run_id: str = "",
) -> "Iterator[Workshop | None]":
    """Yield the workshop of the run with this id; None if no graph is named.

    A state that is opened here records its graph, and is closed at the end. Raises the exceptions of ``open_workspace``.
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
