"""The date of a review, as people and exports write it; only forms that can be read in one way.

Read: ISO dates and datetimes (``2023-05-17``, ``2023-05-17T08:00:00Z``), year first with other marks (``2023/5/17``),
month names (``May 17, 2023``, ``17 May 2023``), day and month in figures where one of them is over 12 (``17.05.2023``,
``5/17/2023``) or where they are equal. ``2023-05`` and ``2023`` give what they say.
"""

import datetime
import re

from attrs import frozen

__all__ = ["Dated", "read_date"]

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
class Dated:
    """What a text says of a date; without a day ``date`` is None."""

    year: int
    month: int | None = None
    date: datetime.date | None = None


def read_date(text: str) -> Dated | str:
    """Return what ``text`` says, or why it can't be read: a clause for a message."""
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return "it is no date"
    if (partial := _PARTIAL.fullmatch(text)) is not None:
        year, month = int(partial[1]), int(partial[2]) if partial[2] else None
        if year < 1 or (month is not None and not 1 <= month <= 12):
            return "there is no such month"
        return Dated(year, month)
    try:
        found = _whole(text)
    except ValueError:
        return "there is no such day"
    return found if isinstance(found, str) else Dated(found.year, found.month, found)


def _whole(text: str) -> datetime.date | str:
    if text[:4].isdecimal() and text.isascii():
        try:
            return datetime.datetime.fromisoformat(text).date()
        except ValueError:  # the forms below may still be
            pass
    if (found := _YEAR_FIRST.fullmatch(text)) is not None:
        return datetime.date(int(found[1]), int(found[2]), int(found[3]))
    if (found := _YEAR_LAST.fullmatch(text)) is not None:
        one, other, year = int(found[1]), int(found[2]), int(found[3])
        if one <= 12 and other <= 12 and one != other:
            return "the day and the month can't be told apart"
        return datetime.date(year, min(one, other), max(one, other))
    if (found := _NAMED_FIRST.fullmatch(text)) is not None and (month := _month(found[1])):
        return datetime.date(int(found[3]), month, int(found[2]))
    if (found := _NAMED_SECOND.fullmatch(text)) is not None and (month := _month(found[2])):
        return datetime.date(int(found[3]), month, int(found[1]))
    return "it is in no form that is read"


def _month(name: str) -> int:
    """Return the month of an English name or its first three letters (also "sept"), 0 for none."""
    name = name.lower()
    if name in _FULL:
        return _FULL.index(name) + 1
    name = "sep" if name == "sept" else name
    return _MONTHS.index(name) + 1 if name in _MONTHS else 0
