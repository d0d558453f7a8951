"""What values are: their kinds, whether they are true, how a message shows them.

Values are those of JSON, where a tuple is a list, and inside an expression sets (``Distinct``) and generators. A boolean is
no number. Anything else is refused when it is used.
"""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from types import GeneratorType
from typing import Any, Literal

from attrs import field, frozen

from ...source import Span
from .limits import ExprError, Meter

__all__ = ["DEEPEST", "NUMBERS", "Distinct", "a", "checked_result", "elements_of", "kind", "shown", "truth"]

ValueKind = Literal["null", "boolean", "number", "text", "list", "object", "set", "generator"]

DEEPEST = 100
"""Levels of lists and objects in a value that is compared, put in a set or returned."""

NUMBERS = frozenset({int, float})
"""The classes of numbers; ``bool`` is none of them."""


@frozen
class Distinct:
    """A set. ``members`` maps each element's key (``equality.key_of``) to the element, in the order they came in."""

    members: Mapping[Hashable, Any] = field(factory=dict)

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.members.values())


_KINDS: Mapping[type, ValueKind] = {
    type(None): "null", bool: "boolean", int: "number", float: "number", str: "text", list: "list", tuple: "list",
    dict: "object", Distinct: "set", GeneratorType: "generator",
}  # fmt: skip
_WIDER: Sequence[tuple[type, ValueKind]] = (
    (bool, "boolean"), (int, "number"), (float, "number"), (str, "text"), (list, "list"), (tuple, "list"),
    (Mapping, "object"),
)  # fmt: skip
"""What a subclass counts as, numpy's float64 for instance; the first that fits."""


def kind(value: Any) -> ValueKind:
    """Return the kind of ``value``. Raises ``ExprError`` for what is no value of an expression."""
    return _KINDS.get(value.__class__) or _kind(value)


def _kind(value: Any) -> ValueKind:
    for wider, found in _WIDER:
        if isinstance(value, wider):
            return found
    raise ExprError(
        "type",
        f"can't use a value of Python's type {type(value).__name__}",
        hint="values are null, true, false, numbers, texts, lists and objects, as in JSON",
    )


_ARTICLES: Mapping[ValueKind, str] = {"null": "null", "object": "an object"}


def a(value: Any) -> str:
    """Return the kind of ``value`` with its article: "a number", "null"."""
    found = kind(value)
    return _ARTICLES.get(found) or f"a {found}"


def truth(value: Any) -> bool:
    """Return whether ``value`` counts as true: not null, false, 0 or empty. Raises ``ExprError`` for a generator."""
    if kind(value) == "generator":
        raise ExprError(
            "type", "a generator is neither true nor false", hint="write any(... for ...) or all(... for ...)"
        )
    return bool(value)


def elements_of(meter: Meter, value: Any, function: str) -> Sequence[Any]:
    """Return what ``function`` goes through, charged for: a list's elements, an object's keys. Not to be changed.

    Raises ``ExprError`` for what has no elements; a string counts as that.
    """
    found = kind(value)
    if found == "generator":
        taken = list(value)  # each iteration was charged
        meter.hold(8 * len(taken))
        return taken
    if found == "list":
        meter.elements(len(value))
        return value  # type: ignore[no-any-return]
    if found in ("set", "object"):
        meter.make_list(len(value))
        return list(value) if found == "set" else keys_of(value)
    raise ExprError("type", f"{function} takes a list, not {a(value)}: {function}({shown(value)})")


class _Flag:
    """Stands for a boolean among the keys of a dict, where Python takes True for 1."""

    def __init__(self, value: bool) -> None:
        self.value = value


TRUE, FALSE = _Flag(True), _Flag(False)


def keys_of(value: Mapping[Any, Any]) -> list[Any]:
    """Return the keys of an object as values."""
    if all(key.__class__ is str for key in value):
        return list(value)
    return [_from_key(key) for key in value]


def _from_key(key: Any) -> Any:
    if isinstance(key, _Flag):
        return key.value
    return int(key[1], 16) if isinstance(key, tuple) else key


_SHOWN = 40
"""Characters of a value in a message."""


def shown(value: Any, width: int = _SHOWN) -> str:
    """Return ``value`` as a message shows it: as JSON, shortened to some ``width`` characters, whatever its size."""
    found = kind(value)
    if found == "null":
        return "null"
    if found == "boolean":
        return "true" if value else "false"
    if found == "number":
        if isinstance(value, int) and value.bit_length() > 128:
            return f"an integer of {value.bit_length():,} bits"
        return repr(value + 0)
    if found == "text":
        return _quoted(value, width)
    if found == "generator":
        return "(... for ...)"
    opening, closing = {"list": "[]", "object": "{}", "set": ("set([", "])")}[found]
    return f"{opening}{_inside(_parts(value, found), width)}{closing}"


def _parts(value: Any, found: ValueKind) -> Iterator[str]:
    for each in value:
        if found == "object":
            inner = value[each]
            yield f"{shown(_from_key(each), 20)}: {shown(inner, 10) if _is_scalar(inner) else '…'}"
        else:
            yield shown(each, 20) if _is_scalar(each) else "[…]" if kind(each) == "list" else "{…}"


def _is_scalar(value: Any) -> bool:
    return kind(value) in ("null", "boolean", "number", "text")


def _inside(parts: Iterable[str], width: int) -> str:
    taken: list[str] = []
    for part in parts:
        if sum(map(len, taken)) + 2 * len(taken) + len(part) > width:
            return ", ".join([*taken, "…"])
        taken.append(part)
    return ", ".join(taken)


def _quoted(text: str, width: int) -> str:
    short = text if len(text) <= width else f"{text[: width - 1]}…"
    escaped = short.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in escaped) + '"'


# What an expression may give: a JSON value of bounded size that shares no list or object with what went in.


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
