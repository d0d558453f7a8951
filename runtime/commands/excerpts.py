"""Safe, bounded excerpts of data for prompts and messages. Seed 003, ``serialization.py``.

An excerpt is valid JSON, whatever the data: what is long is cut with a mark that says so, what nests deeply is left out,
what is no text (half a surrogate pair) is replaced. Making one takes time by what is shown, not by what there is.
"""

import json
import math
import re
from itertools import islice
from typing import Any

__all__ = ["clipped", "excerpt", "fenced", "shortened"]

_TEXT = 600
"""Characters of a text in an item that are shown."""
_ITEMS = 20
"""Items of a list in an item that are shown."""
_FIELDS = 40
_DEPTH = 4
_ITEM = 2_000
"""Characters that one item may take."""
_TICKS = re.compile("`+")
_BREAKS = {ord(c): f"\\u{ord(c):04x}" for c in "\x7f\x85\u2028\u2029"}
"""What some take for a line break, and JSON leaves as it is."""


def clipped(text: str, most: int, *, around: str = "") -> str:
    """Return ``text`` on one line, at most ``most`` characters of it, around the first occurrence of ``around``; cuts are marked."""
    start = text.find(around) if around else -1
    start = max(0, start - most // 3) if start > most // 2 else 0
    before, after = ("…" if start else ""), ("…" if start + most < len(text) else "")
    cut = text[start : start + most - len(before) - len(after)]
    return _sound(f"{before}{' '.join(cut.split())}{after}")


def shortened(value: Any, text: int = _TEXT, items: int = _ITEMS, depth: int = _DEPTH) -> Any:
    """Return ``value`` as a JSON value with long texts cut, long lists begun, deep parts left out; each is marked."""
    if isinstance(value, str):
        if len(value) <= text:
            return _sound(value)
        return _sound(f"{value[:text]}… [{len(value) - text:,} more characters]")
    if isinstance(value, dict):
        if depth == 0:
            return f"… [an object with {len(value):,} fields]"
        shown = {
            _sound(str(key)[:100]): shortened(inner, text, items, depth - 1)
            for key, inner in islice(value.items(), _FIELDS)
        }
        if len(value) > _FIELDS:
            shown["…"] = f"[{len(value) - _FIELDS:,} more fields]"
        return shown
    if isinstance(value, list | tuple):
        if depth == 0:
            return f"… [a list of {len(value):,}]"
        listed = [shortened(inner, text, items, depth - 1) for inner in islice(value, items)]
        return [*listed, f"… [{len(value) - items:,} more]"] if len(value) > items else listed
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < 10**40 else "… [a number of more than 40 digits]"
    return _sound(str(value)[:text])


def excerpt(value: Any, most: int = _ITEM) -> str:
    """Return ``value`` as one line of JSON of at most ``most`` characters; the bounds get tighter until it fits."""
    for text, items, depth in ((_TEXT, _ITEMS, _DEPTH), (200, 8, 3), (80, 4, 2), (30, 2, 1)):
        written = json.dumps(shortened(value, text, items, depth), ensure_ascii=False, separators=(", ", ": "))
        if len(written) <= most:
            return written.translate(_BREAKS)
    return json.dumps(f"{written[: most // 3]}… [cut]", ensure_ascii=False).translate(_BREAKS)


def fenced(text: str) -> str:
    """Return ``text`` between two fences that it does not contain: more backticks than stand side by side in it."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _sound(text: str) -> str:
    """Return ``text`` with what can't be encoded replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
