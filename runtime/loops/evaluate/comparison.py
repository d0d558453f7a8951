"""Compares two candidates on the same items: difference with interval, test, verdict, smallest detectable difference."""

import math
from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
from attrs import asdict, evolve, frozen
from numpy.typing import NDArray

from .intervals import (
    RESAMPLES,
    Groups,
    few_groups,
    incomplete_beta,
    percentile_interval,
    resampled,
    student_t_quantile,
)
from .metrics import Floats, Metric, SummedMetric, defined, mean_of

Verdict = Literal["better", "worse", "no difference shown"]
Test = Literal["mcnemar", "randomisation", "none"]
SIGNIFICANCE = 0.05
POWER = 0.8


@frozen
class Comparison:
    """The comparison of candidate A with candidate B on the same items.

    ``difference`` is A's value minus B's value; ``low`` and ``high`` are the ends of its 95 % interval, from a paired bootstrap
    over groups. ``p`` is the p-value of ``test``: McNemar's exact test if the metric is the share of right items and each group
    has one item; otherwise a randomisation test that exchanges the answers of A and B in whole groups. ``mcnemar`` is always
    the p-value of McNemar's test. ``adjusted`` is ``p`` after Holm's correction, if several candidates were compared.
    ``detectable`` is the smallest difference that these items would show with a probability of 80 %; None if these items can't
    show any difference. ``only_a`` and ``only_b`` are the numbers of items that only A or only B answered right.
    """

    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    verdict: Verdict
    detectable: float | None
    items: int
    groups: int
    test: Test
    mcnemar: float | None
    only_a: int
    only_b: int
    adjusted: float | None = None
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as a JSON object."""
        return asdict(self)


def compare(
    right_a: Sequence[bool] | NDArray[np.bool_],
    right_b: Sequence[bool] | NDArray[np.bool_],
    groups: Sequence[Hashable] | None = None,
    *,
    metric_a: Metric | None = None,
    metric_b: Metric | None = None,
    higher_is_better: bool = True,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare candidate A with candidate B. ``right_a`` and ``right_b`` say for each item whether the answer is right.

    ``metric_a`` and ``metric_b`` compute the compared metric from the answers of A and of B (None: the share of right items).
    ``groups`` is as for ``intervals.interval``. The verdict is "better" or "worse" if the interval excludes 0 and ``p`` is at
    most 0.05; otherwise it is "no difference shown". Raises ``ValueError`` if the lengths differ, or only one of the two
    metrics is given.
    """
    a, b = np.asarray(right_a, dtype=np.bool_), np.asarray(right_b, dtype=np.bool_)
    if len(a) != len(b):
        raise ValueError(f"{len(a)} items of A, but {len(b)} items of B")
    if (metric_a is None) != (metric_b is None):
        raise ValueError("give metric_a and metric_b, or neither")
    numbered = Groups.of(groups, len(a))
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    exact = mcnemar(only_a, only_b)
    first, second = metric_a or mean_of(a), metric_b or mean_of(b)
    everything = np.arange(len(a))
    difference = defined(first(everything) - second(everything)) if len(a) else None
    if difference is None:
        return Comparison(
            None, None, None, None, "no difference shown", None, len(a), numbered.count, "none", exact, only_a, only_b,
            note="the metric has no value",
        )  # fmt: skip
    values = resampled({"a": first, "b": second}, numbered, resamples, seed)
    gaps = values["a"] - values["b"]
    gaps = gaps[~np.isnan(gaps)]
    note = few_groups(numbered.count)
    if undefined := resamples - len(gaps):
        note = "; ".join(filter(None, (note, f"{undefined} of {resamples} resamples have no value")))
    low = high = None
    if numbered.count >= 2 and undefined * 20 <= resamples and gaps.min() < gaps.max():
        low, high = percentile_interval(gaps, numbered.count)
    test: Test = "mcnemar"
    p: float | None = exact
    if metric_a is not None or not numbered.are_single:
        p = randomisation(first, second, numbered, difference, resamples, seed)
        test = "none" if p is None else "randomisation"
    detectable = detectable_difference(gaps, numbered.count, len(a) if metric_a is None else None)
    return Comparison(
        difference, low, high, p, _verdict(difference, low, high, p, higher_is_better), detectable, len(a), numbered.count,
        test, exact, only_a, only_b, note=note,
    )  # fmt: skip


def _verdict(
    difference: float, low: float | None, high: float | None, p: float | None, higher_is_better: bool
) -> Verdict:
    if low is None or high is None or p is None or p > SIGNIFICANCE or low <= 0 <= high:
        return "no difference shown"
    return "better" if (difference > 0) == higher_is_better else "worse"


def mcnemar(only_a: int, only_b: int) -> float:
    """Return the two-sided p-value of McNemar's exact test: a binomial test of the items that only one candidate answered right."""
    total = only_a + only_b
    fewer = min(only_a, only_b)
    if 2 * fewer >= total:
        return 1.0
    return min(1.0, 2 * incomplete_beta(total - fewer, fewer + 1, 0.5))


def randomisation(
    first: Metric, second: Metric, groups: Groups, difference: float, resamples: int = RESAMPLES, seed: int = 0
) -> float | None:
    """Return the two-sided p-value of a randomisation test: A's and B's answers of whole groups are exchanged at random.

    The smallest p-value is 1 / (``resamples`` + 1). Return None unless both metrics are a ``SummedMetric`` with ``sums`` of the
    same shape.
    """
    if (
        not (isinstance(first, SummedMetric) and isinstance(second, SummedMetric))
        or first.sums.shape != second.sums.shape
    ):
        return None
    a, b = groups.sums(first.sums), groups.sums(second.sums)
    gap, total = a - b, a.sum(axis=0) + b.sum(axis=0)
    extreme = 0
    for signs in groups.signs(resamples, seed):
        shift = signs @ gap
        drawn = first.value((total + shift) / 2) - second.value((total - shift) / 2)
        extreme += int((np.abs(drawn) >= abs(difference) - 1e-12).sum())
    return (extreme + 1) / (resamples + 1)


def detectable_difference(gaps: Floats, groups: int, trials: int | None = None) -> float | None:
    """Return the smallest difference that would be shown with 80 % probability.

    ``gaps`` are bootstrap values of the difference. The result is the standard error of these values times (t for 0.975 + t for
    0.8), with ``groups`` - 1 degrees of freedom (Bloom 1995, "Minimum Detectable Effects", Evaluation Review 19(5)). With
    ``trials``, the metric is a share of this number of items, and the result is at least the difference that McNemar's test can
    show: this test needs six items that differ, all in one direction. Return None for fewer than six groups and, without
    ``trials``, if no resample shows a difference.
    """
    if groups < _FEWEST_THAT_SHOW or len(gaps) < 2:
        return None
    factor = student_t_quantile(1 - SIGNIFICANCE / 2, groups - 1) + student_t_quantile(POWER, groups - 1)
    found = factor * float(gaps.std(ddof=1)) * math.sqrt(groups / (groups - 1))
    return max(found, _smallest_share(trials)) if trials is not None else found or None


_FEWEST_THAT_SHOW = 6
"""With five items that differ, all in one direction, McNemar's p-value is 0.0625; with six it is 0.031."""


def _smallest_share(trials: int) -> float:
    """Return the share of differing items at which at least six of ``trials`` items differ with 80 % probability."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        power = incomplete_beta(_FEWEST_THAT_SHOW, trials - _FEWEST_THAT_SHOW + 1, middle)
        low, high = (middle, high) if power < POWER else (low, middle)
    return high


def holm(pvalues: Sequence[float]) -> list[float]:
    """Return the p-values after Holm's correction for several tests (Holm 1979), in the same order."""
    adjusted = [0.0] * len(pvalues)
    largest = 0.0
    for place, index in enumerate(sorted(range(len(pvalues)), key=lambda each: pvalues[each])):
        largest = max(largest, min(1.0, (len(pvalues) - place) * pvalues[index]))
        adjusted[index] = largest
    return adjusted


def corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons of several candidates with Holm's ``adjusted`` p-values.

    If the adjusted p-value is above 0.05, the verdict becomes "no difference shown".
    """
    tested = [index for index, each in enumerate(comparisons) if each.p is not None]
    found = list(comparisons)
    for index, p in zip(tested, holm([comparisons[index].p or 0.0 for index in tested]), strict=True):
        verdict = found[index].verdict if p <= SIGNIFICANCE else "no difference shown"
        found[index] = evolve(found[index], adjusted=p, verdict=verdict)
    return found
