"""Fields of an event as the page takes them: it comes from a file, and what is of another type, or is no figure at all, counts as empty."""

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["figure", "number", "text"]

_MOST = 10**15
"""More than this was never counted: what says so is no event of ours."""


def text(event: Mapping[str, Any], name: str) -> str:
    """Return a field that is a text; "" where it is none."""
    value = event.get(name)
    return value if isinstance(value, str) else ""


def number(event: Mapping[str, Any], name: str) -> int:
    """Return a field that is a whole number; 0 where it is none."""
    value = event.get(name)
    return value if type(value) is int and abs(value) <= _MOST else 0


def figure(event: Mapping[str, Any], name: str) -> float | None:
    """Return a field that is a number; None where it is none, nor a finite one."""
    value = event.get(name)
    if type(value) is int:
        return float(value) if abs(value) <= _MOST else None
    return value if isinstance(value, float) and math.isfinite(value) and abs(value) <= _MOST else None
