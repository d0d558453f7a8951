"""What ends every loop: a limit in seconds, an event that cancels, rounds that repeat. Nothing is under way when time ended something."""

import asyncio
from collections.abc import Coroutine, Hashable
from time import perf_counter
from typing import Any, Literal, TypeVar

from attrs import define, field

__all__ = ["Ending", "Repetition"]

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


@define
class Repetition:
    """Counts the rounds of a loop in a row that came to nothing new. After two the model is told, after three the loop ends."""

    count: int = 0
    _seen: set[Hashable] = field(factory=set, init=False)

    def take(self, *results: Hashable) -> int:
        """Take in the results of a round; return how many rounds in a row, this one included, had no new result.

        A round without results counts for nothing.
        """
        if not results:
            return self.count
        fresh = [each for each in results if each not in self._seen]
        self._seen.update(results)
        self.count = 0 if fresh else self.count + 1
        return self.count

    @property
    def is_told(self) -> bool:
        """Whether the model is to be told."""
        return self.count >= 2

    @property
    def is_over(self) -> bool:
        """Whether the loop ends."""
        return self.count >= 3
