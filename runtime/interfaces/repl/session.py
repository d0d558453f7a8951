"""The session: runs a piece of text and stores its results. It has no screen, and one event loop.

A GASL command goes to the executor and is one commit of the state, as with ``knotwork gasl``; steps run as a script that may
refer to all present values; an expression is evaluated over them. A piece is checked before any of it runs.
"""

import asyncio
import sys
import traceback
from collections import deque
from time import perf_counter

from attrs import define, evolve, field, frozen

from ....adapters.graph import AdapterError
from ....adapters.llm import LLMError
from ....adapters.state import StateError, StoreError
from ...events import BudgetReached, Event, Warned
from ...runs.event_log import level
from . import runners
from .dot_commands import run_dot
from .outcome import NOTHING, Outcome
from .reader import Piece, is_whole, pieces
from .repl_workspace import Desk, Entry, Moment
from .runners import meant

__all__ = ["Session", "Waiting", "meant"]


@frozen
class Session:
    """Runs pieces in a workspace, one at a time."""

    desk: Desk

    async def run(self, piece: Piece, cancel: asyncio.Event | None = None) -> Outcome:
        """Run a piece and return its outcome. Errors in the piece, or during its run, are not raised.

        Setting ``cancel`` ends the piece: its outcome is cancelled, earlier commits remain, and the session continues.
        """
        desk, notes, began, limit = self.desk, list[str](), perf_counter(), ""

        def warned(event: Event) -> None:
            nonlocal limit
            if isinstance(event, BudgetReached):
                limit = event.limit or "calls"
            if isinstance(event, Warned):
                is_step = event.step and piece.language == "lwt"
                notes.append(f"({event.step}): {event.message}" if is_step else event.message)

        desk.events.subscribe(warned)
        try:
            outcome = await self._kept(meant(piece, desk), cancel or asyncio.Event())
        except (AdapterError, LLMError, StateError, StoreError) as error:
            outcome = Outcome("failed", message=error.message, hint=error.hint)
        except Exception as error:  # the last handler: an internal error of one command must not end the session
            outcome = _broken(error)
        finally:
            desk.events.unsubscribe(warned)
        known = {*outcome.notes, *(d.message for d in outcome.diagnostics)}
        new = [note for note in dict.fromkeys(notes) if note not in known]
        new += _eaten(piece, outcome)
        if limit and outcome.message and not outcome.hint:
            how = f".budget {limit}={'USD' if limit == 'cost' else 'N'} sets another limit, {limit}=none none"
            outcome = evolve(outcome, hint=f".budget shows what is spent; {how}")
        outcome = evolve(outcome, seconds=perf_counter() - began, notes=(*outcome.notes, *new))
        if outcome.diagnostics:
            desk.last_fault = outcome
        elif piece.language != "dot":
            desk.last_fault = None
        return outcome

    async def _kept(self, piece: Piece, cancel: asyncio.Event) -> Outcome:
        """Run a piece and record the data for ``.undo`` and ``.save``."""
        desk = self.desk
        if piece.language == "dot":
            return await run_dot(piece, desk, cancel)
        before = Moment.now(piece.text, desk.state, desk.values, len(desk.ran), desk.last_value)
        match piece.language:
            case "gasl":
                outcome = await runners.run_command(piece, desk, cancel)
            case "lwt":
                outcome = await runners.run_steps(piece, desk, cancel)
            case "expr":
                outcome = await runners.run_expression(piece, desk)
            case _:
                return Outcome()
        desk.past.add(before, desk.state, desk.values)
        if outcome.is_good:
            desk.ran.append(Entry(piece, outcome.names))
            if outcome.value is not NOTHING:
                desk.last_value = outcome.value
        return outcome


def _broken(error: Exception) -> Outcome:
    """Return the outcome of an internal error; at debug level 3 the traceback is printed."""
    if level() >= 3:
        traceback.print_exception(error, file=sys.stderr)
    said = " ".join(str(error).split())
    hint = "" if level() >= 3 else "set KNOTWORK_DEBUG=3 for the traceback"
    return Outcome("failed", message=f"internal error: {type(error).__name__}: {said}", hint=hint)


def _eaten(piece: Piece, outcome: Outcome) -> list[str]:
    """Return how many lines were absorbed by an unclosed bracket or quote."""
    first = next((d.span for d in outcome.diagnostics if d.severity == "error" and d.span is not None), None)
    if outcome.status != "refused" or first is None or is_whole(piece.text):
        return []
    behind = sum(1 for line in piece.text[first.start :].split("\n")[1:] if line.strip())
    taken = (
        "line behind it was taken as a part of it, and is"
        if behind == 1
        else "lines behind it were taken as a part of it, and are"
    )
    return [f"{behind:,} {taken} not run"] if behind else []


# The queue of pieces of a text; a file read by one of them comes before the rest.

_MOST = 100
"""Maximum number of files that one text may read, in case a file reads itself."""


@define
class Waiting:
    """The queue of pieces. ``stop``: nothing is run after a piece that fails."""

    text: str
    name: str = "<input>"
    stop: bool = True
    first_line: int = 1
    left: deque[Piece] = field(init=False)
    is_over: bool = field(default=False, init=False)
    _read: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.left = deque(pieces(self.text, self.name, self.first_line))

    def next(self) -> Piece | None:
        """Return the next piece; None if all are done, or an outcome ended the queue."""
        return self.left.popleft() if self.left and not self.is_over else None

    def settled(self, outcome: Outcome) -> Outcome:
        """Process the outcome of the piece, and return it."""
        read = outcome.reads
        if read is not None:
            self._read += 1
            if self._read > _MOST:
                outcome = evolve(
                    outcome, status="misused", reads=None, message=f"more than {_MOST} files are read at once"
                )
            else:
                self.left.extendleft(reversed(list(pieces(read.text, read.name))))
        self.is_over = outcome.ends or outcome.status == "cancelled" or (self.stop and not outcome.is_good)
        return outcome
