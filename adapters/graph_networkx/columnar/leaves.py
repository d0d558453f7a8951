"""What columns ask of a comparison or a test for null, and the types they share."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....lang.conditions import Comparison, NullTest, Variable
from ....lang.evaluate.conditions.comparing import constant_of
from ..rows.jsonable import plain

__all__ = ["Array", "Leaf", "Mask", "holds_null", "is_number", "right_of"]

Leaf: TypeAlias = Comparison | NullTest
Mask: TypeAlias = NDArray[np.bool_]
Array: TypeAlias = NDArray[Any]


def right_of(leaf: Comparison) -> Any:
    """Return the value at the right of a comparison; a list as a tuple."""
    assert not isinstance(leaf.right, Variable)  # noqa: S101  # conditions come bound
    return constant_of(leaf.right)


def holds_null(right: Any) -> bool:
    """Say whether ``right`` is a list with a null in it."""
    return isinstance(right, tuple | list) and any(plain(value) is None for value in right)


def is_number(value: Any) -> bool:
    """Say whether ``value`` is a number (a boolean is none)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value
