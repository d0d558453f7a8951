"""The session behind the magics: opened on first use, one per notebook. It displays through the given functions."""

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
from ...api.workspace import OpeningCallbacks, OpeningCancelled
from ...errors import Misused
from ...gasl.surroundings import same_name
from ..repl.languages import like
from ..repl.outcome import Outcome, misused
from ..repl.reader import Piece
from ..repl.repl_workspace import Desk, DeskAsked, Moment, Settings, open_desk
from ..repl.session import Session, Waiting, meant
from ..signals import count_signals
from . import cells
from .cells import Cell, checked, mentioned, not_here, outside, place_of, stale
from .display import bundle_of, fault_of, safe_text, told_html
from .event_loop import Abandoned, Cancelled, Loop, Stopped, Working
from .variables import NotShared, Shared, as_json

# A session's workspace and its event loop, from opening to end. However it ends, the lock of its folder is released.

R = TypeVar("R")

_LOOK = 0.05
"""Seconds between two checks of whether another session has ended."""


class Sitting:
    """One session. Call ``open`` first, and ``end`` in any case."""

    def __init__(self, asked: DeskAsked) -> None:
        self._asked = asked
        self._loop = Loop()
        self._made: asyncio.Future[Desk] | None = None
        self._desk: Desk | None = None

    @property
    def desk(self) -> Desk:
        """The session's workspace."""
        assert self._desk is not None  # noqa: S101 - it was opened
        return self._desk

    @property
    def is_over(self) -> bool:
        """Whether everything is closed."""
        return self._loop.is_over

    def has_state_of(self, asked: DeskAsked) -> bool:
        """Return whether its state folder is the one that ``asked`` names."""
        mine, other = self._asked.ground.state, asked.ground.state
        return isinstance(mine, str) and isinstance(other, str) and same_name(mine, other)

    def open(self, working: Working, after: "list[Sitting]") -> list[str]:
        """Open the workspace after the sessions in ``after`` have ended; return messages for the user.

        Raises ``Cancelled``, ``Abandoned``, ``AdapterError``, ``LLMError``, ``StoreError`` and ``Misused``.
        """
        notes: list[str] = []

        async def opening(cancel: asyncio.Event) -> Desk:
            while not all(each.is_over for each in after):
                if cancel.is_set():
                    raise OpeningCancelled
                await asyncio.sleep(_LOOK)
            telling = OpeningCallbacks(notes.append, cancelled=cancel.is_set)
            # A future instead of a task: the thread can't be stopped, and ``end`` waits for its result.
            self._made = asyncio.get_running_loop().run_in_executor(None, open_desk, self._asked, telling)
            made = await asyncio.shield(self._made)
            if cancel.is_set():
                raise OpeningCancelled
            return made

        try:
            self._desk = self.wait(opening, working)
        except OpeningCancelled:
            raise Cancelled from None
        return notes

    def wait(self, begin: Callable[[asyncio.Event], Coroutine[Any, Any, R]], working: Working) -> R:
        """Run the coroutine of ``begin``, and show its progress. Raises ``Cancelled`` and ``Abandoned``, as ``Loop.run`` does."""
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
        """Cancel running work and close everything; hanging work delays this.

        With ``wait`` False it continues in the background.
        """
        self._loop.leave(self._closed)
        if wait:
            self._loop.join()

    async def _closed(self) -> None:
        if self._made is None:
            return
        with suppress(Exception):  # already reported, or no longer waited for
            desk = await self._made
            await desk.aclose()


T = TypeVar("T")

Bundle = dict[str, str]
_CANCELLED = Outcome("cancelled")


class Room:
    """Runs cells in the session of a notebook.

    ``hidden`` are the shell's own names. ``show`` displays a bundle, ``place`` one that ``update`` can change later.
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
        """Sessions that were left before they ended."""

    @property
    def present(self) -> Desk | None:
        """The session's workspace; None if no session is open."""
        return None if self._sitting is None else self._sitting.desk

    def desk(self) -> Desk:
        """Return the session's workspace; the first call opens one without a graph. Raises ``Stopped``."""
        return self._sat().desk

    def names(self) -> list[str]:
        """Return the names of the notebook's variables and of the session's values, if there is one."""
        desk = self.present
        return [*self._shared.known(), *(() if desk is None else desk.values.names())]

    def open(self, asked: DeskAsked) -> Desk:
        """Open a new session in place of the present one. Raises ``Stopped``."""
        # An interrupt takes effect while waiting; between two of these steps it has no effect.
        with count_signals(numbers=(signal.SIGINT,)):
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
        """Return the options with the notebook's own graph in place of its name, if they name one."""
        name = asked.ground.graph
        held = self._names.get(name) if isinstance(name, str) else None
        return evolve(asked, ground=evolve(asked.ground, graph=held, name=name)) if _is_graph(held) else asked

    def graphs(self) -> list[str]:
        """Return the notebook variables that hold graphs."""
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
        """Abandon a session without waiting for its end."""
        sitting.end(wait=False)
        self._left.append(sitting)
        if self._sitting is sitting:
            self._sitting = None
            self._shared.forget()

    def run(self, cell: Cell) -> None:
        """Run a cell and display the outcome of each piece; nothing is run if the cell has errors.

        Raises ``Stopped`` at the first piece that is not fully done. The names that it and later pieces should have bound then
        have no value.
        """
        found = self.checked(cell)
        if not found.is_good:
            raise self.stopped(found)
        desk, waiting = self.desk(), Waiting("", stop=True)
        waiting.left = deque(cell.pieces)
        session, before, ran = Session(desk), desk.values.kept().bound, 0
        while (piece := waiting.next()) is not None:
            if piece not in cell.pieces:  # it comes from a file
                self._take(mentioned(piece), desk)
            left, moment = [piece, *waiting.left], Moment.now(piece.text, desk.state, desk.values, len(desk.ran))
            latest = desk.past.moments[-1:]
            outcome = waiting.settled(self._run(session, piece))
            remarks = self._shared.give(desk.values)
            if not outcome.is_whole and (ran or outcome.status not in ("refused", "misused")):
                names = stale(cell.pieces, left, before, desk.values)
                self._shared.drop(names, desk.values)
                if all(one is other for one, other in zip_longest(latest, desk.past.moments[-1:])):
                    desk.past.add(moment, desk.state, desk.values)  # otherwise the session has recorded it
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
        """Return the errors of a cell. Nothing is run. Raises ``Stopped`` if interrupted, or if a variable can't be shared."""
        desk = self.desk()
        self._take(outside(cell.pieces), desk)

        async def begin(cancel: asyncio.Event) -> Outcome:
            return await checked(cell, desk)

        return self._or_stopped(begin, "check")

    def beside(self, work: Callable[[], T], text: str) -> T:
        """Run slow work in the session's thread. Raises ``Stopped`` if interrupted."""

        async def begin(cancel: asyncio.Event) -> T:
            return await asyncio.to_thread(work)

        return self._or_stopped(begin, text)

    def value(self, name: str) -> Any:
        """Return a copy of the session's value of this name. Raises ``Stopped`` if it does not exist."""
        values = self.desk().values
        bound = values.context.value(name)
        if bound is None:
            raise self.stopped(misused(f"there is no value {name}", like(name, list(values.names()))))
        return as_json(bound.value)

    def give_input(self, name: str) -> None:
        """Make a Python variable the value of ``{(input)}``. Raises ``Stopped``."""
        if name not in self._names:
            raise self.stopped(misused(f"the notebook has no variable {name}", like(name, self._shared.known())))
        try:
            self.desk().input = self._shared.copied(name)
        except NotShared as error:
            raise self.stopped(misused(error.message, error.hint)) from None

    def told(self, outcome: Outcome, place: str = "") -> None:
        """Display an outcome. Raises ``Stopped`` if it failed; ``place`` is the position of the piece."""
        if not outcome.is_whole:
            raise self.stopped(outcome, place)
        settings = self.desk().settings
        if bundle := bundle_of(outcome, settings):
            self._show(bundle)

    def picture(self, html: str, text: str, caption: str = "") -> None:
        """Display generated HTML, with its text version, and a caption below it."""
        html = f"{html}\n{told_html(caption)}" if caption else html
        self._show({"text/html": html, "text/plain": safe_text(text)})

    def stopped(self, outcome: Outcome, place: str = "") -> Stopped:
        """Display why a cell ends, and return the exception that ends it."""
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
        """Wait for the coroutine of ``begin``. Raises ``Cancelled``, and ``Stopped`` if the session was abandoned."""
        sitting = self._sat()
        try:
            return sitting.wait(begin, self._working(text))
        except Abandoned:
            self._leave(sitting)  # the hanging work keeps its thread; the notebook starts a new session
            raise Stopped("the session did not end, and is left behind; %kw open begins another one") from None

    def _sat(self) -> Sitting:
        if self._sitting is None:
            self.open(cells.opened(""))
        assert self._sitting is not None  # noqa: S101 - it was opened
        return self._sitting

    def _working(self, text: str) -> Working:
        return Working(text, self._place, self._update)


def _is_graph(held: Any) -> bool:
    """Return whether a variable holds a networkx graph instance, not a class."""
    return hasattr(held, "adj") and hasattr(held, "is_directed") and not isinstance(held, type)


def _told_of(names: list[str]) -> list[str]:
    """Return a message on the values that an incomplete cell removed."""
    if not names:
        return []
    was = "has no value now: it was" if len(names) == 1 else "have no values now: they were"
    return [f"{', '.join(names)} {was} of an earlier run"]
