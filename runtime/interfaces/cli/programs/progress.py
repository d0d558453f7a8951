"""What a person sees while a program runs: a line a command, as it ends, and a note where a model is asked."""

import sys

from attrs import define, field

from .....lang.diagnostic import printable
from ....events import (
    BudgetReached,
    CallFinished,
    CallRetried,
    CommandFinished,
    CommandStarted,
    Event,
    PlanStarted,
    Warned,
)  # fmt: skip
from ..execution.progress import dollars
from ..shared.output import colour, paint, say

__all__ = ["Calls", "CommandLines"]

_STYLES = {"success": "green", "empty": "yellow", "partial": "yellow", "cancelled": "yellow"}
_LONGEST = 96


@define
class Calls:
    """Counts what models were asked."""

    calls: int = 0
    cached: int = 0
    tokens: int = 0
    cost: float | None = None

    def __call__(self, event: Event) -> None:
        """Count one event."""
        if isinstance(event, CallFinished):
            self.calls += 1
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

    _commands: dict[str, str] = field(factory=dict)
    _total: int = 0
    _done: int = 0
    _asked: int = 0

    def __call__(self, event: Event) -> None:
        """Show one event."""
        match event:
            case PlanStarted():
                self._total, self._done = event.commands, 0
            case CommandStarted():
                self._commands[event.step] = event.command
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
        text = " ".join(self._commands.pop(event.step, "").split())
        depth = event.step.count(".")
        if not depth:
            self._done += 1
        place = f"[{self._done}/{self._total}] " if self._total and not depth else "  " * (depth + 1)
        shown = printable(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")
        count = f" {event.count:,}" if event.count is not None else ""
        status = paint(event.status, _STYLES.get(event.status, "red"), colour(sys.stderr))
        say(f"{place}{shown} → {status}{count} in {event.seconds:.2f} s")
        if event.message:
            say(f"{'  ' * (depth + 2)}{printable(event.message)}")
        sys.stderr.flush()
