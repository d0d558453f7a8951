"""Results in pages: as much of a value as fits a bounded number of characters, and where the rest is.

What a page costs depends on what it shows, not on how large the value is.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Literal

import orjson
from attrs import frozen

from ...excerpts import shortened
from ...gasl.records import storable

__all__ = ["LIMIT", "Part", "chosen", "part_of", "size_of"]

LIMIT = 1_000
"""The most items of a page."""
_BRIEF = ((300, 10, 3), (80, 5, 2), (20, 3, 1))
"""How an item is shown that is larger than a page: characters of a text, items of a list, levels. The first that fits."""


@frozen
class Part:
    """A part of a value. ``kind``: "list" (``value`` are items), "object" (its members), "text" (characters) or "value" (whole).

    ``total`` and ``offset`` count items, members or characters; ``cut`` says that an item is shown in brief: it is larger than a page.
    """

    kind: Literal["list", "object", "text", "value"]
    value: Any
    offset: int
    shown: int
    total: int
    cut: bool = False

    @property
    def following(self) -> int | None:
        """Where the next part begins; None at the end."""
        end = self.offset + self.shown
        return end if end < self.total else None


def part_of(value: Any, offset: int, characters: int, limit: int = LIMIT) -> Part:
    """Return the part of ``value`` from ``offset`` on that has at most about ``characters`` characters and ``limit`` items.

    At least one item is shown where there is one, in brief if it must be.
    """
    limit = max(1, min(limit, LIMIT))
    if isinstance(value, str):
        text = value[offset : offset + characters]
        return Part("text", storable(text), offset, len(text), len(value))
    if isinstance(value, list):
        items, cut = _fitting(value[offset : offset + limit], characters, lambda item: item)
        return Part("list", items, offset, len(items), len(value), cut)
    if isinstance(value, dict):
        members = list(islice(value.items(), offset, offset + limit))
        pairs, cut = _fitting(members, characters, lambda member: {member[0]: member[1]})
        shown = {str(storable(str(name))): item for pair in pairs for name, item in pair.items()}
        return Part("object", shown, offset, len(pairs), len(value), cut)
    return Part("value", storable(value), 0, 1, 1)


def chosen(rows: Sequence[Any], first: Callable[[Any], bool], most: int, characters: int) -> list[int]:
    """Return which of ``rows`` (JSON values) a result lists, in order: those for which ``first`` holds before the others.

    At most ``most``, of about ``characters`` characters together; one at least where there is one.
    """
    shown: list[int] = []
    left = characters
    for at in sorted(range(len(rows)), key=lambda at: not first(rows[at]))[:most]:
        left -= size_of(rows[at], characters)
        if left < 0 and shown:
            break
        shown.append(at)
    return sorted(shown)


def _fitting(items: list[Any], characters: int, form: Callable[[Any], Any]) -> tuple[list[Any], bool]:
    shown: list[Any] = []
    left, cut = characters, False
    for item in items:
        made = form(item)
        size = size_of(made, characters)
        if size > characters:  # it would fit no page
            made, cut = _brief(made, characters), True
            size = size_of(made, characters)
        if size > left and shown:
            break
        shown.append(storable(made))
        left -= size
    return shown, cut


def _brief(item: Any, characters: int) -> Any:
    for text, items, depth in _BRIEF:
        made = shortened(item, text, items, depth)
        if size_of(made, characters) <= characters:
            return made
    return "… [too large to be shown]" if not isinstance(item, dict) or len(item) != 1 else {**dict.fromkeys(item, "…")}


def size_of(value: Any, most: int) -> int:
    """Return about how many characters ``value`` has as JSON; where it is more than ``most``, only a number above that."""
    if isinstance(value, str) and len(value) > most:
        return len(value)
    try:
        return len(orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS))
    except (
        TypeError,
        ValueError,
        RecursionError,
    ):  # half of a surrogate pair, a number of many digits, deeper than JSON is read
        return len(repr(value)[: most + 1]) if not isinstance(value, dict | list) else most + 1
