"""A live display at the bottom of a terminal (stderr). It is redrawn several times per second; permanent lines appear above it."""

import sys
from collections.abc import Callable, Sequence
from threading import Event, RLock, Thread
from time import perf_counter
from typing import Any, TextIO

from attrs import define, field
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ....lang.diagnostic import printable
from ...api.figures import Calls, clock, counted
from ...events import (
    BudgetReached,
    CallFinished,
    CallRetried,
    CallStarted,
    RunStarted,
    StepFinished,
    StepSkipped,
    StepStarted,
    Warned,
    is_nested,
)
from ...events import Event as RunEvent
from .output import Display

_SECONDS = 1 / 8


class _Guarded(Console):
    """A console that a thread keeps locked while it prints.

    Without the lock, another thread could draw a frame between the removal of the last frame and the output, and that frame would
    remain on the screen.
    """

    def __init__(self, guard: "RLock", file: TextIO) -> None:
        self._guard = guard
        super().__init__(file=file, highlight=False)

    def __enter__(self) -> "_Guarded":
        self._guard.acquire()
        super().__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        try:
            super().__exit__(*raised)
        finally:
            self._guard.release()


class Foot:
    """The live display and the lines above it.

    ``drawn`` returns the content; it runs in the redrawing thread and must not change any data.
    """

    def __init__(self, drawn: Callable[[], Any], console: Console | None = None) -> None:
        self._drawn = drawn
        self._shown = False
        self._guard, self._over = RLock(), Event()
        self.spinner = Spinner("dots", style="cyan")
        self.console = console or _Guarded(self._guard, sys.stderr)
        # Other output to stderr, such as the progress of downloading the local model's weights, appears above the display.
        self._live = Live(
            get_renderable=self._draw, console=self.console, auto_refresh=False, transient=True,
            redirect_stdout=False, redirect_stderr=True,
        )  # fmt: skip

    def start(self) -> None:
        """Show the display; may be called more than once."""
        with self._guard:
            if self._shown:
                return
            self._shown = True
            self._live.start(refresh=True)  # without a refresh, the initial, empty content would be shown
        Thread(target=self._refresh, name="display", daemon=True).start()

    def stop(self) -> None:
        """Remove the display and show the cursor; may be called more than once."""
        self._over.set()
        with self._guard:
            self._live.stop()

    def line(self, text: Text) -> None:
        """Print a line above the display."""
        self.console.print(text)

    def note(self, text: str, style: str = "yellow") -> None:
        """Print a note above the display. ``text`` may be untrusted."""
        self.line(Text(printable(text), style=style))

    def _refresh(self) -> None:
        """Redraw until stopped. The library's own thread is not used, because it may draw between the lines of another output."""
        while not self._over.wait(_SECONDS):
            with self._guard:
                if not self._over.is_set():
                    self._live.refresh()

    def _draw(self) -> Any:
        return self._drawn() if self._shown else Text()  # rich also calls this during construction


def one_line(text: str, style: str = "", indent: int = 0) -> Text:
    """Return untrusted text as one line, cut at the terminal's width. (Redrawing the display would not remove a wrapped line.)"""
    shown = " " * indent + printable(" ".join(text.split()))
    return Text(shown, style=style, overflow="ellipsis", no_wrap=True)


def aligned_columns(rows: Sequence[tuple[Text, Text]], width: int) -> list[Text]:
    """Return rows with two columns as lines of at most ``width`` cells.

    In all lines, the second column begins at the same position.

    The second column takes up to two thirds of the width; the first column takes the rest.
    """
    right = min(max((second.cell_len for _, second in rows), default=0), max(1, width * 2 // 3))
    left = min(max((first.cell_len for first, _ in rows), default=0), max(1, width - right - 1))
    lines = []
    for first, second in rows:
        first, second = first.copy(), second.copy()
        first.truncate(left, overflow="ellipsis", pad=True)
        second.truncate(right, overflow="ellipsis")
        lines.append(Text.assemble(first, " ", second, overflow="ellipsis", no_wrap=True))
    return lines


# The progress of a script on stderr: lines in a pipe, or a live display on a terminal.


@define
class RunFigures(Calls):
    """Counts the steps and calls of a script's run from its events."""

    steps: int = 0
    done: int = 0
    reused: int = 0
    failed: int = 0
    skipped: int = 0
    reached: str = ""
    """The limit that prevented a call."""
    _planned: frozenset[str] = frozenset()

    def __call__(self, event: RunEvent) -> None:
        """Count one event."""
        super().__call__(event)
        match event:
            case RunStarted():
                self._planned = frozenset(step for layer in event.layers for step in layer)
                self.steps = len(self._planned)
            case StepFinished() if not is_nested(event.step):
                self.done += event.status == "done"
                self.failed += event.status == "failed"
                self.reused += event.reused
            case StepSkipped():
                self.skipped += event.step in self._planned
            case BudgetReached():
                self.reached = event.limit

    @property
    def summary(self) -> str:
        """The figures as one short line."""
        parts = [f"{self.done}/{self.steps} steps"]
        parts += [f"{count} {what}" for count, what in ((self.failed, "failed"), (self.skipped, "skipped")) if count]
        return " · ".join([*parts, *([self.line()] if self.calls else [])])


def event_line(event: RunEvent) -> str:
    """Return the line for an event of a script's run; "" for an event without a line, such as one that the summary reports."""
    match event:
        case RunStarted() if event.layers:
            return f"running {counted(sum(map(len, event.layers)), 'step')} in {counted(len(event.layers), 'layer')}"
        case StepFinished():
            how = "reused" if event.reused else f"{event.status} in {event.seconds:.1f} s"
            return f"({event.step}) {how}" + (f": {event.reason}" if event.reason else "")
        case CallRetried():
            place = event.step if event.item is None else f"{event.step}[{event.item}]"
            kinds = {"retry": "call sent again", "again": "asked again", "repair": "asked to repair the answer"}
            void = "; what was shown of its answer is void" if event.is_void else ""
            return f"({place}) {kinds.get(event.kind, event.kind)} ({event.attempt}): {event.reason}{void}"
        case Warned() if not event.message.startswith("skipped:"):
            return f"warning: ({event.step}) {event.message}" if event.step else f"warning: {event.message}"
        case _:
            return ""


@define
class StepLines(Display):
    """Prints a line for each finished step."""

    figures: RunFigures

    def __call__(self, event: RunEvent) -> None:
        """Print the line of an event."""
        if isinstance(event, StepFinished) and is_nested(event.step):
            return  # the step that runs the script reports it
        if text := event_line(event):
            figures = self.figures
            place = f"[{figures.done + figures.failed}/{figures.steps}] " if isinstance(event, StepFinished) else ""
            self.note(place + text)


_ROWS = 10
"""Maximum number of steps that are shown, so that a small terminal does not scroll."""


@define
class _Row:
    """A running step: its start time, the number of its calls, and how many of them are answered.

    ``is_each`` is true for a step with EACH.
    """

    began: float = field(factory=perf_counter)
    calls: int = 0
    answered: int = 0
    is_each: bool = False


class RunScreen(Display):
    """Shows a run on a terminal. The redrawing thread only reads this object's data; the run's thread delivers the events."""

    def __init__(self, figures: RunFigures, name: str, console: Console | None = None) -> None:
        self._figures = figures
        self._name = printable(name)
        self._began = perf_counter()
        self._rows: dict[str, _Row] = {}
        self._foot = Foot(self._drawn, console)
        self.note, self.stop = self._foot.note, self._foot.stop  # type: ignore[method-assign]

    def __call__(self, event: RunEvent) -> None:
        """Process one event; print the permanent lines above the display."""
        match event:
            case RunStarted():
                self._began = perf_counter()
                self._foot.start()
            case StepStarted():
                self._rows[event.step] = _Row()
            case StepFinished() | StepSkipped():
                self._rows.pop(event.step, None)
                if isinstance(event, StepFinished) and event.status == "failed" and not is_nested(event.step):
                    self._foot.note(event_line(event), "red")
            case CallStarted() | CallFinished():
                if row := self._rows.get(event.step):
                    row.is_each = row.is_each or event.item is not None
                    row.calls += isinstance(event, CallStarted)
                    row.answered += isinstance(event, CallFinished)
            case _:
                if text := event_line(event):
                    self.note(text)

    def _drawn(self) -> Any:
        figures, now = self._figures, perf_counter()
        head = Table.grid(padding=(0, 1))
        head.add_row(
            self._foot.spinner,
            Text(self._name, style="bold", overflow="ellipsis", no_wrap=True),
            ProgressBar(total=max(1, figures.steps), completed=figures.done + figures.failed, width=20),
            Text(figures.summary),
            Text(clock(now - self._began), style="dim"),
        )
        rows = list(self._rows.items())
        steps = Table.grid(padding=(0, 1))
        for name, row in rows[:_ROWS]:
            calls = f"{row.answered} of {row.calls} answered" if row.is_each else ""
            steps.add_row("  ", Text(f"({name})", style="cyan"), Text(clock(now - row.began), style="dim"), calls)
        if len(rows) > _ROWS:
            steps.add_row("  ", Text(f"and {len(rows) - _ROWS} more", style="dim"), "", "")
        return Group(head, steps)
