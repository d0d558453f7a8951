"""The operators on numbers, and ``+`` and ``*`` on strings and lists. Each is ``(meter, left, right)`` and raises ``ExprError``.

Every result is finite and every integer within the limit of bits: an overflow is an error where it happens, so that no
``max`` or comparison hides it.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ...expr import Operator
from .errors import ExprError, Kind
from .limits import Meter
from .values import NUMBERS, a, kind, shown

__all__ = ["OPERATORS", "add", "divide", "finite", "floor_divide", "multiply", "negative", "number", "power", "remainder",
           "subtract"]  # fmt: skip

Binary: TypeAlias = Callable[[Meter, Any, Any], Any]
_SMALL = 1 << 63


def finite(meter: Meter, value: Any) -> Any:
    """Return a number that was computed. Raises ``ExprError`` where it is too large, infinite, not a number or complex."""
    if value.__class__ is int:
        if not -_SMALL <= value < _SMALL and value.bit_length() > meter.limits.bits:
            raise ExprError("overflow", f"an integer has more than {meter.limits.bits:,} bits")
        return value
    if value.__class__ is complex:
        raise ExprError("value", "the result is no real number")
    if not -_INFINITE < value < _INFINITE:
        raise ExprError("overflow", "the number is too large" if value == value else "the result is not a number")
    return value


_INFINITE = float("inf")


def number(value: Any, what: str) -> Any:
    """Return ``value`` if it is a number. Raises ``ExprError``, where ``what`` is who asked: "round takes a number"."""
    if value.__class__ in NUMBERS or kind(value) == "number":
        return value
    raise ExprError("type", f"{what}, not {a(value)}: {shown(value)}" if value is not None else f"{what}, not null")


def add(meter: Meter, left: Any, right: Any) -> Any:
    """Return ``left + right``: of numbers, strings or lists."""
    if left.__class__ in NUMBERS and right.__class__ in NUMBERS:
        return _number(meter, "+", operator.add, left, right)
    first, second = kind(left), kind(right)
    if first == second == "text":
        meter.make_text(len(left) + len(right), wide=not (left.isascii() and right.isascii()))
        return left + right
    if first == second == "list":
        meter.make_list(len(left) + len(right))
        return [*left, *right]
    hint = "write str(...) around the number" if {first, second} == {"text", "number"} else ""
    return _number(meter, "+", operator.add, left, right, hint=hint)


def subtract(meter: Meter, left: Any, right: Any) -> Any:
    """Return ``left - right``."""
    return _number(meter, "-", operator.sub, left, right)


def multiply(meter: Meter, left: Any, right: Any) -> Any:
    """Return ``left * right``: of numbers, or a string or a list so many times."""
    if left.__class__ in NUMBERS and right.__class__ in NUMBERS:
        return _number(meter, "*", operator.mul, left, right)
    for value, times in ((left, right), (right, left)):
        found = kind(value)
        if found in ("text", "list") and kind(times) == "number" and isinstance(times, int):
            times = max(0, times)
            if found == "text":
                meter.make_text(len(value) * times, wide=not value.isascii())
            else:
                meter.make_list(len(value) * times)
                value = list(value)
            return value * times if len(value) else value
    return _number(meter, "*", operator.mul, left, right)


def divide(meter: Meter, left: Any, right: Any) -> Any:
    """Return ``left / right``, a float."""
    return _number(meter, "/", operator.truediv, left, right)


def floor_divide(meter: Meter, left: Any, right: Any) -> Any:
    """Return ``left // right``: the greatest whole number that is not above the quotient."""
    return _number(meter, "//", operator.floordiv, left, right)


def remainder(meter: Meter, left: Any, right: Any) -> Any:
    """Return ``left % right``, with the sign of ``right``."""
    return _number(meter, "%", operator.mod, left, right)


def power(meter: Meter, left: Any, right: Any) -> Any:
    """Return ``left ** right``; an integer where both are integers and ``right`` is not negative."""
    whole = isinstance(left, int) and isinstance(right, int) and kind(left) == kind(right) == "number"
    # Known before it is computed: a number of n + 1 bits to the power k has more than n * k bits.
    if whole and right > 0 and (abs(left).bit_length() - 1) * right > meter.limits.bits:
        raise ExprError(
            "overflow",
            f"{shown(left)} ** {shown(right)} has more than {meter.limits.bits:,} bits",
            hint="write the base as a float, such as 2.0",
        )
    return _number(meter, "**", operator.pow, left, right)


def negative(meter: Meter, value: Any) -> Any:
    """Return ``-value``."""
    if value.__class__ in NUMBERS or kind(value) == "number":
        return finite(meter, -value)
    raise ExprError("type", f"can't negate {a(value)}" + ("" if value is None else f": -{shown(value)}"))


OPERATORS: Mapping[Operator, Binary] = {
    "+": add, "-": subtract, "*": multiply, "/": divide, "//": floor_divide, "%": remainder,
}  # fmt: skip
"""What may stand in ``Arithmetic``; ``**`` is ``power``."""

_WORDS = {
    "+": "add {0} and {1}", "-": "subtract {1} from {0}", "*": "multiply {0} and {1}", "/": "divide {0} by {1}",
    "//": "divide {0} by {1}", "%": "divide {0} by {1}", "**": "raise {0} to the power of {1}",
}  # fmt: skip


def _number(
    meter: Meter, sign: str, compute: Callable[[Any, Any], Any], left: Any, right: Any, *, hint: str = ""
) -> Any:
    if not (left.__class__ in NUMBERS or kind(left) == "number") or not (
        right.__class__ in NUMBERS or kind(right) == "number"
    ):
        raise _wrong(sign, left, right, hint)
    try:
        return finite(meter, compute(left, right))
    except ZeroDivisionError:
        if sign == "**":
            raise ExprError(
                "division", f"can't raise zero to a negative power: {shown(left)} ** {shown(right)}"
            ) from None
        raise ExprError("division", f"can't divide {shown(left)} by zero") from None
    except OverflowError:
        raise _failed("overflow", "the number is too large", sign, left, right) from None
    except ExprError as error:
        raise _failed(error.kind, error.message, sign, left, right) from None


def _wrong(sign: str, left: Any, right: Any, hint: str) -> ExprError:
    operands = f"{shown(left)} {sign} {shown(right)}"
    if left is None or right is None:
        return ExprError("type", f"null in arithmetic: {operands}")
    return ExprError("type", f"can't {_WORDS[sign].format(a(left), a(right))}: {operands}", hint=hint)


def _failed(kind: Kind, message: str, sign: str, left: Any, right: Any) -> ExprError:
    return ExprError(kind, f"{message}: {shown(left)} {sign} {shown(right)}")
