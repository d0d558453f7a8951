"""What a person sees while a question is answered: decisions, hypotheses, commands as they end, repairs."""

import sys

from attrs import define, field

from .....lang.diagnostic import printable
from ....commands.excerpts import clipped
from ....events import DecisionMade, Event, HypothesisFormed, RepairAsked
from ..programs.progress import CommandLines
from ..shared.output import colour, paint, say

__all__ = ["Lines"]

_LONGEST = 400
_STYLES = {"start": "cyan", "continue": "green", "refine": "yellow", "pivot": "yellow", "terminate": "green"}


@define
class Lines:
    """A line for each decision and hypothesis, on stderr, and those of the plans' commands."""

    most: int
    _commands: CommandLines = field(factory=CommandLines)

    def __call__(self, event: Event) -> None:
        """Show one event."""
        match event:
            case DecisionMade():
                decision = paint(event.decision, _STYLES.get(event.decision, "yellow"), colour(sys.stderr))
                by = " (by rule)" if event.by == "rule" else ""
                why = f": {clipped(event.why, _LONGEST)}" if event.why else ""
                say(f"step {event.step} of at most {self.most} · {decision}{by}{printable(why)}")
            case HypothesisFormed():
                if event.resumed:
                    self.note(f"step {event.step} goes on behind what was done of its plan {event.plan}")
                if event.hypothesis:
                    self.note(f"  hypothesis: {clipped(event.hypothesis, _LONGEST)}")
                if event.alternatives:
                    self.note(f"  taken with confidence {event.confidence:g}, before {event.alternatives} other plans")
            case RepairAsked():
                first = next(
                    (each["message"] for each in event.diagnostics if each["severity"] == "error"), "it can't be read"
                )
                self.note(f"  refused, asked again ({event.attempt}): {clipped(str(first), _LONGEST)}")
            case _:
                self._commands(event)

    def note(self, text: str) -> None:
        """Print a line."""
        self._commands.note(text)
