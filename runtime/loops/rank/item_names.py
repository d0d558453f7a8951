"""The names of the items of a ranking: exact names in a text, and names that contain digits."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from ....lang.answers import bare_text
from ....lang.unicode_forms import canonical, caseless

_NAMES = ("name", "item_name", "title", "label", "id", "item_id")
LABEL = re.compile(
    r"^(?:(?:the )?(?:final |best |top |matching )*(?:answer|ranking|rank(?=[^\n]*\d[^\n\d]+\d)"
    r"|index|indices|indexes|items|item(?:\(s\))?|output|result"
    r"|order(?=[^\n]*\d[^\n\d]+\d))"
    r"(?: index| indices)?(?: is| are)?)?\s*[:=]?\s*",
    re.IGNORECASE,
)
ORDINAL = re.compile(r"^\s*(?:(?:rank|place|position)\s*#?\d{1,4}\s*[.):\-]|\d{1,4}[.):]|[-*•])\s+", re.IGNORECASE)


def name_of(item: Any) -> str:
    """Return the item's name; "" if it has no name."""
    if isinstance(item, str):
        return item if len(item) <= 200 else ""
    if isinstance(item, Mapping):
        for key in _NAMES:
            if isinstance(item.get(key), str | int) and str(item[key]).strip():
                return str(item[key])
    return ""


def folded_name(text: str) -> str:
    """Return a name in the form in which names are compared."""
    return caseless(" ".join(text.strip().strip("`*\"'.").split()))


@frozen
class Names:
    """The item names: ``own`` maps indices to names in composed form, and ``indices`` maps folded names to indices.

    ``pattern`` matches the longest name. A name with a digit in it (``7 Seas``) is replaced by a word without digits before a
    text is parsed, so that no number in it is taken for an index: ``masks`` maps these folded names to the words, and ``masked_names``
    matches the longest of them. A name that is a number (``1984``) is only replaced if it is a complete line (``number_lines``).
    """

    own: Mapping[int, str]
    indices: Mapping[str, tuple[int, ...]]
    pattern: "re.Pattern[str] | None"
    masks: Mapping[str, str]
    masked_names: "re.Pattern[str] | None"
    number_lines: "re.Pattern[str] | None"
    written: Mapping[str, str]
    """Maps each word in ``masks`` to the name that it replaces."""
    count: int

    @classmethod
    def of(cls, items: Sequence[Any]) -> "Names":
        """Return the names of items."""
        own = {index: canonical(name) for index, item in enumerate(items) if (name := name_of(item))}
        indices: dict[str, list[int]] = {}
        masks: dict[str, str] = {}
        written: dict[str, str] = {}
        for index, name in own.items():
            folded = folded_name(name)
            indices.setdefault(folded, []).append(index)
            if any(map(str.isdigit, name)) and _number_in(folded, len(items)) is None:
                word = masks.setdefault(folded, "Qx" + "".join(chr(ord("a") + int(each)) for each in str(index)) + "xq")
                indices.setdefault(word.lower(), []).append(index)
                own[index], written[word] = word, name
        words = [each for each in indices if len(each) > 1 and not each.isdecimal() and each not in masks]
        found = {name: tuple(listed) for name, listed in indices.items()}
        phrases = _pattern_of(each for each in masks if not each.isdecimal())
        numbers = "|".join(sorted((each for each in masks if each.isdecimal()), key=len, reverse=True))
        lines = re.compile(rf"^(\W*(?:\d{{1,4}}[.):]\s+)?)({numbers})(?=\W*$)", re.MULTILINE) if numbers else None
        return cls(own, found, _pattern_of(words), masks, phrases, lines, written, len(items))

    def masked(self, text: str) -> str:
        """Return ``text`` with a word in place of each name that has a digit."""
        if self.number_lines is not None:
            text = self.number_lines.sub(lambda match: match[1] + self.masks[match[2]], text)
        if self.masked_names is not None:
            text = self.masked_names.sub(lambda match: self.masks[folded_name(match[0])], text)
        return text

    def unmasked(self, text: str) -> str:
        """Return ``text`` with the names in place of their words."""
        for word, name in self.written.items():
            text = text.replace(word, name)
        return text

    def twofold(self, text: str) -> str:
        """Return why a text is ambiguous: it is the name of one item, and the index of another or such an index with its name; else ""."""
        bare = folded_name(bare_text(LABEL.sub("", text, count=1)))
        called = self.indices.get(bare, ())
        if not called or all(
            self.written.get(each, each).isdecimal() for each in self.own.values()
        ):  # items that have only an id
            return ""
        index = _number_in(bare, self.count)
        if index is None:
            begins = re.match(r"(\d{1,6})\W+(.+)", bare)
            if begins is not None and int(begins[1]) in self.indices.get(begins[2], ()):
                index = int(begins[1])
        if index is None or index in called:
            return ""
        return f"the output is ambiguous: it is the index {index}, and the name of item {called[0]}"

    def mentioned(self, text: str) -> set[int]:
        """Return the items named in ``text``.

        If several items have the same name, or a name may be part of a longer name, all these items are returned.
        """
        found: set[int] = set()
        alone = folded_name(ORDINAL.sub("", text))
        for match in self.pattern.finditer(text) if self.pattern is not None else ():
            name = folded_name(match[0])
            if (
                " " not in name
                and name != alone
                and match[0] not in (self.own[each] for each in self.indices.get(name, ()))
            ):
                continue  # an ordinary word of a sentence: its letter case differs from the name's
            found.update(self.indices.get(name, ()))
            around = folded_name(text[max(0, match.start() - 40) : match.end() + 40])
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


def _number_in(name: str, count: int) -> int | None:
    """Return the index if a name reads as the index of an item: ``2``, ``item 2``, ``#2``; else None."""
    found = re.fullmatch(r"(?:item\s*|index\s*)?[#\[(]*\s*(\d{1,6})\W*", name)
    return int(found[1]) if found is not None and int(found[1]) < count else None


def _pattern_of(names: Iterable[str]) -> "re.Pattern[str] | None":
    words = sorted(names, key=len, reverse=True)
    alternatives = "|".join(r"\s+".join(map(re.escape, each.split())) for each in words)
    return re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE) if words else None
