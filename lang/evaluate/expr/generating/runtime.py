"""What generated code calls: guards, and functions over lists. Each raises ``Fallback`` where the interpreter must decide."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from ..equality import mapping_key
from ..limits import Meter
from ..results import checked_result
from ..values import Distinct
from .kinds import Fallback, is_number, is_number_or_null, is_result, is_text_or_null

__all__ = ["PLAIN", "SPACE"]

PLAIN = frozenset({type(None), bool, int, float, str, list, dict, Distinct})
"""The classes of values; generated code leaves others to the interpreter."""

_SHORT = 255
_MOST_CHARACTERS = 1_000_000


def fail() -> NoReturn:
    """Leave it to the interpreter."""
    raise Fallback


def is_null(value: Any) -> bool:
    """Return whether the value is null."""
    return value is None


def no(value: Any) -> bool:
    """Guard: false for a value that equals no constant, for it is of another type; a long text costs more to look for."""
    if value.__class__ not in PLAIN or (value.__class__ is str and len(value) > _SHORT):
        raise Fallback
    return False


def not_null(value: Any) -> bool:
    """Guard: whether such a value is not null."""
    if value is None:
        return False
    return not no(value)


def known(value: Any) -> Any:
    """Guard: a value of JSON."""
    if value.__class__ not in PLAIN:
        raise Fallback
    return value


def iterated(meter: Meter, values: Any, cost: int, memory: int) -> Sequence[Any]:
    """Guard: what a comprehension goes through, values of JSON; charged with at least so many steps and bytes an element."""
    if values.__class__ is not list:
        if values.__class__ is not str and values.__class__ is not dict and values.__class__ is not Distinct:
            raise Fallback
        values = list(values)
    if not PLAIN.issuperset(map(type, values)):
        raise Fallback
    meter.step(len(values) * cost)
    meter.hold(64 + memory * len(values))
    return values  # type: ignore[no-any-return]


def metered(steps: int, memory: int) -> Meter:
    """Return a meter for what has no bound that is known, after ``steps`` and bytes were taken from it."""
    meter = Meter()
    meter.step(steps)
    meter.hold(memory)
    return meter


def total(values: list[Any]) -> Any:
    """Return the sum of numbers: exact of integers, else rounded once."""
    return math.fsum(values) if float in set(map(type, values)) else sum(values)


def power(base: Any, exponent: Any) -> Any:
    """Return ``base ** exponent`` where it is of a common size."""
    if base.__class__ is int and exponent.__class__ is int and base.bit_length() * abs(exponent) > 1000:
        raise Fallback
    value = base**exponent
    is_number(value)
    return value


def object_of(meter: Meter, *entries: tuple[Any, Any]) -> dict[Any, Any]:
    """Return an object of these keys and values, as the interpreter makes it."""
    meter.make_table(len(entries), "an object")
    return {mapping_key(meter, key): value for key, value in entries}


def text_result(value: Any) -> Any:
    """Guard: a string, or null, that may be a result."""
    if value is not None and not (value.__class__ is str and value.isascii() and len(value) <= _MOST_CHARACTERS):
        raise Fallback
    return value


def result(meter: Meter, value: Any) -> Any:
    """Return ``value`` as a result, checked and copied."""
    return checked_result(value, None, meter)


_FUNCTIONS: Iterable[Callable[..., Any]] = (
    fail, is_null, no, not_null, known, iterated, metered, total, power, object_of, result, text_result, is_result,
    is_number, is_number_or_null, is_text_or_null, math.sqrt, math.log, math.log2, math.log10, math.floor, math.ceil,
    abs, any, all, bool, dict, float, int, len, max, min, round, str, KeyError, TypeError, Exception,
)  # fmt: skip

SPACE: Mapping[str, Any] = {"__builtins__": {}, **{function.__name__: function for function in _FUNCTIONS}}
"""The namespace that generated code starts with."""
