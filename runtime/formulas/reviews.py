"""Contexts and their reviews: reading them from JSON, checked, with each review's metadata. See ``docs/design/seed.md#extraction``.

A context is ``{"name", ..., "as_of"?, "reviews": [{"text", "stars"?, "useful"?, "date"?, "id"?, ...}]}``. Metadata comes from the
review and the context's fixed ``as_of`` alone, never from the clock: the same context gives the same result on every day.
"""

import json
import math
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import orjson
from attrs import field, frozen

from ...lang.errors import KnotworkError
from ...lang.literals import kind_of
from ..commands.excerpts import clipped
from .dates import read_date

__all__ = ["Context", "ContextError", "Review", "contexts_of", "read_context", "read_contexts"]

EXCERPT = 120
"""Characters of a review that a result repeats."""
_LARGEST = 2**63
_TOLD = 5
"""Warnings of one kind that are told in full."""


class ContextError(KnotworkError, ValueError):
    """What was given as a context is none: no object, or it has no list of reviews. The message says which."""


@frozen
class Review:
    """A review as a seed sees it."""

    index: int
    text: str
    meta: Mapping[str, Any]
    id: str | int | None = None
    fault: str = ""
    """Why its text can't be used, "" where it can: nothing is asked about it then, and its extraction is failed."""
    invalid_meta: Mapping[str, str] = field(factory=dict)
    """By key of ``meta``, what stands there and can't be used; the key is null."""

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
    warnings: list[str] = []
    if name is not None and (fault := _text_fault(name)):
        warnings.append(f'the "name" of {where} is not used: {fault}')
        name = None
    name = name or ""
    if name:
        where = f"{where} ({clipped(name, 60)})"
    if "reviews" not in data:
        raise ContextError(f'{where} has no "reviews"')
    reviews = data["reviews"]
    if not isinstance(reviews, list | tuple):
        raise ContextError(f'"reviews" of {where} is {kind_of(reviews)}, not a list')
    as_of = _as_of(data.get("as_of"))
    if isinstance(as_of, str):
        warnings.append(f'"as_of" of {where} is not used: {as_of}')
    reading = _Reading(as_of)
    made = tuple(reading.review(review, place) for place, review in enumerate(reviews))
    return Context(name, index, data, made, (*warnings, *reading.warnings()))


def _as_of(written: Any) -> date | str | None:
    """Return the day that ages are counted to, None where there is none, or why what stands there is none."""
    if written is None:
        return None
    if isinstance(written, date):
        return date(written.year, written.month, written.day)
    if not isinstance(written, str):
        return f"it is {kind_of(written)}, not a date"
    found = read_date(written)
    if isinstance(found, str) or found.date is None:
        return (
            f"{clipped(written, 40)!r} can't be read as a date: {found if isinstance(found, str) else 'it has no day'}"
        )
    return found.date


@frozen
class _Reading:
    """Reads the reviews of one context and notes what a person should know. What is wrong with one is wrong with it alone."""

    as_of: date | str | None
    found: list[str] = field(factory=list)

    def review(self, data: Any, index: int) -> Review:
        if not isinstance(data, Mapping):
            return self._failed(index, f"it is {kind_of(data)}, not an object")
        own = data.get("id")
        if isinstance(own, str):
            fault = _text_fault(own)
        elif isinstance(own, bool) or not isinstance(own, int | None):
            fault = f"it is {kind_of(own)}, neither a text nor a whole number"
        else:
            fault = "it is a number of more than 64 bits" if own is not None and abs(own) >= _LARGEST else ""
        if fault:
            self.found.append(f'the "id" of review {index} is not used: {fault}')
            own = None
        if "text" not in data:
            return self._failed(index, 'it has no "text"', own)
        text = "" if data["text"] is None else data["text"]  # stars without a word: exports have null there
        if fault := _text_fault(text):
            return self._failed(index, f'its "text" can\'t be used: {fault}', own)
        meta: dict[str, Any] = {}
        invalid: dict[str, str] = {}
        for name in ("stars", "useful"):
            value, fault = _number(data.get(name))
            meta[name] = value
            if fault:
                invalid[name] = _shown(data[name])
                self.found.append(f'"{name}" of review {index}, {invalid[name]}, is not used: {fault}')
        self._date(data.get("date"), index, meta, invalid)
        return Review(index, text, meta, own, invalid_meta=invalid)

    def _failed(self, index: int, fault: str, own: str | int | None = None) -> Review:
        meta = dict.fromkeys(("stars", "useful", "year", "month", "date", "age_days"))
        self.found.append(f"review {index} fails: {fault}")
        return Review(index, "", meta, own, fault)

    def _date(self, written: Any, index: int, meta: dict[str, Any], invalid: dict[str, str]) -> None:
        meta |= {"year": None, "month": None, "date": None, "age_days": None}
        if written is None:
            return
        if isinstance(written, date):
            written = written.isoformat()
        found = read_date(written) if isinstance(written, str) else f"it is {kind_of(written)}, not a date"
        if isinstance(found, str):
            shown = _shown(written)
            invalid.update(dict.fromkeys(("year", "month", "date", "age_days"), shown))
            self.found.append(f"the date of review {index}, {shown}, is not used: {found}")
            return
        meta["year"], meta["month"] = found.year, found.month
        if found.date is not None:
            meta["date"] = found.date.isoformat()
            if isinstance(self.as_of, str):
                invalid["age_days"] = "as_of"
            elif self.as_of is not None:
                meta["age_days"] = (self.as_of - found.date).days

    def warnings(self) -> tuple[str, ...]:
        more = len(self.found) - _TOLD
        told = self.found[:_TOLD]
        return (*told, f"{more:,} more faults of reviews are like these") if more > 0 else tuple(told)


def _shown(value: Any) -> str:
    """Return a value for a message: JSON, on one line, without halves of surrogate pairs."""
    try:
        written = json.dumps(value, default=str)
    except (TypeError, ValueError, RecursionError):
        written = kind_of(value)
    return clipped(written, 40)


def _text_fault(value: Any) -> str:
    """Say why ``value`` is no text that can be used, "" where it is one."""
    if not isinstance(value, str):
        return f"it is {kind_of(value)}, not a text"
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return "half of a surrogate pair in it is no text"
    return ""


def _number(value: Any) -> tuple[int | float | None, str]:
    """Return the number that ``value`` is and "", or null and why it is none."""
    if value is None:
        return None, ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, f"it is {kind_of(value)}, not a number"
    if not math.isfinite(value) if isinstance(value, float) else abs(value) >= _LARGEST:
        return None, "it is no number of 64 bits"
    return value, ""


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
        return _loads(line, "")
    except ContextError:  # an object over several lines
        return None


def _loads(body: bytes, where: str) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        try:
            return json.loads(body.decode())  # NaN and halves of surrogate pairs: what has them fails alone
        except (ValueError, RecursionError):
            raise ContextError(f"{where} is not JSON: {error}") from None
