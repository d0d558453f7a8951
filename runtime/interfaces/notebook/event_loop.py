"""The session's own event loop, in a thread: a cell waits for it, even if the notebook's own loop is running.

The session's models keep connections, so it has one loop for its whole life. An interrupt reaches the waiting thread: it is
counted, and handled between two ticks, so that a second one can't arrive before the first is handled.
"""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, wait
from concurrent.futures import TimeoutError as Late
from threading import Thread
from time import perf_counter
from typing import Any, TypeVar

from ....lang.diagnostic import printable
from ...api.figures import Work
from ...events import Event
from ..signals import SignalCount, count_signals
from .display import caption_html

T = TypeVar("T")

_TICK = 0.1
_GRACE = 5.0
"""Seconds that cancelled work and the loop have to end; the thread is a daemon."""

Begin = Callable[[asyncio.Event], Coroutine[Any, Any, T]]


class Cancelled(Exception):
    """Raised after the second interrupt, when the cancelled work has ended."""


class Abandoned(Exception):
    """Raised after the third interrupt: the work did not end, and is no longer waited for."""


class _Run:
    """One coroutine under way in the loop."""

    def __init__(self) -> None:
        self.cancel = asyncio.Event()
        self.task: asyncio.Task[Any] | None = None
        self.is_stopped = False
        self.is_left = False

    async def held(self, begin: Begin[T]) -> T:
        self.task = asyncio.current_task()
        if self.is_stopped:
            raise asyncio.CancelledError
        return await begin(self.cancel)

    def stop(self) -> None:
        self.is_stopped = True
        if self.task is not None:
            self.task.cancel()


class Loop:
    """A thread with an event loop. It ends with ``leave``, at the latest with the process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._leaving: asyncio.Task[None] | None = None
        self._thread = Thread(target=self._serve, name="knotwork", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether the thread has ended."""
        return not self._thread.is_alive()

    def run(
        self,
        begin: Begin[T],
        tick: Callable[[], None] = lambda: None,
        notify: Callable[[str], None] = lambda text: None,
    ) -> T:
        """Run the coroutine of ``begin`` and wait for it; ``tick`` is called in this thread meanwhile.

        The first interrupt sets the event passed to ``begin``. The second one cancels the task: ``Cancelled`` is raised when it
        has ended. The third one raises ``Abandoned``, after which only ``leave`` may be called. In all other cases no work is
        running on return.
        """
        run = _Run()
        with count_signals(numbers=(signal.SIGINT,)) as signals:
            future = asyncio.run_coroutine_threadsafe(run.held(begin), self._loop)
            try:
                return self._wait(run, future, signals, tick, notify)
            except BaseException:
                self._stop_work(run, future)
                raise

    def _wait(
        self,
        run: _Run,
        future: "Future[T]",
        signals: SignalCount,
        tick: Callable[[], None],
        notify: Callable[[str], None],
    ) -> T:
        done = 0
        while True:
            if done < signals.times:
                done += 1
                self._handle_interrupt(done, run, notify)
                continue
            try:
                return future.result(_TICK)
            except Late:
                if future.done():  # the timeout came from the work itself
                    raise
                tick()
            except CancelledError:
                raise Cancelled from None

    def _handle_interrupt(self, times: int, run: _Run, notify: Callable[[str], None]) -> None:
        """Handle the interrupt of this number; its message is shown afterwards."""
        if times == 1:
            self._loop.call_soon_threadsafe(run.cancel.set)
            notify("cancelling; interrupt again to stop without waiting")
        elif times == 2:
            self._loop.call_soon_threadsafe(run.stop)  # the future's own cancel would not wait for the task's end
            notify("interrupt again to abandon the session")
        else:
            run.is_left = True
            raise Abandoned

    def _stop_work(self, run: _Run, future: "Future[Any]") -> None:
        """Stop running work after an error in the display: the next cell must not run in parallel. Raises ``Abandoned``."""
        if future.done() or run.is_left:
            return
        self._loop.call_soon_threadsafe(run.stop)
        wait([future], _GRACE)
        if not future.done():
            raise Abandoned

    def leave(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel running work, then run ``last`` and end the thread; return at once.

        Work that blocks the loop can't be cancelled: then this happens as soon as the work yields.
        """

        async def leaving() -> None:
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await asyncio.gather(last(), return_exceptions=True)  # no one is left to report to
            self._loop.stop()

        def begin() -> None:
            self._leaving = self._loop.create_task(leaving())

        self._loop.call_soon_threadsafe(begin)

    def join(self) -> None:
        """Wait for the thread to end; a hanging thread is left to the process."""
        self._thread.join(_GRACE)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


# Progress of a cell that takes longer than a moment: elapsed time, model calls, and how to interrupt it.

_PATIENCE, _EVERY = 0.5, 0.3
_STEPS = 6

Place = Callable[[dict[str, str]], Any]


class Progress:
    """A line of progress that changes. Events arrive in the session's thread; ``tick`` displays, in the notebook's.

    ``place`` displays a bundle and returns a handle with ``update``, as IPython's ``display`` does.
    """

    def __init__(self, text: str, place: Place, update: Callable[[Any, dict[str, str]], None]) -> None:
        self._work = Work(" ".join(text.split())[:60], self._say)
        self._place, self._update = place, update
        self._last = self._work.began
        self._note = ""
        self._handle: Any = None

    def __call__(self, event: Event) -> None:
        """Process one event."""
        self._work(event)

    def note(self, text: str) -> None:
        """Show this text from now on."""
        self._say(text)
        self._show()

    def tick(self) -> None:
        """Update the display if it is due."""
        now = perf_counter()
        if now - self._work.began > _PATIENCE and now - self._last > _EVERY:
            self._show()

    def stop(self) -> None:
        """Display the final model calls; nothing if no progress was displayed."""
        if self._handle is not None:
            work = self._work
            self._update(self._handle, _bundle(work.text, work.clock, work.total))

    def _say(self, text: str) -> None:
        self._note = text

    def _show(self) -> None:
        self._last = perf_counter()
        work, steps = self._work, self._work.steps
        running = ", ".join(f"({step})" for step, _ in steps[:_STEPS]) if len(steps) > 1 else ""
        bundle = _bundle(work.text, work.clock, work.waiting, running, work.asked, self._note, "interrupt cancels")
        if self._handle is None:
            self._handle = self._place(bundle)
        else:
            self._update(self._handle, bundle)


def _bundle(*parts: str) -> dict[str, str]:
    line = " · ".join(printable(part) for part in parts if part)
    return {"text/html": caption_html(line), "text/plain": line}


# The end of a failed cell: the notebook stops there, with one line instead of a traceback.

_LONGEST = 1_000


class Stopped(Exception):
    """Ends a cell; the message says why. Details, if any, are displayed above."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows instead of a traceback."""
        message = str(self)
        return [printable(" ".join((message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…").split()))]
