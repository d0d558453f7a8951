"""Evaluators without a model: the deterministic checks, and the caller's own Python callables, whatever these return or raise.

A callable takes the answer and returns, or is awaited for, one of: a number from 0.0 to 1.0; True or False; a pair of such a
score and a reason; an ``Evaluation``; a mapping with ``score`` and, if it likes, the seed's other fields. One that is no
coroutine function runs in the event loop: what takes long is for ``async`` ones.
"""

import asyncio
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, Protocol

from attrs import define, frozen

from ..errors import RequestError
from ..models.usage import Spent
from ..results import Failed, StepFailed
from .answer_results import Evaluation
from .checks import Check, Verdict, read_checks
from .judges import DIGITS, SUGGESTIONS, Panel

__all__ = ["Evaluating", "as_evaluator", "as_evaluators", "check_evaluators"]

_LONGEST = 2_000
"""Characters that are kept of a reason, of a suggestion, and of what a callable raised."""
_MOST = 10
"""Suggestions that are kept."""
_WANTED = "return a number from 0.0 to 1.0, True or False, (score, reason), an Evaluation, or a mapping with score"


class Evaluator(Protocol):
    """Evaluates an answer without a model. 1.0 is a pass. Raises ``StepFailed`` where there is no evaluation, and nothing else."""

    @property
    def name(self) -> str:
        """What it is called in reasons and messages."""
        ...

    async def __call__(self, answer: str) -> Evaluation:
        """Return what it says of ``answer``."""
        ...


def check_evaluators(texts: Sequence[str]) -> tuple[Evaluator, ...]:
    """Return the checks of a request as evaluators. Raises ``RequestError`` for one that can't be read."""
    return tuple(map(_Checked, read_checks(texts)))


def as_evaluators(given: Sequence[Callable[[str], Any]]) -> tuple[Evaluator, ...]:
    """Return the caller's callables as evaluators, in their order. Raises ``RequestError``."""
    if not isinstance(given, Sequence):
        raise RequestError("evaluators", f"a list of functions is wanted, not {_kind(given)}")
    return tuple(map(as_evaluator, given))


def as_evaluator(given: Callable[[str], Any]) -> Evaluator:
    """Return an evaluator that calls ``given`` (a ``Check`` too). Raises ``RequestError`` for what can't be called."""
    if isinstance(given, _Called | _Checked):
        return given
    if isinstance(given, Check):
        return _Checked(given)
    if not callable(given):
        raise RequestError("evaluators", f"{_kind(given)} can't be called", "pass functions from an answer to a score")
    return _Called(given, str(getattr(given, "__name__", type(given).__name__))[:80])


@frozen
class _Checked:
    """A deterministic check as an evaluator."""

    check: Check

    @property
    def name(self) -> str:
        return self.check.name

    async def __call__(self, answer: str) -> Evaluation:
        long = self.check.may_take_long(answer)  # whoever wrote it may want to hold the event loop up
        said = await asyncio.to_thread(self.check, answer) if long else self.check(answer)
        return Evaluation(said.score, said.passed, said.reason, said.suggestions)


@frozen
class _Called:
    """A Python callable as an evaluator."""

    call: Callable[[str], Any]
    name: str

    async def __call__(self, answer: str) -> Evaluation:
        try:
            said = self.call(answer)
            if inspect.isawaitable(said):
                said = await said
            return self._evaluation(said)
        except StepFailed:
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise StepFailed(Failed("error", f"{self.name} cancelled itself")) from None
        except Exception as error:  # it is the caller's code, and so is what it returns: both may raise anything
            raise StepFailed(Failed("error", f"{self.name} raised {_told(error)}")) from error

    def _evaluation(self, said: Any) -> Evaluation:
        """Return what the callable said as an evaluation. Raises ``StepFailed`` for what is none."""
        score, reason, suggestions, meets = self._parts(said)
        number, told, listed = self._score(score), self._text(reason), self._texts(suggestions)
        if meets is not None and not isinstance(meets, bool):
            raise self._unusable(f"{_kind(meets)} as meets_criteria")
        passed = number >= 1 if meets is None else meets
        found = f"{self.name} gives {number:g}: {told}" if told else f"{self.name} gives {number:g}"
        if not listed and not (passed and number >= 1):
            listed = (told or f"Satisfy {self.name}",)
        return Evaluation(number, passed, found, listed)

    def _parts(self, said: Any) -> tuple[Any, Any, Any, Any]:
        """Return score, reason, suggestions and whether it meets the criteria, as they are; None for what is not said."""
        if isinstance(said, Evaluation):
            return said.score, said.evaluation_reasoning, said.improvement_suggestions, said.meets_criteria
        if isinstance(said, Verdict):
            return said.score, said.reason, said.suggestions, None
        if isinstance(said, Mapping):
            if "score" not in said:
                raise self._unusable("a mapping without score")
            reason = said.get("evaluation_reasoning", said.get("reason"))
            return said["score"], reason, said.get("improvement_suggestions"), said.get("meets_criteria")
        if isinstance(said, tuple | list):
            if len(said) != 2:
                raise self._unusable(f"{_kind(said)} of {len(said)}")
            return said[0], said[1], None, None
        return said, None, None, None

    def _score(self, score: Any) -> float:
        if not isinstance(score, Real):  # a bool is one; so is a number of NumPy
            raise self._unusable("None" if score is None else f"{_kind(score)} as the score")
        try:
            number = float(score)
        except OverflowError:
            number = math.inf
        if math.isnan(number) or not 0 <= number <= 1:
            raise self._unusable(f"the score {number:g}")
        return number

    def _text(self, reason: Any) -> str:
        if reason is not None and not isinstance(reason, str):
            raise self._unusable(f"{_kind(reason)} as the reason")
        return _sound((reason or "").strip()[:_LONGEST])

    def _texts(self, given: Any) -> tuple[str, ...]:
        texts = (given,) if isinstance(given, str) else () if given is None else given
        if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
            raise self._unusable("suggestions that are no texts")
        return tuple(_sound(text.strip()[:_LONGEST]) for text in texts[:_MOST] if text.strip())

    def _unusable(self, what: str) -> StepFailed:
        return StepFailed(Failed("error", f"{self.name} returned {what}", _WANTED))


def _told(error: Exception) -> str:
    """Say what was raised; an exception's own text may fail too."""
    try:
        text = str(error)
    except Exception:  # the caller's class
        text = ""
    return _sound(f"{type(error).__name__}: {text}" if text else type(error).__name__)[:_LONGEST]


def _sound(text: str) -> str:
    """Return ``text`` with what can't be encoded replaced."""
    return text.encode("utf-8", "replace").decode()


def _kind(value: Any) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


# Evaluating a candidate: the deterministic checks and the caller's own evaluators first, the judges where those leave it open.
# Checks cost nothing. Their scores' mean is what they say together; a judge is asked only where that reaches the threshold, and the
# lower of both counts: no judge talks a failed check away.


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
