"""Agreement: kappa as scikit-learn's, alpha as in Krippendorff's own example and as by its definition, pair by pair."""

import math
import random
from itertools import permutations
from typing import Any

import pytest
from knotwork.runtime.loops.evaluate.agreement import cohen_kappa, krippendorff_alpha


@pytest.mark.slow  # imports scikit-learn
@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
@pytest.mark.parametrize("number", range(15))
def test_kappa_is_that_of_scikit_learn(number: int, weights: Any) -> None:
    from sklearn.metrics import cohen_kappa_score

    chance = random.Random(number)
    a = [chance.randint(1, 5) for _ in range(40)]
    b = [each if chance.random() < 0.6 else chance.randint(1, 5) for each in a]
    own = cohen_kappa(a, b, weights)
    assert own.value == pytest.approx(cohen_kappa_score(a, b, weights=weights), abs=1e-12)
    assert (own.items, own.labels) == (40, 80)


def test_an_item_with_one_label_is_left_out() -> None:
    assert cohen_kappa(["a", "b", None, "a"], ["a", "b", "b", None]) == cohen_kappa(["a", "b"], ["a", "b"])


def test_the_order_of_labels_counts() -> None:
    a, b = ["low", "high", "mid", "low"], ["high", "high", "mid", "low"]
    scale = ["low", "mid", "high"]
    named = cohen_kappa(a, b, "quadratic", scale).value
    numbered = cohen_kappa([scale.index(each) for each in a], [scale.index(each) for each in b], "quadratic").value
    assert named == numbered != cohen_kappa(a, b, "quadratic").value
    with pytest.raises(ValueError, match="unknown label 'odd'"):
        cohen_kappa(["odd"], ["low"], labels=scale)


X = None
EXAMPLE = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, X, X, X],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, X, 3],
    [X, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, X],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, X],
]
"""Four observers and twelve units: example C of "Computing Krippendorff's Alpha-Reliability" (2011)."""


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_published_example(level: Any, alpha: float) -> None:
    own = krippendorff_alpha(list(zip(*EXAMPLE, strict=True)), level)
    assert own.value == pytest.approx(alpha, abs=0.0006)
    assert (own.items, own.labels) == (11, 40)


def by_definition(rows: list[list[int | None]], level: str) -> float:
    """Return alpha pair by pair: 1 - the mean disagreement within units / the mean disagreement of all pairs."""
    units = [kept for row in rows if len(kept := [each for each in row if each is not None]) > 1]
    every = sorted(each for unit in units for each in unit)

    def distance(a: int, b: int) -> float:
        if level == "interval":
            return (a - b) ** 2
        if level == "nominal" or a == b:
            return float(a != b)
        low, high = sorted((a, b))
        between = sum(low <= each <= high for each in every)
        return (between - (every.count(low) + every.count(high)) / 2) ** 2

    observed = sum(sum(distance(*pair) for pair in permutations(unit, 2)) / (len(unit) - 1) for unit in units)
    expected = sum(distance(*pair) for pair in permutations(every, 2)) / (len(every) - 1)
    return 1 - observed / expected if expected else math.nan


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("number", range(10))
def test_alpha_is_what_its_definition_gives(number: int, level: Any) -> None:
    chance = random.Random(number)
    rows = [[chance.choice([1, 2, 2, 5, None]) for _ in range(4)] for _ in range(12)]
    expected = by_definition(rows, level)
    assert krippendorff_alpha(rows, level).value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("rows", [[], [["a"]], [["a", "a"], ["a", "a", "a"]], [[None, None], ["a", None]]])
def test_without_disagreement_to_expect_alpha_has_no_value(rows: list[list[str | None]]) -> None:
    assert krippendorff_alpha(rows).value is None


def test_kappa_of_nothing_has_no_value() -> None:
    assert cohen_kappa([], []).value is None
    assert cohen_kappa(["a"], ["a"]).value is None
    assert cohen_kappa(["a"], ["b"]).value == 0.0
    with pytest.raises(ValueError, match="1 labels of A, but 0 labels of B"):
        cohen_kappa(["a"], [])


def test_the_interval_level_needs_numbers() -> None:
    with pytest.raises(ValueError, match="needs numbers"):
        krippendorff_alpha([["a", "b"]], "interval")
