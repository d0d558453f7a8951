"""The layer that lets calls to a model wait: for the rate, for a free place, and after failures of the server."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Unpack

from attrs import evolve

from . import BudgetExceeded, Completion, LLMError, Notice, Options, RateLimited, Unavailable
from .concurrency import AutoConcurrency, AutomaticLimit
from .middleware import TIMEOUT, Client, Layer, Patience
from .pace import PACED, Pace, PacedCall

_UNLIMITED = 1 << 30


class Throttled(Layer):
    """Allows at most ``max_concurrency`` concurrent calls and ``per_minute`` requests per minute; None means no limit.

    Every request waits for its turn, repetitions too. After a 429, no request starts for a while, fewer calls run at once, and the
    request is sent again until it gets through. If the model can't be reached, refuses the key or is not a model, the calls after
    a few failures fail without a request (``Pace``). ``repeats`` is the number of times that this layer repeats a request after
    ``Unavailable``; the adapters do this themselves, so it is 0 except for custom clients.

    For an ``AutoConcurrency``, ``automatic`` is the limit on concurrent calls, which adapts to the model. When the client is
    closed, ``tell`` receives a sentence about it, which names ``model``. Waiting time does not count against the call's timeout.
    """

    def __init__(
        self, inner: Client, *, max_concurrency: int | None = None, per_minute: float | None = None, model: str = "",
        tell: Callable[[str], None] | None = None, repeats: int = 0, pace: Pace | None = None,
    ) -> None:  # fmt: skip
        super().__init__(inner)
        self._model, self._tell, self._repeats = model, tell, repeats
        is_automatic = isinstance(max_concurrency, AutoConcurrency)
        self._limit = AutomaticLimit(max_concurrency or _UNLIMITED, is_fixed=not is_automatic)
        self.automatic = self._limit if is_automatic else None
        self._pace = pace or Pace(per_minute)

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Wait for this call's turn and return the inner client's answer."""
        return await self._ask(None, prompt, options)

    async def generate_after(self, failure: LLMError, prompt: str, **options: Unpack[Options]) -> Completion:
        """Continue a call whose first request, which the caller made, failed with ``failure``."""
        return await self._ask(failure, prompt, options)

    async def _ask(self, failure: LLMError | None, prompt: str, options: Options) -> Completion:
        timeout = options.get("timeout", TIMEOUT)
        call = PacedCall(self._pace, is_first_try=isinstance(timeout, Patience) and timeout.whole > timeout)
        error: BaseException | None = None
        token = PACED.set(call)
        try:
            try:
                if failure is not None:
                    raise failure
                return await self._once(call, prompt, options)
            except (RateLimited, Unavailable) as temporary:
                return await self._repeated(call, temporary, prompt, options)
        except BaseException as raised:
            error = raised
            self._limit.admit()
            if isinstance(raised, asyncio.CancelledError) and not call.is_sent:
                raised.is_unsent = True  # type: ignore[attr-defined]  # for callers that count what was sent
            raise
        finally:
            PACED.reset(token)
            self._pace.ended(call, error)

    async def _once(self, call: PacedCall, prompt: str, options: Options, *, is_first: bool = False) -> Completion:
        """Wait for a turn, before the other waiting calls if ``is_first``, and make the call once."""
        started = time.monotonic()
        error: BaseException | None = None
        began = await self._limit.begin(is_first=is_first)
        call.overloaded = partial(self._limit.overloaded, began)
        try:
            await self._pace.turn(call)
            Patience.waited(options, time.monotonic() - started)
            call.is_sent = True
            return await self._inner.generate(prompt, **options)
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._limit.end(began, error, is_repeated=isinstance(error, RateLimited) and not error.resent)

    async def _repeated(self, call: PacedCall, error: LLMError, prompt: str, options: Options) -> Completion:
        """Repeat a call that failed for a temporary reason, until it is answered or fails for good."""
        attempts, repeats, pace = error.attempts, 0, self._pace
        while True:
            call.is_sent = call.is_sent or error.attempts > 0
            reason = ""
            if isinstance(error, RateLimited) and not error.resent:
                reason = pace.refused(call, error)
            elif repeats < self._repeats and not error.resent:
                repeats, reason = repeats + 1, error.message
                pace.unreachable(call)
                await pace.sleep(pace.wait(repeats))
            if not reason:
                error.attempts, error.resent = attempts, True
                raise error
            try:
                if (notify := options.get("notify")) is not None:
                    notify(Notice("retry", attempts + 1, reason))
                answer = await self._once(call, prompt, options, is_first=True)
                return evolve(answer, attempts=attempts + answer.attempts)
            except LLMError as failure:
                error = failure
            if not isinstance(error, BudgetExceeded):
                attempts += error.attempts
            if not isinstance(error, RateLimited | Unavailable):
                error.attempts = attempts
                raise error

    def tell_limit(self) -> None:
        """Report once what the automatic limit has settled on."""
        if self.automatic is not None and self.automatic.is_used and self._tell is not None:
            self._tell(self.automatic.summary(self._model))
        self._tell = None

    async def aclose(self) -> None:
        """Report the automatic limit, and close the inner client."""
        self.tell_limit()
        await self._inner.aclose()
