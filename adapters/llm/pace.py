"""The pace of the requests to one model: their rate, the pauses that the server needs, and the end after which no request is sent.

The layer ``Throttled`` has a ``Pace`` for each model. Adapters that repeat requests ask ``PACED`` for the turn of
each repetition. See the table in ``docs/reference/models.md#limits-and-failures``.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

from aiolimiter import AsyncLimiter
from attrs import define, field

from . import BadRequest, LLMError, ModelNotFound, QuotaExhausted, RateLimited, TimedOut, Unavailable, WrongKey

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds without requests after a 429 that asks for no other time, and their maximum. They double as long as no request is accepted."""
PATIENCE = 300.0
"""Seconds after which a server that accepts no request (429) counts as unusable."""
HOLD = 5.0
"""Seconds in which no request is sent to an unusable model. Then one call tries again: a session may outlast the fault."""
AFTER_TIMEOUTS = 3
"""Number of calls without an answer in time after which a model that never answered counts as unusable."""
_AFTER_ANSWERS = 5
"""Number of failed calls in a row after which a model that has answered before counts as unusable."""


@define(eq=False)
class Pace:
    """When requests to a model may be sent. Belongs to one event loop.

    At most ``per_minute`` requests start in a minute (None: no limit); as many as one second allows may start at once. After a 429,
    no request starts for a while. If a request fails because the server can't be reached or fails, only the call that noticed it
    sends requests until the server answers; the others wait. ``clock`` and ``sleep`` are in seconds, ``chance`` is from 0 to 1.
    """

    per_minute: float | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = random.random
    lost: LLMError | None = field(default=None, init=False)
    """The failure because of which no request is sent."""
    _held: float = field(default=0.0, init=False)  # until when no request is sent
    _limiter: AsyncLimiter | None = field(default=None, init=False)
    _answered: bool = field(default=False, init=False)  # whether the model has ever answered
    _failures: int = field(default=0, init=False)  # failed calls since the last answer
    _until: float = field(default=float("-inf"), init=False)  # end of the pause after a 429
    _paused: float = field(default=float("-inf"), init=False)  # when that pause began
    _refused: int = field(default=0, init=False)  # pauses since the last answer
    _since: float = field(default=0.0, init=False)  # when the first of these pauses began
    _probe: "PacedCall | None" = field(default=None, init=False)
    _probed: asyncio.Event = field(factory=asyncio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        if self.per_minute:
            burst = max(1.0, self.per_minute / 60)
            self._limiter = AsyncLimiter(burst, 60 * burst / self.per_minute)

    async def turn(self, call: "PacedCall") -> None:
        """Wait until ``call`` may send its next request. Raises the failure after which no request is sent."""
        while True:
            self._check(call)
            if self._probe is not None and self._probe is not call:
                await self._probed.wait()
            elif (pause := self._until - self.clock()) > 0:
                await self.sleep(pause)
            else:
                break
        if self._limiter is not None:
            await self._limiter.acquire()
            self._check(call)
        call.began = self.clock()

    def unreachable(self, call: "PacedCall") -> None:
        """Note that a request found no server, or a server that fails: until it answers, only ``call`` sends requests."""
        if self._probe is None:
            self._probe = call
            self._probed.clear()

    def refused(self, call: "PacedCall", error: RateLimited) -> str:
        """Begin a pause after a 429; return what happens, or "" if the call fails because no request gets through."""
        now = self.clock()
        if call.began > self._paused:  # an earlier request tells nothing about the server after the pause
            self._since = self._since if self._refused else now
            self._refused += 1
            wait = error.wait or self.wait(self._refused)
            self._paused, self._until = now, now + wait
        if error.wait > PATIENCE or self._until - self._since > PATIENCE:
            error.message += (
                f"; the server asks to wait {error.wait:,.0f} s" if error.wait > PATIENCE
                else f"; no request got through for {now - self._since:,.0f} s"
            )  # fmt: skip
            error.message += " (--rate and --max-concurrency limit the requests)"
            error.args = (error.message,)
            return ""
        return (
            f"{error.message}; sent again in {max(self._until - now, 0):.1f} s (--rate limits the requests per minute)"
        )

    def wait(self, repeats: int) -> float:
        """Return the seconds to wait before a repetition: they double each time, minus a random part of up to a half."""
        return float(min(FIRST_PAUSE * 2 ** (repeats - 1), LONGEST_PAUSE) * (1 - self.chance() / 2))

    def ended(self, call: "PacedCall", error: BaseException | None) -> None:
        """Note the end of a call."""
        if self._probe is call:
            self._probe = None
            self._probed.set()
        if isinstance(error, TimedOut) and (self._answered or call.is_first_try):
            return  # an answer may be slow
        if error is None or (isinstance(error, LLMError) and error.attempts and not _most_failures(error)):
            self._answered, self._failures = True, 0  # an answer that is of no use is an answer too
            if call.began > self._paused:
                self._refused = 0
            if self._probe is not None:
                self._probe = None
                self._probed.set()
        elif isinstance(error, LLMError) and error.attempts and self.lost is None:
            self._failures += 1
            most = _most_failures(error)
            if self._answered and not isinstance(error, QuotaExhausted | RateLimited):
                most = _AFTER_ANSWERS
            if self._failures >= most:
                self.lost, self._held = error, self.clock() + HOLD
            elif self._failures > 1 and not isinstance(error, TimedOut):
                self._until = self.clock() + self.wait(self._failures - 1)

    def _check(self, call: "PacedCall") -> None:
        """Raise the failure of a call that sends no request, or no further request, because the model is unusable."""
        lost = self.lost
        if lost is None:
            return
        if self.clock() >= self._held:
            self.lost, self._refused = None, 0
            return
        error = type(lost)(lost.message if call.is_sent else f"not asked: {lost.message}", hint=lost.hint)
        error.attempts, error.resent = int(call.is_sent), True
        raise error


def _most_failures(error: LLMError) -> int:
    """Return after how many such failures in a row a model that never answered counts as unusable; 0: the model has answered."""
    if isinstance(error, Unavailable):
        return 1 if error.is_unreached else 2
    if isinstance(error, TimedOut):
        return AFTER_TIMEOUTS
    if isinstance(error, BadRequest):
        return int(error.is_wrong_address)
    return int(isinstance(error, WrongKey | QuotaExhausted | ModelNotFound | RateLimited))


@define(eq=False)
class PacedCall:
    """A call under a ``Pace``. ``overloaded`` receives the reason if the server refuses a request because of too many requests."""

    pace: Pace
    overloaded: Callable[[str], None] = lambda reason: None
    began: float = 0.0
    """When its last request was allowed to start."""
    is_sent: bool = False
    """Whether a request was sent."""
    is_first_try: bool = False
    """Whether the call has time for another request if this one gets no answer in time."""


PACED: ContextVar[PacedCall | None] = ContextVar("knotwork_llm_paced_call", default=None)
"""The running call under a pace, for adapters that repeat requests."""
