"""Arithmetic over columns of numbers in arrays. If the results would be inexact, they are computed row by row instead."""

from collections.abc import Callable, Mapping

import numpy as np
from attrs import define
from numpy.typing import NDArray

from ....adapters.columns import ColumnArray, NumberArray
from ....lang.evaluate.conditions.values import check
from ....lang.trees import walk
from ....lang.trees.conditions import Binary, Constant, Field, Negative, Value

_STEP = 1 << 18
"""Number of rows that are computed together."""
_EXACT = float(1 << 53)
"""Floats represent integers with a magnitude below this number exactly."""


class _Inexact(Exception):
    """Raised if a value can't be computed exactly with arrays."""


@define
class _Computation:
    arrays: Mapping[tuple[str, ...], NumberArray]
    divided: NDArray[np.bool_] | None = None  # rows with a division by zero

    def of(self, value: Value) -> tuple[NDArray[np.float64] | float, bool]:
        """Return the numbers (NaN for null), and whether they are integers. Raises ``_Inexact``."""
        match value:
            case Constant(value=int() | float() as number) if not isinstance(number, bool) and abs(number) < _EXACT:
                return float(number), isinstance(number, int)
            case Field():
                array = self.arrays[value.path]
                return array.values, array.whole
            case Negative():
                inner, whole = self.of(value.operand)
                return -inner, whole
            case Binary(sign="+" | "-" | "*" | "/"):
                return self.combined(value)
        raise _Inexact

    def combined(self, value: Binary) -> tuple[NDArray[np.float64] | float, bool]:
        """Return the results of an operator, and whether they are integers. Raises ``_Inexact``."""
        (left, one), (right, other) = self.of(value.left), self.of(value.right)
        whole = one and other and value.sign != "/"
        with np.errstate(all="ignore"):
            if value.sign == "/":
                zero = np.equal(right, 0)
                divided = zero & ~np.isnan(left)
                self.divided = divided if self.divided is None else self.divided | divided
                made = np.where(zero, np.nan, np.divide(left, right))
            else:
                made = {"+": np.add, "-": np.subtract, "*": np.multiply}[value.sign](left, right)
            largest = np.fmax.reduce(np.atleast_1d(np.abs(made)), initial=0.0)  # ignores NaN
        if largest >= _EXACT if whole else largest == np.inf:
            raise _Inexact  # row by row, to raise the error or to compute with long integers
        return made, whole


def computed_array(
    value: Binary | Negative, arrays: Callable[[Field], ColumnArray | None]
) -> tuple[NumberArray, dict[str, int]] | None:
    """Return the results of arithmetic over columns of numbers, and counts of nulls by reason. Return None if arrays would be inexact."""
    found: dict[tuple[str, ...], NumberArray] = {}
    for at in walk(value):
        if isinstance(at, Field) and at.path not in found:
            array = arrays(at) if at.quantifier is None else None
            if not isinstance(array, NumberArray):
                return None
            found[at.path] = array
    if not found:
        return None
    size = len(next(iter(found.values())))
    made, whole = np.empty(size), True
    nulls = {"missing": 0, "division by zero": 0}
    for start in range(0, size, _STEP):  # in steps, so that intermediate results take little memory
        check()
        some = slice(start, start + _STEP)
        run = _Computation({path: NumberArray(array.values[some], array.whole) for path, array in found.items()})
        try:
            made[some], whole = run.of(value)
        except _Inexact:
            return None
        null = np.isnan(made[some])
        divided = 0 if run.divided is None else int((null & run.divided).sum())
        nulls["missing"] += int(null.sum()) - divided
        nulls["division by zero"] += divided
    return NumberArray(made, whole), {reason: count for reason, count in nulls.items() if count}
