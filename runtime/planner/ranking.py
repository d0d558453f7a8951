"""From the last step's text to a ranking: which items it names, and in which order. Seed 001, "Final step outputs ranking indices".

The text is indices from 0, alone or as a list, with few words around; or items by "item 5", or by their names. A number in a sentence is
none: "I looked at 3 cafes" ranks nothing. What can't be read is refused, never guessed.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from ...lang.literals import Reading, read, short

__all__ = ["Order", "name_of", "read_order"]

_NAMES = ("name", "item_name", "title", "label", "id", "item_id")
_LONGEST = 20_000
_LABEL = re.compile(
    r"^(?:(?:the )?(?:final |best |top |matching )*(?:answer|ranking|rank(?=[^\n]*\d[^\n\d]+\d)"
    r"|index|indices|indexes|items|item(?:\(s\))?|output|result"
    r"|order(?=[^\n]*\d[^\n\d]+\d))"
    r"(?: index| indices)?(?: is| are)?)?\s*[:=]?\s*",
    re.IGNORECASE,
)
_LISTED = re.compile(r"(?:[\s,;>→#\[\]()]|and\b|items?\b|\d{1,6}\b)+", re.IGNORECASE)
_DIGITS = re.compile(r"\d{1,6}")
_COUNT = re.compile(r"\b\d{1,6}\s+items?(?:\(s\))?(?!\s*[#\[:(]?\s*\d)(?!\w)", re.IGNORECASE)
"""How many there are: "2 items", "0 items"; no index."""
_COUNTED = re.compile(
    r"^\W*(?:(?:items|indices|indexes|results|matches)\W*[:=]\W*(\d{1,6})|(\d{1,6})\s+items?(?:\(s\))?)\W*$",
    re.IGNORECASE,
)
_PLACE = re.compile(r"^\W*(?:rank|order|place|position)\W*(\d{1,6})\W*$", re.IGNORECASE)
_PLACES = {"rank", "order"}
_ORDINAL = re.compile(r"^\s*(?:(?:rank|place|position)\s*#?\d{1,4}\s*[.):\-]|\d{1,4}[.):]|[-*•])\s+", re.IGNORECASE)
_MENTIONED = (
    re.compile(
        r"\b(?:best|answer|winner|choice|recommend(?:ed|ation)?)\b(?:(?!\bnot\b)[^.\n\d]){0,60}?(?:item|index|is|:|#)\s*\[?(\d{1,6})\b(?!\.\d)(?!\s+items?\b)",
        re.IGNORECASE,
    ),
    re.compile(
        r"\bitem\s*\[?(\d{1,6})\]?\s+is\s+(?:the\s+)?(?:best|only|winner|answer|right|correct)\b", re.IGNORECASE
    ),
)


@frozen
class Order:
    """Indices from 0, best first; ``unknown`` are those named that no item has; ``reason`` why there are none."""

    indices: tuple[int, ...] = ()
    unknown: tuple[str, ...] = ()
    reason: str = ""


def name_of(item: Any) -> str:
    """Return what an item is called; "" where it has no name."""
    if isinstance(item, str):
        return item if len(item) <= 200 else ""
    if isinstance(item, Mapping):
        for key in _NAMES:
            if isinstance(item.get(key), str | int) and str(item[key]).strip():
                return str(item[key])
    return ""


def read_order(text: str, items: Sequence[Any]) -> Order:
    """Return the items that ``text`` names. Never raises."""
    if len(text) > _LONGEST:
        return Order(reason=f"the output has {len(text):,} characters and is no list of indices")
    found = _as_value(text)
    if found is None:
        found = _as_lines(text)
    if found is None:
        found = _as_names(text, items)
    if found is None:
        found = _as_mentions(text)
    if found is None:
        return Order(reason=f"the output names no item: {short(' '.join(text.split()), 80)}")
    known = {each: None for each in found if type(each) is int and 0 <= each < len(items)}
    unknown = tuple(dict.fromkeys(short(str(each), 40) for each in found if each not in known))
    if not known:
        said = f"{', '.join(unknown[:3])}; the items are 0 to {len(items) - 1}" if unknown else "the list is empty"
        return Order((), unknown, f"the output names no item that is there: {said}")
    return Order(tuple(known), unknown)


def _as_value(text: str) -> list[Any] | None:
    """Read a JSON value, a Python list, a fenced block: a number, a list of numbers, an object with one of them."""
    got = read(text)
    value = got.value if isinstance(got, Reading) else None
    if isinstance(value, dict):
        lists = [each for key, each in value.items() if _is_label(str(key).replace("_", " "), each)]
        value = lists[0] if len(lists) == 1 else None
    if value is None or isinstance(value, dict | bool):
        return None
    listed = value if isinstance(value, list) else [value]
    made = [_whole(each) for each in listed]
    return made if all(each is not None for each in made) else None


def _is_label(key: str, value: Any) -> bool:
    """Say whether a key of an object stands for the answer; "rank" and "order" do so before a list only, before a number for a place."""
    if key.strip().casefold() in _PLACES:
        return isinstance(value, list)
    return _LABEL.fullmatch(key) is not None


def _whole(value: Any) -> int | None:
    if isinstance(value, dict):
        value = next((value[key] for key in ("index", "item", "idx") if key in value), None)
    if isinstance(value, str):
        digits = _DIGITS.findall(value) if len(value) <= 40 and _LISTED.fullmatch(value.strip()) else []
        return int(digits[0]) if len(digits) == 1 else None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _as_lines(text: str) -> list[Any] | None:
    """Read the last lines that are indices and nothing else, once a label and an ordinal number are taken off."""
    lines = [line.strip().strip("`*\"'.").strip() for line in text.strip().splitlines()]
    lines = _placed([line for line in lines if line])
    found: list[int] = []
    before = ""
    for line in reversed(lines):
        count = _COUNTED.match(line)
        if count is not None and found and int(count[1] or count[2]) == len(found):  # how many follow
            before = "."
            break
        bare = _bare(_ORDINAL.sub("", line)) or _bare(line)
        if bare is None:
            before = line
            break
        found = bare + found
    # Behind "Cafes that I looked at:" stands anything; behind "Ranking:", or a sentence that ends, the answer.
    counted = before.endswith(":") and not _LABEL.fullmatch(before)
    return found if found and not counted else None


def _placed(lines: list[str]) -> list[str]:
    """Return the lines without those that say a place ("Rank: 1") of the line behind them; all where places are not 1, 2, 3 ..."""
    places = [int(found[1]) for line in lines if (found := _PLACE.match(line))]
    if places != list(range(1, len(places) + 1)):
        return lines
    return [line for line in lines if not _PLACE.match(line)]


def _bare(line: str) -> list[int] | None:
    if _COUNT.search(line) or _COUNTED.match(line):
        return None
    rest = _LABEL.sub("", line, count=1).strip().strip("`*\"'.[]()").strip()
    found = _DIGITS.findall(rest) if _LISTED.fullmatch(rest) else []
    return list(map(int, found)) or None


def _as_names(text: str, items: Sequence[Any]) -> list[Any] | None:
    """Read lines that are names of items, which no two of them share."""
    places: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        if name := name_of(item):
            places.setdefault(_folded(name), []).append(index)
    lines = [line for line in text.strip().splitlines() if line.strip()]
    found = [
        places.get(_folded(_ORDINAL.sub("", line))) or places.get(_folded(_LABEL.sub("", line, count=1)))
        for line in lines
    ]
    return [each[0] for each in found if each] if found and all(each and len(each) == 1 for each in found) else None


def _folded(text: str) -> str:
    return " ".join(text.strip().strip("`*\"'.").split()).casefold()


def _as_mentions(text: str) -> list[Any] | None:
    """Read the one item that a sentence calls the best; of several it can't be told which is meant."""
    found = dict.fromkeys(int(number) for pattern in _MENTIONED for number in pattern.findall(text))
    return list(found) if len(found) == 1 else None
