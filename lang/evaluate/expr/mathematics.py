"""Functions of numbers: rounding, roots, logarithms, sums. Each is ``(meter, value, ...)`` and raises ``ExprError``."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from .arithmetic import finite, number
from .errors import ExprError
from .limits import Meter
from .values import NUMBERS, a, elements_of, kind, shown

__all__ = ["absolute", "clamped", "exponential", "logarithm", "logarithm_to", "rounded", "rounded_down", "rounded_up",
           "square_root", "total"]  # fmt: skip

_MOST_DIGITS = 400
"""More than any float has before or after its point."""


def absolute(meter: Meter, value: Any) -> Any:
    """Return ``abs(value)``."""
    return finite(meter, abs(number(value, "abs takes a number")))


def rounded(meter: Meter, value: Any, *digits: Any) -> Any:
    """Return ``round(value)``, an integer, or ``round(value, digits)``; a half goes to the even one."""
    value = number(value, "round takes a number")
    if not digits:
        return _whole(meter, round, value, "round")
    (places,) = digits
    if not isinstance(number(places, "round takes a number of digits"), int):
        raise ExprError("type", f"round takes a whole number of digits, not {shown(places)}")
    places = max(-_MOST_DIGITS, min(_MOST_DIGITS, places))  # with more digits, or fewer, the result is the same
    try:
        return finite(meter, round(value, places))
    except OverflowError:
        raise ExprError("overflow", f"the number is too large: round({shown(value)}, {places})") from None


def rounded_down(meter: Meter, value: Any) -> Any:
    """Return ``floor(value)``, an integer."""
    return _whole(meter, math.floor, number(value, "floor takes a number"), "floor")


def rounded_up(meter: Meter, value: Any) -> Any:
    """Return ``ceil(value)``, an integer."""
    return _whole(meter, math.ceil, number(value, "ceil takes a number"), "ceil")


def _whole(meter: Meter, function: Callable[[Any], Any], value: Any, name: str) -> Any:
    try:
        return finite(meter, function(value))
    except (OverflowError, ValueError):  # infinity and what is not a number have no integer
        raise ExprError("overflow", f"{name} takes a finite number, not {shown(value)}") from None


def clamped(meter: Meter, value: Any, low: Any, high: Any) -> Any:
    """Return ``value``, but at least ``low`` and at most ``high``. Raises ``ExprError`` where ``low`` is above ``high``."""
    for each in (value, low, high):
        number(each, "clamp takes numbers")
    if low > high:
        raise ExprError("value", f"clamp's low is above its high: {shown(low)} > {shown(high)}")
    return low if value < low else high if value > high else value


def exponential(meter: Meter, value: Any) -> float:
    """Return e to the power ``value``."""
    value = number(value, "exp takes a number")
    try:
        return float(finite(meter, math.exp(value)))
    except OverflowError:
        raise ExprError("overflow", f"the number is too large: exp({shown(value)})") from None


def square_root(meter: Meter, value: Any) -> float:
    """Return the square root."""
    if number(value, "sqrt takes a number") < 0:
        raise ExprError("value", f"can't take the square root of a negative number: sqrt({shown(value)})")
    try:
        return float(finite(meter, math.sqrt(value)))
    except OverflowError:
        raise ExprError("overflow", f"the number is too large: sqrt({shown(value)})") from None


def logarithm_to(name: str, function: Callable[[Any], float]) -> Callable[[Meter, Any], float]:
    """Return the function ``name``, a logarithm to a fixed base."""

    def log(meter: Meter, value: Any) -> float:
        return _logarithm(name, function, number(value, f"{name} takes a number"))

    return log


def logarithm(meter: Meter, value: Any, *base: Any) -> float:
    """Return the natural logarithm, or that to ``base``."""
    natural = _logarithm("log", math.log, number(value, "log takes a number"))
    if not base:
        return natural
    if number(base[0], "log takes a number as its base") == 1:
        raise ExprError("value", "1 is no base of a logarithm")
    return natural / _logarithm("log", math.log, base[0])


def _logarithm(name: str, function: Callable[[Any], float], value: Any) -> float:
    if not value > 0 or value == math.inf:
        raise ExprError(
            "value", f"there is no logarithm of {shown(value)}: {name}({shown(value)})",
            hint="it takes a number above 0; log(x + 1) takes 0 too",
        )  # fmt: skip
    return function(value)


def total(meter: Meter, values: Any, *start: Any) -> Any:
    """Return the sum of numbers: exact for integers, exactly rounded where one is a float, so the order is all the same."""
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
            hint = "leave nulls out: `... for x in xs if x is not None`" if value is None else ""
            raise ExprError("type", f"sum takes numbers, not {a(value)}: {shown(value)}", hint=hint)


def _exact(values: Sequence[Any]) -> float:
    """Return the sum where it overflows on the way, for some orders of the values. Raises ``ExprError`` where it is too large."""
    from fractions import Fraction  # late: this happens next to never

    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        raise ExprError("overflow", "the sum has an infinite number in it")
    unit = 1 << 1074  # all floats are multiples of 1 / unit
    parts = (value.as_integer_ratio() for value in values)
    try:
        return float(Fraction(sum(over * (unit // under) for over, under in parts), unit))
    except OverflowError:
        raise ExprError("overflow", "the sum is too large") from None
