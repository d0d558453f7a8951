"""Evaluators that need no model: the deterministic checks, and custom Python callables, which may return or raise anything.

A callable takes the answer and returns, directly or as an awaitable, one of: a number from 0.0 to 1.0; True or False; a pair of such a
score and a reason; an ``Evaluation``; a mapping with ``score`` and optionally the other fields of ``Evaluation``. A callable that is not
a coroutine function blocks the event loop while it runs, so a slow callable should be ``async``.
"""

import asyncio
import inspect
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, Protocol

from attrs import define, field, frozen

from ...adapters.llm import BadRequest
from ...adapters.llm.answers import unfenced
from ...adapters.llm.json_schema import first_fault, read_json, validator
from ...lang.evaluate.expr import ExprError, Limits, Meter, evaluate, truth
from ...lang.evaluate.text_checks import MOST, CheckError
from ...lang.evaluate.text_checks import Check as Written
from ...lang.evaluate.text_checks import read_check as read_written
from ...lang.linter.expr import check_expr
from ...lang.literals import kind_of
from ...lang.unicode_forms import canonical, caseless
from ..errors import RequestError
from ..excerpts import clipped
from ..models.caller import Spent
from ..results import Failed, StepFailed
from .answer_results import Evaluation
from .judges import DIGITS, SUGGESTIONS, Panel

# Deterministic checks of an answer: they cost nothing, and their results are feedback that a small model can use.
# White space around an answer is ignored. The result of a check is the score 1.0 or 0.0, the requirement, and the actual value. The
# time is limited: a pattern fails if it would take longer than about a second for a long answer; a schema check may take two seconds.

_WORK = 100_000_000
"""Maximum product of a pattern's number of instructions and an answer's number of bytes.

At worst, RE2 takes about a second for this much work.
"""
_QUICK = 1_000_000
_PARAGRAPHS = re.compile(r"\n[^\S\n]*\n")
_SHOWN = 80


@frozen
class Verdict:
    """The result of one check, or of a custom evaluator, for an answer.

    ``score`` is 0.0 to 1.0; 1.0 means passed. ``reason`` is one sentence with the requirement and the actual value.
    ``suggestions`` are possible fixes; empty if passed.
    """

    name: str
    score: float
    reason: str
    suggestions: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the score is 1.0."""
        return self.score >= 1.0


@frozen
class Check:
    """A check that was read. ``name`` is the check as written, ``wants`` is its requirement, such as "10 to 40 words".

    ``work`` is the number of instructions for each byte of an answer; None if unknown.
    """

    name: str
    wants: str
    _advice: str
    _find: Callable[[str], tuple[bool, str]] = field(repr=False, eq=False)
    work: int | None = 1

    def may_take_long(self, answer: str) -> bool:
        """Return whether the check may take more than a few milliseconds and should therefore run in a thread."""
        return self.work is None or self.work * len(answer) > _QUICK

    def __call__(self, answer: str) -> Verdict:
        """Return the result of the check for ``answer``."""
        passed, found = self._find(answer.strip())
        if passed:
            return Verdict(self.name, 1.0, f"{self.wants}: {found}")
        return Verdict(self.name, 0.0, f"expected {self.wants}, found {found}", (self._advice,))


def read_checks(texts: Sequence[str]) -> tuple[Check, ...]:
    """Read all checks of a request. Raises ``RequestError``."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise RequestError("checks", f"expected a list of strings, not {type(texts).__name__}")
    if len(texts) > MOST:
        raise RequestError("checks", f"{len(texts)} checks are too many", f"the maximum is {MOST}")
    return tuple(map(read_check, texts))


def check_texts(checks: Any) -> tuple[str, ...]:
    """Return the texts of the checks in a document. Raises ``RequestError`` for a value that is not a list of valid checks."""
    if not isinstance(checks, list | tuple):
        hint = 'such as ["words:40..120"]'
        raise RequestError("checks", f"expected a list of checks, not {kind_of(checks)}", hint)
    for number, check in enumerate(checks):
        place = f"checks[{number}]"
        if not isinstance(check, str):
            raise RequestError(place, f"expected a string, not {kind_of(check)}", "such as words:40..120")
        try:
            read_check(check)
        except RequestError as error:
            raise RequestError(place, error.message, error.hint) from None
    return tuple(checks)


def read_check(text: str) -> Check:
    """Read a check. Raises ``RequestError``.

    The forms are ``regex:PATTERN``, ``not-regex:PATTERN``, ``contains:TEXT``, ``words:10..40`` (also ``10..``, ``..40``,
    ``40``; likewise ``length``, ``lines`` and ``paragraphs``), ``json``, ``schema:{...}``,
    ``expr:EXPRESSION``.
    """
    try:
        return _MAKERS[(written := read_written(text)).kind](written)
    except (CheckError, BadRequest) as error:
        raise RequestError("checks", error.message, error.hint) from None


def _regex(written: Written) -> Check:
    wanted = written.kind == "regex"

    def find(answer: str) -> tuple[bool, str]:
        if too_long := _too_long(written, answer):
            return False, too_long
        found = _search(written.pattern, canonical(answer))
        return (found is not None) is wanted, found or "none"

    shown = clipped(written.text, _SHOWN)
    advice = f"{'Write' if wanted else 'Remove'} text that matches the pattern {shown}"
    wants = f"{'a' if wanted else 'no'} match of the pattern {shown}"
    return Check(written.written, wants, advice, find, written.pattern.programsize)


def _too_long(written: Written, answer: str) -> str:
    most = _WORK // max(1, written.pattern.programsize)
    if 4 * len(answer) <= most or len(answer.encode("utf-8", "surrogatepass")) <= most:
        return ""
    return f"{len(answer):,} characters, too many to search"


def _search(pattern: Any, answer: str) -> str | None:
    """Return the first match in a form for display, or None.

    The search runs on bytes, in which a lone surrogate never matches.
    """
    found = pattern.search(answer.encode("utf-8", "surrogatepass"))
    return None if found is None else repr(clipped(found.group()[: 4 * _SHOWN].decode("utf-8", "replace"), _SHOWN))


def _contains(written: Written) -> Check:
    wanted, shown = canonical(written.text), repr(clipped(written.text, _SHOWN))

    def find(answer: str) -> tuple[bool, str]:
        answer = canonical(answer)
        if wanted in answer or wanted.strip() == answer:
            return True, "present"
        return False, "it only in a different case" if caseless(wanted) in caseless(answer) else "no occurrence"

    return Check(written.written, f"the text {shown}", f"Write {shown} exactly as given", find)


def _blocks(texts: Sequence[str]) -> int:
    return sum(1 for text in texts if text and not text.isspace())


_NOUNS: Mapping[str, tuple[str, Callable[[str], int]]] = {
    "words": ("word", lambda answer: len(answer.split())),
    "length": ("character", len),
    "lines": ("line", lambda answer: _blocks(answer.split("\n"))),
    "paragraphs": ("paragraph", lambda answer: _blocks(_PARAGRAPHS.split(answer))),
}


def _range(written: Written) -> Check:
    noun, count = _NOUNS[written.kind]
    low, high = written.low, written.high

    def find(answer: str) -> tuple[bool, str]:
        number = count(answer)
        return (low is None or number >= low) and (high is None or number <= high), f"{number:,}"

    wants = _interval(low, high, noun)
    return Check(written.written, wants, f"Write {wants}", find)


def _interval(low: int | None, high: int | None, noun: str) -> str:
    last = low if high is None else high
    nouns = noun if last == 1 else f"{noun}s"
    if low is None:
        return f"at most {high:,} {nouns}"
    if high is None:
        return f"at least {low:,} {nouns}"
    return f"exactly {low:,} {nouns}" if low == high else f"{low:,} to {high:,} {nouns}"


def _json(written: Written) -> Check:
    def find(answer: str) -> tuple[bool, str]:
        _, why = _value(answer)
        return not why, why or "valid"

    return Check(written.written, "JSON and nothing else", "Answer with JSON and nothing else", find)


def _value(answer: str) -> tuple[Any, str]:
    """Return the JSON value in the answer or in its fence, and ""; if there is no valid value, return None and the reason."""
    try:
        return read_json(unfenced(answer).strip()), ""
    except ValueError as error:
        return None, f"invalid JSON: {error}" if answer else "nothing"


def _schema(written: Written) -> Check:
    fits, shown = validator(written.schema), clipped(written.text, 4 * _SHOWN)

    def find(answer: str) -> tuple[bool, str]:
        value, why = _value(answer)
        if not why:
            try:
                why = first_fault(fits, value)
            except BadRequest as error:  # faults that only the validator detects appear here
                why = error.message
        return not why, why or "valid"

    wants = f"JSON that fits the schema {shown}"
    return Check(written.written, wants, f"Answer with {wants} and nothing else", find, None)


def _expr(written: Written) -> Check:
    faults = [each for each in check_expr(written.expression, names=("answer",)) if each.severity == "error"]
    if faults:
        raise CheckError(
            f"the expression {clipped(written.text, _SHOWN)} has an error: {faults[0].message}",
            "the answer is the value `answer`, parsed if it is JSON",
        )
    shown = clipped(written.text, 4 * _SHOWN)

    def find(answer: str) -> tuple[bool, str]:
        value, why = _value(answer)
        try:
            found = evaluate(written.expression, {"answer": answer if why else value}, meter=Meter(Limits()))
        except ExprError as error:
            return False, f"an error: {error.message}"
        return truth(found), clipped(json.dumps(found, ensure_ascii=False, default=str), _SHOWN)

    return Check(written.written, f"{shown} to be true", f"Write an answer for which {shown} is true", find, None)


_MAKERS: Mapping[str, Callable[[Written], Check]] = {
    "regex": _regex, "not-regex": _regex, "contains": _contains, "words": _range, "length": _range, "lines": _range,
    "paragraphs": _range, "json": _json, "schema": _schema, "expr": _expr,
}  # fmt: skip

_LONGEST = 2_000
"""Maximum characters of a reason, of a suggestion, and of a message from an exception that a callable raised."""
_MOST = 10
"""Maximum number of suggestions."""
_WANTED = "return a number from 0.0 to 1.0, True or False, (score, reason), an Evaluation, or a mapping with score"


class Evaluator(Protocol):
    """Evaluates an answer without a model. A score of 1.0 means passed. Raises only ``StepFailed``, if the evaluation fails."""

    @property
    def name(self) -> str:
        """The name that reasons and messages use for the evaluator."""
        ...

    async def __call__(self, answer: str) -> Evaluation:
        """Return the evaluation of ``answer``."""
        ...


def check_evaluators(texts: Sequence[str]) -> tuple[Evaluator, ...]:
    """Return the checks of a request as evaluators. Raises ``RequestError`` for an invalid check."""
    return tuple(map(_Checked, read_checks(texts)))


def as_evaluators(given: Sequence[Callable[[str], Any]]) -> tuple[Evaluator, ...]:
    """Return an evaluator for each custom callable, in order. Raises ``RequestError``."""
    if not isinstance(given, Sequence):
        raise RequestError("evaluators", f"expected a list of functions, not {_kind(given)}")
    return tuple(map(as_evaluator, given))


def as_evaluator(given: Callable[[str], Any]) -> Evaluator:
    """Return an evaluator that calls ``given`` (which may be a ``Check``). Raises ``RequestError`` if ``given`` is not callable."""
    if isinstance(given, _Called | _Checked):
        return given
    if isinstance(given, Check):
        return _Checked(given)
    if not callable(given):
        raise RequestError(
            "evaluators", f"{_kind(given)} can't be called", "pass functions that take an answer and return a score"
        )
    return _Called(given, str(getattr(given, "__name__", type(given).__name__))[:80])


@frozen
class _Checked:
    """A deterministic check as an evaluator."""

    check: Check

    @property
    def name(self) -> str:
        return self.check.name

    async def __call__(self, answer: str) -> Evaluation:
        long = self.check.may_take_long(answer)  # the author of the check may try to block the event loop
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
        except Exception as error:  # custom code: the call and its return value may raise anything
            raise StepFailed(Failed("error", f"{self.name} raised {_error_text(error)}")) from error

    def _evaluation(self, said: Any) -> Evaluation:
        """Return the callable's return value as an evaluation. Raises ``StepFailed`` if the value is invalid."""
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
        """Return score, reason, suggestions and ``meets_criteria`` without checking them; a missing part is None."""
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
        if not isinstance(score, Real):  # bool and NumPy numbers are Real too
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
        return _encodable((reason or "").strip()[:_LONGEST])

    def _texts(self, given: Any) -> tuple[str, ...]:
        texts = (given,) if isinstance(given, str) else () if given is None else given
        if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
            raise self._unusable("suggestions that are not strings")
        return tuple(_encodable(text.strip()[:_LONGEST]) for text in texts[:_MOST] if text.strip())

    def _unusable(self, what: str) -> StepFailed:
        return StepFailed(Failed("error", f"{self.name} returned {what}", _WANTED))


def _error_text(error: Exception) -> str:
    """Return a message for the exception, even if calling ``str`` on the exception fails."""
    try:
        text = str(error)
    except Exception:  # a custom exception class
        text = ""
    return _encodable(f"{type(error).__name__}: {text}" if text else type(error).__name__)[:_LONGEST]


def _encodable(text: str) -> str:
    """Return ``text``; characters that can't be encoded as UTF-8 are replaced."""
    return text.encode("utf-8", "replace").decode()


def _kind(value: Any) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


# Evaluating a candidate: first the deterministic checks and custom evaluators, then the judges if needed.
# Checks cost nothing. Their combined score is the mean of their scores. Judges are called only if the mean reaches the threshold; the
# lower of the mean and the judges' score is used, so that a judge can't override a failed check.


@define
class CandidateEvaluator:
    """Evaluates candidates with ``evaluators`` (including checks) and the judges in ``panel`` (None means no judges)."""

    evaluators: Sequence[Evaluator]
    panel: Panel | None
    threshold: float

    async def evaluate(self, number: int, answer: str, round: Spent) -> Evaluation:
        """Return the evaluation of candidate ``number`` of the run (from 0). Raises ``StepFailed`` if the evaluation fails."""
        checked = _mean_evaluation([await evaluator(answer) for evaluator in self.evaluators])
        if self.panel is None or checked.score < self.threshold:
            return checked
        judged = await self.panel.judge(number, answer, round)
        return judged if checked.meets_criteria else _lower_evaluation(checked, judged)


def _mean_evaluation(said: Sequence[Evaluation]) -> Evaluation:
    """Return the combined evaluation: the mean score, and the reasons and suggestions of the evaluators that did not pass."""
    failed = [each for each in said if each.score < 1]
    if not failed:
        return Evaluation(1.0, True, "; ".join(each.evaluation_reasoning for each in said if each.evaluation_reasoning))
    reasons = "; ".join(each.evaluation_reasoning for each in failed if each.evaluation_reasoning)
    wanted = [suggestion for each in failed for suggestion in each.improvement_suggestions]
    mean = round(sum(each.score for each in said) / len(said), DIGITS)
    return Evaluation(mean, False, reasons, _without_repeats(wanted))


def _lower_evaluation(checked: Evaluation, judged: Evaluation) -> Evaluation:
    """Return one evaluation made from two: the lower score, both reasons, and all suggestions (first the suggestions from the checks)."""
    reasons = [each.evaluation_reasoning for each in (checked, judged) if each.evaluation_reasoning]
    wanted = (*checked.improvement_suggestions, *judged.improvement_suggestions)
    return Evaluation(min(checked.score, judged.score), False, "\n".join(reasons), _without_repeats(wanted))


def _without_repeats(wanted: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(wanted))[:SUGGESTIONS]
