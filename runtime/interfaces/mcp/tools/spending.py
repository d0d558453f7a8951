"""What a call spent on models, and what the server has left."""

from .....adapters.llm import Tally
from ..shapes import Budget, Spent
from .tool import Call

__all__ = ["LIMIT_HINT", "budget_of", "spent_of"]

LIMIT_HINT = "it is the server's limit: whoever starts it raises --max-calls, --max-tokens or --max-cost"
"""What to do where a budget is used up: nothing that a client can."""


def spent_of(tally: Tally) -> Spent | None:
    """Return what a call spent; None where it sent no request."""
    if not tally.calls:
        return None
    used, cost = tally.usage, tally.cost
    return Spent(
        calls=tally.calls, prompt_tokens=used.prompt_tokens, completion_tokens=used.completion_tokens,
        cost=None if cost is None else round(cost, 9),
    )  # fmt: skip


def budget_of(call: Call) -> Budget | None:
    """Return what the server has spent so far, and may spend; None where nothing was spent and nothing is limited."""
    ledger = call.ground.models.ledger
    if not ledger.calls and (ledger.max_calls, ledger.max_tokens, ledger.max_cost) == (None, None, None):
        return None
    return Budget(
        calls=ledger.calls, tokens=ledger.usage.total, cost=None if ledger.unpriced else round(ledger.cost, 9),
        max_calls=ledger.max_calls, max_tokens=ledger.max_tokens, max_cost=ledger.max_cost,
    )  # fmt: skip
