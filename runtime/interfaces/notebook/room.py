"""The session behind the magics: opened when it is first needed, one for a notebook. It shows through what it is given."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, MutableMapping
from contextlib import suppress
from typing import Any, TypeVar

from attrs import evolve

from ....adapters.graph import AdapterError
from ....adapters.llm import LLMError
from ....adapters.state import StoreError
from ....lang.diagnostic import has_errors, printable
from ....lang.parse.gasl import parse_gasl
from ...wiring import open_graph
from ..cli.repling.asked import ReplAsked
from ..cli.repling.opening import open_desk
from ..cli.shared.exit import Misused
from ..repl import commands
from ..repl.checking import check
from ..repl.desk import Desk, Settings
from ..repl.dots.looking import like
from ..repl.outcome import Outcome, misused
from ..repl.reading import Language, Piece, pieces
from ..repl.session import Session
from ..repl.waiting import Waiting
from . import asking
from .looping import Abandoned, Loop
from .progress import Working
from .sharing import NotShared, Shared, as_json, mentioned
from .showing import bundle_of, fault_of
from .stopping import Stopped

__all__ = ["Room", "read"]

T = TypeVar("T")

Bundle = dict[str, str]


def read(text: str, language: Language | None, name: str, first_line: int = 1) -> list[Piece]:
    """Return the pieces of a cell. ``language`` is the magic's; None where a cell may have all of them."""
    if language == "lwt":
        return [Piece(text, "lwt", first_line, name)]
    found = [piece for piece in pieces(text, name, first_line) if piece.language != "remark"]
    if language == "gasl":  # what is no step is meant as a command, however wrong
        return [evolve(piece, language="gasl") if piece.language == "expr" else piece for piece in found]
    return found


class Room:
    """Runs what cells say. ``show`` shows a bundle, ``place`` one that ``update`` can change later."""

    def __init__(
        self,
        names: MutableMapping[str, Any],
        show: Callable[[Bundle], None],
        place: Callable[[Bundle], Any],
        update: Callable[[Any, Bundle], None],
    ) -> None:
        self._names = names
        self._show, self._place, self._update = show, place, update
        self._shared = Shared(names)
        self._loop: Loop | None = None
        self._desk: Desk | None = None

    @property
    def desk(self) -> Desk:
        """The session's desk; the first one to ask opens one without a graph."""
        return self._desk if self._desk is not None else self.open(asking.opened(""))

    def open(self, asked: ReplAsked) -> Desk:
        """Open a session in the place of the one there is. Raises ``Stopped``."""
        if self._desk is not None and asked.ground.state is not None:
            self.close()  # its folder may be the one that is wanted, and is locked
        held = self._held_graph(asked)
        if held is not None:
            asked = evolve(asked, ground=evolve(asked.ground, graph=None))

        async def opening(cancel: asyncio.Event) -> Desk:
            return await asyncio.to_thread(open_desk, asked, notes.append, lambda source: None)

        notes: list[str] = []
        try:
            made = self._waited(opening, f"open {asked.ground.graph or ''}")
            if made is not None and held is not None:
                made.graph, made.adapter = held[0], open_graph(held[1]).adapter
        except (AdapterError, LLMError, StoreError, Misused) as error:
            raise self.stopped(misused(error.message, error.hint)) from None
        if made is None:
            raise self.stopped(Outcome("cancelled"))
        before, self._desk = self._desk, made
        if before is not None:
            self._waited(lambda cancel: before.aclose(), "close")
        self._shared.forget()
        for note in notes:
            self._show(bundle_of(Outcome(notes=(printable(note),)), made.settings))
        return made

    def _held_graph(self, asked: ReplAsked) -> tuple[str, Any] | None:
        """Return the notebook's own graph that ``open`` names, with its name; None where it names something else."""
        name = asked.ground.graph
        held = self._names.get(name) if name is not None else None
        return (name, held) if name is not None and hasattr(held, "adj") and hasattr(held, "is_directed") else None

    def close(self) -> None:
        """End the session; the notebook keeps its variables."""
        desk, loop = self._desk, self._loop
        self._desk = self._loop = None
        self._shared.forget()
        if loop is not None:
            if desk is not None:
                with suppress(Abandoned):
                    loop.run(lambda cancel: desk.aclose())
            loop.close()

    def run(self, found: list[Piece]) -> None:
        """Run pieces and show what comes of each. Raises ``Stopped`` at the first that is not done."""
        desk = self.desk
        session = Session(desk)
        waiting = Waiting("", stop=True)
        waiting.left = deque(found)
        while (piece := waiting.next()) is not None:
            remarks = self._shared.take(mentioned(piece), desk.values)
            outcome = waiting.settled(self._run(session, piece))
            remarks = [*self._shared.give(desk.values), *(remarks if not outcome.is_good else [])]
            outcome = evolve(outcome, notes=(*outcome.notes, *remarks))
            self.told(outcome)
            if outcome.ends:
                self.close()

    def _run(self, session: Session, piece: Piece) -> Outcome:
        if piece.language == "dot" and piece.text.split(None, 1)[0] == ".output":
            return misused(
                "a notebook has results in its cells, not in .output", "NAME = %kw value NAME gives a value to Python"
            )

        async def begin(cancel: asyncio.Event) -> Outcome:
            return await session.run(piece, cancel)

        return self._waited(begin, piece.text) or Outcome("cancelled")

    def checked(self, piece: Piece) -> Outcome:
        """Return what is wrong with a piece, of GASL a whole program. Nothing is run."""
        desk = self.desk
        self._shared.take(mentioned(piece), desk.values)

        async def begin(cancel: asyncio.Event) -> Outcome:
            await desk.schema()
            if piece.language != "gasl" or desk.executor is None:
                return check(piece, desk)
            program = parse_gasl(piece.source)
            found = list(program.diagnostics)
            if not has_errors(found):
                found = desk.executor.checks(program)
            if has_errors(found):
                return commands.refused(found, program.source)
            return Outcome(diagnostics=commands.warnings(found), source=program.source)

        return self._waited(begin, "check") or Outcome("cancelled")

    def beside(self, work: Callable[[], T], text: str) -> T:
        """Do what takes a while beside the session's loop. Raises ``Stopped`` where it was interrupted."""

        async def begin(cancel: asyncio.Event) -> T:
            return await asyncio.to_thread(work)

        made = self._waited(begin, text)
        if made is None:
            raise self.stopped(Outcome("cancelled"))
        return made

    def value(self, name: str) -> Any:
        """Return a copy of the session's value of this name. Raises ``Stopped`` where there is none."""
        values = self.desk.values
        bound = values.context.value(name)
        if bound is None:
            raise self.stopped(misused(f"there is no value {name}", like(name, list(values.names()))))
        return as_json(bound.value)

    def give_input(self, name: str) -> None:
        """Make a Python variable what ``{(input)}`` stands for. Raises ``Stopped``."""
        if name not in self._names:
            known = [each for each in self._names if not each.startswith("_")]
            raise self.stopped(misused(f"the notebook has no variable {name}", like(name, known)))
        try:
            self.desk.input = as_json(self._names[name])
        except NotShared as error:
            raise self.stopped(misused(f"{name} can't be the input: it is {error}")) from None

    def told(self, outcome: Outcome) -> None:
        """Show an outcome. Raises ``Stopped`` where it is not what was asked for."""
        if not outcome.is_good:
            raise self.stopped(outcome)
        settings = self.desk.settings
        if bundle := bundle_of(outcome, settings):
            self._show(bundle)

    def picture(self, html: str, text: str) -> None:
        """Show HTML of our own making, with what it says as a text."""
        self._show({"text/html": html, "text/plain": text})

    def stopped(self, outcome: Outcome) -> Stopped:
        """Show why a cell ends, and return what ends it."""
        desk = self._desk
        if bundle := bundle_of(outcome, Settings() if desk is None else desk.settings):
            self._show(bundle)
        return Stopped(fault_of(outcome))

    def _waited(self, begin: Callable[[asyncio.Event], Coroutine[Any, Any, T]], text: str) -> T | None:
        if self._loop is None:
            self._loop = Loop()
        working = Working(text, self._place, self._update)
        events = None if self._desk is None else self._desk.events
        if events is not None:
            events.subscribe(working)
        try:
            return self._loop.run(begin, working.tick, working.note)
        except Abandoned:
            self._desk = self._loop = None  # what hangs keeps its thread; the notebook begins anew
            self._shared.forget()
            raise Stopped("the session did not end, and is left behind; %kw open begins another one") from None
        finally:
            if events is not None:
                events.unsubscribe(working)
            working.stop()
