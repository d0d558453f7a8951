"""A budget for each run, though all runs share the models' clients: calls are charged to the run that makes them.

The layer that counts stands below the cache and the re-asks, so that an answer out of the cache costs nothing and every request
that is sent counts; which run's ledger it counts in is told by the context of the call.
"""

from contextvars import ContextVar
from typing import Any, Unpack

from ....adapters.llm import Completion, Notice, Options, Usage
from ....adapters.llm.budget import Ledger, Price
from ....adapters.llm.middleware import Client, Layer
from .settings import RunLimits

__all__ = ["Charged", "RunsLedger"]


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
