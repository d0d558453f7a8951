"""Run budgets: a layer that refuses calls beyond the limits, and a layer that adds the cost to answers."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Unpack

from attrs import define, evolve, field, frozen

from . import BudgetExceeded, Completion, LLMError, NotConfigured, Notice, Options, Tally, Usage
from .json_schema import canonical
from .middleware import Client, Granted, Layer, Patience

_USUAL_ANSWER = 1024
_NO_LIMIT = 1 << 62
_FRAME = 64
"""Tokens that a server's chat template may add around the texts."""
_WORDS = 256
"""Maximum bytes, without the shape itself, of the prompt text that requests an output's shape."""


@frozen
class Price:
    """US dollars per million tokens."""

    prompt: float
    completion: float

    def of(self, usage: Usage) -> float:
        """Return the cost of ``usage`` in US dollars."""
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6


class Priced(Layer):
    """Sets the cost of an answer or of a failed call; the cost includes all attempts."""

    def __init__(self, inner: Client, price: Price) -> None:
        super().__init__(inner)
        self._price = price

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer with its cost."""
        try:
            answer = await self._inner.generate(prompt, **options)
        except LLMError as error:
            error.cost = self._price.of(error.usage)
            raise
        return evolve(answer, cost=self._price.of(answer.usage))


@define(eq=False)
class Ledger:
    """The limits of a run and its use by all models: calls, tokens and US dollars (None: no limit)."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    calls: int = field(default=0, init=False)
    usage: Usage = field(factory=Usage, init=False)
    cost: float = field(default=0.0, init=False)
    unpriced: bool = field(default=False, init=False)
    """Whether a model with an unknown price was used; ``cost`` then covers only the other models."""
    _held_tokens: int = field(default=0, init=False)
    _held_cost: float = field(default=0.0, init=False)
    _under_way: int = field(default=0, init=False)
    _line: deque[asyncio.Future[None]] = field(factory=deque, init=False)

    @property
    def limits_size(self) -> bool:
        """Whether a limit depends on the size of calls (tokens or cost)."""
        return self.max_tokens is not None or self.max_cost is not None

    @property
    def _calls(self) -> str:
        return f"the budget of {self.max_calls} call{'' if self.max_calls == 1 else 's'}"

    async def reserve(self, need: "_Need", price: Price) -> Usage:
        """Reserve budget for a call and return the reservation; raise ``BudgetExceeded`` if it can never fit.

        While other calls are running, a call that does not fit waits until they are settled.
        """
        waiting: asyncio.Future[None] | None = None
        while True:
            if self.max_calls is not None and self.calls >= self.max_calls:
                self._wake()
                raise BudgetExceeded(f"{self._calls} is used up", limit="calls", attempts=0)
            if (hold := self._fit(need, price)) is not None:
                self.calls += 1
                self._under_way += 1
                self._held_tokens += hold.total
                self._held_cost += price.of(hold)
                self._wake()  # another call may fit
                return hold
            if not self._under_way:
                self._wake()
                raise self._budget_error(need)
            first = waiting is not None  # this call was woken as the first in the queue and keeps that place
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

    def again(self, hold: Usage, price: Price, notice: Notice) -> None:
        """Count a request that is about to be repeated; raise ``BudgetExceeded`` if the budget does not suffice.

        If the server may have answered the previous request (``notice.lost``), the reservation counts as spent.
        """
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise BudgetExceeded(f"{self._calls} is used up, after {notice.reason}", limit="calls")
        if notice.lost:
            if self._left(hold.prompt_tokens, price) < hold.completion_tokens:
                raise BudgetExceeded(
                    f"repeating the request may exceed the budget, after {notice.reason}",
                    limit="tokens" if self.max_cost is None else "cost" if self.max_tokens is None else "",
                )
            self.usage += hold
            self.cost += price.of(hold)
        self.calls += 1

    def settle(self, hold: Usage, used: Usage, price: Price) -> None:
        """Replace a reservation by the actual usage of the call."""
        self._under_way -= 1
        self._held_tokens -= hold.total
        self._held_cost -= price.of(hold)
        self.usage += used
        self.cost += price.of(used)
        self._wake()

    def _wake(self) -> None:
        """Wake the first waiting call to check again."""
        while self._line:
            waiting = self._line.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return

    def _left(self, bound: int, price: Price) -> int:
        """Return the maximum tokens of an answer to a prompt of ``bound`` tokens; negative if the prompt does not fit."""
        left = _NO_LIMIT
        if self.max_tokens is not None:
            left = self.max_tokens - self.usage.total - self._held_tokens - bound
        if self.max_cost is not None:
            money = self.max_cost - self.cost - self._held_cost - price.of(Usage(bound, 0))
            if money < 0:
                return -1
            if price.completion:
                left = min(left, int(money * 1e6 / price.completion))
        return left

    def _fit(self, need: "_Need", price: Price) -> Usage | None:
        """Return the reservation for a call, None if it does not fit now."""
        if not self.limits_size:
            return Usage()
        left = self._left(need.prompt, price)
        if left >= need.answer or (not need.fixed and left >= 1 and not self._under_way):
            return Usage(need.prompt, min(left, need.answer))
        return None

    def _budget_error(self, need: "_Need") -> BudgetExceeded:
        answer = need.answer if need.fixed else 1
        may = f"the next call may take {need.prompt} tokens for the prompt and {answer} for the answer"
        spent = self.usage.total
        if self.max_tokens is not None and self.max_tokens - spent < need.prompt + answer:
            left = f"{may}; {max(self.max_tokens - spent, 0)} of {self.max_tokens} are left"
            return BudgetExceeded(left, limit="tokens", attempts=0)
        dear = f"{may}; this may cost more than what is left of {self.max_cost or 0:g} US dollars"
        return BudgetExceeded(dear, limit="cost", attempts=0)


class Budget(Layer):
    """Makes a call only if it can't exceed the limits of a ledger. Several models can share one ledger.

    Before a call, its upper bound is reserved: one call, one prompt token per byte sent, and ``max_tokens`` for the answer.
    Under a limit on tokens or cost, the default of ``max_tokens`` is min(1024, remaining). After the call, the reported usage
    replaces the reservation. If the server reports no usage, the bytes received are counted; if the answer was lost, the
    reservation stays. Failed calls and the SDK's retries count as calls. A resumed run has its own ledger, so the limits apply to
    one process.
    """

    def __init__(self, inner: Client, ledger: Ledger, price: Price | None = None) -> None:
        if ledger.max_cost is not None and price is None:
            raise NotConfigured(
                "a limit on cost needs the model's price, which is unknown",
                hint="give the price per million tokens, or limit --max-tokens instead",
            )
        super().__init__(inner)
        self.ledger = ledger
        ledger.unpriced = ledger.unpriced or price is None
        self._known = price
        self._price = price or Price(0.0, 0.0)

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer; if the call might exceed the budget, raise ``BudgetExceeded`` without a call."""
        started = time.monotonic()
        bound = _prompt_bound(prompt, options) if self.ledger.limits_size else len(prompt)  # measured only if needed
        need = _Need(bound, options.get("max_tokens", _USUAL_ANSWER), "max_tokens" in options)
        hold = await self.ledger.reserve(need, self._price)
        Patience.waited(options, time.monotonic() - started)
        asked: Options = {**options}
        tally = asked.pop("tally", None) or Tally()
        tally.request()
        if not need.fixed and hold.completion_tokens:
            asked["max_tokens"] = Granted(hold.completion_tokens)
        asked["notify"] = self._notify_ledger(options, hold, tally)
        used = Usage()
        try:
            answer = await self._inner.generate(prompt, **asked)
            used = answer.usage
            if not used.total and not answer.cached:
                used = Usage(need.prompt, len(answer.text.encode()))
            return answer
        except LLMError as error:
            used = error.usage
            if error.lost:  # the usage may be incomplete
                sent = max(hold.prompt_tokens, used.prompt_tokens)
                used = Usage(sent, max(hold.completion_tokens, used.completion_tokens))
            raise
        finally:
            self.ledger.settle(hold, used, self._price)
            tally.took(used, self._cost(used))

    def _notify_ledger(self, options: Options, hold: Usage, tally: Tally) -> Callable[[Notice], None]:
        listener = options.get("notify")

        def notify(notice: Notice) -> None:
            if notice.kind == "retry":
                self.ledger.again(hold, self._price, notice)
                tally.request()
                if notice.lost:
                    tally.took(hold, self._cost(hold))
            if listener is not None:
                listener(notice)

        return notify

    def _cost(self, used: Usage) -> float | None:
        """Return the cost of ``used``; None if the price is unknown."""
        return None if self._known is None else self._known.of(used)


@frozen
class _Need:
    """Upper bounds of a call's tokens. ``fixed``: the limit of the answer was set by the caller."""

    prompt: int
    answer: int
    fixed: bool


def _prompt_bound(prompt: str, options: Mapping[str, Any] | Options) -> int:
    """Return an upper bound of the prompt's tokens: one token per byte sent."""
    size = len(prompt.encode(errors="replace")) + len(options.get("system", "").encode(errors="replace")) + _FRAME
    for name in ("schema", "choices", "tools", "grammar"):
        if name in options:
            size += 2 * len(canonical(options.get(name))) + _WORDS
    return size
