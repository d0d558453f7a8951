"""The live display: the figures, a bar, and the steps under way. What fails or is tried again stays above it."""

from time import perf_counter
from typing import Any

from rich.console import Console, Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .....lang.diagnostic import printable
from ....events import CallFinished, CallStarted, Event, RunStarted, StepFinished, StepSkipped, StepStarted
from ...counting import clock
from ..shared.live import Foot
from .progress import Tally, told

__all__ = ["Screen"]

_ROWS = 10
"""Steps under way that are shown; a small terminal must not scroll."""


class _Row:
    """A step under way."""

    def __init__(self, step: str) -> None:
        self.step = step
        self.began = perf_counter()
        self.asked = 0
        self.answered = 0
        self.is_each = False


class Screen:
    """Shows a run on a terminal (stderr), from its first event on. The refreshing thread only reads; events come in the run's thread."""

    def __init__(self, tally: Tally, name: str, console: Console | None = None) -> None:
        self._tally = tally
        self._name = printable(name)
        self._began = perf_counter()
        self._rows: dict[str, _Row] = {}
        self._foot = Foot(self._drawn, console)

    def __call__(self, event: Event) -> None:
        """Take in one event; print what should stay."""
        match event:
            case RunStarted():
                self._began = perf_counter()
                self._foot.start()
            case StepStarted():
                self._rows[event.step] = _Row(event.step)
            case StepFinished() | StepSkipped():
                self._rows.pop(event.step, None)
            case CallStarted() | CallFinished():
                row = self._rows.get(event.step)
                if row is not None:
                    row.is_each = row.is_each or event.item is not None
                    row.asked += isinstance(event, CallStarted)
                    row.answered += isinstance(event, CallFinished)
            case _:
                text = told(event)
                if text:
                    self.note(text)
        if isinstance(event, StepFinished) and event.status == "failed":
            self.note(told(event), "red")

    def note(self, text: str, style: str = "yellow") -> None:
        """Print a line above the display."""
        self._foot.note(text, style)

    def stop(self) -> None:
        """Take the display away."""
        self._foot.stop()

    def _drawn(self) -> Any:
        tally, now = self._tally, perf_counter()
        ended = tally.done + tally.failed
        head = Table.grid(padding=(0, 1))
        head.add_row(
            self._foot.spinner,
            Text(self._name, style="bold", overflow="ellipsis", no_wrap=True),
            ProgressBar(total=max(1, tally.steps), completed=ended, width=20),
            Text(tally.line()),
            Text(clock(now - self._began), style="dim"),
        )
        rows = list(self._rows.values())
        shown = Table.grid(padding=(0, 1))
        for row in rows[:_ROWS]:
            calls = f"{row.answered} of {row.asked} answered" if row.is_each else ""
            shown.add_row("  ", Text(f"({row.step})", style="cyan"), Text(clock(now - row.began), style="dim"), calls)
        if len(rows) > _ROWS:
            shown.add_row("  ", Text(f"and {len(rows) - _ROWS} more", style="dim"), "", "")
        return Group(head, shown)
