"""What a run would ask and cost, before any call: the filter's part is counted, the model's is an estimate.

Tokens are characters divided by four, which is rough and said so; a call's own usage is what counts afterwards. Repairs and
calls that are asked again are not in it.
"""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from attrs import define, field

from ...adapters.llm import Usage
from ...lang.trees.seed import Extracted, FormulaSeed
from .filtering import Keeper, KeywordCount
from .handling import parts_of
from .prompting import (
    Ask,
    answer_schema,
    build_choice_prompt,
    build_extraction_prompt,
    fill_extraction_prompt,
    way_of_asking,
)
from .reviews import Context, read_context

if TYPE_CHECKING:
    from ...adapters.llm.budget import Price

__all__ = ["Estimate", "estimate"]

_CHARACTERS = 4
"""Of a token, roughly."""
_ANSWERED = {"int": 4, "float": 6, "bool": 5, "text": 120, "list": 80}
"""Characters of a value that is no enum's, roughly."""


@define
class Estimate:
    """What a run comes to. ``kept`` of ``reviews`` in ``contexts`` go to the model in ``calls`` calls; ``calls_at_most`` where
    two readings always differ. Of the ``characters`` of kept reviews ``cut_characters``, of ``cut`` reviews, would not be read; ``split``
    reviews go in parts. Tokens are estimates. ``cost`` is in US dollars, None without a price.
    """

    contexts: int = 0
    reviews: int = 0
    kept: int = 0
    unusable: int = 0
    """Reviews that have no text that can be read: each fails alone."""
    characters: int = 0
    cut: int = 0
    cut_characters: int = 0
    split: int = 0
    keywords: list[KeywordCount] = field(factory=list)
    calls: int = 0
    calls_at_most: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    warnings: list[str] = field(factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the estimate as a JSON object."""
        return {
            "contexts": self.contexts, "reviews": self.reviews, "kept": self.kept, "unusable": self.unusable,
            "characters": self.characters, "cut": self.cut, "cut_characters": self.cut_characters, "split": self.split,
            "keywords": [{"keyword": each.keyword, "kept": each.kept} for each in self.keywords],
            "calls": self.calls, "calls_at_most": self.calls_at_most, "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens, "tokens": "estimated at 4 characters each", "cost": self.cost,
            "warnings": list(self.warnings),
        }  # fmt: skip


def estimate(
    seed: FormulaSeed,
    contexts: Iterable[Any],
    *,
    price: "Price | None" = None,
    ask: Ask = "auto",
    model: str = "",
) -> Estimate:
    """Estimate a run of ``seed`` over ``contexts``, which are read one by one. Raises ``ContextError`` and ``FilterError``."""
    keeper, made = Keeper.of(seed), Estimate()
    counts = [0] * len(seed.keep.keywords)
    apart = way_of_asking(seed, ask, model) == "choices"
    counting = _Counting(seed, apart, made)
    for index, data in enumerate(contexts):
        context = data if isinstance(data, Context) else read_context(data, index)
        made.contexts += 1
        made.reviews += len(context.reviews)
        made.warnings += [f"context {index}: {warning}" for warning in context.warnings]
        for review in context.reviews:
            if review.fault:
                made.unusable += 1
                continue
            matching = keeper.matching(review.text)
            for place, matches in enumerate(matching):
                counts[place] += matches
            if matching and not any(matching):
                continue
            made.kept += 1
            made.characters += len(review.text)
            parts = parts_of(review.text, seed.review_handling, apart)
            made.cut += parts.cut > 0
            made.cut_characters += parts.cut
            made.split += len(parts.texts) > 1
            for chunk in parts.texts:
                filled = None if seed.prompt is None else fill_extraction_prompt(seed.prompt, chunk, review)
                counting.chunk(chunk, filled)
    made.keywords = [KeywordCount(*pair) for pair in zip(seed.keep.keywords, counts, strict=True)]
    if price is not None:
        made.cost = price.of(Usage(made.prompt_tokens, made.completion_tokens))
    return made


@define
class _Counting:
    """Adds up what the chunks of reviews come to."""

    seed: FormulaSeed
    apart: bool
    made: Estimate

    def chunk(self, text: str, filled: str | None) -> None:
        fields = self.seed.fields
        chosen = [each for each in fields if self.apart and each.type == "enum"]
        others = [each for each in fields if each not in chosen]
        sent = [(len(build_choice_prompt(each, text)), max(map(len, each.values), default=1)) for each in chosen]
        if others:
            prompt = build_extraction_prompt(others, text) if filled is None else filled
            schema = len(json.dumps(answer_schema(others)))
            sent.append((len(prompt) + schema, _answer_length(others)))
        for asked, answered in sent * self.seed.passes:
            self.made.prompt_tokens += -(-asked // _CHARACTERS)
            self.made.completion_tokens += -(-answered // _CHARACTERS)
        calls = len(sent) * self.seed.passes
        self.made.calls += calls
        self.made.calls_at_most += calls + (self.seed.passes == 2 and bool(sent))


def _answer_length(fields: list[Extracted]) -> int:
    length = 2
    for each in fields:
        value = max(map(len, each.values), default=0) + 2 if each.type == "enum" else _ANSWERED[each.type]
        length += len(each.name) + 6 + value
    return length
