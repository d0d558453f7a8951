"""What an aggregate makes of the elements it was given. Their order never shows in the result, not even in its type."""

import math
from collections.abc import Sequence
from typing import Any, Literal

from ...seed import Aggregate
from ..expr.limits import Meter
from ..expr.mathematics import total
from ..expr.ordering import largest, smallest

__all__ = ["aggregate", "extreme"]


def aggregate(step: Aggregate, elements: Sequence[Any], meter: Meter) -> Any:
    """Return what ``step`` makes of its elements, of which none is null. Raises ``ExprError`` for those of a wrong type."""
    if step.operation == "count":
        return len(elements)
    if step.operation == "sum":
        return total(meter, elements)
    return extreme(step.operation, elements, meter) if elements else step.default


def extreme(operation: Literal["max", "min"], values: Sequence[Any], meter: Meter) -> Any:
    """Return the greatest or the least of some numbers, or of some strings.

    Of equal ones an integer is taken before a float; of zeros 0.0 is greater than -0.0.
    """
    best = largest(meter, values) if operation == "max" else smallest(meter, values)
    if isinstance(best, str):
        return best
    equals = [value for value in values if value == best]
    whole = next((value for value in equals if isinstance(value, int)), None)
    if whole is not None or best:
        return best if whole is None else whole
    return max(equals, key=_sign) if operation == "max" else min(equals, key=_sign)


def _sign(zero: float) -> float:
    return math.copysign(1, zero)
