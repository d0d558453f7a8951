"""What one call spends on models, apart from what all others spend at the same time."""

import asyncio
from typing import Unpack

from attrs import define, field

from ....adapters.llm import LLM, Completion, Options, Tally
from ....adapters.llm.middleware import Client, Layer, as_client
from ...session.workspace import Models
from ...worker import Across

__all__ = ["Purse", "across"]


@define(eq=False)
class Purse:
    """Where the call under way has what it spends counted. The executors of sessions share one: they take turns."""

    tally: Tally = field(factory=Tally)

    def begin(self) -> Tally:
        """Count from nothing, and return where."""
        self.tally = Tally()
        return self.tally


def across(models: Models, purse: Purse) -> tuple[Client | None, dict[str, Client]]:
    """Return the clients for work in another loop than this one, to which they belong; ``purse`` counts what they spend."""
    home = asyncio.get_running_loop()

    def made(client: LLM) -> Client:
        return _Tallied(Across(as_client(client), home), purse)

    default = None if models.default is None else made(models.default)
    return default, {name: made(client) for name, client in models.named.items()}


class _Tallied(Layer):
    """Has the budget below it count into a purse, too. What the cache answers is not counted: it costs nothing."""

    def __init__(self, inner: Client, purse: Purse) -> None:
        super().__init__(inner)
        self._purse = purse

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer."""
        options["tally"] = self._purse.tally
        return await self._inner.generate(prompt, **options)
