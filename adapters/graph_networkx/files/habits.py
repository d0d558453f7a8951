"""Habits of tools that write graphs, undone column by column: quotes, ``<SEP>``, numbers written as text.

Seen in nano-graphrag and LightRAG: a whole value in quotes (\'"PERSON"\'), texts joined by ``<SEP>`` where several chunks spoke of
one thing, and "16.0". One value never decides: a column is rewritten only where all of it says so.

- Quotes go where every text of the column is quoted as a whole, and all its values are texts, empty or null.
- ``<SEP>`` is undone where every text of the column has it (and there are several), where every part is quoted, or where the column
  is one that these tools join: their names (``JOINED``) in a graph that has their mark, a ``source_id`` of names without blanks. There
  most values have one part only, so that no share of them could tell. A column of names or ids becomes lists, prose becomes lines, so
  that CONTAINS still finds words in it.
- Numbers are read where every text is one. Other formats (CSV) have no types to begin with.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..rows.fitting import LARGEST
from .report import ChangeLog

__all__ = ["JOINED", "is_marked", "stripper", "without_habits"]

SEPARATOR = "<SEP>"
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_PROSE_NAMES = frozenset({"description", "summary", "content", "text", "abstract"})


JOINED = frozenset(
    {"source_id", "source_ids", "chunk_id", "chunk_ids", "doc_id", "file_path", "file_paths", "description", "keywords"}
)
"""Columns in which nano-graphrag and LightRAG join what several chunks said."""

_MARK = "source_id"


def is_marked(columns: Mapping[Any, Sequence[Any]]) -> bool:
    """Say whether nodes or edges with these columns come from a tool that joins: their sources are names without blanks."""
    sources = columns.get(_MARK)
    if not sources:
        return False
    return all(type(value) is str and not any(map(str.isspace, value)) for value in sources if value is not None)


def without_habits(
    values: list[Any], kinds: set[type], where: str, log: ChangeLog, *, marked: bool = False
) -> list[Any]:
    """Return a column's values with its habits undone and noted under ``where``; the list itself where there are none.

    ``kinds`` are the types of the values, text among them. ``marked``: the graph is from a tool that joins texts.
    """
    if not kinds <= {str, type(None)}:
        return values  # other types among them: not the whole column is text
    texts = [value for value in values if type(value) is str]
    joined = _is_joined(texts, where, marked)
    pieces = [piece for text in texts for piece in text.split(SEPARATOR)] if joined else texts
    strip = stripper(pieces) if joined or not any(SEPARATOR in text for text in texts) else None
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


def _is_joined(texts: Sequence[str], where: str, marked: bool) -> bool:
    having = sum(SEPARATOR in text for text in texts)
    if marked and having and where.partition(" ")[2] in JOINED:
        return True
    if having > 1 and having == sum(1 for text in texts if text):
        return True
    return bool(having) and stripper(piece for text in texts for piece in text.split(SEPARATOR)) is not None


def stripper(texts: Iterable[str]) -> Callable[[str], str] | None:
    """Return what takes the quotes off, or None unless every text has them around all of it; empty ones apart.

    In \'"a" and "b"\' they stand around two parts, not around all.
    """
    quoted = 0
    for text in texts:
        if text:
            if len(text) < 2 or not text[0] == '"' == text[-1] or _PARTS.search(text) is not None:
                return None
            quoted += 1
    return (lambda text: text[1:-1]) if quoted else None


_PARTS = re.compile(r'\A"[^"]*\S"\s[^"]*\s"[^"\s]')
"""A text that begins with a quoted part, goes on without quotes, and has another quoted part."""


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
