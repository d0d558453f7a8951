"""Long work of a tool: beside the server's loop, within its time, told as it goes, and ended when its caller has gone.

The SDK cancels the call of a client that cancels or goes away. The work then ends in order: the command under way is cancelled, what
was committed stays, and the call is over when nothing of it is under way any more. A call's time begins with the call: waiting for a
place, or for the state, counts.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, ParamSpec, TypeVar

import anyio

from ...worker import beside
from .tool_errors import Refused
from .workspace import Ground

__all__ = ["Late", "read_beside", "run_beside"]

P = ParamSpec("P")
T = TypeVar("T")

_LINGER = 2.0
"""Seconds that work gets to end in order, once it is cancelled."""


class Late:
    """Whether the work was cut off because its time was up."""

    def __init__(self) -> None:
        self.is_so = False


async def read_beside(
    ground: Ground, who: str, characters: int, function: Callable[P, T], /, *args: P.args, **options: P.kwargs
) -> T:
    """Return what ``function``, which reads a text of so many ``characters``, gives for ``who``. Raises ``Refused``."""
    async with _in_time(ground):
        return await ground.readers.read(who, characters, function, *args, **options)


async def run_beside(
    ground: Ground, who: str, work: Callable[[asyncio.Event], Coroutine[Any, Any, T]], late: Late, *, turn: bool
) -> T:
    """Run the coroutine that ``work`` makes for ``who``, and return what it returns. ``turn``: it needs the state. Raises ``Refused``.

    ``work`` is given an event that is set when it is to end.
    """
    until = asyncio.get_running_loop().time() + ground.settings.limits.seconds
    async with AsyncExitStack() as held:
        async with _in_time(ground):
            await held.enter_async_context(ground.place(who))
            if turn:
                await held.enter_async_context(ground.turn)
        return await _within(until, work, late)


@asynccontextmanager
async def _in_time(ground: Ground) -> AsyncIterator[None]:
    """Raise ``Refused`` where what is inside takes longer than a call may."""
    seconds = ground.settings.limits.seconds
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        message = f"other calls kept the server busy: a call has {seconds:g} seconds, and they are over"
        raise Refused("busy", message, "call again later; nothing was done") from None


async def _within(until: float, work: Callable[[asyncio.Event], Coroutine[Any, Any, T]], late: Late) -> T:
    cancel = asyncio.Event()

    def out_of_time() -> None:
        late.is_so = True
        cancel.set()

    timer = asyncio.get_running_loop().call_at(until, out_of_time)
    task = asyncio.create_task(beside(work, cancel), name="tool")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        cancel.set()
        with anyio.CancelScope(shield=True):  # the SDK cancels again and again what goes on waiting
            await asyncio.wait([task], timeout=_LINGER)
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # looked at: nobody is left to tell
        raise
    finally:
        timer.cancel()
