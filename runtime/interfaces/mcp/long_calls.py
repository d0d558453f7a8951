"""Long work of a tool: beside the server's loop, within its time, told as it goes, and ended when its caller has gone.

The SDK cancels the call of a client that cancels or goes away. The work then ends in order: the command under way is cancelled, what
was committed stays, and the call is over when nothing of it is under way any more. A call's time begins with the call: waiting for a
place, or for the state, counts.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, ParamSpec, TypeVar

import anyio
from attrs import define, field

from ....lang.diagnostic import printable
from ...events import CallFinished, CommandFinished, Event, PlanStarted, RunStarted, StepFinished, StepSkipped
from ...worker import beside
from .tool_errors import Refused
from .workspace import Ground

__all__ = ["Late", "Tell", "read_beside", "reported", "run_beside"]

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


# What a run tells while it goes, as progress of the call that began it: a number that only grows, and a sentence.

Tell = Callable[[float, float | None, str], Awaitable[None]]
"""Sends progress: done, of how many (None: not known), in words."""

_PAUSE = 0.1
"""Seconds between two messages; what happens meanwhile is told by the next one."""
_LONGEST = 200


@define(eq=False)
class Progress:
    """Counts what is done. Steps and commands count one each; calls of models are parts of what is under way."""

    total: float | None = None
    done: float = 0.0
    calls: int = 0
    message: str = ""
    _since: int = field(default=0, init=False)

    def __call__(self, event: Event) -> bool:
        """Take note of an event, and say whether it is worth telling."""
        match event:
            case RunStarted(layers=layers):
                self.total = float(sum(map(len, layers)))
                self.message = f"{int(self.total)} steps"
            case PlanStarted(commands=commands):
                self.total = float(commands)
                self.message = f"{commands} commands"
            case StepFinished(step=step, status=status):
                self._one(f"step ({step}) {status}")
            case StepSkipped(step=step):
                self._one(f"step ({step}) skipped")
            case CommandFinished(step=step, status=status, count=count) if "." not in step:
                self._one(f"command {step}: {status}" + ("" if count is None else f", {count:,} found"))
            case CallFinished():
                self.calls += 1
                self._since += 1
                self.message = f"{self.calls:,} call{'' if self.calls == 1 else 's'} of models"
            case _:
                return False
        return True

    @property
    def reached(self) -> float:
        """What is done, with a part of what is under way: it grows with every call and never reaches the next whole."""
        return self.done + self._since / (self._since + 1)

    def _one(self, message: str) -> None:
        self.done += 1
        self._since = 0
        self.message = printable(message)[:_LONGEST]


@asynccontextmanager
async def reported(tell: Tell) -> AsyncIterator[Callable[[Event], None]]:
    """Give a subscriber for events of any thread; ``tell`` is called in this loop, only so often, until the end."""
    loop, news, progress = asyncio.get_running_loop(), asyncio.Event(), Progress()
    told = -1.0

    def hear(event: Event) -> None:
        if progress(event):
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
                loop.call_soon_threadsafe(news.set)

    async def send() -> None:
        nonlocal told
        if progress.message and progress.reached > told:
            told = progress.reached
            total = progress.total
            await tell(told, None if total is None else max(total, told), progress.message)

    async def telling() -> None:
        while True:
            await news.wait()
            news.clear()
            await send()
            await asyncio.sleep(_PAUSE)

    teller = asyncio.create_task(telling())
    try:
        yield hear
        await asyncio.sleep(0)
        await send()
    finally:
        teller.cancel()
        await asyncio.gather(teller, return_exceptions=True)  # a client that has gone hears no more
