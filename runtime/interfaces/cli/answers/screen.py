"""The live display: which iteration is under way and the figures. Iterations that are over stay above it."""

from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .....lang.diagnostic import printable
from ....events import AnswerStarted, CandidateWritten, Event, IterationFinished, IterationStarted
from ...counting import Calls, clock
from ..shared.live import Foot
from .telling import Line, figures, iteration, noted

__all__ = ["Screen"]


class Screen:
    """Shows an answer on a terminal (stderr), from its first event on. The refreshing thread only reads."""

    def __init__(self, calls: Calls, console: Console | None = None) -> None:
        self._calls = calls
        self._most, self._threshold, self._attempts = 0, 0.0, 1
        self._at, self._written = 1, 0
        self._began = perf_counter()
        self._foot = Foot(self._drawn, console)

    def __call__(self, event: Event) -> None:
        """Take in one event; print what should stay."""
        match event:
            case AnswerStarted():
                self._most, self._threshold, self._attempts = event.iter_max, event.score_threshold, event.attempts
                self._began = perf_counter()
                self._foot.start()
            case IterationStarted():
                self._at, self._written = event.iteration, 0
            case CandidateWritten():
                self._written += 1
            case IterationFinished():
                for line in iteration(event, self._most, self._threshold):
                    self._print(line)
            case _:
                if text := noted(event):
                    self.note(text)

    def note(self, text: str) -> None:
        """Print a line above the display."""
        self._print(Line(text, style="yellow"))

    def stop(self) -> None:
        """Take the display away."""
        self._foot.stop()

    def _print(self, line: Line) -> None:
        self._foot.line(Text.assemble((printable(line.head), line.style), printable(line.rest)))

    def _drawn(self) -> Any:
        drawn = Table.grid(padding=(0, 1))
        drawn.add_row(
            self._foot.spinner,
            Text(f"iteration {self._at} of {self._most}", style="bold"),
            Text(self._doing()),
            Text(self._spent()),
            Text(clock(perf_counter() - self._began), style="dim"),
        )
        return drawn

    def _spent(self) -> str:
        told = self._calls
        return figures(told.calls - told.cached, told.cached, (told.tokens,), told.cost) if told.calls else ""

    def _doing(self) -> str:
        if self._attempts == 1:
            return "judging" if self._written else "writing"
        return f"{self._written} of {self._attempts} answers written"
