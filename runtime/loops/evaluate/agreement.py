"""Agreement of several annotators, or of a judge with a person: Cohen's kappa and Krippendorff's alpha."""

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
from attrs import asdict, frozen

from .metrics import Floats, defined, label_order, ratio

Weights = Literal["linear", "quadratic"]
Level = Literal["nominal", "ordinal", "interval"]


@frozen
class Agreement:
    """A coefficient of agreement: 1 for full agreement, 0 for agreement by chance.

    ``items`` is the number of items with at least two labels. ``value`` is None if it is not defined: if there are no items, or
    if all labels are equal (the expected disagreement is then 0).
    """

    value: float | None
    items: int
    labels: int
    """The total number of labels that these items have."""

    def as_json(self) -> dict[str, Any]:
        """Return the agreement as a JSON object."""
        return asdict(self)


def cohen_kappa(
    a: Sequence[Hashable | None],
    b: Sequence[Hashable | None],
    weights: Weights | None = None,
    labels: Sequence[Hashable] | None = None,
) -> Agreement:
    """Return Cohen's kappa of two annotators (Cohen 1960; weighted: Cohen 1968). An item that one of them did not label is left out.

    With ``weights``, the order of the labels matters: the order in ``labels`` or, without ``labels``, the sorted order. Raises
    ``ValueError`` if the lengths differ, or a label is not in ``labels``.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} labels of A, but {len(b)} labels of B")
    pairs = [(left, right) for left, right in zip(a, b, strict=True) if left is not None and right is not None]
    place = _places([label for pair in pairs for label in pair], labels)
    table = np.zeros((len(place), len(place)))
    for left, right in pairs:
        table[place[left], place[right]] += 1
    distance = np.abs(np.subtract.outer(np.arange(len(place)), np.arange(len(place)))).astype(np.float64)
    cost = (distance > 0).astype(np.float64) if weights is None else distance if weights == "linear" else distance**2
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    value = 1 - ratio((table * cost).sum() * table.sum(), (expected * cost).sum())
    return Agreement(defined(float(value)), len(pairs), 2 * len(pairs))


def krippendorff_alpha(
    rows: Sequence[Sequence[Hashable | None]], level: Level = "nominal", labels: Sequence[Hashable] | None = None
) -> Agreement:
    """Return Krippendorff's alpha (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability").

    ``rows`` has the labels of each item, from any number of annotators; None is a missing label. Items with fewer than two
    labels are left out. At the ``level`` "ordinal", the order of the labels matters: the order in ``labels`` or, without
    ``labels``, the sorted order. At the level "interval", labels are numbers. Raises ``ValueError`` if a label is not in
    ``labels`` or, at the level "interval", is not a number.
    """
    units = [found for row in rows if len(found := [label for label in row if label is not None]) > 1]
    place = _places([label for unit in units for label in unit], labels)
    coincidences = np.zeros((len(place), len(place)))
    for unit in units:
        counts = np.bincount([place[label] for label in unit], minlength=len(place)).astype(np.float64)
        coincidences += (np.outer(counts, counts) - np.diag(counts)) / (len(unit) - 1)
    totals = coincidences.sum(axis=0)
    cost = _distances(list(place), totals, level)
    expected = (np.outer(totals, totals) * cost).sum()
    value = 1 - ratio((coincidences * cost).sum() * (totals.sum() - 1), expected)
    return Agreement(defined(float(value)), len(units), sum(map(len, units)))


def _places(found: Sequence[Hashable], labels: Sequence[Hashable] | None) -> dict[Hashable, int]:
    """Return the position of each label in ``labels`` or, without ``labels``, in the sorted order."""
    if labels is None:
        return {label: index for index, label in enumerate(sorted(set(found), key=label_order))}
    place = {label: index for index, label in enumerate(dict.fromkeys(labels))}
    unknown = next((label for label in found if label not in place), None)
    if unknown is not None:
        raise ValueError(f"unknown label {unknown!r}")
    return place


def _distances(labels: Sequence[Any], totals: Floats, level: Level) -> Floats:
    """Return the matrix of the squared distances between labels."""
    if level == "interval":
        if any(isinstance(label, bool) or not isinstance(label, (int, float)) for label in labels):
            raise ValueError("the interval level needs numbers")
        values = np.asarray(labels, dtype=np.float64)
        return np.asarray(np.subtract.outer(values, values) ** 2, dtype=np.float64)
    if level == "nominal":
        return 1.0 - np.eye(len(labels))
    middle = np.cumsum(totals) - totals / 2
    return np.asarray(np.subtract.outer(middle, middle) ** 2, dtype=np.float64)
