"""How much a run may hold, and when it must end: a record that keeps nothing, and ends a run that does not end by itself.

Expressions over a large input make a large text in each of a thousand steps, and no call is needed for that. Steps without calls
run in one go, so the run is ended by what is raised here, not by its event.
"""

import asyncio
from time import perf_counter

from attrs import define, field

from ....results import Outcome, Recorded, Run, StepResult
from ...http.problems import Problem

__all__ = ["LARGEST", "Overdue", "Weighing"]

LARGEST = 16_000_000
"""Characters that the outputs of a run may have together."""
_PATIENCE = 0.5
"""Seconds that a run may go on computing after it was cancelled."""


class Overdue(Exception):
    """The run was cancelled and did not end."""


@define(eq=False)
class Weighing:
    """A ``Record`` that raises ``Problem`` once the outputs have more than ``LARGEST`` characters, and ``Overdue``.

    ``cancel`` is only looked at, in whatever thread the run is.
    """

    cancel: asyncio.Event
    size: int = field(default=0, init=False)
    run_id: str = field(default="", init=False)
    _since: float = field(default=0.0, init=False)

    @property
    def damage(self) -> str:
        """Nothing: nothing is to be kept."""
        return ""

    def recall(self, step: str, item: int | None, input_hash: str) -> Recorded | None:
        """Know of no earlier run."""
        return None

    def item_done(self, step: str, item: int | None, outcome: Outcome, seconds: float) -> None:
        """Weigh an item's output."""
        self._add(outcome.output)

    def step_done(self, result: StepResult, outcome: Outcome | None) -> None:
        """Weigh a step's output."""
        self._add(result.output)

    def finished(self, run: Run) -> None:
        """Keep nothing."""

    def close(self) -> None:
        """Keep nothing."""

    def _add(self, text: str) -> None:
        if self.cancel.is_set():
            now = perf_counter()
            self._since = self._since or now
            if now - self._since > _PATIENCE:
                raise Overdue
        self.size += len(text)
        if self.size > LARGEST:
            raise Problem(
                "too-much-output", 502, "The run made too much", f"outputs may have {LARGEST:,} characters together"
            )
