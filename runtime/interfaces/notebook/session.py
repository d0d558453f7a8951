"""The session behind the magics: opened when it is first needed, one for a notebook. It shows through what it is given."""

import asyncio
import signal
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, MutableMapping
from contextlib import suppress
from itertools import zip_longest
from typing import Any, TypeVar

from attrs import evolve

from ....adapters.graph import AdapterError
from ....adapters.llm import LLMError
from ....adapters.state import StoreError
from ....lang.diagnostic import printable
from ...errors import Misused
from ...gasl.surroundings import same_name
from ...workspace import GivenUp, Telling
from ..repl.languages import like
from ..repl.outcome import Outcome, misused
from ..repl.reader import Piece
from ..repl.repl_workspace import Desk, DeskAsked, Moment, Settings, open_desk
from ..repl.session import Session, Waiting, meant
from ..signals import hearing
from . import cells
from .cells import Cell, checked, mentioned, not_here, outside, place_of, stale
from .display import bundle_of, fault_of, safe_text, told_html
from .event_loop import Abandoned, Cancelled, Loop, Stopped, Working
from .variables import NotShared, Shared, as_json

__all__ = ["Bundle", "Room"]


# A session's desk and the loop that it lives in, from its opening to its end. However it ends, its folder's lock is let go.

R = TypeVar("R")

_LOOK = 0.05
"""Seconds between two looks at whether another one is over."""


class Sitting:
    """One session. ``open`` it first; ``end`` it whatever came of that."""

    def __init__(self, asked: DeskAsked) -> None:
        self._asked = asked
        self._loop = Loop()
        self._made: asyncio.Future[Desk] | None = None
        self._desk: Desk | None = None

    @property
    def desk(self) -> Desk:
        """The session's desk."""
        assert self._desk is not None  # noqa: S101 - it was opened
        return self._desk

    @property
    def is_over(self) -> bool:
        """Whether all of it is closed."""
        return self._loop.is_over

    def has_state_of(self, asked: DeskAsked) -> bool:
        """Say whether it keeps its state where ``asked`` wants to."""
        mine, other = self._asked.ground.state, asked.ground.state
        return isinstance(mine, str) and isinstance(other, str) and same_name(mine, other)

    def open(self, working: Working, after: "list[Sitting]") -> list[str]:
        """Open the desk, once those ``after`` which it comes are over; return what a person should know.

        Raises ``Cancelled``, ``Abandoned``, ``AdapterError``, ``LLMError``, ``StoreError`` and ``Misused``.
        """
        notes: list[str] = []

        async def opening(cancel: asyncio.Event) -> Desk:
            while not all(each.is_over for each in after):
                if cancel.is_set():
                    raise GivenUp
                await asyncio.sleep(_LOOK)
            telling = Telling(notes.append, given_up=cancel.is_set)
            # A future and no task: the thread can't be stopped, and whoever ends this waits for what it makes.
            self._made = asyncio.get_running_loop().run_in_executor(None, open_desk, self._asked, telling)
            made = await asyncio.shield(self._made)
            if cancel.is_set():
                raise GivenUp
            return made

        try:
            self._desk = self.wait(opening, working)
        except GivenUp:
            raise Cancelled from None
        return notes

    def wait(self, begin: Callable[[asyncio.Event], Coroutine[Any, Any, R]], working: Working) -> R:
        """Run what ``begin`` makes, and show how it goes. Raises ``Cancelled`` and ``Abandoned``, as ``Loop.run`` does."""
        events = None if self._desk is None else self._desk.events
        if events is not None:
            events.subscribe(working)
        try:
            return self._loop.run(begin, working.tick, working.note)
        finally:
            if events is not None:
                events.unsubscribe(working)
            working.stop()

    def end(self, *, wait: bool = True) -> None:
        """Cancel what runs and close what was opened; as soon as that is possible, where there is something that hangs.

        Without ``wait`` that goes on beside whoever asks.
        """
        self._loop.leave(self._closed)
        if wait:
            self._loop.join()

    async def _closed(self) -> None:
        if self._made is None:
            return
        with suppress(Exception):  # it was told, or nobody waits for it any more
            desk = await self._made
            await desk.aclose()


T = TypeVar("T")

Bundle = dict[str, str]
_CANCELLED = Outcome("cancelled")


class Room:
    """Runs what cells say.

    ``hidden`` are the names that are the shell's own. ``show`` shows a bundle, ``place`` one that ``update`` can change later.
    """

    def __init__(
        self,
        names: MutableMapping[str, Any],
        hidden: Mapping[str, Any],
        show: Callable[[Bundle], None],
        place: Callable[[Bundle], Any],
        update: Callable[[Any, Bundle], None],
    ) -> None:
        self._names = names
        self._show, self._place, self._update = show, place, update
        self._shared = Shared(names, hidden)
        self._sitting: Sitting | None = None
        self._left: list[Sitting] = []
        """Those that were left before they were over."""

    @property
    def present(self) -> Desk | None:
        """The session's desk; None where no session is open."""
        return None if self._sitting is None else self._sitting.desk

    def desk(self) -> Desk:
        """Return the session's desk; the first one to ask opens one without a graph. Raises ``Stopped``."""
        return self._sat().desk

    def names(self) -> list[str]:
        """Return the names of the notebook's variables and of the session's values, if there is one."""
        desk = self.present
        return [*self._shared.known(), *(() if desk is None else desk.values.names())]

    def open(self, asked: DeskAsked) -> Desk:
        """Open a session in the place of the one there is. Raises ``Stopped``."""
        # An interrupt is heard while it is waited for, and between two of these steps it comes to nothing.
        with hearing(lambda heard: None, (signal.SIGINT,)):
            asked = self._with_held_graph(asked)
            if self._sitting is not None and self._sitting.has_state_of(asked):
                self.close()  # its folder is locked
            self._left = [each for each in self._left if not each.is_over]
            made, name = Sitting(asked), asked.ground.name or asked.ground.graph or ""
            try:
                notes = made.open(
                    self._working(f"open {name}"), [each for each in self._left if each.has_state_of(asked)]
                )
            except (Cancelled, Abandoned):
                self._leave(made)
                raise self.stopped(_CANCELLED) from None
            except (AdapterError, LLMError, StoreError, Misused) as error:
                made.end()
                raise self.stopped(misused(error.message, error.hint)) from None
            except BaseException:
                self._leave(made)
                raise
            self.close()
            self._sitting = made
        for note in notes:
            self._show(bundle_of(Outcome(notes=(printable(note),)), made.desk.settings))
        return made.desk

    def _with_held_graph(self, asked: DeskAsked) -> DeskAsked:
        """Return what was asked with the notebook's own graph in the place of its name, where it names one."""
        name = asked.ground.graph
        held = self._names.get(name) if isinstance(name, str) else None
        return evolve(asked, ground=evolve(asked.ground, graph=held, name=name)) if _is_graph(held) else asked

    def graphs(self) -> list[str]:
        """Return the names of the notebook's variables that hold graphs."""
        return [name for name, held in list(self._names.items()) if _is_graph(held)]

    def close(self) -> None:
        """End the session; the notebook keeps its variables."""
        sitting, self._sitting = self._sitting, None
        self._shared.forget()
        if sitting is not None:
            sitting.end()
            if not sitting.is_over:
                self._left.append(sitting)

    def _leave(self, sitting: Sitting) -> None:
        """Begin anew without waiting for the end of this one."""
        sitting.end(wait=False)
        self._left.append(sitting)
        if self._sitting is sitting:
            self._sitting = None
            self._shared.forget()

    def run(self, cell: Cell) -> None:
        """Run a cell and show what comes of each of its pieces; nothing is run where something is wrong with it.

        Raises ``Stopped`` at the first piece that is not wholly done. What it and those behind it were to bind has no value then.
        """
        found = self.checked(cell)
        if not found.is_good:
            raise self.stopped(found)
        desk, waiting = self.desk(), Waiting("", stop=True)
        waiting.left = deque(cell.pieces)
        session, before, ran = Session(desk), desk.values.kept().bound, 0
        while (piece := waiting.next()) is not None:
            if piece not in cell.pieces:  # a file has it
                self._take(mentioned(piece), desk)
            left, moment = [piece, *waiting.left], Moment.now(piece.text, desk.state, desk.values, len(desk.ran))
            latest = desk.past.moments[-1:]
            outcome = waiting.settled(self._run(session, piece))
            remarks = self._shared.give(desk.values)
            if not outcome.is_whole and (ran or outcome.status not in ("refused", "misused")):
                names = stale(cell.pieces, left, before, desk.values)
                self._shared.drop(names, desk.values)
                if all(one is other for one, other in zip_longest(latest, desk.past.moments[-1:])):
                    desk.past.add(moment, desk.state, desk.values)  # else the session has kept it
                remarks += _told_of(names)
            ran += 1
            self.told(evolve(outcome, notes=(*outcome.notes, *remarks)), place_of(piece, outcome.names))

    def _take(self, wanted: Iterable[str], desk: Desk) -> None:
        try:
            self._shared.take(wanted, desk.values)
        except NotShared as error:
            raise self.stopped(misused(error.message, error.hint)) from None

    def _run(self, session: Session, piece: Piece) -> Outcome:
        if (refused := not_here(meant(piece, session.desk))) is not None:
            return refused

        async def begin(cancel: asyncio.Event) -> Outcome:
            return await session.run(piece, cancel)

        try:
            return self._waited(begin, piece.text)
        except Cancelled:
            return _CANCELLED

    def checked(self, cell: Cell) -> Outcome:
        """Return what is wrong with a cell. Nothing is run. Raises ``Stopped`` where it was interrupted, or wants what can't be shared."""
        desk = self.desk()
        self._take(outside(cell.pieces), desk)

        async def begin(cancel: asyncio.Event) -> Outcome:
            return await checked(cell, desk)

        return self._or_stopped(begin, "check")

    def beside(self, work: Callable[[], T], text: str) -> T:
        """Do what takes a while beside the session's loop. Raises ``Stopped`` where it was interrupted."""

        async def begin(cancel: asyncio.Event) -> T:
            return await asyncio.to_thread(work)

        return self._or_stopped(begin, text)

    def value(self, name: str) -> Any:
        """Return a copy of the session's value of this name. Raises ``Stopped`` where there is none."""
        values = self.desk().values
        bound = values.context.value(name)
        if bound is None:
            raise self.stopped(misused(f"there is no value {name}", like(name, list(values.names()))))
        return as_json(bound.value)

    def give_input(self, name: str) -> None:
        """Make a Python variable what ``{(input)}`` stands for. Raises ``Stopped``."""
        if name not in self._names:
            raise self.stopped(misused(f"the notebook has no variable {name}", like(name, self._shared.known())))
        try:
            self.desk().input = self._shared.copied(name)
        except NotShared as error:
            raise self.stopped(misused(error.message, error.hint)) from None

    def told(self, outcome: Outcome, place: str = "") -> None:
        """Show an outcome. Raises ``Stopped`` where it is not what was asked for; ``place`` is where that was asked."""
        if not outcome.is_whole:
            raise self.stopped(outcome, place)
        settings = self.desk().settings
        if bundle := bundle_of(outcome, settings):
            self._show(bundle)

    def picture(self, html: str, text: str, caption: str = "") -> None:
        """Show HTML of our own making, with what it says as a text, and what is to be read under it."""
        html = f"{html}\n{told_html(caption)}" if caption else html
        self._show({"text/html": html, "text/plain": safe_text(text)})

    def stopped(self, outcome: Outcome, place: str = "") -> Stopped:
        """Show why a cell ends, and return what ends it."""
        sitting = self._sitting
        if bundle := bundle_of(outcome, Settings() if sitting is None else sitting.desk.settings):
            self._show(bundle)
        return Stopped(fault_of(outcome, place))

    def _or_stopped(self, begin: Callable[[asyncio.Event], Coroutine[Any, Any, T]], text: str) -> T:
        try:
            return self._waited(begin, text)
        except Cancelled:
            raise self.stopped(_CANCELLED) from None

    def _waited(self, begin: Callable[[asyncio.Event], Coroutine[Any, Any, T]], text: str) -> T:
        """Wait for what ``begin`` makes. Raises ``Cancelled``, and ``Stopped`` where the session was left behind."""
        sitting = self._sat()
        try:
            return sitting.wait(begin, self._working(text))
        except Abandoned:
            self._leave(sitting)  # what hangs keeps its thread; the notebook begins anew
            raise Stopped("the session did not end, and is left behind; %kw open begins another one") from None

    def _sat(self) -> Sitting:
        if self._sitting is None:
            self.open(cells.opened(""))
        assert self._sitting is not None  # noqa: S101 - it was opened
        return self._sitting

    def _working(self, text: str) -> Working:
        return Working(text, self._place, self._update)


def _is_graph(held: Any) -> bool:
    """Say whether a variable holds a networkx graph. A class of them is none."""
    return hasattr(held, "adj") and hasattr(held, "is_directed") and not isinstance(held, type)


def _told_of(names: list[str]) -> list[str]:
    """Say which values a cell took away that did not come to its end."""
    if not names:
        return []
    was = "has no value now: it was" if len(names) == 1 else "have no values now: they were"
    return [f"{', '.join(names)} {was} of an earlier run"]
