"""Operators on numbers, and ``+`` and ``*`` on strings and lists.

Each operator is a function ``(meter, left, right)`` that raises ``ExprError``. Every result is finite and every integer is within the bit
limit. An overflow is an error at the place where it occurs, because otherwise ``max`` or a comparison could hide it.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ...trees.expr import Operator
from .values import NUMBERS, ExprError, Kind, Meter, a, elements_of, kind, short_json

Binary: TypeAlias = Callable[[Meter, Any, Any], Any]
_SMALL = 1 << 63


def finite(meter: Meter, value: Any) -> Any:
    """Return ``value``, a computed number. Raises ``ExprError`` if the number is too large, infinite, NaN or complex."""
    if value.__class__ is int:
        if not -_SMALL <= value < _SMALL and value.bit_length() > meter.limits.bits:
            raise ExprError("overflow", f"an integer has more than {meter.limits.bits:,} bits")
        return value
    if value.__class__ is complex:
        raise ExprError("value", "the result is not a real number")
    if not -_INFINITE < value < _INFINITE:
        raise ExprError("overflow", "the number is too large" if value == value else "the result is not a number")
    return value


_INFINITE = float("inf")


def number(value: Any, what: str) -> Any:
    """Return ``value`` if it is a number, else raise ``ExprError``. The message begins with ``what``, as in "round takes a number"."""
    if value.__class__ in NUMBERS or kind(value) == "number":
        return value
    raise ExprError(
        "type", f"{what}, not {a(value)}: {short_json(value)}" if value is not None else f"{what}, not null"
    )


def add(meter: Meter, left: Any, right: Any) -> Any:
    """Return ``left + right`` for numbers, strings or lists."""
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
    """Return ``left * right``. The operands are two numbers, or a string or list and the number of times to repeat it."""
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
    """Return ``left // right``: the quotient, rounded down."""
    return _number(meter, "//", operator.floordiv, left, right)


def remainder(meter: Meter, left: Any, right: Any) -> Any:
    """Return ``left % right``, with the sign of ``right``."""
    return _number(meter, "%", operator.mod, left, right)


def power(meter: Meter, left: Any, right: Any) -> Any:
    """Return ``left ** right``. The result is an integer if both operands are integers and ``right`` is not negative."""
    whole = isinstance(left, int) and isinstance(right, int) and kind(left) == kind(right) == "number"
    # The size is checked before the power is computed: a number of n + 1 bits to the power k has more than n * k bits.
    if whole and right > 0 and (abs(left).bit_length() - 1) * right > meter.limits.bits:
        raise ExprError(
            "overflow",
            f"{short_json(left)} ** {short_json(right)} has more than {meter.limits.bits:,} bits",
            hint="write the base as a float, such as 2.0",
        )
    return _number(meter, "**", operator.pow, left, right)


def negative(meter: Meter, value: Any) -> Any:
    """Return ``-value``."""
    if value.__class__ in NUMBERS or kind(value) == "number":
        return finite(meter, -value)
    raise ExprError("type", f"can't negate {a(value)}" + ("" if value is None else f": -{short_json(value)}"))


OPERATORS: Mapping[Operator, Binary] = {
    "+": add, "-": subtract, "*": multiply, "/": divide, "//": floor_divide, "%": remainder,
}  # fmt: skip
"""The operators of ``Arithmetic``; the operator ``**`` is the function ``power``."""

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
                "division", f"can't raise zero to a negative power: {short_json(left)} ** {short_json(right)}"
            ) from None
        raise ExprError("division", f"can't divide {short_json(left)} by zero") from None
    except OverflowError:
        raise _failed("overflow", "the number is too large", sign, left, right) from None
    except ExprError as error:
        raise _failed(error.kind, error.message, sign, left, right) from None


def _wrong(sign: str, left: Any, right: Any, hint: str) -> ExprError:
    operands = f"{short_json(left)} {sign} {short_json(right)}"
    if left is None or right is None:
        return ExprError("type", f"null in arithmetic: {operands}")
    return ExprError("type", f"can't {_WORDS[sign].format(a(left), a(right))}: {operands}", hint=hint)


def _failed(kind: Kind, message: str, sign: str, left: Any, right: Any) -> ExprError:
    return ExprError(kind, f"{message}: {short_json(left)} {sign} {short_json(right)}")


# Numeric functions: rounding, roots, logarithms, sums. Each has the form ``(meter, value, ...)`` and raises ``ExprError``.

_MOST_DIGITS = 400
"""A number of digits that is larger than that of any float, before or after the decimal point."""


def absolute(meter: Meter, value: Any) -> Any:
    """Return ``abs(value)``."""
    return finite(meter, abs(number(value, "abs takes a number")))


def rounded(meter: Meter, value: Any, *digits: Any) -> Any:
    """Return ``round(value)``, which is an integer, or ``round(value, digits)``. Halves are rounded to even."""
    value = number(value, "round takes a number")
    if not digits:
        return _as_integer(meter, round, value, "round")
    (places,) = digits
    if not isinstance(number(places, "round takes a number of digits"), int):
        raise ExprError("type", f"round takes a whole number of digits, not {short_json(places)}")
    places = max(-_MOST_DIGITS, min(_MOST_DIGITS, places))  # beyond these limits the result does not change
    try:
        return finite(meter, round(value, places))
    except OverflowError:
        raise ExprError("overflow", f"the number is too large: round({short_json(value)}, {places})") from None


def rounded_down(meter: Meter, value: Any) -> Any:
    """Return ``floor(value)``, an integer."""
    return _as_integer(meter, math.floor, number(value, "floor takes a number"), "floor")


def rounded_up(meter: Meter, value: Any) -> Any:
    """Return ``ceil(value)``, an integer."""
    return _as_integer(meter, math.ceil, number(value, "ceil takes a number"), "ceil")


def _as_integer(meter: Meter, function: Callable[[Any], Any], value: Any, name: str) -> Any:
    try:
        return finite(meter, function(value))
    except (OverflowError, ValueError):  # infinity and NaN can't become an integer
        raise ExprError("overflow", f"{name} takes a finite number, not {short_json(value)}") from None


def clamped(meter: Meter, value: Any, low: Any, high: Any) -> Any:
    """Return ``value``, limited to the range from ``low`` to ``high``. Raises ``ExprError`` if ``low`` is above ``high``."""
    for each in (value, low, high):
        number(each, "clamp takes numbers")
    if low > high:
        raise ExprError("value", f"clamp's low is above its high: {short_json(low)} > {short_json(high)}")
    return low if value < low else high if value > high else value


def exponential(meter: Meter, value: Any) -> float:
    """Return e to the power of ``value``."""
    value = number(value, "exp takes a number")
    try:
        return float(finite(meter, math.exp(value)))
    except OverflowError:
        raise ExprError("overflow", f"the number is too large: exp({short_json(value)})") from None


def square_root(meter: Meter, value: Any) -> float:
    """Return the square root of ``value``."""
    if number(value, "sqrt takes a number") < 0:
        raise ExprError("value", f"can't take the square root of a negative number: sqrt({short_json(value)})")
    try:
        return float(finite(meter, math.sqrt(value)))
    except OverflowError:
        raise ExprError("overflow", f"the number is too large: sqrt({short_json(value)})") from None


def logarithm_to(name: str, function: Callable[[Any], float]) -> Callable[[Meter, Any], float]:
    """Return the expression function ``name``, a logarithm with a fixed base."""

    def log(meter: Meter, value: Any) -> float:
        return _logarithm(name, function, number(value, f"{name} takes a number"))

    return log


def logarithm(meter: Meter, value: Any, *base: Any) -> float:
    """Return the natural logarithm of ``value``, or its logarithm to ``base``."""
    natural = _logarithm("log", math.log, number(value, "log takes a number"))
    if not base:
        return natural
    if number(base[0], "log takes a number as its base") == 1:
        raise ExprError("value", "the base of a logarithm can't be 1")
    return natural / _logarithm("log", math.log, base[0])


def _logarithm(name: str, function: Callable[[Any], float], value: Any) -> float:
    if not value > 0 or value == math.inf:
        raise ExprError(
            "value", f"no logarithm exists for {short_json(value)}: {name}({short_json(value)})",
            hint="the argument must be above 0; log(x + 1) also accepts 0",
        )  # fmt: skip
    return function(value)


def total(meter: Meter, values: Any, *start: Any) -> Any:
    """Return the sum of numbers, exact for integers and correctly rounded for floats.

    The sum does not depend on the order of the numbers.
    """
    taken = elements_of(meter, values, "sum")
    if start:
        taken = [*taken, number(start[0], "sum starts from a number")]
    classes = set(map(type, taken))
    if not classes <= NUMBERS:
        _check_numbers(taken)
        classes = {float if isinstance(each, float) else int for each in taken}
    if float not in classes:
        return finite(meter, sum(taken))
    try:
        return finite(meter, math.fsum(taken))
    except (OverflowError, ValueError):
        return finite(meter, _exact(taken))


def _check_numbers(values: Sequence[Any]) -> None:
    for value in values:
        found = kind(value)
        if found == "boolean":
            raise ExprError("type", "sum takes numbers, not a boolean", hint="count with sum(1 for x in xs if ...)")
        if found != "number":
            hint = "exclude nulls: `... for x in xs if x is not None`" if value is None else ""
            raise ExprError("type", f"sum takes numbers, not {a(value)}: {short_json(value)}", hint=hint)


def _exact(values: Sequence[Any]) -> float:
    """Return the sum of values whose partial sums may overflow. Raises ``ExprError`` if the sum itself is too large."""
    from fractions import Fraction  # imported on demand, because it is almost never needed

    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        raise ExprError("overflow", "the sum contains an infinite number")
    unit = 1 << 1074  # all floats are multiples of 1 / unit
    parts = (value.as_integer_ratio() for value in values)
    try:
        return float(Fraction(sum(over * (unit // under) for over, under in parts), unit))
    except OverflowError:
        raise ExprError("overflow", "the sum is too large") from None
