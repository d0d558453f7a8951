"""One turn: a text is run, Ctrl-C is heard meanwhile, progress is shown, outcomes are written."""

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import evolve

from ....runs.debug_log import DebugLog, level
from ...interrupting import Heard, interrupting
from ...repl.outcome import NOTHING, Outcome
from ...repl.reading import Piece
from ...repl.session import Session
from ...repl.waiting import Waiting
from ..execution.interrupt import leaving
from ..shared.output import is_terminal, say
from .screen import Screen

if TYPE_CHECKING:
    from .progress import Working

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
    from .progress import Working  # brings rich, which a pipe does not need

    return Working(piece.text)
