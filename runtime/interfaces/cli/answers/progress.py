"""What a person sees while an answer is worked on, in a pipe: lines on stderr."""

import sys

from attrs import define, field

from .....lang.diagnostic import printable
from ....events import AnswerStarted, Event, IterationFinished
from ..shared.output import colour, paint, say
from .telling import Line, iteration, noted

__all__ = ["Lines"]


@define
class Lines:
    """A few lines for each iteration, as it ends."""

    _most: int = 0
    _threshold: float = 0.0
    _coloured: bool = field(factory=lambda: colour(sys.stderr))

    def __call__(self, event: Event) -> None:
        """Print what a reader of a log wants to know."""
        match event:
            case AnswerStarted():
                self._most, self._threshold = event.iter_max, event.score_threshold
            case IterationFinished():
                for line in iteration(event, self._most, self._threshold):
                    self._print(line)
            case _:
                if text := noted(event):
                    self.note(text)

    def note(self, text: str) -> None:
        """Print a line."""
        say(printable(text))
        sys.stderr.flush()

    def stop(self) -> None:
        """Nothing is open."""

    def _print(self, line: Line) -> None:
        head = printable(line.head)
        say((paint(head, line.style, self._coloured) if line.style else head) + printable(line.rest))
        sys.stderr.flush()
