"""What a run may spend: a layer that stops before the call that would exceed it, and one that says what an answer cost."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Unpack

from attrs import define, evolve, field, frozen

from . import BudgetExceeded, Completion, LLMError, NotConfigured, Notice, Options, Tally, Usage
from .answers import canonical
from .middleware import Client, Granted, Layer, Patience

__all__ = ["Budget", "Ledger", "Price", "Priced"]

_USUAL_ANSWER = 1024
_NO_LIMIT = 1 << 62
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


class Priced(Layer):
    """Says in ``Completion.cost`` what an answer cost, all its attempts together."""

    def __init__(self, inner: Client, price: Price) -> None:
        super().__init__(inner)
        self._price = price

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer with its cost."""
        answer = await self._inner.generate(prompt, **options)
        return evolve(answer, cost=self._price.of(answer.usage))


@define(eq=False)
class Ledger:
    """What a run may spend and has spent, all its models together: limits on calls, tokens and US dollars (None: no limit)."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    calls: int = field(default=0, init=False)
    usage: Usage = field(factory=Usage, init=False)
    cost: float = field(default=0.0, init=False)
    unpriced: bool = field(default=False, init=False)
    """Whether a model was asked whose price is not known: ``cost`` is what the others cost."""
    _held_tokens: int = field(default=0, init=False)
    _held_cost: float = field(default=0.0, init=False)
    _under_way: int = field(default=0, init=False)
    _line: deque[asyncio.Future[None]] = field(factory=deque, init=False)

    @property
    def limits_size(self) -> bool:
        """Whether it matters how large a call is."""
        return self.max_tokens is not None or self.max_cost is not None

    @property
    def _calls(self) -> str:
        return f"the budget of {self.max_calls} call{'' if self.max_calls == 1 else 's'}"

    async def reserve(self, need: "_Need", price: Price) -> Usage:
        """Reserve room for a call and return it; raise ``BudgetExceeded`` when there will be none.

        While other calls are under way, one that does not fit waits for them to be settled.
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
                self._wake()  # there may be room for another one
                return hold
            if not self._under_way:
                self._wake()
                raise self._exceeded(need)
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

    def again(self, hold: Usage, price: Price, notice: Notice) -> None:
        """Count a request that is about to be sent again; raise ``BudgetExceeded`` when there is no room for it.

        Where the answer to the one before may only have been lost on the way, its reservation counts as spent.
        """
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise BudgetExceeded(f"{self._calls} is used up, after {notice.reason}", limit="calls")
        if notice.lost:
            if self._left(hold.prompt_tokens, price) < hold.completion_tokens:
                raise BudgetExceeded(
                    f"asking again may exceed the budget, after {notice.reason}",
                    limit="tokens" if self.max_cost is None else "cost" if self.max_tokens is None else "",
                )
            self.usage += hold
            self.cost += price.of(hold)
        self.calls += 1

    def settle(self, hold: Usage, used: Usage, price: Price) -> None:
        """Replace a reservation by what the call took."""
        self._under_way -= 1
        self._held_tokens -= hold.total
        self._held_cost -= price.of(hold)
        self.usage += used
        self.cost += price.of(used)
        self._wake()

    def _wake(self) -> None:
        """Let the first in the line look again."""
        while self._line:
            waiting = self._line.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return

    def _left(self, bound: int, price: Price) -> int:
        """Return how many tokens an answer may have at most, after a prompt of ``bound`` tokens; below 0: none fits."""
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
        """Return what to reserve for a call, None when it does not fit now."""
        if not self.limits_size:
            return Usage()
        left = self._left(need.prompt, price)
        if left >= need.answer or (not need.fixed and left >= 1 and not self._under_way):
            return Usage(need.prompt, min(left, need.answer))
        return None

    def _exceeded(self, need: "_Need") -> BudgetExceeded:
        answer = need.answer if need.fixed else 1
        may = f"the next call may take {need.prompt} tokens for the prompt and {answer} for the answer"
        spent = self.usage.total
        if self.max_tokens is not None and self.max_tokens - spent < need.prompt + answer:
            left = f"{may}; {max(self.max_tokens - spent, 0)} of {self.max_tokens} are left"
            return BudgetExceeded(left, limit="tokens", attempts=0)
        dear = f"{may}; that may cost more than is left of {self.max_cost or 0:g} US dollars"
        return BudgetExceeded(dear, limit="cost", attempts=0)


class Budget(Layer):
    """Lets calls through while the limits of a ledger are sure to hold. Several models can share one ledger.

    Before a call its upper bound is reserved: one call; a prompt token for each byte sent; ``max_tokens`` for the answer.
    A call without ``max_tokens`` gets min(1024, what remains) under a limit on tokens or cost. Afterwards the
    reservation is replaced by the usage reported (by the bytes seen, where a server reports none; the reservation
    itself, where the answer was lost on the way). Failed calls and the SDK's retries count as calls. A resumed run has a
    ledger of its own: the limits are those of one process.
    """

    def __init__(self, inner: Client, ledger: Ledger, price: Price | None = None) -> None:
        if ledger.max_cost is not None and price is None:
            raise NotConfigured(
                "a limit on cost needs the model's price, and none is known",
                hint="give the price per million tokens, or limit --max-tokens instead",
            )
        super().__init__(inner)
        self.ledger = ledger
        ledger.unpriced = ledger.unpriced or price is None
        self._known = price
        self._price = price or Price(0.0, 0.0)

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer; raise ``BudgetExceeded``, without a call, when it might exceed the budget."""
        started = time.monotonic()
        need = self._need(prompt, options)
        hold = await self.ledger.reserve(need, self._price)
        Patience.waited(options, time.monotonic() - started)
        asked: Options = {**options}
        tally = asked.pop("tally", None) or Tally()
        tally.request()
        if not need.fixed and hold.completion_tokens:
            asked["max_tokens"] = Granted(hold.completion_tokens)
        asked["notify"] = self._listening(options, hold, tally)
        used = Usage()
        try:
            answer = await self._inner.generate(prompt, **asked)
            used = answer.usage
            if not used.total and not answer.cached:
                used = Usage(need.prompt, len(answer.text.encode()))
            return answer
        except LLMError as error:
            used = _larger(hold, error.usage) if error.lost else error.usage
            raise
        finally:
            self.ledger.settle(hold, used, self._price)
            tally.took(used, self._cost(used))

    def _listening(self, options: Options, hold: Usage, tally: Tally) -> Callable[[Notice], None]:
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
        """Return what ``used`` costs; None where the price is not known."""
        return None if self._known is None else self._known.of(used)

    def _need(self, prompt: str, options: Options) -> "_Need":
        """Return what a call may take; its prompt is measured only where that matters."""
        bound = _prompt_bound(prompt, options) if self.ledger.limits_size else len(prompt)
        return _Need(bound, options.get("max_tokens", _USUAL_ANSWER), "max_tokens" in options)


def _larger(hold: Usage, told: Usage) -> Usage:
    """Return what counts for an answer that was lost after a part of its usage had been told."""
    return Usage(max(hold.prompt_tokens, told.prompt_tokens), max(hold.completion_tokens, told.completion_tokens))


@frozen
class _Need:
    """Upper bounds of a call's tokens; ``fixed`` when the caller named the answer's."""

    prompt: int
    answer: int
    fixed: bool


def _prompt_bound(prompt: str, options: Mapping[str, Any] | Options) -> int:
    """Return an upper bound of the prompt's tokens: a token is at least a byte of what is sent."""
    size = len(prompt.encode(errors="replace")) + len(options.get("system", "").encode(errors="replace")) + _FRAME
    for name in ("schema", "choices", "tools", "grammar"):
        if name in options:
            size += 2 * len(canonical(options.get(name))) + _WORDS
    return size
