"""What a person sees while a run goes on: a live display on a terminal, plain lines in a pipe. Both go to stderr."""

import sys

from attrs import define

from .....lang.diagnostic import printable
from ....events import (
    BudgetReached,
    CallFinished,
    CallRetried,
    Event,
    RunStarted,
    StepFinished,
    StepSkipped,
    Warned,
)  # fmt: skip
from ...counting import dollars
from ..shared.output import say

__all__ = ["Lines", "Tally", "counts", "told"]


@define
class Tally:
    """Counts what the events tell; everything that shows figures reads it."""

    steps: int = 0
    done: int = 0
    reused: int = 0
    failed: int = 0
    skipped: int = 0
    calls: int = 0
    cached: int = 0
    tokens: int = 0
    cost: float | None = None
    reached: str = ""
    """The limit that kept a call from being made."""
    _planned: frozenset[str] = frozenset()

    def __call__(self, event: Event) -> None:
        """Count one event."""
        match event:
            case RunStarted():
                self._planned = frozenset(step for layer in event.layers for step in layer)
                self.steps = len(self._planned)
            case StepFinished():
                self.done += event.status == "done"
                self.failed += event.status == "failed"
                self.reused += event.reused
            case StepSkipped():
                self.skipped += event.step in self._planned  # the others were never to run
            case BudgetReached():
                self.reached = event.limit
            case CallFinished():
                self.calls += 1
                self.cached += event.cached
                self.tokens += event.prompt_tokens + event.completion_tokens
                if event.cost is not None:
                    self.cost = (self.cost or 0.0) + event.cost
            case _:
                pass

    def line(self) -> str:
        """Say the figures in a few words."""
        parts = [f"{self.done}/{self.steps} steps"]
        parts += [f"{count} {what}" for count, what in ((self.failed, "failed"), (self.skipped, "skipped")) if count]
        if self.calls:
            cached = f" ({self.cached} cached)" if self.cached else ""
            parts += [f"{self.calls:,} call{'' if self.calls == 1 else 's'}{cached}", f"{self.tokens:,} tokens"]
        if self.cost:
            parts.append(dollars(self.cost))
        return " · ".join(parts)


@define
class Lines:
    """A line a step, as it ends."""

    tally: Tally

    def __call__(self, event: Event) -> None:
        """Print what a reader of a log wants to know."""
        text = told(event)
        if text:
            self.note(f"[{self.tally.done + self.tally.failed}/{self.tally.steps}] {text}" if counts(event) else text)

    def note(self, text: str) -> None:
        """Print a line."""
        say(printable(text))
        sys.stderr.flush()

    def stop(self) -> None:
        """Nothing is open."""


def counts(event: Event) -> bool:
    """Say whether the event ends a step that was to run."""
    return isinstance(event, StepFinished)


def told(event: Event) -> str:
    """Return the line for an event that is worth one, else nothing. What the summary tells again is left to it."""
    match event:
        case RunStarted() if event.layers:
            steps, layers = sum(map(len, event.layers)), len(event.layers)
            return f"running {steps:,} step{'' if steps == 1 else 's'} in {layers:,} layer{'' if layers == 1 else 's'}"
        case StepFinished():
            how = "kept from before" if event.reused else f"{event.status} in {event.seconds:.1f} s"
            return f"({event.step}) {how}" + (f": {event.reason}" if event.reason else "")
        case CallRetried():
            where = event.step if event.item is None else f"{event.step}[{event.item}]"
            what = {"retry": "sent again", "again": "asked again", "repair": "asked to repair its answer"}.get(
                event.kind, event.kind
            )
            return f"({where}) {what} ({event.attempt}): {event.reason}"
        case Warned() if not event.message.startswith("skipped:"):
            return f"warning: ({event.step}) {event.message}" if event.step else f"warning: {event.message}"
        case _:
            return ""
