"""A condition over columns: which of many rows satisfy it, at once. As in the generated code, NOT asks for what is false."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ....lang.conditions import And, Comparison, Condition, Field, Not, NullTest
from ....lang.evaluate.conditions import Bound
from ....lang.evaluate.conditions.interpreter import leaf_test
from .columns import Column
from .leaves import Array, Mask

__all__ = ["mask_of"]

Columns = Callable[[Field], Column | None]


def mask_of(columns: Columns, condition: Condition, wanted: bool, at: Array | None, rows: int) -> Mask | None:
    """Return for each row at ``at`` (None: all ``rows``) whether ``condition`` is ``wanted``; None where a column can't say."""
    if isinstance(condition, Not):
        return mask_of(columns, condition.operand, not wanted, at, rows)
    if isinstance(condition, Comparison | NullTest):
        left: Any = condition.left
        if isinstance(left, Bound):
            return np.full(rows if at is None else len(at), leaf_test(condition)(left.value) is wanted, np.bool_)
        column = columns(left)
        return None if column is None else column.mask(condition, wanted, at)
    # One by one into the first: as many masks as operands would not fit into memory.
    joined: Mask | None = None
    join = np.bitwise_and if isinstance(condition, And) is wanted else np.bitwise_or
    for operand in condition.operands:
        mask = mask_of(columns, operand, wanted, at, rows)
        if mask is None:
            return None
        joined = mask if joined is None else join(joined, mask, out=joined)
    return joined
