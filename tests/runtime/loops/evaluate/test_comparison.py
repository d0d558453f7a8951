"""Comparisons: McNemar's test as scipy's, verdicts that are wrong at most as often as they claim, and the power that is claimed."""

import random
from collections import Counter

import numpy as np
import pytest
from knotwork.runtime.loops.evaluate.comparison import compare, corrected, holm, mcnemar
from knotwork.runtime.loops.evaluate.metrics import classification, mean_of, numeric
from support.examples import many

ONLY = [(0, 0), (0, 1), (0, 6), (1, 8), (8, 1), (40, 40), (50, 31), (300, 410), (2_000, 2_300)]


@pytest.mark.parametrize(("only_a", "only_b"), ONLY)
def test_the_exact_test_is_that_of_scipy(only_a: int, only_b: int) -> None:
    from scipy.stats import binomtest

    expected = binomtest(only_a, only_a + only_b).pvalue if only_a + only_b else 1.0
    assert mcnemar(only_a, only_b) == pytest.approx(expected, abs=1e-9)


def test_a_clear_difference_is_better_or_worse() -> None:
    good, bad = [True] * 90 + [False] * 10, [True] * 60 + [False] * 40
    found = compare(good, bad)
    assert (found.verdict, found.test, found.only_a, found.only_b) == ("better", "mcnemar", 30, 0)
    assert found.difference == pytest.approx(0.3)
    assert found.low is not None and found.high is not None and 0.2 < found.low < 0.3 < found.high < 0.4
    assert found.p == found.mcnemar == mcnemar(30, 0)
    back = compare(bad, good)
    assert back.verdict == "worse" and back.difference == pytest.approx(-0.3)


def test_a_small_difference_is_not_shown_and_the_smallest_that_would_be_is_given() -> None:
    a, b = [True] * 41 + [False] * 9, [True] * 40 + [False] * 10
    found = compare(a, b)
    assert found.verdict == "no difference shown"
    assert found.detectable is not None and 0.1 < found.detectable < 0.25


def test_answers_of_one_group_are_exchanged_together() -> None:
    groups = [place // 25 for place in range(100)]
    a, b = [True] * 100, [False] * 20 + [True] * 80
    alone, grouped = compare(a, b), compare(a, b, groups)
    assert alone.verdict == "better"
    assert grouped.test == "randomisation" and grouped.verdict == "no difference shown"
    assert grouped.detectable is None, "four groups can't show a difference"


def test_other_metrics_are_compared_too() -> None:
    chance = random.Random(0)
    gold = [chance.choice("aaab") for _ in range(200)]
    good = classification(gold, [label if chance.random() < 0.9 else "a" for label in gold])
    flat = classification(gold, ["a"] * 200)
    found = compare(good.right, flat.right, metric_a=good.metrics["macro_f1"], metric_b=flat.metrics["macro_f1"])
    assert found.verdict == "better" and found.test == "randomisation"
    assert found.difference == pytest.approx((good.macro_f1 or 0) - (flat.macro_f1 or 0))


def test_a_lower_error_is_better() -> None:
    gold = [float(place % 7) for place in range(100)]
    near, far = numeric(gold, [each + 0.1 * (place % 3) for place, each in enumerate(gold)]), numeric(gold, [0.0] * 100)
    found = compare(
        near.right, far.right, metric_a=near.metrics["mae"], metric_b=far.metrics["mae"], higher_is_better=False
    )
    assert found.difference is not None and found.difference < 0 and found.verdict == "better"


@pytest.mark.slow
def test_a_metric_that_is_not_a_sum_has_no_test_and_no_verdict() -> None:
    gold = list(range(50))
    near, far = numeric(gold, gold), numeric(gold, [each % 7 for each in gold])
    found = compare(near.right, far.right, metric_a=near.metrics["spearman"], metric_b=far.metrics["spearman"])
    assert (found.test, found.p, found.verdict) == ("none", None, "no difference shown")
    assert found.low is not None


def test_equal_answers_show_no_difference() -> None:
    right = [True, False] * 30
    found = compare(right, right)
    assert (found.difference, found.low, found.p, found.verdict) == (0.0, None, 1.0, "no difference shown")
    assert found.detectable == pytest.approx(0.13, abs=0.01), "six items of 60, with a probability of 80 %"
    metric = mean_of(right)
    assert compare(right, right, metric_a=metric, metric_b=metric).detectable is None


@pytest.mark.parametrize("right", [[], [True]])
def test_no_item_and_one_item(right: list[bool]) -> None:
    found = compare(right, right)
    assert found.verdict == "no difference shown" and found.detectable is None


def test_faulty_input_is_refused() -> None:
    with pytest.raises(ValueError, match="1 items of A, but 2 items of B"):
        compare([True], [True, False])
    with pytest.raises(ValueError, match="metric_a and metric_b"):
        compare([True], [True], metric_a=mean_of([True]))


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_a_verdict_is_withdrawn_if_several_candidates_are_compared() -> None:
    right = [True] * 50 + [False] * 50
    one = compare([True] * 57 + [False] * 43, right)
    assert one.verdict == "better" and one.p == pytest.approx(0.0156, abs=1e-4)
    several = corrected([one, *[compare(right, right)] * 4])
    assert several[0].adjusted == pytest.approx(5 * 0.015625)
    assert several[0].verdict == "no difference shown"
    assert corrected([one])[0].verdict == "better"


def clustered(seed: int, groups: int, gain: float) -> tuple[list[bool], list[bool], list[int]]:
    """Return right answers of two candidates whose accuracy depends on the group; that of the first is higher by ``gain``."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 7, groups)
    skill = np.repeat(generator.beta(8, 4, groups), sizes) * (1 - gain)
    lean = np.repeat(generator.normal(0, 0.08, groups), sizes)
    draw = generator.random((2, len(skill)))
    return (
        (draw[0] < skill + gain + lean).tolist(),
        (draw[1] < skill - lean).tolist(),
        np.repeat(np.arange(groups), sizes).tolist(),
    )


@pytest.mark.slow
@pytest.mark.parametrize("groups", [12, 40, 150])
@pytest.mark.parametrize("measured", ["accuracy", "macro_f1"])
def test_candidates_without_a_difference_are_rarely_better(groups: int, measured: str) -> None:
    verdicts: Counter[str] = Counter()
    simulations = 1_000 if groups == 40 else many(1_500)
    for seed in range(simulations):
        a, b, numbers = clustered(seed, groups, 0.0)
        if measured == "accuracy":
            found = compare(a, b, numbers, resamples=1_000, seed=seed)
        else:
            gold = np.random.default_rng((seed, 7)).integers(0, 2, len(a)).tolist()
            first, second = (
                classification(gold, [g if ok else 1 - g for g, ok in zip(gold, right, strict=True)])
                for right in (a, b)
            )
            found = compare(
                a, b, numbers, metric_a=first.metrics["macro_f1"], metric_b=second.metrics["macro_f1"],
                resamples=1_000, seed=seed,
            )  # fmt: skip
        verdicts[found.verdict] += 1
    assert max(verdicts["better"], verdicts["worse"]) <= 0.05 * simulations, verdicts
    assert verdicts["better"] + verdicts["worse"] >= 0.005 * simulations, (
        "a test that never finds anything would pass, too"
    )


@pytest.mark.slow
@pytest.mark.parametrize("groups", [40, 150])
def test_the_detectable_difference_is_found_in_about_80_of_100_cases(groups: int) -> None:
    sizes = [
        found.detectable for seed in range(200) if (found := compare(*clustered(seed, groups, 0.1), resamples=500))
    ]
    smallest = float(np.mean([size for size in sizes if size is not None]))
    shown = sum(
        compare(*clustered(seed, groups, smallest), resamples=1_000).verdict == "better" for seed in range(1_000, 1_500)
    )
    assert 0.70 <= shown / 500 <= 0.90, (smallest, shown)
