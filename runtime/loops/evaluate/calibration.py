"""Compares confidence with correctness: reliability, coverage, and the threshold below which an answer is escalated."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from attrs import asdict, frozen
from numpy.typing import NDArray

from .intervals import LEVEL, Groups, clopper_pearson
from .metrics import Floats

BINS = 10


@frozen
class Bin:
    """The items with a confidence above ``low`` (in the first bin: at least ``low``) and at most ``high``.

    ``confidence`` and ``accuracy`` are means; they are None if there are no items.
    """

    low: float
    high: float
    items: int
    confidence: float | None
    accuracy: float | None


@frozen
class CoveragePoint:
    """The items with a confidence of at least ``threshold``: their number, their share of all items, and their accuracy."""

    threshold: float
    items: int
    coverage: float
    accuracy: float


@frozen
class Reliability:
    """How well confidence predicts correctness.

    ``ece`` is the expected calibration error: the mean distance between confidence and accuracy of a bin, weighted by the
    number of items in the bin (arXiv 1706.04599). ``brier`` is the mean squared distance between confidence and correctness (0
    or 1). Both are None without items. ``without`` is the number of items that have no confidence; no other number includes
    these items.
    """

    items: int
    without: int
    bins: tuple[Bin, ...]
    ece: float | None
    brier: float | None
    coverage: tuple[CoveragePoint, ...]
    """At most 101 points, sorted from the highest confidence to the lowest."""

    def as_json(self) -> dict[str, Any]:
        """Return the reliability as a JSON object."""
        return asdict(self)


_MOST_POINTS = 101


def reliability(
    confidence: Sequence[float | None], right: Sequence[bool] | NDArray[np.bool_], bins: int = BINS
) -> Reliability:
    """Compare ``confidence`` (0 to 1; None: no confidence) with ``right``. Raises ``ValueError`` for a confidence outside of 0 to 1."""
    values, correct = _known(confidence, right)
    without = len(confidence) - len(values)
    number = np.clip(np.ceil(values * bins - 1e-12).astype(np.int64) - 1, 0, bins - 1)
    counts = np.bincount(number, minlength=bins)
    confident, accurate = np.bincount(number, values, bins), np.bincount(number, correct, bins)
    found = tuple(
        Bin(
            index / bins, (index + 1) / bins, int(count), float(confident[index] / count) if count else None,
            float(accurate[index] / count) if count else None,
        )
        for index, count in enumerate(counts)
    )  # fmt: skip
    if not len(values):
        return Reliability(0, without, found, None, None, ())
    ece = float(np.abs(confident - accurate).sum() / len(values))
    return Reliability(
        len(values), without, found, ece, float(((values - correct) ** 2).mean()), _coverage(values, correct)
    )  # fmt: skip


def _known(confidence: Sequence[float | None], right: Sequence[bool] | NDArray[np.bool_]) -> tuple[Floats, Floats]:
    if len(confidence) != len(right):
        raise ValueError(f"{len(confidence)} confidences, but {len(right)} items")
    has = np.fromiter((each is not None for each in confidence), dtype=np.bool_, count=len(confidence))
    values = np.array([each for each in confidence if each is not None], dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("a confidence is not between 0 and 1")
    return values, np.asarray(right, dtype=np.float64)[has]


def _coverage(values: Floats, correct: Floats) -> tuple[CoveragePoint, ...]:
    order = np.argsort(-values, kind="stable")
    ordered, hits = values[order], np.cumsum(correct[order])
    ends = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
    if len(ends) > _MOST_POINTS:
        ends = ends[np.unique(np.linspace(0, len(ends) - 1, _MOST_POINTS).round().astype(np.int64))]
    return tuple(
        CoveragePoint(float(ordered[end]), int(end) + 1, (int(end) + 1) / len(values), float(hits[end] / (end + 1)))
        for end in ends
    )


# The threshold of a cascade.


@frozen
class ThresholdPoint:
    """The effect of a threshold: the number of kept (not escalated) answers, the accuracy with its interval, and the cost.

    ``accuracy`` is the accuracy of all answers if the answers to escalated items are known; otherwise it is the accuracy of the
    kept answers only. ``items`` is the number of answers from which the accuracy is computed; ``low`` and ``high`` are the ends
    of the Clopper-Pearson interval of the accuracy. ``cost`` is the mean cost of an item.
    """

    threshold: float
    items: int
    kept: int
    accuracy: float | None
    low: float
    high: float
    cost: float


@frozen
class ThresholdChoice:
    """The cheapest threshold that reaches a target accuracy on one half of the items, and its scores on the other half.

    Answers with a confidence of at least ``threshold`` are kept; all others are escalated. ``chosen`` has the scores on the
    half on which the threshold was chosen, ``reported`` has those on the other half. ``threshold``, ``chosen`` and ``reported``
    are None if no threshold reaches the target. ``points`` has the scores of every threshold that was tried, on the half for
    the choice.
    """

    threshold: float | None
    target: float
    chosen: ThresholdPoint | None
    reported: ThresholdPoint | None
    points: tuple[ThresholdPoint, ...]
    items: int
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the choice as a JSON object."""
        return asdict(self)


def threshold_points(
    confidence: Sequence[float | None],
    right: Sequence[bool] | NDArray[np.bool_],
    cost: Sequence[float] | float = 0.0,
    *,
    right_escalated: Sequence[bool] | NDArray[np.bool_] | None = None,
    cost_escalated: Sequence[float] | float = 0.0,
) -> tuple[ThresholdPoint, ...]:
    """Return accuracy and cost at each threshold, from the highest threshold to the lowest.

    The first threshold escalates all items. ``cost`` is the cost of the first answer, ``cost_escalated`` is the additional cost
    if the item is escalated; each is one number for all items, or has a number for each item. ``right_escalated`` says for each
    item whether the answer after escalation is right; None means unknown. An item without confidence is always escalated.
    """
    values, correct, escalated, costs = _arrays(confidence, right, cost, right_escalated, cost_escalated)
    return tuple(_point(each, values, correct, escalated, costs) for each in _thresholds(values))


def threshold(
    confidence: Sequence[float | None],
    right: Sequence[bool] | NDArray[np.bool_],
    cost: Sequence[float] | float = 0.0,
    target: float = LEVEL,
    *,
    right_escalated: Sequence[bool] | NDArray[np.bool_] | None = None,
    cost_escalated: Sequence[float] | float = 1.0,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> ThresholdChoice:
    """Choose the cheapest threshold whose lower Clopper-Pearson bound (95 %, two-sided) on one half of the items is at least ``target``.

    The halves are drawn at random with ``seed``. All items of a group are in the same half; if ``groups`` is None, each item is
    a group. Of equally cheap thresholds, the one with the highest bound is chosen. Other arguments are as for
    ``threshold_points``. On the half on which a threshold was chosen, its bound is too optimistic, because the threshold was
    selected from several. The scores in ``reported`` don't have this bias. Raises ``ValueError`` if the target is not between 0
    and 1.
    """
    if not 0 < target < 1:
        raise ValueError(f"the target accuracy must be between 0 and 1, not {target}")
    arrays = _arrays(confidence, right, cost, right_escalated, cost_escalated)
    numbered = Groups.of(groups, len(confidence))
    order = np.random.default_rng(seed).permutation(numbered.count)
    is_first = np.isin(numbered.codes, order[: (numbered.count + 1) // 2])
    choosing = [None if each is None else each[is_first] for each in arrays]
    reporting = [None if each is None else each[~is_first] for each in arrays]
    points = tuple(_point(each, *choosing) for each in _thresholds(choosing[0]))  # type: ignore[arg-type]
    reaching = [each for each in points if each.low >= target]
    if not reaching:
        return ThresholdChoice(None, target, None, None, points, len(confidence), "no threshold reaches the target")
    chosen = min(reaching, key=lambda each: (each.cost, -each.low))
    reported = _point(chosen.threshold, *reporting)  # type: ignore[arg-type]
    return ThresholdChoice(chosen.threshold, target, chosen, reported, points, len(confidence))


def _arrays(
    confidence: Sequence[float | None], right: Any, cost: Any, right_escalated: Any, cost_escalated: Any
) -> tuple[Floats, Floats, Floats | None, Floats]:
    """Return arrays: confidences (-1: none), correctness, correctness after escalation, costs (columns: kept, escalated)."""
    _known(confidence, right)
    count = len(confidence)
    values = np.array([-1.0 if each is None else each for each in confidence], dtype=np.float64)
    first = np.broadcast_to(np.asarray(cost, dtype=np.float64), (count,))
    more = np.broadcast_to(np.asarray(cost_escalated, dtype=np.float64), (count,))
    escalated = None if right_escalated is None else np.asarray(right_escalated, dtype=np.float64)
    if escalated is not None and len(escalated) != count:
        raise ValueError(f"{count} items, but {len(escalated)} escalated items")
    return values, np.asarray(right, dtype=np.float64), escalated, np.column_stack((first, first + more))


def _thresholds(values: Floats) -> list[float]:
    """Return the thresholds to try: one above all confidences, then the confidences that occur, at most 200 of them."""
    found = np.unique(values[values >= 0])[::-1]
    if len(found) > 200:
        found = found[np.unique(np.linspace(0, len(found) - 1, 200).round().astype(np.int64))]
    return [1.0 + 1e-9, *map(float, found)]


def _point(
    threshold: float, values: Floats, correct: Floats, escalated: Floats | None, costs: Floats
) -> ThresholdPoint:
    kept = values >= threshold
    answers = correct[kept] if escalated is None else np.where(kept, correct, escalated)
    low, high = clopper_pearson(int(answers.sum()), len(answers))
    cost = float(np.where(kept, costs[:, 0], costs[:, 1]).mean()) if len(values) else 0.0
    return ThresholdPoint(
        threshold, len(answers), int(kept.sum()), float(answers.mean()) if len(answers) else None, low, high, cost
    )
