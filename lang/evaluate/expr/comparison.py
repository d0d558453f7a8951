"""Equality and order of values, and access to their parts. True is not 1, 1 equals 1.0, and nested nulls are equal.

Texts are compared in their composed form, so canonically equivalent texts are equal (see ``lang.unicode_forms``).
"""

import math
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ...diagnostic import nearest
from ...trees.expr import Test
from ...unicode_forms import canonical, has_other_forms
from .values import (
    DEEPEST,
    FALSE,
    NUMBERS,
    TRUE,
    Distinct,
    ExprError,
    Meter,
    a,
    elements_of,
    keys_of,
    kind,
    short_json,
    truth,
)

_PLAIN = frozenset({str, int, float, type(None)})
"""Python classes whose values Python compares with each other in the same way as expressions do."""
_LONG = 8
"""Minimum length of a list for which it is faster to check the classes of all elements first."""
_LARGE = 1 << 60
"""Integers from this one on can be chosen so that their Python hashes collide. Their keys contain the digits as a string."""


def equal(meter: Meter, left: Any, right: Any, depth: int = 0) -> bool:
    """Return whether two values are equal; lists and objects are compared part by part. Null equals null (unlike with ``==``)."""
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
        raise ExprError("limit", f"a value is nested more than {DEEPEST} levels deep")
    meter.step(12)
    if len(left) != len(right):
        return False
    meter.elements(len(left))
    if left is right:  # values contain no NaN, so each equals itself; this avoids a comparison of all elements
        return True
    if first == "list":
        return _same_list(meter, left, right, depth)
    if first == "set":
        return bool(left.members.keys() == right.members.keys())
    return all(
        (other := _key_in(right, key)) is not _MISSING and equal(meter, value, right[other], depth + 1)
        for key, value in left.items()
    )


def _same_text(meter: Meter, left: str, right: str) -> bool:
    if not left.isascii() or not right.isascii():
        meter.characters(len(left) + len(right))
        return left == right or canonical(left) == canonical(right)
    if len(left) != len(right):
        return False
    meter.characters(len(left))
    return left == right


def _same_list(meter: Meter, left: Sequence[Any], right: Sequence[Any], depth: int) -> bool:
    classes = {*map(type, left), *map(type, right)} if len(left) >= _LONG else None
    if classes is not None and classes <= _PLAIN:
        if str in classes:
            meter.characters(sum(len(each) for each in left if each.__class__ is str))
        if list(left) == list(right) or str not in classes:
            return list(left) == list(right)
    return all(equal(meter, one, other, depth + 1) for one, other in zip(left, right, strict=True))


def contains(meter: Meter, value: Any, item: Any) -> bool:
    """Return ``item in value``: whether ``item`` is an element of a list or set, a key of an object, or a part of a string.

    Neither argument may be null. Raises ``ExprError`` if ``value`` can't contain anything, or if it is a string and ``item`` is not.
    """
    found = kind(value)
    if found == "text":
        if kind(item) != "text":
            raise ExprError("type", f"can't look for {a(item)} in a string: {short_json(item)} in {short_json(value)}")
        meter.characters(2 * (len(value) + len(item)))  # searching a string takes longer than reading it
        return canonical(item) in canonical(value)
    if found == "list":
        if not _is_plain(item):
            return next(_positions(meter, value, item), None) is not None
        _charge(meter, value, item)
        return item in value
    if found == "set":
        return key_of(meter, item) in value.members
    if found == "object":
        return _key_in(value, mapping_key(meter, item)) is not _MISSING
    raise ExprError("type", f"can't look for {short_json(item)} in {a(value)}: {short_json(value)} has no elements")


def _is_plain(item: Any) -> bool:
    """Return whether Python's own ``in`` and ``count`` are correct for ``item``.

    They are wrong for 0 and 1, which Python considers equal to false and true, and for texts that have several Unicode forms.
    """
    if item.__class__ is str:
        return not has_other_forms(item)
    return item.__class__ in NUMBERS and item != 0 and item != 1


def _charge(meter: Meter, values: Sequence[Any], item: Any) -> None:
    meter.elements(len(values))
    if item.__class__ is str:
        meter.step(len(values) * (len(item) >> 8))  # all strings may be equally long and differ only at the end


def _positions(meter: Meter, values: Sequence[Any], item: Any) -> Iterator[int]:
    """Yield the positions of ``item`` in ``values``."""
    _charge(meter, values, item)
    meter.elements(len(values))  # this search takes twice as long as Python's own method
    found = kind(item)
    if found == "boolean":
        return (at for at, each in enumerate(values) if each is item)
    if found == "null":
        return (at for at, each in enumerate(values) if each is None)
    if found == "number":
        return (at for at, each in enumerate(values) if each is not True and each is not False and each == item)
    return (at for at, each in enumerate(values) if equal(meter, each, item))


def count_of(meter: Meter, values: Sequence[Any], item: Any) -> int:
    """Return how often ``item`` occurs in a list. For null, return the number of nulls."""
    if _is_plain(item):
        _charge(meter, values, item)
        return values.count(item)
    return sum(1 for _ in _positions(meter, values, item))


def key_of(meter: Meter, value: Any, depth: int = 0) -> Hashable:
    """Return a key that is the same for two values if and only if they are equal.

    Raises ``ExprError`` for an object, a set or a generator.
    """
    found = kind(value)
    if found == "text":
        meter.characters(len(value))
        return canonical(value)
    if found == "number":
        return _number_key(value)
    if found == "boolean":
        return TRUE if value else FALSE
    if found == "null":
        return None
    if found != "list":
        raise ExprError("type", f"{a(value)} can't be in a set: {short_json(value)}")
    if depth > DEEPEST:
        raise ExprError("limit", f"a value is nested more than {DEEPEST} levels deep")
    meter.make_list(len(value))
    meter.step(6 + len(value))
    return ("list", tuple([key_of(meter, each, depth + 1) for each in value]))


def _number_key(value: int | float) -> Hashable:
    if -_LARGE < value < _LARGE or value != value or value in (float("inf"), float("-inf")):
        return value
    return ("number", hex(int(value)))


def mapping_key(meter: Meter, value: Any) -> Hashable:
    """Return ``value`` as the key of an object. Raises ``ExprError`` for null, a list, an object, a set."""
    if value.__class__ is str:
        meter.characters(len(value))
        return value
    if kind(value) not in ("text", "number", "boolean"):
        raise ExprError("type", f"{a(value)} can't be a key: {short_json(value)}")
    return key_of(meter, value)


_MISSING: Any = object()


def _key_in(value: Mapping[Any, Any], key: Hashable) -> Any:
    """Return the key of an object that is equal to ``key``, which may be written in another Unicode form; ``_MISSING`` if none is."""
    if key in value:
        return key
    if not isinstance(key, str) or not has_other_forms(key):
        return _MISSING
    wanted = canonical(key)
    return next((each for each in value if isinstance(each, str) and canonical(each) == wanted), _MISSING)


def distinct(meter: Meter, values: Sequence[Any]) -> Distinct:
    """Return the set of ``values`` in the order of first occurrence.

    If several values are equal, only one of them is kept: 1 rather than 1.0, and 0.0 rather than -0.0.
    """
    meter.make_table(len(values), "a set")
    classes = set(map(type, values))
    if classes == {str} and all(map(str.isascii, values)):
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


# Order of values: ``< <= > >=``, ``sorted``, ``max`` and ``min``. Numbers are compared with numbers, strings with strings.
# Results do not depend on the order of a list's elements: among equal elements 1 comes before 1.0, and -0.0 before 0.0.
# Each comparison is a function ``(meter, left, right)``. If either side is null, the result is false, even for ``==`` and ``!=``.
# Tests against the literal null are handled separately (see ``interpreter.is_null_literal``).

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
            return holds(canonical(left), canonical(right))
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
"""All comparisons except ``is`` and ``is not``."""


def _incomparable(left: Any, right: Any, sign: str) -> ExprError:
    operands = f"{short_json(left)} {sign} {short_json(right)}"
    if kind(left) == kind(right):
        return ExprError("type", f"can't order {_PLURALS[kind(left)]}: {operands}")
    hint = (
        "int(...) or float(...) reads a number from a string" if {kind(left), kind(right)} == {"text", "number"} else ""
    )
    return ExprError("type", f"can't compare {a(left)} with {a(right)}: {operands}", hint=hint)


_PLURALS = {
    "boolean": "booleans", "list": "lists", "object": "objects", "set": "sets", "generator": "generators",
}  # fmt: skip


def _check_order(meter: Meter, values: Sequence[Any], function: str) -> None:
    """Charge for the characters of ``values``. Raises ``ExprError`` unless all values are numbers or all are strings."""
    classes = set(map(type, values))
    if classes == {str}:
        meter.characters(sum(map(len, values)))
        return
    if classes <= NUMBERS:
        if float in classes and any(value != value for value in values):
            raise ExprError("value", f"{function} can't order NaN")
        return
    first = values[0]
    for value in values:
        if value is None:
            raise ExprError(
                "type", f"{function} takes numbers or strings, not null",
                hint="exclude nulls: `... for x in xs if x is not None`",
            )  # fmt: skip
        found = kind(value)
        if found not in ("number", "text"):
            raise ExprError("type", f"{function} takes numbers or strings, not {a(value)}: {short_json(value)}")
        if found != kind(first):
            raise ExprError(
                "type", f"{function} can't compare {a(first)} with {a(value)}: {short_json(first)}, {short_json(value)}"
            )
    if kind(first) == "text":
        meter.characters(sum(map(len, values)))


def ordered(meter: Meter, values: Any, *, reverse: Any = False) -> list[Any]:
    """Return the elements in ascending order, or in descending order if ``reverse`` is true."""
    taken = list(values) if kind(values) == "text" else elements_of(meter, values, "sorted")
    meter.make_list(len(taken))
    rounds = len(taken).bit_length()
    meter.step(len(taken) * rounds >> 5)
    _check_order(meter, taken, "sorted")
    if taken and kind(taken[0]) == "text":
        meter.step((sum(map(len, taken)) >> 8) * rounds)
    if any(value.__class__ is not str for value in taken[:1]) and _ties(taken):
        return sorted(taken, key=_placed, reverse=truth(reverse))
    return sorted(taken, key=_order_key(taken), reverse=truth(reverse))


def _order_key(values: Sequence[Any]) -> Callable[[Any], Any] | None:
    """Return the key by which to sort ``values``, which are all numbers or all strings; None if they are their own keys."""
    texts = len(values) > 0 and kind(values[0]) == "text"
    return canonical if texts and not all(map(str.isascii, values)) else None


def _ties(values: Sequence[Any]) -> bool:
    """Return whether some of these numbers may be equal but not the same, such as 1 and 1.0, or 0.0 and -0.0."""
    classes = set(map(type, values))
    return not classes <= NUMBERS or (float in classes and (int in classes or 0.0 in values))


def _placed(value: int | float) -> tuple[int | float, bool, float]:
    return (value, True, math.copysign(1, value)) if isinstance(value, float) else (value, False, 0.0)


def extreme_of(pick: Callable[..., Any], best: Any, values: Sequence[Any]) -> Any:
    """Return the preferred element of those equal to ``best``, which is the result of ``max`` or ``min`` over ``values``.

    An integer is preferred to a float. The float 0.0 counts as greater than -0.0.
    """
    if not isinstance(best, float) or (best and not _ties(values)):
        return best
    equals = [value for value in values if value == best]
    whole = next((value for value in equals if isinstance(value, int)), None)
    return pick(equals, key=_placed) if whole is None else whole


def extreme(function: str) -> Callable[..., Any]:
    """Return the function ``max`` or ``min``.

    Called with one argument, the function compares the argument's elements; otherwise, it compares the arguments. If elements
    are equal, ``extreme_of`` chooses one of them; if arguments are equal, the first is returned.
    """
    pick = max if function == "max" else min

    def find(meter: Meter, *values: Any, default: Any = _MISSING) -> Any:
        if len(values) == 1:
            if kind(values[0]) == "number":
                raise ExprError(
                    "type", f"{function} takes a list, or at least two values: {function}({short_json(values[0])})"
                )
            taken = elements_of(meter, values[0], function)
        elif default is not _MISSING:
            raise ExprError("type", f"{function} takes a default only with one list")
        else:
            taken = values
        if not taken:
            if default is _MISSING:
                raise ExprError("value", f"{function} of an empty list", hint=f"write {function}(xs, default=0)")
            return default
        _check_order(meter, taken, function)
        best = pick(taken, key=_order_key(taken))
        return extreme_of(pick, best, taken) if len(values) == 1 else best

    return find


largest, smallest = extreme("max"), extreme("min")


# Access to parts of a value: ``value[index]``, slices, ``.get``. The functions are ``(meter, value, ...)`` and raise ``ExprError``.

_MOST_SUGGESTED = 1_000
"""Maximum number of names that are searched for a suggestion."""


def known_names_hint(name: Any, known: Iterable[Any]) -> str:
    """Return a hint with the known name most similar to ``name``.

    If none is similar, the hint lists all names. If there are too many names for this, it is "".
    """
    names = [each for _, each in zip(range(_MOST_SUGGESTED), known, strict=False) if isinstance(each, str)]
    found = nearest(name, names) if isinstance(name, str) else None
    if found is not None and found != name:
        return f"did you mean `{short_json(found)[1:-1]}`?"
    if not names or len(names) > 12:
        return ""
    return "known: " + ", ".join(f"`{short_json(each)[1:-1]}`" for each in names)


def subscript(meter: Meter, value: Any, index: Any) -> Any:
    """Return ``value[index]``: the value under a key of an object, or an element of a list or string.

    A negative index counts from the end.
    """
    found = kind(value)
    if found == "object":
        key = _key_in(value, mapping_key(meter, index))
        if key is not _MISSING:
            return value[key]
        raise ExprError("key", f"unknown key {short_json(index)}", hint=known_names_hint(index, keys_of(value)))
    if found not in ("list", "text"):
        raise ExprError("type", f"{a(value)} has no elements: {_subscripted(value, index)}")
    if kind(index) != "number" or not isinstance(index, int):
        wrong = short_json(index) if kind(index) == "number" else a(index)
        raise ExprError("type", f"an index must be a whole number, not {wrong}: {_subscripted(value, index)}")
    if not -len(value) <= index < len(value):
        part = "character" if found == "text" else "element"
        has = f"has {len(value):,} {part}{'s' if len(value) > 1 else ''}" if len(value) else "is empty"
        raise ExprError("index", f"the {found} {has}: [{short_json(index)}] does not exist")
    return value[index]


def _subscripted(value: Any, index: Any) -> str:
    return f"{short_json(value)}[{short_json(index)}]"


def sliced(meter: Meter, value: Any, start: Any, stop: Any, step: Any) -> Any:
    """Return ``value[start:stop:step]`` of a list or a string. A part of the slice that is None counts as omitted."""
    found = kind(value)
    if found not in ("list", "text"):
        raise ExprError("type", f"can't take a slice of {a(value)}: {short_json(value)}")
    for part in (start, stop, step):
        if part is not None and (kind(part) != "number" or not isinstance(part, int)):
            raise ExprError("type", f"the bounds of a slice must be whole numbers, not {a(part)}: {short_json(part)}")
    if step == 0:
        raise ExprError("value", "the step of a slice can't be 0")
    taken = slice(start, stop, step)
    length = len(range(*taken.indices(len(value))))
    if found == "text":
        meter.make_text(length, wide=not value.isascii())
        return value[taken]
    meter.make_list(length)
    return list(value[taken])


def got(meter: Meter, value: Any, key: Any, default: Any = None) -> Any:
    """Return the value under ``key`` in the object ``value``, or ``default``."""
    if kind(value) != "object":
        raise ExprError(
            "type",
            f".get(...) requires an object, not {a(value)}" + ("" if value is None else f": {short_json(value)}"),
        )
    mapping: Mapping[Any, Any] = value
    return mapping.get(_key_in(mapping, mapping_key(meter, key)), default)
