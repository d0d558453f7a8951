"""Confidence: bins and scores as by their definitions, and thresholds whose accuracy holds on the other half."""

import random

import numpy as np
import pytest
from knotwork.runtime.loops.evaluate.calibration import reliability, threshold, threshold_points
from knotwork.runtime.loops.evaluate.intervals import clopper_pearson


def answers(count: int, seed: int = 0) -> tuple[list[float], list[bool]]:
    """Return confidences of thirds, and answers that are right as often as their confidence says."""
    chance = random.Random(seed)
    confidence = [chance.choice([1 / 3, 2 / 3, 1.0]) for _ in range(count)]
    return confidence, [chance.random() < (0.99 if each == 1 else each) for each in confidence]


@pytest.mark.slow  # imports scikit-learn
def test_brier_and_calibration_error() -> None:
    from sklearn.metrics import brier_score_loss

    confidence, right = answers(500)
    own = reliability(confidence, right)
    assert own.brier == pytest.approx(brier_score_loss(right, confidence), abs=1e-12)
    error = 0.0
    for each in set(confidence):
        kept = [ok for value, ok in zip(confidence, right, strict=True) if value == each]
        error += len(kept) / 500 * abs(each - sum(kept) / len(kept))
    assert own.ece == pytest.approx(error, abs=1e-12)
    assert [row.items > 0 for row in own.bins] == [place in (3, 6, 9) for place in range(10)]
    assert sum(row.items for row in own.bins) == own.items == 500


def test_bins_include_their_upper_end() -> None:
    own = reliability([0.0, 0.1, 0.10001, 0.3, 1.0], [True] * 5)
    assert [row.items for row in own.bins] == [2, 1, 1, 0, 0, 0, 0, 0, 0, 1]
    assert own.bins[4].accuracy is None


def test_coverage_goes_from_the_surest_answers_to_all() -> None:
    own = reliability([0.9, 0.9, 0.5, None, 0.2], [True, True, False, True, True])
    assert [(point.threshold, point.items, point.coverage) for point in own.coverage] == [
        (0.9, 2, 0.5), (0.5, 3, 0.75), (0.2, 4, 1.0)
    ]  # fmt: skip
    assert [point.accuracy for point in own.coverage] == pytest.approx([1.0, 2 / 3, 3 / 4])
    assert (own.items, own.without) == (4, 1)
    many = reliability(list(np.linspace(0, 1, 5_000)), [True] * 5_000).coverage
    assert len(many) == 101 and many[-1].coverage == 1.0


def test_no_confidence_at_all() -> None:
    own = reliability([None, None], [True, False])
    assert (own.items, own.without, own.ece, own.brier, own.coverage) == (0, 2, None, None, ())
    with pytest.raises(ValueError, match="not between 0 and 1"):
        reliability([1.2], [True])


def test_points_with_a_second_model() -> None:
    confidence, right, strong = [1.0, 1.0, 0.5, None], [True, True, False, False], [True, False, True, True]
    points = threshold_points(confidence, right, 0.1, right_escalated=strong, cost_escalated=1.0)
    assert [(round(each.threshold, 6), each.kept, each.items) for each in points] == [
        (1.0, 0, 4),
        (1.0, 2, 4),
        (0.5, 3, 4),
    ]
    assert [each.accuracy for each in points] == [0.75, 1.0, 0.75]
    assert [each.cost for each in points] == pytest.approx([1.1, 0.6, 0.35])
    assert (points[1].low, points[1].high) == clopper_pearson(4, 4)


def test_points_without_a_second_model_are_of_the_kept_answers() -> None:
    points = threshold_points([1.0, 0.5], [True, False])
    assert [(each.kept, each.items, each.accuracy) for each in points] == [(0, 0, None), (1, 1, 1.0), (2, 2, 0.5)]


def test_the_cheapest_threshold_that_reaches_the_target_is_reported_on_the_other_half() -> None:
    confidence, right = answers(1_200)
    found = threshold(confidence, right, target=0.95)
    assert found.threshold == 1.0 and found.chosen is not None and found.reported is not None
    assert found.chosen.low >= 0.95
    assert found.chosen.kept + found.reported.kept == confidence.count(1.0)
    assert threshold(confidence, right, target=0.75).threshold == 2 / 3
    none = threshold(confidence, right, target=0.999)
    assert (none.threshold, none.reported, none.note) == (None, None, "no threshold reaches the target")


def test_groups_are_in_one_half_only() -> None:
    found = threshold([1.0] * 40, [True] * 40, target=0.5, groups=["a"] * 30 + ["b"] * 10)
    assert found.chosen is not None and found.reported is not None
    assert {found.chosen.items, found.reported.items} == {10, 30}


def test_faulty_targets_and_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="target accuracy"):
        threshold([1.0], [True], target=95)
    with pytest.raises(ValueError, match="2 confidences, but 1 items"):
        threshold([1.0, 1.0], [True])
    with pytest.raises(ValueError, match="1 items, but 2 escalated items"):
        threshold([1.0], [True], right_escalated=[True, True])
    assert threshold([], []).threshold is None


@pytest.mark.slow
def test_a_threshold_that_is_chosen_holds() -> None:
    kept = holding = 0
    for seed in range(400):
        chance = random.Random(seed)
        confidence = [round(chance.random(), 1) for _ in range(600)]
        right = [chance.random() < 0.5 + each / 2 for each in confidence]
        found = threshold(confidence, right, target=0.85, seed=seed)
        if found.threshold is not None:
            kept += 1
            accepted = [place / 10 for place in range(round(found.threshold * 10), 11)]
            weights = [1.0 if 0 < each < 1 else 0.5 for each in accepted]
            truth = sum(w * (0.5 + each / 2) for w, each in zip(weights, accepted, strict=True)) / sum(weights)
            holding += truth >= 0.85
    assert kept >= 300 and holding / kept >= 0.95, (kept, holding)
