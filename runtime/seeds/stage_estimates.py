"""Upper bounds of the calls, tokens and cost of ``resolve`` and ``reduce``, before any call."""

from collections.abc import Sequence
from typing import Any

from attrs import define, field, frozen

from ...adapters.llm import ANTHROPIC_MAX_TOKENS, Usage
from ...adapters.llm.budget import USUAL_ANSWER, Price
from ...lang.trees.seed import FormulaSeed
from . import reduction, resolution
from .reviews import Review

LEAST_BYTES = 3
"""Bytes in a token for an upper bound."""


@frozen
class StageEstimate:
    """Upper bounds of the calls of a ``resolve`` or ``reduce`` step and of their tokens; None if no bound is known.

    A token has at least three bytes. ``cost_at_most`` is in US dollars; None if a bound or the price is not known. ``basis``
    says what the bounds are based on, and why a bound is not known.
    """

    name: str
    calls_at_most: int | None
    prompt_tokens_at_most: int | None = None
    completion_tokens_at_most: int | None = None
    cost_at_most: float | None = None
    basis: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the bounds as a JSON object."""
        return {
            "name": self.name, "calls_at_most": self.calls_at_most, "prompt_tokens_at_most": self.prompt_tokens_at_most,
            "completion_tokens_at_most": self.completion_tokens_at_most,
            "cost_at_most": None if self.cost_at_most is None else round(self.cost_at_most, 6), "basis": self.basis,
        }  # fmt: skip

    def plus(self, other: "StageEstimate", times: int = 1) -> "StageEstimate":
        """Return the sum of these bounds and of the other bounds, multiplied by ``times``."""

        def total(one: Any, more: Any) -> Any:
            return None if one is None or more is None else one + times * more

        return StageEstimate(
            self.name, total(self.calls_at_most, other.calls_at_most), total(self.prompt_tokens_at_most, other.prompt_tokens_at_most),
            total(self.completion_tokens_at_most, other.completion_tokens_at_most), total(self.cost_at_most, other.cost_at_most),
            other.basis,
        )  # fmt: skip


@define
class StageBounds:
    """Adds up the bounds of the calls of ``resolve`` and ``reduce``, and of their tokens.

    ``is_limited`` is true if the run has a limit on tokens or cost, which then also limits the length of each answer.
    """

    seed: FormulaSeed
    small: bool
    model: str = ""
    price: Price | None = None
    is_limited: bool = False
    kept: int = 0
    resolves: list[int] = field(init=False)
    reduces: list[int | None] = field(init=False)
    sent: list[int | None] = field(init=False)
    """The bytes of the prompts of each ``reduce``; None if no bound is known."""

    def __attrs_post_init__(self) -> None:
        self.resolves, self.reduces = [0] * len(self.seed.resolve), [0] * len(self.seed.reduce)
        self.sent = [0] * len(self.seed.reduce)

    def context(self, kept: Sequence[Review]) -> None:
        """Add a context with its kept reviews."""
        self.kept += len(kept)
        for number, step in enumerate(self.seed.resolve):
            if step.scope == "context":
                self.resolves[number] += resolution.most_calls(step, len(kept), has_small_window=self.small)
        for number, each in enumerate(self.seed.reduce):
            before, sent = self.reduces[number], self.sent[number]
            more = None if before is None else reduction.most_calls(self.seed, each, kept, has_small_window=self.small)
            self.reduces[number] = None if before is None or more is None else before + more
            size = None
            if more is not None and sent is not None:
                size = reduction.most_prompt_bytes(self.seed, each, kept, more, has_small_window=self.small)
            self.sent[number] = None if sent is None or size is None else sent + size

    def estimates(self) -> list[StageEstimate]:
        """Return the bounds of each step that asks a model. A list may have any number of spellings; its step has no bound."""
        made = []
        for step, calls in zip(self.seed.resolve, self.resolves, strict=True):
            if step.scope == "run":
                calls = resolution.most_calls(step, self.kept, has_small_window=self.small)
            found = self.seed.field_by_name.get(step.field)
            if step.method != "llm":
                continue
            name = f"resolve {step.target}"
            if found is None or found.type != "text":
                made.append(
                    StageEstimate(
                        name,
                        None,
                        basis=f"no bound: {step.field} is a list, which has any number of spellings; --max-calls and --max-cost limit "
                        "all calls",
                    )
                )
                continue
            asked, answered = resolution.most_tokens(found, has_small_window=self.small, bytes_of_token=LEAST_BYTES)
            basis = "if all spellings of a context are similar, have 200 characters, and an answer has each pair once"
            limit = answer_limit(self.model, is_limited=self.is_limited)
            if limit is not None and limit < answered:
                answered, basis = limit, f"{basis}; an answer has at most {limit:,} tokens"
            made.append(self._bounds(name, calls, calls * asked, calls * answered, basis))
        for each, most, sent in zip(self.seed.reduce, self.reduces, self.sent, strict=True):
            made.append(self._reduce(f"reduce {each.name}", each.sources, most, sent))
        return made

    def _reduce(self, name: str, sources: Sequence[Any], calls: int | None, sent: int | None) -> StageEstimate:
        if calls is None:
            return StageEstimate(
                name,
                None,
                basis="no bound: an answer of type list has any number of items, which are combined; --max-calls and --max-cost limit "
                "all calls",
            )
        asked = None if sent is None else -(-sent // LEAST_BYTES)
        fields = ", ".join(str(source.name) for source in sources if source is not None)
        basis = "if all kept reviews match, and no answer that is combined is longer than a call"
        if asked is None:
            basis = f"no bound of the prompt tokens: the values of {fields} have no maximum length"
        limit = answer_limit(self.model, is_limited=self.is_limited)
        if limit is None:
            told = "no bound of the answer tokens: the model's answers have no maximum length"
            basis = f"{basis}; {told} (--max-cost or --max-tokens limits an answer to {USUAL_ANSWER:,} tokens)"
        else:
            basis = f"{basis}; an answer has at most {limit:,} tokens"
        return self._bounds(name, calls, asked, None if limit is None else calls * limit, basis)

    def _bounds(self, name: str, calls: int, asked: int | None, answered: int | None, basis: str) -> StageEstimate:
        if not calls:
            return StageEstimate(name, 0, 0, 0, 0.0, "no call is possible")
        cost = None
        if self.price is not None and (self.price.is_free or (asked is not None and answered is not None)):
            cost = self.price.of_calls(Usage(asked or 0, answered or 0))
        return StageEstimate(name, calls, asked, answered, cost, basis)


def answer_limit(model: str, *, is_limited: bool = False) -> int | None:
    """Return the maximum number of tokens of an answer by ``model`` (a spec); None if the answer has no limit.

    ``is_limited`` is true if the run has a limit on tokens or cost: no call then asks for a longer answer than ``USUAL_ANSWER``.
    """
    own = ANTHROPIC_MAX_TOKENS if model.startswith("anthropic:") else None
    return own if not is_limited else USUAL_ANSWER if own is None else min(own, USUAL_ANSWER)
