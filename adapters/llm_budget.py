"""What a run may spend: a layer that stops before the call that would exceed it, and one that says what an answer cost."""

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Unpack

from attrs import evolve, frozen

from .llm import BudgetExceeded, Completion, LLMError, NotConfigured, Options, Usage
from .llm_answers import canonical
from .llm_layers import Client, Granted, Layer, Patience

__all__ = ["Budget", "Price", "Priced", "Spent"]

_USUAL_ANSWER = 1024
_NO_LIMIT = 1 << 62
_MORE = "raise the limit, or resume the run with a new one"
_FRAME = 64
"""Tokens that a server's chat template may add around the texts."""
_WORDS = 256
"""Bytes of our own words that ask for an output's shape."""


@frozen
class Price:
    """US dollars per million tokens."""

    prompt: float
    completion: float

    def of(self, usage: Usage) -> float:
        """Return what ``usage`` costs, in US dollars."""
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6


@frozen
class Spent:
    """Calls, tokens, and US dollars (None when no price is known)."""

    calls: int
    usage: Usage
    cost: float | None


class Priced(Layer):
    """Says in ``Completion.cost`` what an answer cost, all its attempts together."""

    def __init__(self, inner: Client, price: Price) -> None:
        super().__init__(inner)
        self._price = price

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer with its cost."""
        answer = await self._inner.generate(prompt, **options)
        return evolve(answer, cost=self._price.of(answer.usage))


class Budget(Layer):
    """Lets calls through while ``max_calls``, ``max_tokens`` and ``max_cost`` (US dollars) are sure to hold.

    Before a call its upper bound is reserved: one call; a prompt token for each byte sent; ``max_tokens`` for the answer.
    A call without ``max_tokens`` gets min(1024, what remains) under a limit on tokens or cost. Afterwards the
    reservation is replaced by the usage reported (by the bytes seen, where a server reports none). While other calls
    are under way, one that does not fit waits for them to be settled. Failed calls count as calls.
    """

    def __init__(
        self,
        inner: Client,
        *,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        price: Price | None = None,
    ) -> None:
        if max_cost is not None and price is None:
            raise NotConfigured(
                "a limit on cost needs the model's price, and none is known",
                hint="give the price per million tokens, or limit --max-tokens instead",
            )
        super().__init__(inner)
        self._max_calls = max_calls
        self._max_tokens = max_tokens
        self._max_cost = max_cost
        self._price = price or Price(0.0, 0.0)
        self._priced = price is not None
        self._calls = 0
        self._usage = Usage()
        self._held = Usage()
        self._under_way = 0
        self._line: deque[asyncio.Future[None]] = deque()

    @property
    def spent(self) -> Spent:
        """What has been spent, calls under way included as calls."""
        return Spent(self._calls, self._usage, self._price.of(self._usage) if self._priced else None)

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer; raise ``BudgetExceeded``, without a call, when it might exceed the budget."""
        started = time.monotonic()
        need = self._need(prompt, options)
        hold = await self._reserved(need)
        self._calls += 1
        self._under_way += 1
        self._held += hold
        Patience.waited(options, time.monotonic() - started)
        self._wake()  # there may be room for another one
        asked: Options = {**options}
        if not need.fixed and hold.completion_tokens:
            asked["max_tokens"] = Granted(hold.completion_tokens)
        used = Usage()
        try:
            answer = await self._inner.generate(prompt, **asked)
            used = answer.usage
            if not used.total and not answer.cached:
                used = Usage(need.prompt, len(answer.text.encode()))
            return answer
        except LLMError as error:
            used = error.usage
            raise
        finally:
            self._under_way -= 1
            self._held = Usage(
                self._held.prompt_tokens - hold.prompt_tokens, self._held.completion_tokens - hold.completion_tokens
            )
            self._usage += used
            self._wake()

    def _need(self, prompt: str, options: Options) -> "_Need":
        """Return what a call may take; its prompt is measured only where that matters."""
        limited = self._max_tokens is not None or self._max_cost is not None
        bound = _prompt_bound(prompt, options) if limited else len(prompt)
        return _Need(bound, options.get("max_tokens", _USUAL_ANSWER), "max_tokens" in options)

    async def _reserved(self, need: "_Need") -> Usage:
        """Return what to reserve, when there is room for it; raise ``BudgetExceeded`` when there will be none."""
        waiting: asyncio.Future[None] | None = None
        while True:
            if self._max_calls is not None and self._calls >= self._max_calls:
                self._wake()
                raise BudgetExceeded(f"the budget of {self._max_calls} calls is used up", hint=_MORE, attempts=0)
            if (hold := self._fit(need)) is not None:
                return hold
            if not self._under_way:
                self._wake()
                raise BudgetExceeded(self._why(need), hint=_MORE, attempts=0)
            first = waiting is not None  # it was woken as the first in the line, and stays that
            waiting = asyncio.get_running_loop().create_future()
            if first:
                self._line.appendleft(waiting)
            else:
                self._line.append(waiting)
            try:
                await waiting
            except asyncio.CancelledError:
                if waiting.done() and not waiting.cancelled():
                    self._wake()
                raise

    def _wake(self) -> None:
        """Let the first in the line look again."""
        while self._line:
            waiting = self._line.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return

    def _left(self, bound: int) -> int:
        """Return how many tokens an answer may have at most, after a prompt of ``bound`` tokens; below 0: none fits."""
        taken = self._usage + self._held
        left = _NO_LIMIT
        if self._max_tokens is not None:
            left = self._max_tokens - taken.total - bound
        if self._max_cost is not None:
            money = self._max_cost - self._price.of(taken) - self._price.of(Usage(bound, 0))
            if money < 0:
                return -1
            if self._price.completion:
                left = min(left, int(money * 1e6 / self._price.completion))
        return left

    def _fit(self, need: "_Need") -> Usage | None:
        """Return what to reserve for a call, None when it does not fit now."""
        if self._max_tokens is None and self._max_cost is None:
            return Usage()
        left = self._left(need.prompt)
        if left >= need.answer or (not need.fixed and left >= 1 and not self._under_way):
            return Usage(need.prompt, min(left, need.answer))
        return None

    def _why(self, need: "_Need") -> str:
        answer = need.answer if need.fixed else 1
        may = f"the next call may take {need.prompt} tokens for the prompt and {answer} for the answer"
        spent = self._usage.total
        if self._max_tokens is not None and self._max_tokens - spent < need.prompt + answer:
            return f"{may}; {max(self._max_tokens - spent, 0)} of {self._max_tokens} are left"
        return f"{may}; that may cost more than is left of {self._max_cost or 0:g} US dollars"


@frozen
class _Need:
    """Upper bounds of a call's tokens; ``fixed`` when the caller named the answer's."""

    prompt: int
    answer: int
    fixed: bool


def _prompt_bound(prompt: str, options: Mapping[str, Any] | Options) -> int:
    """Return an upper bound of the prompt's tokens: a token is at least a byte of what is sent."""
    size = len(prompt.encode(errors="replace")) + len(options.get("system", "").encode(errors="replace")) + _FRAME
    for name in ("schema", "choices"):
        if name in options:
            size += 2 * len(canonical(options.get(name))) + _WORDS
    return size
