"""Measures the tokens of a seed's calls on a random sample of its reviews, and extrapolates to all reviews that the filter keeps.

The sample's calls are real and paid. The estimate (``cost_estimate``) is scaled by the ratio of measured to estimated tokens in the sample
(a ratio estimator), so that a few long reviews do not distort it; the interval is a bootstrap over the sampled reviews.
"""

import asyncio
import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, evolve, field
from blake3 import blake3

from ...adapters.llm import Completion, LLMError, Usage
from ...adapters.llm.budget import Price
from ...adapters.llm.middleware import as_client
from ...lang.trees.seed import FormulaSeed
from .cost_estimate import Estimate, Range, TokenSample, estimate
from .declared_meta import with_declared_meta
from .extraction import Extractor
from .reviews import Context, Review, ReviewFilter, read_context

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESAMPLES = 2_000
LEAST = 5
"""Minimum number of measured reviews for an interval."""


@define
class ReviewPicker:
    """Picks ``count`` of the kept reviews of a stream of contexts at random, in constant memory.

    A review's place in the random order depends only on ``random_state``, the context's name and index, and the review's index.
    A larger sample therefore contains every smaller one, and the calls of the smaller one may already be in the cache.
    """

    seed: FormulaSeed
    count: int
    random_state: int = 0
    _heap: list[tuple[int, int, int, Context, Review]] = field(factory=list)

    def watch(self, contexts: Iterable[Any]) -> Iterator[Context]:
        """Yield all contexts, parsed and with their declared metadata, and consider their reviews. Raises ``ContextError``."""
        keeper = ReviewFilter.of(self.seed)
        for number, data in enumerate(contexts):
            context = with_declared_meta(
                data if isinstance(data, Context) else read_context(data, number), self.seed.meta
            )
            for review in context.reviews:
                if not review.fault and keeper.keeps(review.text):
                    self._consider(context, review)
            yield context

    def picked(self) -> list[tuple[Context, Review]]:
        """Return the picked reviews in their random order."""
        return [(context, review) for *_, context, review in sorted(self._heap, key=lambda each: -each[0])]

    def _consider(self, context: Context, review: Review) -> None:
        key = f"{self.random_state}\0{context.name}\0{context.index}\0{review.index}".encode(errors="replace")
        order = int.from_bytes(blake3(key).digest(length=8))
        entry = (-order, -context.index, -review.index, context, review)
        if len(self._heap) < self.count:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heappushpop(self._heap, entry)


async def measure(
    seed: FormulaSeed,
    picked: Sequence[tuple[Context, Review]],
    llm: Any,
    found: Estimate,
    *,
    model: str = "",
    price: Price | None = None,
    max_concurrency: int = 8,
    strict_types: bool = False,
) -> TokenSample:
    """Extract the fields of the picked reviews with ``llm``; extrapolate their tokens to all kept reviews. The calls are paid.

    ``found`` is the estimate for all reviews. ``model`` is the client's spec. The extractions are discarded; if ``llm`` has a
    cache, the cache keeps the answers.
    """
    extractor = Extractor(seed, _Meter(as_client(llm)), model, max_concurrency, "auto", {}, None, strict=strict_types)
    gate = asyncio.Semaphore(max_concurrency)

    async def one(context: Context, review: Review) -> "_Measured":
        async with gate:
            measured = _Measured()
            _CURRENT.set(measured)
            if extractor.stopped is None:
                read = await extractor.extract("sample", review)
                measured.failed = bool(read.extraction.failed)
            only = Context(context.name, context.index, context.values, (review,))
            expected = estimate(seed, [only], model=model)
            measured.expected = Usage(expected.prompt_tokens, expected.completion_tokens)
            return measured

    every = await asyncio.gather(*(asyncio.create_task(one(context, review)) for context, review in picked))
    known = [each for each in every if each.whole.total]
    stopped = extractor.stopped.message if extractor.stopped is not None else ""
    paid = Usage.sum([each.paid for each in known])
    times = [second for each in known for second in each.seconds]
    sample = TokenSample(
        len(known), sum(len(each.seconds) for each in known), sum(each.cached for each in known),
        sum(each.failed for each in known), paid, None if price is None else price.of_calls(paid),
        sum(times) / len(times) if times else None, stopped,
    )  # fmt: skip
    return _extrapolated(sample, known, found, price)


def _extrapolated(
    sample: TokenSample, known: Sequence["_Measured"], found: Estimate, price: Price | None
) -> TokenSample:
    if not known:
        return sample
    measured = np.array([[each.whole.prompt_tokens, each.whole.completion_tokens] for each in known], dtype=float)
    expected = np.array([[each.expected.prompt_tokens, each.expected.completion_tokens] for each in known], dtype=float)
    totals = np.array([found.prompt_tokens, found.completion_tokens], dtype=float)
    count = len(known)
    values = totals * measured.sum(0) / expected.sum(0)
    if count >= found.kept:  # every review was measured
        values = measured.sum(0)
        spread = np.repeat(values[None], 2, axis=0)
    elif count < LEAST:
        spread = None
    else:
        chosen = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
        spread = totals * measured[chosen].sum(1) / expected[chosen].sum(1)
    costs = None if price is None else np.array([price.prompt, price.completion]) / 1e6
    return evolve(
        sample,
        prompt=_range(values[0], None if spread is None else spread[:, 0]),
        completion=_range(values[1], None if spread is None else spread[:, 1]),
        total_cost=None if costs is None else _range(float(values @ costs), None if spread is None else spread @ costs),
    )


def _range(value: float, spread: "NDArray[np.float64] | None") -> Range:
    if spread is None:
        return Range(float(value))
    low, high = np.percentile(spread, [2.5, 97.5])
    return Range(float(value), float(min(low, value)), float(max(high, value)))


# The meter notes the tokens of every call of the review that the current task extracts.


@define
class _Measured:
    """The calls for one review.

    ``whole`` are the tokens of all answers, ``paid`` are those of new answers; ``seconds`` has the time of each new call.
    """

    whole: Usage = field(factory=Usage)
    paid: Usage = field(factory=Usage)
    seconds: list[float] = field(factory=list)
    cached: int = 0
    failed: bool = False
    expected: Usage = field(factory=Usage)


_CURRENT: ContextVar[_Measured] = ContextVar("the review that is measured")


class _Meter:
    """A client that records the tokens of each call."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def generate(self, prompt: str, **options: Any) -> Completion:
        """Return the inner client's answer."""
        measured, began = _CURRENT.get(), perf_counter()
        try:
            answer: Completion = await self._inner.generate(prompt, **options)
        except LLMError as error:
            if error.usage.total:
                measured.whole += error.usage
                measured.paid += error.usage
                measured.seconds.append(perf_counter() - began)
            raise
        if answer.cached:
            measured.cached += 1
            measured.whole += answer.original
        else:
            measured.whole += answer.usage
            measured.paid += answer.usage
            measured.seconds.append(perf_counter() - began)
        return answer
