"""What comes before what: ``< <= > >=``, ``sorted``, ``max`` and ``min``. Numbers with numbers, strings with strings.

The order in which the elements of a list stand does not show: of equal ones 1 comes before 1.0, and -0.0 before 0.0.

Each comparison is ``(meter, left, right)``. A null at either side makes it false, of ``==`` and ``!=`` too; a test against the
literal null is ``is_null``'s business (see ``interpreter``).
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ...expr import Test
from .equality import contains, equal
from .errors import ExprError
from .limits import Meter
from .values import NUMBERS, a, elements_of, kind, shown, truth

__all__ = ["TESTS", "extreme", "extreme_of", "largest", "ordered", "smallest"]

Holds: TypeAlias = Callable[[Meter, Any, Any], bool]


def _ordering(sign: Test, holds: Callable[[Any, Any], bool]) -> Holds:
    def compare(meter: Meter, left: Any, right: Any) -> bool:
        if left.__class__ in NUMBERS and right.__class__ in NUMBERS:
            return holds(left, right)
        if left is None or right is None:
            return False
        first, second = kind(left), kind(right)
        if first == second == "text":
            meter.characters(min(len(left), len(right)))
            return holds(left, right)
        if first == second == "number":
            return holds(left, right)
        raise _incomparable(left, right, sign)

    return compare


def _equal(meter: Meter, left: Any, right: Any) -> bool:
    return left is not None and right is not None and equal(meter, left, right)


def _unequal(meter: Meter, left: Any, right: Any) -> bool:
    return left is not None and right is not None and not equal(meter, left, right)


def _in(meter: Meter, left: Any, right: Any) -> bool:
    return left is not None and right is not None and contains(meter, right, left)


def _not_in(meter: Meter, left: Any, right: Any) -> bool:
    return left is not None and right is not None and not contains(meter, right, left)


TESTS: Mapping[Test, Holds] = {
    "==": _equal, "!=": _unequal, "in": _in, "not in": _not_in,
    "<": _ordering("<", operator.lt), "<=": _ordering("<=", operator.le),
    ">": _ordering(">", operator.gt), ">=": _ordering(">=", operator.ge),
}  # fmt: skip
"""All comparisons but ``is`` and ``is not``."""


def _incomparable(left: Any, right: Any, sign: str) -> ExprError:
    operands = f"{shown(left)} {sign} {shown(right)}"
    if kind(left) == kind(right):
        return ExprError("type", f"can't order {_PLURALS[kind(left)]}: {operands}")
    hint = (
        "int(...) or float(...) reads a number from a text" if {kind(left), kind(right)} == {"text", "number"} else ""
    )
    return ExprError("type", f"can't compare {a(left)} with {a(right)}: {operands}", hint=hint)


_PLURALS = {
    "boolean": "booleans", "list": "lists", "object": "objects", "set": "sets", "generator": "generators",
}  # fmt: skip


def _check_order(meter: Meter, values: Sequence[Any], function: str) -> None:
    """Charge for the characters of ``values``; raise ``ExprError`` where they are not all numbers or all strings."""
    classes = set(map(type, values))
    if classes == {str}:
        meter.characters(sum(map(len, values)))
        return
    if classes <= NUMBERS:
        if float in classes and any(value != value for value in values):
            raise ExprError("value", f"{function} can't place what is not a number")
        return
    first = values[0]
    for value in values:
        if value is None:
            raise ExprError(
                "type", f"{function} takes numbers or texts, not null",
                hint="leave nulls out: `... for x in xs if x is not None`",
            )  # fmt: skip
        found = kind(value)
        if found not in ("number", "text"):
            raise ExprError("type", f"{function} takes numbers or texts, not {a(value)}: {shown(value)}")
        if found != kind(first):
            raise ExprError(
                "type", f"{function} can't compare {a(first)} with {a(value)}: {shown(first)}, {shown(value)}"
            )
    if kind(first) == "text":
        meter.characters(sum(map(len, values)))


def ordered(meter: Meter, values: Any, *, reverse: Any = False) -> list[Any]:
    """Return the elements in order; ``reverse``: from the greatest."""
    taken = list(values) if kind(values) == "text" else elements_of(meter, values, "sorted")
    meter.make_list(len(taken))
    rounds = len(taken).bit_length()
    meter.step(len(taken) * rounds >> 5)
    _check_order(meter, taken, "sorted")
    if taken and kind(taken[0]) == "text":
        meter.step((sum(map(len, taken)) >> 8) * rounds)
    if any(value.__class__ is not str for value in taken[:1]) and _ties(taken):
        return sorted(taken, key=_placed, reverse=truth(reverse))
    return sorted(taken, reverse=truth(reverse))


def _ties(values: Sequence[Any]) -> bool:
    """Say whether some of these numbers may be equal and not the same: 1 and 1.0, 0.0 and -0.0."""
    classes = set(map(type, values))
    return not classes <= NUMBERS or (float in classes and (int in classes or 0.0 in values))


def _placed(value: int | float) -> tuple[int | float, bool, float]:
    return (value, True, math.copysign(1, value)) if isinstance(value, float) else (value, False, 0.0)


def extreme_of(pick: Callable[..., Any], best: Any, values: Sequence[Any]) -> Any:
    """Return ``best``, which ``max`` or ``min`` picked from ``values``, or the one to take of those that equal it.

    An integer is taken before a float; of zeros 0.0 is greater than -0.0.
    """
    if not isinstance(best, float) or (best and not _ties(values)):
        return best
    equals = [value for value in values if value == best]
    whole = next((value for value in equals if isinstance(value, int)), None)
    return pick(equals, key=_placed) if whole is None else whole


_MISSING = object()


def extreme(function: str) -> Callable[..., Any]:
    """Return ``max`` or ``min``: of the elements of one argument (see ``extreme_of``), or of several arguments, the first of equals."""
    pick = max if function == "max" else min

    def find(meter: Meter, *values: Any, default: Any = _MISSING) -> Any:
        if len(values) == 1:
            if kind(values[0]) == "number":
                raise ExprError(
                    "type", f"{function} takes a list, or at least two values: {function}({shown(values[0])})"
                )
            taken = elements_of(meter, values[0], function)
        elif default is not _MISSING:
            raise ExprError("type", f"{function} takes a default only with one list")
        else:
            taken = values
        if not taken:
            if default is _MISSING:
                raise ExprError(
                    "value", f"{function} of nothing", hint=f"say what it is then: {function}(xs, default=0)"
                )
            return default
        _check_order(meter, taken, function)
        return extreme_of(pick, pick(taken), taken) if len(values) == 1 else pick(taken)

    return find


largest, smallest = extreme("max"), extreme("min")
