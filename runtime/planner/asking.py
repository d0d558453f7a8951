"""What the phases of one request share: who is asked, who listens, what is known of the items, what was spent."""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field

from ...adapters.llm.strict_schema import Means
from ..answers.asking import Asker, Losses
from ..calls import Caller
from ..events import BudgetReached, Events, PhaseFinished, PhaseStarted, Warned
from ..results import StepFailed
from ..spending import Spent
from .results import Repair, ToolUse

__all__ = ["NONE", "Job"]

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
