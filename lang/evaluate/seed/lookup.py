"""What a lookup finds: which keys of its table a text, or each text of a list, matches. See ``docs/design/seed.md#compute``."""

from typing import Any

import attrs
from attrs import frozen

from ...seed import Lookup, Match
from ...source import Span
from ..expr.errors import ExprError
from ..expr.limits import Meter
from ..expr.values import a, shown
from .aggregates import extreme

__all__ = ["Table"]


@frozen
class Table:
    """A lookup's table, ready to be searched. ``keys`` are casefolded unless the match is exact.

    An empty key matches only the empty text, and only exactly: as a part it would be in every text.
    """

    match: Match
    keys: tuple[str, ...]
    values: tuple[Any, ...]
    default: Any
    span: Span = attrs.field(eq=False, repr=False)

    @classmethod
    def of(cls, step: Lookup) -> "Table":
        """Make ready the table of ``step``."""
        exact = step.match == "exact"
        keys = tuple(key if exact else key.casefold() for key, _ in step.table)
        return cls(step.match, keys, tuple(value for _, value in step.table), step.default, step.source.span)

    def find(self, source: Any, meter: Meter) -> Any:
        """Return what the table has for ``source``, a text or a list of texts; the default where no key matches.

        A null, and a null in a list, matches nothing. Of several keys the first in the table counts, or with a match
        ``..._max`` the greatest value. Raises ``ExprError`` for a source that is no text, and for values that can't be compared.
        """
        found = self.matching(source, meter)
        if not found:
            return self.default
        if self.match in ("substring_max", "word_max") and len(found) > 1:
            return extreme("max", [self.values[position] for position in found], meter)
        return self.values[found[0]]

    def matching(self, source: Any, meter: Meter) -> list[int]:
        """Return the positions of the keys that ``source`` matches, in the order of the table."""
        texts = self._texts(source)
        return [
            position for position, key in enumerate(self.keys) if any(self._holds(key, text, meter) for text in texts)
        ]

    def _texts(self, source: Any) -> list[str]:
        elements = source if isinstance(source, list | tuple) else [source]
        texts = []
        for element in elements:
            if isinstance(element, str):
                texts.append(element if self.match == "exact" else element.casefold())
            elif element is not None:
                message = f"a lookup's source is a text or a list of texts, not {a(element)}: {shown(element)}"
                raise ExprError("type", message, span=self.span)
        return texts

    def _holds(self, key: str, text: str, meter: Meter) -> bool:
        meter.step()
        meter.characters(len(text))
        if self.match == "exact":
            return key == text
        if self.match in ("substring_first", "substring_max"):
            return key != "" and key in text
        return _has_word(text, key, meter)


def _has_word(text: str, word: str, meter: Meter) -> bool:
    """Say whether ``word`` stands in ``text`` with no letter, digit or underscore beside it."""
    start = text.find(word) if word else -1
    while start >= 0:
        end = start + len(word)
        if not (start and _joins(text[start - 1], word[0])) and not (end < len(text) and _joins(word[-1], text[end])):
            return True
        meter.step()
        meter.characters(len(word))
        start = text.find(word, start + 1)
    return False


def _joins(left: str, right: str) -> bool:
    return (left.isalnum() or left == "_") and (right.isalnum() or right == "_")
