"""What is seen while a cell runs for longer than a moment: how long, what models were asked, and how to end it."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

from ....lang.diagnostic import printable
from ...events import BudgetReached, CallFinished, CallRetried, CallStarted, Event, StepFinished, StepStarted
from ..cli.programs.progress import Calls
from ..cli.shared.live import clock
from .showing import told_html

__all__ = ["Working"]

_PATIENCE, _EVERY = 0.5, 0.3
_STEPS = 6

Place = Callable[[dict[str, str]], Any]


class Working:
    """A line that changes. Events come in the session's thread; ``tick`` shows, in the notebook's.

    ``place`` shows a bundle and returns a handle with ``update``, as IPython's ``display`` does.
    """

    def __init__(self, text: str, place: Place, update: Callable[[Any, dict[str, str]], None]) -> None:
        self._text = " ".join(text.split())[:60]
        self._place, self._update = place, update
        self._began = self._last = perf_counter()
        self._calls = Calls()
        self._asked = 0
        self._steps: dict[str, None] = {}
        self._said = ""
        self._handle: Any = None

    def __call__(self, event: Event) -> None:
        """Take in one event."""
        self._calls(event)
        match event:
            case CallStarted():
                self._asked += 1
            case StepStarted():
                self._steps[event.step] = None
            case StepFinished():
                self._steps.pop(event.step, None)
            case CallRetried():
                self._said = f"asked again ({event.attempt}): {event.reason}"
            case BudgetReached():
                self._said = f"the budget is reached: {event.message}"
            case CallFinished() if event.error:
                self._said = f"a call failed: {event.error}"
            case _:
                pass

    def note(self, text: str) -> None:
        """Say something from now on."""
        self._said = text
        self._show()

    def tick(self) -> None:
        """Show how things stand, if it is time."""
        now = perf_counter()
        if now - self._began > _PATIENCE and now - self._last > _EVERY:
            self._show()

    def stop(self) -> None:
        """Say for good what was asked; nothing where nothing was shown."""
        if self._handle is not None:
            self._update(self._handle, _bundle(self._line("done")))

    def _show(self) -> None:
        self._last = perf_counter()
        bundle = _bundle(self._line("interrupt cancels"))
        if self._handle is None:
            self._handle = self._place(bundle)
        else:
            self._update(self._handle, bundle)

    def _line(self, last: str) -> str:
        waiting = self._asked - self._calls.calls
        running = ", ".join(f"({step})" for step in list(self._steps)[:_STEPS]) if len(self._steps) > 1 else ""
        parts = (
            self._text,
            clock(perf_counter() - self._began),
            f"asking a model, {waiting:,} under way" if waiting > 0 and last != "done" else "",
            running,
            self._calls.line() if self._calls.calls else "",
            self._said if last != "done" else "",
            last if last != "done" else "",
        )
        return " · ".join(printable(part) for part in parts if part)


def _bundle(line: str) -> dict[str, str]:
    return {"text/html": told_html(line), "text/plain": line}
