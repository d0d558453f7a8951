"""The session: takes a piece of text, runs it, keeps what came of it. It has no screen, and one event loop.

A GASL command goes to the executor and is one commit of the state, as with ``knotwork gasl``; steps run as a script that may refer
to all values there are; an expression is evaluated over them. What is wrong with a piece is found before anything of it runs.
"""

import asyncio
from collections.abc import Callable
from time import perf_counter

from attrs import evolve, frozen

from ....adapters.graph import AdapterError
from ....adapters.llm import LLMError
from ....adapters.state import StateError, StoreError
from ...events import Event, Warned
from . import commands, expressions, steps
from .desk import Desk, Entry
from .dots import run_dot
from .outcome import NOTHING, Outcome
from .past import Moment
from .reading import Piece
from .waiting import Waiting

__all__ = ["Session", "Told"]

Told = Callable[[Piece, Outcome], None]

_PLAIN = {
    **dict.fromkeys(("help", "help()", "?", "\\?", "\\h"), ".help"),
    **dict.fromkeys(("quit", "quit()", "quit;", "exit", "exit()", "exit;", "\\q", ":q"), ".quit"),
}  # fmt: skip
"""What people type who know other prompts."""


@frozen
class Session:
    """Runs pieces on a desk, one at a time."""

    desk: Desk

    async def run(self, piece: Piece, cancel: asyncio.Event | None = None) -> Outcome:
        """Run a piece and return what came of it. Nothing is raised for what it says, nor for what fails on the way.

        Setting ``cancel`` ends it: the outcome is cancelled, what was committed before stays, and the session goes on.
        """
        desk, notes, began = self.desk, list[str](), perf_counter()

        def warned(event: Event) -> None:
            if isinstance(event, Warned):
                is_step = event.step and piece.language == "lwt"
                notes.append(f"({event.step}): {event.message}" if is_step else event.message)

        desk.events.subscribe(warned)
        try:
            outcome = await self._kept(_meant(piece, desk), cancel or asyncio.Event())
        except (AdapterError, LLMError, StateError, StoreError) as error:
            outcome = Outcome("failed", message=error.message, hint=error.hint)
        except Exception as error:  # the last door: one command that breaks does not cost the session
            said = " ".join(str(error).split())
            outcome = Outcome("failed", message=f"internal error: {type(error).__name__}: {said}")
        finally:
            desk.events.unsubscribe(warned)
        known = {*outcome.notes, *(d.message for d in outcome.diagnostics)}
        new = [note for note in dict.fromkeys(notes) if note not in known]
        outcome = evolve(outcome, seconds=perf_counter() - began, notes=(*outcome.notes, *new))
        if outcome.diagnostics:
            desk.last_fault = outcome
        elif piece.language != "dot":
            desk.last_fault = None
        return outcome

    async def run_text(
        self, text: str, told: Told, cancel: asyncio.Event | None = None, *, name: str = "<input>", stop: bool = True
    ) -> list[Outcome]:
        """Run all pieces of a text, ``told`` of each as it ends; return the outcomes. ``stop``: not beyond one that fails.

        What asks to end the session, or is cancelled, ends the text too. A file that is read is run in its place.
        """
        waiting, outcomes = Waiting(text, name, stop), list[Outcome]()
        while (piece := waiting.next()) is not None:
            outcomes.append(waiting.settled(await self.run(piece, cancel)))
            told(piece, outcomes[-1])
        return outcomes

    async def _kept(self, piece: Piece, cancel: asyncio.Event) -> Outcome:
        """Run a piece and keep what ``.undo`` and ``.save`` need."""
        desk = self.desk
        if piece.language == "dot":
            return await run_dot(piece, desk, cancel)
        before = Moment.now(piece.text, desk.state, desk.values, len(desk.ran))
        match piece.language:
            case "gasl":
                outcome = await commands.run(piece, desk, cancel)
            case "lwt":
                outcome = await steps.run(piece, desk, cancel)
            case "expr":
                outcome = await expressions.run(piece, desk)
            case _:
                return Outcome()
        desk.past.add(before, desk.state, desk.values)
        if outcome.is_good:
            desk.ran.append(Entry(piece, outcome.names))
            if outcome.value is not NOTHING:
                desk.last_value = outcome.value
        return outcome


def _meant(piece: Piece, desk: Desk) -> Piece:
    """Return the dot command that a bare word surely means; any other piece as it is."""
    word = piece.text.strip().lower()
    if word in _PLAIN and word not in desk.values.names():
        return evolve(piece, text=_PLAIN[word], language="dot")
    return piece
