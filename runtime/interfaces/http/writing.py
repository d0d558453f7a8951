"""JSON as it goes to clients and into the history."""

import json
from typing import Any

import orjson

__all__ = ["written"]


def written(value: Any) -> bytes:
    """Return JSON. Half a surrogate pair, which a client of the host's own may return, is no text and becomes a "?".

    Whole numbers may be of any size.
    """
    try:
        return orjson.dumps(value)
    except (TypeError, UnicodeEncodeError):
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
