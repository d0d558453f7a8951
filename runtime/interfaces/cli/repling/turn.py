"""One turn: a text is run, Ctrl-C is heard meanwhile, progress is shown, outcomes are written."""

import asyncio
import sys

from attrs import evolve

from ....debuglog import DebugLog, level
from ...repl.outcome import NOTHING, Outcome
from ...repl.reading import Piece
from ...repl.session import Session
from ...repl.waiting import Waiting
from ..shared.output import is_terminal, say
from .interrupting import interrupting
from .screen import Screen

__all__ = ["Turn"]


class Turn:
    """Takes texts for a session and writes what comes of them."""

    def __init__(self, session: Session, screen: Screen) -> None:
        self._session = session
        self._screen = screen
        self.left: tuple[Piece, ...] = ()
        """The pieces of the latest text that were not run, because one before them failed."""
        if level():
            session.desk.events.subscribe(DebugLog(level()))

    async def take(self, text: str, name: str, *, stop: bool, first_line: int = 1) -> list[Outcome]:
        """Run ``text`` and return the outcomes of its pieces, without values. ``stop``: not beyond one that fails."""
        waiting, outcomes = Waiting(text, name, stop, first_line), list[Outcome]()
        while (piece := waiting.next()) is not None:
            outcome = waiting.settled(await self._run(piece))
            await self._screen.write(outcome)
            outcomes.append(evolve(outcome, value=NOTHING))  # it has been seen, and may be large
        self.left = tuple(waiting.left)
        return outcomes

    async def _run(self, piece: Piece) -> Outcome:
        """Run a piece. A second Ctrl-C cancels this task: then the piece is over, and the session goes on."""
        cancel = asyncio.Event()
        working = _display(piece)
        note = say if working is None else working.note

        def leave() -> None:
            if working is not None:
                working.stop()

        with interrupting(cancel, note, leave) as heard:
            try:
                if working is not None:
                    self._session.desk.events.subscribe(working)
                    working.start()
                outcome = await self._session.run(piece, cancel)
                return evolve(outcome, ends=True) if heard.ends else outcome
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or not task.uncancel():
                    return Outcome("cancelled", ends=heard.ends)
                raise
            finally:
                if working is not None:
                    working.stop()
                    self._session.desk.events.unsubscribe(working)


def _display(piece: Piece):  # type: ignore[no-untyped-def]
    """Return a display where a person looks on; the debug log is one of its own."""
    if level() or piece.language == "dot" or not is_terminal(sys.stderr):
        return None
    from .progress import Working  # brings rich, which a pipe does not need

    return Working(piece.text)
