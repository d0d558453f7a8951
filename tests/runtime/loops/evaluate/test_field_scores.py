"""Scores of one candidate for one column: what counts as wrong, what stands beside the score."""

from typing import Any

import pytest
from knotwork.runtime.loops.evaluate.field_scores import METRICS, Answer, FieldScores, majority, predicted, score_field
from knotwork.runtime.loops.evaluate.gold import Expected

LABEL = Expected("rating", "label", ("good", "bad"))


def scored(expected: Expected, gold: list[Any], answers: list[Answer], **settings: Any) -> FieldScores:
    return score_field(expected, gold, answers, [str(place) for place in range(len(gold))], resamples=200, **settings)


def test_invalid_failed_and_unanswered_are_wrong_and_counted_and_answered_accuracy_leaves_them_out() -> None:
    answers = [
        Answer("good"),
        Answer(status="invalid"),
        Answer(status="failed"),
        Answer(status="unanswered"),
        Answer("bad"),
    ]
    found = scored(LABEL, ["good", "good", "good", "bad", "bad"], answers)
    assert found.accuracy.value == 0.4 and found.answered_accuracy.value == 1.0
    assert {name: found.counts[name] for name in ("answered", "invalid", "failed", "unanswered")} == {
        "answered": 2, "invalid": 1, "failed": 1, "unanswered": 1,
    }  # fmt: skip
    assert found.confusion == ((1, 0, 2), (0, 1, 1)) and found.majority == ("good", 0.6)
    assert found.right == (True, False, False, False, True)


def test_a_null_is_a_wrong_answer() -> None:
    assert scored(LABEL, ["good", "bad"], [Answer(None), Answer("bad")]).accuracy.value == 0.5


def test_filtered_items_are_wrong_and_the_scores_without_them_stand_beside() -> None:
    found = scored(
        LABEL,
        ["good", "good", "bad", "bad"],
        [Answer("good"), Answer(status="filtered"), Answer("bad"), Answer("good")],
    )
    assert found.accuracy.value == 0.5 and found.kept["accuracy"].value == pytest.approx(2 / 3)
    assert found.filter_recall == {"bad": (2, 2), "good": (1, 2)}
    assert scored(LABEL, ["good"], [Answer("good")]).filter_recall == {}


def test_repeats_tell_how_stable_answers_are() -> None:
    again = [[Answer("good"), Answer("good")], [Answer("good"), Answer("bad")]]
    found = scored(LABEL, ["good", "bad"], [Answer("good"), Answer("bad")], repeats=again)
    assert found.repeats is not None
    assert (found.repeats.count, found.repeats.same, found.repeats.values) == (3, 0.5, (1.0, 0.5, 1.0))


def test_confidence_gives_a_calibration() -> None:
    answers = [Answer("good", confidence=0.9), Answer("bad", confidence=0.6)]
    found = scored(LABEL, ["good", "good"], answers)
    assert found.calibration is not None and found.calibration["items"] == 2
    assert scored(LABEL, ["good"], [Answer("good")]).calibration is None


@pytest.mark.parametrize(
    ("kind", "gold", "values", "metric", "value"),
    [
        ("flag", [True, False], [True, True], "accuracy", 0.5),
        ("number", [3, 5], [3, 7], "mae", 1.0),
        ("number", [3, 5], [3, 7], "within", 0.5),
        ("text", ["A b", "c"], ["a  B", "d"], "equal", 0.5),
        ("set", [["x", "y"]], [["x"]], "f1", 2 / 3),
        ("ranking", [[2], [1]], [[1, 2], [1]], "mrr", 0.75),
        ("check", ["words:1"], [True], "pass_rate", 1.0),
        ("score", [0.9, 0.1], [0.9, 0.3], "mean_difference", 0.1),
        ("accept", [True, False], [True, True], "pass_rate", 1.0),
    ],
)
def test_each_kind_has_its_metrics(kind: Any, gold: list[Any], values: list[Any], metric: str, value: float) -> None:
    found = scored(Expected("v", kind), gold, [Answer(each) for each in values])
    assert list(found.metrics) == list(METRICS[kind])
    assert found.metrics[metric].value == pytest.approx(value)


def test_the_tolerance_makes_near_numbers_right() -> None:
    expected = Expected("v", "number")
    assert scored(expected, [3.0, 5.0], [Answer(3.4), Answer(6)], tolerance=0.5).within.value == 0.5


def test_a_value_of_another_type_is_no_answer() -> None:
    assert predicted(True, Expected("v", "number")) is None
    assert predicted("3", Expected("v", "number")) is None
    assert predicted("yes", Expected("v", "flag")) is None
    assert predicted(["a"], LABEL) is None and predicted(3, LABEL) == "3"
    assert predicted("a", Expected("v", "set")) is None


def test_a_label_in_another_case_is_this_label() -> None:
    label = Expected("v", "label", ("Good", "bad"))
    assert [predicted(each, label) for each in ("good", "BAD ", "other")] == ["Good", "bad", "other"]


def test_an_unknown_metric_names_the_metrics() -> None:
    with pytest.raises(
        AttributeError, match="the rating has no metric 'f1'; its metrics are accuracy, macro_f1, kappa"
    ):
        scored(LABEL, ["good"], [Answer("good")]).f1  # noqa: B018


def test_the_majority() -> None:
    assert majority(["b", "a", "b"]) == ("b", 2 / 3)
    assert majority(["b", "a"]) == ("a", 0.5)
    assert majority([]) == (None, None)
