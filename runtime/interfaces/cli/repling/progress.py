"""What is seen while a command runs on a terminal: what it is, how long it takes, what models were asked."""

import asyncio
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from ....events import Event
from ...work import Work
from ..shared.live import Foot, one_line

__all__ = ["Working"]

_PATIENCE = 0.3
"""Seconds in which most commands are done: nothing flickers for them."""
_STEPS = 6


class Working:
    """A display at the foot of the terminal, for one piece. ``start`` in the event loop; it subscribes to the session's events."""

    def __init__(self, text: str) -> None:
        self._foot = Foot(self._drawn)
        self._work = Work(text, self._foot.note)
        self._soon: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Show it in a moment, if the command is not done by then."""
        self._soon = asyncio.get_running_loop().call_later(_PATIENCE, self._foot.start)

    def stop(self) -> None:
        """Take it away; more than once is fine."""
        if self._soon is not None:
            self._soon.cancel()
        self._foot.stop()

    def note(self, text: str) -> None:
        """Print a line above it."""
        self._foot.note(text)

    def __call__(self, event: Event) -> None:
        """Take in one event."""
        self._work(event)

    def _drawn(self) -> Any:
        work = self._work
        head = Table.grid(padding=(0, 1))
        told = " · ".join(part for part in (work.waiting, work.asked) if part)
        head.add_row(
            self._foot.spinner, one_line(work.text, "bold"), Text(work.clock, style="dim"), Text(told),
            Text("Ctrl-C cancels", style="dim"),
        )  # fmt: skip
        steps = work.steps
        if len(steps) < 2:
            return head
        return Group(head, *(one_line(f"({step}) {clock}", "cyan", 2) for step, clock in steps[:_STEPS]))
