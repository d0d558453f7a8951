"""The last step of a run, without a model: from extractions to a result, with its status. FORMULA_SEED, "compute"."""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from ...adapters.llm import Usage
from ...lang.evaluate.seed.computed import StepError
from ...lang.evaluate.seed.explaining import explain
from ...lang.evaluate.seed.fused.compute import Compute
from ...lang.seed import FormulaSeed
from ...lang.source import NOWHERE
from .results import Counts, Extraction, ResultError, SeedResult, Status

__all__ = ["Computing", "Provenance"]


@frozen
class Provenance:
    """Where an output is from: the steps behind it (itself first), and the extractions and reviews that they used.

    ``extractions`` are places among the extractions that did not fail, ``reviews`` the indices of their reviews;
    ``explanation`` tells each step's part.
    """

    name: str
    value: Any
    steps: tuple[str, ...]
    extractions: tuple[int, ...]
    reviews: tuple[int, ...]
    explanation: Any


@frozen
class Computing:
    """Computes results of one seed."""

    seed: FormulaSeed
    _compute: Compute

    @classmethod
    def of(cls, seed: FormulaSeed) -> "Computing":
        """Prepare what computes ``seed``."""
        return cls(seed, Compute.of(seed))

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
        """Return the result for one context: its extractions as they are, and what is computed over those that did not fail.

        ``reviews`` is how many the context has (None: as many as there are extractions). Where no review that was kept could
        be extracted there are no outputs: what is computed over nothing would be a wrong answer, not none.
        """
        good = [found for found in extractions if not found.failed]
        counts = Counts(
            len(extractions) if reviews is None else reviews, len(extractions), len(good),
            sum(1 for found in good if found.invalid), len(extractions) - len(good),
        )  # fmt: skip
        faults = list(errors)
        values: Mapping[str, Any] = {}
        if extractions and not good:
            faults.append(ResultError("", "extraction", _none_extracted(extractions)))
        elif not faults:
            computed = self._compute.run([found.row for found in good], context)
            values = computed.values
            faults += map(_result_error, computed.errors)
        outputs = {output: values[output] for output in self.seed.outputs if output in values}
        made = SeedResult(
            name, index, self._status(outputs, counts, faults), outputs, values, counts, tuple(faults), tuple(extractions),
            usage or Usage(), cost, calls, tuple(warnings),
        )  # fmt: skip
        return made.with_provenance(lambda asked: self._provenance(asked, good, context))

    def _status(self, outputs: Mapping[str, Any], counts: Counts, errors: Sequence[ResultError]) -> Status:
        if not outputs and (errors or self.seed.outputs):
            return "failed"
        whole = not errors and not counts.failed and len(outputs) == len(set(self.seed.outputs))
        return "complete" if whole else "partial"

    def _provenance(self, name: str, good: Sequence[Extraction], context: Mapping[str, Any]) -> Provenance:
        told = explain(self.seed, [found.row for found in good], context, name)
        used = sorted({row for step in told.steps for part in step.selections for row, _ in part.used})
        return Provenance(
            name, told.value, tuple(step.name for step in told.steps), tuple(used),
            tuple(good[row].review for row in used), told,
        )  # fmt: skip


def _none_extracted(extractions: Sequence[Extraction]) -> str:
    if len(extractions) > 1:
        return f"none of the {len(extractions):,} reviews that were kept could be extracted: {extractions[0].failed}"
    return f"the one review that was kept could not be extracted: {extractions[0].failed}"


def _result_error(error: StepError) -> ResultError:
    span = None if error.span == NOWHERE else (error.span.start, error.span.end)
    return ResultError(error.step, error.kind, error.message, error.hint, error.root, span)
