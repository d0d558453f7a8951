"""Computes a result and its status from extractions, without a model. This is the last step of a run.

See ``docs/design/seed.md#compute``. Also loads and checks a seed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import attrs
from attrs import field, frozen

from ...adapters.llm import Usage
from ...lang.diagnostic import Diagnostic, has_errors
from ...lang.evaluate.seed.explanation import explain
from ...lang.evaluate.seed.fused_engine import Compute
from ...lang.evaluate.seed.interpreter import Reduced, StepError
from ...lang.evaluate.seed.sensitivity import Sensitivity, sensitivity
from ...lang.evaluate.seed.step_dependencies import Reads, reads_of_outputs
from ...lang.source import NOWHERE, Source
from ...lang.trees import seed as tree
from ..results import ScriptError
from .extraction_prompts import (
    parts_of,
)
from .reviews import ReviewFilter, read_context, without_reviews
from .seed_results import Counts, Extraction, ResultError, SeedResult, Status

SeedTree: TypeAlias = tree.FormulaSeed

_ALLOW = "allow_invalid sets the share of kept reviews that may lack a field while the result still counts as complete"


@frozen
class Provenance:
    """The provenance of an output: the steps that compute it (its own step first), and the extractions and reviews that they used.

    ``extractions`` are positions among the extractions that did not fail, and ``reviews`` are the indices of the reviews of these
    extractions. ``explanation`` describes each step. For a review that was read in parts, ``parts`` maps the review and the field
    to the text positions of the parts that determine the value.
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

        ``allow_invalid`` is the share of kept reviews that may lack a field; None means the share that the seed defines.
        Raises ``ValueError`` for an invalid share.
        """
        share = seed.allow_invalid if allow_invalid is None else allow_invalid
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise ValueError(f"allow_invalid must be a number from 0 to 1, not {share!r:.40}")
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
        reduced: Mapping[str, Reduced] | None = None,
        partial: Sequence[ResultError] = (),
    ) -> SeedResult:
        """Return the result for one context: its extractions, and the values computed from the extractions that did not fail.

        ``reviews`` is the number of reviews in the context; by default, the number of extractions. If all extractions failed, the result
        has no outputs, because values computed from an empty list would be wrong. ``reduced`` are the values of the ``reduce`` steps.
        With ``errors``, nothing is computed; ``partial`` are faults that only make the result partial.
        """
        good = [found for found in extractions if not found.failed]
        counts = Counts.of(extractions, len(extractions) if reviews is None else reviews)
        faults = list(errors)
        values: Mapping[str, Any] = {}
        unknown: Mapping[str, int] = {}
        if extractions and not good:
            faults.append(ResultError("", "extraction", _none_extracted(extractions)))
        elif not faults:
            computed = self._compute.run([found.row for found in good], context, reduced)
            values, unknown = computed.values, computed.unknown
            faults += map(_result_error, computed.errors)
            faults += partial
            faults += self._missing(extractions)
        outputs = {output: values[output] for output in self.seed.outputs if output in values}
        made = SeedResult(
            name, index, self._status(outputs, counts, faults), outputs, values, counts, tuple(faults), tuple(extractions),
            usage or Usage(), cost, calls, tuple(warnings), unknown, reduced or {}, context=without_reviews(context),
        )  # fmt: skip
        return made.with_provenance(lambda asked: self._provenance(asked, good, context, reduced))

    def sensitivity(
        self, extractions: Sequence[Extraction], context: Mapping[str, Any], outputs: Sequence[str] | None = None,
        reduced: Mapping[str, Reduced] | None = None,
    ) -> Sensitivity:  # fmt: skip
        """Return the changes of single extractions that would change ``outputs`` (default: string and boolean outputs)."""
        rows = [found.row for found in extractions if not found.failed]
        run = partial(self._compute.run, reduced=reduced)
        return sensitivity(self.seed, rows, context, outputs=outputs, run=run, reduced=reduced)

    def _status(self, outputs: Mapping[str, Any], counts: Counts, errors: Sequence[ResultError]) -> Status:
        if self.seed.extracts_only and counts.extracted:
            return "partial" if errors else "complete"
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
        return f", more than the allowed {self.allow_invalid:.1%}" if self.allow_invalid else ""

    def _provenance(
        self, name: str, good: Sequence[Extraction], context: Mapping[str, Any], reduced: Mapping[str, Reduced] | None
    ) -> Provenance:
        told = explain(self.seed, [found.row for found in good], context, name, reduced=reduced)
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


# The result of ``seed.load``: a Formula Seed with a check method, and the exception for a seed with errors.


class SeedError(ScriptError):
    """Raised if the seed has errors. ``diagnostics`` contains at least one error; ``str`` shows the errors with their source lines."""


@frozen(slots=False)
class FormulaSeed(tree.FormulaSeed):
    """A seed that was read without errors."""

    def check(self, data: Any = None) -> list[Diagnostic]:
        """Return errors and warnings in source order. With contexts in ``data``, diagnostics that depend on the data are included."""
        return check(self, data)


def load(source: Any) -> FormulaSeed:
    """Read a seed from a path, JSON text, a JSON object or another seed. Raises ``SeedError`` for a seed with errors, or ``OSError``."""
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
    from .reviews import FilterError, keyword_counts  # not needed without data

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
    """Raise ``SeedError`` if ``seed`` has errors; ``data`` contains contexts, for errors that depend on the data."""
    if not isinstance(seed, tree.FormulaSeed):
        raise TypeError(f"expected a seed (seed.load returns one), not {type(seed).__name__}")
    found = check(seed, None if data is None else list(data))
    if has_errors(found):
        raise SeedError(found, seed.source)
