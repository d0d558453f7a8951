"""The budget of a run: a layer that refuses calls beyond the limits, and a layer that adds the cost to each answer."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, Unpack

from attrs import define, evolve, field, frozen

from . import BudgetExceeded, Completion, LLMError, NotConfigured, Notice, Options, Tally, Truncated, Usage
from .conversation import earlier_turns
from .json_schema import canonical
from .middleware import Client, Granted, Layer, Patience

USUAL_ANSWER = 1024
"""Maximum number of tokens of an answer under a limit on tokens or cost, if the caller sets no ``max_tokens``."""
LEAST_ANSWER = 64
"""Minimum number of tokens for an answer: with fewer left, no request is sent. It grows to the longest answer of the run so far."""
_NO_LIMIT = 1 << 62
IMAGE_TOKENS = 5_000
"""Assumed maximum number of tokens of an image. Services scale larger images down."""
_FRAME = 64
"""Maximum number of tokens that a server's chat template may add to a prompt."""
_WORDS = 256
"""Maximum number of bytes of the prompt text that requests an output shape, not counting the shape itself."""


@frozen
class Price:
    """US dollars per million prompt and completion tokens.

    ``tiers`` are ``(start, prompt, completion)``, sorted by ``start``. The prices of a tier apply to all tokens of a call with
    more than ``start`` prompt tokens. ``source`` is where the price was looked up ("" if the user gave the price), ``date`` the
    day of the look-up.
    """

    prompt: float
    completion: float
    tiers: tuple[tuple[int, float, float], ...] = ()
    source: str = field(default="", eq=False)
    date: str = field(default="", eq=False)

    @property
    def is_free(self) -> bool:
        """Whether the model is free because it calls no service. A price of 0 that the user gave does not count."""
        return bool(self.source) and not self.date

    def of(self, usage: Usage) -> float:
        """Return the cost of ``usage`` in US dollars. Several attempts of one call are priced as one call."""
        prompt, completion = self.at(usage.prompt_tokens)
        return (usage.prompt_tokens * prompt + usage.completion_tokens * completion) / 1e6

    def of_calls(self, usage: Usage) -> float:
        """Return the cost of many calls, assuming that none of the calls has enough prompt tokens for a higher tier."""
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6

    def at(self, prompt_tokens: int) -> tuple[float, float]:
        """Return the prompt price and the completion price of a call with this number of prompt tokens."""
        found = (self.prompt, self.completion)
        for start, prompt, completion in self.tiers:
            found = (prompt, completion) if prompt_tokens > start else found
        return found

    def line(self, model: str = "") -> str:
        """Return the price in words, such as "price of m: $0.25 + $2 per million tokens (given)"."""
        more = f", more from {self.tiers[0][0]:,} prompt tokens" if self.tiers else ""
        where = f"{self.source}, looked up {self.date}" if self.date else self.source or "given"
        head = f"price of {model}" if model else "price"
        return f"{head}: ${self.prompt:g} + ${self.completion:g} per million tokens{more} ({where})"

    def as_json(self, model: str) -> dict[str, Any]:
        """Return the price of ``model`` as a JSON object; ``date`` is null if the price was not looked up."""
        return {
            "model": model, "prompt": self.prompt, "completion": self.completion,
            "tiers": [list(each) for each in self.tiers], "source": self.source or "given", "date": self.date or None,
        }  # fmt: skip


def price_of_json(data: Mapping[str, Any]) -> tuple[str, Price]:
    """Return the model and the price in an object that ``Price.as_json`` wrote. Raises ``KeyError``, ``TypeError`` or ``ValueError``."""
    tiers = tuple((int(start), float(prompt), float(completion)) for start, prompt, completion in data["tiers"])
    prompt, completion = float(data["prompt"]), float(data["completion"])
    source = "" if data["source"] == "given" else str(data["source"])
    return str(data["model"]), Price(prompt, completion, tiers, source, data["date"] or "")


def has_prices() -> bool:
    """Return whether the package with the prices is installed."""
    return find_spec("genai_prices") is not None


def unknown_price(spec: str) -> NotConfigured:
    """Return the error for a run that limits its cost but has a model ``spec`` ("": a custom client) of unknown price."""
    give = "give --price IN/OUT (price=(IN, OUT) in Python), US dollars per million prompt and completion tokens"
    if not spec:
        return NotConfigured("a limit on cost needs a price, and a custom client has none", hint=give)
    more = "" if has_prices() else ", or look prices up: pip install 'knotwork[prices]'"
    return NotConfigured(f"a limit on cost needs a price, and the price of {spec[:80]} is unknown", hint=give + more)


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


@frozen
class Lease:
    """The part of a budget that a worker may spend: calls, tokens and US dollars (None: no limit)."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None


@define(eq=False)
class Ledger:
    """The limits of a run (None: no limit), and the usage of all its models: calls, tokens and US dollars."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    calls: int = field(default=0, init=False)
    usage: Usage = field(factory=Usage, init=False)
    cost: float = field(default=0.0, init=False)
    unpriced: bool = field(default=False, init=False)
    """Whether a model with an unknown price was used; ``cost`` then covers only the other models."""
    prices: dict[str, Price] = field(factory=dict, init=False)
    """Maps the spec of each opened model, or "custom client", to the price of the model."""
    _held_tokens: int = field(default=0, init=False)
    _held_cost: float = field(default=0.0, init=False)
    _under_way: int = field(default=0, init=False)
    _longest: int = field(default=LEAST_ANSWER, init=False)
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
            raise BudgetExceeded(f"{self._calls} is used up; the last request failed: {notice.reason}", limit="calls")
        if notice.lost:
            if self._left(hold.prompt_tokens, price) < hold.completion_tokens:
                raise BudgetExceeded(
                    f"repeating the request may exceed the budget; the last request failed: {notice.reason}",
                    limit="tokens" if self.max_cost is None else "cost" if self.max_tokens is None else "",
                )
            self.usage += hold
            self.cost += price.of(hold)
        self.calls += 1

    def settle(self, hold: Usage, used: Usage, price: Price) -> None:
        """Replace a reservation by the actual usage of the call."""
        self._under_way -= 1
        self._longest = max(self._longest, used.completion_tokens)
        self._held_tokens -= hold.total
        self._held_cost -= price.of(hold)
        self.usage += used
        self.cost += price.of(used)
        self._wake()

    def lend(self, share: float, calls: int) -> Lease | None:
        """Reserve a ``share`` (0 to 1) of the remaining budget for a worker, and return the lease; None if nothing is left.

        Unless ``share`` is 1, the number of calls in the lease is at least ``calls`` (if that many are left) and at most four
        times ``calls``. The leased budget can't be spent or leased again until ``take_back`` is called.
        """
        lease = Lease()
        if self.max_calls is not None:
            left = self.max_calls - self.calls
            lease = evolve(
                lease, calls=left if share >= 1 else min(left, max(calls, min(int(left * share), 4 * calls)))
            )
        if self.max_tokens is not None:
            lease = evolve(lease, tokens=int((self.max_tokens - self.usage.total - self._held_tokens) * share))
        if self.max_cost is not None:
            lease = evolve(lease, cost=(self.max_cost - self.cost - self._held_cost) * share)
        if any(part is not None and part <= 0 for part in (lease.calls, lease.tokens, lease.cost)):
            return None
        self.calls += lease.calls or 0
        self._held_tokens += lease.tokens or 0
        self._held_cost += lease.cost or 0.0
        return lease

    def take_back(self, lease: Lease, calls: int, usage: Usage, cost: float) -> None:
        """Replace a lease by what its worker has spent. Without this call (a dead worker), all of it counts as spent."""
        self.calls += calls - (lease.calls or 0)
        self._held_tokens -= lease.tokens or 0
        self._held_cost -= lease.cost or 0.0
        self.usage += usage
        self.cost += cost
        self._wake()

    @property
    def exhausted(self) -> str:
        """The reason why the budget does not allow a further call of a worker."""
        if self.max_calls is not None and self.calls >= self.max_calls:
            return f"{self._calls} is used up"
        left = (
            f"the next call may exceed the budget of {self.max_tokens:,} tokens" if self.max_tokens is not None else ""
        )
        return left or f"the next call may exceed the budget of {self.max_cost or 0:g} US dollars"

    def check(self, calls: int, need: Usage, cost: float) -> None:
        """Raise ``BudgetExceeded`` if that many further calls, tokens and US dollars may exceed a limit."""
        if self.max_calls is not None and self.calls + calls > self.max_calls:
            raise BudgetExceeded(
                f"the batch has {calls:,} calls; {max(self.max_calls - self.calls, 0):,} of {self.max_calls:,} are left",
                limit="calls", attempts=0,
            )  # fmt: skip
        if self.max_tokens is not None and self.usage.total + need.total > self.max_tokens:
            left = max(self.max_tokens - self.usage.total, 0)
            raise BudgetExceeded(
                f"the batch may take {need.total:,} tokens; {left:,} of {self.max_tokens:,} are left", limit="tokens", attempts=0
            )  # fmt: skip
        if self.max_cost is not None and self.cost + cost > self.max_cost:
            left_cost = max(self.max_cost - self.cost, 0.0)
            raise BudgetExceeded(
                f"the batch may cost {cost:.4f} US dollars; {left_cost:.4f} of {self.max_cost:g} are left", limit="cost", attempts=0
            )  # fmt: skip

    def charge(self, calls: int, usage: Usage, cost: float) -> None:
        """Count calls that were made outside of the layer ``Budget``."""
        self.calls += calls
        self.usage += usage
        self.cost += cost

    def limit_to(self, lease: Lease) -> None:
        """Limit what is spent from now on to ``lease``, the budget of a worker for its next chunk."""
        self.max_calls = None if lease.calls is None else self.calls + lease.calls
        self.max_tokens = None if lease.tokens is None else self.usage.total + lease.tokens
        self.max_cost = None if lease.cost is None else self.cost + lease.cost

    def _wake(self) -> None:
        """Wake the first waiting call to check again."""
        while self._line:
            waiting = self._line.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return

    def _left(self, bound: int, price: Price) -> int:
        """Return the maximum number of answer tokens for a prompt of ``bound`` tokens; negative if the prompt does not fit."""
        left = _NO_LIMIT
        if self.max_tokens is not None:
            left = self.max_tokens - self.usage.total - self._held_tokens - bound
        if self.max_cost is not None:
            money = self.max_cost - self.cost - self._held_cost - price.of(Usage(bound, 0))
            if money < 0:
                return -1
            if completion := price.at(bound)[1]:
                left = min(left, int(money * 1e6 / completion))
        return left

    def _fit(self, need: "_Need", price: Price) -> Usage | None:
        """Return the reservation for a call; None if the call does not fit now."""
        if not self.limits_size:
            return Usage()
        left = self._left(need.prompt, price)
        if left >= need.answer or (not need.fixed and left >= self._least(need) and not self._under_way):
            return Usage(need.prompt, min(left, need.answer))
        return None

    def _least(self, need: "_Need") -> int:
        """Return the number of tokens without which a call's answer would probably be cut off."""
        return need.answer if need.fixed else min(need.answer, self._longest)

    @property
    def estimate(self) -> str:
        """What a limit on tokens or cost counted for models that report no usage; "" if all usage was reported."""
        if not (self.limits_size and self.usage.estimated):
            return ""
        return "one token per byte was counted where a model reports no usage"

    def _budget_error(self, need: "_Need") -> BudgetExceeded:
        note = f" ({self.estimate})" if self.estimate else ""
        answer = self._least(need)
        may = f"the next call may take {need.prompt} tokens for the prompt and {answer} for the answer"
        spent = self.usage.total
        if self.max_tokens is not None and self.max_tokens - spent < need.prompt + answer:
            left = f"{may}; {max(self.max_tokens - spent, 0)} of {self.max_tokens} are left"
            return BudgetExceeded(left + note, limit="tokens", attempts=0)
        dear = f"{may}; this may exceed what is left of the budget of {self.max_cost or 0:g} US dollars"
        return BudgetExceeded(dear + note, limit="cost", attempts=0)


class Budget(Layer):
    """Makes a call only if it can't exceed the limits of a ledger. Several models can share one ledger.

    Before each call, an upper bound of its usage is reserved: one call, one prompt token per byte sent, and ``max_tokens`` for
    the answer. Under a limit on tokens or cost, the default of ``max_tokens`` is min(1024, remaining). After the call, the
    reported usage replaces the reservation. If the server reports no usage, the received bytes are counted. If the answer was
    lost, the whole reservation counts as usage. Failed calls and the SDK's retries count as calls. A resumed run begins with a
    new ledger, so the limits apply to each process separately.
    """

    def __init__(self, inner: Client, ledger: Ledger, price: Price | None = None, model: str = "") -> None:
        if ledger.max_cost is not None and price is None:
            raise unknown_price(model)
        super().__init__(inner)
        self.ledger = ledger
        ledger.unpriced = ledger.unpriced or price is None
        self._known = price
        self._price = price or Price(0.0, 0.0)

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer; if the call might exceed the budget, raise ``BudgetExceeded`` without a call."""
        started = time.monotonic()
        bound = _prompt_bound(prompt, options) if self.ledger.limits_size else len(prompt)  # measured only if needed
        need = _Need(bound, options.get("max_tokens", USUAL_ANSWER), "max_tokens" in options)
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
            if answer.cached:  # the cache is below this layer, so that no request was sent
                self.ledger.calls -= 1
                tally.calls -= 1
            if (used.estimated or not (used.total or answer.cached)) and self.ledger.limits_size:  # a limit holds
                used = Usage(need.prompt, len((answer.raw or answer.text).encode(errors="replace")), True)
            return answer
        except LLMError as error:
            used = error.usage
            if (
                isinstance(error, Truncated)
                and not error.lost
                and not need.fixed
                and hold.completion_tokens < need.answer
                and self.ledger.limits_size
            ):
                cut = f"the answer was cut off at {hold.completion_tokens:,} tokens, which were left of the budget"
                raise BudgetExceeded(
                    cut, limit="tokens" if self.ledger.max_cost is None else "cost", attempts=error.attempts, usage=used
                ) from error
            if error.lost:  # the usage may be incomplete
                sent = max(hold.prompt_tokens, used.prompt_tokens)
                used = Usage(sent, max(hold.completion_tokens, used.completion_tokens))
            raise
        except asyncio.CancelledError as error:
            if getattr(error, "is_unsent", False):
                self.ledger.calls -= 1
                tally.calls -= 1
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
    """Upper bounds of a call's tokens. ``fixed`` is true if the caller has set the limit of the answer."""

    prompt: int
    answer: int
    fixed: bool


def bound_of(prompt: str, options: Mapping[str, Any] | Options) -> Usage:
    """Return upper bounds of a call's tokens, as ``Budget`` reserves them."""
    return Usage(_prompt_bound(prompt, options), options.get("max_tokens", USUAL_ANSWER))


def _prompt_bound(prompt: str, options: Mapping[str, Any] | Options) -> int:
    """Return an upper bound of the prompt's tokens: one token per byte sent."""
    size = len(prompt.encode(errors="replace")) + len(options.get("system", "").encode(errors="replace")) + _FRAME
    for turn in earlier_turns(options):
        size += len(turn["content"].encode(errors="replace")) + _FRAME
    size += IMAGE_TOKENS * len(options.get("images", ()))
    for name in ("schema", "choices", "tools", "grammar"):
        if name in options:
            size += 2 * len(canonical(options.get(name))) + _WORDS
    return size
