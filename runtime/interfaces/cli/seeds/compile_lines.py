"""What a person sees while a task is compiled, and at its end: lines on stderr, a few for each of the three steps."""

import sys

from attrs import define, field

from .....lang.diagnostic import printable
from ....api.checked import Checked
from ....events import (
    BudgetReached,
    CallRetried,
    DraftMended,
    Event,
    PhaseFinished,
    PhaseStarted,
    RepairAsked,
    Warned,
)  # fmt: skip
from ....excerpts import clipped
from ....loops.compile.compile_results import PHASES, Compiled
from ..answers.telling import figures
from ..shared.checking import show
from ..shared.output import colour, paint, say
from ..shared.output import shown as for_terminal
from ..shared.telling import reached

__all__ = ["Lines", "finished", "show_draft"]

_NAMES = {"conditions": "conditions", "graph": "computation graph", "seed": "seed"}
_STYLES = {"done": "green", "failed": "red", "cancelled": "yellow"}
_LONGEST = 200
_FAULTS = 3
"""Faults of a draft that a line tells of; the model is told of more."""
_DRAFT = 20_000
"""Characters of a draft that failed that are shown."""


@define
class Lines:
    """A line as a step begins, what was mended and sent back, and a line as it ends."""

    most: int
    """Repairs that a step may have."""
    _coloured: bool = field(factory=lambda: colour(sys.stderr))

    def __call__(self, event: Event) -> None:
        """Print what somebody who waits wants to know."""
        match event:
            case PhaseStarted(loop="compile"):
                self.note(f"[{event.count}/{len(PHASES)}] {_NAMES.get(event.phase, event.phase)}")
            case DraftMended():
                self.note(f"      mended: {clipped(event.message, _LONGEST)}{f'; {event.how}' if event.how else ''}")
            case RepairAsked(loop="compile"):
                self._repair(event)
            case PhaseFinished(loop="compile"):
                status = paint(event.status, _STYLES.get(event.status, ""), self._coloured and event.status in _STYLES)
                detail = f": {clipped(event.detail, _LONGEST)}" if event.detail else ""
                say(f"      {status} in {event.seconds:.1f} s{printable(detail)}")
            case CallRetried():
                self.note(f"      asked again ({event.attempt}): {clipped(event.reason, _LONGEST)}")
            case BudgetReached():
                self.note(f"      {reached(event)}")
            case Warned():
                self.note(f"warning: {event.message}")
        sys.stderr.flush()

    def note(self, text: str) -> None:
        """Print a line."""
        say(printable(text))
        sys.stderr.flush()

    def _repair(self, event: RepairAsked) -> None:
        errors = [each for each in event.diagnostics if each["severity"] == "error"]
        count = f"{len(errors)} error{'' if len(errors) == 1 else 's'}"
        self.note(f"      repair {event.attempt} of {self.most}: {count}")
        for each in errors[:_FAULTS]:
            self.note(f"        {each['code']}: {clipped(each['message'], _LONGEST)}")
        if len(errors) > _FAULTS:
            self.note(f"        and {len(errors) - _FAULTS} more")


def finished(made: Compiled, cached_calls: int) -> None:
    """Say what came of it, in a line, with what it cost; before it the notes of the steps."""
    for step in made.steps:
        for note in step.notes:
            say(printable(f"note: {_NAMES[step.phase]}: {note}"))
    status = paint("compiled" if made.status == "done" else "not compiled", _STYLES[made.status], colour(sys.stderr))
    tokens = made.usage.prompt_tokens, made.usage.completion_tokens
    sent = max(0, made.calls - cached_calls)
    cost = "from the cache" if made.cached else figures(sent, cached_calls, tokens, made.cost, f"{made.seconds:.1f} s")
    repairs = f"{made.repairs} repair{'' if made.repairs == 1 else 's'} · " if made.repairs else ""
    told = ""
    if made.seed is not None:
        told = f"{len(made.seed.fields)} fields, {len(made.seed.steps)} steps, {len(made.seed.outputs)} outputs · "
    say(f"{status}: {told}{repairs}{cost}")
    for warning in made.warnings:
        say(printable(f"warning: {warning}"))


def show_draft(made: Compiled) -> None:
    """Show the best draft and what is wrong with it."""
    draft = made.draft
    if draft is None:
        return
    say(f"the best draft of the {_NAMES[draft.phase]}:")
    say(for_terminal(draft.text[:_DRAFT]))
    if len(draft.text) > _DRAFT:
        say(f"… and {len(draft.text) - _DRAFT:,} characters more")
    say()
    show([Checked(draft.diagnostics, draft.source).without_remarks], sys.stderr)
