"""Runs work in a separate event loop and thread, so that CPU work does not block the caller's event loop.

An expression may take a third of a second, and steps without calls run without a pause: a thousand of them in a server's own
loop would block every other client for minutes. Models stay in the first loop, which their clients are bound to.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, Unpack

from ..adapters.llm import Completion, Notice, Options
from ..adapters.llm.middleware import Client, Layer

T = TypeVar("T")


async def beside(work: Callable[[asyncio.Event], Coroutine[Any, Any, T]], cancel: asyncio.Event) -> T:
    """Run the coroutine from ``work`` in a separate event loop; return its result, or raise its exception.

    ``work`` gets an event of that loop, which is set when ``cancel`` is. If the caller is cancelled, the work is cancelled
    too; ``CancelledError`` is re-raised when none of it is still running.
    """
    here, runner, theirs = (
        asyncio.get_running_loop(),
        asyncio.Runner(loop_factory=asyncio.new_event_loop),
        asyncio.Event(),
    )
    there = runner.get_loop()
    over: asyncio.Future[Callable[[], T]] = here.create_future()

    def run() -> None:
        try:
            with runner:
                made = runner.run(work(theirs))
            outcome: Callable[[], T] = lambda: made  # noqa: E731
        except BaseException as error:
            outcome = _raising(error)
        with contextlib.suppress(RuntimeError):  # this loop is closed: the process is ending, and nothing waits
            here.call_soon_threadsafe(over.set_result, outcome)

    def end() -> None:
        for task in asyncio.all_tasks(there):
            task.cancel()

    def over_there(callback: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # that loop is closed: the work is over
            there.call_soon_threadsafe(callback)

    async def pass_on() -> None:
        await cancel.wait()
        over_there(theirs.set)

    watcher = asyncio.create_task(pass_on())
    try:
        threading.Thread(target=run, name="knotwork-script", daemon=True).start()
        outcome = await asyncio.shield(over)
    except asyncio.CancelledError:
        over_there(end)
        await asyncio.wait([over])
        raise
    finally:
        watcher.cancel()
    return outcome()


def _raising(error: BaseException) -> Callable[[], Any]:
    def outcome() -> Any:
        raise error

    return outcome


class Across(Layer):
    """A client of the loop ``home`` for callers in another loop. It need not be closed: the client belongs to that loop."""

    def __init__(self, inner: Client, home: asyncio.AbstractEventLoop) -> None:
        super().__init__(inner)
        self._home = home

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the client's answer."""
        here, notify = asyncio.get_running_loop(), options.get("notify")
        if notify is not None:

            def told(notice: Notice) -> None:
                with contextlib.suppress(RuntimeError):  # the caller's loop is closed: nothing waits for the answer
                    here.call_soon_threadsafe(notify, notice)

            options["notify"] = told
        asking = asyncio.run_coroutine_threadsafe(self._inner.generate(prompt, **options), self._home)
        return await asyncio.wrap_future(asking)

    async def aclose(self) -> None:
        """Leave the client open."""
