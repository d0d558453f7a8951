"""Reading and checking texts beside the loop: only so many at once, in threads of their own, so that nobody else waits for them.

A thread can't be stopped. A text that is being read when its caller goes away takes its place until it is read, which is soon: no text
has more than ``LONGEST`` characters.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from attrs import define, field

__all__ = ["LONGEST", "Readers"]

P = ParamSpec("P")
T = TypeVar("T")

LONGEST = 100_000
"""Characters of a text that a call may bring. To read and check as many takes about a second."""
_SHORT = 5_000
"""Characters up to which a text is read in some hundredths of a second: such don't queue behind long ones."""


@define(eq=False)
class _Lane:
    """``most`` texts are read here at once, and of one client half of them, if more than one."""

    most: int
    _pool: ThreadPoolExecutor = field(init=False)
    _places: asyncio.Semaphore = field(init=False)
    _shares: dict[str, asyncio.Semaphore] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.most, thread_name_prefix="knotwork-reading")
        self._places = asyncio.Semaphore(self.most)

    async def read(self, who: str, work: Callable[[], T]) -> T:
        share = self._shares.setdefault(who, asyncio.Semaphore(max(1, self.most // 2)))
        await share.acquire()
        try:
            await self._places.acquire()
        except BaseException:
            share.release()
            raise

        def over(future: "asyncio.Future[Any]") -> None:
            self._places.release()
            share.release()
            if not future.cancelled():
                future.exception()  # looked at: its caller may have gone

        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        future.add_done_callback(over)
        return await asyncio.shield(future)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


@define(eq=False)
class Readers:
    """Belongs to one event loop. Threads begin with the first text."""

    _short: _Lane = field(factory=lambda: _Lane(2))
    _long: _Lane = field(factory=lambda: _Lane(1))

    async def read(
        self, who: str, characters: int, function: Callable[P, T], /, *args: P.args, **options: P.kwargs
    ) -> T:
        """Return what ``function`` gives for a text of so many ``characters`` that ``who`` brought."""
        lane = self._short if characters <= _SHORT else self._long
        return await lane.read(who, lambda: function(*args, **options))

    def close(self) -> None:
        """Begin nothing more."""
        self._short.close()
        self._long.close()
