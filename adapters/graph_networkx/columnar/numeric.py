"""A column of numbers: the numbers themselves, null as NaN, and their order for ranges that few rows satisfy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define
from numpy.typing import NDArray

from ....lang.conditions import Comparison, NullTest, Operator
from ....lang.evaluate.conditions.interpreter import leaf_test
from ..rows.jsonable import plain
from .leaves import Array, Leaf, Mask, holds_null, is_number, right_of

__all__ = ["Numbers", "numbers_of"]

_EXACT = 2**53 - 1
"""Up to here a float is one integer and no other: 2**53 as a float may have been 2**53 + 1."""


@define(eq=False)
class Numbers:
    """Numbers and nulls. No integer is so large that a float would not be it."""

    values: NDArray[np.float64]
    _sorted: tuple[Array, NDArray[np.float64]] | None = None

    def mask(self, leaf: Leaf, wanted: bool, at: Array | None) -> Mask | None:
        """See ``Column``."""
        values = self.values if at is None else self.values[at]
        if isinstance(leaf, NullTest):
            null = np.isnan(values)
            return null if leaf.negated is not wanted else ~null
        right, operator = right_of(leaf), leaf.operator
        if is_number(right):
            return _number_mask(values, operator, right, wanted) if not _inexact(right) else None
        if operator in ("IN", "NOT IN") and isinstance(right, tuple | list):
            return self._members(values, leaf, right, wanted)
        # Every number gives the same answer to a value of another type.
        answer = leaf_test(leaf)(0.5)
        return ~np.isnan(values) if answer is wanted else np.zeros(len(values), np.bool_)

    def _members(self, values: Array, leaf: Comparison, right: Sequence[Any], wanted: bool) -> Mask | None:
        if not right:
            return np.full(len(values), (leaf.operator == "NOT IN") is wanted)
        numbers = [value for value in right if is_number(value)]
        if any(map(_inexact, numbers)):
            return None
        inside: Mask = np.isin(values, np.array(numbers, np.float64))
        if wanted is (leaf.operator == "IN"):
            return inside
        # Not a member only where no null might be it.
        return np.zeros(len(values), np.bool_) if holds_null(right) else ~inside & ~np.isnan(values)

    def _order(self) -> tuple[Array, NDArray[np.float64]]:
        if self._sorted is None:
            order = np.argsort(self.values, kind="stable").astype(np.int32)
            self._sorted = (order, self.values[order])
        return self._sorted

    def _slices(self, leaf: Leaf) -> list[tuple[int, int]] | None:
        """Return where in the sorted values the rows are for which ``leaf`` is true."""
        if isinstance(leaf, NullTest):
            return None
        right, operator = right_of(leaf), leaf.operator
        wanted = [right]
        if operator == "IN" and isinstance(right, tuple | list):
            wanted = sorted({value for value in right if is_number(value)})
        elif operator not in ("=", "<", "<=", ">", ">=") or not is_number(right):
            return None
        if any(map(_inexact, wanted)):
            return None
        ordered = self._order()[1]
        first, last = (
            np.searchsorted(ordered, wanted, "left").tolist(),
            np.searchsorted(ordered, wanted, "right").tolist(),
        )
        if operator in ("=", "IN"):
            return list(zip(first, last, strict=True))
        if operator in ("<", "<="):
            return [(0, first[0] if operator == "<" else last[0])]
        known = int(np.searchsorted(ordered, np.nan, "left"))
        return [(last[0] if operator == ">" else first[0], known)]

    def count(self, leaf: Leaf) -> int | None:
        """See ``Column``."""
        slices = self._slices(leaf)
        return None if slices is None else sum(last - first for first, last in slices)

    def positions(self, leaf: Leaf) -> Array:
        """See ``Column``."""
        order = self._order()[0]
        slices = self._slices(leaf) or []
        return np.sort(np.concatenate([np.empty(0, np.int32), *(order[first:last] for first, last in slices)]))

    def ranks(self, at: Array) -> NDArray[np.float64]:
        """See ``Column``."""
        return self.values[at]

    def agrees(self, at: int, value: Any) -> bool:
        """See ``Column``."""
        live, kept = plain(value), float(self.values[at])
        return kept != kept if live is None else is_number(live) and live == kept


def numbers_of(raw: Sequence[Any], integers: bool) -> NDArray[np.float64] | None:
    """Return ``raw`` as floats, None as NaN; None where an integer is too large for one. ``integers``: there are some."""
    try:
        values = np.array(raw, np.float64)  # None becomes NaN
    except OverflowError:
        return None
    with np.errstate(invalid="ignore"):
        large = integers and bool((np.abs(values) > _EXACT).any())
    return None if large else values


def _inexact(number: float) -> bool:
    """Say whether ``number`` is an integer that no float may be."""
    return isinstance(number, int) and abs(number) > _EXACT


def _number_mask(values: Array, operator: Operator, right: float, wanted: bool) -> Any:
    """Compare with a number. No comparison is true or false of NaN, which is null."""
    match operator, wanted:
        case ("=", True) | ("!=", False):
            return values == right
        case ("!=", True) | ("=", False):
            return (values < right) | (values > right)
        case ("<", True) | (">=", False):
            return values < right
        case ("<=", True) | (">", False):
            return values <= right
        case (">", True) | ("<=", False):
            return values > right
        case (">=", True) | ("<", False):
            return values >= right
    return np.zeros(len(values), np.bool_)  # the other operators are unknown of a number
