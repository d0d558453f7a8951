"""Patterns from outside, bounded: RE2's own, and those of a JSON Schema, which Python's engines compile."""

import re
from math import prod
from typing import Any

from ..errors import KnotworkError

__all__ = ["PatternError", "compiled", "too_large_in"]

_MEMORY = 8 << 20
_LARGEST = 20_000
"""The most instructions of a pattern's program."""
_LARGEST_SCHEMA = 50_000
"""The same of all patterns in a schema."""
_REPEATED = re.compile(r"\{([0-9]{1,9})")


class PatternError(KnotworkError, ValueError):
    """The text is no pattern of RE2's, or one that gets too large (``is_large``)."""

    def __init__(self, message: str, is_large: bool) -> None:
        super().__init__(message)
        self.is_large = is_large


def compiled(text: str) -> Any:
    """Return the pattern ``text``, for UTF-8 and without captures. Raises ``PatternError``."""
    import re2  # late: most scripts have none

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    options.never_capture = True
    try:
        pattern: Any = re2.compile(text, options)
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else "not text"
        raise PatternError(f"{text[:80]!r} is no pattern: {why}", "too large" in why) from None
    if pattern.programsize > _LARGEST:
        raise PatternError(f"the pattern {text[:80]!r} is too large", True)
    return pattern


def too_large_in(schema: Any) -> str:
    """Return the pattern with which those of a schema would take up too much memory, wherever they stand in it; "" without one.

    What is repeated n times is written n times when it is compiled, also by engines that have a timeout for searching.
    """
    size, waiting = 0, [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            inner = value.get("patternProperties")
            for text in (value.get("pattern"), *(inner if isinstance(inner, dict) else ())):
                if isinstance(text, str):
                    size += _size(text)
                    if size > _LARGEST_SCHEMA:
                        return text
        if isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value
    return ""


def _size(text: str) -> int:
    """Return about how large a pattern of a schema gets."""
    try:
        return int(compiled(text).programsize)
    except PatternError:  # schemas may have what RE2 has not, such as look-around: then by the worst that it can mean
        return len(text) * prod(max(1, int(least)) for least in _REPEATED.findall(text))
