"""Helpers for prompts: safe, bounded excerpts of data, and prompt files with placeholders. See ``docs/design/gasl.md#prompts``.

An excerpt is valid JSON for any data: long values are cut and marked, deeply nested parts are omitted, invalid text (a lone
surrogate) is replaced. The time to make an excerpt is proportional to the size of the excerpt, not to the size of the data.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import islice
from typing import Any

from ..lang.errors import KnotworkError

NAMING = ("id", "name", "label", "title", "source", "target")
"""Fields that identify an item. If an excerpt omits fields, it omits these fields last."""
_TEXT = 600
"""Maximum characters of a string in an item."""
_ITEMS = 20
"""Maximum number of elements of a list in an item."""
_FIELDS = 40
_DEPTH = 4
_BOUNDS = (
    (_TEXT, _ITEMS, _DEPTH, _FIELDS, True), (200, _ITEMS, _DEPTH, _FIELDS, True), (80, _ITEMS, 3, 20, True),
    (60, _ITEMS, 3, 6, True), (60, _ITEMS, 3, 6, False), (60, _ITEMS, 2, 2, False), (60, _ITEMS, 2, 0, False),
    (60, 8, 2, 2, False), (60, 8, 2, 0, False), (30, 4, 2, 0, False), (30, 2, 1, 0, False),
)  # fmt: skip
"""Sets of limits, from the widest to the tightest.

Each set limits the characters of a string, the items of a list, the depth and the fields, and says whether long fields are shown in part.
Tighter limits first cut long fields, then omit them, then omit other fields, and finally omit items.
"""
_ITEM = 2_000
"""Maximum characters of one item."""
_TICKS = re.compile("`+")
_BREAKS = {ord(c): f"\\u{ord(c):04x}" for c in "\x7f\x85\u2028\u2029"}
"""Escapes for characters that JSON does not escape although some programs treat them as line breaks."""


def clipped(text: str, most: int, *, around: str = "") -> str:
    """Return at most ``most`` characters of ``text`` on one line; cuts are marked.

    If ``around`` occurs in ``text``, the characters around its first occurrence are returned, otherwise the first characters.
    """
    start = text.find(around) if around else -1
    start = max(0, start - most // 3) if start > most // 2 else 0
    before, after = ("…" if start else ""), ("…" if start + most < len(text) else "")
    cut = text[start : start + most - len(before) - len(after)]
    return _encodable(f"{before}{' '.join(cut.split())}{after}")


def shortened(
    value: Any, text: int = _TEXT, items: int = _ITEMS, depth: int = _DEPTH, fields: int = _FIELDS, long: bool = True,
    *, marked: bool = True,
) -> Any:  # fmt: skip
    """Return ``value`` as a JSON value: long strings are cut, long lists shortened and deep parts omitted, each with a mark.

    An object with more than ``fields`` fields keeps its identifying fields first, then short fields, then long fields. If ``long`` is
    true, the beginning of long fields is shown; otherwise long fields are omitted. If ``marked``, each object says how many of its fields
    were omitted.
    """
    if isinstance(value, str):
        if len(value) <= text:
            return _encodable(value)
        return _encodable(f"{value[:text]}… [{len(value) - text:,} more characters]")
    inside = min(items, _ITEMS)
    if isinstance(value, dict):
        kept = _shown_fields(value, fields, text, long) if depth else _names(value)
        if depth == 0 and not kept:
            return f"… [an object with {len(value):,} fields]"
        shown = {
            _encodable(str(key)[:100]): shortened(inner, text, inside, max(0, depth - 1), fields, long, marked=marked)
            for key, inner in kept.items()
        }
        if marked and len(value) > len(kept):
            shown["…"] = f"… [{len(value) - len(kept):,} more fields]"
        return shown
    if isinstance(value, list | tuple):
        if depth == 0:
            return f"… [a list of {len(value):,}]"
        listed = [
            shortened(inner, text, inside, depth - 1, fields, long, marked=marked) for inner in islice(value, items)
        ]
        return [*listed, f"… [{len(value) - items:,} more]"] if len(value) > items else listed
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < 10**40 else "… [a number of more than 40 digits]"
    return _encodable(str(value)[:text])


def _names(value: dict[Any, Any]) -> dict[Any, Any]:
    return {key: value[key] for key in NAMING if isinstance(value.get(key), str | int | float)}


def _shown_fields(value: dict[Any, Any], fields: int, text: int, long: bool) -> dict[Any, Any]:
    """Return the fields to show, in their original order. Identifying fields are chosen first, then short fields, then long fields.

    Only the first fields are read, so that the time does not depend on the number of fields.
    """
    if long and len(value) <= fields:
        return value
    names = _names(value)
    first = dict(islice(value.items(), 2 * _FIELDS))
    others = [key for key in first if key not in names and (long or not _is_long(first[key], text))]
    most = fields if names else max(fields, 1)
    chosen = set(sorted(others, key=lambda key: _is_long(first[key], text))[:most])
    return {**{key: inner for key, inner in names.items() if key not in first},
            **{key: inner for key, inner in first.items() if key in names or key in chosen}}  # fmt: skip


def _is_long(value: Any, text: int) -> bool:
    return isinstance(value, dict | list | tuple) or (isinstance(value, str) and len(value) > text)


def excerpt(value: Any, most: int = _ITEM, items: int = _ITEMS, *, marked: bool = True) -> str:
    """Return ``value`` as one line of JSON of at most ``most`` characters; the limits are tightened until the line fits.

    At most ``items`` elements of a list are shown. The identifying fields of these elements are shown if there is enough space. If
    ``marked``, each object says how many of its fields were omitted.
    """
    for text, listed, depth, fields, long in _BOUNDS:
        shown = shortened(value, text, items if listed == _ITEMS else listed, depth, fields, long, marked=marked)
        written = json.dumps(shown, ensure_ascii=False, separators=(", ", ": "))
        if len(written) <= most:
            return written.translate(_BREAKS)
    return json.dumps(f"{written[: most // 3]}… [cut]", ensure_ascii=False).translate(_BREAKS)


def fenced(text: str) -> str:
    """Return ``text`` between two fences. A fence has more backticks than the longest run of backticks in ``text``."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _encodable(text: str) -> str:
    """Return ``text``; characters that can't be encoded as UTF-8 are replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


# Short JSON values for histories and tool results.


def cut(text: str, most: int) -> str:
    """Return ``text`` with at most ``most`` characters. If ``text`` is cut, the last character is an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"


_MOST_ELEMENTS = 10
"""Maximum items of a list, or keys of an object, in an abridged value."""
_DEEPEST = 6
"""Maximum depth of an abridged value."""


def abridged(value: Any, most: int) -> Any:
    """Return a short form of ``value`` as JSON: strings are cut to ``most`` characters, lists and objects to their first items.

    An ellipsis and the number of omitted items replace the omitted items. The time does not depend on the size of ``value``.
    """
    return _abridged(value, most, _DEEPEST)


def _abridged(value: Any, most: int, depth: int) -> Any:
    if isinstance(value, str):
        return cut(value, most)
    if not isinstance(value, Sequence | Mapping):
        return value
    if depth == 0:
        return "…"
    if isinstance(value, Mapping):
        first = list(islice(value.items(), 2 * _MOST_ELEMENTS))
        known = {name for name, _ in first}
        first += [(name, value[name]) for name in NAMING if name in value and name not in known]
        made = {cut(str(name), most): _abridged(item, most, depth - 1) for name, item in first}
        return made if len(value) == len(first) else {**made, "…": f"{len(value) - len(first)} more"}
    items = [_abridged(item, most, depth - 1) for item in value[:_MOST_ELEMENTS]]
    return items if len(value) <= _MOST_ELEMENTS else [*items, f"… {len(value) - _MOST_ELEMENTS} more"]


def storable(value: Any) -> Any:
    """Return ``value`` in a form that a state accepts.

    Lone surrogates are escaped. Numbers that a state rejects (NaN, infinity, integers beyond 64 bits) become strings, and so do
    values of other types.
    """
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {storable(str(name)): storable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return cut(repr(value), 200)


# Prompts in separate files (``prompts/NAME.txt`` next to the code that uses them), and the functions that fill them in.
# A prompt file can be read on its own, compared with the specification from which it was copied, and changed without changing code.
# ``{name}`` is a placeholder, and ``{{name}}`` produces the text ``{name}``. All other braces are text: ``{(input)}`` is
# unchanged.
# Placeholders are filled in one pass: inserted text is never scanned again. Callers put external text
# between fences (``fenced``).

_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")
_LINE = re.compile(r"^\{([a-z_]+)\}[ \t]*$\n*", re.MULTILINE)


class PromptError(KnotworkError):
    """Raised if a prompt file does not match the code that fills it in.

    A ``PromptError`` is an internal error, not a mistake by the user.
    """


def read_prompt(package: str, name: str) -> str:
    """Return the text of ``prompts/NAME.txt`` in ``package`` (the caller's ``__package__``), without the last line break.

    Raises ``PromptError`` if the file is missing.
    """
    try:
        text = (files(package) / "prompts" / f"{name}.txt").read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PromptError(f"{package} has no prompt {name!r}") from None
    return text.removesuffix("\n")


def placeholders(text: str) -> frozenset[str]:
    """Return the names of the placeholders in ``text``."""
    return frozenset(name for _, name in _PLACEHOLDER.findall(text) if name)


def fill(text: str, values: Mapping[str, str]) -> str:
    """Check that the names in ``values`` match the placeholders in ``text``, and return the result of ``filled``.

    Raises ``PromptError`` for a placeholder without a value, and for a value without a placeholder.
    """
    named = placeholders(text)
    if missing := sorted(named - values.keys()):
        raise PromptError(f"no value for {', '.join(f'{{{name}}}' for name in missing)}")
    if unknown := sorted(values.keys() - named):
        raise PromptError(f"the prompt does not contain {', '.join(f'{{{name}}}' for name in unknown)}")
    return filled(text, values)


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return ``text`` with its placeholders filled in, in one pass.

    A line that contains only a placeholder is removed if its value is empty.
    """
    kept = _LINE.sub(lambda found: "" if values.get(found[1]) == "" else found[0], text).strip()
    return _PLACEHOLDER.sub(lambda found: f"{{{found[1]}}}" if found[1] else values[found[2]], kept)
