"""The session's own event loop, in a thread beside the notebook's: a cell waits for it, also where a loop is running already.

The session's models keep connections, so that it has one loop from its beginning to its end. An interrupt reaches the thread that waits:
it is counted, and looked at between two ticks, so that a second one can't come between the first and what is done about it.
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
from ...events import Event
from ..figures import Work
from ..signals import Heard, hearing
from .display import told_html

__all__ = ["Abandoned", "Cancelled", "Loop", "Stopped", "Working"]

T = TypeVar("T")

_TICK = 0.1
_GRACE = 5.0
"""Seconds that what is cancelled, and the loop, have to end; the thread is a daemon's."""

Begin = Callable[[asyncio.Event], Coroutine[Any, Any, T]]


class Cancelled(Exception):
    """The second interrupt: what ran was cancelled, and has ended."""


class Abandoned(Exception):
    """The third interrupt: what runs did not end, and nobody waits for it any more."""


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
        told: Callable[[str], None] = lambda text: None,
    ) -> T:
        """Run what ``begin`` makes and wait for it; ``tick`` is called in this thread meanwhile.

        The first interrupt sets the event that ``begin`` got. The second one cancels the task: ``Cancelled`` is raised when it has ended.
        The third one raises ``Abandoned``, after which nothing but ``leave`` is of use. However this is left otherwise, nothing runs on.
        """
        run = _Run()
        with hearing(lambda heard: None, (signal.SIGINT,)) as heard:
            future = asyncio.run_coroutine_threadsafe(run.held(begin), self._loop)
            try:
                return self._waited(run, future, heard, tick, told)
            except BaseException:
                self._stopped(run, future)
                raise

    def _waited(
        self,
        run: _Run,
        future: "Future[T]",
        heard: Heard,
        tick: Callable[[], None],
        told: Callable[[str], None],
    ) -> T:
        done = 0
        while True:
            if done < heard.times:
                done += 1
                self._further(done, run, told)
                continue
            try:
                return future.result(_TICK)
            except Late:
                if future.done():  # it was the work itself that was late
                    raise
                tick()
            except CancelledError:
                raise Cancelled from None

    def _further(self, times: int, run: _Run, told: Callable[[str], None]) -> None:
        """Do what the interrupt of this number is for; what is said of it comes after."""
        if times == 1:
            self._loop.call_soon_threadsafe(run.cancel.set)
            told("cancelling; a second interrupt does not wait for it")
        elif times == 2:
            self._loop.call_soon_threadsafe(run.stop)  # the future's own cancel would not wait for the task's end
            told("a third interrupt leaves the session behind")
        else:
            run.is_left = True
            raise Abandoned

    def _stopped(self, run: _Run, future: "Future[Any]") -> None:
        """End what still runs where a display has raised: the next cell must not run beside it. Raises ``Abandoned``."""
        if future.done() or run.is_left:
            return
        self._loop.call_soon_threadsafe(run.stop)
        wait([future], _GRACE)
        if not future.done():
            raise Abandoned

    def leave(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel what runs, run ``last`` when that has ended, and end the thread; return at once.

        What blocks the loop can't be cancelled: then all that happens as soon as it lets go.
        """

        async def leaving() -> None:
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await asyncio.gather(last(), return_exceptions=True)  # nobody is left to tell
            self._loop.stop()

        def begin() -> None:
            self._leaving = self._loop.create_task(leaving())

        self._loop.call_soon_threadsafe(begin)

    def join(self) -> None:
        """Wait for the thread, which is to end; one that hangs is left to the process."""
        self._thread.join(_GRACE)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


# What is seen while a cell runs for longer than a moment: how long, what models were asked, and how to end it.

_PATIENCE, _EVERY = 0.5, 0.3
_STEPS = 6

Place = Callable[[dict[str, str]], Any]


class Working:
    """A line that changes. Events come in the session's thread; ``tick`` shows, in the notebook's.

    ``place`` shows a bundle and returns a handle with ``update``, as IPython's ``display`` does.
    """

    def __init__(self, text: str, place: Place, update: Callable[[Any, dict[str, str]], None]) -> None:
        self._work = Work(" ".join(text.split())[:60], self._say)
        self._place, self._update = place, update
        self._last = self._work.began
        self._said = ""
        self._handle: Any = None

    def __call__(self, event: Event) -> None:
        """Take in one event."""
        self._work(event)

    def note(self, text: str) -> None:
        """Say something from now on."""
        self._say(text)
        self._show()

    def tick(self) -> None:
        """Show how things stand, if it is time."""
        now = perf_counter()
        if now - self._work.began > _PATIENCE and now - self._last > _EVERY:
            self._show()

    def stop(self) -> None:
        """Say for good what was asked; nothing where nothing was shown."""
        if self._handle is not None:
            work = self._work
            self._update(self._handle, _bundle(work.text, work.clock, work.total))

    def _say(self, text: str) -> None:
        self._said = text

    def _show(self) -> None:
        self._last = perf_counter()
        work, steps = self._work, self._work.steps
        running = ", ".join(f"({step})" for step, _ in steps[:_STEPS]) if len(steps) > 1 else ""
        bundle = _bundle(work.text, work.clock, work.waiting, running, work.asked, self._said, "interrupt cancels")
        if self._handle is None:
            self._handle = self._place(bundle)
        else:
            self._update(self._handle, bundle)


def _bundle(*parts: str) -> dict[str, str]:
    line = " · ".join(printable(part) for part in parts if part)
    return {"text/html": told_html(line), "text/plain": line}


# How a cell ends that did not do what it says: the notebook stops there, with a line in the place of a traceback.

_LONGEST = 1_000


class Stopped(Exception):
    """Ends a cell; the message says why. Where there is more to be seen, it stands above."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows in a traceback's place."""
        said = str(self)
        return [printable(" ".join((said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…").split()))]
