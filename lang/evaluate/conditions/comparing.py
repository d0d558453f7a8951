"""What one comparison of two values gives: true, false or unknown (None).

``=`` and ``!=`` hold between any two values that are not null: different types are unequal, lists and objects are compared
whole. ``<`` and the like hold between two numbers, two texts (by code point) or two booleans (false before true), else they
are unknown. ``CONTAINS`` asks a text for a part of it and a list for a member. ``MATCHES`` finds a pattern anywhere in a
text (``^`` and ``$`` tie it to the ends); the time it takes grows with the text only. What does not fit is unknown. ``IN`` an empty
list is false and ``NOT IN`` one is true, of null too, as in SQL and openCypher.
"""

import operator
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeAlias

from ...conditions import Comparison, Constant, Items, Operator, Variable
from .errors import ConditionError
from .values import identity

__all__ = [
    "Members",
    "Pattern",
    "compare",
    "constant_of",
    "is_null",
    "is_of_empty_list",
    "members_of",
    "pattern_of",
    "prepared",
]

Pattern: TypeAlias = Callable[[str], bool]
Members: TypeAlias = tuple[frozenset[Hashable], bool]
"""The identities of the values of a list, and whether it holds a null."""

_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_LONGEST_PATTERN = 10_000
_PATTERN_MEMORY = 8 << 20


def compare(left: Any, comparison: Operator, right: Any) -> bool | None:
    """Return ``left comparison right`` for JSON values (a tuple is a list). Raises ``ConditionError`` for a bad pattern."""
    return prepared(comparison, right)(left)


def prepared(comparison: Operator, right: Any) -> Callable[[Any], bool | None]:
    """Return ``left -> left comparison right``, with the work on ``right`` done."""
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
        if not right:  # nothing is in it, and so whether null is known, too
            return lambda left: not wanted
        return lambda left: _negated(_member(left, members), wanted)
    if comparison == "CONTAINS":
        key = identity(right)
        return lambda left: _contains(left, right, key)
    if not isinstance(right, str):
        return _unknown
    method = str.startswith if comparison == "STARTS_WITH" else str.endswith
    return lambda left: method(left, right) if isinstance(left, str) else None


def constant_of(node: Constant | Items) -> Any:
    """Return the value at the right of a comparison; a list as a tuple."""
    return tuple(item.value for item in node.items) if isinstance(node, Items) else node.value


def is_of_empty_list(leaf: Comparison) -> bool:
    """Say whether ``leaf`` asks for membership in a list without a value: it has the same answer for everything, null included."""
    if leaf.operator not in ("IN", "NOT IN") or isinstance(leaf.right, Variable):
        return False
    right = constant_of(leaf.right)
    return isinstance(right, list | tuple) and not right


def members_of(values: Iterable[Any]) -> Members:
    """Return what membership in ``values`` needs to know."""
    keys = {identity(value) for value in values}
    return frozenset(keys - {None}), None in keys


def pattern_of(text: str) -> Pattern:
    """Return ``text -> whether the pattern is found in it``. Raises ``ConditionError`` for what is no pattern."""
    if len(text) > _LONGEST_PATTERN:
        raise ConditionError(f"the pattern is longer than {_LONGEST_PATTERN:,} characters")
    import re2  # late: most conditions have no pattern

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_MEMORY
    options.never_capture = True
    try:
        search = re2.compile(text, options).search
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else "not text"
        raise ConditionError(
            f"{text[:80]!r} is not a pattern: {why}",
            hint="patterns are RE2's: no look-around and no back-references",
        ) from None
    # Bytes, since an answer without positions need not count characters; a lone surrogate matches nothing.
    return lambda value: search(value.encode("utf-8", "surrogatepass")) is not None


def _unknown(left: Any) -> None:
    return None


def is_null(value: Any) -> bool:
    """Say whether ``value`` counts as null: None, or a float that is not a number."""
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


def _contains(left: Any, right: Any, key: Hashable) -> bool | None:
    if isinstance(left, str):
        return right in left if isinstance(right, str) else None
    if not isinstance(left, list | tuple):
        return None
    keys = [identity(item) for item in left]
    if key in keys:
        return True
    return None if None in keys else False


def _ordering(holds: Callable[[Any, Any], bool], right: Any) -> Callable[[Any], bool | None]:
    if isinstance(right, str):
        return lambda left: holds(left, right) if isinstance(left, str) else None
    if isinstance(right, bool):
        return lambda left: holds(left, right) if isinstance(left, bool) else None
    if isinstance(right, int | float):
        return lambda left: (
            holds(left, right)
            if isinstance(left, int | float) and not isinstance(left, bool) and left == left
            else None
        )
    return _unknown
