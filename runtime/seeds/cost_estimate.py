"""Estimates the calls, tokens and cost of a run of a seed, before any call.

The numbers of contexts and reviews are exact; the numbers of tokens are estimates. A token is assumed to have four bytes of
UTF-8; for the two ends of a range, five and three bytes. Calls report their actual usage afterwards. Repairs, repeated calls
and a model's hidden reasoning are not included; ``token_sample`` measures them.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal

from attrs import define, field, frozen

from ...adapters.llm import BYTES_OF_TOKEN, Usage
from ...adapters.llm.budget import Price
from ...lang.trees.seed import Extracted, FormulaSeed
from .declared_meta import with_declared_meta
from .extraction_prompts import (
    Ask,
    Parts,
    answer_schema,
    build_choice_prompt,
    build_extraction_prompt,
    fill_extraction_prompt,
    has_small_window,
    parts_of,
    way_of_asking,
)
from .readers import TRIGGERS, Trigger
from .reviews import Context, KeywordCount, Review, ReviewFilter, read_context
from .stage_estimates import StageBounds, StageEstimate


@frozen
class Range:
    """A value and its 95 % interval; ``low`` and ``high`` are None if too few reviews were measured for an interval."""

    value: float
    low: float | None = None
    high: float | None = None

    def as_json(self, digits: int | None = None) -> dict[str, float | None]:
        """Return the range as a JSON object, with numbers rounded to ``digits`` (None: to whole numbers)."""
        return {
            name: None if number is None else round(number, digits)
            for name, number in (("value", self.value), ("low", self.low), ("high", self.high))
        }


@frozen
class TokenSample:
    """The tokens measured on a sample of the kept reviews, and their extrapolation to all kept reviews.

    ``reviews`` is the number of measured reviews. ``calls``, ``usage`` and ``cost`` (US dollars, None: unknown) cover only the
    new calls of the sample. ``cached`` is the number of its calls that were answered from the cache; the token counts stored
    with these answers are measured too, but cost nothing. ``failed`` is the number of reviews without a usable answer; their
    tokens are included. ``seconds`` is the mean time of a new call. ``stopped`` is the reason why the sample is smaller than
    requested, or "". ``prompt``, ``completion`` and ``total_cost`` are extrapolated to all kept reviews.
    """

    reviews: int
    calls: int = 0
    cached: int = 0
    failed: int = 0
    usage: Usage = field(factory=Usage)
    cost: float | None = None
    seconds: float | None = None
    stopped: str = ""
    prompt: Range | None = None
    completion: Range | None = None
    total_cost: Range | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the sample as a JSON object."""
        return {
            "reviews": self.reviews, "calls": self.calls, "cached": self.cached, "failed": self.failed,
            "prompt_tokens": self.usage.prompt_tokens, "completion_tokens": self.usage.completion_tokens, "cost": self.cost,
            "seconds": None if self.seconds is None else round(self.seconds, 3), "stopped": self.stopped,
            "all_prompt_tokens": None if self.prompt is None else self.prompt.as_json(),
            "all_completion_tokens": None if self.completion is None else self.completion.as_json(),
            "all_cost": None if self.total_cost is None else self.total_cost.as_json(6),
        }  # fmt: skip


_LEAST_BYTES, _MOST_BYTES = 3, 5
"""Bytes in a token at the two ends of the range."""
_EARLIER = 60
"""Approximate number of bytes around an earlier answer in the prompt of a further reading."""
_ANSWERED = {"int": 4, "float": 6, "bool": 5, "text": 120, "list": 80}
"""Maps each type, except enum, to the approximate number of characters of a value."""


@frozen
class Reader:
    """A model that reads reviews: its spec ("" for a custom client), its name in the estimate, and its price (None: unknown)."""

    model: str
    name: str = ""
    price: Price | None = None


@define
class ModelEstimate:
    """The estimated calls of one model.

    ``purpose`` is "reading", or "escalation" for a stronger model, which is called only for open cases: ``calls`` is then 0, and
    ``calls_at_most`` is the number of calls if all reviews are open. ``prompt_tokens`` and ``completion_tokens`` are the tokens
    of ``calls``; ``..._tokens_at_most`` are the tokens of ``calls_at_most``. One token is estimated for
    every 4 bytes. ``price`` is None if it is unknown.
    """

    model: str
    purpose: Literal["reading", "escalation"] = "reading"
    price: Price | None = None
    calls: int = 0
    calls_at_most: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_at_most: int = 0
    completion_tokens_at_most: int = 0

    def add(self, other: "ModelEstimate", times: int = 1) -> None:
        """Add the calls and the tokens of another estimate, multiplied by ``times``."""
        self.calls += times * other.calls
        self.calls_at_most += times * other.calls_at_most
        self.prompt_tokens += times * other.prompt_tokens
        self.completion_tokens += times * other.completion_tokens
        self.prompt_tokens_at_most += times * other.prompt_tokens_at_most
        self.completion_tokens_at_most += times * other.completion_tokens_at_most

    @property
    def prompt_range(self) -> tuple[int, int]:
        """The lower and the upper end of the number of prompt tokens."""
        return _range(self.prompt_tokens, self.prompt_tokens_at_most)

    @property
    def completion_range(self) -> tuple[int, int]:
        """The lower and the upper end of the number of completion tokens."""
        return _range(self.completion_tokens, self.completion_tokens_at_most)

    @property
    def cost(self) -> float | None:
        """The cost of ``calls`` in US dollars; None if the price is unknown."""
        return None if self.price is None else self.price.of_calls(Usage(self.prompt_tokens, self.completion_tokens))

    @property
    def cost_range(self) -> tuple[float, float] | None:
        """The lower and the upper end of the cost in US dollars; None if the price is unknown."""
        if self.price is None:
            return None
        prompt, completion = self.prompt_range, self.completion_range
        low, high = (self.price.of_calls(Usage(prompt[end], completion[end])) for end in (0, 1))
        return low, high

    def as_json(self) -> dict[str, Any]:
        """Return the estimate as a JSON object."""
        return {
            "model": self.model, "purpose": self.purpose, "calls": self.calls, "calls_at_most": self.calls_at_most,
            "prompt_tokens_range": list(self.prompt_range), "completion_tokens_range": list(self.completion_range),
            "cost_range": _rounded(self.cost_range), "price": None if self.price is None else self.price.as_json(self.model),
        }  # fmt: skip


def _range(least: int, most: int) -> tuple[int, int]:
    """Return the lower and the upper end of a number of tokens, which was estimated with 4 bytes a token."""
    return round(least * BYTES_OF_TOKEN / _MOST_BYTES), round(most * BYTES_OF_TOKEN / _LEAST_BYTES)


def _rounded(costs: tuple[float, float] | None) -> list[float] | None:
    return None if costs is None else [round(each, 6) for each in costs]


@define
class Estimate:
    """The estimated size of a run.

    ``contexts`` and ``reviews`` are the numbers of contexts and reviews. ``kept`` is the number of reviews that are sent to
    the model, and ``calls`` is the number of calls for these reviews. ``calls_at_most`` is the number of calls if two readings
    of a review always differ, or if a stronger model decides about all reviews. ``characters`` is the number of characters of
    the kept reviews; ``cut_characters`` is how many of these would not be read, ``cut`` is the number of reviews that contain
    them, and ``split`` is the number of reviews that are sent in parts. Tokens are estimates. ``cost`` is in US dollars; None
    if a price is unknown. ``models`` lists the figures for each model. ``stages`` lists the calls of ``resolve`` and
    ``reduce``, which are not included in the other figures. ``rate`` is the maximum number of calls a minute (None: no limit).
    ``sample`` has the tokens of a measured sample (None: no sample was measured).
    """

    contexts: int = 0
    reviews: int = 0
    kept: int = 0
    unusable: int = 0
    """Number of reviews without readable text. The extraction from each of these reviews fails."""
    characters: int = 0
    cut: int = 0
    cut_characters: int = 0
    split: int = 0
    keywords: list[KeywordCount] = field(factory=list)
    warnings: list[str] = field(factory=list)
    model: str = ""
    price: Price | None = None
    rate: float | None = None
    sample: TokenSample | None = None
    models: list[ModelEstimate] = field(factory=list)
    stages: list[StageEstimate] = field(factory=list)

    @property
    def calls(self) -> int:
        """The number of calls that are certain to be necessary."""
        return sum(each.calls for each in self.models)

    @property
    def calls_at_most(self) -> int:
        """The largest number of calls of all models, without ``stages``."""
        return sum(each.calls_at_most for each in self.models)

    @property
    def prompt_tokens(self) -> int:
        """The estimated number of prompt tokens of ``calls``."""
        return sum(each.prompt_tokens for each in self.models)

    @property
    def completion_tokens(self) -> int:
        """The estimated number of completion tokens of ``calls``."""
        return sum(each.completion_tokens for each in self.models)

    @property
    def cost(self) -> float | None:
        """The estimated cost of ``calls`` in US dollars; None if a price is unknown."""
        costs = [each.cost for each in self.models]
        return None if not costs or None in costs else sum(filter(None, costs))

    @property
    def prompt_range(self) -> tuple[int, int]:
        """The lower and the upper end of the estimated number of prompt tokens."""
        return sum(each.prompt_range[0] for each in self.models), sum(each.prompt_range[1] for each in self.models)

    @property
    def completion_range(self) -> tuple[int, int]:
        """The lower and the upper end of the estimated number of completion tokens, without a model's hidden reasoning."""
        ranges = [each.completion_range for each in self.models]
        return sum(each[0] for each in ranges), sum(each[1] for each in ranges)

    @property
    def cost_range(self) -> tuple[float, float] | None:
        """The lower and the upper end of the estimated cost in US dollars; None if a price is unknown."""
        costs = [each.cost_range for each in self.models]
        known = [each for each in costs if each is not None]
        if not costs or len(known) < len(costs):
            return None
        return sum(each[0] for each in known), sum(each[1] for each in known)

    @property
    def seconds_at_rate(self) -> float | None:
        """The seconds that the calls take at ``rate`` calls a minute; None without a rate."""
        return None if self.rate is None else self.calls * 60 / self.rate

    def as_json(self) -> dict[str, Any]:
        """Return the estimate as a JSON object."""
        return {
            "contexts": self.contexts, "reviews": self.reviews, "kept": self.kept, "unusable": self.unusable,
            "characters": self.characters, "cut": self.cut, "cut_characters": self.cut_characters, "split": self.split,
            "keywords": [{"keyword": each.keyword, "kept": each.kept} for each in self.keywords],
            "calls": self.calls, "calls_at_most": self.calls_at_most, "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens, "tokens": "estimated at 4 bytes each", "cost": self.cost,
            "prompt_tokens_range": list(self.prompt_range), "completion_tokens_range": list(self.completion_range),
            "cost_range": _rounded(self.cost_range),
            "model": self.model, "price": None if self.price is None else self.price.as_json(self.model),
            "models": [each.as_json() for each in self.models],
            "stages": [each.as_json() for each in self.stages],
            "rate": self.rate, "seconds_at_rate": self.seconds_at_rate,
            "sample": None if self.sample is None else self.sample.as_json(), "warnings": list(self.warnings),
        }  # fmt: skip


def estimate(
    seed: FormulaSeed,
    contexts: Iterable[Any],
    *,
    price: Price | None = None,
    ask: Ask = "auto",
    model: str = "",
    rate: float | None = None,
    vote: Sequence[Reader] = (),
    escalate: Reader | None = None,
    escalate_when: Collection[Trigger] = TRIGGERS,
    is_limited: bool = False,
) -> Estimate:
    """Estimate a run of ``seed`` over ``contexts``, which are read one at a time. Raises ``ContextError`` and ``FilterError``.

    ``model`` reads the reviews, unless ``vote`` names several models; ``resolve`` and ``reduce`` ask ``model``. ``escalate`` is
    the stronger model, which may be asked about every review. ``is_limited`` is true if the run has a limit on tokens or cost.
    """
    keeper, made = ReviewFilter.of(seed), Estimate(model=model, price=price, rate=rate)
    counts = [0] * len(seed.keep.keywords)
    counting = _readings(seed, ask, (*vote,) or (Reader(model, model, price),), bool(vote), escalate, escalate_when)
    made.models = [each.made for each in counting]
    stages = StageBounds(seed, has_small_window(model), model, price, is_limited)
    for index, data in enumerate(contexts):
        context = with_declared_meta(data if isinstance(data, Context) else read_context(data, index), seed.meta)
        made.contexts += 1
        made.reviews += len(context.reviews)
        made.warnings += [f"context {index}: {warning}" for warning in context.warnings]
        kept: list[Review] = []
        for review in context.reviews:
            if review.fault:
                made.unusable += 1
                continue
            matching = keeper.matching(review.text)
            for place, matches in enumerate(matching):
                counts[place] += matches
            if not keeper.is_kept(review.text, matching):
                continue
            kept.append(review)
            made.characters += len(review.text)
            parts, *_ = [each.review(review) for each in counting]
            made.cut += parts.cut > 0
            made.cut_characters += parts.cut
            made.split += len(parts.texts) > 1
        made.kept += len(kept)
        stages.context(kept)
    made.keywords = [KeywordCount(*pair) for pair in zip(seed.keep.keywords, counts, strict=True)]
    made.stages = stages.estimates()
    if unknown := [each.name for each in made.stages if each.calls_at_most is None]:
        made.warnings.append(f"the calls of {' and '.join(unknown)} depend on the extractions, and are not included")
    return made


def _readings(
    seed: FormulaSeed,
    ask: Ask,
    readers: Sequence[Reader],
    votes: bool,
    escalate: Reader | None,
    when: Collection[Trigger],
) -> "list[_Counting]":
    """Return a counter for each model."""
    passes = 1 if votes else seed.passes
    # With a stronger model, the third reading by the run's model is left for open cases that the stronger model does not decide.
    has_third = passes == 2 and (escalate is None or not {"differ", "invalid"}.issubset(when))
    counting = [
        _Counting(seed, ask, each.model, ModelEstimate(each.name, "reading", each.price), passes, int(has_third))
        for each in readers
    ]
    if escalate is not None:
        made = ModelEstimate(escalate.name, "escalation", escalate.price)
        counting.append(_Counting(seed, ask, escalate.model, made, 0, 1, max(len(readers), passes)))
    return counting


@define
class _Counting:
    """Adds up the estimates of one model for the parts of reviews.

    ``passes`` is the number of readings, ``more`` is the maximum number of further readings, and ``earlier`` is the number of
    earlier answers in the prompts of these.
    """

    seed: FormulaSeed
    ask: Ask
    model: str
    made: ModelEstimate
    passes: int = 1
    more: int = 0
    earlier: int = 2
    apart: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.apart = way_of_asking(self.seed, self.ask, self.model) == "choices"

    def review(self, review: Review) -> Parts:
        """Add the calls for a review, and return its parts."""
        parts = parts_of(review.text, self.seed.review_handling, self.apart or has_small_window(self.model))
        for chunk in parts.texts:
            self.chunk(chunk, None if self.seed.prompt is None else _custom(self.seed, chunk, review))
        return parts

    def chunk(self, text: str, filled: str | None) -> None:
        """Add the calls for a part of a review."""
        fields = self.seed.fields
        chosen = [each for each in fields if self.apart and each.type == "enum"]
        others = [each for each in fields if each not in chosen]
        examples = self.seed.examples
        sent = [
            (_size(build_choice_prompt(each, text, examples)), max(map(len, each.values), default=1)) for each in chosen
        ]
        again = list(sent)
        if others:
            prompt = build_extraction_prompt(others, text, examples) if filled is None else filled
            size, answer = _size(prompt) + len(json.dumps(answer_schema(others))), _answer_length(others)
            sent.append((size, answer))
            again.append((size + self.earlier * (answer + _EARLIER), answer))
        if self.passes == 2 and not self._escalates:  # the third reading asks for all fields together
            whole = _answer_length(fields)
            again = [(max(size for size, _ in sent) + 2 * (whole + _EARLIER), whole)] if sent else []
        made = self.made
        for calls, most in (
            *((each, True) for each in sent * self.passes),
            *((each, False) for each in again * self.more),
        ):
            asked, answered = -(-calls[0] // BYTES_OF_TOKEN), -(-calls[1] // BYTES_OF_TOKEN)
            made.calls_at_most += 1
            made.prompt_tokens_at_most += asked
            made.completion_tokens_at_most += answered
            if most:
                made.calls += 1
                made.prompt_tokens += asked
                made.completion_tokens += answered

    @property
    def _escalates(self) -> bool:
        return self.made.purpose == "escalation"


def _custom(seed: FormulaSeed, text: str, review: Review) -> str:
    """Return the prompt for a part of a review if the seed has a custom prompt."""
    return fill_extraction_prompt(seed.prompt or "", text, review, seed.fields, seed.examples)


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))


def _answer_length(fields: Sequence[Extracted]) -> int:
    length = 2
    for each in fields:
        value = max(map(len, each.values), default=0) + 2 if each.type == "enum" else _ANSWERED[each.type]
        length += len(each.name) + 6 + value
    return length
