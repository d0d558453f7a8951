"""Habits of tools that write graphs, undone column by column: quotes, ``<SEP>``, numbers written as text.

Seen in nano-graphrag and LightRAG: a whole value in quotes (\'"PERSON"\'), texts joined by ``<SEP>`` where several chunks spoke of
one thing, and "16.0". A column of names or ids that has ``<SEP>`` anywhere becomes lists throughout; prose becomes lines, so
that CONTAINS still finds words in it. Other formats (CSV) have no types to begin with.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..rows.fitting import LARGEST
from .report import ChangeLog

__all__ = ["stripper", "without_habits"]

SEPARATOR = "<SEP>"
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_PROSE_NAMES = frozenset({"description", "summary", "content", "text", "abstract"})


def without_habits(values: list[Any], kinds: set[type], where: str, log: ChangeLog) -> list[Any]:
    """Return a column's values with its habits undone and noted under ``where``; the list itself where there are none.

    ``kinds`` are the types of the values, text among them.
    """
    texts = [value for value in values if type(value) is str]
    pieces: list[str] = texts
    joined = any(SEPARATOR in text for text in texts)
    if joined:
        pieces = [piece for text in texts for piece in text.split(SEPARATOR)]
    strip = stripper(pieces)
    if not joined and strip is None:
        return _as_numbers(values, kinds, where, log)
    prose = joined and _is_prose(where, pieces)
    new: list[Any] = []
    for value in values:
        if type(value) is not str:
            new.append(value)
            continue
        parts = value.split(SEPARATOR) if joined else [value]
        bare = [strip(part) for part in parts] if strip else parts
        if bare != parts:
            log.add("quotes", where, value, SEPARATOR.join(bare))
        if joined and not prose:
            after: Any = [part for part in (part.strip() for part in bare) if part]
            log.add("lists", where, value, after)
        else:
            after = "\n".join(bare)
            if len(parts) > 1:
                log.add("lines", where, value, after)
        new.append(after)
    return new if joined else _as_numbers(new, kinds, where, log)


def stripper(texts: Iterable[str]) -> Callable[[str], str] | None:
    """Return what takes the quotes off, or None where no text has them.

    Quotes inside the quotes leave a text alone ('"a" and "b"'), unless more than half of the column is quoted.
    """
    filled = quoted = 0
    for text in texts:
        if text:
            filled += 1
            quoted += len(text) > 1 and text[0] == '"' == text[-1]
    if not quoted:
        return None
    usual = 2 * quoted > filled

    def strip(text: str) -> str:
        if len(text) > 1 and text[0] == '"' == text[-1] and (usual or '"' not in text[1:-1]):
            return text[1:-1]
        return text

    return strip


def _is_prose(where: str, pieces: Sequence[str]) -> bool:
    """Say whether a joined column is text to be read (its parts are then lines) and no list of names or ids."""
    if where.partition(" ")[2] in _PROSE_NAMES:
        return True
    return sum(map(len, pieces)) > 60 * len(pieces) and sum(p.count(" ") for p in pieces) > 6 * len(pieces)


def _as_numbers(values: list[Any], kinds: set[type], where: str, log: ChangeLog) -> list[Any]:
    """Return the column as numbers if every value (null apart) is one written as text, with no digit lost; else as it is.

    Leading zeros and signs stay text: postal codes, telephone numbers. One fraction makes all of them floats.
    """
    if not kinds <= {str, type(None)}:
        return values
    fractional, largest = False, 0
    for value in values:
        if value is None:
            continue
        match = _NUMBER.fullmatch(value) if len(value) <= 40 else None
        if match is None:
            return values
        if match[1] or match[2]:
            fractional = True
            if not math.isfinite(float(value)):
                return values
        else:
            largest = max(largest, abs(int(value)))
    if largest > (2**53 if fractional else LARGEST):
        return values
    new = [None if value is None else float(value) if fractional else int(value) for value in values]
    for before, after in zip(values, new, strict=True):
        if before is not None:
            log.add("numbers", where, before, after)
    return new
