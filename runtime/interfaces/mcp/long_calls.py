"""Long work of a tool: runs outside the server's loop with a time limit and progress reports, and ends when its caller is gone.

The SDK cancels the call of a client that cancels or disconnects. The work then ends in order: the command under way is cancelled,
earlier commits remain, and the call ends when none of its work is running. A call's time starts with the call: waiting for a
slot, or for the state, counts.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, ParamSpec, TypeVar

import anyio
from attrs import define, field

from ....lang.diagnostic import printable
from ...api.worker import run_in_worker
from ...events import CallFinished, CommandFinished, Event, PlanStarted, RunStarted, StepFinished, StepSkipped
from .tool_errors import Refused
from .workspace import Ground

P = ParamSpec("P")
T = TypeVar("T")

_LINGER = 2.0
"""Seconds that cancelled work gets to end in order."""


class Late:
    """Whether the work was cancelled for its time limit."""

    def __init__(self) -> None:
        self.is_so = False


async def read_beside(
    ground: Ground, who: str, characters: int, function: Callable[P, T], /, *args: P.args, **options: P.kwargs
) -> T:
    """Return the result of ``function`` for ``who``; it reads a text of ``characters`` characters. Raises ``Refused``."""
    async with _in_time(ground):
        return await ground.readers.read(who, characters, function, *args, **options)


async def run_beside(
    ground: Ground, who: str, work: Callable[[asyncio.Event], Coroutine[Any, Any, T]], late: Late, *, turn: bool
) -> T:
    """Run the coroutine of ``work`` for ``who``, and return its result. ``turn``: it needs the state. Raises ``Refused``.

    ``work`` receives an event that is set when it must end.
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
    """Raise ``Refused`` if the enclosed work takes longer than a call may."""
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
    task = asyncio.create_task(run_in_worker(work, cancel), name="tool")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        cancel.set()
        with anyio.CancelScope(shield=True):  # the SDK repeatedly cancels work that continues to wait
            await asyncio.wait([task], timeout=_LINGER)
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # retrieved; no caller is left to receive it
        raise
    finally:
        timer.cancel()


# The events of a run as progress of its call: a number that only grows, and a sentence.

Tell = Callable[[float, float | None, str], Awaitable[None]]
"""Sends progress: amount done, total (None: unknown), message."""

_PAUSE = 0.1
"""Minimum seconds between two messages; events in between are covered by the next one."""
_LONGEST = 200


@define(eq=False)
class Progress:
    """Counts finished work. Steps and commands count one each; model calls are fractions of the present one."""

    total: float | None = None
    done: float = 0.0
    calls: int = 0
    message: str = ""
    _since: int = field(default=0, init=False)

    def __call__(self, event: Event) -> bool:
        """Record an event, and return whether it should be reported."""
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
        """The amount done, including a fraction for the present work: grows with every call, always below the next integer."""
        return self.done + self._since / (self._since + 1)

    def _one(self, message: str) -> None:
        self.done += 1
        self._since = 0
        self.message = printable(message)[:_LONGEST]


@asynccontextmanager
async def reported(tell: Tell) -> AsyncIterator[Callable[[Event], None]]:
    """Yield a subscriber for events of any thread; ``tell`` is called in this loop, at a limited rate, until the end."""
    loop, news, progress = asyncio.get_running_loop(), asyncio.Event(), Progress()
    told = -1.0

    def hear(event: Event) -> None:
        if progress(event):
            with contextlib.suppress(RuntimeError):  # the loop is closed
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
        await asyncio.gather(teller, return_exceptions=True)  # a disconnected client receives no more
