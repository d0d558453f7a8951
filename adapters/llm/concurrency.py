"""An automatic limit on concurrent calls: it rises while the model answers more calls per second, and falls when the model is overloaded.

``AutomaticLimit`` decides, and the layer ``Throttled`` (``middleware``) applies it. There is one limit for each opened model.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from math import ceil

from attrs import define, field

from . import LLMError

FIRST = 8
"""The number of concurrent calls at the beginning."""
MOST = 256
"""The maximum number of concurrent calls."""
_GROWTH = 1.1
"""Factor by which calls per second must grow after the limit was doubled; otherwise the limit goes back."""
_SLOWER = 3.0
"""Factor by which the 95th percentile of the seconds of a call may grow before the limit is halved."""
_LEAST = 16
"""Minimum number of calls in a measurement; a measurement has at least twice as many calls as the limit."""
_ANSWERS = 10
"""Number of answers without overload after which a fixed limit that was halved rises by one."""
_PAUSE = 60.0
"""Seconds without overload after which a limit that was halved may rise again."""


class AutoConcurrency(int):
    """The upper bound of an automatic limit of concurrent calls; ``AutomaticLimit`` chooses the number below it.

    It is an integer, so it can be used wherever a number of concurrent calls is expected; only the limit of the model is automatic.
    """

    def __new__(cls, most: int = MOST) -> "AutoConcurrency":
        """Return the maximum as a number that is marked as automatic."""
        return super().__new__(cls, most)


@define(eq=False)
class AutomaticLimit:
    """Admits at most ``limit`` calls at once, and adapts ``limit`` to the model.

    The limit begins at ``FIRST``. While calls wait for their turn, the calls per second at each limit are measured. The limit
    is doubled as long as they grow by more than 10 %; otherwise the limit before the last doubling is kept. The limit is halved
    if the server answers 429 or 503, if a call times out, or if the 95th percentile of the seconds of a call triples. After 60 s without
    such an overload, a halved limit may rise again. Belongs to one event loop; ``clock`` returns seconds.

    If ``is_fixed``, the limit begins at ``most``; only a server that answers 429 or 503 halves it, and each ten answers without
    overload raise it by one.
    """

    most: int = MOST
    clock: Callable[[], float] = time.monotonic
    is_fixed: bool = False
    limit: int = field(init=False)
    rate: float = field(default=0.0, init=False)
    """Calls per second at the last complete measurement; 0 before."""
    highest: int = field(init=False)
    """The highest limit so far."""
    halved: int = field(default=0, init=False)
    """Number of times that the limit was halved."""
    reason: str = field(default="", init=False)
    """The reason why the limit was last halved; "" if it never was."""
    _calls: int = field(default=0, init=False)
    _active: int = field(default=0, init=False)
    _waiting: "deque[asyncio.Future[None]]" = field(factory=deque, init=False)
    _rises: bool = field(default=True, init=False)
    _before: tuple[int, float, float] | None = field(default=None, init=False)
    """Limit, calls per second and 95th percentile before the last doubling."""
    _changed: float = field(default=float("-inf"), init=False)
    """When the limit last changed; calls that began earlier are not measured, and their overload was already considered."""
    _overload: float = field(default=float("-inf"), init=False)
    _began: float | None = field(default=None, init=False)
    """When the measurement began; None if it has not begun."""
    _took: list[float] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.limit = self.highest = self.most if self.is_fixed else min(FIRST, self.most)

    @property
    def is_used(self) -> bool:
        """Whether a call was made."""
        return self._calls > 0

    async def begin(self, *, is_first: bool = False) -> float:
        """Wait for the turn of a call, before all that wait if ``is_first``, and return the time when it began."""
        if self._active >= self.limit or (self._waiting and not is_first):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            (self._waiting.appendleft if is_first else self._waiting.append)(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():  # the turn came, and is passed on
                    self._active -= 1
                    self.admit()
                raise
        else:
            self._active += 1
        self._calls += 1
        return self.clock()

    def end(self, began: float, error: BaseException | None = None, *, is_repeated: bool = False) -> None:
        """Note that a call has ended, and admit others. ``error`` is what it raised.

        If ``is_repeated``, nothing is admitted, because the call itself begins again; if it does not, ``admit`` is called.
        """
        if error is None:
            if not self.is_fixed:
                self._measure(began)
            elif self.limit < self.most:
                self._recover(began)
        elif isinstance(error, LLMError) and (
            error.kind == "rate_limit" or (error.kind == "timeout" and not self.is_fixed)
        ):
            self.overloaded(began, error.message)
        self._active -= 1
        if not is_repeated:
            self.admit()

    def overloaded(self, began: float, reason: str) -> None:
        """Halve the limit, unless the call began before the last change: such calls tell nothing about the present limit."""
        self._overload = self.clock()
        if began <= self._changed:
            return
        self.reason, self._rises, self._before = reason, False, None
        if self.limit > 1:
            self.halved += 1
        self._set(max(1, min(self.limit, self._active) // 2))

    def summary(self, model: str) -> str:
        """Return a sentence about the limit at the end of a run."""
        speed = f", {self.rate:,.1f} calls/s" if self.rate else ""
        fell = f"; halved {self.halved} time{'s' * (self.halved != 1)}, the last time because of: {self.reason}"
        return (
            f"automatic concurrency of {model}: {self.limit} calls at once at the end{speed}, {self.highest} at most"
            + (fell if self.halved else "")
        )

    def _recover(self, began: float) -> None:
        """Raise a fixed limit that was halved by one, after ten answers to calls that began since its last change."""
        if began > self._changed:
            self._took.append(began)
            if len(self._took) >= _ANSWERS:
                self._set(self.limit + 1)

    def _measure(self, began: float) -> None:
        now = self.clock()
        if not self._waiting:  # too little work to say what a higher limit would bring
            self._began, self._took = None, []
            return
        if began <= self._changed:
            return
        if self._began is None:
            self._began = now  # the measurement begins and ends with the end of a call
            return
        self._took.append(now - began)
        if len(self._took) < max(_LEAST, 2 * self.limit) or now <= self._began:
            return
        self.rate, slow = len(self._took) / (now - self._began), _p95(self._took)
        self._began, self._took = None, []
        self._decide(slow)

    def _decide(self, slow: float) -> None:
        """Change the limit after a measurement."""
        if self._before is not None:
            limit, rate, earlier = self._before
            if slow > _SLOWER * earlier:
                self.overloaded(
                    float("inf"), f"95 % of the calls took up to {slow:.2f} s, before up to {earlier:.2f} s"
                )
                return
            if self._rises and self.rate <= _GROWTH * rate:
                self._rises, self.rate = False, rate
                self._set(limit)
                return
        if not self._rises and self.halved and self.clock() - self._overload >= _PAUSE:
            self._rises = True
        if self._before is None or self._rises:
            self._before = (self.limit, self.rate, slow)
        if self._rises and self.limit < self.most:
            self._set(min(self.most, 2 * self.limit))

    def _set(self, limit: int) -> None:
        self.limit, self._changed = limit, self.clock()
        self.highest = max(self.highest, limit)
        self._began, self._took = None, []
        self.admit()

    def admit(self) -> None:
        """Admit waiting calls."""
        while self._waiting and self._active < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self._active += 1
                turn.set_result(None)


def _p95(took: Sequence[float]) -> float:
    """Return the 95th percentile (nearest rank)."""
    return sorted(took)[max(0, ceil(0.95 * len(took)) - 1)]
