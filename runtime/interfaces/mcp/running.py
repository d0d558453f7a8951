"""Long work of a tool: beside the server's loop, within its time, told as it goes, and ended when its caller has gone.

The SDK cancels the call of a client that cancels or goes away. The work then ends in order: the command under way is cancelled, what
was committed stays, and the call is over when nothing of it is under way any more.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import anyio

from ..web.scripts.beside import beside
from .ground import Ground

__all__ = ["Late", "run_beside"]

T = TypeVar("T")

_LINGER = 2.0
"""Seconds that work gets to end in order, once it is cancelled."""


class Late:
    """Whether the work was cut off because its time was up."""

    def __init__(self) -> None:
        self.is_so = False


async def run_beside(
    ground: Ground, who: str, work: Callable[[asyncio.Event], Coroutine[Any, Any, T]], late: Late, *, turn: bool
) -> T:
    """Run the coroutine that ``work`` makes for ``who``, and return what it returns. ``turn``: it needs the state.

    ``work`` is given an event that is set when it is to end.
    """
    async with ground.place(who):
        if not turn:
            return await _within(ground, work, late)
        async with ground.turn:
            return await _within(ground, work, late)


async def _within(ground: Ground, work: Callable[[asyncio.Event], Coroutine[Any, Any, T]], late: Late) -> T:
    cancel = asyncio.Event()

    def out_of_time() -> None:
        late.is_so = True
        cancel.set()

    timer = asyncio.get_running_loop().call_later(ground.settings.limits.seconds, out_of_time)
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
