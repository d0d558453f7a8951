"""Functions of dates and times: what is readable, the conversion to UTC, beginnings of units, and differences."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.lang.catalogue.operations import DATE_UNITS
from knotwork.lang.evaluate.expr import ExprError, Meter, evaluate
from knotwork.lang.evaluate.expr.date_functions import day_of, days_between, moment, truncated, year_of
from knotwork.lang.evaluate.expr.generator import compiled
from knotwork.lang.parse.expr import parse_expr


def value(text, **names):
    """Return the value, after making sure that generated code and the interpreter agree."""
    expr = parse_expr(text).expr
    found = evaluate(expr, names)
    assert repr(compiled(expr)(names)) == repr(found)
    return found


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-03-05", "2024-03-05"), ("20240305", "2024-03-05"), (" 2024-03-05\n", "2024-03-05"),
        ("2024-02-29", "2024-02-29"), ("2000-02-29", "2000-02-29"), ("0004-02-29", "0004-02-29"),
        ("2020-W53-5", "2021-01-01"), ("2020-W53-7", "2021-01-03"), ("2021-W01-1", "2021-01-04"), ("2024-W10-2", "2024-03-05"),
        ("2024-001", "2024-01-01"), ("2024-366", "2024-12-31"), ("2023-365", "2023-12-31"),
        ("0001-01-01", "0001-01-01"), ("9999-12-31", "9999-12-31"), ("9999-365", "9999-12-31"),
        ("2024-03-05T10", "2024-03-05"), ("2024-03-05T10:15", "2024-03-05"), ("2024-03-05 10:15:30", "2024-03-05"),
        ("2024-03-05t10:15:30.5z", "2024-03-05"), ("2024-03-05T10:15:30,123456789012345678Z", "2024-03-05"),
        ("20240305T101530Z", "2024-03-05"), ("2024-065T1015", "2024-03-05"), ("2024-W10-2T10:15", "2024-03-05"),
        ("2024-03-05T23:59:59.999Z", "2024-03-05"), ("2024-03-05T24:00", "2024-03-06"), ("2024-02-28T24:00:00.0Z", "2024-02-29"),
        ("2024-03-05T23:30-05:00", "2024-03-06"), ("2024-03-05T00:30+01:00", "2024-03-04"), ("2024-03-05T00:30+0045", "2024-03-04"),
        ("2024-03-05T00:30+00", "2024-03-05"), ("2024-03-05T00:00-00:00", "2024-03-05"), ("2024-03-01T00:00+00:01", "2024-02-29"),
        ("2024-03-05T24:00+23:59", "2024-03-05"), ("2024-03-05T24:00-23:59", "2024-03-06"),
        ("0001-01-01T00:00-00:01", "0001-01-01"), ("9999-12-31T23:59+00:01", "9999-12-31"), ("9999-12-31T24:00+00:01", "9999-12-31"),
    ],
)  # fmt: skip
def test_readable_texts(text, day):
    assert value("date(t)", t=text) == day
    assert value("year(t)", t=text) == int(day[:4])


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "x", "yesterday", "2024", "2024-03", "202403", "24-03-05", "2024-3-5", "2024/03/05", "05.03.2024",
        "2024-0305", "202403-05",
        "2023-02-29", "1900-02-29", "2100-02-29", "2024-02-30", "2024-04-31", "2024-13-01", "2024-00-01", "2024-01-00", "0000-01-01",
        "2021-W53-1", "2024-W00-1", "2024-W10-0", "2024-W10-8", "2024-W10", "9999-W52-6", "2023-366", "2024-367", "2024-000", "9999-366",
        "0000-001", "2024-03-05T", "2024-03-05T1", "2024-03-05T25:00", "2024-03-05T24:00:01", "2024-03-05T24:01", "2024-03-05T10:60",
        "2024-03-05T10:15:60", "2016-12-31T23:59:60Z", "2024-03-05T10:1530", "2024-03-05T1015:30", "2024-03-05T10.5", "2024-03-05T10:15.5",
        "2024-03-05T10:15:30.", "2024-03-05T10:15:30.1234567890123456789", "2024-03-05T10:15+24:00", "2024-03-05T10:15+01:60",
        "2024-03-05T10:15 +01:00", "2024-03-05T10:15ZZ", "2024-03-05Z", "2024-03-05+01:00", "2024-03-05  10:15", "2024-03-05T10:15 UTC",
        "+002024-03-05", "-2024-03-05", "٢٠٢٤-03-05", "2024-03-0\uff15", "2024-03-05\ud800", "\ud800", "2024-03-05" * 100_000,
        "0001-01-01T00:00+00:01", "9999-12-31T23:59-00:01", "9999-12-31T24:00", "9999-12-31T24:00Z",
    ],
)  # fmt: skip
def test_unreadable_texts_are_null(text):
    values = "[date(t), year(t), date_trunc('day', t), date_trunc('hour', t), days_between(t, d), days_between(d, t)]"
    assert value(values, t=text, d="2024-01-01") == [None] * 6


@pytest.mark.parametrize(
    ("text", "beginnings"),
    [
        ("2024-03-05T10:59:59.9", ("2024-01-01", "2024-01-01", "2024-03-01", "2024-03-04", "2024-03-05", "2024-03-05T10:00:00Z")),
        ("2024-02-29", ("2024-01-01", "2024-01-01", "2024-02-01", "2024-02-26", "2024-02-29", "2024-02-29T00:00:00Z")),
        ("2021-01-03", ("2021-01-01", "2021-01-01", "2021-01-01", "2020-12-28", "2021-01-03", "2021-01-03T00:00:00Z")),
        ("2024-12-31T23:00-02:00", ("2025-01-01", "2025-01-01", "2025-01-01", "2024-12-30", "2025-01-01", "2025-01-01T01:00:00Z")),
        ("0001-01-01", ("0001-01-01", "0001-01-01", "0001-01-01", "0001-01-01", "0001-01-01", "0001-01-01T00:00:00Z")),
        ("9999-12-31T23", ("9999-01-01", "9999-10-01", "9999-12-01", "9999-12-27", "9999-12-31", "9999-12-31T23:00:00Z")),
    ],
)  # fmt: skip
def test_beginnings(text, beginnings):
    assert tuple(value("date_trunc(unit, t)", unit=unit, t=text) for unit in DATE_UNITS) == beginnings


def test_quarters():
    quarters = [value("date_trunc('quarter', t)", t=f"2023-{month:02}-31"[:10]) for month in (1, 3, 5, 7, 8, 10, 12)]
    assert quarters == [f"2023-{month}-01" for month in ("01", "01", "04", "07", "07", "10", "10")]


@pytest.mark.parametrize(
    ("start", "end", "days"),
    [
        ("2024-02-28", "2024-03-01", 2), ("2023-02-28", "2023-03-01", 1), ("2024-03-01", "2024-02-28", -2), ("2024-03-01", "20240301", 0),
        ("0001-01-01", "9999-12-31", 3652058), ("2024-03-01", "2024-03-01T12:00", 0.5), ("2024-03-01T12:00", "2024-03-01", -0.5),
        ("2024-03-01T00:00", "2024-03-02", 1.0), ("2024-03-01T00:00+02:00", "2024-02-29T22:00Z", 0.0),
        ("2024-03-01T00:00:00", "2024-03-01T00:00:00.000000000000000001", 1 / 86_400e18),
        ("2024-03-30T12:00+01:00", "2024-03-31T12:00+02:00", 23 / 24), ("2024-03-01T06:00", "2024-03-03T12:00", 2.25),
    ],
)  # fmt: skip
def test_differences(start, end, days):
    found = value("days_between(a, b)", a=start, b=end)
    assert found == days and type(found) is type(days)


@pytest.mark.parametrize(
    ("text", "kind", "message", "hint"),
    [
        ("date(t)", "type", "date takes a string, not null", "t is null"),
        ("year(2024)", "type", "year takes a string, not a number: 2024", ""),
        ('days_between("2024-01-01", t)', "type", "days_between takes a string, not null", "t is null"),
        ('date_trunc("day", t)', "type", "date_trunc takes a string, not null", "t is null"),
        ('date_trunc(1, "2024-01-01")', "type", "date_trunc takes a string as its unit, not a number: 1", ""),
        ('date_trunc("months", "2024-01-01")', "value", 'unknown unit "months"', 'did you mean "month"?'),
        ('date_trunc("century", "x")', "value", 'unknown unit "century"',
         'units are "year", "quarter", "month", "week", "day", "hour"'),
    ],
)  # fmt: skip
def test_what_is_refused(text, kind, message, hint):
    expr = parse_expr(text).expr
    for run in (lambda: evaluate(expr, {"t": None}), lambda: compiled(expr)({"t": None})):
        with pytest.raises(ExprError) as caught:
            run()
        assert (caught.value.kind, caught.value.message, caught.value.hint) == (kind, message, hint)


zones = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
times = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=st.one_of(st.none(), st.just(UTC), zones))


def utc(time):
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


@pytest.mark.slow
@given(times, st.sampled_from("T "))
def test_times_are_those_of_python(time, separator):
    text, wanted, meter = time.isoformat(separator), utc(time), Meter()
    assert day_of(meter, text) == wanted.date().isoformat()
    assert year_of(meter, text) == wanted.year
    hour = wanted.replace(minute=0, second=0, microsecond=0, tzinfo=None)
    assert truncated(meter, "hour", text) == hour.isoformat() + "Z"


@pytest.mark.slow
@given(times, times)
def test_differences_are_those_of_python(start, end):
    found = days_between(Meter(), start.isoformat(), end.isoformat())
    assert found == (utc(end) - utc(start)) / timedelta(days=1)


@pytest.mark.slow
@given(st.dates())
def test_every_form_of_a_date_is_read(day):
    year, week, weekday = day.isocalendar()
    forms = [day.isoformat(), day.strftime("%Y%m%d").zfill(8), f"{day.year:04}-{day.timetuple().tm_yday:03}"]
    forms += [f"{year:04}-W{week:02}-{weekday}"] if 1 <= year <= 9999 else []
    assert {day_of(Meter(), form) for form in forms} == {day.isoformat()}
    for unit in DATE_UNITS[:-1]:
        beginning = truncated(Meter(), unit, day.isoformat())
        assert beginning <= day.isoformat() and truncated(Meter(), unit, beginning) == beginning
    assert date.fromisoformat(truncated(Meter(), "week", day.isoformat())).weekday() == 0


@pytest.mark.slow
@given(st.text(st.sampled_from("0123456789-:TWZ+. "), max_size=30))
def test_any_text_is_a_moment_or_none(text):
    found = moment(text)
    assert found is None or 1 <= found.day <= date.max.toordinal()
