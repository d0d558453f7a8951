"""The session's own event loop, which runs in a thread. A cell can wait for this loop even if the notebook's own loop is running.

The session keeps the same loop until it ends, because its models keep connections open. An interrupt reaches the waiting thread.
The thread counts each interrupt and handles it between two ticks, so that interrupts are handled one after the other.
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
"""Seconds to wait for cancelled work and for the loop to end. The thread is a daemon, so it can't keep the process alive."""

Begin = Callable[[asyncio.Event], Coroutine[Any, Any, T]]


class Cancelled(Exception):
    """Raised after the second interrupt, when the cancelled work has ended."""


class Abandoned(Exception):
    """Raised if the work has not ended after it was cancelled; the caller no longer waits for the work."""


class _Run:
    """One coroutine that runs in the loop."""

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
    """A thread with an event loop. ``leave`` ends the thread; at the latest, the thread ends with the process."""

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
        """Run the coroutine that ``begin`` creates, and wait for its result. Meanwhile, ``tick`` is called in this thread.

        The first interrupt sets the event that was passed to ``begin``. The second interrupt cancels the task; ``Cancelled`` is
        raised when the task has ended. The third interrupt raises ``Abandoned``; after that, only ``leave`` may be called. In all
        other cases, no work is running when this method returns or raises.
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
                if future.done():  # the work itself raised the timeout error
                    raise
                tick()
            except CancelledError:
                raise Cancelled from None

    def _handle_interrupt(self, times: int, run: _Run, notify: Callable[[str], None]) -> None:
        """Handle interrupt number ``times``. The message about an interrupt is shown after the interrupt has taken effect."""
        if times == 1:
            self._loop.call_soon_threadsafe(run.cancel.set)
            notify("cancelling; interrupt again to stop without waiting")
        elif times == 2:
            self._loop.call_soon_threadsafe(run.stop)  # ``future.cancel`` would not wait until the task ends
            notify("interrupt again to abandon the session")
        else:
            run.is_left = True
            raise Abandoned

    def _stop_work(self, run: _Run, future: "Future[Any]") -> None:
        """Stop the running work after an error in the display, because the next cell must not run in parallel. Raises ``Abandoned``."""
        if future.done() or run.is_left:
            return
        self._loop.call_soon_threadsafe(run.stop)
        wait([future], _GRACE)
        if not future.done():
            raise Abandoned

    def leave(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel running work, then run ``last`` and end the thread. All of this happens in the background: the method returns at once.

        Work that blocks the loop can't be cancelled until it yields to the loop.
        """

        async def leaving() -> None:
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await asyncio.gather(last(), return_exceptions=True)  # no caller is left to receive an error
            self._loop.stop()

        def begin() -> None:
            self._leaving = self._loop.create_task(leaving())

        self._loop.call_soon_threadsafe(begin)

    def join(self) -> None:
        """Wait up to ``_GRACE`` seconds for the thread to end. A hanging thread ends with the process."""
        self._thread.join(_GRACE)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


# Shows the progress of a slow cell: elapsed time, model calls, and how to interrupt the cell.

_PATIENCE, _EVERY = 0.5, 0.3
_STEPS = 6

Place = Callable[[dict[str, str]], Any]


class Progress:
    """A progress line that is updated in place. Events arrive in the session's thread; ``tick`` displays in the notebook's thread.

    ``place`` displays a bundle (an output in several media types) and returns a handle. ``update`` replaces the bundle of a
    handle.
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
        """Show ``text`` in the progress line, now and in later updates."""
        self._say(text)
        self._show()

    def tick(self) -> None:
        """Update the display if an update is due."""
        now = perf_counter()
        if now - self._work.began > _PATIENCE and now - self._last > _EVERY:
            self._show()

    def stop(self) -> None:
        """Display the final time and number of model calls, if a progress line was displayed."""
        if self._handle is not None:
            work = self._work
            self._update(self._handle, _bundle(work.text, work.clock, work.total))

    def _say(self, text: str) -> None:
        self._note = text

    def _show(self) -> None:
        self._last = perf_counter()
        work, steps = self._work, self._work.steps
        running = ", ".join(f"({step})" for step, _ in steps[:_STEPS]) if len(steps) > 1 else ""
        bundle = _bundle(
            work.text,
            work.clock,
            work.waiting,
            running,
            work.call_summary,
            work.arriving,
            self._note,
            "interrupt cancels",
        )
        if self._handle is None:
            self._handle = self._place(bundle)
        else:
            self._update(self._handle, bundle)


def _bundle(*parts: str) -> dict[str, str]:
    line = " · ".join(printable(part) for part in parts if part)
    return {"text/html": caption_html(line), "text/plain": line}


# Ends a failed cell: the notebook stops at this cell and shows one line instead of a traceback.

_LONGEST = 1_000


class Stopped(Exception):
    """Raised to end a cell. The message is the reason; any details have already been displayed."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows instead of a traceback."""
        message = str(self)
        return [printable(" ".join((message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…").split()))]
