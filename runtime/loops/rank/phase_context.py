"""What the phases of one request share: who is asked, who listens, what is known of the items, what was spent."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field

from ....adapters.llm.strict_schema import Means
from ...answers.generator import Asker, Losses
from ...events import BudgetReached, Events, PhaseFinished, PhaseStarted, Warned
from ...models.caller import Caller
from ...models.usage import Spent
from ...results import Failed, StepFailed
from .ranking_results import Repair, ToolUse

__all__ = ["CALLS", "NONE", "Job", "Room", "raised"]

NONE = Means()
"""Of a client of one's own: it is asked in text for everything."""


@define
class Job:
    """A request under way. ``number`` counts requests from 0; ``label`` ("R00") begins the names of its calls in events and records.

    ``data`` is what scripts have as their input, ``options`` go with each call of plan and expansion.
    ``means``: what the model can be held to. ``warnings``, ``repairs`` and ``tools`` are what happened so far, however the request ends.
    """

    number: int
    request: str
    items: Sequence[Any] = field(repr=False)
    data: Mapping[str, Any] = field(repr=False)
    caller: Caller
    events: Events | None
    options: Mapping[str, Any] = field(factory=dict)
    means: Means = NONE
    losses: Losses = field(factory=Losses)
    warnings: list[str] = field(factory=list)
    repairs: list[Repair] = field(factory=list)
    tools: list[ToolUse] = field(factory=list)

    @property
    def label(self) -> str:
        """The request's number as the debug log writes it."""
        return f"R{self.number:02}"

    @property
    def models(self) -> tuple[str, ...]:
        """Names that ``model=`` may have in the script."""
        return tuple(self.caller.models)

    async def ask(self, phase: str, place: int, prompt: str, spent: Spent, **options: Any) -> str:
        """Return a model's text, kept and found again where the run is kept. Raises ``StepFailed``."""
        asker, unasked = (
            Asker(self.caller, f"{self.label}.{phase}", self.events, losses=self.losses),
            self.losses.budget,
        )
        try:
            return await asker.ask(place, prompt, {**self.options, **options}, None, spent)
        except StepFailed:
            if unasked is not None and self.events:
                self.events.emit(BudgetReached(asker.step, unasked.message))
            raise

    def started(self, phase: str, detail: str = "", count: int = 0) -> None:
        """Tell that a phase begins."""
        if self.events:
            self.events.emit(PhaseStarted("rank", phase, self.number, detail, count))

    def finished(self, phase: str, status: str, seconds: float, detail: str = "", count: int = 0) -> None:
        """Tell that a phase is over."""
        if self.events:
            self.events.emit(PhaseFinished("rank", phase, status, seconds, self.number, detail, count))

    def warn(self, message: str) -> None:
        """Keep a warning and tell it."""
        self.warnings.append(message)
        if self.events:
            self.events.emit(Warned(self.label, message))


# The calls that rankings may make together: how many where nobody says, and which requests begin on what is left of them.
# A plan that nothing can follow is money for nothing. So requests begin in their order, fewer of them side by side the fewer calls
# there are, and none begins to ask once what is left is less than a plan and the step behind it take.


CALLS = 100
"""Calls for each request, where the caller says nothing."""
_LEAST = 2
"""Calls of the shortest ranking: a plan, and its one step."""
_USUAL = 4
"""Calls for which room is left for each request beside others."""
_HOW = "max_calls, or --max-calls, raises it"


def raised(reason: str) -> str:
    """Return a reason that names a budget with what raises it."""
    if "budget of" not in reason or _HOW in reason:
        return reason
    return f"{reason} ({_HOW})"


@define
class Room:
    """Who may begin. ``most``: calls of all requests together, None for no limit; ``places``: requests side by side at most."""

    most: int | None
    places: int
    _sent: int = field(default=0, init=False)
    _under_way: int = field(default=0, init=False)
    _changed: asyncio.Event = field(factory=asyncio.Event, init=False)

    @property
    def _wide(self) -> int:
        return self.places if self.most is None else max(1, min(self.places, self.most // _USUAL))

    @property
    def _short(self) -> bool:
        """Whether what is left, once those under way have had the least they need, is too little for one more."""
        return self.most is not None and self.most - self._sent - self._under_way * _LEAST < _LEAST

    async def begin(self) -> Failed | None:
        """Wait for one's turn; return why nothing may be asked, where what is left is too little. Answers that are kept still count."""
        while self._under_way and (self._under_way >= self._wide or self._short):
            self._changed.clear()
            await self._changed.wait()
        short = self._short
        self._under_way += 1
        if not short:
            return None
        left = max(0, (self.most or 0) - self._sent)
        few = f"{left} of the budget of {self.most} calls {'is' if left == 1 else 'are'} left, and a ranking takes at least {_LEAST}"
        return Failed("budget", few, _HOW)

    def ended(self, sent: int) -> None:
        """Take in the end of a request, which sent so many."""
        self._under_way -= 1
        self._sent += sent
        self._changed.set()
