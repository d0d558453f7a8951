"""The session that the magics use: one per notebook, opened on first use. Output goes to the functions given to the session."""

import asyncio
import signal
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any, TypeVar

from attrs import evolve

from ....lang.diagnostic import printable, suggestion
from ...api import process_traces as traces
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
    """One session and its event loop, from opening to closing. Call ``open`` first, and always call ``end``.

    The lock on the state folder is released, however the session ends.
    """

    def __init__(self, options: SessionOptions) -> None:
        self._options = options
        self._loop = Loop()
        self._opening: asyncio.Future[Session] | None = None
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """The session."""
        assert self._session is not None  # noqa: S101 - ``open`` has succeeded
        return self._session

    @property
    def is_over(self) -> bool:
        """Whether the session and its event loop are closed."""
        return self._loop.is_over

    def has_state_of(self, options: SessionOptions) -> bool:
        """Return whether this session uses the state folder in ``options``."""
        mine, other = self._options.workspace.state, options.workspace.state
        return isinstance(mine, str) and isinstance(other, str) and same_name(mine, other)

    def open(self, progress: Progress, after: "list[SessionThread]") -> list[str]:
        """Open the session once all sessions in ``after`` have ended. Return messages for the user.

        Raises ``Cancelled``, ``Abandoned``, ``AdapterError``, ``LLMError``, ``StoreError`` or ``Misused``.
        """
        notes: list[str] = []

        async def open_in_loop(cancel: asyncio.Event) -> Session:
            while not all(each.is_over for each in after):
                if cancel.is_set():
                    raise OpeningCancelled
                await asyncio.sleep(_POLL)
            callbacks = OpeningCallbacks(notes.append, cancelled=cancel.is_set)
            # This is a future, not a task, because the thread can't be stopped, and ``end`` waits for the thread's result.
            self._opening = asyncio.get_running_loop().run_in_executor(None, open_repl, self._options, callbacks)
            opened = await asyncio.shield(self._opening)
            if cancel.is_set():
                raise OpeningCancelled
            return opened

        try:
            self._session = self.wait(open_in_loop, progress)
            traces.subscribe(self._session.events)
        except OpeningCancelled:
            raise Cancelled from None
        return notes

    def wait(self, begin: Callable[[asyncio.Event], Coroutine[Any, Any, T]], progress: Progress) -> T:
        """Run the coroutine that ``begin`` creates, and show its progress. Raises ``Cancelled`` or ``Abandoned`` (see ``Loop.run``)."""
        events = None if self._session is None else self._session.events
        if events is not None:
            events.subscribe(progress)
            events.stream_answers()
        try:
            return self._loop.run(begin, progress.tick, progress.note)
        finally:
            if events is not None:
                events.unsubscribe(progress)
            progress.stop()

    def end(self, *, wait: bool = True) -> None:
        """Cancel running work, and close the session and its event loop. Work that does not react to cancelling delays the closing.

        With ``wait=False``, return at once; the closing continues in the background.
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

    ``names`` is the notebook's namespace; ``hidden`` contains the shell's own names. ``show`` displays a bundle, which is an output
    in several media types. ``place`` displays a bundle and returns a handle, with which ``update`` can replace the bundle.
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
        """Sessions that the notebook no longer uses, but that may not have ended yet."""

    @property
    def current(self) -> Session | None:
        """The open session, or None."""
        return None if self._thread is None else self._thread.session

    def session(self) -> Session:
        """Return the open session. If no session is open, open one without a graph. Raises ``Stopped``."""
        return self._open_thread().session

    def names(self) -> list[str]:
        """Return the names of the notebook's variables and, if a session is open, of the session's values."""
        session = self.current
        return [*self._shared.known(), *(() if session is None else session.values.names())]

    def open(self, options: SessionOptions) -> Session:
        """Open a new session, and close the current one. Raises ``Stopped``."""
        # Interrupts take effect only while waiting, not between two of these steps.
        with count_signals(numbers=(signal.SIGINT,)):
            graph = options.workspace.graph
            variable = self._names.get(graph) if isinstance(graph, str) else None
            if _is_graph(variable):  # replace the variable's name with the graph itself
                options = evolve(options, workspace=evolve(options.workspace, graph=variable, name=graph))
            if self._thread is not None and self._thread.has_state_of(options):
                self.close()  # the current session locks the folder
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
        """Stop using a session, and end it in the background."""
        thread.end(wait=False)
        self._abandoned.append(thread)
        if self._thread is thread:
            self._thread = None
            self._shared.forget()

    def run(self, cell: Cell) -> None:
        """Run a cell and display the outcome of each piece. If the cell has errors, nothing is run.

        If a piece does not complete, ``Stopped`` is raised. The names that this piece and later pieces should have bound then
        lose their old values, unless the cell itself reads these values.
        """
        found = self.check(cell)
        if not found.is_good:
            raise self.stopped(found)
        session, queue = self.session(), PieceQueue("", stop=True)
        queue.left = deque(cell.pieces)
        before, has_run = session.values.all(), False
        while (piece := queue.next()) is not None:
            if piece not in cell.pieces:  # the piece comes from a file that ``.read`` opened
                self._take(names_read(piece), session)
            left, moment, recorded = [piece, *queue.left], session.moment(piece.text), session.moments[-1:]
            outcome = queue.settle(self._run_piece(session, piece))
            notes = self._shared.give(session.values)
            if not outcome.is_complete and (has_run or outcome.status not in ("refused", "misused")):
                names = stale_names(cell.pieces, left, before, session.values)
                self._shared.drop(names, session.values)
                if recorded == session.moments[-1:]:  # otherwise the session has already recorded a point for undo
                    session.record(moment)
                if names:
                    notes.append(f"{', '.join(names)}: the value from an earlier run was removed")
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
        """Check a cell without running anything. Raises ``Stopped`` if interrupted, or if a variable can't be shared."""
        session = self.session()
        self._take(names_read_first(cell.pieces), session)
        return self._wait_or_stop(lambda cancel: check_cell(cell, session), "check")

    def run_slow(self, work: Callable[[], T], text: str) -> T:
        """Run slow work in the session's thread. Raises ``Stopped`` if interrupted."""
        return self._wait_or_stop(lambda cancel: asyncio.to_thread(work), text)

    def value(self, name: str) -> Any:
        """Return a copy of the session's value ``name``. Raises ``Stopped`` if the session has no such value."""
        values = self.session().values
        bound = values.context.value(name)
        if bound is None:
            raise self.stopped(misused(f"unknown value {name}", suggestion(name, values.names())))
        return as_json(bound.value)

    def set_input(self, name: str) -> None:
        """Set ``{(input)}`` to the value of a Python variable. Raises ``Stopped``."""
        if name not in self._names:
            raise self.stopped(misused(f"the notebook has no variable {name}", suggestion(name, self._shared.known())))
        try:
            self.session().input = self._shared.copied(name)
        except NotShared as error:
            raise self.stopped(misused(error.message, error.hint)) from None

    def show_outcome(self, outcome: Outcome, location: str = "") -> None:
        """Display an outcome. Raises ``Stopped`` if the outcome is not complete. ``location`` is the position of the piece."""
        if not outcome.is_complete:
            raise self.stopped(outcome, location)
        if bundle := bundle_of(outcome, self.session().settings):
            self._show(bundle)

    def show_picture(self, html: str, text: str, caption: str = "") -> None:
        """Display generated HTML with a caption below it. ``text`` is shown where HTML is not supported."""
        html = f"{html}\n{caption_html(caption)}" if caption else html
        self._show({"text/html": html, "text/plain": safe_text(text)})

    def stopped(self, outcome: Outcome, location: str = "") -> Stopped:
        """Display why a cell stops, and return the exception that stops the cell."""
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
        """Run the coroutine that ``begin`` creates. Raises ``Cancelled``. Raises ``Stopped`` if the session was abandoned."""
        thread = self._open_thread()
        try:
            return thread.wait(begin, Progress(text, self._place, self._update))
        except Abandoned:
            self._abandon(thread)  # the hanging work keeps its thread, and the notebook starts a new session
            raise Stopped("the session did not end and was abandoned; %kw open starts a new session") from None

    def _open_thread(self) -> SessionThread:
        if self._thread is None:
            self.open(SessionOptions())
        assert self._thread is not None  # noqa: S101 - ``open`` has set it
        return self._thread


def _is_graph(value: Any) -> bool:
    """Return whether a value is a networkx graph. The graph classes themselves do not count."""
    return hasattr(value, "adj") and hasattr(value, "is_directed") and not isinstance(value, type)
