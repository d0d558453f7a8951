"""The functions and methods of expressions. The interpreter and generated code call each with ``(meter, value, ...)``.

``lang.catalogue.operations`` defines their arguments and keywords. The linter reports invalid calls; ``function`` and
``method`` below reject invalid calls before they are evaluated. Functions never modify their arguments.
"""

import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...catalogue.operations import FUNCTIONS, METHODS
from ...unicode_forms import canonical
from .arithmetic import (
    absolute,
    clamped,
    exponential,
    finite,
    logarithm,
    logarithm_to,
    number,
    rounded,
    rounded_down,
    rounded_up,
    square_root,
    total,
)
from .comparison import count_of, distinct, got, key_of, known_names_hint, largest, ordered, smallest
from .date_functions import day_of, days_between, truncated, year_of
from .list_functions import LIST_FUNCTIONS, joined_by
from .text_functions import fold, replaced, similarity, substring
from .values import NUMBERS, Distinct, ExprError, Meter, a, elements_of, kind, short_json, truth

# Statistical functions: median, percentile, variance, standard deviation, mode. Each has the form ``(meter, values, ...)``.
# Their results equal those of Python's ``statistics``; ``percentile`` interpolates linearly, like numpy's default. Except for
# ``mode``, results do not depend on the order of the elements. An empty or too short sample is an error.

_COST = 4
"""Steps charged for each element in exact computation, which takes about thirty times as long as reading an element."""


def middle(meter: Meter, values: Any) -> Any:
    """Return the median: the middle element, or the mean of the two middle elements as a float."""
    taken = _sorted(meter, values, "median")
    half = len(taken) // 2
    if len(taken) % 2:
        return finite(meter, taken[half])
    return _between(meter, taken[half - 1], taken[half], 0.5, "median")


def quantile(meter: Meter, values: Any, share: Any) -> Any:
    """Return the percentile at ``share`` (0 to 1). Interpolation is linear."""
    share = number(share, "percentile takes a number p from 0 to 1")
    if not 0 <= share <= 1:
        hint = f"write {short_json(share / 100)}" if 1 < share <= 100 else ""
        raise ExprError("value", f"percentile takes p from 0 to 1, not {short_json(share)}", hint=hint)
    taken = _sorted(meter, values, "percentile")
    place = (len(taken) - 1) * share
    below = math.floor(place)
    if place == below:
        return finite(meter, taken[below])
    return _between(meter, taken[below], taken[below + 1], place - below, "percentile")


def _between(meter: Meter, low: Any, high: Any, share: float, name: str) -> float:
    """Interpolate from ``low`` (``share`` 0) to ``high`` (1). Raises ``ExprError`` if the result is too large for a float."""
    try:
        if name == "median":
            return float(finite(meter, (low + high) / 2))
        # Like numpy's formula, this one is exact at both ends.
        step = high - low
        return float(finite(meter, low + step * share if share < 0.5 else high - step * (1 - share)))
    except OverflowError:
        raise ExprError(
            "overflow", f"the number is too large: {name} between {short_json(low)} and {short_json(high)}"
        ) from None


def spread(meter: Meter, values: Any) -> Any:
    """Return the variance of a sample, computed exactly and rounded once at the end."""
    return _exactly(meter, values, "variance")


def deviation(meter: Meter, values: Any) -> float:
    """Return the standard deviation of a sample, computed exactly and rounded once at the end."""
    return float(_exactly(meter, values, "stdev"))


def _exactly(meter: Meter, values: Any, name: str) -> Any:
    taken = _numbers(meter, values, name)
    if len(taken) < 2:
        raise ExprError(
            "value",
            f"{name} takes at least two numbers, not {len(taken)}",
            hint=f"write {name}(xs) if len(xs) > 1 else null",
        )
    meter.step(len(taken) * _COST)
    try:
        return finite(meter, statistics.variance(taken) if name == "variance" else statistics.stdev(taken))
    except OverflowError:
        raise ExprError("overflow", f"the {name} is too large") from None


def most_frequent(meter: Meter, values: Any) -> Any:
    """Return the most frequent element of ``values``. If several are equally frequent, return the first of them."""
    taken = values if kind(values) == "text" else elements_of(meter, values, "mode")
    if not taken:
        raise ExprError("value", "mode of an empty list", hint="write mode(xs) if len(xs) > 0 else null")
    meter.make_table(len(taken), "an object")
    counts: dict[Any, list[Any]] = {}
    for value in taken:
        counts.setdefault(key_of(meter, value), [0, value])[0] += 1
    return max(counts.values(), key=lambda each: each[0])[1]


def _sorted(meter: Meter, values: Any, name: str) -> list[Any]:
    taken = ordered(meter, _numbers(meter, values, name))
    if not taken:
        raise ExprError("value", f"{name} of an empty list", hint="write ... if len(xs) > 0 else null")
    return taken


def _numbers(meter: Meter, values: Any, name: str) -> Sequence[Any]:
    taken = elements_of(meter, values, name)
    for value in taken:
        found = kind(value)
        if found != "number":
            hint = "exclude nulls: `... for x in xs if x is not None`" if value is None else ""
            element = "null" if value is None else f"{a(value)}: {short_json(value)}"
            raise ExprError("type", f"{name} takes numbers, not {element}", hint=hint)
        if isinstance(value, float) and not math.isfinite(value):
            raise ExprError("value", f"{name} takes finite numbers, not {short_json(value)}")
    return taken


# Functions and methods of strings, and conversions of numbers, as ``(meter, value, ...)``. They raise ``ExprError``.

_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 400
"""Maximum number of characters of a number in a string. An integer within the bit limit never has more."""


def as_integer(meter: Meter, value: Any) -> int:
    """Return ``int(value)``: a number is truncated, a string must contain a plain whole number, and true is 1."""
    found = kind(value)
    if found == "text":
        return int(finite(meter, int(_numeral(value, _INTEGER, "int", "a whole number"))))
    if found not in ("number", "boolean"):
        raise ExprError(
            "type",
            f"int takes a number or a string, not {a(value)}" + ("" if value is None else f": {short_json(value)}"),
        )
    try:
        return int(finite(meter, int(value)))
    except (OverflowError, ValueError):
        raise ExprError("overflow", f"int takes a finite number, not {short_json(value)}") from None


def as_float(meter: Meter, value: Any) -> float:
    """Return ``float(value)`` for a number, or for a plain decimal number in a string."""
    found = kind(value)
    if found not in ("text", "number"):
        raise ExprError(
            "type",
            f"float takes a number or a string, not {a(value)}" + ("" if value is None else f": {short_json(value)}"),
        )
    written = _numeral(value, _FLOAT, "float", "a number") if found == "text" else value
    try:
        return float(finite(meter, float(written)))
    except OverflowError:
        raise ExprError("overflow", f"the number is too large: float({short_json(value)})") from None


def _numeral(text: str, pattern: re.Pattern[str], function: str, wanted: str) -> str:
    short = text[: _LONGEST_NUMBER + 1] if len(text) <= 10 * _LONGEST_NUMBER else text[:1]
    stripped = short.strip()
    if len(text) > _LONGEST_NUMBER or not pattern.fullmatch(stripped):
        hint = (
            "use float(...) for a number with a decimal point"
            if function == "int" and _FLOAT.fullmatch(stripped)
            else ""
        )
        raise ExprError("value", f"{function} can't read {wanted} from {short_json(text)}", hint=hint)
    return stripped


def as_number(meter: Meter, value: Any) -> int | float | None:
    """Return ``value`` if it is a finite number, or the decimal number that a string contains; else null.

    A number that is too large for an expression gives null too.
    """
    found = kind(value)
    try:
        if found == "number":
            return finite(meter, value)  # type: ignore[no-any-return]
        if found != "text":
            return None
        meter.characters(len(value))
        written = value.strip()
        if len(written) > _LONGEST_NUMBER or not _FLOAT.fullmatch(written):
            return None
        return finite(meter, int(written) if _INTEGER.fullmatch(written) else float(written))  # type: ignore[no-any-return]
    except ExprError as error:
        if error.kind == "limit":
            raise
        return None


def as_text(meter: Meter, value: Any) -> str:
    """Return ``str(value)``: a string is returned unchanged; a number, a boolean or null is written as in JSON."""
    found = kind(value)
    if found == "text":
        return value  # type: ignore[no-any-return]
    if found in ("null", "boolean"):
        return short_json(value)
    if found != "number":
        raise ExprError("type", f"str takes a number or a string, not {a(value)}: {short_json(value)}")
    written = repr(finite(meter, value if value.__class__ in NUMBERS else value + 0))
    meter.make_text(len(written), wide=False)
    return written


def _text(value: Any, method: str) -> str:
    if value.__class__ is str or kind(value) == "text":
        return value  # type: ignore[no-any-return]
    raise ExprError(
        "type", f".{method}() requires a string, not {a(value)}" + ("" if value is None else f": {short_json(value)}")
    )


def _part(value: Any, method: str) -> str:
    if value.__class__ is str or kind(value) == "text":
        return value  # type: ignore[no-any-return]
    raise ExprError(
        "type", f".{method}(...) takes a string, not {a(value)}" + ("" if value is None else f": {short_json(value)}")
    )


def _cased(method: str, change: Callable[[str], str]) -> Callable[[Meter, Any], str]:
    def cased(meter: Meter, value: Any) -> str:
        text = _text(value, method)
        wide = not text.isascii()
        meter.make_text(len(text), wide=wide)
        changed = change(text)
        if len(changed) > len(text):  # some letters become two or three letters in the other case
            meter.make_text(len(changed), wide=wide)
        return changed

    return cased


lowered, uppered = _cased("lower", str.lower), _cased("upper", str.upper)


def stripped(meter: Meter, value: Any, *characters: Any) -> str:
    """Return the string without leading and trailing white space, or without leading and trailing ``characters``."""
    text = _text(value, "strip")
    meter.make_text(len(text), wide=not text.isascii())
    if not characters:
        return text.strip()
    unwanted = _part(characters[0], "strip")
    meter.characters(len(unwanted))
    unwanted = "".join(set(unwanted))
    meter.characters(len(text) * len(unwanted))
    return text.strip(unwanted)


def starts_with(meter: Meter, value: Any, start: Any) -> bool:
    """Return whether the string begins with ``start``."""
    text, part = _text(value, "startswith"), _part(start, "startswith")
    meter.characters(len(part))
    return canonical(text).startswith(canonical(part))


def ends_with(meter: Meter, value: Any, end: Any) -> bool:
    """Return whether the string ends with ``end``."""
    text, part = _text(value, "endswith"), _part(end, "endswith")
    meter.characters(len(part))
    return canonical(text).endswith(canonical(part))


def split(meter: Meter, value: Any, *separator: Any) -> list[str]:
    """Return the parts of a string between separators. By default, white space separates the parts."""
    text = _text(value, "split")
    meter.make_text(len(text), wide=not text.isascii())
    if not separator:
        parts = text.split()
    else:
        between = _part(separator[0], "split")
        if not between:
            raise ExprError("value", "can't split at an empty string")
        meter.make_list(text.count(between) + 1)
        parts = text.split(between)
    meter.make_list(len(parts))
    meter.hold(50 * len(parts))
    return parts


def count(meter: Meter, value: Any, item: Any) -> int:
    """Return how often ``item`` occurs in a list or in a string; in a string, overlapping occurrences are not counted."""
    found = kind(value)
    if found == "list":
        return count_of(meter, value, item)
    if found != "text":
        raise ExprError(
            "type",
            f".count(...) requires a list or a string, not {a(value)}"
            + ("" if value is None else f": {short_json(value)}"),
        )
    part = _part(item, "count")
    meter.characters(2 * (len(value) + len(part)))
    return canonical(value).count(canonical(part))


def all_of(meter: Meter, values: Any) -> bool:
    """Return whether every element is true. Evaluation stops at the first false element."""
    return all(truth(value) for value in _lazily(meter, values, "all"))


def any_of(meter: Meter, values: Any) -> bool:
    """Return whether at least one element is true. Evaluation stops at the first true element."""
    return any(truth(value) for value in _lazily(meter, values, "any"))


def _lazily(meter: Meter, values: Any, name: str) -> Any:
    return values if kind(values) == "generator" else elements_of(meter, values, name)


def as_boolean(meter: Meter, value: Any) -> bool:
    """Return whether ``value`` counts as true."""
    return truth(value)


def as_set(meter: Meter, *values: Any) -> Distinct:
    """Return the distinct elements of a list or a string, or the keys of an object; without an argument, the empty set."""
    if not values:
        return Distinct()
    return distinct(meter, values[0] if kind(values[0]) == "text" else elements_of(meter, values[0], "set"))


def coalesce(meter: Meter, *values: Any) -> Any:
    """Return the first value that is not null; null if all are. All values are evaluated before the call."""
    for value in values:
        if kind(value) == "generator":
            raise ExprError("type", "coalesce takes values, not a generator", hint="write [... for ...] for a list")
    return next((value for value in values if value is not None), None)


def length(meter: Meter, value: Any) -> int:
    """Return the number of elements, keys or characters of ``value``. No steps are charged for this."""
    if kind(value) in ("list", "text", "object", "set"):
        return len(value)
    hint = "count with sum(1 for ...)" if kind(value) == "generator" else ""
    raise ExprError("type", f"{a(value)} has no length: len({short_json(value)})", hint=hint)


FUNCTION_TABLE: Mapping[str, Callable[..., Any]] = {
    "abs": absolute, "all": all_of, "any": any_of, "bool": as_boolean, "ceil": rounded_up, "clamp": clamped,
    "coalesce": coalesce, "date": day_of, "date_trunc": truncated, "days_between": days_between, "exp": exponential,
    "float": as_float, "floor": rounded_down, "fold": fold, "int": as_integer, "len": length,
    "ln": logarithm_to("ln", math.log), "log": logarithm, "log10": logarithm_to("log10", math.log10),
    "log2": logarithm_to("log2", math.log2), "max": largest, "median": middle, "min": smallest, "mode": most_frequent,
    "number": as_number, "percentile": quantile, "replace": replaced, "round": rounded, "set": as_set,
    "similarity": similarity, "sqrt": square_root, "stdev": deviation, "str": as_text,
    "substring": substring, "sum": total, "variance": spread, "year": year_of,
    **LIST_FUNCTIONS,
}  # fmt: skip
"""Maps the name of each function in ``lang.catalogue.operations.FUNCTIONS`` to its implementation."""

METHOD_TABLE: Mapping[str, Callable[..., Any]] = {
    "count": count, "endswith": ends_with, "get": got, "join": joined_by, "lower": lowered, "split": split, "startswith": starts_with,
    "strip": stripped, "upper": uppered,
}  # fmt: skip
"""Maps the name of each method in ``lang.catalogue.operations.METHODS`` to its implementation."""


def function(name: str, arguments: int, keywords: tuple[str, ...] = ()) -> Callable[..., Any]:
    """Return the function ``name`` for a call with this number of arguments. Raises ``ExprError`` if the call is invalid."""
    if name not in FUNCTIONS:
        raise ExprError("name", f"unknown function `{name:.60}`", hint=known_names_hint(name, FUNCTIONS))
    signature = FUNCTIONS[name]
    for keyword in keywords:
        if keyword not in signature.keywords or keywords.count(keyword) > 1:
            raise ExprError("type", f"{name} does not accept `{keyword}=` here", hint=f"write {signature.signature}")
    _check_count(name, arguments, signature.least, signature.most, signature.signature)
    return FUNCTION_TABLE[name]


def method(name: str, arguments: int) -> Callable[..., Any]:
    """Return the method ``name`` for a call with this number of arguments. Raises ``ExprError`` if the call is invalid."""
    if name not in METHODS:
        raise ExprError("name", f"unknown method `.{name:.60}`", hint=known_names_hint(name, METHODS))
    _check_count(f".{name}", arguments, METHODS[name].least, METHODS[name].most, METHODS[name].signature)
    return METHOD_TABLE[name]


def _check_count(name: str, arguments: int, least: int, most: int | None, signature: str) -> None:
    if least <= arguments and (most is None or arguments <= most):
        return
    wanted = f"at least {least}" if most is None else str(least) if least == most else f"{least} to {most}"
    plural = "" if wanted in ("1", "at least 1") else "s"
    raise ExprError("type", f"{name} takes {wanted} argument{plural}, not {arguments}", hint=f"write {signature}")
