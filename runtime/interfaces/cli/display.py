"""A live display at the bottom of a terminal (stderr): redrawn several times a second, with permanent lines above it."""

import sys
from collections.abc import Callable, Sequence
from threading import Event, RLock, Thread
from typing import Any, Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from ....lang.diagnostic import printable
from ...events import Event as RunEvent

_SECONDS = 1 / 8


class _Guarded(Console):
    """A console that one thread owns from the first line of an output to its write.

    Otherwise a frame could be drawn between the removal of the last frame and the output, and would stay.
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
    """The live part and the lines above it. ``drawn`` is called in the refreshing thread and must only read."""

    def __init__(self, drawn: Callable[[], Any], console: Console | None = None) -> None:
        self._drawn = drawn
        self._shown = False
        self._guard, self._over = RLock(), Event()
        self.spinner = Spinner("dots", style="cyan")
        self.console = console or _Guarded(self._guard, sys.stderr)
        # Other output to stderr (of the local model, while it downloads its weights) goes above the display.
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
            self._live.start(refresh=True)  # otherwise the initial, empty content is shown
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
        """Redraw until stopped: the library's own thread may draw between the lines of another output."""
        while not self._over.wait(_SECONDS):
            with self._guard:
                if not self._over.is_set():
                    self._live.refresh()

    def _draw(self) -> Any:
        return self._drawn() if self._shown else Text()  # called once during construction, when the owner is not ready


def one_line(text: str, style: str = "", indent: int = 0) -> Text:
    """Return untrusted text as one line, cut at the terminal's width: a wrapped line would not be removed."""
    shown = " " * indent + printable(" ".join(text.split()))
    return Text(shown, style=style, overflow="ellipsis", no_wrap=True)


def beside(rows: Sequence[tuple[Text, Text]], width: int) -> list[Text]:
    """Return rows of two texts each as lines of at most ``width`` cells; the second texts are aligned.

    The second texts have up to two thirds of the width, the first ones the rest.
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


# The display of a run in progress: lines in a pipe, a live screen on a terminal.


class Display(Protocol):
    """A subscriber that displays events."""

    def __call__(self, event: RunEvent) -> None:
        """Show one event."""
        ...

    def note(self, text: str) -> None:
        """Show a permanent line."""
        ...

    def stop(self) -> None:
        """Restore the screen; may be called more than once."""
        ...
