"""Reads contexts and their reviews from JSON, checks them, and filters the reviews. See ``docs/design/seed.md#extraction``.

A context is ``{"name", ..., "as_of"?, "reviews": [{"text", "stars"?, "useful"?, "date"?, "id"?, ...}]}``. Metadata comes only from the
review and from the fixed ``as_of`` of the context, never from the clock, so the same context always gives the same result.
"""

import datetime
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from attrs import field, frozen

from ...lang.errors import KnotworkError
from ...lang.literals import kind_of
from ...lang.trees.seed import FormulaSeed, Keep
from ...lang.unicode_forms import canonical, caseless
from ..excerpts import clipped

# The date of a review in common written forms; only unambiguous forms are accepted.
# Accepted: ISO dates and datetimes (``2023-05-17``, ``2023-05-17T08:00:00Z``), year first with other separators (``2023/5/17``),
# month names (``May 17, 2023``, ``17 May 2023``), and numeric day and month if one of them is over 12 (``17.05.2023``,
# ``5/17/2023``) or if both are equal. ``2023-05`` gives only a year and a month, ``2023`` only a year.

_LONGEST = 64
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FULL = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_TIME = r"(?:,?[ T]+[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?: ?[ap]\.?m\.?)?)?"
_YEAR_FIRST = re.compile(r"([0-9]{4})[/.-]([0-9]{1,2})[/.-]([0-9]{1,2})" + _TIME, re.IGNORECASE)
_YEAR_LAST = re.compile(r"([0-9]{1,2})[/.-]([0-9]{1,2})[/.-]([0-9]{4})" + _TIME, re.IGNORECASE)
_NAMED_FIRST = re.compile(r"([a-z]{3,9})\.? ([0-9]{1,2})(?:st|nd|rd|th)?,? ([0-9]{4})" + _TIME, re.IGNORECASE)
_NAMED_SECOND = re.compile(r"([0-9]{1,2})(?:st|nd|rd|th|\.)?[ -]([a-z]{3,9})\.?,?[ -]([0-9]{4})" + _TIME, re.IGNORECASE)
_PARTIAL = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")


@frozen
class ReviewDate:
    """A parsed date. ``date`` is None if the day is not known."""

    year: int
    month: int | None = None
    date: datetime.date | None = None


def read_date(text: str) -> ReviewDate | str:
    """Return the date in ``text``, or the reason why the date can't be read, as a clause for a message."""
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return "it is not a date"
    if (partial := _PARTIAL.fullmatch(text)) is not None:
        year, month = int(partial[1]), int(partial[2]) if partial[2] else None
        if year < 1 or (month is not None and not 1 <= month <= 12):
            return "the month does not exist"
        return ReviewDate(year, month)
    try:
        found = _full_date(text)
    except ValueError:
        return "the day does not exist"
    return found if isinstance(found, str) else ReviewDate(found.year, found.month, found)


def _full_date(text: str) -> datetime.date | str:
    if text[:4].isdecimal() and text.isascii():
        try:
            return datetime.datetime.fromisoformat(text).date()
        except ValueError:  # the forms below may match
            pass
    if (found := _YEAR_FIRST.fullmatch(text)) is not None:
        return datetime.date(int(found[1]), int(found[2]), int(found[3]))
    if (found := _YEAR_LAST.fullmatch(text)) is not None:
        one, other, year = int(found[1]), int(found[2]), int(found[3])
        if one <= 12 and other <= 12 and one != other:
            return "day and month are ambiguous"
        return datetime.date(year, min(one, other), max(one, other))
    if (found := _NAMED_FIRST.fullmatch(text)) is not None and (month := _month(found[1])):
        return datetime.date(int(found[3]), month, int(found[2]))
    if (found := _NAMED_SECOND.fullmatch(text)) is not None and (month := _month(found[2])):
        return datetime.date(int(found[3]), month, int(found[1]))
    return "its format is unknown"


def _month(name: str) -> int:
    """Return the number of the month with this English name or abbreviation (three letters, or "sept"); 0 for other names."""
    name = name.lower()
    if name in _FULL:
        return _FULL.index(name) + 1
    name = "sep" if name == "sept" else name
    return _MONTHS.index(name) + 1 if name in _MONTHS else 0


EXCERPT = 120
"""Maximum characters of a review that a result contains."""
_LARGEST = 2**63
_TOLD = 5
"""Number of warnings of one kind that are reported individually."""


class ContextError(KnotworkError, ValueError):
    """Raised if a context is invalid, for example because it is not an object or has no list of reviews. The message gives the reason."""


@frozen
class Review:
    """A review in the form that a seed uses."""

    index: int
    text: str
    meta: Mapping[str, Any]
    id: str | int | None = None
    fault: str = ""
    """The reason why the text can't be used, or "". If the text can't be used, no call is made and the extraction fails."""
    invalid_meta: Mapping[str, str] = field(factory=dict)
    """Maps keys of ``meta`` to the invalid values in the review; in ``meta``, the value of such a key is null."""

    @property
    def excerpt(self) -> str:
        """Return the beginning of the text, on one line."""
        return clipped(self.text, EXCERPT)


@frozen
class Context:
    """A context that was read. ``values`` is the JSON object, which expressions can use as ``context``."""

    name: str
    index: int
    values: Mapping[str, Any] = field(repr=False)
    reviews: tuple[Review, ...] = field(repr=False)
    warnings: tuple[str, ...] = ()


@frozen
class UnreadableText:
    """The text of a review that could not be read from its source, such as a table. The review fails with ``reason``."""

    reason: str


@frozen
class InvalidContext:
    """A context that can't be read, in a stream of contexts. Its result has the status failed, with ``fault`` as the reason.

    ``data`` are the fields of the context that its result shows: the group columns of a table.
    """

    name: str
    index: int
    fault: str
    data: Mapping[str, Any] = field(factory=dict)


_DEEPEST = 100


def without_reviews(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return a context without its reviews. This is the part that formulas may read."""
    return {key: value for key, value in context.items() if key != "reviews"}


def object_fault(value: Any) -> str:
    """Return the reason why a JSON value can't be a context or a result; "" if it is an object that can be processed."""
    if not isinstance(value, dict):
        return f"{kind_of(value)}, not an object"
    return f"nested more than {_DEEPEST} levels deep" if _is_deep(without_reviews(value)) else ""


def _is_deep(value: Any) -> bool:
    """Return whether a JSON value is nested too deeply to be processed and written again."""
    layer = [value]
    for _ in range(_DEEPEST + 1):
        inner = (each.values() if isinstance(each, dict) else each for each in layer if isinstance(each, dict | list))
        layer = [part for parts in inner for part in parts]
        if not layer:
            return False
    return True


def read_context(data: Any, index: int = 0, where: str = "") -> Context:
    """Read one context; ``index`` is its position among all contexts. Raises ``ContextError``.

    ``where`` names the context in messages; by default, the context is named by its index.
    """
    where = where or f"context {index}"
    if not isinstance(data, Mapping):
        raise ContextError(f"{where} is {kind_of(data)}, not an object")
    if not all(isinstance(key, str) for key in data):
        raise ContextError(f"{where} has a key that is not a string")
    name = data.get("name")
    warnings: list[str] = []
    if name is not None and (fault := text_fault(name)):
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
    """Return the day from which ages are computed, None if no day is given, or the reason why the value is invalid."""
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
    """Reads the reviews of one context and collects warnings. A faulty review does not affect other reviews."""

    as_of: date | str | None
    found: list[str] = field(factory=list)

    def review(self, data: Any, index: int) -> Review:
        if not isinstance(data, Mapping):
            return self._failed(index, f"it is {kind_of(data)}, not an object")
        own = data.get("id")
        if isinstance(own, str):
            fault = text_fault(own)
        elif isinstance(own, bool) or not isinstance(own, int | None):
            fault = f"it is {kind_of(own)}, neither a string nor a whole number"
        else:
            fault = "it has more than 64 bits" if own is not None and abs(own) >= _LARGEST else ""
        if fault:
            self.found.append(f'the "id" of review {index} is not used: {fault}')
            own = None
        if "text" not in data:
            return self._failed(index, 'it has no "text"', own)
        text = "" if data["text"] is None else data["text"]  # a review with stars only: exports have null as its text
        if fault := text_fault(text):
            return self._failed(index, f'its "text" can\'t be used: {fault}', own)
        meta: dict[str, Any] = {}
        invalid: dict[str, str] = {}
        for name in ("stars", "useful"):
            value, fault = _number(data.get(name))
            meta[name] = value
            if fault:
                invalid[name] = value_text(data[name])
                self.found.append(f'the value {invalid[name]} of "{name}" in review {index} is not used: {fault}')
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
            shown = value_text(written)
            invalid.update(dict.fromkeys(("year", "month", "date", "age_days"), shown))
            self.found.append(f"the date {shown} of review {index} is not used: {found}")
            return
        meta["year"], meta["month"] = found.year, found.month
        if found.date is not None:
            meta["date"] = found.date.isoformat()
            if isinstance(self.as_of, str):
                invalid["age_days"] = "as_of"
            elif self.as_of is not None:
                meta["age_days"] = (self.as_of - found.date).days

    def warnings(self) -> tuple[str, ...]:
        return review_warnings(self.found)


def review_warnings(found: Sequence[str]) -> tuple[str, ...]:
    """Return the first few of the warnings about the reviews of one context, and the number of the others."""
    more = len(found) - _TOLD
    told = found[:_TOLD]
    return (*told, f"{more:,} more reviews have similar faults") if more > 0 else tuple(told)


def value_text(value: Any) -> str:
    """Return ``value`` for a message, as JSON on one line without lone surrogates."""
    try:
        written = json.dumps(value, default=str)
    except (TypeError, ValueError, RecursionError):
        written = kind_of(value)
    return clipped(written, 40)


def text_fault(value: Any) -> str:
    """Return why ``value`` is not usable as text, "" if it is usable."""
    if not isinstance(value, str):
        return value.reason if isinstance(value, UnreadableText) else f"it is {kind_of(value)}, not a string"
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return "it contains a lone surrogate, which is not valid text"
    return ""


def _number(value: Any) -> tuple[int | float | None, str]:
    """Return the number and "", or None and the reason why ``value`` is invalid (for None, the reason is "")."""
    if value is None:
        return None, ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, f"it is {kind_of(value)}, not a number"
    if not math.isfinite(value) if isinstance(value, float) else abs(value) >= _LARGEST:
        return None, "it is not finite" if isinstance(value, float) else "its magnitude is 2^63 or more"
    return value, ""


# The first step of a run filters the reviews, without a model. See ``docs/design/seed.md#filter``.

_PATTERN_BYTES = 64 << 20
"""Maximum memory of all patterns of a filter, in bytes."""
_LEAST_BYTES = 32 << 10


class FilterError(KnotworkError, ValueError):
    """Raised if a keyword of the filter is invalid."""


@frozen
class KeywordCount:
    """A keyword, and the number of reviews that match this keyword."""

    keyword: str
    kept: int


@frozen
class ReviewFilter:
    """Keeps the reviews that match at least one keyword, ignoring case; without keywords, keeps all reviews that have a text.

    Keywords and texts are compared in their composed forms, so "é" written with a combining accent matches "é".
    """

    keep: Keep
    _tests: tuple[Callable[[str], bool], ...]

    @classmethod
    def of(cls, seed: FormulaSeed) -> "ReviewFilter":
        """Return the filter that ``seed`` defines. Raises ``FilterError`` for an invalid regular expression."""
        words = seed.keep.keywords
        if seed.keep.match == "regex":
            room = max(_LEAST_BYTES, _PATTERN_BYTES // max(1, len(words)))
            return cls(seed.keep, tuple(_regex(word, room) for word in words))
        return cls(seed.keep, tuple(map(_word if seed.keep.match == "word" else _substring, words)))

    def keeps(self, text: str) -> bool:
        """Return whether a review with this text is kept. A blank text is never kept."""
        if _is_blank(text):
            return False
        if not self._tests:
            return True
        compared = self._compared(text)
        return any(test(compared) for test in self._tests)

    def reviews_to_keep(self, reviews: Iterable[Review]) -> list[Review]:
        """Return the reviews to keep, in order. A review with an unusable text is kept, because its content is unknown."""
        return [review for review in reviews if review.fault or self.keeps(review.text)]

    def matching(self, text: str) -> list[bool]:
        """Return for each keyword whether it matches this text."""
        compared = self._compared(text)
        return [test(compared) for test in self._tests]

    def _compared(self, text: str) -> str:
        return canonical(text) if self.keep.match == "regex" else caseless(text)

    @staticmethod
    def is_kept(text: str, matching: Sequence[bool]) -> bool:
        """Return whether a review with this text is kept, for the result of ``matching``."""
        return not _is_blank(text) and (any(matching) or not matching)


def keyword_counts(seed: FormulaSeed, texts: Iterable[str]) -> tuple[list[KeywordCount], int, int]:
    """Return the number of ``texts`` that each keyword matches, the number that the filter keeps, and the number of all texts."""
    keeper = ReviewFilter.of(seed)
    counts = [0] * len(seed.keep.keywords)
    kept = total = 0
    for text in texts:
        total += 1
        matching = keeper.matching(text)
        kept += keeper.is_kept(text, matching)
        for place, matches in enumerate(matching):
            counts[place] += matches
    return [KeywordCount(*pair) for pair in zip(seed.keep.keywords, counts, strict=True)], kept, total


def _is_blank(text: str) -> bool:
    return not text or text.isspace()


def _substring(keyword: str) -> Callable[[str], bool]:
    wanted = caseless(keyword)
    return lambda folded: wanted in folded


def _word(keyword: str) -> Callable[[str], bool]:
    """Return a test for the keyword as a whole word: no letter, digit or underscore comes directly before or after the keyword."""
    wanted = caseless(keyword)
    before = r"(?<!\w)" if _in_word(wanted[:1]) else ""
    after = r"(?!\w)" if _in_word(wanted[-1:]) else ""
    found = re.compile(f"{before}{re.escape(wanted)}{after}").search
    return lambda folded: wanted in folded and found(folded) is not None


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _regex(keyword: str, room: int) -> Callable[[str], bool]:
    import re2  # imported here because few filters have patterns

    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    options.max_mem = room
    try:
        compiled: Any = re2.compile(canonical(keyword), options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise FilterError(f"the pattern {keyword[:60]!r} can't be used: {reason}") from None
    return lambda text: compiled.search(text) is not None
