"""Feedback: what the generator is told of its last answer, with the answer's own text.

See ``docs/design/loops.md#iterative-answers``.

An answer and what a judge said of it are data: they stand between fences that they can't contain, bounded in length. Only where a
template asks for ``{wants}`` suggestions stand there as sentences, each on one line.
"""

from ..commands.excerpts import clipped, fenced
from ..prompting import filled
from .results import Evaluation, points
from .templates import Template

__all__ = ["bounded", "feedback_on"]

_REASONING = 4_000
_SUGGESTION = 600


def feedback_on(answer: str, evaluation: Evaluation, threshold: float, template: Template) -> str:
    """Return the text that the next round's generator gets: the answer (``template.shown`` characters of it) and its evaluation."""
    wanted = [clipped(suggestion, _SUGGESTION) for suggestion in evaluation.improvement_suggestions]
    suggestions = "\n".join(f"{number}. {suggestion}" for number, suggestion in enumerate(wanted, 1))
    values = {
        "answer": fenced(bounded(answer, template.shown)),
        "score": points(evaluation.score, threshold),
        "threshold": f"{threshold:.2f}" if round(threshold, 2) == threshold else f"{threshold:g}",
        "reasoning": fenced(_sound(bounded(evaluation.evaluation_reasoning, _REASONING)) or "(nothing was said)"),
        "suggestions": fenced(suggestions or "(none)"),
        "wants": "\n".join(each if each.endswith((".", "!", "?")) else f"{each}." for each in wanted),
    }
    return filled(template.feedback, values)


def bounded(text: str, most: int) -> str:
    """Return ``text``; of one longer than ``most`` characters its first two thirds and its end, with a mark between that says so."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    left_out = len(text) - most
    return f"{text[:head]}\n… [{left_out:,} characters left out] …\n{text[-(most - head) :]}"


def _sound(text: str) -> str:
    """Return ``text`` with what can't be encoded replaced: a caller's own evaluator may say anything."""
    return text.encode("utf-8", "replace").decode()
