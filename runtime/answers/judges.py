"""Judges: the evaluation of an answer by a model or a panel of models. See ``docs/design/loops.md#iterative-answers``.

A judge sees instruction, format, criteria and answer, each between fences that its text can't contain. Every prompt states the scale;
results are 0.0 to 1.0. A score that states its own scale is accepted (``9/10``, ``90 %``). If a score is outside the scale, or
contradicts ``meets_criteria``, the judge is called again.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Literal

from attrs import field, frozen

from ...adapters.llm.answers import unfenced
from ...adapters.llm.json_schema import read_json
from ...lang.absence import is_absent
from ...lang.answers import read_object, with_wanted_keys
from ...lang.coercion import Fit, as_value
from ...lang.literals import Unreadable
from ..errors import short_repr
from ..excerpts import fenced, filled
from ..models.caller import Asker, Losses, Spent
from ..results import Failed, StepFailed
from .answer_results import AnswerRequest, Evaluation
from .generator import ask_text, place_of
from .templates import Template

Scale = Literal["auto", "unit", "ten"]
"""The scale for a judge. "unit": a number from 0.0 to 1.0. "ten": a whole number from 0 to 10. "auto": the same as "unit"."""

LONGEST_JUDGED = 100_000
"""Maximum characters of a judged answer. The evaluation of a longer answer fails, because the score of a part would be a guess."""
SUGGESTIONS = 10
"""Maximum number of suggestions in one evaluation."""
DIGITS = 10
"""Decimal digits to which a mean or median is rounded. Without rounding, the mean of 0.1 and 0.7 would be 0.39999999999999997,
which does not reach a threshold of 0.4."""
_MOST = 100
_REASONING = 10_000
_SUGGESTION = 2_000
_WARMER = 0.8
"""Temperature for all judges of a panel that use the same model, except the first, so that their answers can differ."""
_FOR_JUDGES = ("timeout", "retries", "seed")
"""Options that judges share with the generator. A length limit or stop text for answers would cut off the JSON of a judge."""
_FORMS = {
    scale: '{"evaluation_reasoning": "what meets the criteria and what does not, and why", '
    f'"score": {number}, "meets_criteria": true or false, "improvement_suggestions": ["one thing to do better", ...]}}'
    for scale, number in (("unit", "a number from 0.0 to 1.0"), ("ten", "a whole number from 0 to 10"))
}
_SCALES = {
    "unit": "Score it with a number from 0.0 to 1.0: 1.0 means that it meets all criteria fully, 0.0 that it meets none. For a"
    " score below 1.0, suggest specific improvements.",
    "ten": "Score it with a whole number from 0 to 10: 10 means that it meets all criteria fully, 0 that it meets none. For a"
    " score below 10, suggest specific improvements.",
}


_AGREE: Mapping[str, str] = {
    "unit": "meets_criteria agrees with the score: false below 0.5, true from 0.8 on.",
    "ten": "meets_criteria agrees with the score: false below 5, true from 8 on.",
}


def read_score(value: Any, scale: Literal["unit", "ten"] = "unit") -> float | str:
    """Return a judge's score as 0.0 to 1.0; if ``value`` is not a valid score, return a clause that tells the judge why.

    ``9/10``, ``9 out of 10`` and ``90%`` are accepted for every scale, because they state their own scale.
    """
    number: float | None = None
    if isinstance(value, str):
        said = value.strip().strip("*\"'").strip()
        if share := _SHARE.fullmatch(said):
            whole = float(share[2] or 100)
            number = float(share[1]) / whole if whole else None
            if number is not None and number <= 1:
                return number + 0.0
        elif _NUMBER.fullmatch(said):
            number = float(said)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if abs(value) < 1e9 else None
    if number is not None and scale == "unit" and 0 <= number <= 1:
        return number + 0.0
    if number is not None and scale == "ten" and 0 <= number <= 10 and number.is_integer():
        return number / 10
    wanted = "a number from 0.0 to 1.0" if scale == "unit" else "a whole number from 0 to 10"
    example = " (0.9 for nine tenths)" if scale == "unit" and number is not None and number > 1 else ""
    return f"$.score is {short_repr(value)}; the scale is {wanted}{example}"


_SHARE = re.compile(
    r"(\d{1,4}(?:\.\d{1,10})?)\s*(?:(?:/|out\s+of|of)\s*(\d{1,4}(?:\.0+)?)|%|percent)\.?", re.IGNORECASE
)
_NUMBER = re.compile(r"[-+]?(?:\d{1,4}(?:\.\d{0,15})?|\.\d{1,15})\.?")


def disagreement(score: float, meets: bool) -> str:
    """Return a clause for the judge if a score and ``meets_criteria`` contradict each other, else "". The prompt states the limits."""
    if meets and score < _HALF:
        return f"$.meets_criteria is true, but $.score is {score:g}, which means that the criteria are not met; make them agree"
    if not meets and score >= _GOOD:
        return f"$.meets_criteria is false, but $.score is {score:g}, which means that the criteria are met; make them agree"
    return ""


_HALF, _GOOD = 0.5, 0.8
"""With a score below ``_HALF``, ``meets_criteria`` can't be true; with at least ``_GOOD`` (the default threshold), it can't be false."""


def can_judge(spec: str) -> bool:
    """Return whether the model ``spec`` gives meaningful scores. The default local model is too small: it rates every answer as good."""
    return spec.strip() != "local"


def evaluation_schema(scale: Literal["unit", "ten"]) -> dict[str, Any]:
    """Return the schema of ``EvaluationResponse`` in the original specification. The reasoning precedes the score."""
    number: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}
    if scale == "ten":
        number = {"type": "integer", "enum": list(range(11))}
    properties = {
        "evaluation_reasoning": {"type": "string", "description": "Detailed explanation of the evaluation"},
        "score": {**number, "description": "How well the answer meets the criteria"},
        "meets_criteria": {"type": "boolean", "description": "Whether the answer meets the criteria"},
        "improvement_suggestions": {
            "type": "array", "items": {"type": "string"}, "description": "Specific suggestions for improvement",
        },
    }  # fmt: skip
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


@frozen
class Panel:
    """The judges of one request. Each judge uses the next of ``models`` in rotation (names; None: the run's model).

    ``scales`` contains the scale for each of ``models``. ``options`` are the request's options for the LLM port; judges get only the
    options in ``_FOR_JUDGES``.
    """

    asker: Asker
    request: AnswerRequest
    template: Template
    models: Sequence[str | None]
    scales: Sequence[Literal["unit", "ten"]]
    options: Mapping[str, Any]
    losses: Losses
    fewer: list[Failed] = field(factory=list)
    """The first failure of each evaluation with fewer judges than requested, without failures of the kinds in ``losses``."""

    @property
    def is_lost(self) -> bool:
        """Whether none of the judges' models can be called."""
        return all(name in self.losses.models for name in self.models)

    async def judge(self, number: int, answer: str, round: Spent) -> Evaluation:
        """Return the evaluation of candidate ``number`` of the run (from 0). Raises ``StepFailed`` if no judge evaluated it."""
        if len(answer) > LONGEST_JUDGED:
            message = f"the answer has {len(answer):,} characters; a judge reads at most {LONGEST_JUDGED:,}"
            raise StepFailed(Failed("prompt_too_long", message, "ask for a shorter answer, or use checks only"))
        if self.request.judges == 1:
            return await self._ask_judge(number, 0, answer, round)
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(self._evaluation_or_failure(number, judge, answer, round))
                for judge in range(self.request.judges)
            ]
        said = [task.result() for task in asked]
        given = [each for each in said if isinstance(each, Evaluation)]
        if not given:
            first = next(each for each in said if isinstance(each, Failed))
            raise StepFailed(
                Failed(first.kind, f"none of {len(said)} judges gave an evaluation: {first.message}", first.hint)
            )
        lost = self.losses.models.values()
        others = [each for each in said if isinstance(each, Failed) and all(each.kind != one.kind for one in lost)]
        self.fewer.extend(others[:1])
        return _combined(given)

    async def _evaluation_or_failure(self, number: int, judge: int, answer: str, round: Spent) -> Evaluation | Failed:
        try:
            return await self._ask_judge(number, judge, answer, round)
        except StepFailed as error:
            return error.failed

    async def _ask_judge(self, number: int, judge: int, answer: str, round: Spent) -> Evaluation:
        turn = judge % len(self.models)
        scale = self.scales[turn]
        options: dict[str, Any] = {name: self.options[name] for name in _FOR_JUDGES if name in self.options}
        before = {self.models[each % len(self.models)] for each in range(judge)}
        options["temperature"] = _WARMER if self.models[turn] in before else 0.0
        if self.template.evaluator_system:
            options["system"] = self.template.evaluator_system
        if judge:
            options["sample"] = judge
        options |= {"schema": evaluation_schema(scale), "tidy": lambda text: _normalised(text, scale)}
        prompt = self.prompt(answer, scale)
        text = await ask_text(self.asker, place_of(number, judge), prompt, options, self.models[turn], round)
        return _evaluation_of(text, scale)

    def prompt(self, answer: str, scale: Literal["unit", "ten"]) -> str:
        """Return the prompt for a judge."""
        request = self.request
        told = f"{_SCALES[scale]} {_AGREE[scale]}\nAnswer with JSON only, of this form:\n{_FORMS[scale]}"
        values = {
            "instruct": fenced(request.instruct),
            "resp_format": fenced(request.resp_format if request.resp_format.strip() else "(any)"),
            "eval_crit": fenced(request.eval_crit),
            "answer": fenced(answer),
            "scale": told,
        }
        written = filled(self.template.evaluator, values)
        return written if self.template.has("evaluator", "scale") else f"{written}\n\n{told}"


def _normalised(text: str, scale: Literal["unit", "ten"]) -> str:
    """Return the evaluation that ``text`` contains, as JSON in the form of the schema.

    Unknown fields are dropped. Missing suggestions, null and words such as "none" become an empty list (the default). Raises
    ``ValueError`` with a clause that tells the judge what is wrong.
    """
    wanted = evaluation_schema(scale)["properties"]
    try:
        said = read_json(unfenced(text).strip())
    except ValueError:
        found = read_object(text, tuple(wanted))
        if isinstance(found, Unreadable):
            raise ValueError(found.reason) from None
        said = found.value
    if not isinstance(said, dict):
        return text
    keyed = with_wanted_keys(said, tuple(wanted))
    if isinstance(keyed, Unreadable):
        raise ValueError(keyed.reason)
    made = {name: value for name, value in keyed[0].items() if name in wanted}
    suggestions = made.setdefault("improvement_suggestions", [])
    if suggestions is None or isinstance(suggestions, str):
        suggestions = made["improvement_suggestions"] = [suggestions]
    if isinstance(suggestions, list):
        suggestions = made["improvement_suggestions"] = [
            each for each in suggestions if each is not None and not (isinstance(each, str) and is_absent(each))
        ]
    if (
        isinstance(suggestions, list) and len(suggestions) > _MOST
    ):  # more suggestions than any judge writes; checking them would take seconds
        made["improvement_suggestions"] = suggestions[:_MOST]
    if isinstance(meets := as_value(made.get("meets_criteria"), "bool"), Fit):
        made["meets_criteria"] = meets.value
    if "score" in made:
        score = read_score(made["score"], scale)
        if isinstance(score, str):
            raise ValueError(score)
        made["score"] = round(score * 10) if scale == "ten" and (score * 10).is_integer() else score
        if isinstance(meets, Fit) and (why := disagreement(score, meets.value)):
            raise ValueError(why)
    return json.dumps(made, ensure_ascii=False)


def _evaluation_of(text: str, scale: Literal["unit", "ten"]) -> Evaluation:
    """Return the evaluation in ``text``; ``text`` matches the schema."""
    said = read_json(text)
    score = float(said["score"]) / 10 if scale == "ten" else float(said["score"])
    suggestions = [suggestion.strip()[:_SUGGESTION] for suggestion in said["improvement_suggestions"]]
    return Evaluation(
        score + 0.0, said["meets_criteria"], said["evaluation_reasoning"].strip()[:_REASONING], _listed(suggestions)
    )


def _listed(suggestions: Sequence[str]) -> tuple[str, ...]:
    """Return the first suggestions, without blank suggestions and duplicates."""
    return tuple(dict.fromkeys(suggestion for suggestion in suggestions if suggestion))[:SUGGESTIONS]


def _combined(given: Sequence[Evaluation]) -> Evaluation:
    """Return the evaluation by a panel.

    The score is the median of the scores, and ``meets_criteria`` is the opinion of the majority. The reasoning is taken from the judge
    whose score is nearest to the median; the suggestions are taken from all judges.
    """
    score = round(median(each.score for each in given), DIGITS)
    nearest = min(given, key=lambda each: round(abs(each.score - score), DIGITS))
    majority = 2 * sum(each.meets_criteria for each in given) > len(given)
    suggestions = [suggestion for each in given for suggestion in each.improvement_suggestions]
    return Evaluation(score, majority, nearest.evaluation_reasoning, _listed(suggestions))
