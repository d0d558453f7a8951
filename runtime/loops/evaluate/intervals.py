"""Confidence intervals: Wilson's and Clopper-Pearson's for shares, and the bootstrap over groups for any metric.

The bootstrap draws groups, not items, because the items of a group (the reviews of a product) resemble each other (arXiv 2411.00640).
"""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from attrs import asdict, evolve, field, frozen
from numpy.typing import NDArray

from .metrics import Floats, Integers, Metric, SummedMetric, defined, mean_floor

LEVEL = 0.95
"""The default confidence level of intervals."""
RESAMPLES = 2_000
FEW_GROUPS = 30
"""Below this number of groups, a score says that its interval is not reliable."""

Method = Literal["wilson", "bootstrap", "worst case", "none"]
"""``worst case``: all answers are right, so that a bootstrap has no width; the lower end follows from Wilson's interval of their share."""


@frozen
class Score:
    """A value with its interval (95 %).

    ``value`` is None if it is not defined; ``low`` and ``high`` are None if there is no interval. ``items`` and ``groups`` are
    the numbers of items and groups from which the value was computed. ``note`` says why the interval is unreliable or missing;
    otherwise it is "".
    """

    value: float | None
    low: float | None
    high: float | None
    items: int
    groups: int
    method: Method
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the score as a JSON object."""
        return asdict(self)


@frozen
class Groups:
    """The group of each item as a number from 0 to ``count`` - 1."""

    codes: Integers = field(eq=False)
    count: int

    @classmethod
    def of(cls, groups: Sequence[Hashable] | None, items: int) -> "Groups":
        """Number the groups by their first occurrence. If ``groups`` is None, each of the ``items`` is a group.

        Raises ``ValueError``.
        """
        if groups is None:
            return cls(np.arange(items), items)
        if len(groups) != items:
            raise ValueError(f"{items} items, but {len(groups)} groups")
        numbers: dict[Hashable, int] = {}
        codes = np.fromiter((numbers.setdefault(each, len(numbers)) for each in groups), dtype=np.int64, count=items)
        return cls(codes, len(numbers))

    @property
    def are_single(self) -> bool:
        """Whether each group has one item."""
        return self.count == len(self.codes)

    def sums(self, values: Floats) -> Floats:
        """Return, for each group, the sum of its rows of ``values``."""
        if self.are_single:
            return values
        columns = [np.bincount(self.codes, weights=column, minlength=self.count) for column in values.T]
        return np.column_stack(columns) if columns else np.zeros((self.count, 0))

    def draws(self, resamples: int, seed: int) -> Iterator[Floats]:
        """Yield blocks of bootstrap draws: for each resample, how often each group was drawn.

        Each resample has ``count`` draws.
        """
        generator = np.random.default_rng(seed)
        block = _rows_of_a_block(self.count)
        for start in range(0, resamples, block):
            picks = generator.integers(0, self.count, size=(min(block, resamples - start), self.count))
            yield np.array([np.bincount(row, minlength=self.count) for row in picks], dtype=np.float64)

    def signs(self, resamples: int, seed: int) -> Iterator[Floats]:
        """Yield blocks of rows of random signs, +1 or -1 for each group. In total, there are ``resamples`` rows."""
        generator = np.random.default_rng((seed, 1))
        block = _rows_of_a_block(self.count)
        for start in range(0, resamples, block):
            size = (min(block, resamples - start), self.count // 8 + 1)
            bits = np.unpackbits(generator.integers(0, 256, size=size, dtype=np.uint8), axis=1)
            yield bits[:, : self.count].astype(np.float64) * 2.0 - 1.0


def _rows_of_a_block(groups: int) -> int:
    return max(1, 500_000 // max(groups, 1))


def interval(
    metric: Metric,
    groups: Sequence[Hashable] | None = None,
    *,
    right: Sequence[bool] | NDArray[np.bool_] | None = None,
    items: int | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Score:
    """Return a metric's value with its interval.

    ``groups`` has the group of each item. If ``groups`` is None, each item is a group, and ``right`` or ``items`` (the number
    of items) is required. ``right`` says for each item whether it is right; it is given only if the metric is the share of
    right items. The interval of this share is Wilson's if each group has one item, or if all items are right or all are wrong
    (the number of trials is then the number of groups). All other intervals come from a bootstrap over groups. If all resamples
    are equal because all answers are right, the lower end is the lowest value of the metric at the lower end of Wilson's
    interval (``SummedMetric.floor``).
    """
    return intervals(
        {"": metric},
        groups,
        right={"": right} if right is not None else {},
        items=items,
        resamples=resamples,
        seed=seed,
    )[""]


def intervals(
    metrics: Mapping[str, Metric],
    groups: Sequence[Hashable] | None = None,
    *,
    right: Mapping[str, Sequence[bool] | NDArray[np.bool_]] | None = None,
    items: int | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Score]:
    """Return the score of each metric; all metrics use the same resamples.

    ``right`` says, for each metric that is a share of right items, which items are right.
    """
    shares = {name: np.asarray(each, dtype=np.bool_) for name, each in (right or {}).items()}
    count = (
        items if items is not None else len(groups) if groups is not None else max(map(len, shares.values()), default=0)
    )
    numbered = Groups.of(groups, count)
    everything = np.arange(count)
    scores: dict[str, Score] = {}
    for name, metric in metrics.items():
        value = defined(metric(everything)) if count else None
        note = few_groups(numbered.count)
        if value is None:
            scores[name] = Score(None, None, None, count, numbered.count, "none", note)
            continue
        share = shares.get(name)
        if share is not None and (numbered.are_single or share.all() or not share.any()):
            trials = numbered.count
            low, high = wilson(trials * value if not numbered.are_single else float(share.sum()), trials)
            scores[name] = Score(value, low, high, count, numbered.count, "wilson", note)
    left = {name: metric for name, metric in metrics.items() if name not in scores}
    for name, values in resampled(left, numbered, resamples, seed).items():
        score = _bootstrap_score(float(metrics[name](everything)), values, count, numbered.count)
        scores[name] = _worst_case(score, metrics[name], numbered) if _are_equal(values) else score
    return {name: scores[name] for name in metrics}


def few_groups(count: int) -> str:
    """Return the note for an interval over ``count`` groups; "" if there are enough groups."""
    return "too few groups for a reliable interval" if count < FEW_GROUPS else ""


def _bootstrap_score(value: float, values: Floats, items: int, groups: int) -> Score:
    note = few_groups(groups)
    kept = values[~np.isnan(values)]
    undefined = len(values) - len(kept)
    if undefined:
        note = "; ".join(filter(None, (note, f"{undefined} of {len(values)} resamples have no value")))
    if groups < 2 or undefined * 20 > len(values) or _are_equal(kept):
        why = (
            "one group"
            if groups < 2
            else "too many resamples have no value"
            if undefined * 20 > len(values)
            else "all resamples are equal"
        )
        return Score(value, None, None, items, groups, "none", "; ".join(filter(None, (note, f"no interval: {why}"))))
    low, high = percentile_interval(kept, groups)
    return Score(value, low, high, items, groups, "bootstrap", note)


def _are_equal(values: Floats) -> bool:
    """Return whether the values that are defined are equal, except for rounding."""
    kept = values[~np.isnan(values)]
    return not len(kept) or bool(np.ptp(kept) <= 1e-12 * max(1.0, float(np.abs(kept).max())))


def _worst_case(score: Score, metric: Metric, groups: Groups) -> Score:
    """Return the score with an interval if all answers are right or, for values from 0 to 1, all are 0; otherwise unchanged.

    The number of trials is the number of groups; for a mean, the number of groups with a value.
    """
    if not isinstance(metric, SummedMetric) or metric.floor is None or score.value not in (0.0, 1.0):
        return score
    trials = groups.count
    if metric.floor is mean_floor:
        trials = int(np.count_nonzero(~np.isnan(metric.value(groups.sums(metric.sums)))))
    low, high = wilson(trials * score.value, trials)
    if metric.floor is mean_floor:
        return evolve(score, low=low, high=high, method="wilson", note=few_groups(trials))
    if score.value == 0.0:
        return score
    lowest = metric.floor(metric.sums.sum(axis=0), low)
    return evolve(score, low=lowest, high=1.0, method="worst case", note=few_groups(trials))


def percentile_interval(values: Floats, groups: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the expanded percentile interval of resampled values.

    Bootstrap percentile intervals are too narrow for few groups; they are widened by Student's t distribution and by the factor
    n / (n - 1) of the variance (Hesterberg 2015, "What Teachers Should Know About the Bootstrap", The American Statistician
    69(4), section 3.2).
    """
    spread = math.sqrt(groups / (groups - 1)) * student_t_quantile((1 + level) / 2, groups - 1)
    tail = NormalDist().cdf(-spread)
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def resampled(
    metrics: Mapping[str, Metric], groups: Groups, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Floats]:
    """Return the values of each metric for the same bootstrap resamples of the groups. Each metric has an array."""
    if not metrics:
        return {}
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, not {resamples}")
    summed = {name: metric for name, metric in metrics.items() if isinstance(metric, SummedMetric)}
    by_group = {id(each.sums): groups.sums(each.sums) for each in summed.values()}
    if len(summed) == len(metrics) and (few := _distinct_rows(list(by_group.values()))) is not None:
        rows, counts = few
        draws = np.random.default_rng(seed).multinomial(groups.count, counts / groups.count, size=resamples)
        totals = dict(zip(by_group, (draws @ each for each in rows), strict=True))
        return {name: metric.value(totals[id(metric.sums)]) for name, metric in summed.items()}
    found: dict[str, list[Floats]] = {name: [] for name in metrics}
    items = np.arange(len(groups.codes))
    for drawn in groups.draws(resamples, seed):
        totals = {key: drawn @ sums for key, sums in by_group.items()}
        for name, metric in metrics.items():
            if isinstance(metric, SummedMetric):
                found[name].append(metric.value(totals[id(metric.sums)]))
            else:
                indices = (np.repeat(items, row[groups.codes].astype(np.int64)) for row in drawn)
                found[name].append(np.array([metric(index) for index in indices]))
    return {name: np.concatenate(values) for name, values in found.items()}


def _distinct_rows(tables: Sequence[Floats]) -> tuple[list[Floats], Integers] | None:
    """Join the tables side by side; return the distinct rows and how often each occurs, or None if many rows are distinct.

    Groups with equal sums are interchangeable, so their counts in a resample may be drawn together. This saves nothing if many
    rows are distinct.
    """
    joined = np.ascontiguousarray(np.column_stack(tables))
    keys = joined.view(np.dtype((np.void, joined.itemsize * joined.shape[1]))).ravel()
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    if len(first) * 8 > len(joined):
        return None
    return [each[first] for each in tables], counts


# Shares.


def wilson(successes: float, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """Return Wilson's score interval for a share (Wilson 1927, JASA 22); (0, 1) if there are no trials."""
    _check_share(successes, trials)
    if not trials:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, squared = successes / trials, z * z / trials
    centre = share + squared / 2
    half = z * math.sqrt(share * (1 - share) / trials + squared / (4 * trials))
    low, high = (centre - half) / (1 + squared), (centre + half) / (1 + squared)
    return (0.0 if successes == 0 else low), (1.0 if successes == trials else high)


def clopper_pearson(successes: int, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the exact interval for a share (Clopper and Pearson 1934, Biometrika 26); (0, 1) if there are no trials.

    Each bound on its own has the confidence level (1 + ``level``) / 2.
    """
    _check_share(successes, trials)
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else _root(lambda x: incomplete_beta(successes, trials - successes + 1, x), tail)
    high = (
        1.0 if successes == trials else _root(lambda x: incomplete_beta(successes + 1, trials - successes, x), 1 - tail)
    )
    return low, high


def _check_share(successes: float, trials: int) -> None:
    if not 0 <= successes <= trials:
        raise ValueError(f"successes must be between 0 and {trials}, not {successes}")


def _root(function: Callable[[float], float], target: float) -> float:
    """Return the x from 0 to 1 at which the increasing ``function`` has the value ``target``."""
    low, high = 0.0, 1.0
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        low, high = (middle, high) if function(middle) < target else (low, middle)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function, for ``a`` and ``b`` above 0, by its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )  # fmt: skip
    c, d = 1.0, _away_from_zero(1.0 - (a + b) * x / (a + 1))
    fraction = d = 1.0 / d
    for m in range(1, _MOST_TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1.0 / _away_from_zero(1.0 + term * d), _away_from_zero(1.0 + term / c)
            change = c * d
            fraction *= change
        if abs(change - 1.0) < 1e-15:
            return front * fraction / a
    raise ArithmeticError(f"the incomplete beta function does not converge for a={a}, b={b}, x={x}")


_MOST_TERMS = 100_000


def _away_from_zero(value: float) -> float:
    return value if abs(value) > 1e-300 else 1e-300


def student_t_quantile(probability: float, degrees: float) -> float:
    """Return the quantile of Student's t distribution for ``probability`` between 0.5 and 1 (both exclusive)."""
    tail = _root(lambda x: incomplete_beta(degrees / 2, 0.5, x), 2 * (1 - probability))
    return math.sqrt(degrees * (1 - tail) / tail)
