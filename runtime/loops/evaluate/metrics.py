"""Metrics of predictions against gold labels: classes, numbers, texts, sets and rankings.

A prediction of None stands for an answer that is invalid, failed or missing; it counts as a wrong answer. A value that is not defined
(a share of no items, a correlation with a constant) is None, never 0. ``docs/reference/metrics.md`` has the definitions.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence, Sized
from typing import Any, NamedTuple

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Metric = Callable[[Integers], float]
"""A metric: a function from indices of items (an index may occur several times) to a value; NaN if the value is not defined."""


@frozen
class SummedMetric:
    """A metric that is a function of sums over items, so that a bootstrap needs one matrix product.

    ``sums`` has a row for each item. ``value`` takes an array whose last axis is that of ``sums`` and returns an array without this axis.
    Metrics that share ``sums`` (the same object) share the product. ``floor`` is used if all answers are right, so that the
    value is 1. It takes the sums over all items and a share, and returns the lowest value that the metric can have if the share
    of right answers is at least this share (None: unknown).
    """

    sums: Floats = field(eq=False, repr=False)
    value: Callable[[Floats], Floats] = field(eq=False, repr=False)
    floor: Callable[[Floats, float], float] | None = field(default=None, eq=False, repr=False)

    def __call__(self, index: Integers) -> float:
        """Return the value for the items in ``index``; NaN if it is not defined."""
        return float(self.value(self.sums[index].sum(axis=0)))

    @property
    def total(self) -> float:
        """The value for all items; NaN if it is not defined."""
        return float(self.value(self.sums.sum(axis=0)))


def defined(value: float) -> float | None:
    """Return ``value``, or None for NaN."""
    number = float(value)
    return None if math.isnan(number) else number


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Return the quotients; NaN where the denominator is 0."""
    top, bottom = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    shape = np.broadcast_shapes(top.shape, bottom.shape)
    made: Floats = np.divide(top, bottom, out=np.full(shape, np.nan), where=np.broadcast_to(bottom != 0, shape))
    return made


def mean_of(
    values: Sequence[float] | Floats | NDArray[np.bool_], among: NDArray[np.bool_] | None = None, *, most: float = math.inf
) -> SummedMetric:  # fmt: skip
    """Return a metric: the mean of ``values``, which has a value for each item.

    ``among`` says which items count. With ``most=1``, values are from 0 to 1, and 1 is a right answer.
    """
    numbers = np.asarray(values, dtype=np.float64)
    weights = np.ones(len(numbers)) if among is None else among.astype(np.float64)
    sums = np.column_stack((np.where(weights > 0, numbers, 0.0), weights))
    return SummedMetric(sums, _mean, mean_floor if most == 1 else None)


def mean_floor(sums: Floats, share: float) -> float:
    """Return the lowest mean of values from 0 to 1 if ``share`` of them are 1."""
    return share


def _mean(sums: Floats) -> Floats:
    return ratio(sums[..., 0], sums[..., 1])


def _same_length(gold: Sized, predicted: Sized) -> None:
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold values, but {len(predicted)} predictions")


# Classes.


class ClassScore(NamedTuple):
    """The scores of one class.

    Precision is None if the class is never predicted; recall is None if no item has the class; F1 is None if both are.
    """

    precision: float | None
    recall: float | None
    f1: float | None
    support: int


@frozen
class Classification:
    """Scores of predicted classes.

    ``accuracy`` counts an item without an answer as wrong; ``answered_accuracy`` leaves such items out. ``macro_f1`` is the
    mean F1 of the classes that occur in the gold labels or in the predictions. ``kappa`` is Cohen's kappa between gold and
    predictions, with quadratic weights if ``ordered`` is true; the distance of a missing answer, or of a label outside the
    scale, to every other label is the length of the scale. ``confusion`` has a row for each gold label and a column for each
    prediction, both in the order of ``labels``, and a last column for items without an answer. A score is None if it is not
    defined; without items, all scores are None.
    """

    labels: tuple[Hashable, ...]
    ordered: bool
    items: int
    answered: int
    accuracy: float | None
    answered_accuracy: float | None
    macro_f1: float | None
    kappa: float | None
    per_class: Mapping[Hashable, ClassScore]
    confusion: tuple[tuple[int, ...], ...]
    right: NDArray[np.bool_] = field(eq=False, repr=False)
    """Whether the prediction is the gold label, for each item."""
    metrics: Mapping[str, SummedMetric] = field(eq=False, repr=False)
    """``accuracy``, ``answered_accuracy``, ``macro_f1`` and ``kappa`` as metrics, for intervals and comparisons."""


def classification(
    gold: Sequence[Hashable],
    predicted: Sequence[Hashable | None],
    labels: Sequence[Hashable] | None = None,
    ordered: bool = False,
) -> Classification:
    """Score predicted classes. ``labels`` are the known labels in their order (None: the labels that occur, sorted).

    Labels that occur but are not in ``labels`` follow them, sorted. Raises ``ValueError`` if the lengths differ or a gold label is None.
    """
    _same_length(gold, predicted)
    if any(label is None for label in gold):
        raise ValueError("a gold label is None; leave out items without a label")
    known = tuple(dict.fromkeys(labels or ()))
    found = dict.fromkeys(gold) | dict.fromkeys(label for label in predicted if label is not None)
    every = (*known, *sorted((label for label in found if label not in set(known)), key=label_order))
    scale = len(known) if labels is not None else len(every)
    place: dict[Hashable | None, int] = {label: index for index, label in enumerate(every)}
    classes = len(every)
    place[None] = classes
    truth = np.fromiter((place[label] for label in gold), dtype=np.int64, count=len(gold))
    guess = np.fromiter((place[label] for label in predicted), dtype=np.int64, count=len(predicted))
    metrics = class_metrics(truth, guess, classes, scale if ordered else None)
    table = np.bincount(truth * (classes + 1) + guess, minlength=classes * (classes + 1)).reshape(classes, classes + 1)
    accuracy, answered, macro_f1, kappa = (defined(metric.total) for metric in metrics.values())
    return Classification(
        every, ordered, len(gold), int((guess < classes).sum()), accuracy, answered, macro_f1, kappa, _class_scores(every, table),
        tuple(tuple(int(cell) for cell in row) for row in table), truth == guess, metrics,
    )  # fmt: skip


def label_order(label: Hashable) -> tuple[str, Any]:
    """Return the key by which labels are sorted: by type, then by value."""
    return type(label).__name__, label


def class_metrics(truth: Integers, guess: Integers, classes: int, scale: int | None = None) -> dict[str, SummedMetric]:
    """Return the metrics of class numbers 0 to ``classes`` - 1.

    In ``guess``, the number ``classes`` stands for a missing answer. With ``scale``, kappa has quadratic weights, and the first
    ``scale`` classes are the scale.
    """
    sums = np.zeros((len(truth), classes * (classes + 1)))
    sums[np.arange(len(truth)), truth * (classes + 1) + guess] = 1.0
    weights = _disagreement(classes, scale)

    def tables(cells: Floats) -> Floats:
        return cells.reshape(*cells.shape[:-1], classes, classes + 1)

    def accuracy(cells: Floats) -> Floats:
        return ratio(_diagonal(tables(cells)).sum(axis=-1), cells.sum(axis=-1))

    def answered_accuracy(cells: Floats) -> Floats:
        table = tables(cells)
        return ratio(_diagonal(table).sum(axis=-1), table[..., :classes].sum(axis=(-2, -1)))

    def macro_f1(cells: Floats) -> Floats:
        table = tables(cells)
        either = table.sum(axis=-1) + table[..., :classes].sum(axis=-2)
        present = either > 0
        f1 = np.where(present, 2 * _diagonal(table) / np.where(present, either, 1.0), 0.0)
        return ratio(f1.sum(axis=-1), present.sum(axis=-1))

    def kappa(cells: Floats) -> Floats:
        return _kappa(tables(cells), weights)

    def lowest_macro_f1(cells: Floats, share: float) -> float:
        return _lowest_macro_f1(tables(cells).sum(axis=-1), share)

    def lowest_kappa(cells: Floats, share: float) -> float:
        return _lowest_kappa(tables(cells).sum(axis=-1), weights, share)

    return {
        "accuracy": SummedMetric(sums, accuracy, mean_floor), "answered_accuracy": SummedMetric(sums, answered_accuracy, mean_floor),
        "macro_f1": SummedMetric(sums, macro_f1, lowest_macro_f1), "kappa": SummedMetric(sums, kappa, lowest_kappa),
    }  # fmt: skip


def _lowest_macro_f1(support: Floats, share: float) -> float:
    """Return the lowest macro-F1 of answers of which at least ``share`` are right, for classes with ``support`` items.

    Wrong answers cost the most in the smallest classes, whose recall becomes 0. Wrong answers are distributed over the other
    classes such that the sum of the F1 values is smallest (all derivatives are equal).
    """
    sizes = np.sort(support[support > 0])
    wrong = (1 - share) * float(sizes.sum())
    hits = sizes - np.clip(wrong - (np.cumsum(sizes) - sizes), 0, sizes)
    low, high = 0.0, 3 * float(sizes.sum()) / math.sqrt(float(hits[hits > 0].min())) if hits.any() else 0.0
    for _ in range(100):
        middle = (low + high) / 2
        added = np.maximum(0, np.sqrt(hits) * middle - sizes - hits)
        low, high = (middle, high) if added.sum() < wrong else (low, middle)
    added = np.maximum(0, np.sqrt(hits) * high - sizes - hits)
    return float((2 * hits / (sizes + hits + added)).mean())


def _lowest_kappa(support: Floats, weights: Floats, share: float) -> float:
    """Return a lower bound of kappa for answers of which at least ``share`` are right; -1 if the bound is lower or not defined.

    Each wrong answer has at most the largest weight, and lowers the disagreement that is expected by at most the range of ``means``.
    """
    classes = support / support.sum()
    means = classes @ weights
    wrong = 1 - share
    expected = float(means[:-1] @ classes) - wrong * float(means[:-1][classes > 0].max() - means.min())
    return -1.0 if expected <= 0 else max(-1.0, 1 - wrong * float(weights.max()) / expected)


def _diagonal(tables: Floats) -> Floats:
    return np.diagonal(tables, axis1=-2, axis2=-1)


def _disagreement(classes: int, scale: int | None) -> Floats:
    """Return the weight of each cell of a confusion matrix: 0 or 1, or squared distances on the scale."""
    if scale is None:
        return 1.0 - np.eye(classes, classes + 1)
    farthest = float(max(scale - 1, 1)) ** 2
    weights = np.full((classes, classes + 1), farthest)
    places = np.arange(scale, dtype=np.float64)
    weights[:scale, :scale] = (places[:, None] - places[None, :]) ** 2
    return np.where(np.eye(classes, classes + 1) == 1, 0.0, weights)


def _kappa(tables: Floats, weights: Floats) -> Floats:
    """Return 1 - observed / expected disagreement; NaN where no disagreement is expected."""
    observed = (tables * weights).sum(axis=(-2, -1))
    rows, columns = tables.sum(axis=-1), tables.sum(axis=-2)
    expected = ((rows @ weights) * columns).sum(axis=-1)
    return 1.0 - ratio(observed * tables.sum(axis=(-2, -1)), expected)


def _class_scores(labels: Sequence[Hashable], table: Integers) -> dict[Hashable, ClassScore]:
    scores = {}
    for index, label in enumerate(labels):
        hits, support, predicted = int(table[index, index]), int(table[index].sum()), int(table[:, index].sum())
        scores[label] = ClassScore(
            hits / predicted if predicted else None, hits / support if support else None,
            2 * hits / (support + predicted) if support + predicted else None, support,
        )  # fmt: skip
    return scores


# Numbers.


@frozen
class Numeric:
    """Scores of predicted numbers.

    ``mae`` (mean absolute error), ``rmse`` (root mean squared error) and ``spearman`` (rank correlation) cover only answered
    items. ``within`` is the share of all items whose prediction differs by at most ``tolerance``; a missing answer counts as
    wrong.
    """

    items: int
    answered: int
    tolerance: float
    mae: float | None
    rmse: float | None
    within: float | None
    spearman: float | None
    right: NDArray[np.bool_] = field(eq=False, repr=False)
    """Whether the prediction is within the tolerance, for each item."""
    metrics: Mapping[str, Metric] = field(eq=False, repr=False)
    """``mae``, ``rmse``, ``within`` and ``spearman`` as metrics."""


def numeric(gold: Sequence[float], predicted: Sequence[float | None], tolerance: float = 0.0) -> Numeric:
    """Score predicted numbers.

    Raises ``ValueError`` if the lengths differ, a number is not finite, or the tolerance is negative.
    """
    _same_length(gold, predicted)
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise ValueError(f"the tolerance must be 0 or more, not {tolerance}")
    truth = np.asarray(gold, dtype=np.float64)
    answered = np.fromiter((value is not None for value in predicted), dtype=np.bool_, count=len(predicted))
    guess = np.fromiter(
        (0.0 if value is None else value for value in predicted), dtype=np.float64, count=len(predicted)
    )
    if not (np.isfinite(truth).all() and np.isfinite(guess).all()):
        raise ValueError("a number is not finite")
    error = np.abs(truth - guess)
    right = answered & (error <= tolerance)
    squared = mean_of(error**2, answered)

    def rank_correlation(index: Integers) -> float:
        chosen = index[answered[index]]
        found = spearman(truth[chosen], guess[chosen])
        return math.nan if found is None else found

    metrics: dict[str, Metric] = {
        "mae": mean_of(error, answered), "rmse": SummedMetric(squared.sums, lambda sums: np.sqrt(_mean(sums))),
        "within": mean_of(right), "spearman": rank_correlation,
    }  # fmt: skip
    mae, rmse, within, correlation = (defined(metric(np.arange(len(gold)))) for metric in metrics.values())
    return Numeric(len(gold), int(answered.sum()), tolerance, mae, rmse, within, correlation, right, metrics)


def spearman(a: Sequence[float] | Floats, b: Sequence[float] | Floats) -> float | None:
    """Return Spearman's rank correlation; tied values have their mean rank.

    Return None for a constant, or for fewer than two pairs.
    """
    _same_length(a, b)
    if len(a) < 2:
        return None
    left, right = mean_ranks(np.asarray(a, dtype=np.float64)), mean_ranks(np.asarray(b, dtype=np.float64))
    left, right = left - left.mean(), right - right.mean()
    scale = math.sqrt(float(left @ left)) * math.sqrt(float(right @ right))
    return None if scale == 0 else max(-1.0, min(1.0, float(left @ right) / scale))


def mean_ranks(values: Floats) -> Floats:
    """Return the rank of each value, from 1; tied values have the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: Floats = (last - (counts - 1) / 2)[inverse]
    return means


# Texts and sets.


@frozen
class TextScores:
    """Scores of predicted texts: the share that is equal after folding, and the mean token F1.

    A missing answer counts as 0 in both.
    """

    items: int
    answered: int
    equal: float | None
    token_f1: float | None
    right: NDArray[np.bool_] = field(eq=False, repr=False)
    """Whether the texts are equal after folding, for each item."""
    metrics: Mapping[str, SummedMetric] = field(eq=False, repr=False)
    """``equal`` and ``token_f1`` as metrics."""


def text(gold: Sequence[str], predicted: Sequence[str | None]) -> TextScores:
    """Score predicted texts (token F1 as for SQuAD, arXiv 1606.05250). Raises ``ValueError`` if the lengths differ."""
    _same_length(gold, predicted)
    pairs = [
        (folded(truth), None if guess is None else folded(guess)) for truth, guess in zip(gold, predicted, strict=True)
    ]
    right = np.array([truth == guess for truth, guess in pairs], dtype=np.bool_)
    metrics = {
        "equal": mean_of(right),
        "token_f1": mean_of([_token_f1(truth, guess) for truth, guess in pairs], most=1),
    }
    equal, token_f1 = (defined(metric.total) for metric in metrics.values())
    return TextScores(len(gold), sum(guess is not None for guess in predicted), equal, token_f1, right, metrics)


def folded(value: str) -> str:
    """Return the text in the form in which texts are compared: Unicode NFKC, case folded, with single spaces."""
    return " ".join(unicodedata.normalize("NFKC", value).casefold().split())


_TOKEN = re.compile(r"\w+")


def _token_f1(gold: str, predicted: str | None) -> float:
    if predicted is None:
        return 0.0
    truth, guess = _TOKEN.findall(gold), _TOKEN.findall(predicted)
    if not truth and not guess:
        return float(gold == predicted)
    return 2 * (Counter(truth) & Counter(guess)).total() / (len(truth) + len(guess))


@frozen
class SetScores:
    """Scores of predicted sets: the means over items of precision, recall and F1. An item without an answer has 0 in all three.

    If both sets of an item are empty, all three are 1; if only one of them is empty, all three are 0.
    """

    items: int
    answered: int
    precision: float | None
    recall: float | None
    f1: float | None
    right: NDArray[np.bool_] = field(eq=False, repr=False)
    """Whether the sets are equal, for each item."""
    metrics: Mapping[str, SummedMetric] = field(eq=False, repr=False)
    """``precision``, ``recall`` and ``f1`` as metrics."""


def sets(
    gold: Sequence[Sequence[Hashable] | set[Any]], predicted: Sequence[Sequence[Hashable] | set[Any] | None]
) -> SetScores:
    """Score predicted sets. Texts are compared after folding; repeated elements count once.

    Raises ``ValueError`` if the lengths differ.
    """
    _same_length(gold, predicted)
    rows, right = [], []
    for truth, guess in zip(gold, predicted, strict=True):
        wanted, got = _elements(truth), None if guess is None else _elements(guess)
        right.append(wanted == got)
        if got is None or not (wanted and got):
            rows.append((float(wanted == got),) * 3)
        else:
            common = len(wanted & got)
            rows.append((common / len(got), common / len(wanted), 2 * common / (len(wanted) + len(got))))
    columns = np.array(rows, dtype=np.float64).reshape(-1, 3)
    metrics = {name: mean_of(columns[:, index], most=1) for index, name in enumerate(("precision", "recall", "f1"))}
    precision, recall, f1 = (defined(metric.total) for metric in metrics.values())
    answered = sum(guess is not None for guess in predicted)
    return SetScores(len(gold), answered, precision, recall, f1, np.array(right, dtype=np.bool_), metrics)


def _elements(values: Sequence[Hashable] | set[Any]) -> set[Hashable]:
    return {folded(value) if isinstance(value, str) else value for value in values}


# Rankings.


@frozen
class RankScores:
    """Scores of rankings, as means over requests; a request without an answer has 0.

    ``hit1`` and ``hit_k`` are the shares of requests with a relevant item in first place, and in the first ``k`` places. ``mrr`` is the
    mean reciprocal rank of the first relevant item. ``ndcg10`` is the normalized discounted cumulative gain of the first ten places.
    """

    items: int
    answered: int
    k: int
    hit1: float | None
    hit_k: float | None
    mrr: float | None
    ndcg10: float | None
    right: NDArray[np.bool_] = field(eq=False, repr=False)
    """Whether the first item is relevant, for each request."""
    metrics: Mapping[str, SummedMetric] = field(eq=False, repr=False)
    """``hit1``, ``hit_k``, ``mrr`` and ``ndcg10`` as metrics."""


def ranking(relevant: Sequence[set[Any]], ranked: Sequence[Sequence[Hashable] | None], k: int = 10) -> RankScores:
    """Score rankings. If an item occurs again in a ranking, the repetition counts as an item that is not relevant.

    Raises ``ValueError`` if the lengths differ, a request has no relevant item, or ``k`` is below 1.
    """
    _same_length(relevant, ranked)
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    if not all(relevant):
        raise ValueError("a request has no relevant item")
    rows = []
    for wanted, order in zip(relevant, ranked, strict=True):
        places = [place for place, item in enumerate(dict.fromkeys(order or ()), 1) if item in wanted]
        if order is not None and len(set(order)) < len(order):
            places = [place for place, item in enumerate(order, 1) if item in wanted and item not in order[: place - 1]]
        first = places[0] if places else math.inf
        gain = sum(1 / math.log2(place + 1) for place in places if place <= 10)
        ideal = sum(1 / math.log2(place + 1) for place in range(1, min(len(wanted), 10) + 1))
        rows.append((float(first == 1), float(first <= k), 1 / first, gain / ideal))
    columns = np.array(rows, dtype=np.float64).reshape(-1, 4)
    names = ("hit1", "hit_k", "mrr", "ndcg10")
    metrics = {name: mean_of(columns[:, index], most=1) for index, name in enumerate(names)}
    hit1, hit_k, mrr, ndcg10 = (defined(metric.total) for metric in metrics.values())
    answered = sum(order is not None for order in ranked)
    return RankScores(len(relevant), answered, k, hit1, hit_k, mrr, ndcg10, columns[:, 0] == 1, metrics)
