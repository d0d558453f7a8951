"""What is seen while a cell runs for longer than a moment: how long, what models were asked, and how to end it."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

from ....lang.diagnostic import printable
from ...events import Event
from ..figures import Work
from .display import told_html

__all__ = ["Stopped", "Working"]

_PATIENCE, _EVERY = 0.5, 0.3
_STEPS = 6

Place = Callable[[dict[str, str]], Any]


class Working:
    """A line that changes. Events come in the session's thread; ``tick`` shows, in the notebook's.

    ``place`` shows a bundle and returns a handle with ``update``, as IPython's ``display`` does.
    """

    def __init__(self, text: str, place: Place, update: Callable[[Any, dict[str, str]], None]) -> None:
        self._work = Work(" ".join(text.split())[:60], self._say)
        self._place, self._update = place, update
        self._last = self._work.began
        self._said = ""
        self._handle: Any = None

    def __call__(self, event: Event) -> None:
        """Take in one event."""
        self._work(event)

    def note(self, text: str) -> None:
        """Say something from now on."""
        self._say(text)
        self._show()

    def tick(self) -> None:
        """Show how things stand, if it is time."""
        now = perf_counter()
        if now - self._work.began > _PATIENCE and now - self._last > _EVERY:
            self._show()

    def stop(self) -> None:
        """Say for good what was asked; nothing where nothing was shown."""
        if self._handle is not None:
            work = self._work
            self._update(self._handle, _bundle(work.text, work.clock, work.total))

    def _say(self, text: str) -> None:
        self._said = text

    def _show(self) -> None:
        self._last = perf_counter()
        work, steps = self._work, self._work.steps
        running = ", ".join(f"({step})" for step, _ in steps[:_STEPS]) if len(steps) > 1 else ""
        bundle = _bundle(work.text, work.clock, work.waiting, running, work.asked, self._said, "interrupt cancels")
        if self._handle is None:
            self._handle = self._place(bundle)
        else:
            self._update(self._handle, bundle)


def _bundle(*parts: str) -> dict[str, str]:
    line = " · ".join(printable(part) for part in parts if part)
    return {"text/html": told_html(line), "text/plain": line}


# How a cell ends that did not do what it says: the notebook stops there, with a line in the place of a traceback.


_LONGEST = 1_000


class Stopped(Exception):
    """Ends a cell; the message says why. Where there is more to be seen, it stands above."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows in a traceback's place."""
        said = str(self)
        return [printable(" ".join((said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…").split()))]
