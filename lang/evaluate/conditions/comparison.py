"""Comparison of two values. The result is true, false or unknown (None).

``=`` and ``!=`` compare any two values that are not null: values of different types are unequal, lists and objects are compared
as a whole. ``<`` and similar operators compare two numbers, two strings (by code point) or two booleans (false before true).
Texts are compared in their composed form, so canonically equivalent texts are equal (see ``lang.unicode_forms``).
``CONTAINS`` tests a string for a substring and a list for a member. ``MATCHES`` finds a pattern anywhere in a string (``^`` and
``$`` anchor the pattern); the time it takes depends only on the string. For other types the result is unknown. With an empty
list, a test with ``IN`` is false and a test with ``NOT IN`` is true, even for null, as in SQL and openCypher.
"""

import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ...errors import KnotworkError
from ...trees.conditions import Comparison, Constant, Items, Operator
from ...unicode_forms import canonical

# Errors raised when a condition is evaluated.

DEEPEST = 200
"""Maximum nesting depth of a condition or a value; far below Python's recursion limit."""


class ConditionError(KnotworkError):
    """Raised if a condition can't be evaluated: a pattern is invalid, a variable has no value, or the nesting is too deep.

    See ``docs/design/gasl.md#errors``. ``hint`` says what to do.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def too_deep(what: str) -> ConditionError:
    """Return the error for a condition or a value that is nested more than ``DEEPEST`` levels deep."""
    return ConditionError(f"{what} is nested more than {DEEPEST} levels deep")


# Access to a JSON value: the part under a path, its length, its identity, its sort key.
# JSON values are None, booleans, numbers, strings, lists (or tuples) and objects (any mapping). NaN counts as null.

_NOTHING = object()


def dotted(path: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each prefix of ``path``, joined by dots to one name, with the rest of the path. The longest prefix comes first."""
    for cut in range(len(path), 0, -1):
        yield ".".join(path[:cut]), path[cut:]


def look_up(value: Any, path: Sequence[str | int]) -> Any:
    """Return the part of ``value`` under ``path``, or None if it is missing.

    The names of a prefix of the path are joined by dots (``attr.id``). In an object, the longest such prefix that is a key of
    the object is used. In a list, a number is an index; a negative index counts from the end. If the path has a name where the
    value is a list, the name is looked up in each object of the list. The result is the list of the values found.
    """
    found = _look_up(value, tuple(path))
    return None if found is _NOTHING else found


def _look_up(value: Any, path: tuple[str | int, ...]) -> Any:
    at = 0
    while at < len(path):
        name = path[at]
        if isinstance(value, Mapping):
            end = at + 1
            while isinstance(name, str) and end < len(path) and isinstance(path[end], str):
                end += 1
            names = [str(part) for part in path[at:end]]
            for key, rest in dotted(names):
                if key in value:
                    value, at = value[key], end - len(rest)
                    break
            else:
                return _NOTHING
        elif isinstance(value, list | tuple):
            if isinstance(name, int):
                if not -len(value) <= name < len(value):
                    return _NOTHING
                value = value[name]
                at += 1
            else:
                # Recursion is bounded: every level of lists consumes one level of nesting of the value.
                found = (_look_up(item, path[at:]) for item in value if isinstance(item, Mapping))
                return [each for each in found if each is not _NOTHING]
        else:
            return _NOTHING
    return value


def length(value: Any) -> int | None:
    """Return the number of items, keys or characters of ``value``; None for a number, a boolean and null."""
    return len(value) if isinstance(value, str | list | tuple | Mapping) else None


def identity(value: Any, depth: int = 0) -> Hashable:
    """Return a key of ``value``. Two values other than null have the same key if and only if they are equal in GASL.

    1 and 1.0 have the same key; 1, True and "1" have different keys. The key of null and NaN is None; that of a text is its
    canonical form. Lists are compared item by item, objects key by key in any order. Raises ``ConditionError`` for a value that
    is nested more than 200 levels deep.
    """
    if value.__class__ is str:
        return canonical(value)
    if value.__class__ is int or value is None:
        return value
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, float):
        return value if value == value else None
    if depth > DEEPEST:
        raise too_deep("a value")
    if isinstance(value, list | tuple):
        return (list, tuple([identity(item, depth + 1) for item in value]))
    if isinstance(value, Mapping):
        return (dict, frozenset((identity(key), identity(item, depth + 1)) for key, item in value.items()))
    if isinstance(value, str | int):
        return canonical(value) if isinstance(value, str) else value
    return (type(value), str(value))


_NUMBER, _TEXT, _BOOLEAN, _LIST, _OBJECT, _OTHER, _NULL = range(7)


def sort_key(value: Any, depth: int = 0) -> tuple[Any, ...]:
    """Return the sort key of ``value``.

    The order is: numbers, strings by code point, false, true, lists, objects, null. Null is always last. If null must be last in a
    descending order too, sort only the other values. Raises ``ConditionError`` for a value that is nested more than 200 levels deep.
    """
    if isinstance(value, str):
        return (_TEXT, canonical(value))
    if isinstance(value, bool):
        return (_BOOLEAN, value)
    if isinstance(value, int | float):
        return (_NUMBER, value) if value == value else (_NULL,)
    if value is None:
        return (_NULL,)
    if depth > DEEPEST:
        raise too_deep("a value")
    if isinstance(value, list | tuple):
        return (_LIST, tuple([sort_key(item, depth + 1) for item in value]))
    if isinstance(value, Mapping):
        pairs = sorted((canonical(str(key)), sort_key(item, depth + 1)) for key, item in value.items())
        return (_OBJECT, tuple(pairs))
    return (_OTHER, type(value).__name__, str(value))


def order_key(value: Any, descending: bool) -> tuple[Any, ...]:
    """Return the sort key of ``value`` in an ORDER BY: in both directions numbers come first, then strings, as in ``sort_key``.

    If ``descending`` is true, the keys are for a sort from the largest to the smallest.
    """
    kind, *rest = sort_key(value)
    return (-kind if descending else kind, *rest)


Pattern: TypeAlias = Callable[[str], bool]
Members: TypeAlias = tuple[frozenset[Hashable], bool]
"""The identities of the values in a list, and whether the list contains null."""

_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_LONGEST_PATTERN = 10_000
_PATTERN_MEMORY = 8 << 20


def compare(left: Any, comparison: Operator, right: Any) -> bool | None:
    """Return ``left comparison right`` for JSON values (tuples count as lists). Raises ``ConditionError`` for an invalid pattern."""
    return prepared(comparison, right)(left)


def prepared(comparison: Operator, right: Any) -> Callable[[Any], bool | None]:
    """Return a function ``left -> left comparison right``. It prepares ``right`` only once, for all values of ``left``."""
    if comparison == "MATCHES":
        if not isinstance(right, str):
            return _unknown
        pattern = pattern_of(right)
        return lambda left: pattern(left) if isinstance(left, str) else None
    if is_null(right):
        return _unknown
    if comparison in _ORDER:
        return _ordering(_ORDER[comparison], right)
    if comparison in ("=", "!="):
        same, key = comparison == "=", identity(right)
        return lambda left: None if is_null(left) else (identity(left) == key) is same
    if comparison in ("IN", "NOT IN"):
        if not isinstance(right, list | tuple):
            return _unknown
        wanted, members = comparison == "IN", members_of(right)
        if not right:  # an empty list contains no value, not even null: the result is never unknown
            return lambda left: not wanted
        return lambda left: _negated(_member(left, members), wanted)
    if comparison == "CONTAINS":
        key = identity(right)
        return lambda left: _contains(left, key)
    if not isinstance(right, str):
        return _unknown
    method, part = str.startswith if comparison == "STARTS_WITH" else str.endswith, canonical(right)
    return lambda left: method(canonical(left), part) if isinstance(left, str) else None


def takes_types(leaf: Comparison) -> bool:
    """Return whether the result of a comparison is unknown for values of some types.

    The result of ``=`` and ``IN`` is known for all types.
    """
    return leaf.operator not in ("=", "!=", "IN", "NOT IN")


def constant_of(node: Constant | Items) -> Any:
    """Return the value on the right side of a comparison. A list literal is returned as a tuple."""
    return tuple(item.value for item in node.items) if isinstance(node, Items) else node.value


def is_of_empty_list(leaf: Comparison) -> bool:
    """Return whether ``leaf`` tests membership in an empty list. The result of such a test is the same for every value, including null."""
    if leaf.operator not in ("IN", "NOT IN") or not isinstance(leaf.right, Constant | Items):
        return False
    right = constant_of(leaf.right)
    return isinstance(right, list | tuple) and not right


def members_of(values: Iterable[Any]) -> Members:
    """Return the identities of ``values``, and whether null is among them."""
    keys = {identity(value) for value in values}
    return frozenset(keys - {None}), None in keys


def pattern_of(text: str) -> Pattern:
    """Return a function that tests whether the pattern ``text`` matches anywhere in a string. Both are read in canonical form.

    Raises ``ConditionError`` for an invalid pattern.
    """
    if len(text) > _LONGEST_PATTERN:
        raise ConditionError(f"the pattern is longer than {_LONGEST_PATTERN:,} characters")
    import re2  # imported on demand: most conditions have no pattern

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_MEMORY
    options.never_capture = True
    try:
        search = re2.compile(canonical(text), options).search
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else "not text"
        raise ConditionError(
            f"{text[:80]!r} is not a pattern: {why}",
            hint="patterns use RE2 syntax, without look-around or back-references",
        ) from None
    # The search is over bytes, because positions are not needed. A lone surrogate matches nothing.
    return lambda value: search(canonical(value).encode("utf-8", "surrogatepass")) is not None


def _unknown(left: Any) -> None:
    return None


def is_null(value: Any) -> bool:
    """Return whether ``value`` counts as null: None or NaN."""
    return value is None or (isinstance(value, float) and value != value)


def _negated(answer: bool | None, keep: bool) -> bool | None:
    return answer if keep or answer is None else not answer


def _member(left: Any, members: Members) -> bool | None:
    if is_null(left):
        return None
    keys, holds_null = members
    if identity(left) in keys:
        return True
    return None if holds_null else False


def _contains(left: Any, key: Hashable) -> bool | None:
    if isinstance(left, str):
        return key in canonical(left) if isinstance(key, str) else None
    if not isinstance(left, list | tuple):
        return None
    keys = [identity(item) for item in left]
    if key in keys:
        return True
    return None if None in keys else False


def _ordering(holds: Callable[[Any, Any], bool], right: Any) -> Callable[[Any], bool | None]:
    if isinstance(right, str):
        bound = canonical(right)
        return lambda left: holds(canonical(left), bound) if isinstance(left, str) else None
    if isinstance(right, bool):
        return lambda left: holds(left, right) if isinstance(left, bool) else None
    if isinstance(right, int | float):
        return lambda left: (
            holds(left, right)
            if isinstance(left, int | float) and not isinstance(left, bool) and left == left
            else None
        )
    return _unknown
