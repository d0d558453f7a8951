"""The session's model: opened when it is first asked, changed by ``.llm``, under one budget from the first call to the last."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Unpack

from ....adapters.llm import Completion, Options
from ....adapters.llm.middleware import Client, Own
from ...models.wiring import Ledger, ModelSettings, Price, default_spec, open_model

__all__ = ["Model", "budget_of"]


class Model(Own):
    """A client that stands for whichever model is chosen. ``spec`` "": the default one, which is looked up when it is asked.

    ``cache`` gives the call cache's file for a spec, None for none.
    """

    def __init__(
        self,
        spec: str,
        ledger: Ledger,
        *,
        price: Price | None = None,
        cache: Callable[[str], Path | None] = lambda spec: None,
        warn: Callable[[str], None] = lambda text: None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.spec = spec
        self.ledger = ledger
        self.price = price
        self._cache = cache
        self._warn = warn
        self._environ = environ
        self._client: Client | None = None
        self._left: list[Client] = []

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the answer of the model that is chosen; raise ``NotConfigured`` where there is none."""
        if self._client is None:
            self._client = self.opened(self.spec or default_spec(self._environ))
        return await self._client.generate(prompt, **options)

    def opened(self, spec: str) -> Client:
        """Return a client under the session's budget. Raises ``NotConfigured``."""
        settings = ModelSettings(spec, self._cache(spec), self.ledger, self.price)
        return open_model(settings, self._environ, warn=self._warn)

    def choose(self, spec: str) -> None:
        """Ask another model from now on. Raises ``NotConfigured``, and then nothing has changed."""
        client = self.opened(spec)
        if self._client is not None:
            self._left.append(self._client)
        self._client, self.spec = client, spec

    @property
    def shown(self) -> str:
        """The spec that is in force, or would be. Raises ``NotConfigured``."""
        return self.spec or default_spec(self._environ)

    async def aclose(self) -> None:
        """Let go of every client that was opened."""
        left, self._left = [*self._left, self._client], []
        self._client = None
        for client in left:
            if client is not None:
                await client.aclose()


def budget_of(ledger: Ledger) -> list[list[Any]]:
    """Return the rows of a table: what is limited, what was spent, what is left (None: there is no limit).

    What was spent in dollars is None where a model was asked whose price is not known.
    """
    spent: list[tuple[str, float | None, float | None]] = [
        ("calls", ledger.calls, ledger.max_calls),
        ("tokens", ledger.usage.total, ledger.max_tokens),
        ("cost", None if ledger.unpriced else round(ledger.cost, 6), ledger.max_cost),
    ]
    return [[what, used, limit, _left(used, limit)] for what, used, limit in spent]


def _left(used: float | None, limit: float | None) -> float | None:
    return None if used is None or limit is None else max(limit - used, 0)
