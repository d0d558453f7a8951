"""What a person sees while a program runs: a line a command, as it ends, and a note where a model is asked."""

import sys
from collections import Counter

from attrs import define, field

from .....lang.diagnostic import printable
from ....events import (
    BudgetReached,
    CallFinished,
    CallRetried,
    CallStarted,
    CommandFinished,
    CommandStarted,
    Event,
    PlanStarted,
    Warned,
)  # fmt: skip
from ..execution.progress import dollars
from ..shared.output import colour, paint, say

__all__ = ["STYLES", "Calls", "CommandLines"]

STYLES = {"success": "green", "empty": "yellow", "partial": "yellow", "cancelled": "yellow"}
"""The colour of a command's status; one that is not named here is an error's."""
_LONGEST = 96


@define
class Calls:
    """Counts what models were asked: the requests that were sent, as ``runtime.spending`` counts them."""

    cached: int = 0
    tokens: int = 0
    cost: float | None = None
    _over: int = 0
    _under_way: int = 0

    @property
    def calls(self) -> int:
        """The requests that were sent: those that failed, or were stopped under way, and answers of the cache too."""
        return self._over + self._under_way

    def __call__(self, event: Event) -> None:
        """Count one event."""
        if isinstance(event, CallStarted):
            self._under_way += 1
        elif isinstance(event, CallFinished):
            self._under_way = max(0, self._under_way - 1)
            self._over += event.attempts
            self.cached += event.cached
            self.tokens += event.prompt_tokens + event.completion_tokens
            if event.cost is not None:
                self.cost = (self.cost or 0.0) + event.cost

    def line(self) -> str:
        """Say the figures in a few words."""
        cached = f" ({self.cached:,} cached)" if self.cached else ""
        parts = [f"{self.calls:,} call{'' if self.calls == 1 else 's'}{cached}"]
        if self.tokens:
            parts.append(f"{self.tokens:,} tokens")
        if self.cost:
            parts.append(dollars(self.cost))
        return " · ".join(parts)


@define
class CommandLines:
    """A line for each command that ends, on stderr. Commands inside others are set in."""

    _commands: dict[tuple[str, str], str] = field(factory=dict)  # by plan and number: branches number theirs alike
    _totals: dict[str, int] = field(factory=dict)
    _done: Counter[str] = field(factory=Counter)
    _asked: int = 0

    def __call__(self, event: Event) -> None:
        """Show one event."""
        match event:
            case PlanStarted():
                self._totals[event.plan], self._done[event.plan] = event.commands, 0
            case CommandStarted():
                self._commands[event.plan, event.step] = event.command
                self._asked = 0
            case CommandFinished():
                self._finished(event)
            case CallFinished():
                self._asked += 1
                if self._asked % 25 == 0:
                    self.note(f"  {self._asked} answers so far")
            case CallRetried():
                self.note(f"  asked again ({event.attempt}): {event.reason}")
            case BudgetReached():
                self.note(f"  the budget is reached: {event.message}")
            case Warned():
                self.note(f"warning: {event.message}")
            case _:
                pass

    def note(self, text: str) -> None:
        """Print a line."""
        say(printable(text))
        sys.stderr.flush()

    def _finished(self, event: CommandFinished) -> None:
        text = " ".join(self._commands.pop((event.plan, event.step), "").split())
        depth = event.step.count(".")
        total = self._totals.get(event.plan, 0)
        if not depth:
            self._done[event.plan] += 1
        place = f"[{self._done[event.plan]}/{total}] " if total and not depth else "  " * (depth + 1)
        shown = printable(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")
        count = f" {event.count:,}" if event.count is not None else ""
        status = paint(event.status, STYLES.get(event.status, "red"), colour(sys.stderr))
        say(f"{place}{shown} → {status}{count} in {event.seconds:.2f} s")
        if event.message:
            say(f"{'  ' * (depth + 2)}{printable(event.message)}")
        sys.stderr.flush()
