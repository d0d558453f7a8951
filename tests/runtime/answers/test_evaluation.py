"""The caller's own evaluators: all that a callable may return, and whatever it may raise."""

import asyncio
import fractions
import json
from collections.abc import Callable
from typing import Any

import pytest
from knotwork.runtime.answers.answer_results import Evaluation
from knotwork.runtime.answers.evaluation import Verdict, as_evaluator, as_evaluators, check_evaluators, read_check
from knotwork.runtime.errors import RequestError
from knotwork.runtime.results import Failed, StepFailed


def said(call: Callable[[str], Any], answer: str = "an answer") -> Evaluation:
    return asyncio.run(_awaited(call, answer))


async def _awaited(call: Callable[[str], Any], answer: str) -> Evaluation:
    return await as_evaluator(call)(answer)


def failure(call: Callable[[str], Any]) -> Failed:
    with pytest.raises(StepFailed) as caught:
        said(call)
    return caught.value.failed


def gives(value: Any) -> Callable[[str], Any]:
    def rated(answer: str) -> Any:
        return value

    return rated


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (0.5, 0.5), (1, 1.0), (0, 0.0), (True, 1.0), (False, 0.0), ((0.5, "half"), 0.5), ([False, "no"], 0.0), ((1.0, None), 1.0),
        (fractions.Fraction(1, 4), 0.25), (Evaluation(0.7, False, "meh"), 0.7), (Verdict("x", 0.3, "y", ("z",)), 0.3),
        ({"score": 0.2}, 0.2), ({"score": True, "reason": "fine"}, 1.0),
        ({"score": 0.9, "meets_criteria": True, "evaluation_reasoning": "r", "improvement_suggestions": ["s"]}, 0.9),
    ],
)  # fmt: skip
def test_what_a_callable_may_return(value: Any, score: float) -> None:
    assert said(gives(value)).score == score


def test_numbers_of_numpy_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    assert said(gives(numpy.float32(0.5))).score == 0.5
    assert said(gives(numpy.float64(1.0))).meets_criteria


def test_a_coroutine_is_awaited() -> None:
    async def rated(answer: str) -> float:
        await asyncio.sleep(0)
        return 0.5 if answer == "an answer" else 0.0

    assert said(rated).score == 0.5
    assert said(lambda answer: rated(answer)).score == 0.5


def test_an_object_that_can_be_called_has_its_class_as_name() -> None:
    class Rhymes:
        def __call__(self, answer: str) -> bool:
            return False

    assert as_evaluator(Rhymes()).name == "Rhymes"
    assert said(Rhymes()).evaluation_reasoning == "Rhymes gives 0"


def test_a_reason_is_told_and_is_the_suggestion_where_there_is_no_other() -> None:
    made = said(gives((0.5, " too short ")))
    assert (made.evaluation_reasoning, made.improvement_suggestions) == ("rated gives 0.5: too short", ("too short",))
    assert said(gives(False)).improvement_suggestions == ("Satisfy rated",)
    assert said(gives((1.0, "good"))).improvement_suggestions == ()
    assert said(
        gives({"score": 0.5, "reason": "r", "improvement_suggestions": ["s", " "]})
    ).improvement_suggestions == ("s",)


def test_what_meets_the_criteria_is_as_said_else_a_full_score() -> None:
    assert said(gives({"score": 0.9, "meets_criteria": True})).meets_criteria
    assert not said(gives(Evaluation(1.0, False))).meets_criteria
    assert not said(gives(0.99)).meets_criteria


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "rated returned None"), ("0.5", "a str as the score"), (1.5, "the score 1.5"), (-0.1, "the score -0.1"),
        (float("nan"), "the score nan"), (float("inf"), "the score inf"), (1 + 0j, "a complex as the score"), ((0.5,), "a tuple of 1"),
        ((0.5, "a", "b"), "a tuple of 3"), (("a", 0.5), "a str as the score"), ((0.5, 3), "an int as the reason"),
        ({}, "a mapping without score"), ({"score": None}, "None"), ({"score": 0.5, "improvement_suggestions": [1]}, "not strings"),
        ({"score": 0.5, "meets_criteria": "yes"}, "a str as meets_criteria"), (Evaluation(2.0, True), "the score 2"),
        (10**400, "the score inf"),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_what_is_no_evaluation_is_told_with_what_to_return(value: Any, message: str) -> None:
    failed = failure(gives(value))
    assert failed.kind == "error" and message in failed.message and "from 0.0 to 1.0" in failed.hint


def test_what_a_callable_raises_is_told_with_its_class() -> None:
    def rated(answer: str) -> float:
        raise LookupError("no dictionary")

    assert failure(rated).message == "rated raised LookupError: no dictionary"


def test_an_exception_whose_text_fails_is_told_all_the_same() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError

    def rated(answer: str) -> float:
        raise Odd

    assert failure(rated).message == "rated raised Odd"


def test_what_is_returned_may_raise_too() -> None:
    class Odd(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            raise RuntimeError("gone")

    assert failure(gives(Odd(score=1.0))).message == "rated raised RuntimeError: gone"


def test_what_is_long_or_no_text_is_cut_and_replaced() -> None:
    made = said(
        gives({"score": 0.5, "reason": "\ud800" + "x" * 10_000, "improvement_suggestions": ["y" * 10_000] * 100})
    )
    assert len(made.evaluation_reasoning) < 2_100 and len(made.improvement_suggestions) == 10
    made.evaluation_reasoning.encode()


def test_one_that_cancels_itself_has_failed() -> None:
    async def rated(answer: str) -> float:
        raise asyncio.CancelledError

    assert failure(rated).message == "rated cancelled itself"


def test_cancelling_who_waits_goes_through() -> None:
    async def rated(answer: str) -> float:
        await asyncio.sleep(60)
        return 1.0

    async def run() -> None:
        task = asyncio.create_task(as_evaluator(rated)("x"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_what_can_not_be_called_is_refused() -> None:
    with pytest.raises(RequestError, match="an int can't be called"):
        as_evaluators([len, 3])  # type: ignore[list-item]
    with pytest.raises(RequestError, match="a list of functions"):
        as_evaluators(len)  # type: ignore[arg-type]


def test_checks_are_evaluators_too() -> None:
    (words,) = check_evaluators(["words:3.."])
    assert words.name == "words:3.."
    made = asyncio.run(_awaited(words, "one"))
    assert made == Evaluation(0.0, False, "expected at least 3 words, found 1", ("Write at least 3 words",))
    assert said(read_check("json"), "{}").meets_criteria
    assert as_evaluator(words) is words


@pytest.mark.slow
def test_a_schema_that_takes_its_time_does_not_hold_the_event_loop() -> None:
    steps = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)}
    (evaluator,) = check_evaluators(["schema:" + json.dumps({"$defs": {**steps, "d30": False}, "$ref": "#/$defs/d0"})])

    async def run() -> tuple[Evaluation, int]:
        ticks, task = 0, asyncio.ensure_future(_awaited(evaluator, "{}"))
        while not task.done():
            await asyncio.sleep(0.01)
            ticks += 1
        return task.result(), ticks

    made, ticks = asyncio.run(run())
    assert "takes too long" in made.evaluation_reasoning
    assert ticks > 20
