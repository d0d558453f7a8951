"""The live display: how much of the contexts is done, and the figures. Notes stay above it."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ......lang.diagnostic import printable
from ....counting import clock
from ...shared.live import Foot
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
        self._foot = Foot(self._drawn, console)
        self._foot.start()

    def moved(self) -> None:
        """A context is done."""
        self._part = self._share() or 0.0

    def note(self, text: str) -> None:
        """Print a line above the display."""
        self._foot.note(text)

    def stop(self) -> None:
        """Take the display away."""
        self._foot.stop()

    def _drawn(self) -> Any:
        drawn = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=1.0, completed=self._part, width=20, pulse=not self._part)
        drawn.add_row(
            self._foot.spinner,
            Text(self._name, style="bold", overflow="ellipsis", no_wrap=True),
            bar,
            Text(self.tally.line()),
            Text(clock(perf_counter() - self._began), style="dim"),
        )
        return drawn
