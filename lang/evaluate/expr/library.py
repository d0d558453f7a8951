"""The functions and methods of expressions by name: ``(meter, value, ...)``, called by the interpreter and by generated code.

``lang.functions`` says how many arguments and which keywords they take; a call that does not fit is refused by the linter and,
by ``fits``, before the function is called. A function changes none of its arguments.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from ...functions import FUNCTIONS, METHODS
from .access import got, meant
from .equality import distinct
from .errors import ExprError
from .limits import Meter
from .mathematics import (
    absolute,
    clamped,
    exponential,
    logarithm,
    logarithm_to,
    rounded,
    rounded_down,
    rounded_up,
    square_root,
    total,
)
from .ordering import largest, ordered, smallest
from .samples import deviation, middle, most_frequent, quantile, spread
from .texts import as_float, as_integer, as_text, count, ends_with, lowered, split, starts_with, stripped, uppered
from .values import Distinct, a, elements_of, kind, shown, truth

__all__ = ["FUNCTION_TABLE", "METHOD_TABLE", "all_of", "any_of", "as_boolean", "as_set", "function", "length", "method"]


def all_of(meter: Meter, values: Any) -> bool:
    """Return whether every element is true; stops at the first that is not."""
    return all(truth(value) for value in _lazily(meter, values, "all"))


def any_of(meter: Meter, values: Any) -> bool:
    """Return whether an element is true; stops at the first that is."""
    return any(truth(value) for value in _lazily(meter, values, "any"))


def _lazily(meter: Meter, values: Any, name: str) -> Any:
    return values if kind(values) == "generator" else elements_of(meter, values, name)


def as_boolean(meter: Meter, value: Any) -> bool:
    """Return whether ``value`` counts as true."""
    return truth(value)


def as_set(meter: Meter, *values: Any) -> Distinct:
    """Return the different elements of a list, a string, an object's keys; or the empty set."""
    if not values:
        return Distinct()
    return distinct(meter, values[0] if kind(values[0]) == "text" else elements_of(meter, values[0], "set"))


def length(meter: Meter, value: Any) -> int:
    """Return how many elements, keys or characters ``value`` has. Costs nothing."""
    if kind(value) in ("list", "text", "object", "set"):
        return len(value)
    hint = "count with sum(1 for ...)" if kind(value) == "generator" else ""
    raise ExprError("type", f"{a(value)} has no length: len({shown(value)})", hint=hint)


FUNCTION_TABLE: Mapping[str, Callable[..., Any]] = {
    "abs": absolute, "all": all_of, "any": any_of, "bool": as_boolean, "ceil": rounded_up, "clamp": clamped,
    "exp": exponential, "float": as_float, "floor": rounded_down, "int": as_integer, "len": length,
    "ln": logarithm_to("ln", math.log), "log": logarithm, "log10": logarithm_to("log10", math.log10),
    "log2": logarithm_to("log2", math.log2), "max": largest, "median": middle, "min": smallest, "mode": most_frequent,
    "percentile": quantile, "round": rounded, "set": as_set, "sorted": ordered, "sqrt": square_root, "stdev": deviation, "str": as_text,
    "sum": total, "variance": spread,
}  # fmt: skip
"""All of ``lang.functions.FUNCTIONS``."""

METHOD_TABLE: Mapping[str, Callable[..., Any]] = {
    "count": count, "endswith": ends_with, "get": got, "lower": lowered, "split": split, "startswith": starts_with,
    "strip": stripped, "upper": uppered,
}  # fmt: skip
"""All of ``lang.functions.METHODS``."""


def function(name: str, arguments: int, keywords: tuple[str, ...] = ()) -> Callable[..., Any]:
    """Return the function ``name`` for a call with so many arguments. Raises ``ExprError`` where it takes no such call."""
    if name not in FUNCTIONS:
        raise ExprError("name", f"there is no function `{name:.60}`", hint=meant(name, FUNCTIONS))
    signature = FUNCTIONS[name]
    for keyword in keywords:
        if keyword not in signature.keywords or keywords.count(keyword) > 1:
            raise ExprError("type", f"{name} takes no `{keyword}=` here", hint=f"write {signature.signature}")
    _check_count(name, arguments, signature.least, signature.most, signature.signature)
    return FUNCTION_TABLE[name]


def method(name: str, arguments: int) -> Callable[..., Any]:
    """Return the method ``name`` for a call with so many arguments. Raises ``ExprError`` where it takes no such call."""
    if name not in METHODS:
        raise ExprError("name", f"there is no method `.{name:.60}`", hint=meant(name, METHODS))
    _check_count(f".{name}", arguments, METHODS[name].least, METHODS[name].most, METHODS[name].signature)
    return METHOD_TABLE[name]


def _check_count(name: str, arguments: int, least: int, most: int | None, signature: str) -> None:
    if least <= arguments and (most is None or arguments <= most):
        return
    wanted = f"at least {least}" if most is None else str(least) if least == most else f"{least} to {most}"
    plural = "" if wanted in ("1", "at least 1") else "s"
    raise ExprError("type", f"{name} takes {wanted} argument{plural}, not {arguments}", hint=f"write {signature}")
