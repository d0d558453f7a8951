"""What can be asked of a JSON value: the part under a path, its length, its identity, its place in an order.

JSON values are None, booleans, numbers, texts, lists (or tuples) and objects (any mapping). A float that is not a number
counts as null.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from .errors import DEEPEST, too_deep

__all__ = ["identity", "length", "look_up", "sort_key"]

_NOTHING = object()


def look_up(value: Any, path: Sequence[str | int]) -> Any:
    """Return what ``value`` has under ``path``, or None where it has nothing there.

    In an object a name that spells the rest of the path with its dots wins (``attr.id``), then the first name of the path.
    In a list a number is an index (negative: from the end), and a name is looked up in each item: the list of what is found.
    """
    found = _look_up(value, tuple(path))
    return None if found is _NOTHING else found


def _look_up(value: Any, path: tuple[str | int, ...]) -> Any:
    for at, name in enumerate(path):
        if isinstance(value, Mapping):
            rest = path[at:]
            if len(rest) > 1 and all(isinstance(part, str) for part in rest):
                whole = ".".join(rest)  # type: ignore[arg-type]  # all are texts
                if whole in value:
                    return value[whole]
            key = name if isinstance(name, str) else str(name)
            if key not in value:
                return _NOTHING
            value = value[key]
        elif isinstance(value, list | tuple):
            if isinstance(name, int):
                if not -len(value) <= name < len(value):
                    return _NOTHING
                value = value[name]
            else:
                # Bounded: every level of lists below takes one level of nesting in the value itself.
                found = (_look_up(item, path[at:]) for item in value if isinstance(item, Mapping))
                return [each for each in found if each is not _NOTHING]
        else:
            return _NOTHING
    return value


def length(value: Any) -> int | None:
    """Return how many items, keys or characters ``value`` has; None for a number, a boolean and null."""
    return len(value) if isinstance(value, str | list | tuple | Mapping) else None


def identity(value: Any, depth: int = 0) -> Hashable:
    """Return a key that two values share just when they are equal in GASL.

    1 and 1.0 share one; 1, True and "1" have three; lists are equal item by item, objects key by key whatever their order.
    Raises ``ConditionError`` for a value that nests more than 200 levels deep.
    """
    if value.__class__ is str or value.__class__ is int or value is None:
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
        return (dict, frozenset((key, identity(item, depth + 1)) for key, item in value.items()))
    if isinstance(value, str | int):
        return value
    return (type(value), str(value))


_NUMBER, _TEXT, _BOOLEAN, _LIST, _OBJECT, _OTHER, _NULL = range(7)


def sort_key(value: Any, depth: int = 0) -> tuple[Any, ...]:
    """Return the value's key in a total order: numbers, texts by code point, false, true, lists, objects; null is last.

    For a descending order that keeps null last, sort what is not null alone. Raises ``ConditionError`` for a value that
    nests more than 200 levels deep.
    """
    if isinstance(value, str):
        return (_TEXT, value)
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
        pairs = sorted((str(key), sort_key(item, depth + 1)) for key, item in value.items())
        return (_OBJECT, tuple(pairs))
    return (_OTHER, type(value).__name__, str(value))
