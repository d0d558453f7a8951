"""Who may begin a run now: places for runs, of one key and of all, a key's requests a minute, and the door that shutdown closes."""

import asyncio
import math
from collections import Counter
from types import TracebackType

from aiolimiter import AsyncLimiter
from attrs import define, field, frozen

from .problems import SHUTTING_DOWN, Problem
from .server_settings import Limits

__all__ = ["LOCAL", "Gate", "Place", "Who"]

_MINUTE = 60.0
_SOON = 5
"""Seconds after which a client may ask again where nobody knows better."""


@frozen
class Who:
    """Whose request it is: the key's id, under which its runs are kept, and its name. Without keys all are ``LOCAL``."""

    id: str
    name: str


LOCAL = Who("local", "local")
"""Everybody, where no keys are needed."""


@define(eq=False)
class Place:
    """A run's place. ``cancel`` is set when the run must end: shutdown is out of patience. ``leave`` (or ``with``) gives it back."""

    who: Who
    cancel: asyncio.Event = field(factory=asyncio.Event)
    _gate: "Gate | None" = None

    def leave(self) -> None:
        """Give the place back; again is no fault."""
        if self._gate is not None:
            self._gate._left(self)
            self._gate = None

    def __enter__(self) -> "Place":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.leave()


@define(eq=False)
class Gate:
    """Counts runs and requests. It belongs to one event loop."""

    limits: Limits
    closing: bool = False
    _places: set[Place] = field(factory=set)
    _of: Counter[str] = field(factory=Counter)
    _rates: dict[str, AsyncLimiter] = field(factory=dict)
    _empty: asyncio.Event = field(factory=asyncio.Event)

    @property
    def runs(self) -> int:
        """How many runs are under way."""
        return len(self._places)

    def check_open(self) -> None:
        """Raise ``Problem`` (503) once no more runs are begun."""
        if self.closing:
            raise Problem(*SHUTTING_DOWN, "no new runs are begun", {"Retry-After": str(_SOON)})

    def take(self, who: Who) -> Place:
        """Return a place for a run. Raises ``Problem``: 429 where the key has its share, 503 where all are taken or at shutdown."""
        self.check_open()
        if who is not LOCAL and self._of[who.id] >= self.limits.runs_per_key:
            raise Problem(
                "too-many-runs", 429, "The key has too many runs under way",
                f"a key may have {self.limits.runs_per_key} at once; wait for one, or cancel one", {"Retry-After": str(_SOON)},
            )  # fmt: skip
        if len(self._places) >= self.limits.runs:
            raise Problem(
                "busy", 503, "The server has as many runs as it can take",
                f"{self.limits.runs} are under way; ask again later", {"Retry-After": str(_SOON)},
            )  # fmt: skip
        place = Place(who, gate=self)
        self._places.add(place)
        self._of[who.id] += 1
        self._empty.clear()
        return place

    def _left(self, place: Place) -> None:
        self._places.discard(place)
        self._of[place.who.id] -= 1
        if not self._of[place.who.id]:
            del self._of[place.who.id]
        if not self._places:
            self._empty.set()

    async def admit(self, who: Who) -> None:
        """Count a request of ``who``. Raises ``Problem`` (429) where the key has had its requests of this minute."""
        if who is LOCAL:
            return
        limiter = self._rates.get(who.id)
        if limiter is None:
            limiter = self._rates[who.id] = AsyncLimiter(self.limits.rate, _MINUTE)
        if not limiter.has_capacity():
            wait = math.ceil(_MINUTE / self.limits.rate)
            raise Problem(
                "too-many-requests", 429, "The key asks too often", f"a key may ask {self.limits.rate:g} times a minute",
                {"Retry-After": str(max(1, wait))},
            )  # fmt: skip
        await limiter.acquire()  # there is room, so it does not wait

    def close(self) -> None:
        """Begin no more runs."""
        self.closing = True

    def cancel_all(self) -> None:
        """Have every run end now."""
        for place in list(self._places):
            place.cancel.set()

    async def emptied(self, seconds: float) -> bool:
        """Wait until no run is under way, ``seconds`` at most; say whether that is so."""
        if not self._places:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True
