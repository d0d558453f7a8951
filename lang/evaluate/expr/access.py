"""What stands in a value: ``value[index]``, slices, ``.get``. Each is ``(meter, value, ...)`` and raises ``ExprError``."""

from collections.abc import Iterable, Mapping
from typing import Any

from ...diagnostic import nearest
from .equality import mapping_key
from .errors import ExprError
from .limits import Meter
from .values import a, keys_of, kind, shown

__all__ = ["got", "meant", "sliced", "subscript"]

_MOST_SUGGESTED = 1_000
"""Names among which one is looked for that was meant."""


def meant(name: Any, known: Iterable[Any]) -> str:
    """Return a hint that names the known name that is most like ``name``, or else the few that there are; or nothing."""
    names = [each for _, each in zip(range(_MOST_SUGGESTED), known, strict=False) if isinstance(each, str)]
    found = nearest(name, names) if isinstance(name, str) else None
    if found is not None and found != name:
        return f"did you mean `{shown(found)[1:-1]}`?"
    if not names or len(names) > 12:
        return ""
    return "there is " + ", ".join(f"`{shown(each)[1:-1]}`" for each in names)


def subscript(meter: Meter, value: Any, index: Any) -> Any:
    """Return ``value[index]``: what an object has under a key, a list or a string at a place (negative: from the end)."""
    found = kind(value)
    if found == "object":
        key = mapping_key(meter, index)
        if key in value:
            return value[key]
        raise ExprError("key", f"there is no key {shown(index)}", hint=meant(index, keys_of(value)))
    if found not in ("list", "text"):
        raise ExprError("type", f"{a(value)} has no elements to take: {_subscripted(value, index)}")
    if kind(index) != "number" or not isinstance(index, int):
        wrong = shown(index) if kind(index) == "number" else a(index)
        raise ExprError("type", f"an index is a whole number, not {wrong}: {_subscripted(value, index)}")
    if not -len(value) <= index < len(value):
        part = "character" if found == "text" else "element"
        has = f"has {len(value):,} {part}{'s' if len(value) > 1 else ''}" if len(value) else "is empty"
        raise ExprError("index", f"the {found} {has}, there is no [{shown(index)}]")
    return value[index]


def _subscripted(value: Any, index: Any) -> str:
    return f"{shown(value)}[{shown(index)}]"


def sliced(meter: Meter, value: Any, start: Any, stop: Any, step: Any) -> Any:
    """Return ``value[start:stop:step]`` of a list or a string; None is a part that is not given."""
    found = kind(value)
    if found not in ("list", "text"):
        raise ExprError("type", f"can't take a slice of {a(value)}: {shown(value)}")
    for part in (start, stop, step):
        if part is not None and (kind(part) != "number" or not isinstance(part, int)):
            raise ExprError("type", f"a slice goes from a whole number to a whole number, not {a(part)}: {shown(part)}")
    if step == 0:
        raise ExprError("value", "a slice can't go in steps of 0")
    taken = slice(start, stop, step)
    length = len(range(*taken.indices(len(value))))
    if found == "text":
        meter.make_text(length, wide=not value.isascii())
        return value[taken]
    meter.make_list(length)
    return list(value[taken])


def got(meter: Meter, value: Any, key: Any, default: Any = None) -> Any:
    """Return what the object has under ``key``, or ``default``."""
    if kind(value) != "object":
        raise ExprError(
            "type", f".get(...) is for an object, not {a(value)}" + ("" if value is None else f": {shown(value)}")
        )
    mapping: Mapping[Any, Any] = value
    return mapping.get(mapping_key(meter, key), default)
