"""Prompts: safe, bounded excerpts of data, and prompt files with placeholders. See ``docs/design/gasl.md#prompts``.

An excerpt is valid JSON for any data: long values are cut with a mark, deeply nested parts are omitted, invalid text (a lone
surrogate) is replaced. The time depends on the size of the excerpt, not of the data.
"""

import json
import math
import re
from collections.abc import Mapping
from importlib.resources import files
from itertools import islice
from typing import Any

from ..lang.errors import KnotworkError

NAMING = ("id", "name", "label", "title", "source", "target")
"""Fields that identify an item: an excerpt keeps them before all others."""
_TEXT = 600
"""Maximum characters of a text in an item."""
_ITEMS = 20
"""Maximum number of elements of a list in an item."""
_FIELDS = 40
_DEPTH = 4
_BOUNDS = (
    (_TEXT, _ITEMS, _DEPTH, _FIELDS, True), (200, _ITEMS, _DEPTH, _FIELDS, True), (80, _ITEMS, 3, 20, True),
    (60, _ITEMS, 3, 6, True), (60, _ITEMS, 3, 6, False), (60, _ITEMS, 2, 2, False), (60, _ITEMS, 2, 0, False),
    (60, 8, 2, 2, False), (60, 8, 2, 0, False), (30, 4, 2, 0, False), (30, 2, 1, 0, False),
)  # fmt: skip
"""Limits from wide to tight: characters of a text, items, depth, fields, and whether long fields are shown in part.

Long fields are first cut, then omitted; then other fields are omitted, then items.
"""
_ITEM = 2_000
"""Maximum characters of one item."""
_TICKS = re.compile("`+")
_BREAKS = {ord(c): f"\\u{ord(c):04x}" for c in "\x7f\x85\u2028\u2029"}
"""Escapes for characters that some readers take for a line break and JSON does not escape."""


def clipped(text: str, most: int, *, around: str = "") -> str:
    """Return ``text`` on one line with at most ``most`` characters, around the first ``around``; cuts are marked."""
    start = text.find(around) if around else -1
    start = max(0, start - most // 3) if start > most // 2 else 0
    before, after = ("…" if start else ""), ("…" if start + most < len(text) else "")
    cut = text[start : start + most - len(before) - len(after)]
    return _encodable(f"{before}{' '.join(cut.split())}{after}")


def shortened(
    value: Any, text: int = _TEXT, items: int = _ITEMS, depth: int = _DEPTH, fields: int = _FIELDS, long: bool = True
) -> Any:
    """Return ``value`` as a JSON value with long texts cut, long lists shortened, deep parts omitted; each is marked.

    An object with more than ``fields`` fields keeps its identifying fields, and short fields before long ones. ``long``: show
    the beginning of long fields, which are otherwise omitted.
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
            _encodable(str(key)[:100]): shortened(inner, text, inside, max(0, depth - 1), fields, long)
            for key, inner in kept.items()
        }
        if len(value) > len(kept):
            shown["…"] = f"… [{len(value) - len(kept):,} more fields]"
        return shown
    if isinstance(value, list | tuple):
        if depth == 0:
            return f"… [a list of {len(value):,}]"
        listed = [shortened(inner, text, inside, depth - 1, fields, long) for inner in islice(value, items)]
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
    """Return the shown fields in their order: identifying fields have priority, then short ones, then long ones.

    Only the first fields are read, so that the time does not depend on their number.
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


def excerpt(value: Any, most: int = _ITEM, items: int = _ITEMS) -> str:
    """Return ``value`` as one line of JSON of at most ``most`` characters; the limits are tightened until it fits.

    A list shows at most ``items`` elements, and their identifying fields as long as there is space.
    """
    for text, listed, depth, fields, long in _BOUNDS:
        shown = shortened(value, text, items if listed == _ITEMS else listed, depth, fields, long)
        written = json.dumps(shown, ensure_ascii=False, separators=(", ", ": "))
        if len(written) <= most:
            return written.translate(_BREAKS)
    return json.dumps(f"{written[: most // 3]}… [cut]", ensure_ascii=False).translate(_BREAKS)


def fenced(text: str) -> str:
    """Return ``text`` between two fences that it does not contain: more backticks than its longest run of backticks."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _encodable(text: str) -> str:
    """Return ``text`` with characters that can't be encoded replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


# Short JSON values for histories and tool results.


def cut(text: str, most: int) -> str:
    """Return ``text`` with at most ``most`` characters; an ellipsis is the last one if the text is cut."""
    return text if len(text) <= most else text[: most - 1] + "…"


_SHOWN = 10
"""Maximum items of a list, or keys of an object, in an abridged value."""
_DEEPEST = 6
"""Maximum depth of an abridged value."""


def abridged(value: Any, most: int) -> Any:
    """Return a short form of ``value`` as JSON: texts cut to ``most`` characters, lists and objects to their first items.

    An ellipsis with their number replaces the omitted items. The cost does not depend on the size of the value.
    """
    return _abridged(value, most, _DEEPEST)


def _abridged(value: Any, most: int, depth: int) -> Any:
    if isinstance(value, str):
        return cut(value, most)
    if not isinstance(value, list | tuple | Mapping):
        return value
    if depth == 0:
        return "…"
    if isinstance(value, Mapping):
        first = list(islice(value.items(), 2 * _SHOWN))
        known = {name for name, _ in first}
        first += [(name, value[name]) for name in NAMING if name in value and name not in known]
        made = {cut(str(name), most): _abridged(item, most, depth - 1) for name, item in first}
        return made if len(value) == len(first) else {**made, "…": f"{len(value) - len(first)} more"}
    items = [_abridged(item, most, depth - 1) for item in value[:_SHOWN]]
    return items if len(value) <= _SHOWN else [*items, f"… {len(value) - _SHOWN} more"]


def storable(value: Any) -> Any:
    """Return ``value`` with everything replaced that a state rejects: lone surrogates escaped, other numbers as texts."""
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


# Prompts in separate files (``prompts/NAME.txt`` next to the code that uses them), and how they are filled in.
# A prompt file can be read as a whole, compared with the seed that it was taken from, and changed without touching code.
# ``{name}`` is a placeholder; ``{{name}}`` stands for the literal braces, all other braces are text: ``{(input)}`` is
# unchanged.
# Placeholders are filled in one pass: inserted text is never scanned again. Callers put external text
# between fences (``fenced``).

_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")
_LINE = re.compile(r"^\{([a-z_]+)\}[ \t]*$\n*", re.MULTILINE)


class PromptError(KnotworkError):
    """A prompt file and the code that fills it in do not match: an internal error, never a user's."""


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
    """Return the names in braces in ``text``."""
    return frozenset(name for _, name in _PLACEHOLDER.findall(text) if name)


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return ``text`` with its placeholders filled in like ``filled``, after checking that names and placeholders match.

    Raises ``PromptError`` for a placeholder without a value, and for a value without a placeholder.
    """
    named = placeholders(text)
    if missing := sorted(named - values.keys()):
        raise PromptError(f"no value for {', '.join(f'{{{name}}}' for name in missing)}")
    if unknown := sorted(values.keys() - named):
        raise PromptError(f"no placeholder {', '.join(f'{{{name}}}' for name in unknown)} in the prompt")
    return filled(text, values)


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return ``text`` with its placeholders filled in, in one pass. A line with only an empty placeholder is removed."""
    kept = _LINE.sub(lambda found: "" if values.get(found[1]) == "" else found[0], text).strip()
    return _PLACEHOLDER.sub(lambda found: f"{{{found[1]}}}" if found[1] else values[found[2]], kept)
