"""Calls of tools that a model writes as JSON in its text, one after the other or in a list."""

import json
import re
from typing import Any

__all__ = ["json_calls"]

_DECODER = json.JSONDecoder()
_MEANT = re.compile(r'"(?:tool|name|function)"\s*+:\s*+"(?:done|lwt_|read")')
_LOOKED_AT = 300
"""Characters in which an object that is meant as a call says so."""


def json_calls(text: str, at: int) -> tuple[list[Any] | None, int]:
    """Return the values that stand at ``at`` and where to go on; None for what is meant as a call and is no JSON."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        meant = _MEANT.search(text, at, at + _LOOKED_AT)
        return (None if meant else []), at + 1
    return (value if isinstance(value, list) else [value]), end
