"""One turn: a text is run, Ctrl-C is heard meanwhile, progress is shown, outcomes are written."""

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import evolve
from rich.console import Group
from rich.table import Table
from rich.text import Text

from ...events import Event
from ...runs.debug_log import DebugLog, level
from ..figures import Work
from ..repl.outcome import NOTHING, Outcome
from ..repl.reader import Piece
from ..repl.session import Session, Waiting
from ..signals import Heard, interrupting
from .outcome_screen import Screen
from .shared.interrupt import leaving
from .shared.live_view import Foot, one_line
from .shared.output import is_terminal, say

__all__ = ["Turn"]


class Turn:
    """Takes texts for a session and writes what comes of them."""

    def __init__(self, session: Session, screen: Screen) -> None:
        self._session = session
        self._screen = screen
        self.left: tuple[Piece, ...] = ()
        """The pieces of the latest text that were not run, because one before them failed."""
        self._task: asyncio.Task[Any] | None = None
        self._working: Working | None = None
        if level():
            session.desk.events.subscribe(DebugLog(level()))

    async def take(self, text: str, name: str, *, stop: bool, first_line: int = 1) -> list[Outcome]:
        """Run ``text`` and return the outcomes of its pieces, without values. ``stop``: not beyond one that fails.

        Ctrl-C is heard from the first piece to the last line that is written. The first one ends what is under way in order, and all of
        it; the second does not wait for that; the session goes on. The third leaves.
        """
        waiting, outcomes, cancel = Waiting(text, name, stop, first_line), list[Outcome](), asyncio.Event()
        with interrupting(partial(self._in_order, cancel), self._at_once, last=leaving(self._hide)) as heard:
            while not heard.times and (piece := waiting.next()) is not None:
                outcome = waiting.settled(await self._run(piece, cancel))
                if not await self._screen.write(outcome, _stopping(heard)) and outcome.is_good:
                    outcome = evolve(outcome, status="failed")
                outcomes.append(evolve(outcome, value=NOTHING))  # it has been seen, and may be large
            # A prompt behind this must not hear what was meant for it: what came until here is taken in here.
            if heard.times and outcomes:
                outcomes[-1] = evolve(outcomes[-1], status="cancelled", ends=outcomes[-1].ends or heard.ends)
        self.left = tuple(waiting.left)
        return outcomes

    async def _run(self, piece: Piece, cancel: asyncio.Event) -> Outcome:
        """Run a piece, with what is seen of it meanwhile."""
        working = _display(piece)
        self._task, self._working = asyncio.current_task(), working
        try:
            if working is not None:
                self._session.desk.events.subscribe(working)
                working.start()
            return await self._session.run(piece, cancel)
        except asyncio.CancelledError:
            if self._task is not None and not self._task.uncancel():
                return Outcome("cancelled")
            raise
        finally:
            self._hide()
            self._task = self._working = None
            if working is not None:
                self._session.desk.events.unsubscribe(working)

    def _in_order(self, cancel: asyncio.Event) -> None:
        cancel.set()
        self._note("cancelling; Ctrl-C again does not wait for it")

    def _at_once(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._note("Ctrl-C once more leaves")

    def _note(self, text: str) -> None:
        """Say it while a piece runs; where one is merely written, it is over at once."""
        if self._working is not None:
            self._working.note(text)
        elif self._task is not None:
            say(text)

    def _hide(self) -> None:
        if self._working is not None:
            self._working.stop()


def _stopping(heard: Heard) -> Callable[[], bool]:
    """Return what says whether a Ctrl-C came since: one that ended the piece does not end what is said of it."""
    before = heard.times
    return lambda: heard.times > before


def _display(piece: Piece) -> "Working | None":
    """Return a display where a person looks on; the debug log is one of its own."""
    if level() or piece.language == "dot" or not is_terminal(sys.stderr):
        return None
    # brings rich, which a pipe does not need

    return Working(piece.text)


# What is seen while a command runs on a terminal: what it is, how long it takes, what models were asked.


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
