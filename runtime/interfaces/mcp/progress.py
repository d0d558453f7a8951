"""What a run tells while it goes, as progress of the call that began it: a number that only grows, and a sentence."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from attrs import define, field

from ....lang.diagnostic import printable
from ...events import CallFinished, CommandFinished, Event, PlanStarted, RunStarted, StepFinished, StepSkipped

__all__ = ["Progress", "Tell", "reported"]

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
