"""When two values are the same: ``==``, ``in``, ``count`` and sets. True is not 1, 1 is 1.0, nested nulls are equal."""

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from .errors import ExprError
from .limits import Meter
from .values import DEEPEST, FALSE, NUMBERS, TRUE, Distinct, a, kind, shown

__all__ = ["contains", "count_of", "distinct", "equal", "key_of", "mapping_key"]

_PLAIN = frozenset({str, int, float, type(None)})
"""Classes that Python compares as the language does, among themselves."""
_LONG = 8
"""From here on it pays to look at the classes of all elements first."""
_LARGE = 1 << 60
"""From here on Python's hashes of integers can be made to collide; keys of these are texts."""


def equal(meter: Meter, left: Any, right: Any, depth: int = 0) -> bool:
    """Return whether two values are the same, lists and objects part by part. Null is null (``==`` says otherwise of it)."""
    if left.__class__ is str and right.__class__ is str:
        return _same_text(meter, left, right)
    first = kind(left)
    if first != kind(right):
        return False
    if first == "number" or first == "boolean":
        return bool(left == right)
    if first == "null":
        return True
    if first == "text":
        return _same_text(meter, left, right)
    if first == "generator":
        raise ExprError("type", "a generator can't be compared", hint="write [... for ...]")
    if depth > DEEPEST:
        raise ExprError("limit", f"a value nests more than {DEEPEST} levels deep")
    meter.step(12)
    if len(left) != len(right):
        return False
    meter.elements(len(left))
    if left is right:  # a value has no NaN, so it equals itself; looking at a million elements would take long
        return True
    if first == "list":
        return _same_list(meter, left, right, depth)
    if first == "set":
        return bool(left.members.keys() == right.members.keys())
    return all(key in right and equal(meter, value, right[key], depth + 1) for key, value in left.items())


def _same_text(meter: Meter, left: str, right: str) -> bool:
    if len(left) != len(right):
        return False
    meter.characters(len(left))
    return left == right


def _same_list(meter: Meter, left: Sequence[Any], right: Sequence[Any], depth: int) -> bool:
    classes = {*map(type, left), *map(type, right)} if len(left) >= _LONG else None
    if classes is not None and classes <= _PLAIN:
        if str in classes:
            meter.characters(sum(len(each) for each in left if each.__class__ is str))
        return list(left) == list(right)
    return all(equal(meter, one, other, depth + 1) for one, other in zip(left, right, strict=True))


def contains(meter: Meter, value: Any, item: Any) -> bool:
    """Return ``item in value``: an element of a list or set, a key of an object, a part of a string. No nulls at either side.

    Raises ``ExprError`` for a value that contains nothing, and for a part of a string that is no string.
    """
    found = kind(value)
    if found == "text":
        if kind(item) != "text":
            raise ExprError("type", f"can't look for {a(item)} in a text: {shown(item)} in {shown(value)}")
        meter.characters(2 * (len(value) + len(item)))  # looking for a text takes longer than reading it
        return item in value
    if found == "list":
        if not _is_plain(item):
            return next(_positions(meter, value, item), None) is not None
        _charge(meter, value, item)
        return item in value
    if found == "set":
        return key_of(meter, item) in value.members
    if found == "object":
        return mapping_key(meter, item) in value
    raise ExprError("type", f"can't look for {shown(item)} in {a(value)}: {shown(value)} has no elements")


def _is_plain(item: Any) -> bool:
    """Say whether Python's own ``in`` and ``count`` are right for ``item``: only 0 and 1 can be taken for a boolean."""
    return item.__class__ is str or (item.__class__ in NUMBERS and item != 0 and item != 1)


def _charge(meter: Meter, values: Sequence[Any], item: Any) -> None:
    meter.elements(len(values))
    if item.__class__ is str:
        meter.step(len(values) * (len(item) >> 8))  # all may be as long, and differ in the end


def _positions(meter: Meter, values: Sequence[Any], item: Any) -> Iterator[int]:
    """Yield where ``item`` stands."""
    _charge(meter, values, item)
    meter.elements(len(values))  # it takes twice as long as Python's own way
    found = kind(item)
    if found == "boolean":
        return (at for at, each in enumerate(values) if each is item)
    if found == "null":
        return (at for at, each in enumerate(values) if each is None)
    if found == "number":
        return (at for at, each in enumerate(values) if each is not True and each is not False and each == item)
    return (at for at, each in enumerate(values) if equal(meter, each, item))


def count_of(meter: Meter, values: Sequence[Any], item: Any) -> int:
    """Return how often ``item`` stands in a list; a null counts the nulls."""
    if _is_plain(item):
        _charge(meter, values, item)
        return values.count(item)
    return sum(1 for _ in _positions(meter, values, item))


def key_of(meter: Meter, value: Any, depth: int = 0) -> Hashable:
    """Return what two values share just when they are equal. Raises ``ExprError`` for an object, a set, a generator."""
    found = kind(value)
    if found == "text":
        meter.characters(len(value))
        return value  # type: ignore[no-any-return]
    if found == "number":
        return _number_key(value)
    if found == "boolean":
        return TRUE if value else FALSE
    if found == "null":
        return None
    if found != "list":
        raise ExprError("type", f"{a(value)} can't stand in a set: {shown(value)}")
    if depth > DEEPEST:
        raise ExprError("limit", f"a value nests more than {DEEPEST} levels deep")
    meter.make_list(len(value))
    meter.step(6 + len(value))
    return ("list", tuple([key_of(meter, each, depth + 1) for each in value]))


def _number_key(value: int | float) -> Hashable:
    if -_LARGE < value < _LARGE or value != value or value in (float("inf"), float("-inf")):
        return value
    return ("number", hex(int(value)))


def mapping_key(meter: Meter, value: Any) -> Hashable:
    """Return what ``value`` is as the key of an object. Raises ``ExprError`` for null, a list, an object, a set."""
    if value.__class__ is str:
        meter.characters(len(value))
        return value
    if kind(value) not in ("text", "number", "boolean"):
        raise ExprError("type", f"{a(value)} can't be a key: {shown(value)}")
    return key_of(meter, value)


def distinct(meter: Meter, values: Sequence[Any]) -> Distinct:
    """Return the set of ``values``, in the order of their first occurrence; of 1 and 1.0 the integer, of zeros 0.0."""
    meter.make_table(len(values), "a set")
    classes = set(map(type, values))
    if classes == {str}:
        meter.characters(sum(map(len, values)))
        return Distinct(dict(zip(values, values, strict=True)))
    same = classes == {int} or (classes == {float} and 0.0 not in values)
    if same and all(-_LARGE < value < _LARGE for value in values):
        return Distinct({value: value for value in dict.fromkeys(values)})
    members: dict[Hashable, Any] = {}
    for value in values:
        key = key_of(meter, value)
        kept = members.setdefault(key, value)
        if kept.__class__ is float and (isinstance(value, int) or (not kept and math.copysign(1, kept) < 0)):
            members[key] = value
    return Distinct(members)
