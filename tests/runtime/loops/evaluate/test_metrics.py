"""Metrics: equal to scikit-learn's on random tables, and defined for every degenerate input."""

import math
import random
import warnings
from typing import Any

import numpy as np
import pytest
from knotwork.runtime.loops.evaluate.metrics import (
    ClassScore,
    classification,
    folded,
    mean_ranks,
    numeric,
    ranking,
    sets,
    spearman,
    text,
)

NOTHING = "\uffff no answer"
"""What stands for an answer of None in scikit-learn."""


def table(number: int) -> tuple[list[str], list[str | None]]:
    """Return gold labels and predictions with nulls and classes that the gold labels do not have; some tables lack classes."""
    chance = random.Random(number)
    known = "abcdefgh"[: chance.randint(1, 6)]
    predicted = known[: chance.randint(1, len(known))] + "xy"[: chance.randint(0, 2)]
    right, silent = chance.random(), chance.choice([0.0, 0.1, 0.5])
    gold = [chance.choice(known) for _ in range(chance.randint(1, 60))]
    return gold, [
        None if chance.random() < silent else label if chance.random() < right else chance.choice(predicted)
        for label in gold
    ]


def same(own: float | None, other: float) -> bool:
    """Whether the values are equal within 1e-12, where None is scikit-learn's NaN."""
    return math.isnan(other) if own is None else math.isclose(own, other, rel_tol=1e-12, abs_tol=1e-12)


TABLES = [number if number < 30 else pytest.param(number, marks=pytest.mark.slow) for number in range(200)]


@pytest.mark.slow  # imports scikit-learn
@pytest.mark.parametrize("number", TABLES)
def test_classes_are_scored_as_by_scikit_learn(number: int) -> None:
    from sklearn import metrics as oracle

    gold, predicted = table(number)
    filled = [NOTHING if label is None else label for label in predicted]
    own = classification(gold, predicted)
    labels = list(own.labels)
    assert labels == sorted(set(gold) | (set(filled) - {NOTHING}))
    assert same(own.accuracy, oracle.accuracy_score(gold, filled))
    columns = oracle.precision_recall_fscore_support(gold, filled, labels=labels, zero_division=math.nan)
    for label, *expected in zip(labels, *columns, strict=True):
        assert all(same(mine, float(theirs)) for mine, theirs in zip(own.per_class[label], expected, strict=True))
    macro = oracle.f1_score(gold, filled, labels=labels, average="macro", zero_division=math.nan)
    assert same(own.macro_f1, macro)
    assert np.array_equal(
        np.array(own.confusion), oracle.confusion_matrix(gold, filled, labels=[*labels, NOTHING])[: len(labels)]
    )
    answered = [place for place, label in enumerate(predicted) if label is not None]
    assert own.answered == len(answered)
    if answered:
        expected = oracle.accuracy_score([gold[i] for i in answered], [filled[i] for i in answered])
        assert same(own.answered_accuracy, expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert same(own.kappa, float(oracle.cohen_kappa_score(gold, filled)))
        if len(answered) == len(gold):
            weighted = classification(gold, predicted, ordered=True).kappa
            assert same(weighted, float(oracle.cohen_kappa_score(gold, filled, weights="quadratic")))


@pytest.mark.slow  # imports scikit-learn
@pytest.mark.parametrize("number", range(20))
def test_numbers_are_scored_as_by_scikit_learn_and_scipy(number: int) -> None:
    from scipy.stats import rankdata, spearmanr
    from sklearn import metrics as oracle

    chance = random.Random(number)
    gold = [chance.choice([float(chance.randint(1, 5)), chance.random() * 10]) for _ in range(chance.randint(2, 40))]
    predicted: list[float | None] = [each + chance.choice([0, 0, 1, -1, chance.random()]) for each in gold]
    dropped = chance.randint(0, len(gold) - 1)
    predicted[:dropped] = [None] * dropped
    kept, answers = gold[dropped:], [each for each in predicted if each is not None]
    own = numeric(gold, predicted, 0.5)
    assert same(own.mae, oracle.mean_absolute_error(kept, answers))
    assert same(own.rmse, oracle.root_mean_squared_error(kept, answers))
    assert own.within == sum(abs(a - b) <= 0.5 for a, b in zip(kept, answers, strict=True)) / len(gold)
    assert own.answered == len(kept)
    if len(set(kept)) > 1 and len(set(answers)) > 1:
        assert own.spearman == pytest.approx(spearmanr(kept, answers).statistic, abs=1e-9)
    assert np.allclose(mean_ranks(np.array(gold)), rankdata(gold))


@pytest.mark.slow  # imports scikit-learn
@pytest.mark.parametrize("number", range(20))
def test_sets_are_scored_as_by_scikit_learn(number: int) -> None:
    from sklearn import metrics as oracle

    chance = random.Random(number)
    gold = [[letter for letter in "abcde" if chance.random() < 0.5] for _ in range(20)]
    found = [[letter for letter in "abcdef" if chance.random() < 0.5] for _ in range(20)]
    kept = [place for place, each in enumerate(gold) if each or found[place]]
    own = sets([gold[i] for i in kept], [found[i] for i in kept])
    binary = [[[letter in each for letter in "abcdef"] for each in (side[i] for i in kept)] for side in (gold, found)]
    expected = oracle.precision_recall_fscore_support(*map(np.array, binary), average="samples", zero_division=0)
    assert [own.precision, own.recall, own.f1] == pytest.approx(list(expected[:3]), abs=1e-12)


@pytest.mark.slow  # imports scikit-learn
@pytest.mark.parametrize("number", range(20))
def test_ndcg_is_that_of_scikit_learn(number: int) -> None:
    from sklearn import metrics as oracle

    chance = random.Random(number)
    items = list(range(chance.randint(2, 30)))
    relevant = set(chance.sample(items, chance.randint(1, len(items))))
    order = chance.sample(items, len(items))
    own = ranking([relevant], [order])
    truth = np.array([[float(item in relevant) for item in order]])
    assert own.ndcg10 == pytest.approx(oracle.ndcg_score(truth, np.arange(len(items), 0, -1)[None, :], k=10), abs=1e-12)
    assert own.mrr == pytest.approx(oracle.label_ranking_average_precision_score(
        np.array([[item == next(each for each in order if each in relevant) for item in order]]),
        np.arange(len(items), 0, -1)[None, :],
    ))  # fmt: skip


def test_no_answer_is_a_wrong_answer() -> None:
    own = classification(["a", "a", "b", "b"], ["a", None, "b", None])
    assert (own.accuracy, own.answered_accuracy, own.answered, own.items) == (0.5, 1.0, 2, 4)
    assert own.per_class["a"] == ClassScore(1.0, 0.5, 2 / 3, 2)
    assert own.confusion == ((1, 0, 1), (0, 1, 1))
    assert list(own.right) == [True, False, True, False]


def test_labels_keep_their_order_and_unknown_ones_follow() -> None:
    own = classification(["low", "high"], ["mid", "odd"], ["low", "mid", "high"])
    assert own.labels == ("low", "mid", "high", "odd")
    assert own.per_class["mid"] == ClassScore(0.0, None, 0.0, 0)
    assert classification(["low"], ["low"], ["low", "mid", "high"]).macro_f1 == 1.0


def test_macro_f1_averages_over_the_labels_of_gold_and_answers_and_no_answer_is_none_of_them() -> None:
    own = classification(["a", "a", "b", "c"], ["a", "b", "b", None], ["a", "b", "c", "unused"])
    assert own.macro_f1 == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    assert classification(["a", "a"], ["a", "x"], ["a", "b"]).macro_f1 == pytest.approx((2 / 3 + 0) / 2)


def test_kappa_counts_no_answer_as_a_class_of_its_own() -> None:
    own = classification(["a", "a", "b", "c"], ["a", "b", "b", None])
    assert own.kappa == pytest.approx((2 / 4 - 4 / 16) / (1 - 4 / 16))  # by chance: (2 * 1 + 1 * 2 + 1 * 0) of 16


def test_scores_of_lists_are_means_over_items() -> None:
    own = sets([["a"], ["a", "b", "c"], []], [["a"], ["a", "x"], []])
    assert (own.precision, own.recall, own.f1) == pytest.approx((2.5 / 3, (2 + 1 / 3) / 3, (2 + 2 / 5) / 3))


def test_no_answer_is_as_far_from_each_label_as_the_ends_of_the_scale() -> None:
    scale = ["1", "2", "3"]
    gold = ["1", "2", "3", "2", "1", "3"]
    silent, near, odd = (
        classification(gold, ["1", "2", wrong, "2", "1", "3"], scale, ordered=True).kappa for wrong in (None, "2", "x")
    )
    assert silent is not None and near is not None and silent < near
    assert silent == odd
    expected = (
        4 * (0 + 1 + 4) + 4 * (1 + 0 + 1) + 2 * (4 + 1 + 0) + 2 * (4 + 4 + 4)
    )  # for answers "1", "2", "3" and none
    assert silent == pytest.approx(1 - 4 * 6 / expected)


def test_booleans_and_texts_are_different_labels() -> None:
    own = classification([True, False], ["True", False])
    assert own.accuracy == 0.5
    assert own.labels == (False, True, "True")


@pytest.mark.parametrize(
    ("gold", "predicted", "accuracy", "answered", "macro", "kappa"),
    [
        ([], [], None, None, None, None),
        (["a"], ["a"], 1.0, 1.0, 1.0, None),
        (["a"], ["b"], 0.0, 0.0, 0.0, 0.0),
        (["a"], [None], 0.0, None, 0.0, 0.0),
        (["a", "a", "a"], ["a", "a", "a"], 1.0, 1.0, 1.0, None),
        (["a", "b"], [None, None], 0.0, None, 0.0, 0.0),
    ],
)
def test_degenerate_classes(
    gold: list[str], predicted: list[str | None], accuracy: Any, answered: Any, macro: Any, kappa: Any
) -> None:
    for ordered in (False, True):
        own = classification(gold, predicted, ordered=ordered)
        assert (own.accuracy, own.answered_accuracy, own.macro_f1, own.kappa) == (accuracy, answered, macro, kappa)


def test_degenerate_numbers_texts_sets_and_rankings() -> None:
    assert (numeric([], []).mae, numeric([], []).within) == (None, None)
    silent = numeric([1, 2], [None, None])
    assert (silent.mae, silent.rmse, silent.spearman, silent.within, silent.answered) == (None, None, None, 0.0, 0)
    assert numeric([1], [1]).spearman is None
    assert spearman([1, 1], [1, 2]) is None
    assert (text([], []).equal, text(["a"], [None]).token_f1) == (None, 0.0)
    assert (sets([], []).f1, sets([[]], [[]]).f1, sets([[]], [["a"]]).f1, sets([[]], [None]).f1) == (
        None,
        1.0,
        0.0,
        0.0,
    )
    assert (ranking([], []).mrr, ranking([{1}], [None]).mrr, ranking([{1}], [[]]).ndcg10) == (None, 0.0, 0.0)


def test_texts_are_equal_after_folding() -> None:
    own = text(["Straße  eins", "the cat sat", "!"], ["STRASSE EINS", "the dog sat down", "?"])
    assert own.equal == pytest.approx(1 / 3)
    assert own.token_f1 == pytest.approx((1 + 4 / 7 + 0) / 3)
    assert folded(" \uff21\n b ") == "a b"


def test_a_repeated_item_of_a_ranking_counts_once() -> None:
    own = ranking([{"a", "b"}], [["a", "a", "b"]])
    assert own.ndcg10 == pytest.approx((1 + 1 / 2) / (1 + 1 / math.log2(3)))
    assert own.hit1 == 1.0


def test_hits_depend_on_k() -> None:
    relevant, ranked = [{1}, {1}, {1}], [[1, 2, 3], [2, 3, 1], [2, 3, 4]]
    assert [ranking(relevant, ranked, k=k).hit_k for k in (1, 2, 3)] == pytest.approx([1 / 3, 1 / 3, 2 / 3])
    assert ranking(relevant, ranked).mrr == pytest.approx((1 + 1 / 3) / 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: classification(["a"], []), "1 gold values, but 0 predictions"),
        (lambda: classification([None], ["a"]), "a gold label is None"),
        (lambda: numeric([1], [math.nan]), "not finite"),
        (lambda: numeric([1], [1], -1), "the tolerance must be 0 or more"),
        (lambda: ranking([set()], [[1]]), "no relevant item"),
        (lambda: ranking([{1}], [[1]], k=0), "k must be at least 1"),
    ],
)
def test_faulty_input_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_metric_of_an_index_is_the_metric_of_these_items() -> None:
    gold, predicted = table(3)
    own = classification(gold, predicted)
    index = np.array([0, 0, 2, 5, 1])
    again = classification([gold[i] for i in index], [predicted[i] for i in index])
    for name in ("accuracy", "macro_f1", "answered_accuracy"):
        assert own.metrics[name](index) == pytest.approx(getattr(again, name))
