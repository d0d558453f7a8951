"""What a search may spend, as one object, and what it has spent: plans, calls, tokens, money, time."""

import asyncio
from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any, Literal

from attrs import define, field, frozen

from ....adapters.llm import LLMError, Usage
from ...errors import shown
from ...gasl.records import ExecutionRecord
from ...models.caller import HOPELESS
from ...models.usage import Spent
from ...results import StepFailed

__all__ = ["MOST_CALLS", "Budget", "Meter", "Stopped"]

Stopped = Literal["", "found", "exhausted", "steps", "calls", "tokens", "cost", "time", "cancelled", "budget", "model"]
"""Why a search ended: a state that is good enough; nothing left to try; a limit of its own; a cancellation; the run's own
budget, or a model that won't answer any call ("budget", "model")."""


MOST_CALLS = 500
"""Calls of one search, or question, where nobody says how many."""


def _positive(budget: "Budget", attribute: Any, value: Any) -> None:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    if value is not None and not fits:
        raise ValueError(f"{attribute.name} is a number of at least 0, not {shown(value)}")


def _whole(budget: "Budget", attribute: Any, value: Any) -> None:
    if value is not None and not (type(value) is int and value >= 0):
        raise ValueError(f"{attribute.name} is a whole number of at least 0, not {shown(value)}")


def _event(budget: "Budget", attribute: Any, value: Any) -> None:
    if value is not None and not isinstance(value, asyncio.Event):
        raise ValueError(f"{attribute.name} is an asyncio.Event, not {shown(value)}")


@frozen
class Budget:
    """The limits of one search (None: no limit).

    ``max_steps`` counts plans that are executed, those of rollouts too; it is never exceeded. ``max_calls``, ``max_tokens`` and
    ``max_cost`` (US dollars) are looked at before each round: the calls of a round that has begun are made, as far as the models'
    own limits let them. ``time_limit`` (seconds) and ``cancel`` end what is under way.
    """

    max_steps: int | None = field(default=50, validator=_whole)
    max_calls: int | None = field(default=MOST_CALLS, validator=_whole)
    max_tokens: int | None = field(default=None, validator=_whole)
    max_cost: float | None = field(default=None, validator=_positive)
    time_limit: float | None = field(default=None, validator=_positive)
    cancel: asyncio.Event | None = field(default=None, eq=False, validator=_event)


@define
class Meter:
    """What a search has spent, against its budget. ``spent`` may be shared with a proposer or a value that asks models itself."""

    budget: Budget
    spent: Spent = field(factory=Spent)
    steps: int = 0
    began: float = field(factory=perf_counter)
    reason: Stopped = ""
    """The first reason to stop; once it is there nothing more begins."""

    @property
    def seconds(self) -> float:
        """Seconds since the search began."""
        return perf_counter() - self.began

    @property
    def steps_left(self) -> int | None:
        """Plans that may still be executed; None where there is no limit."""
        most = self.budget.max_steps
        return None if most is None else max(0, most - self.steps)

    def over(self) -> bool:
        """Say whether nothing more may begin; ``reason`` says why."""
        if not self.reason:
            self.reason = self._limit()
        return bool(self.reason)

    def stop(self, reason: Stopped) -> None:
        """Let nothing more begin."""
        self.reason = self.reason or reason

    def failed(self, error: BaseException) -> None:
        """Stop where a model failed in a way that the next call would share."""
        if isinstance(error, LLMError):
            self._hopeless(error.kind)
        elif isinstance(error, StepFailed):
            self._hopeless(error.failed.kind)

    def count(self, records: Iterable[ExecutionRecord]) -> None:
        """Add what a plan's commands have spent; stop where a model failed them for good."""
        for record in records:
            if record.nested:  # a block or a branch spends what its commands do
                self.count(record.nested)
                continue
            metrics: Mapping[str, Any] = record.metrics
            tokens = metrics.get("tokens") or {}
            usage = Usage(tokens.get("prompt", 0), tokens.get("completion", 0))
            self.spent.add(metrics.get("calls", 0), usage, metrics.get("cost"))
            self._hopeless(str((record.error or {}).get("kind", "")))

    def _hopeless(self, kind: str) -> None:
        if kind in HOPELESS:
            self.stop("budget" if kind == "budget" else "model")

    def _limit(self) -> Stopped:
        budget, spent = self.budget, self.spent
        if budget.cancel is not None and budget.cancel.is_set():
            return "cancelled"
        if budget.time_limit is not None and self.seconds >= budget.time_limit:
            return "time"
        if self.steps_left == 0:
            return "steps"
        if budget.max_calls is not None and spent.calls >= budget.max_calls:
            return "calls"
        if budget.max_tokens is not None and spent.usage.total >= budget.max_tokens:
            return "tokens"
        if budget.max_cost is not None and (spent.cost or 0.0) >= budget.max_cost:
            return "cost"
        return ""
