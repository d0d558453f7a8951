"""What a person sees while rankings are made: a line a phase on stderr, as it ends, and what should be known beside it."""

import sys

from attrs import define

from .....lang.diagnostic import printable
from ....events import Event, PhaseFinished, RepairAsked, ToolCalled, Warned
from ....excerpts import clipped
from ..answers.telling import noted as noted_of_calls
from ..shared.output import say

__all__ = ["Lines", "noted"]

_LONGEST = 100


@define
class Lines:
    """A line for each phase of one request. ``several``: the request's number stands before it."""

    number: int
    several: bool

    def __call__(self, event: Event) -> None:
        """Print what is worth a line."""
        match event:
            case PhaseFinished(phase="plan", status="done"):
                steps = event.detail.count("\n") + 1
                self.note(f"planned {steps} step{'' if steps == 1 else 's'} in {event.seconds:.1f} s")
            case PhaseFinished(phase="expand", status="done"):
                self.note(
                    f"expanded in {event.count} iteration{'' if event.count == 1 else 's'}, {event.seconds:.1f} s"
                )
            case PhaseFinished(phase="expand", status="unfinished"):
                self.note(f"{event.detail}, {event.seconds:.1f} s")
            case PhaseFinished(phase="expand", status="pass-through"):
                self.note("pass-through: the plan needs no expansion")
            case ToolCalled() if event.call != "done()":
                self.note(f"  {clipped(event.call or 'no call of a tool', _LONGEST)}{'' if event.ok else ' refused'}")
            case _:
                if text := noted(event):
                    self.note(text)

    def note(self, text: str) -> None:
        """Print a line."""
        say(f"{f'[R{self.number:02}] ' if self.several else ''}{printable(text)}")
        sys.stderr.flush()


def noted(event: Event) -> str:
    """Return the line for what a person should know beside the phases, else nothing."""
    match event:
        case RepairAsked():
            found = str(event.diagnostics[0]["message"]) if event.diagnostics else event.reason or "it can't be used"
            if event.phase == "execute":
                return f"the last step is asked once more: {clipped(found, _LONGEST)}"
            return f"the plan goes back ({event.attempt}): {clipped(found, _LONGEST)}"
        case Warned() if event.message.startswith("skipped:"):  # the summary says which step failed
            return ""
        case _:
            return noted_of_calls(event)
