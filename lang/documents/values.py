"""Says whether a Python object is a JSON document, before it is written as one."""

import math
from typing import Any

from .json_text import MAX_DEPTH, MAX_VALUES

__all__ = ["not_json"]


def not_json(document: Any) -> str | None:
    """Say what keeps a Python object from being JSON, or return None. A cycle is a depth without end."""
    stack: list[tuple[Any, int]] = [(document, 0)]
    seen = 0
    while stack:
        value, depth = stack.pop()
        seen += 1
        if depth > MAX_DEPTH or seen > MAX_VALUES:
            return f"it is nested deeper than {MAX_DEPTH} levels" if depth > MAX_DEPTH else "it has too many values"
        if isinstance(value, dict):
            if odd := next((key for key in value if not isinstance(key, str)), None):
                return f"the key {odd!r:.40} is no text"
            stack += [(inner, depth + 1) for inner in value.values()]
        elif isinstance(value, list | tuple):
            stack += [(inner, depth + 1) for inner in value]
        elif isinstance(value, float) and not math.isfinite(value):
            return f"{value} is no number of JSON"
        elif value is not None and not isinstance(value, str | int | float):
            return f"a {type(value).__name__} is no JSON value"
    return None
