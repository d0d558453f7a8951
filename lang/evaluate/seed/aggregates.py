"""What an aggregate makes of the elements it was given. Their order never shows in the result, not even in its type."""

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
    """Return the greatest or the least of some numbers, or of some strings, as ``max`` and ``min`` of a list do."""
    return largest(meter, values) if operation == "max" else smallest(meter, values)
