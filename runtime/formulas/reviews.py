"""Contexts and their reviews: reading them from JSON, checked, with each review's metadata. FORMULA_SEED, "metadata".

A context is ``{"name", ..., "as_of"?, "reviews": [{"text", "stars"?, "useful"?, "date"?, "id"?, ...}]}``. Metadata comes from the
review and the context's fixed ``as_of`` alone, never from the clock: the same context gives the same result on every day.
"""

import math
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import orjson
from attrs import field, frozen

from ...lang.literals import kind_of
from ..commands.excerpts import clipped
from .dates import read_date

__all__ = ["Context", "ContextError", "Review", "contexts_of", "read_context", "read_contexts"]

EXCERPT = 120
"""Characters of a review that a result repeats."""
_LARGEST = 2**63
_TOLD = 5
"""Warnings of one kind that are told in full."""


class ContextError(ValueError):
    """What was given as a context is none, or one of its reviews is none. The message says which."""


@frozen
class Review:
    """A review as a seed sees it."""

    index: int
    text: str
    meta: Mapping[str, Any]
    id: str | int | None = None

    @property
    def excerpt(self) -> str:
        """Return the beginning of the text, on one line."""
        return clipped(self.text, EXCERPT)


@frozen
class Context:
    """A context that was read. ``values`` is the object itself: what expressions see as ``context``."""

    name: str
    index: int
    values: Mapping[str, Any] = field(repr=False)
    reviews: tuple[Review, ...] = field(repr=False)
    warnings: tuple[str, ...] = ()


def read_context(data: Any, index: int = 0) -> Context:
    """Read one context; ``index`` is its place among many. Raises ``ContextError``."""
    where = f"context {index}"
    if not isinstance(data, Mapping):
        raise ContextError(f"{where} is {kind_of(data)}, not an object")
    if not all(isinstance(key, str) for key in data):
        raise ContextError(f"{where} has a key that is no text")
    name = data.get("name")
    if name is None:
        name = ""
    elif not isinstance(name, str):
        raise ContextError(f'the "name" of {where} is {kind_of(name)}, not a text')
    _check_text(name, f'the "name" of {where}')
    if name:
        where = f"{where} ({clipped(name, 60)})"
    if "reviews" not in data:
        raise ContextError(f'{where} has no "reviews"')
    reviews = data["reviews"]
    if not isinstance(reviews, list | tuple):
        raise ContextError(f'"reviews" of {where} is {kind_of(reviews)}, not a list')
    reading = _Reading(where, _as_of(data.get("as_of"), where))
    made = tuple(reading.review(review, place) for place, review in enumerate(reviews))
    return Context(name, index, data, made, reading.warnings())


def _as_of(written: Any, where: str) -> date | None:
    if written is None:
        return None
    if isinstance(written, date):
        return date(written.year, written.month, written.day)
    if not isinstance(written, str):
        raise ContextError(f'"as_of" of {where} is {kind_of(written)}, not a date')
    found = read_date(written)
    if isinstance(found, str) or found.date is None:
        reason = found if isinstance(found, str) else "it has no day"
        raise ContextError(f'"as_of" of {where} can\'t be read as a date, {clipped(written, 40)!r}: {reason}')
    return found.date


@frozen
class _Reading:
    """Reads the reviews of one context and notes what a person should know."""

    where: str
    as_of: date | None
    undated: list[str] = field(factory=list)

    def review(self, data: Any, index: int) -> Review:
        where = f"review {index} of {self.where}"
        if not isinstance(data, Mapping):
            raise ContextError(f"{where} is {kind_of(data)}, not an object")
        if "text" not in data:
            raise ContextError(f'{where} has no "text"')
        text = "" if data["text"] is None else data["text"]  # stars without a word: exports have null there
        if not isinstance(text, str):
            raise ContextError(f'"text" of {where} is {kind_of(text)}, not a text')
        _check_text(text, f'"text" of {where}')
        own = data.get("id")
        if isinstance(own, bool) or not isinstance(own, str | int | None):
            raise ContextError(f'"id" of {where} is {kind_of(own)}, neither a text nor a whole number')
        if isinstance(own, str):
            _check_text(own, f'"id" of {where}')
        elif own is not None and abs(own) >= _LARGEST:
            raise ContextError(f'"id" of {where} is a number of more than 64 bits')
        stars, useful = _number(data, "stars", where), _number(data, "useful", where)
        meta = {"stars": stars, "useful": useful, **self._dated(data.get("date"), index)}
        return Review(index, text, meta, own)

    def _dated(self, written: Any, index: int) -> dict[str, Any]:
        meta: dict[str, Any] = {"year": None, "month": None, "date": None, "age_days": None}
        if written is None:
            return meta
        if isinstance(written, date):
            written = written.isoformat()
        found = read_date(written) if isinstance(written, str) else f"it is {kind_of(written)}"
        if isinstance(found, str):
            shown = repr(clipped(written, 40)) if isinstance(written, str) else "there"
            self.undated.append(f"the date of review {index}, {shown}, is not used: {found}")
            return meta
        meta["year"], meta["month"] = found.year, found.month
        if found.date is not None:
            meta["date"] = found.date.isoformat()
            meta["age_days"] = (self.as_of - found.date).days if self.as_of is not None else None
        return meta

    def warnings(self) -> tuple[str, ...]:
        more = len(self.undated) - _TOLD
        told = self.undated[:_TOLD]
        return (*told, f"the dates of {more:,} more reviews are not used either") if more > 0 else tuple(told)


def _check_text(text: str, what: str) -> None:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ContextError(f"{what} has half a surrogate pair in it, which is no text") from None


def _number(data: Mapping[str, Any], name: str, where: str) -> int | float | None:
    value = data.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ContextError(f'"{name}" of {where} is {kind_of(value)}, not a number')
    if not math.isfinite(value) if isinstance(value, float) else abs(value) >= _LARGEST:
        raise ContextError(f'"{name}" of {where} is no number of 64 bits')
    return value


def read_contexts(path: Path) -> Iterator[Any]:
    """Yield the contexts of a file one by one: a JSON list, one object, or an object a line (which are read as needed).

    They are JSON values; ``read_context`` checks them. Raises ``ContextError`` where the file is no JSON, ``OSError``.
    """
    with open(path, "rb") as file:
        first = file.readline()
        while first and not first.strip():
            first = file.readline()
        if first.lstrip()[:1] == b"{" and (head := _line(first)) is not None:
            yield head
            for number, line in enumerate(file, 2):
                if line.strip():
                    yield _loads(line, f"line {number} of {path.name}")
            return
        yield from contexts_of(_loads(first + file.read(), path.name)) if first else ()


def contexts_of(data: Any) -> list[Any]:
    """Return the contexts that a JSON value has: the elements of a list, or the one that it is."""
    return list(data) if isinstance(data, list | tuple) else [data]


def _line(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:  # an object over several lines
        return None


def _loads(body: bytes, where: str) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ContextError(f"{where} is not JSON: {error}") from None
