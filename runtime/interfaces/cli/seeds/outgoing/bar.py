"""The live display: how much of the contexts is done, and the figures. Notes stay above it."""

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ......lang.diagnostic import printable
from .progress import Display
from .tally import Tally

__all__ = ["Bar"]


class Bar(Display):
    """Shows a run on a terminal (stderr). The refreshing thread only reads."""

    def __init__(
        self, tally: Tally, name: str, share: Callable[[], float | None], console: Console | None = None
    ) -> None:
        super().__init__(tally)
        self._name = printable(name)
        self._share = share
        self._part = 0.0
        self._began = perf_counter()
        self._spinner = Spinner("dots", style="cyan")
        self._console = console or Console(file=sys.stderr, highlight=False)
        self._live = Live(
            get_renderable=self._drawn, console=self._console, refresh_per_second=8, transient=True,
            redirect_stdout=False, redirect_stderr=True,
        )  # fmt: skip
        self._live.start()

    def moved(self) -> None:
        """A context is done."""
        self._part = self._share() or 0.0

    def note(self, text: str) -> None:
        """Print a line above the display."""
        self._console.print(Text(printable(text), style="yellow"))

    def stop(self) -> None:
        """Take the display away."""
        self._live.stop()

    def _drawn(self) -> Any:
        drawn = Table.grid(padding=(0, 1))
        seconds = int(perf_counter() - self._began)
        bar = ProgressBar(total=1.0, completed=self._part, width=20, pulse=not self._part)
        drawn.add_row(
            self._spinner,
            Text(self._name, style="bold", overflow="ellipsis", no_wrap=True),
            bar,
            Text(self.tally.line()),
            Text(f"{seconds // 60}:{seconds % 60:02}", style="dim"),
        )
        return drawn
