"""What an expression may give: a JSON value of bounded size that shares no list or object with what went in."""

import math
from typing import Any

from ...source import Span
from .errors import ExprError
from .limits import Meter
from .values import DEEPEST, kind, shown

__all__ = ["checked_result"]

_SIXTY_FOUR = 1 << 63


def checked_result(value: Any, span: Span | None = None, meter: Meter | None = None) -> Any:
    """Return ``value`` as a JSON value: tuples as lists, every list and object a copy.

    Raises ``ExprError`` for a set, a generator, NaN, infinity, an integer of more than 64 bits, a key that is no string, half
    a character (a lone surrogate), and for a value of more elements, characters or levels than the limits allow.
    """
    try:
        return _Copy(meter or Meter()).of(value, 0)
    except ExprError as error:
        error.span = error.span or span
        raise


class _Copy:
    """Copies a value and counts its parts in all, however often one of them stands in it."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.elements = 0
        self.characters = 0

    def of(self, value: Any, depth: int) -> Any:
        if value is None or value.__class__ is bool:
            return value
        found = kind(value)
        if found == "text":
            return self.text(value)
        if found == "number":
            return _number(value)
        if found == "boolean":
            return bool(value)
        if found == "set":
            raise ExprError("result", "a set is no result", hint="write sorted(...) around it")
        if found == "generator":
            raise ExprError("result", "a generator is no result", hint="write [... for ...] or sum(... for ...)")
        if depth >= DEEPEST:
            raise ExprError("limit", f"the result nests more than {DEEPEST} levels deep")
        self.elements += len(value) + 1
        if self.elements > self.meter.limits.size + 1:
            raise ExprError("limit", f"the result has more than {self.meter.limits.size:,} elements in all")
        if found == "list":
            self.meter.step(len(value) >> 1)
            self.meter.hold(56 + 8 * len(value))
            return [self.of(each, depth + 1) for each in value]
        self.meter.step(2 * len(value))
        self.meter.hold(100 + 90 * len(value))
        for key in value:
            if not isinstance(key, str):
                raise ExprError("result", "the keys of an object in a result are texts", hint='write "..." around them')
        return {self.text(key): self.of(each, depth + 1) for key, each in value.items()}

    def text(self, value: str) -> str:
        self.characters += len(value)
        if self.characters > 10 * self.meter.limits.size:
            raise ExprError("limit", f"the result has more than {10 * self.meter.limits.size:,} characters in all")
        if not value.isascii():
            self.meter.characters(len(value))
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ExprError("result", f"the text has half a character in it: {shown(value)}") from None
        return value if value.__class__ is str else str(value)


def _number(value: Any) -> Any:
    if value.__class__ is int and -_SIXTY_FOUR <= value < _SIXTY_FOUR:
        return value
    if isinstance(value, int):
        if not -_SIXTY_FOUR <= value < _SIXTY_FOUR:
            raise ExprError("result", "an integer of a result has at most 64 bits", hint="write float(...) around it")
        return int(value)
    if not math.isfinite(value):
        raise ExprError("result", f"{'infinity' if value == value else 'NaN'} is no result")
    return float(value)
