"""The calls that rankings may make together: how many where nobody says, and which requests begin on what is left of them.

A plan that nothing can follow is money for nothing. So requests begin in their order, fewer of them side by side the fewer calls there
are, and none begins to ask once what is left is less than a plan and the step behind it take.
"""

import asyncio

from attrs import define, field

from ..results import Failed

__all__ = ["CALLS", "Room", "raised"]

CALLS = 100
"""Calls for each request, where the caller says nothing."""
_LEAST = 2
"""Calls of the shortest ranking: a plan, and its one step."""
_USUAL = 4
"""Calls for which room is left for each request beside others."""
_HOW = "max_calls, or --max-calls, raises it"


def raised(reason: str) -> str:
    """Return a reason that names a budget with what raises it."""
    if "budget of" not in reason or _HOW in reason:
        return reason
    return f"{reason} ({_HOW})"


@define
class Room:
    """Who may begin. ``most``: calls of all requests together, None for no limit; ``places``: requests side by side at most."""

    most: int | None
    places: int
    _sent: int = field(default=0, init=False)
    _under_way: int = field(default=0, init=False)
    _changed: asyncio.Event = field(factory=asyncio.Event, init=False)

    @property
    def _wide(self) -> int:
        return self.places if self.most is None else max(1, min(self.places, self.most // _USUAL))

    @property
    def _short(self) -> bool:
        """Whether what is left, once those under way have had the least they need, is too little for one more."""
        return self.most is not None and self.most - self._sent - self._under_way * _LEAST < _LEAST

    async def begin(self) -> Failed | None:
        """Wait for one's turn; return why nothing may be asked, where what is left is too little. Answers that are kept still count."""
        while self._under_way and (self._under_way >= self._wide or self._short):
            self._changed.clear()
            await self._changed.wait()
        short = self._short
        self._under_way += 1
        if not short:
            return None
        left = max(0, (self.most or 0) - self._sent)
        few = f"{left} of the budget of {self.most} calls {'is' if left == 1 else 'are'} left, and a ranking takes at least {_LEAST}"
        return Failed("budget", few, _HOW)

    def ended(self, sent: int) -> None:
        """Take in the end of a request, which sent so many."""
        self._under_way -= 1
        self._sent += sent
        self._changed.set()
