"""Functions for dates and times, which are ISO 8601 strings.

Each function has the form ``(meter, value, ...)`` and raises ``ExprError``. A time with an offset is converted to UTC; a time
without an offset is assumed to be in UTC. A string that can't be parsed gives null. No function reads the clock.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, NamedTuple

from ...catalogue.operations import DATE_UNITS
from ...diagnostic import nearest
from .text_functions import string
from .values import ExprError, Meter, short_json

_SECOND = 10**18
"""Ticks per second. A fraction of a second has up to 18 digits, so every valid time is represented exactly."""
_DAY = 86_400 * _SECOND
_LAST_DAY = date.max.toordinal()

_MOMENT = re.compile(
    r"""([0-9]{4})                                            # the year, then a calendar date, a week date or an ordinal date
    (?: -([0-9]{2})-([0-9]{2}) | ([0-9]{2})([0-9]{2}) | -W([0-9]{2})-([1-7]) | -([0-9]{3}) )
    (?:[Tt\ ] ([01][0-9]|2[0-4])                              # the hour
       (?: (:?)([0-5][0-9]) (?: \10([0-5][0-9]) (?:[.,]([0-9]{1,18}))? )? )?
       (?: [Zz] | ([+-])([01][0-9]|2[0-3]) (?: :?([0-5][0-9]) )? )?
    )?""",
    re.VERBOSE,
)
"""A date (2024-03-05, 20240305, 2024-W10-2, 2024-065), optionally with a time of day and an offset."""


class Moment(NamedTuple):
    """A day, or a time on a day, in UTC. ``day`` 1 is 0001-01-01. ``ticks`` counts from midnight; it is None for a day without a time."""

    day: int
    ticks: int | None

    @property
    def date(self) -> date:
        """The day as Python's ``date``."""
        return date.fromordinal(self.day)


def moment(text: str) -> Moment | None:
    """Parse a date or a time. Return None if ``text`` is neither, or is outside the years 1 to 9999 in UTC."""
    if (
        len(text) == 10
    ):  # most dates: Python's function is faster than the pattern, and accepts nothing else of this length
        try:
            return Moment(date.fromisoformat(text).toordinal(), None)
        except ValueError:
            pass
    found = _MOMENT.fullmatch(text.strip())
    if found is None:
        return None
    year, month, day, basic_month, basic_day, week, weekday, ordinal, *time = found.groups()
    try:
        if week:
            days = date.fromisocalendar(int(year), int(week), int(weekday)).toordinal()
        elif ordinal:
            days = _ordinal_day(int(year), int(ordinal))
        else:
            days = date(int(year), int(month or basic_month), int(day or basic_day)).toordinal()
    except ValueError:  # no such day
        return None
    hour, _, minute, second, fraction, sign, ahead, minutes = time
    if hour is None:
        return Moment(days, None)
    ticks = _ticks(hour, minute, second) + int((fraction or "").ljust(18, "0"))
    if ticks > _DAY:  # 24:00 is the last time of a day
        return None
    if sign:
        ticks += _ticks(ahead, minutes, None) * (-1 if sign == "+" else 1)
    carried, ticks = divmod(ticks, _DAY)
    return Moment(days + carried, ticks) if 1 <= days + carried <= _LAST_DAY else None


def _ticks(hours: str, minutes: str | None, seconds: str | None) -> int:
    return (int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)) * _SECOND


def _ordinal_day(year: int, number: int) -> int:
    """Return the day ``number`` of a year. Raises ``ValueError`` if the year has no such day."""
    day = date(year, 1, 1).toordinal() + number - 1
    if not number or date.fromordinal(day).year != year:
        raise ValueError
    return day


def _read(meter: Meter, value: Any, function: str) -> Moment | None:
    written = string(value, f"{function} takes a string")
    meter.characters(len(written))
    return moment(written)


def _written(meter: Meter, result: str) -> str:
    meter.make_text(len(result), wide=False)
    return result


def day_of(meter: Meter, value: Any) -> str | None:
    """Return the day of a date or a time in UTC, as "2024-03-05"; null if the string can't be parsed."""
    found = _read(meter, value, "date")
    return None if found is None else _written(meter, found.date.isoformat())


def year_of(meter: Meter, value: Any) -> int | None:
    """Return the year of a date or a time in UTC; null if the string can't be parsed."""
    found = _read(meter, value, "year")
    return None if found is None else found.date.year


_BEGINNINGS: Mapping[str, Callable[[date], date]] = {
    "year": lambda day: day.replace(month=1, day=1),
    "quarter": lambda day: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
    "month": lambda day: day.replace(day=1),
    "week": lambda day: date.fromordinal(day.toordinal() - day.weekday()),
    "day": lambda day: day,
}
"""Maps each unit that is not shorter than a day to the function that returns the unit's first day."""


def truncated(meter: Meter, unit: Any, value: Any) -> str | None:
    """Return the beginning of the ``unit`` that contains a date or a time in UTC; null if the string can't be parsed.

    The result is a date ("2024-03-04"; weeks begin on Monday), or a time ("2024-03-05T10:00:00Z") if ``unit`` is "hour".
    """
    name = string(unit, "date_trunc takes a string as its unit")
    if name not in DATE_UNITS:
        near = nearest(name, DATE_UNITS) if len(name) < 100 else None
        hint = f"did you mean {short_json(near)}?" if near else "units are " + ", ".join(map(short_json, DATE_UNITS))
        raise ExprError("value", f"unknown unit {short_json(name)}", hint=hint)
    found = _read(meter, value, "date_trunc")
    if found is None:
        return None
    if name == "hour":
        return _written(meter, f"{found.date.isoformat()}T{(found.ticks or 0) // (3600 * _SECOND):02}:00:00Z")
    return _written(meter, _BEGINNINGS[name](found.date).isoformat())


def days_between(meter: Meter, start: Any, end: Any) -> int | float | None:
    """Return the number of days from ``start`` to ``end``.

    The number is negative if ``end`` is earlier. It is null if a string can't be parsed.

    For two dates, the result is an integer. If one of them is a time, the result is a float that includes the fraction of a day, and a
    date means the midnight at its beginning.
    """
    first, last = _read(meter, start, "days_between"), _read(meter, end, "days_between")
    if first is None or last is None:
        return None
    if first.ticks is None and last.ticks is None:
        return last.day - first.day
    return ((last.day - first.day) * _DAY + (last.ticks or 0) - (first.ticks or 0)) / _DAY
