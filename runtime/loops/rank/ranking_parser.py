"""Reads the output of the last step as a ranking: the named items and their order. See ``docs/design/loops.md#ranking``.

The text may contain indices from 0, alone or as a list, with few words around them. The text may also name items, as "item 5" or by their
names. An index may be followed by the item's name and an explanation. A number in a sentence is not an index: "I looked at 3 cafes" ranks
nothing. A number that contradicts a name, two items in one sentence, and unreadable text are rejected; the parser never guesses. "No item
fits" is a valid result.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from ....lang.coercion import Fit, as_type, choice_of
from ....lang.literals import Reading, read, short

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
"""A count of items: "2 items", "0 items"; not an index."""
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
    """Indices from 0, best first. ``unknown`` are named indices of items that do not exist; ``reason`` says why no index was found.

    ``none`` is true if the text says that no item fits.
    """

    indices: tuple[int, ...] = ()
    unknown: tuple[str, ...] = ()
    reason: str = ""
    none: bool = False


def name_of(item: Any) -> str:
    """Return the item's name; "" if it has no name."""
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
        return Order(reason=f"the output has {len(text):,} characters and is not a list of indices")
    answer, names = text.strip(), Names.of(items)
    if _says_none(answer, names):
        return Order(none=True)
    found = _as_value(answer, names)
    if isinstance(found, str):
        return read_order(found, items)
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
    known = {each: None for each in found if type(each) is int and 0 <= each < len(items)}
    unknown = tuple(dict.fromkeys(short(str(each), 40) for each in found if each not in known))
    if not known:
        said = f"{', '.join(unknown[:3])}; the items are 0 to {len(items) - 1}" if unknown else "the list is empty"
        return Order((), unknown, f"the output names only unknown items: {said}")
    return Order(tuple(known), unknown)


def _contradiction(found: Sequence[Any], named: "set[int]", names: "Names") -> str:
    numbers, called = (
        ", ".join(map(str, found[:3])),
        ", ".join(short(names.own[each], 40) for each in sorted(named)[:3]),
    )
    return f"the output contradicts itself: it gives the index {numbers}, but names {called}"


@frozen
class Names:
    """The item names: ``own`` maps indices to names, and ``indices`` maps folded names to indices.

    ``pattern`` matches the longest name.
    """

    own: Mapping[int, str]
    indices: Mapping[str, tuple[int, ...]]
    pattern: "re.Pattern[str] | None"

    @classmethod
    def of(cls, items: Sequence[Any]) -> "Names":
        """Return the names of items."""
        own = {index: name for index, item in enumerate(items) if (name := name_of(item))}
        indices: dict[str, list[int]] = {}
        for index, name in own.items():
            indices.setdefault(_folded_name(name), []).append(index)
        words = sorted((each for each in indices if len(each) > 1 and not each.isdecimal()), key=len, reverse=True)
        alternatives = "|".join(r"\s+".join(map(re.escape, each.split())) for each in words)
        pattern = re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE) if words else None
        return cls(own, {name: tuple(listed) for name, listed in indices.items()}, pattern)

    def mentioned(self, text: str) -> set[int]:
        """Return the items named in ``text``.

        If several items have the same name, or a name may be part of a longer name, all these items are returned.
        """
        found: set[int] = set()
        alone = _folded_name(_ORDINAL.sub("", text))
        for match in self.pattern.finditer(text) if self.pattern is not None else ():
            name = _folded_name(match[0])
            if (
                " " not in name
                and name != alone
                and match[0] not in (self.own[each] for each in self.indices.get(name, ()))
            ):
                continue  # an ordinary word of a sentence: its letter case differs from the name's
            found.update(self.indices.get(name, ()))
            around = _folded_name(text[max(0, match.start() - 40) : match.end() + 40])
            found.update(self._longer(name, around))
        return found

    def _longer(self, name: str, around: str) -> Iterator[int]:
        """Yield each item whose longer name contains ``name``, if the text ``around`` contains a further word of that longer name."""
        words = name.split()
        for other, listed in self.indices.items():
            if len(other) <= len(name) or f" {name} " not in f" {other} ":
                continue
            before, _, after = f" {other} ".partition(f" {name} ")
            longer = [f"{before.split()[-1]} {name}"] if before.split() else []
            longer += [f"{name} {after.split()[0]}"] if after.split() else []
            if words and any(each in around for each in longer):
                yield from listed


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
    bare = _LABEL.sub("", text.strip().strip("`*\"'.!").strip(), count=1).strip().strip("`*\"'.!").strip()
    if _folded_name(bare) in names.indices:
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

    A string in an object is returned unchanged.
    """
    got = read(text)
    value = got.value if isinstance(got, Reading) else None
    if isinstance(value, dict):
        lists = [each for key, each in value.items() if _is_label(str(key).replace("_", " "), each)]
        value = lists[0] if len(lists) == 1 else None
        if isinstance(value, str):
            return value
        if value == []:
            return "none"
    if value is None or isinstance(value, dict | bool):
        return None
    if value == []:
        return "none"
    listed = value if isinstance(value, list) else [value]
    made = [_index_of(each, names) for each in listed]
    if all(each is not None for each in made):
        return made
    return (
        Order(reason=f"the output names no item: {short(text, 80)}")
        if text.lstrip("` \n").startswith(("[{", "{"))
        else None
    )


def _is_label(key: str, value: Any) -> bool:
    """Return whether a key labels the answer; "rank" and "order" only label lists, because a number after them is a position."""
    if key.strip().casefold() in _PLACES:
        return isinstance(value, list)
    return _LABEL.fullmatch(key) is not None


def _index_of(value: Any, names: Names) -> int | None:
    if isinstance(value, dict):
        called = names.indices.get(_folded_name(name_of(value)), ()) if name_of(value) else ()
        value = next(
            (value[key] for key in ("index", "item", "idx") if key in value), called[0] if len(called) == 1 else None
        )
        found = _index_of(value, names) if not isinstance(value, dict) else None
        return None if called and found not in called else found
    if isinstance(value, str):
        called = names.indices.get(_folded_name(value), ())
        if len(called) == 1:
            return called[0]
        digits = _DIGITS.findall(value) if len(value) <= 40 and _LISTED.fullmatch(value.strip()) else []
        if len(digits) == 1:
            return int(digits[0])
        entry = _parse_entry(value.strip(), names)
        return (
            entry[0]
            if entry is not None and entry[0] in (entry[1], *(() if entry[1] is not None else (entry[0],)))
            else None
        )
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


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
        bare = _bare_indices(_ORDINAL.sub("", line)) or _bare_indices(line)
        if bare is None:
            before = line
            break
        found = bare + found
    # Lines after "Cafes that I looked at:" may be anything; lines after "Ranking:" or after a complete sentence are the answer.
    counted = before.endswith(":") and not _LABEL.fullmatch(before)
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
    rest = _LABEL.sub("", line, count=1).strip().strip("`*\"'.[]()").strip()
    found = _DIGITS.findall(rest) if _LISTED.fullmatch(rest) else []
    return list(map(int, found)) or None


def _as_entries(text: str, names: Names) -> list[Any] | Order | None:
    """Read lines that each name one item by index, name or both, and may add an explanation."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) == 1 and (pieces := _listed(_LABEL.sub("", text, count=1), names)) is not None:
        lines = pieces
    if len(lines) > 1 and _HEADING.fullmatch(lines[0]) and not names.mentioned(lines[0]):
        lines = lines[1:]
    found: list[tuple[int | None, int | None]] = []
    for line in lines:
        each = _parse_entry(line, names)
        if each is None:
            return None
        found.append(each)
    numbers, called = [each[0] for each in found], [each[1] for each in found]
    if all(number is None or name is None or number == name for number, name in found):
        return [number if number is not None else name for number, name in found]
    if numbers == list(range(1, len(found) + 1)) and all(name is not None for name in called):
        return called  # the numbers are positions, as in "1. Milkcrate Cafe"
    at = next(at for at, (number, name) in enumerate(found) if None not in (number, name) and number != name)
    return Order(reason=_contradiction([numbers[at]], {called[at] or 0}, names))


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
    line = _LABEL.sub("", line, count=1) if _NUMBERED.match(line) is None else line
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


def _name_position(names: Names, line: str) -> int:
    found = names.pattern.search(line) if names.pattern is not None else None
    return 0 if found is None else found.start()


def _as_choice(text: str, names: Names) -> list[Any] | None:
    """Read a text that chooses one item by a leading index (if the explanation names no other item) or by its only name."""
    named, numbered = names.mentioned(text), {int(each) for each in _AS_ITEM.findall(text)}
    head = _NUMBERED.match(_LABEL.sub("", text, count=1).lstrip())
    if head is not None:
        number = int(head[1])
        bare = _LABEL.sub("", text, count=1).lstrip()
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


def _folded_name(text: str) -> str:
    return " ".join(text.strip().strip("`*\"'.").split()).casefold()


def _as_mentions(text: str, names: Names) -> list[Any] | None:
    """Read the item that a sentence calls the best; several candidates are rejected as ambiguous."""
    found = dict.fromkeys(int(number) for pattern in _MENTIONED for number in pattern.findall(text))
    return list(found) if len(found) == 1 and not names.mentioned(text) - set(found) else None
