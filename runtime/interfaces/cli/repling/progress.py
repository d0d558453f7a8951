"""What is seen while a command runs on a terminal: what it is, how long it takes, what models were asked."""

import asyncio
from time import perf_counter
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from ....events import BudgetReached, CallFinished, CallRetried, CallStarted, Event, StepFinished, StepStarted
from ..programs.progress import Calls
from ..shared.live import Foot, clock, one_line

__all__ = ["Working"]

_PATIENCE = 0.3
"""Seconds in which most commands are done: nothing flickers for them."""
_STEPS = 6


class Working:
    """A display at the foot of the terminal, for one piece. ``start`` in the event loop; it subscribes to the session's events."""

    def __init__(self, text: str) -> None:
        self._text = " ".join(text.split())
        self._began = perf_counter()
        self._calls = Calls()
        self._asked = 0
        self._steps: dict[str, float] = {}
        self._foot = Foot(self._drawn)
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
        self._calls(event)
        match event:
            case CallStarted():
                self._asked += 1
            case StepStarted():
                self._steps[event.step] = perf_counter()
            case StepFinished():
                self._steps.pop(event.step, None)
            case CallRetried():
                self.note(f"asked again ({event.attempt}): {event.reason}")
            case BudgetReached():
                self.note(f"the budget is reached: {event.message}")
            case CallFinished() if event.error:
                self.note(f"a call failed: {event.error}")
            case _:
                pass

    def _drawn(self) -> Any:
        now = perf_counter()
        head = Table.grid(padding=(0, 1))
        waiting = self._asked - self._calls.calls
        asked = f"asking a model, {waiting:,} under way" if waiting > 0 else ""
        told = " · ".join(part for part in (asked, self._calls.line() if self._calls.calls else "") if part)
        head.add_row(
            self._foot.spinner, one_line(self._text, "bold"), Text(clock(now - self._began), style="dim"), Text(told),
            Text("Ctrl-C cancels", style="dim"),
        )  # fmt: skip
        rows = [
            one_line(f"({step}) {clock(now - began)}", "cyan", 2) for step, began in list(self._steps.items())[:_STEPS]
        ]
        return Group(head, *rows) if len(rows) > 1 else head
