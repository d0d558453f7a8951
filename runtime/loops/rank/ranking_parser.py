"""Reads the output of the last step as a ranking: the named items and their order. See ``docs/design/loops.md#ranking``.

The text may contain indices from 0, alone or as a list, with few words around them. The text may also name items, as "item 5" or by their
names. An index may be followed by the item's name and an explanation. A number in a sentence is not an index: "I looked at 3 cafes" ranks
nothing. A number that contradicts a name, two items in one sentence, and unreadable text are rejected; the parser never guesses. "No item
fits" is a valid result.
"""

import re
from collections.abc import Sequence
from typing import Any

from attrs import evolve, frozen

from ....lang.answers import bare_text
from ....lang.coercion import Fit, as_type, choice_of
from ....lang.literals import Reading, read, short
from ....lang.unicode_forms import canonical
from .item_names import LABEL, ORDINAL, Names, folded_name, name_of

_LONGEST = 20_000
_EMPTY = re.compile(r"\[\s*\]\s*")
_LISTED = re.compile(r"(?:[\s,;>→#\[\]()]|and\b|items?\b|\d{1,6}\b)+", re.IGNORECASE)
_DIGITS = re.compile(r"\d{1,6}")
_COUNT = re.compile(r"\b\d{1,6}\s+items?(?:\(s\))?(?!\s*[#\[:(]?\s*\d)(?!\w)", re.IGNORECASE)
"""A count of items: "2 items", "0 items"; not an index."""
_COUNTED = re.compile(
    r"^\W*(?:(?:items|indices|indexes|results|matches)\W*[:=]\W*(\d{1,6})|(\d{1,6})\s+items?(?:\(s\))?)\W*$",
    re.IGNORECASE,
)
_PLACE = re.compile(r"^\W*(?:rank|order|place|position)\W*(\d{1,6})\W*$", re.IGNORECASE)
_PLACES = {"rank", "order"}
_RANKED = re.compile(r"\W*(?:rank|place|position)\s*#?(\d{1,4})\s*[.):\-]\W*", re.IGNORECASE)
"""The beginning of a line about one place of a ranking: "Rank 1: "."""
_INDEX_AND_NAME = re.compile(r"(\d{1,6})\s*:\s*(.+)")
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
    """Indices from 0, best first. ``unknown`` are named indices of items that do not exist; ``reason`` says why no index was found.

    ``none`` is true if the text says that no item fits.
    """

    indices: tuple[int, ...] = ()
    unknown: tuple[str, ...] = ()
    reason: str = ""
    none: bool = False


def read_order(text: str, items: Sequence[Any]) -> Order:
    """Return the items that ``text`` names. Never raises."""
    if len(text) > _LONGEST:
        return Order(reason=f"the output has {len(text):,} characters and is not a list of indices")
    names = Names.of(items)
    order = _read(canonical(text.strip()), names, len(items))
    return evolve(order, reason=names.unmasked(order.reason)) if order.reason else order


def _read(text: str, names: Names, count: int) -> Order:
    own = _INDEX_AND_NAME.fullmatch(folded_name(bare_text(LABEL.sub("", text, count=1))))
    if own is not None and (called := set(names.indices.get(own[2], ()))) and int(own[1]) < count:
        number = int(own[1])
        return Order((number,)) if number in called else Order(reason=_contradiction([number], called, names))
    if reason := names.twofold(text):
        return Order(reason=reason)
    answer = names.masked(re.sub(r"^[ \t]*>[ \t]?", "", text, flags=re.MULTILINE))
    bare = LABEL.sub("", answer, count=1)
    empty = _EMPTY.match(bare)
    rest = answer if empty is None else bare[empty.end() :]
    if (empty and not rest.strip()) or _says_none(rest, names):
        return Order(none=True)
    found = _as_value(answer, names)
    if isinstance(found, str):
        return _read(found, names, count)
    if found is None and "\\boxed" in answer:
        boxed = as_type(answer, "int")
        found = [boxed.value] if isinstance(boxed, Fit) else None
    if found is None:
        found = _as_lines(answer)
        named = names.mentioned(answer) if found is not None else set()
        if found is not None and named and not named.intersection(found):
            return Order(reason=_contradiction(found, named, names))
    if found is None:
        found = _as_entries(answer, names)
    if isinstance(found, Order):
        return found
    if found is None:
        found = _as_choice(answer, names)
    if found is None:
        found = _as_mentions(answer, names)
    if found is None:
        return Order(reason=f"the output names no item: {short(' '.join(text.split()), 80)}")
    known = {each: None for each in found if type(each) is int and 0 <= each < count}
    unknown = tuple(dict.fromkeys(short(str(each), 40) for each in found if each not in known))
    if not known:
        said = f"{', '.join(unknown[:3])}; the items are 0 to {count - 1}" if unknown else "the list is empty"
        return Order((), unknown, f"the output names only unknown items: {said}")
    return Order(tuple(known), unknown)


def _contradiction(found: Sequence[Any], named: "set[int]", names: Names) -> str:
    numbers, called = (
        ", ".join(map(str, found[:3])),
        ", ".join(short(names.own[each], 40) for each in sorted(named)[:3]),
    )
    return f"the output contradicts itself: it gives the index {numbers}, but names {called}"


_NONE = re.compile(
    r"(?:there\s+(?:is|are)\s+)?(?:"
    r"(?:none|nothing)(?:\s+of\s+(?:them|these|those|the\s+\w+))?|no\s+(?:matching\s+|suitable\s+)?(?:items?|match(?:es)?|results?)"
    r"|(?:0|zero)\s+(?:items?|match(?:es)?|results?))(?:\(s\))?",
    re.IGNORECASE,
)
_FITS = re.compile(
    r"(?:none|nothing|no|zero|0)\b[^\n]{0,200}?\b(?:match|fit|qualif|suit|satisf|meet|fulfil|has|have|appl)",
    re.IGNORECASE,
)
_CONTRAST = re.compile(
    r"\b(?:but|however|except|although|though|closest|nearest|best|better|only|other|besides|unless|still|yet|if|maybe|perhaps|sure)\b",
    re.IGNORECASE,
)
_AS_ITEM = re.compile(r"(?:\bitem\s*\[?#?|\bindex\s*\[?#?|#|\[)\s*(\d{1,6})\b", re.IGNORECASE)
_DENIAL = re.compile(
    r"\b(?:not|no|none|never|neither|nor|without|except|avoid|unlike|cannot|instead|rather|lacks?|fails?|but|or|either|if|unless|maybe|"
    r"perhaps|might|could|would|almost|probably|unsure|wrong|worst)\b|n['\u2019]t\b|\?",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"[*_`]*(?:item\s*|index\s*)?[#\[(]*\s*(\d{1,6})\s*[\])]*[*_`]*(?![\w%]|[.,:/]\d)", re.IGNORECASE
)
_HEADING = re.compile(
    r"[^\d]{0,60}\b(?:rank|answer|best|result|match|order|recommend|final)(?:(?!\bnot?\b)[^\d]){0,60}:[*_]*",
    re.IGNORECASE,
)
"""A line that introduces the items: "Here is the ranking:"."""
_PLACED_NUMBER = re.compile(r"(?:[-*•]\s+|\d{1,4}[.)]\s+)(?=[*_`#\[(]*(?:item\s*)?[#\[(]*\d)", re.IGNORECASE)


def _says_none(text: str, names: Names) -> bool:
    """Return whether ``text`` says that no item fits, and names no item."""
    text = re.sub(r"^\s*[-*\u2022]\s+", "", text)
    bare = LABEL.sub("", text.strip().strip("`*\"'.!").strip(), count=1).strip().strip("`*\"'.!").strip()
    if folded_name(bare) in names.indices:
        return False
    if _NONE.fullmatch(bare):
        return True
    begins = _NONE.match(bare) or re.match(r"(?:none|nothing|no)\b", bare, re.IGNORECASE)
    rest = re.sub(r"^(?:0|zero)\b", "", bare, flags=re.IGNORECASE)
    if begins is None or not _FITS.match(bare) or _CONTRAST.search(bare) or _AS_ITEM.search(rest):
        return False
    return not names.mentioned(bare) and not re.search(r"(?:^|\n)\W*\d+\W*(?:\n|$)", rest)


def _as_value(text: str, names: Names) -> list[Any] | str | Order | None:
    """Read a JSON value, a Python list or a fenced block: a number, a list of numbers or names, or an object with such a value.

    Strings are returned as text, one per line. An empty list says that no item fits, also if an item is called so.
    """
    got = read(text)
    value = got.value if isinstance(got, Reading) else None
    while isinstance(value, dict) and len(value) == 1 and isinstance(inner := next(iter(value.values())), dict):
        value = inner
    if isinstance(value, dict) and value and all(map(str.isdecimal, value)):
        return "\n".join(f"{place}. {each}" for place, each in value.items())
    if isinstance(value, dict) and name_of(value) and any(key in value for key in _INDEX_KEYS):
        value = [value]
    if isinstance(value, dict) and sum(key in value for key in _INDEX_KEYS) > 1:
        value = [value]
    if isinstance(value, dict):
        lists = [each for key, each in value.items() if _is_label(str(key).replace("_", " "), each)]
        value = lists[0] if len(lists) == 1 else None
        if isinstance(value, str):
            return value
    if value is None or isinstance(value, dict | bool):
        return None
    if value == []:
        return Order(none=True)
    if isinstance(value, str) and value.strip() and value != text:
        return value
    listed = value if isinstance(value, list) else [value]
    made = [_index_of(each, names) for each in listed]
    if None not in made:
        pairs = list(zip(listed, made, strict=True))
        is_name = {at for at, (each, index) in enumerate(pairs) if isinstance(each, str) or _is_called(each, names)}
        called = {index for at, (_, index) in enumerate(pairs) if at in is_name and index is not None}
        bare = [index for at, (each, index) in enumerate(pairs) if at not in is_name and not isinstance(each, dict)]
        known = min(called, default=0) >= 0
        return Order(reason=_contradiction(bare, called, names)) if bare and called - {*bare} and known else made
    if all(isinstance(each, str) and "\n" not in each for each in listed):
        return "\n".join(listed)
    return (
        Order(reason=f"the output names no item: {short(text, 80)}")
        if text.lstrip("` \n").startswith(("[{", "{"))
        else None
    )


_INDEX_KEYS = ("index", "item", "idx")


def _is_label(key: str, value: Any) -> bool:
    """Return whether a key labels the answer; "rank" and "order" only label lists, because a number after them is a position."""
    if key.strip().casefold() in _PLACES:
        return isinstance(value, list)
    return LABEL.fullmatch(key) is not None


def _index_of(value: Any, names: Names) -> int | None:
    if isinstance(value, dict):
        called = names.indices.get(folded_name(name_of(value)), ()) if name_of(value) else ()
        given = [value[key] for key in _INDEX_KEYS if key in value]
        if not given:
            return called[0] if len(called) == 1 else None
        found = {_index_of(each, names) for each in given if not isinstance(each, dict)}
        index = found.pop() if len(found) == 1 else None
        return None if called and index not in called else index
    if isinstance(value, str):
        called = names.indices.get(folded_name(value), ())
        if len(called) == 1:
            return called[0]
        digits = _DIGITS.findall(value) if len(value) <= 40 and _LISTED.fullmatch(value.strip()) else []
        if len(digits) == 1:
            return int(digits[0])
        entry = _parse_entry(canonical(value.strip()), names)
        return (
            entry[0]
            if entry is not None and entry[0] in (entry[1], *(() if entry[1] is not None else (entry[0],)))
            else None
        )
    if _is_called(value, names):
        return names.indices[str(value)][0]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _is_called(value: Any, names: Names) -> bool:
    """Return whether a number is no index, and the exact name of one item."""
    return type(value) is int and value >= names.count and len(names.indices.get(str(value), ())) == 1


def _as_lines(text: str) -> list[Any] | None:
    """Read the last lines if they contain only indices; a label and an ordinal number before an index are ignored."""
    lines = [line.strip().strip("`*\"'.").strip() for line in text.strip().splitlines()]
    lines = _without_places([line for line in lines if line])
    found: list[int] = []
    before = ""
    for line in reversed(lines):
        count = _COUNTED.match(line)
        if count is not None and found and int(count[1] or count[2]) == len(found):  # a count of the items that follow
            before = "."
            break
        bare = _bare_indices(ORDINAL.sub("", line)) or _bare_indices(line)
        if bare is None:
            before = line
            break
        found = bare + found
    # Lines after "Cafes that I looked at:" may be anything; lines after "Ranking:" or after a complete sentence are the answer.
    counted = before.endswith(":") and not LABEL.fullmatch(before)
    return found if found and not counted else None


def _without_places(lines: list[str]) -> list[str]:
    """Return the lines without position lines ("Rank: 1") before an item; all lines if the positions are not 1, 2, 3 ..."""
    places = [int(found[1]) for line in lines if (found := _PLACE.match(line))]
    if places != list(range(1, len(places) + 1)):
        return lines
    return [line for line in lines if not _PLACE.match(line)]


def _bare_indices(line: str) -> list[int] | None:
    if _COUNT.search(line) or _COUNTED.match(line):
        return None
    rest = LABEL.sub("", line, count=1).strip().strip("`*\"'.[]()").strip()
    found = _DIGITS.findall(rest) if _LISTED.fullmatch(rest) else []
    return list(map(int, found)) or None


def _as_entries(text: str, names: Names) -> list[Any] | Order | None:
    """Read lines that each name one item by index, name or both, and may add an explanation."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) == 1 and (pieces := _listed(LABEL.sub("", text, count=1), names)) is not None:
        lines = pieces
    if len(lines) > 1 and _HEADING.fullmatch(lines[0]) and not names.mentioned(lines[0]):
        lines = lines[1:]
    if len(lines) > 1 and all(places := [_RANKED.match(line) for line in lines]):
        lines = [f"{place[1]}. {line[place.end() :]}" for place, line in zip(places, lines, strict=True) if place]
    found: list[tuple[int | None, int | None]] = []
    for line in lines:
        each = _parse_entry(line, names)
        if each is None:
            return None
        found.append(each)
    numbers, called = [each[0] for each in found], [each[1] for each in found]
    if all(number is None or name is None or number == name for number, name in found):
        made = [number if number is not None else name for number, name in found]
        bare = [number for number, name in found if name is None]
        only = {name for number, name in found if number is None and name is not None}
        # Lines with only an index and lines with only a name are one list if both say the same.
        return made if not bare or not only or len(set(made)) == 1 else Order(reason=_contradiction(bare, only, names))
    is_list = len(found) > 1 and all(map(_LIST_MARK.match, lines))
    if is_list and numbers == list(range(1, len(found) + 1)) and all(name is not None for name in called):
        return called  # the numbers are positions, as in "1. Milkcrate Cafe\n2. Blue Door"
    at = next(at for at, (number, name) in enumerate(found) if None not in (number, name) and number != name)
    return Order(reason=_contradiction([numbers[at]], {called[at] or 0}, names))


_LIST_MARK = re.compile(r"[\s>*_-]*\d{1,4}[.)]\s")
"""The mark of a line in a numbered list of Markdown."""


def _listed(line: str, names: Names) -> list[str] | None:
    """Return the parts of a line that consists of indices with names: ``5 (Milkcrate Cafe), 1 (Blue Door)``."""
    if names.pattern is None:
        return None
    called: list[str] = []

    def store_match(match: "re.Match[str]") -> str:
        called.append(match[0])
        return f"\x00{len(called) - 1}\x00"

    marked = names.pattern.sub(store_match, line)
    pieces = [each for each in re.split(r"\s*(?:[,;>→]|\band\b)\s*", marked) if each]
    if len(pieces) < 2 or not all(_PIECE.fullmatch(each) for each in pieces):
        return None
    return [re.sub(r"\x00(\d+)\x00", lambda match: called[int(match[1])], each) for each in pieces]


_PIECE = re.compile(
    r"[^\w\x00]*(?:item\s*|index\s*)?\W*(?:\d{1,6}\W*)?\x00\d+\x00\W*(?:(?:item\s*|index\s*)?\d{1,6})?\W*",
    re.IGNORECASE,
)


def _parse_entry(line: str, names: Names) -> tuple[int | None, int | None] | None:
    """Return the index at the beginning of a line and the item the line names; None if the line is not an entry or names several items."""
    line = _PLACED_NUMBER.sub("", line.strip(), count=1)
    line = LABEL.sub("", line, count=1) if _NUMBERED.match(line) is None else line
    head = _NUMBERED.match(line)
    rest = line if head is None else line[head.end() :]
    named = names.mentioned(rest)
    if len(named) > 1 or (head is None and not named):
        return None
    name = next(iter(named), None)
    number = None if head is None else int(head[1])
    others = {int(each) for each in _AS_ITEM.findall(rest)}
    if number is None and len(others) == 1 and name is not None:  # "Milkcrate Cafe (item 5)"
        number, others = others.pop(), set()
    if others - {number, name}:
        return None
    bare = names.pattern.sub(" ", rest) if names.pattern is not None else rest
    if number is None and name is not None and (last := _INDEX_BEHIND.fullmatch(bare)):  # "Milkcrate Cafe (5)"
        number, bare = int(last[1]), ""
    if not re.search(r"[^\W_]", _AS_ITEM.sub(" ", bare)):
        return number, name
    if head is None:
        return (
            (number, name)
            if not _DENIAL.search(bare) and re.match(r"[-*•\d.)\s`\"'_]*$", line[: _name_position(names, line)])
            else None
        )
    behind = bare.strip()
    separated = re.match(r"\s*[-\u2013\u2014:,(.]", rest) is not None
    if name is not None and not separated and number != name:
        return None
    said = f"{number} ({behind})" if name is not None else f"{number}{rest}"
    fits = isinstance(choice_of(said, (str(number),)), Fit) or (name is not None and not _DENIAL.search(behind))
    return (number, name) if fits else None


_INDEX_BEHIND = re.compile(r"\W*(?:index\W*)?(\d{1,6})\W*", re.IGNORECASE)


def _name_position(names: Names, line: str) -> int:
    found = names.pattern.search(line) if names.pattern is not None else None
    return 0 if found is None else found.start()


def _as_choice(text: str, names: Names) -> list[Any] | None:
    """Read a text that chooses one item by a leading index (if the explanation names no other item) or by its only name."""
    named, numbered = names.mentioned(text), {int(each) for each in _AS_ITEM.findall(text)}
    head = _NUMBERED.match(LABEL.sub("", text, count=1).lstrip())
    if head is not None:
        number = int(head[1])
        bare = LABEL.sub("", text, count=1).lstrip()
        first, _, rest = bare.partition("\n")
        entry = _parse_entry(first, names)
        if (several := _bare_indices(first)) is not None and len(several) > 1 and rest.strip():
            return several if not (named | numbered) - set(several) and not _DENIAL.search(rest) else None
        if named - {number} or numbered - {number}:
            return None
        whole = entry is not None and entry[0] == number and entry[1] in (None, number)
        if whole and rest.strip():
            return [number] if isinstance(choice_of(f"{number}\n{rest}", (str(number),)), Fit) else None
        return [number] if isinstance(choice_of(bare, (str(number),)), Fit) else None
    if len(named) != 1 or numbered - named or _DENIAL.search(text):
        return None
    return list(named)


def _as_mentions(text: str, names: Names) -> list[Any] | None:
    """Read the item that a sentence calls the best; several candidates are rejected as ambiguous."""
    found = dict.fromkeys(int(number) for pattern in _MENTIONED for number in pattern.findall(text))
    return list(found) if len(found) == 1 and not names.mentioned(text) - set(found) else None
