"""The bounds of time that every loop has: a limit in seconds, and an event that cancels. Nothing is under way when they ended something."""

import asyncio
from collections.abc import Coroutine
from time import perf_counter
from typing import Any, Literal, TypeVar

from attrs import define, field

__all__ = ["Ending"]

_Made = TypeVar("_Made")


@define
class Ending:
    """What may end the work before it is done; ``by`` says what did. The time counts from when this is made."""

    cancel: asyncio.Event | None
    time_limit: float | None
    by: Literal["", "cancelled", "time"] = ""
    _began: float = field(factory=perf_counter)

    async def within(self, work: Coroutine[Any, Any, _Made]) -> _Made | None:
        """Return what ``work`` gives; None where it was stopped, or not begun, and ``by`` says why."""
        if self.cancel is None and self.time_limit is None:
            return await work
        if self.is_over():
            work.close()
            return None
        task = asyncio.ensure_future(work)
        try:
            await self.wait_for(task)
            return task.result() if task.done() else None
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def wait_for(self, task: "asyncio.Future[Any]") -> None:
        """Wait until ``task`` is done or something ends it, which ``by`` then says; the task itself is left alone."""
        waiting = asyncio.ensure_future(self.cancel.wait()) if self.cancel is not None else None
        left = None if self.time_limit is None else max(0.0, self.time_limit - (perf_counter() - self._began))
        both = {each for each in (task, waiting) if each is not None}
        try:
            await asyncio.wait(both, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self.by = "cancelled" if waiting is not None and waiting.done() else "time"
        finally:
            if waiting is not None:
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)

    def is_over(self) -> bool:
        """Say whether nothing more may begin; ``by`` says why."""
        if self.cancel is not None and self.cancel.is_set():
            self.by = "cancelled"
        elif self.time_limit is not None and perf_counter() - self._began >= self.time_limit:
            self.by = "time"
        return bool(self.by)
