"""What a person sees while a question is answered: decisions, hypotheses, commands as they end, branches, repairs."""

import sys

from attrs import define, field

from .....lang.diagnostic import printable
from ....events import BranchClosed, BranchOpened, DecisionMade, Event, HypothesisFormed, RepairAsked
from ....excerpts import clipped
from ..programs.progress import CommandLines
from ..shared.output import colour, paint, say

__all__ = ["Lines"]

_LONGEST, _BRIEF = 400, 160
_STYLES = {"start": "cyan", "continue": "green", "refine": "yellow", "pivot": "yellow", "terminate": "green"}


@define
class Lines:
    """A line for each decision, hypothesis and branch, on stderr, and those of the plans' commands."""

    most: int
    _commands: CommandLines = field(factory=CommandLines)
    _open: dict[int, list[BranchOpened]] = field(factory=dict)
    _hypothesis: str = ""

    def __call__(self, event: Event) -> None:
        """Show one event."""
        match event:
            case DecisionMade():
                decision = paint(event.decision, _STYLES.get(event.decision, "yellow"), colour(sys.stderr))
                by = " (by rule)" if event.by == "rule" else " (ungrounded)" if event.ungrounded else ""
                why = f": {clipped(event.why, _LONGEST)}" if event.why else ""
                say(f"step {event.step} of at most {self.most} · {decision}{by}{printable(why)}")
            case HypothesisFormed():
                if event.resumed:
                    self.note(f"step {event.step} goes on behind what was done of its plan {event.plan}")
                if event.hypothesis and not (self._open and event.hypothesis == self._hypothesis):
                    self.note(f"  hypothesis: {clipped(event.hypothesis, _LONGEST)}")
                self._hypothesis = event.hypothesis
                if event.alternatives and not self._open:  # a search tries the others too
                    self.note(f"  taken with confidence {event.confidence:g}, before {event.alternatives} other plans")
            case RepairAsked():
                first = next(
                    (each["message"] for each in event.diagnostics if each["severity"] == "error"),
                    event.reason or "it can't be read",
                )
                refused = "refused, asked" if event.written else "asked"  # where nothing came nothing was refused
                self.note(f"  {refused} again ({event.attempt}): {clipped(str(first), _LONGEST)}")
            case BranchOpened():
                self._open.setdefault(event.node, []).append(event)
            case BranchClosed():
                self._closed(event)
            case _:
                self._commands(event)

    def note(self, text: str) -> None:
        """Print a line."""
        self._commands.note(text)

    def stop(self) -> None:
        """Nothing is open."""

    def _closed(self, event: BranchClosed) -> None:
        begun = self._open.get(event.node)
        opened = begun.pop(0) if begun else None  # a state's branches end in the order in which they began
        if begun == []:
            del self._open[event.node]
        outcome = event.outcome or event.status
        if event.child is None:
            came = f"{outcome}: {event.message}" if event.message else outcome
        else:
            there = "state {} again" if event.status == "merged" else "state {}"
            came = f"{outcome}, {there.format(event.child)}"
            came += f" worth {event.value:.2f}" if event.value is not None else ""
        why = [] if opened is None else [clipped(each, _BRIEF) for each in (opened.rationale, opened.plan) if each]
        about = f" {': '.join(why)}" if why else ""
        self.note(f"  branch of state {event.node}:{about} → {clipped(came, _LONGEST)}")
