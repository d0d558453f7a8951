"""What a person sees while contexts are worked on: a bar on a terminal, now and then a line in a pipe. Both go to stderr."""

import sys
from collections.abc import Callable
from time import perf_counter

from attrs import define

from ......lang.diagnostic import printable
from .....events import CallRetried, Event, Warned
from ...shared.output import say
from .tally import Tally

__all__ = ["Display"]

_SECONDS = 10.0
"""Between two lines in a pipe."""
_TOLD = 20
"""Notes of calls that are shown one by one; with thousands of calls, more are no news."""


@define
class Display:
    """Lines: at most one in ten seconds, and what should be known."""

    tally: Tally
    clock: Callable[[], float] = perf_counter
    _last: float | None = None
    _told: int = 0

    def __call__(self, event: Event) -> None:
        """Show an event that is worth a line."""
        match event:
            case CallRetried():
                self._tell(f"asked again ({event.attempt}): {event.reason}")
            case Warned():
                self._tell(f"warning: {event.step}: {event.message}" if event.step else f"warning: {event.message}")
            case _:
                pass

    def moved(self) -> None:
        """A context is done."""
        now = self.clock()
        if self._last is None:
            self._last = now
        elif now - self._last >= _SECONDS:
            self._last = now
            self.note(self.tally.line())

    def note(self, text: str) -> None:
        """Show a line that stays."""
        say(printable(text))
        sys.stderr.flush()

    def stop(self) -> None:
        """Leave the screen as it was; more than once is fine."""

    def _tell(self, text: str) -> None:
        self._told += 1
        if self._told <= _TOLD:
            self.note(text)
        elif self._told == _TOLD + 1:
            self.note("more of this is not shown")
