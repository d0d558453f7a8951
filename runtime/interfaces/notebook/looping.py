"""The session's own event loop, in a thread beside the notebook's: a cell waits for it, also where a loop is running already.

The session's models keep connections, so that it has one loop from its beginning to its end. An interrupt reaches the thread that waits.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as Late
from threading import Thread
from typing import Any, TypeVar

__all__ = ["Abandoned", "Loop"]

T = TypeVar("T")

_TICK = 0.1
_GRACE = 5.0
"""Seconds that the loop has to end; it is a daemon's."""


class Abandoned(Exception):
    """The third interrupt: what runs did not end, and nobody waits for it any more."""


class Loop:
    """A thread with an event loop. It ends with ``close``, at the latest with the process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._serve, name="knotwork", daemon=True)
        self._thread.start()

    def run(
        self,
        begin: Callable[[asyncio.Event], Coroutine[Any, Any, T]],
        tick: Callable[[], None] = lambda: None,
        told: Callable[[str], None] = lambda text: None,
    ) -> T | None:
        """Run what ``begin`` makes and wait for it; ``tick`` is called in this thread meanwhile.

        The first interrupt sets the event that ``begin`` got, the second one cancels the task: then None is returned. The third one
        raises ``Abandoned``.
        """
        cancel = asyncio.Event()
        tasks: list[asyncio.Task[Any] | None] = []

        async def held() -> T:
            tasks.append(asyncio.current_task())
            return await begin(cancel)

        def stop() -> None:
            for task in tasks:
                if task is not None:
                    task.cancel()

        future = asyncio.run_coroutine_threadsafe(held(), self._loop)
        times = 0
        while True:
            try:
                try:
                    return future.result(_TICK)
                except Late:
                    if future.done():  # it was the work itself that was late
                        raise
                    tick()
                except CancelledError:
                    return None
            except KeyboardInterrupt:
                times += 1
                if times == 1:
                    self._loop.call_soon_threadsafe(cancel.set)
                    told("cancelling; a second interrupt does not wait for it")
                elif times == 2:
                    self._loop.call_soon_threadsafe(stop)  # the future's own cancel would not wait for the task's end
                    told("a third interrupt leaves the session behind")
                else:
                    raise Abandoned from None

    def close(self) -> None:
        """End the thread; one that hangs is left to the process."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_GRACE)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
