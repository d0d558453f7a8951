"""Evaluating a candidate: the deterministic checks and the caller's own evaluators first, the judges where those leave it open.

Checks cost nothing. Their scores' mean is what they say together; a judge is asked only where that reaches the threshold,
and the lower of both counts: no judge talks a failed check away.
"""

from collections.abc import Sequence

from attrs import define

from ..spending import Spent
from .evaluators import Evaluator
from .judging import DIGITS, SUGGESTIONS, Panel
from .results import Evaluation

__all__ = ["Evaluating"]


@define
class Evaluating:
    """What decides of a candidate: ``evaluators`` (checks are some), and the judges of ``panel`` (None: the evaluators alone)."""

    evaluators: Sequence[Evaluator]
    panel: Panel | None
    threshold: float

    async def evaluate(self, number: int, answer: str, round: Spent) -> Evaluation:
        """Return the evaluation of candidate ``number`` of the run (from 0). Raises ``StepFailed`` where there is none."""
        checked = _together([await evaluator(answer) for evaluator in self.evaluators])
        if self.panel is None or checked.score < self.threshold:
            return checked
        judged = await self.panel.judge(number, answer, round)
        return judged if checked.meets_criteria else _lower(checked, judged)


def _together(said: Sequence[Evaluation]) -> Evaluation:
    """Return what evaluators say together: the mean, and reasons and suggestions of those that are not content."""
    failed = [each for each in said if each.score < 1]
    if not failed:
        return Evaluation(1.0, True, "; ".join(each.evaluation_reasoning for each in said if each.evaluation_reasoning))
    reasons = "; ".join(each.evaluation_reasoning for each in failed if each.evaluation_reasoning)
    wanted = [suggestion for each in failed for suggestion in each.improvement_suggestions]
    mean = round(sum(each.score for each in said) / len(said), DIGITS)
    return Evaluation(mean, False, reasons, _without_repeats(wanted))


def _lower(checked: Evaluation, judged: Evaluation) -> Evaluation:
    """Return both as one: the lower score; what checks want comes first."""
    reasons = [each.evaluation_reasoning for each in (checked, judged) if each.evaluation_reasoning]
    wanted = (*checked.improvement_suggestions, *judged.improvement_suggestions)
    return Evaluation(min(checked.score, judged.score), False, "\n".join(reasons), _without_repeats(wanted))


def _without_repeats(wanted: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(wanted))[:SUGGESTIONS]
