"""Request and results of an iterative answer: evaluations, iterations, the complete result and its JSON.

See ``docs/design/loops.md#iterative-answers``. Scores are 0.0 to 1.0. Costs are in US dollars, None if unknown; times are in
seconds. ``Answered.as_json`` has the shape of ``GenerateAnswerResponse`` in the original specification of iterative answers::

    {"final_answer", "iterations": [{"answer", "evaluation": {"score", "meets_criteria", "evaluation_reasoning",
      "improvement_suggestions"} | null, "iteration_number", "error": {"stage", "kind", "message", "hint"} | null,
      "feedback": text | null, "chosen": index, "candidates": [{"answer", "evaluation", "error"}],
      "usage": {"calls", "prompt_tokens", "completion_tokens"}, "cost", "seconds"}],
     "success", "total_iterations", "final_score", "metadata": {"status", "stopped", "best_iteration", ...}}
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from attrs import asdict, field, frozen

from ...adapters.llm import Usage
from ...adapters.llm.budget import Price
from ...lang.errors import KnotworkError
from ..errors import RequestError, check_pairs, check_text, share, whole_number_validator
from ..results import NO_USAGE, prices_json, usage_json

if TYPE_CHECKING:
    from attrs import Attribute

Status = Literal["accepted", "best", "failed"]
"""accepted: an answer reached the threshold; best: no answer reached it, the best answer is returned; failed: no answer was evaluated."""

Stopped = Literal["", "cancelled", "budget", "time", "hopeless", "no_progress"]
"""Why the run stopped early; "" if an answer was accepted or no iteration was left. hopeless: every call fails (wrong key)."""


@frozen
class Evaluation:
    """An evaluator's evaluation of an answer. ``score`` is 0.0 to 1.0."""

    score: float
    meets_criteria: bool
    evaluation_reasoning: str = ""
    improvement_suggestions: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the evaluation as a JSON object, in the form of the original specification."""
        return {**asdict(self), "improvement_suggestions": list(self.improvement_suggestions)}


@frozen
class Fault:
    """The reason why a candidate has no answer (stage "generation") or no evaluation ("evaluation"). ``kind`` is an ``LLMError.kind``."""

    stage: Literal["generation", "evaluation"]
    kind: str
    message: str
    hint: str = ""


@frozen
class Candidate:
    """One answer in an iteration. Exactly one of ``evaluation`` and ``error`` is None; ``answer`` is "" if no answer was written."""

    answer: str
    evaluation: Evaluation | None = None
    error: Fault | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the candidate."""
        evaluation = self.evaluation.as_json() if self.evaluation is not None else None
        return {"answer": self.answer, "evaluation": evaluation, "error": asdict(self.error) if self.error else None}


@frozen
class Iteration:
    """One iteration: its candidates in order, and the index of the chosen candidate (the first one with the best score).

    ``feedback`` is the feedback on an earlier iteration that the generator received; None if it received no feedback.
    """

    iteration_number: int
    candidates: tuple[Candidate, ...]
    chosen: int = 0
    feedback: str | None = None
    usage: Usage = NO_USAGE
    calls: int = 0
    cost: float | None = None
    seconds: float = 0.0

    @property
    def answer(self) -> str:
        """The answer of the chosen candidate."""
        return self.candidates[self.chosen].answer

    @property
    def evaluation(self) -> Evaluation | None:
        """The evaluation of the chosen candidate."""
        return self.candidates[self.chosen].evaluation

    @property
    def error(self) -> Fault | None:
        """The error of the chosen candidate; None if the candidate was evaluated."""
        return self.candidates[self.chosen].error

    @property
    def score(self) -> float | None:
        """The score of the chosen candidate; None if the candidate was not evaluated."""
        return self.evaluation.score if self.evaluation is not None else None

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the iteration; the object has ``candidates`` only if there are several candidates."""
        told = self.candidates[self.chosen].as_json()
        told |= {"iteration_number": self.iteration_number, "feedback": self.feedback, "chosen": self.chosen}
        if len(self.candidates) > 1:
            told["candidates"] = [candidate.as_json() for candidate in self.candidates]
        return told | {
            "usage": usage_json(self.usage, self.calls),
            "cost": self.cost,
            "seconds": round(self.seconds, 3),
        }


@frozen
class Answered:
    """A finished iterative answer. ``best`` is the index of the iteration with the final answer; None if the status is failed.

    ``told`` contains additional entries for ``metadata`` in the JSON (model, template, limits). ``warnings`` are sentences.
    """

    status: Status
    iterations: tuple[Iteration, ...]
    best: int | None = None
    stopped: Stopped = ""
    reason: str = ""
    usage: Usage = NO_USAGE
    calls: int = 0
    cost: float | None = None
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    told: Mapping[str, Any] = field(factory=dict)
    prices: Mapping[str, Price] = field(factory=dict)
    """Maps the specs of models to their known prices."""

    @property
    def success(self) -> bool:
        """Whether an answer reached the threshold."""
        return self.status == "accepted"

    @property
    def final_answer(self) -> str | None:
        """The accepted answer or, if none was accepted, the best answer; None if no answer was evaluated."""
        return self.iterations[self.best].answer if self.best is not None else None

    @property
    def final_score(self) -> float | None:
        """The score of the final answer; None if no answer was evaluated."""
        return self.iterations[self.best].score if self.best is not None else None

    @property
    def total_iterations(self) -> int:
        """Number of iterations."""
        return len(self.iterations)

    def as_json(self) -> dict[str, Any]:
        """Return the response as a JSON object, in the form of the original specification."""
        return {
            "final_answer": self.final_answer,
            "iterations": [iteration.as_json() for iteration in self.iterations],
            "success": self.success,
            "total_iterations": self.total_iterations,
            "final_score": self.final_score,
            "metadata": {
                **self.told,
                "status": self.status,
                "stopped": self.stopped,
                "reason": self.reason,
                "best_iteration": None if self.best is None else self.best + 1,
                "usage": usage_json(self.usage, self.calls),
                "cost": self.cost,
                "seconds": round(self.seconds, 3),
                "warnings": list(self.warnings),
                **prices_json(self.prices),
            },
        }


class AnswerFailed(KnotworkError):
    """Raised if no answer was evaluated. ``result`` contains the iterations and the reason; ``str`` gives the reason."""

    def __init__(self, result: Answered) -> None:
        super().__init__(result.reason)
        self.result = result


def points(score: float, threshold: float) -> str:
    """Return a score for display: two decimal digits, or more if the rounded score would falsely reach the threshold."""
    texts = [f"{score:.{digits}f}" for digits in range(2, 11)]
    below = (text for text in texts if float(text) < threshold)
    return texts[0] if score >= threshold else next(below, texts[-1])


# The request of an iterative answer: the parameters of the original specification, with the same names, defaults and limits,
# and additional parameters.

ITERATIONS = 10
"""Maximum number of iterations, as in the original specification."""
ATTEMPTS = 8
"""Maximum number of candidates in one iteration."""
JUDGES = 9
"""Maximum number of judges in one panel."""
LONGEST = 100_000
"""Maximum characters of an instruction, a format, or criteria."""


def _text(request: "AnswerRequest", attribute: "Attribute[str]", value: object) -> None:
    check_text(attribute.name, value, LONGEST)


def _texts(request: "AnswerRequest", attribute: "Attribute[tuple[str, ...]]", value: object) -> None:
    if not isinstance(value, tuple) or not all(isinstance(each, str) for each in value):
        raise RequestError(attribute.name, "expected a list of strings")
    for each in value:
        check_pairs(attribute.name, each)


def _listed(value: Any) -> Any:
    """Return a list as a tuple, and a string as a tuple with one element. The validator reports values of other types."""
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


@frozen
class AnswerRequest:
    """The request of an iterative answer. ``docs/design/loops.md#iterative-answers`` defines names, defaults and limits.

    ``instruct`` is the question or task. ``resp_format`` is the required form of the answer; "" means any form. ``eval_crit`` are
    the criteria for the judges; "" if only checks decide. ``iter_max`` is the maximum number of iterations, 1 to 10.
    ``score_threshold`` is 0.0 to 1.0; an answer with at least this score is accepted. ``attempts`` is the number of candidates
    that are written concurrently in each iteration; the best candidate is chosen. ``judges`` is the number of judges for each
    candidate; the median of their scores is used, and with 0, only checks decide. ``checks`` are deterministic checks in the
    notation of ``evaluation.read_check``, such as "regex:...". ``template`` is the name of the prompt template. Raises
    ``RequestError``.
    """

    instruct: str = field(validator=_text)
    resp_format: str = field(default="", validator=_text)
    eval_crit: str = field(default="", validator=_text)
    iter_max: int = field(default=3, validator=whole_number_validator(1, ITERATIONS))
    score_threshold: float = field(default=0.8, validator=share)
    attempts: int = field(default=1, validator=whole_number_validator(1, ATTEMPTS))
    judges: int = field(default=1, validator=whole_number_validator(0, JUDGES))
    checks: tuple[str, ...] = field(default=(), converter=_listed, validator=_texts)
    template: str = field(default="default", validator=_text)

    def __attrs_post_init__(self) -> None:
        if not self.instruct.strip():
            raise RequestError("instruct", "the instruction is empty")

    def most_calls(self, *, is_written: bool = False) -> int:
        """Return the maximum number of calls, with one repair each: all rounds or, if ``is_written``, the judges of one answer.

        Requests that are repeated because of a fault of the connection or the server are not included.
        """
        if is_written:
            return 2 * self.judges
        return 2 * self.iter_max * self.attempts * (1 + self.judges)
