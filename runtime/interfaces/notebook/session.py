"""The session behind the magics: opened on first use, one per notebook. It displays through the given functions."""

import asyncio
import signal
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any, TypeVar

from attrs import evolve

from ....lang.diagnostic import printable, suggestion
from ...api.data_flow import location_of, names_read, names_read_first
from ...api.pieces import Piece
from ...api.session import DisplaySettings, PieceQueue, Session
from ...api.session_data import Outcome, misused
from ...api.session_runs import normalize
from ...api.workspace import AdapterError, LLMError, OpeningCallbacks, OpeningCancelled, StoreError, same_name
from ...errors import Misused
from ..repl import SessionOptions, open_repl
from ..signals import count_signals
from .cells import Cell, check_cell, stale_names, unavailable
from .display import bundle_of, caption_html, failure_line, safe_text
from .event_loop import Abandoned, Cancelled, Loop, Progress, Stopped
from .variables import NotShared, SharedVariables, as_json

T = TypeVar("T")

_POLL = 0.05
"""Seconds between two checks of whether another session has ended."""


class SessionThread:
    """One session and its event loop, from opening to end. Call ``open`` first, and ``end`` in any case.

    However it ends, the lock of the state's folder is released.
    """

    def __init__(self, options: SessionOptions) -> None:
        self._options = options
        self._loop = Loop()
        self._opening: asyncio.Future[Session] | None = None
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """The session."""
        assert self._session is not None  # noqa: S101 - it was opened
        return self._session

    @property
    def is_over(self) -> bool:
        """Whether everything is closed."""
        return self._loop.is_over

    def has_state_of(self, options: SessionOptions) -> bool:
        """Return whether its state folder is the one that ``options`` names."""
        mine, other = self._options.workspace.state, options.workspace.state
        return isinstance(mine, str) and isinstance(other, str) and same_name(mine, other)

    def open(self, progress: Progress, after: "list[SessionThread]") -> list[str]:
        """Open the session after those in ``after`` have ended; return messages for the user.

        Raises ``Cancelled``, ``Abandoned``, ``AdapterError``, ``LLMError``, ``StoreError`` and ``Misused``.
        """
        notes: list[str] = []

        async def open_in_loop(cancel: asyncio.Event) -> Session:
            while not all(each.is_over for each in after):
                if cancel.is_set():
                    raise OpeningCancelled
                await asyncio.sleep(_POLL)
            callbacks = OpeningCallbacks(notes.append, cancelled=cancel.is_set)
            # A future instead of a task: the thread can't be stopped, and ``end`` waits for its result.
            self._opening = asyncio.get_running_loop().run_in_executor(None, open_repl, self._options, callbacks)
            opened = await asyncio.shield(self._opening)
            if cancel.is_set():
                raise OpeningCancelled
            return opened

        try:
            self._session = self.wait(open_in_loop, progress)
        except OpeningCancelled:
            raise Cancelled from None
        return notes

    def wait(self, begin: Callable[[asyncio.Event], Coroutine[Any, Any, T]], progress: Progress) -> T:
        """Run the coroutine of ``begin``, and show its progress. Raises ``Cancelled`` and ``Abandoned``, as ``Loop.run`` does."""
        events = None if self._session is None else self._session.events
        if events is not None:
            events.subscribe(progress)
        try:
            return self._loop.run(begin, progress.tick, progress.note)
        finally:
            if events is not None:
                events.unsubscribe(progress)
            progress.stop()

    def end(self, *, wait: bool = True) -> None:
        """Cancel running work and close everything; hanging work delays this.

        With ``wait`` False it continues in the background.
        """
        self._loop.leave(self._close)
        if wait:
            self._loop.join()

    async def _close(self) -> None:
        if self._opening is not None:
            with suppress(Exception):  # already reported, or no longer waited for
                session = await self._opening
                await session.aclose()


Bundle = dict[str, str]
_CANCELLED = Outcome("cancelled")


class NotebookSession:
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
        self._shared = SharedVariables(names, hidden)
        self._thread: SessionThread | None = None
        self._abandoned: list[SessionThread] = []
        """Sessions that were left before they ended."""

    @property
    def current(self) -> Session | None:
        """The session; None if no session is open."""
        return None if self._thread is None else self._thread.session

    def session(self) -> Session:
        """Return the session; the first call opens one without a graph. Raises ``Stopped``."""
        return self._open_thread().session

    def names(self) -> list[str]:
        """Return the names of the notebook's variables and of the session's values, if there is one."""
        session = self.current
        return [*self._shared.known(), *(() if session is None else session.values.names())]

    def open(self, options: SessionOptions) -> Session:
        """Open a new session in place of the present one. Raises ``Stopped``."""
        # An interrupt takes effect while waiting; between two of these steps it has no effect.
        with count_signals(numbers=(signal.SIGINT,)):
            graph = options.workspace.graph
            variable = self._names.get(graph) if isinstance(graph, str) else None
            if _is_graph(variable):  # the notebook's own graph in place of its name
                options = evolve(options, workspace=evolve(options.workspace, graph=variable, name=graph))
            if self._thread is not None and self._thread.has_state_of(options):
                self.close()  # its folder is locked
            self._abandoned = [each for each in self._abandoned if not each.is_over]
            opened = SessionThread(options)
            progress = Progress(f"open {options.workspace.name or graph or ''}", self._place, self._update)
            try:
                notes = opened.open(progress, [each for each in self._abandoned if each.has_state_of(options)])
            except (Cancelled, Abandoned):
                self._abandon(opened)
                raise self.stopped(_CANCELLED) from None
            except (AdapterError, LLMError, StoreError, Misused) as error:
                opened.end()
                raise self.stopped(misused(error.message, error.hint)) from None
            except BaseException:
                self._abandon(opened)
                raise
            self.close()
            self._thread = opened
        for note in notes:
            self._show(bundle_of(Outcome(notes=(printable(note),)), opened.session.settings))
        return opened.session

    def graphs(self) -> list[str]:
        """Return the notebook variables that hold graphs."""
        return [name for name, value in list(self._names.items()) if _is_graph(value)]

    def close(self) -> None:
        """End the session; the notebook keeps its variables."""
        thread, self._thread = self._thread, None
        self._shared.forget()
        if thread is not None:
            thread.end()
            if not thread.is_over:
                self._abandoned.append(thread)

    def _abandon(self, thread: SessionThread) -> None:
        """Leave a session without waiting for its end."""
        thread.end(wait=False)
        self._abandoned.append(thread)
        if self._thread is thread:
            self._thread = None
            self._shared.forget()

    def run(self, cell: Cell) -> None:
        """Run a cell and display the outcome of each piece; nothing is run if the cell has errors.

        Raises ``Stopped`` at the first piece that is not fully done. The names that it and later pieces should have bound then
        have no value.
        """
        found = self.check(cell)
        if not found.is_good:
            raise self.stopped(found)
        session, queue = self.session(), PieceQueue("", stop=True)
        queue.left = deque(cell.pieces)
        before, has_run = session.values.all(), False
        while (piece := queue.next()) is not None:
            if piece not in cell.pieces:  # it comes from a file
                self._take(names_read(piece), session)
            left, moment, recorded = [piece, *queue.left], session.moment(piece.text), session.moments[-1:]
            outcome = queue.settle(self._run_piece(session, piece))
            notes = self._shared.give(session.values)
            if not outcome.is_complete and (has_run or outcome.status not in ("refused", "misused")):
                names = stale_names(cell.pieces, left, before, session.values)
                self._shared.drop(names, session.values)
                if recorded == session.moments[-1:]:  # otherwise the session has recorded the moment
                    session.record(moment)
                if names:
                    notes.append(f"{', '.join(names)}: the value of an earlier run was removed")
            has_run = True
            self.show_outcome(evolve(outcome, notes=(*outcome.notes, *notes)), location_of(piece, outcome.names))

    def _take(self, wanted: Iterable[str], session: Session) -> None:
        try:
            self._shared.take(wanted, session.values)
        except NotShared as error:
            raise self.stopped(misused(error.message, error.hint)) from None

    def _run_piece(self, session: Session, piece: Piece) -> Outcome:
        if (refusal := unavailable(normalize(piece, session))) is not None:
            return refusal
        try:
            return self._wait(lambda cancel: session.run(piece, cancel), piece.text)
        except Cancelled:
            return _CANCELLED

    def check(self, cell: Cell) -> Outcome:
        """Return the errors of a cell. Nothing is run. Raises ``Stopped`` if interrupted, or if a variable can't be shared."""
        session = self.session()
        self._take(names_read_first(cell.pieces), session)
        return self._wait_or_stop(lambda cancel: check_cell(cell, session), "check")

    def run_slow(self, work: Callable[[], T], text: str) -> T:
        """Run slow work in the session's thread. Raises ``Stopped`` if interrupted."""
        return self._wait_or_stop(lambda cancel: asyncio.to_thread(work), text)

    def value(self, name: str) -> Any:
        """Return a copy of the session's value of this name. Raises ``Stopped`` if it does not exist."""
        values = self.session().values
        bound = values.context.value(name)
        if bound is None:
            raise self.stopped(misused(f"unknown value {name}", suggestion(name, values.names())))
        return as_json(bound.value)

    def set_input(self, name: str) -> None:
        """Make a Python variable the value of ``{(input)}``. Raises ``Stopped``."""
        if name not in self._names:
            raise self.stopped(misused(f"the notebook has no variable {name}", suggestion(name, self._shared.known())))
        try:
            self.session().input = self._shared.copied(name)
        except NotShared as error:
            raise self.stopped(misused(error.message, error.hint)) from None

    def show_outcome(self, outcome: Outcome, location: str = "") -> None:
        """Display an outcome. Raises ``Stopped`` if it failed; ``location`` is the position of the piece."""
        if not outcome.is_complete:
            raise self.stopped(outcome, location)
        if bundle := bundle_of(outcome, self.session().settings):
            self._show(bundle)

    def show_picture(self, html: str, text: str, caption: str = "") -> None:
        """Display generated HTML, with its text version, and a caption below it."""
        html = f"{html}\n{caption_html(caption)}" if caption else html
        self._show({"text/html": html, "text/plain": safe_text(text)})

    def stopped(self, outcome: Outcome, location: str = "") -> Stopped:
        """Display why a cell ends, and return the exception that ends it."""
        settings = DisplaySettings() if self.current is None else self.current.settings
        if bundle := bundle_of(outcome, settings):
            self._show(bundle)
        return Stopped(failure_line(outcome, location))

    def _wait_or_stop(self, begin: Callable[[asyncio.Event], Coroutine[Any, Any, T]], text: str) -> T:
        try:
            return self._wait(begin, text)
        except Cancelled:
            raise self.stopped(_CANCELLED) from None

    def _wait(self, begin: Callable[[asyncio.Event], Coroutine[Any, Any, T]], text: str) -> T:
        """Wait for the coroutine of ``begin``. Raises ``Cancelled``, and ``Stopped`` if the session was abandoned."""
        thread = self._open_thread()
        try:
            return thread.wait(begin, Progress(text, self._place, self._update))
        except Abandoned:
            self._abandon(thread)  # the hanging work keeps its thread; the notebook starts a new session
            raise Stopped("the session did not end and was abandoned; %kw open starts a new one") from None

    def _open_thread(self) -> SessionThread:
        if self._thread is None:
            self.open(SessionOptions())
        assert self._thread is not None  # noqa: S101 - it was opened
        return self._thread


def _is_graph(value: Any) -> bool:
    """Return whether a variable holds a networkx graph instance, not a class."""
    return hasattr(value, "adj") and hasattr(value, "is_directed") and not isinstance(value, type)
