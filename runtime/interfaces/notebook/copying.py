"""Python's values as JSON's: copies, or the reason why there is none."""

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["NotShared", "as_json"]

_SCALARS = (str, int, bool, type(None))
_DEEPEST = 200


class NotShared(Exception):
    """A Python value that JSON can't say; ``message`` says what it is, ``hint`` what can be done."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def as_json(value: Any) -> Any:
    """Return a copy of ``value`` as JSON's values; tuples and numpy's arrays and numbers become lists and numbers. Raises ``NotShared``.

    A text, a number or an object of a class of its own, such as an enum's member, is what it is for ``json``.
    """
    return _copied(value, set())


def _copied(value: Any, within: set[int]) -> Any:
    """``within`` are the containers that ``value`` is in: who is in itself has no end."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotShared(f"a number that JSON has not ({float.__float__(value)})")
        return float.__float__(value)
    if isinstance(value, list | tuple | Mapping):
        return _container(value, within)
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return _copied(value.tolist(), within)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    raise NotShared(f"of the type {type(value).__name__}")


def _container(value: Any, within: set[int]) -> Any:
    if id(value) in within:
        raise NotShared(f"{'an object' if isinstance(value, Mapping) else 'a list'} that holds itself")
    if len(within) >= _DEEPEST:
        raise NotShared("nested too deeply")
    within.add(id(value))
    made: Any
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise NotShared("an object whose keys are not all texts")
        made = {str.__str__(key): _copied(item, within) for key, item in value.items()}
    else:
        made = [_copied(item, within) for item in value]
    within.discard(id(value))
    return made
