"""The models that a call of a facade opens, or was given, under its limits; and what files and clients warn of meanwhile."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..events import Events

__all__ = ["Clients", "Warnings", "file_of"]


class Warnings:
    """Keeps what files warn of, and tells it."""

    def __init__(self, events: "Events | None") -> None:
        self.messages: list[str] = []
        self._events = events

    def __call__(self, message: str) -> None:
        """Take note of a warning."""
        self.messages.append(message)
        if self._events:
            from ..events import Warned

            self._events.emit(Warned("", message))


class Clients:
    """The clients of one run: under one budget, which begins with it. Those that were opened from a spec are closed with it.

    ``llm`` is the run's own, ``spec`` its spec ("" for a client of the caller's). ``judges`` has for each of the panel its name
    in ``named``, None where it is the run's own. Raises ``RequestError``, and ``NotConfigured`` where it is entered.
    """

    def __init__(
        self, model: Any, panel: Sequence[Any], warn: "Warnings", *, llm: Any = None, price: Any = None, cache: Any = None,
        **limits: Any,
    ) -> None:  # fmt: skip
        from ...adapters.llm_budget import Ledger, Price
        from ..refusals import RequestError

        if model is not None and llm is not None:
            raise RequestError("model", "model and llm are both given", "llm is another name for model")
        self._price = price if price is None or isinstance(price, Price) else Price(*_two(price))
        self._cache = file_of("cache", cache) if cache is not None else None
        self._limited = any(limit is not None for limit in limits.values())
        self._ledger = Ledger(**limits)
        self._warn = warn
        self._given = (model if model is not None else llm, panel)
        self._opened: list[Any] = []
        self.llm: Any = None
        self.spec = ""
        self.named: dict[str, Any] = {}
        self.judges: list[str | None] = []

    async def __aenter__(self) -> "Clients":
        from ..wiring import default_spec

        model, panel = self._given
        try:
            model = default_spec() if model is None else model
            self.spec = model if isinstance(model, str) else ""
            self.llm = self._client(model)
            for number, judge in enumerate(panel, 1):
                if judge is model or (isinstance(judge, str) and judge == self.spec):
                    self.judges.append(None)
                    continue
                first = next(place for place, other in enumerate(panel, 1) if other is judge or place == number)
                name = judge if isinstance(judge, str) else f"judge {first}"
                if name not in self.named:
                    self.named[name] = self._client(judge)
                self.judges.append(name)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._opened:
            await client.aclose()

    def _client(self, model: Any) -> Any:
        if isinstance(model, str):
            from ..wiring import ModelSettings, open_model

            opened = open_model(ModelSettings(model, self._cache, self._ledger, self._price), warn=self._warn)
            self._opened.append(opened)
            return opened
        from ...adapters.llm_budget import Budget, Priced
        from ...adapters.llm_layers import as_client
        from ..refusals import RequestError

        if self._cache is not None:
            raise RequestError("cache", "a client of one's own has no name that a cache could know it by", "use a spec")
        client = as_client(model)
        if self._limited:
            client = Budget(client, self._ledger, self._price)
        return Priced(client, self._price) if self._price is not None else client


def _two(price: Any) -> tuple[float, float]:
    """Return the two numbers of a price. Raises ``RequestError``."""
    from ..refusals import RequestError, shown

    two = tuple(price) if isinstance(price, tuple | list) else ()
    if len(two) != 2 or not all(type(each) in (int, float) and 0 <= each < math.inf for each in two):
        hint = "US dollars for a million prompt and completion tokens: (0.25, 2)"
        raise RequestError("price", f"{shown(price)} is no pair of prices", hint)
    return two[0], two[1]


def file_of(parameter: str, given: Any) -> Path:
    """Return the path of a file. Raises ``RequestError``."""
    from ..refusals import RequestError

    try:
        return Path(given)
    except TypeError:
        raise RequestError(parameter, f"a file is wanted, not {type(given).__name__}") from None
