"""Computes a result and its status from extractions, without a model. This is the last step of a run.

See ``docs/design/seed.md#compute``. Also estimates the cost of a run, and loads and checks a seed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from attrs import define, field, frozen

from ...adapters.llm import Usage
from ...lang.diagnostic import Diagnostic, has_errors
from ...lang.evaluate.seed.explanation import explain
from ...lang.evaluate.seed.fused_engine import Compute
from ...lang.evaluate.seed.interpreter import StepError
from ...lang.evaluate.seed.step_dependencies import Reads, reads_of_outputs
from ...lang.source import NOWHERE, Source
from ...lang.trees import seed as tree
from ...lang.trees.seed import Extracted
from ...lang.trees.seed import FormulaSeed as SeedTree
from ..results import ScriptError
from .extraction_prompts import (
    Ask,
    answer_schema,
    build_choice_prompt,
    build_extraction_prompt,
    fill_extraction_prompt,
    parts_of,
    way_of_asking,
)
from .reviews import Context, KeywordCount, ReviewFilter, read_context
from .seed_results import Counts, Extraction, ResultError, SeedResult, Status

if TYPE_CHECKING:
    from ...adapters.llm.budget import Price

_ALLOW = "allow_invalid is the share of kept reviews that may lack the field; the result is then still complete"


@frozen
class Provenance:
    """The provenance of an output: the steps that compute it (its own step first), and the extractions and reviews that they used.

    ``extractions`` are positions among the extractions that did not fail, ``reviews`` the indices of their reviews. ``explanation``
    describes each step. For a review that was read in parts, ``parts`` maps the review and the field to the text positions of the parts
    that determine the value.
    """

    name: str
    value: Any
    steps: tuple[str, ...]
    extractions: tuple[int, ...]
    reviews: tuple[int, ...]
    explanation: Any
    parts: Mapping[int, Mapping[str, tuple[tuple[int, int], ...]]] = field(factory=dict)


@frozen
class ResultComputer:
    """Computes the results of one seed."""

    seed: SeedTree
    allow_invalid: float
    _compute: Compute
    _reads: Reads

    @classmethod
    def of(cls, seed: SeedTree, allow_invalid: float | None = None) -> "ResultComputer":
        """Prepare the computation of ``seed``.

        ``allow_invalid`` is the share of kept reviews that may lack a field (None: the share that the seed defines). Raises
        ``ValueError`` for an invalid share.
        """
        share = seed.allow_invalid if allow_invalid is None else allow_invalid
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise ValueError(f"allow_invalid is {share!r:.40}, not a share from 0 to 1")
        return cls(seed, share, Compute.of(seed), reads_of_outputs(seed))

    def result(
        self,
        context: Mapping[str, Any],
        extractions: Sequence[Extraction],
        *,
        name: str = "",
        index: int = 0,
        reviews: int | None = None,
        errors: Sequence[ResultError] = (),
        warnings: Sequence[str] = (),
        usage: Usage | None = None,
        cost: float | None = None,
        calls: int = 0,
    ) -> SeedResult:
        """Return the result for one context: its extractions, and the values computed from the extractions that did not fail.

        ``reviews`` is the number of reviews in the context (None: the number of extractions). If all extractions failed, the result has no
        outputs, because values computed from an empty list would be wrong.
        """
        good = [found for found in extractions if not found.failed]
        counts = Counts.of(extractions, len(extractions) if reviews is None else reviews)
        faults = list(errors)
        values: Mapping[str, Any] = {}
        unknown: Mapping[str, int] = {}
        if extractions and not good:
            faults.append(ResultError("", "extraction", _none_extracted(extractions)))
        elif not faults:
            computed = self._compute.run([found.row for found in good], context)
            values, unknown = computed.values, computed.unknown
            faults += map(_result_error, computed.errors)
            faults += self._missing(extractions)
        outputs = {output: values[output] for output in self.seed.outputs if output in values}
        made = SeedResult(
            name, index, self._status(outputs, counts, faults), outputs, values, counts, tuple(faults), tuple(extractions),
            usage or Usage(), cost, calls, tuple(warnings), unknown,
        )  # fmt: skip
        return made.with_provenance(lambda asked: self._provenance(asked, good, context))

    def _status(self, outputs: Mapping[str, Any], counts: Counts, errors: Sequence[ResultError]) -> Status:
        if not outputs and (errors or self.seed.outputs):
            return "failed"
        return "complete" if not errors and len(outputs) == len(set(self.seed.outputs)) else "partial"

    def _missing(self, extractions: Sequence[Extraction]) -> Iterator[ResultError]:
        """Yield an error for each field that the outputs use and that too many of the kept reviews lack."""
        kept, failed = len(extractions), sum(1 for found in extractions if found.failed)
        lacking = {
            **{name: (f"the field {name}", sum(name in found.invalid for found in extractions)) for name in sorted(self._reads.fields)},
            **{
                f"meta.{name}": (f"meta.{name}", sum(name in found.invalid_meta for found in extractions if not found.failed))
                for name in sorted(self._reads.meta)
            },
        }  # fmt: skip
        told = False
        for what, invalid in lacking.values():
            if invalid and (invalid + failed) / kept > self.allow_invalid:
                told = True
                parts = [f"{invalid:,} invalid", *([f"{failed:,} failed"] if failed else [])]
                yield ResultError("", "invalid", self._share(what, invalid + failed, kept, parts), _ALLOW)
        if failed and not told and failed / kept > self.allow_invalid:
            first = next(found.failed for found in extractions if found.failed)
            message = f"{failed:,} of {kept:,} kept reviews failed ({failed / kept:.1%}){self._allowed()}: {first}"
            yield ResultError("", "review", message, _ALLOW)

    def _share(self, what: str, lacking: int, kept: int, parts: Sequence[str]) -> str:
        share = f"{lacking:,} of {kept:,} kept reviews ({lacking / kept:.1%})"
        return f"{what} is missing for {share}{self._allowed()}: {', '.join(parts)}"

    def _allowed(self) -> str:
        return f", of which {self.allow_invalid:.1%} are allowed" if self.allow_invalid else ""

    def _provenance(self, name: str, good: Sequence[Extraction], context: Mapping[str, Any]) -> Provenance:
        told = explain(self.seed, [found.row for found in good], context, name)
        used = sorted({row for step in told.steps for part in step.selections for row, _ in part.used})
        return Provenance(
            name, told.value, tuple(step.name for step in told.steps), tuple(used),
            tuple(good[row].review for row in used), told,
            {
                good[row].review: {
                    name: tuple(good[row].parts[part] for part in parts if part < len(good[row].parts))
                    for name, parts in good[row].decided.items()
                }
                for row in used if good[row].parts
            },
        )  # fmt: skip


def _none_extracted(extractions: Sequence[Extraction]) -> str:
    if len(extractions) > 1:
        return f"none of the {len(extractions):,} kept reviews could be extracted: {extractions[0].failed}"
    return f"the only kept review could not be extracted: {extractions[0].failed}"


def _result_error(error: StepError) -> ResultError:
    span = None if error.span == NOWHERE else (error.span.start, error.span.end)
    return ResultError(error.step, error.kind, error.message, error.hint, error.root, span)


# The estimated calls and cost of a run, before any call. The numbers for the filter are exact; the numbers for the model are an estimate.
# Tokens are characters divided by four, and labelled as an estimate; calls report their actual usage afterwards. Repairs and
# repeated calls are not included.

_CHARACTERS = 4
"""Approximate number of characters in a token."""
_ANSWERED = {"int": 4, "float": 6, "bool": 5, "text": 120, "list": 80}
"""Maps each type, except enum, to the approximate number of characters of a value."""


@define
class Estimate:
    """The estimated size of a run.

    ``contexts`` and ``reviews`` are the numbers of contexts and reviews. ``kept`` reviews are sent to the model, in ``calls`` calls, or in
    ``calls_at_most`` calls if two readings of a review always differ. The kept reviews have ``characters`` characters; ``cut_characters``
    of them, in ``cut`` reviews, would not be read. ``split`` reviews are sent in parts. Tokens are estimates. ``cost`` is in US dollars;
    None without a price.
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
    seed: SeedTree,
    contexts: Iterable[Any],
    *,
    price: "Price | None" = None,
    ask: Ask = "auto",
    model: str = "",
) -> Estimate:
    """Estimate a run of ``seed`` over ``contexts``, which are read one at a time. Raises ``ContextError`` and ``FilterError``."""
    keeper, made = ReviewFilter.of(seed), Estimate()
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
    """Adds up the estimates for the parts of reviews."""

    seed: SeedTree
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


# The result of ``seed.load``: a Formula Seed with a check method, and the exception for a seed with errors.


class SeedError(ScriptError):
    """The seed has errors. ``diagnostics`` has at least one error; ``str`` shows the errors with their source lines."""


@frozen(slots=False)
class FormulaSeed(tree.FormulaSeed):
    """A seed that was read without errors."""

    def check(self, data: Any = None) -> list[Diagnostic]:
        """Return errors and warnings in source order. If ``data`` has contexts, the diagnostics that depend on the data are included."""
        return check(self, data)


def load(source: Any) -> FormulaSeed:
    """Read a seed from a path, JSON text, a JSON object or another seed. Raises ``SeedError`` for a seed with errors, and ``OSError``."""
    from ...lang.documents.seed import read_seed

    if isinstance(source, tree.FormulaSeed):
        found: tree.FormulaSeed | None = source
        diagnostics, text = source.diagnostics, source.source
    else:
        read = read_seed(text_of(source))
        found, diagnostics, text = read.seed, read.diagnostics, read.source
    if found is None or has_errors(diagnostics):
        raise SeedError(diagnostics, text)
    if isinstance(found, FormulaSeed):
        return found
    return FormulaSeed(**{each.name: getattr(found, each.name) for each in attrs.fields(tree.FormulaSeed)})


def text_of(source: Any) -> "Source | Mapping[str, Any]":
    """Return the text or the JSON object of a seed. If ``source`` is a path, the file is read. Raises ``OSError``."""
    if isinstance(source, Source | Mapping):
        return source
    if isinstance(source, str) and source.lstrip()[:1] in ("{", ""):
        return Source(source, "<seed>")
    path = Path(source)
    return Source(path.read_text(encoding="utf-8"), str(source))


def check(seed: tree.FormulaSeed, data: Any = None) -> list[Diagnostic]:
    """Return the diagnostics for ``seed`` in source order; ``data`` is a context or a list of contexts.

    If ``data`` is given, the diagnostics also depend on the reviews that the filter keeps. Raises ``ContextError`` for an invalid context.
    """
    from ...lang.linter.seed import FilterCounts
    from ...lang.linter.seed import check as lint

    if data is None:
        return lint(seed)
    from .extraction_prompts import parts_of
    from .reviews import FilterError, ReviewFilter, keyword_counts, read_context  # not needed without data

    contexts: Sequence[Any] = list(data) if isinstance(data, list | tuple) else [data]
    texts = [review.text for index, each in enumerate(contexts) for review in read_context(each, index).reviews]
    try:
        counts, kept, total = keyword_counts(seed, texts)
    except FilterError:  # the linter reports the error with its position
        return lint(seed, contexts=contexts)
    keeper = ReviewFilter.of(seed)
    read = [text for text in texts if keeper.keeps(text)]
    cuts = [cut for cut in (parts_of(text, seed.review_handling, False).cut for text in read) if cut]
    found = FilterCounts([each.kept for each in counts], kept, total, sum(map(len, read)), len(cuts), sum(cuts))
    return lint(seed, contexts=contexts, kept=found)


def require(seed: tree.FormulaSeed, data: Iterable[Any] | None = None) -> None:
    """Raise ``SeedError`` if ``seed`` has errors; ``data`` has contexts, for the errors that depend on the data."""
    found = check(seed, None if data is None else list(data))
    if has_errors(found):
        raise SeedError(found, seed.source)
