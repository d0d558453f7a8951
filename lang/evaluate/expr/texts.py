"""Functions and methods of strings, and reading and writing numbers. Each is ``(meter, value, ...)`` and raises ``ExprError``."""

import re
from collections.abc import Callable
from typing import Any

from .arithmetic import finite
from .equality import count_of
from .errors import ExprError
from .limits import Meter
from .values import NUMBERS, a, kind, shown

__all__ = [
    "as_float",
    "as_integer",
    "as_text",
    "count",
    "ends_with",
    "lowered",
    "split",
    "starts_with",
    "stripped",
    "uppered",
]

_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 400
"""Characters; an integer within the limit of bits has no more."""


def as_integer(meter: Meter, value: Any) -> int:
    """Return ``int(value)``: of a number the part before the point, of a string the plain decimal number in it, of true 1."""
    found = kind(value)
    if found == "text":
        return int(finite(meter, int(_written(value, _INTEGER, "int", "a whole number"))))
    if found not in ("number", "boolean"):
        raise ExprError(
            "type", f"int takes a number or a text, not {a(value)}" + ("" if value is None else f": {shown(value)}")
        )
    try:
        return int(finite(meter, int(value)))
    except (OverflowError, ValueError):
        raise ExprError("overflow", f"int takes a finite number, not {shown(value)}") from None


def as_float(meter: Meter, value: Any) -> float:
    """Return ``float(value)``: of a number, or of a string the plain decimal number in it."""
    found = kind(value)
    if found not in ("text", "number"):
        raise ExprError(
            "type", f"float takes a number or a text, not {a(value)}" + ("" if value is None else f": {shown(value)}")
        )
    written = _written(value, _FLOAT, "float", "a number") if found == "text" else value
    try:
        return float(finite(meter, float(written)))
    except OverflowError:
        raise ExprError("overflow", f"the number is too large: float({shown(value)})") from None


def _written(text: str, pattern: re.Pattern[str], function: str, wanted: str) -> str:
    short = text[: _LONGEST_NUMBER + 1] if len(text) <= 10 * _LONGEST_NUMBER else text[:1]
    stripped = short.strip()
    if len(text) > _LONGEST_NUMBER or not pattern.fullmatch(stripped):
        hint = "float(...) takes a number with a point" if function == "int" and _FLOAT.fullmatch(stripped) else ""
        raise ExprError("value", f"{function} can't read {wanted} from the text {shown(text)}", hint=hint)
    return stripped


def as_text(meter: Meter, value: Any) -> str:
    """Return ``str(value)``: a string as it is; a number, a boolean or null as JSON writes it."""
    found = kind(value)
    if found == "text":
        return value  # type: ignore[no-any-return]
    if found in ("null", "boolean"):
        return shown(value)
    if found != "number":
        raise ExprError("type", f"str takes a number or a text, not {a(value)}: {shown(value)}")
    written = repr(finite(meter, value if value.__class__ in NUMBERS else value + 0))
    meter.make_text(len(written), wide=False)
    return written


def _text(value: Any, method: str) -> str:
    if value.__class__ is str or kind(value) == "text":
        return value  # type: ignore[no-any-return]
    raise ExprError(
        "type", f".{method}() is for a text, not {a(value)}" + ("" if value is None else f": {shown(value)}")
    )


def _part(value: Any, method: str) -> str:
    if value.__class__ is str or kind(value) == "text":
        return value  # type: ignore[no-any-return]
    raise ExprError(
        "type", f".{method}(...) takes a text, not {a(value)}" + ("" if value is None else f": {shown(value)}")
    )


def _cased(method: str, change: Callable[[str], str]) -> Callable[[Meter, Any], str]:
    def cased(meter: Meter, value: Any) -> str:
        text = _text(value, method)
        wide = not text.isascii()
        meter.make_text(len(text), wide=wide)
        changed = change(text)
        if len(changed) > len(text):  # some letters have two or three in the other case
            meter.make_text(len(changed), wide=wide)
        return changed

    return cased


lowered, uppered = _cased("lower", str.lower), _cased("upper", str.upper)


def stripped(meter: Meter, value: Any, *characters: Any) -> str:
    """Return the string without the white space, or the ``characters``, around it."""
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
    return text.startswith(part)


def ends_with(meter: Meter, value: Any, end: Any) -> bool:
    """Return whether the string ends with ``end``."""
    text, part = _text(value, "endswith"), _part(end, "endswith")
    meter.characters(len(part))
    return text.endswith(part)


def split(meter: Meter, value: Any, *separator: Any) -> list[str]:
    """Return the parts between separators; without one, the words between white space."""
    text = _text(value, "split")
    meter.make_text(len(text), wide=not text.isascii())
    if not separator:
        parts = text.split()
    else:
        between = _part(separator[0], "split")
        if not between:
            raise ExprError("value", "can't split at an empty text")
        meter.make_list(text.count(between) + 1)
        parts = text.split(between)
    meter.make_list(len(parts))
    meter.hold(50 * len(parts))
    return parts


def count(meter: Meter, value: Any, item: Any) -> int:
    """Return how often ``item`` stands in a list, or a string in a string (without overlaps)."""
    found = kind(value)
    if found == "list":
        return count_of(meter, value, item)
    if found != "text":
        raise ExprError(
            "type",
            f".count(...) is for a list or a text, not {a(value)}" + ("" if value is None else f": {shown(value)}"),
        )
    part = _part(item, "count")
    meter.characters(2 * (len(value) + len(part)))
    return int(value.count(part))
