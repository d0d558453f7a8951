"""The last step of a run, without a model: from extractions to a result, with its status. See ``docs/design/seed.md#compute``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from ...adapters.llm import Usage
from ...lang.evaluate.seed.explanation import explain
from ...lang.evaluate.seed.fused.engine import Compute
from ...lang.evaluate.seed.interpreter import StepError
from ...lang.evaluate.seed.step_dependencies import Reads, reads_of_outputs
from ...lang.source import NOWHERE
from ...lang.trees.seed import FormulaSeed
from .results import Counts, Extraction, ResultError, SeedResult, Status

__all__ = ["Computing", "Provenance"]


_ALLOW = "the result is complete all the same where allow_invalid (a share of the kept reviews) allows that many"


@frozen
class Provenance:
    """Where an output is from: the steps behind it (itself first), and the extractions and reviews that they used.

    ``extractions`` are places among the extractions that did not fail, ``reviews`` the indices of their reviews;
    ``explanation`` tells each step's part. ``parts`` has, for reviews that were read in parts, by review and field the places in the
    text of the parts that decided.
    """

    name: str
    value: Any
    steps: tuple[str, ...]
    extractions: tuple[int, ...]
    reviews: tuple[int, ...]
    explanation: Any
    parts: Mapping[int, Mapping[str, tuple[tuple[int, int], ...]]] = field(factory=dict)


@frozen
class Computing:
    """Computes results of one seed."""

    seed: FormulaSeed
    allow_invalid: float
    _compute: Compute
    _reads: Reads

    @classmethod
    def of(cls, seed: FormulaSeed, allow_invalid: float | None = None) -> "Computing":
        """Prepare what computes ``seed``. ``allow_invalid``: the share of kept reviews that may lack a field (None: the seed's own).

        Raises ``ValueError`` for a share that is none.
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
        """Return the result for one context: its extractions as they are, and what is computed over those that did not fail.

        ``reviews`` is how many the context has (None: as many as there are extractions). Where no review that was kept could
        be extracted there are no outputs: what is computed over nothing would be a wrong answer, not none.
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
        """Give an error for each field that the outputs use and that more of the kept reviews lack than is allowed."""
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
        return f", where {self.allow_invalid:.1%} are allowed" if self.allow_invalid else ""

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
        return f"none of the {len(extractions):,} reviews that were kept could be extracted: {extractions[0].failed}"
    return f"the one review that was kept could not be extracted: {extractions[0].failed}"


def _result_error(error: StepError) -> ResultError:
    span = None if error.span == NOWHERE else (error.span.start, error.span.end)
    return ResultError(error.step, error.kind, error.message, error.hint, error.root, span)
