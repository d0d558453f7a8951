"""Intervals: equal to scipy's where scipy has them, with the coverage that they claim."""

import math
import random

import numpy as np
import pytest
from knotwork.runtime.loops.evaluate.intervals import (
    Groups,
    Score,
    clopper_pearson,
    incomplete_beta,
    interval,
    intervals,
    resampled,
    student_t_quantile,
    wilson,
)
from knotwork.runtime.loops.evaluate.metrics import classification, mean_of, numeric

SHARES = [(0, 1), (1, 1), (3, 10), (48, 50), (0, 200), (200, 200), (777, 1000), (9_999, 10_000)]


@pytest.mark.parametrize(("successes", "trials"), SHARES)
def test_shares_have_the_intervals_of_scipy(successes: int, trials: int) -> None:
    from scipy import stats

    test = stats.binomtest(successes, trials)
    for own, method in ((clopper_pearson, "exact"), (wilson, "wilson")):
        expected = test.proportion_ci(0.95, method)
        assert own(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_the_share_of_nothing_can_be_anything() -> None:
    assert wilson(0, 0) == clopper_pearson(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="successes must be between 0 and 3"):
        wilson(4, 3)


def test_the_incomplete_beta_function_is_that_of_scipy() -> None:
    from scipy import special

    chance = random.Random(0)
    for _ in range(500):
        a, b, x = 10 ** chance.uniform(-1, 4), 10 ** chance.uniform(-1, 4), chance.random()
        assert incomplete_beta(a, b, x) == pytest.approx(special.betainc(a, b, x), abs=1e-10)


@pytest.mark.parametrize("degrees", [1, 2, 5, 29, 99, 10_000])
def test_quantiles_of_students_t_are_those_of_scipy(degrees: int) -> None:
    from scipy import stats

    for probability in (0.6, 0.8, 0.975, 0.995):
        assert student_t_quantile(probability, degrees) == pytest.approx(stats.t.ppf(probability, degrees), rel=1e-9)


def test_wilson_is_used_where_each_group_has_one_item() -> None:
    right = [True] * 40 + [False] * 10
    score = interval(mean_of(right), right=right)
    assert (score.value, score.method, score.items, score.groups, score.note) == (0.8, "wilson", 50, 50, "")
    assert (score.low, score.high) == pytest.approx((0.67, 0.89), abs=0.005)
    assert interval(mean_of(right), range(50), right=right) == score


def test_the_bootstrap_is_used_for_groups_and_for_other_metrics() -> None:
    right = [place % 5 > 0 for place in range(200)]
    groups = [place // 4 for place in range(200)]
    score = interval(mean_of(right), groups, right=right)
    assert (score.method, score.groups, score.items) == ("bootstrap", 50, 200)
    assert score.low is not None and score.high is not None and score.low < 0.8 < score.high
    assert interval(mean_of(right), groups).method == "bootstrap"
    assert interval(mean_of(right), groups, right=right) == score
    first, second = (resampled({"": mean_of(right)}, Groups.of(groups, 200), seed=seed)[""] for seed in (0, 1))
    assert not np.array_equal(first, second)


def test_equal_items_in_a_group_widen_the_interval() -> None:
    chance = random.Random(0)
    by_group = [chance.random() < 0.7 for _ in range(60)]
    right = [by_group[place // 5] for place in range(300)]
    clustered, alone = interval(mean_of(right), [i // 5 for i in range(300)]), interval(mean_of(right), items=300)
    assert None not in (clustered.low, clustered.high, alone.low, alone.high)
    assert clustered.high - clustered.low > 2 * (alone.high - alone.low)  # type: ignore[operator]


def test_all_right_answers_have_the_interval_of_their_groups() -> None:
    score = interval(mean_of([True] * 100), [place // 5 for place in range(100)], right=[True] * 100)
    assert score.method == "wilson" and score.high == 1.0
    assert score.low == pytest.approx(wilson(20, 20)[0])


def test_perfect_labels_have_the_worst_case_of_their_share() -> None:
    gold = ["a"] * 20 + ["b"] * 20
    found = classification(gold, gold)
    scores = intervals(found.metrics, right={"accuracy": found.right})
    low, _ = wilson(40, 40)
    accuracy, macro_f1 = scores["accuracy"], scores["macro_f1"]
    assert (accuracy.method, accuracy.low) == ("wilson", low)
    assert scores["answered_accuracy"] == accuracy
    assert (macro_f1.method, macro_f1.value, macro_f1.high, macro_f1.note) == ("worst case", 1.0, 1.0, "")
    assert macro_f1.low == pytest.approx(0.9103, abs=1e-4) and macro_f1.low < low
    assert scores["kappa"].low == pytest.approx(1 - (1 - low) / 0.5)
    rare = classification(["a"] * 39 + ["b"], ["a"] * 39 + ["b"])  # one item says little about a class
    assert intervals(rare.metrics, items=40)["macro_f1"].low == pytest.approx(0.462, abs=1e-3)
    groups = [place // 4 for place in range(40)]
    assert intervals(found.metrics, groups)["macro_f1"].low < macro_f1.low  # ten trials, not forty


@pytest.mark.slow
def test_the_worst_case_of_macro_f1_is_lower_than_every_table_with_this_accuracy() -> None:
    generator = np.random.default_rng(0)
    for classes in (1, 2, 3, 5):
        for _ in range(20):
            support = generator.integers(1, 30, classes)
            gold = np.repeat(np.arange(classes), support).tolist()
            metric, items = classification(gold, gold).metrics["macro_f1"], len(gold)
            share = wilson(items, items)[0]
            assert metric.floor is not None
            low = metric.floor(metric.sums.sum(axis=0), share)
            assert 0 <= low <= share + 1e-9
            for _ in range(100):
                left, table = (1 - share) * items, np.zeros((classes, classes + 1))
                table[:, :classes] = np.diag(support)
                while left > 1e-9:  # wrong answers of one class at a time
                    row, column = generator.integers(classes), generator.integers(classes + 1)
                    moved = min(left, table[row, row], generator.choice([0.2, 1.0, 9.0]))
                    if row != column:
                        table[row, row], table[row, column] = table[row, row] - moved, table[row, column] + moved
                        left -= moved
                assert metric.value(table.reshape(-1)) >= low - 1e-9


def test_a_true_value_below_the_worst_case_hardly_gives_perfect_labels() -> None:
    for support in ((20, 20), (30, 10), (12, 12, 12)):
        gold = np.repeat(np.arange(len(support)), support).tolist()
        metrics, items = classification(gold, gold).metrics, len(gold)
        scores = intervals(metrics, items=items)
        for wrong in np.linspace(0, 1, 101):
            table = np.zeros((len(support), len(support) + 1))
            table[:, : len(support)] = np.diag(support)
            table[-1, -2], table[-1, 0] = support[-1] * (1 - wrong), support[-1] * wrong
            for name in ("macro_f1", "kappa"):
                if float(metrics[name].value(table.reshape(-1))) < (scores[name].low or 0):
                    assert (1 - wrong) ** support[-1] < 0.05


def test_means_of_values_from_0_to_1_have_wilsons_interval_at_their_ends() -> None:
    for value in (0.0, 1.0):
        score = interval(mean_of([value] * 40, most=1), items=40)
        assert (score.method, score.low, score.high) == ("wilson", *wilson(40 * value, 40))
    assert interval(mean_of([0.5] * 40, most=1), items=40).note == "no interval: all resamples are equal"
    none = classification(["a", "b"] * 20, ["b", "a"] * 20)
    assert intervals(none.metrics, items=40)["macro_f1"].method == "none"
    answered = classification(["a"] * 30 + ["b"] * 30, ["a"] * 30 + ["b"] * 10 + [None] * 20)
    score = intervals(answered.metrics, items=60)["answered_accuracy"]
    assert (score.method, score.low) == ("wilson", wilson(40, 40)[0])
    exact = numeric([1.0, 2.0, 3.0] * 20, [1.0, 2.0, 3.0] * 20)
    scores = intervals({name: exact.metrics[name] for name in ("mae", "spearman")}, items=60, resamples=50)
    assert {each.note for each in scores.values()} == {"no interval: all resamples are equal"}


def test_a_score_says_what_limits_its_interval() -> None:
    few = interval(mean_of([True, False] * 10), right=[True, False] * 10)
    assert few.note == "too few groups for a reliable interval"
    one = interval(mean_of([True, False]), ["a", "a"], right=[True, False])
    assert one == Score(0.5, None, None, 2, 1, "none", "too few groups for a reliable interval; no interval: one group")
    empty = interval(mean_of([]), [], right=[])
    assert (empty.value, empty.low, empty.method) == (None, None, "none")
    constant = interval(mean_of([2.0] * 40), items=40)
    assert constant.note == "no interval: all resamples are equal"


@pytest.mark.slow
def test_resamples_without_a_value_are_counted() -> None:
    numbers = numeric([1, 2, 3, 4] * 10, [1, 2, 3, 4] * 9 + [None] * 4)
    groups = ["big"] * 36 + ["silent"] * 4
    score = interval(numbers.metrics["spearman"], groups)
    assert score.value == pytest.approx(1.0) and score.low is None
    assert "resamples have no value" in score.note


def test_metrics_of_indices_and_of_sums_have_the_same_resamples() -> None:
    chance = random.Random(1)
    gold = [chance.choice("abc") for _ in range(90)]
    own = classification(gold, [label if chance.random() < 0.7 else "a" for label in gold])
    groups = Groups.of([chance.randint(0, 30) for _ in gold], 90)
    metric = own.metrics["macro_f1"]
    values = resampled({"sums": metric, "indices": lambda index: metric(index)}, groups, 50)
    assert np.allclose(values["sums"], values["indices"])


def test_intervals_of_several_metrics_are_those_of_each() -> None:
    gold = [random.Random(place).choice("ab") for place in range(80)]
    own = classification(gold, ["a"] * 80)
    groups = [place // 2 for place in range(80)]
    every = intervals(own.metrics, groups, right={"accuracy": own.right})
    for name, metric in own.metrics.items():
        assert every[name] == interval(metric, groups, right=own.right if name == "accuracy" else None)


def test_groups_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="2 items, but 1 groups"):
        interval(mean_of([True, False]), ["a"], right=[True, False], items=2)


def population(generator: np.random.Generator, groups: int) -> tuple[list[int], list[int], list[int]]:
    """Return gold labels, predictions and groups. The accuracy differs between groups, and so do their sizes and classes."""
    sizes = generator.integers(1, 9, groups)
    skill = np.repeat(generator.beta(6, 2, groups), sizes)
    tilt = np.repeat(generator.beta(2, 3, groups), sizes)
    gold = (generator.random(len(skill)) < tilt).astype(int)
    wrong = generator.random(len(skill)) >= skill
    return gold.tolist(), np.where(wrong, 1 - gold, gold).tolist(), np.repeat(np.arange(groups), sizes).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["accuracy", "macro_f1", "kappa"])
def test_intervals_over_100_groups_cover_the_true_value(name: str) -> None:
    gold, predicted, _ = population(np.random.default_rng(99), 300_000)
    truth = getattr(classification(gold, predicted), name)
    covered = 0
    for seed in range(1_000):
        gold, predicted, groups = population(np.random.default_rng(seed), 100)
        score = interval(classification(gold, predicted).metrics[name], groups, seed=seed)
        assert score.low is not None and score.high is not None
        covered += score.low <= truth <= score.high
    assert 930 <= covered <= 970, covered


@pytest.mark.slow
@pytest.mark.parametrize(("share", "items"), [(0.8, 50), (0.8, 200), (0.647, 100), (0.95, 100)])
def test_wilson_covers_the_true_share(share: float, items: int) -> None:
    counts = np.random.default_rng(0).binomial(items, share, 20_000)
    bounds = {int(count): wilson(int(count), items) for count in np.unique(counts)}
    covered = np.mean([bounds[int(count)][0] <= share <= bounds[int(count)][1] for count in counts])
    assert 0.92 <= covered <= 0.98 and not math.isnan(covered)
