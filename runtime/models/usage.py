"""What calls cost together, counted as they are sent: those that fail, or are stopped under way, too."""

from typing import Any

from attrs import define

from ...adapters.llm import BudgetExceeded, Completion, LLMError, Usage
from ...adapters.llm.middleware import Client, Layer, Own, Validated, as_client
from ..results import NO_USAGE, add_costs

__all__ = ["Counted", "Spent", "checked"]


@define
class Spent:
    """Requests sent, tokens, US dollars. A request that was stopped under way counts as one."""

    calls: int = 0
    usage: Usage = NO_USAGE
    cost: float | None = None

    def add(self, calls: int, usage: Usage, cost: float | None) -> None:
        """Add what more was spent."""
        self.calls += calls
        self.usage += usage
        self.cost = add_costs(self.cost, cost)


class Counted(Layer):
    """Counts into ``tally``, an option of its own, the requests that a call takes.

    ``own``: whether the client is one of the house's, which say themselves that a ``BudgetExceeded`` is a request that was not
    sent; of somebody's own client it is one less than was counted.
    """

    def __init__(self, inner: Client, own: bool) -> None:
        super().__init__(inner)
        self._unsent = 0 if own else 1

    async def generate(self, prompt: str, **options: Any) -> Completion:
        """Return the inner client's answer."""
        tally: Spent = options.pop("tally")
        tally.calls += 1
        try:
            answer = await self._inner.generate(prompt, **options)
        except LLMError as error:
            tally.calls += error.attempts - 1 - (self._unsent if isinstance(error, BudgetExceeded) else 0)
            raise
        tally.calls += answer.attempts - 1
        return answer


def checked(client: Any) -> Counted:
    """Return ``client`` (what ``as_client`` takes) with its requests counted and its answers checked against their schema."""
    return Counted(Validated(as_client(client)), isinstance(client, Own))
