"""Contexts, reviews and their metadata: what is read, what is refused, and that no clock is asked."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.runtime.seeds.reviews import ContextError, ReviewDate, read_context, read_date


def meta(review: dict[str, Any], **context: Any) -> dict[str, Any]:
    (read,) = read_context({"name": "A", "reviews": [{"text": "t", **review}], **context}).reviews
    return dict(read.meta)


NOTHING = {"stars": None, "useful": None, "year": None, "month": None, "date": None, "age_days": None}


def test_what_is_missing_is_null() -> None:
    assert meta({}) == NOTHING
    assert meta({"stars": None, "date": None}) == NOTHING


def test_the_date_gives_year_month_day_and_age() -> None:
    found = meta({"stars": 2, "useful": 7, "date": "2023-05-17"}, as_of="2024-05-17")
    assert found == {"stars": 2, "useful": 7, "year": 2023, "month": 5, "date": "2023-05-17", "age_days": 366}


def test_without_as_of_there_is_no_age() -> None:
    assert meta({"date": "2023-05-17"})["age_days"] is None


def test_a_review_after_as_of_has_a_negative_age() -> None:
    assert meta({"date": "2024-01-03"}, as_of="2024-01-01")["age_days"] == -2


@pytest.mark.parametrize(
    "written",
    [
        "2023-05-17", "2023-05-17T23:59:01", "2023-05-17 08:00", "2023-05-17T08:00:00.123Z", "2023-05-17T08:00+02:00",
        "20230517", "2023/5/17", "2023.05.17", "May 17, 2023", "May 17 2023", "may 17th, 2023", "17 May 2023", "17. May 2023",
        "17-May-2023", "17 may, 2023", "5/17/2023", "17/5/2023", "17.05.2023", "17.05.2023 20:15", " 2023-05-17 ",
    ],
)  # fmt: skip
def test_forms_that_can_be_read_in_one_way(written: str) -> None:
    assert read_date(written) == ReviewDate(2023, 5, date(2023, 5, 17))


@pytest.mark.parametrize("month", ["Jan", "jan.", "January", "JANUARY"])
def test_months_by_name(month: str) -> None:
    assert read_date(f"{month} 3, 2020") == ReviewDate(2020, 1, date(2020, 1, 3))


def test_september_has_a_short_name_of_four_letters() -> None:
    assert read_date("Sept 3, 2020") == ReviewDate(2020, 9, date(2020, 9, 3))


def test_equal_day_and_month_are_not_ambiguous() -> None:
    assert read_date("6/6/2023") == ReviewDate(2023, 6, date(2023, 6, 6))


def test_a_month_or_a_year_alone_give_what_they_say() -> None:
    assert read_date("2023-05") == ReviewDate(2023, 5)
    assert read_date("2023") == ReviewDate(2023)
    assert meta({"date": "2023-05"}, as_of="2024-01-01") == NOTHING | {"year": 2023, "month": 5}


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("5/6/2023", "are ambiguous"), ("2023-02-30", "day does not exist"), ("2023-13", "month does not exist"), ("", "not a date"),
        ("yesterday", "format is unknown"), ("17-05-23", "format is unknown"), ("Mai 17, 2023", "format is unknown"),
        ("x" * 1000, "not a date"),
        ("0000-01-01", "day does not exist"), ("31.11.2023", "day does not exist"), ("٢٠٢٣-05-17", "format is unknown"),
    ],
)  # fmt: skip
def test_a_date_that_is_not_sure_is_null_with_a_warning(written: str, reason: str) -> None:
    read = read_context({"reviews": [{"text": "t", "date": written}]})
    assert dict(read.reviews[0].meta) == NOTHING
    assert len(read.warnings) == 1
    assert reason in read.warnings[0]


def test_a_date_of_another_type_is_null_with_a_warning() -> None:
    read = read_context({"reviews": [{"text": "t", "date": 1684281600}]})
    assert read.warnings == ("the date 1684281600 of review 0 is not used: it is a number, not a date",)


def test_many_unreadable_dates_are_counted() -> None:
    read = read_context({"reviews": [{"text": "t", "date": "soon"}] * 1000})
    assert len(read.warnings) == 6
    assert read.warnings[-1] == "995 more reviews have similar faults"


@pytest.mark.slow
@given(st.text(max_size=80))
def test_no_text_as_a_date_raises(text: str) -> None:
    assert isinstance(read_date(text), ReviewDate | str)


@pytest.mark.slow
@given(st.dates())
def test_every_iso_date_is_read(day: date) -> None:
    assert read_date(day.isoformat()) == ReviewDate(day.year, day.month, day)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (7, "context 17 is a number, not an object"),
        ({}, 'context 17 has no "reviews"'),
        ({"name": "Thai"}, 'context 17 (Thai) has no "reviews"'),
        ({"reviews": {}}, '"reviews" of context 17 is an object, not a list'),
    ],
)  # fmt: skip
def test_what_is_no_context_is_refused_with_its_place(data: Any, message: str) -> None:
    with pytest.raises(ContextError) as raised:
        read_context(data, 17)
    assert str(raised.value) == message


GOOD = {"text": "good", "stars": 4, "date": "2023-05-17", "id": "r"}


@pytest.mark.parametrize(
    ("review", "fault"),
    [
        ("good", "it is a string, not an object"),
        ({"stars": 1}, 'it has no "text"'),
        ({"text": 3}, 'its "text" can\'t be used: it is a number, not a string'),
        ({"text": "a\ud800"}, 'its "text" can\'t be used: it contains a lone surrogate, which is not valid text'),
    ],
)
def test_a_review_without_a_usable_text_fails_alone(review: Any, fault: str) -> None:
    read = read_context({"reviews": [GOOD, review, GOOD]}, 17)
    assert [each.fault for each in read.reviews] == ["", fault, ""]
    assert read.warnings == (f"review 1 fails: {fault}",)


@pytest.mark.parametrize(
    ("name", "value", "keys", "warning"),
    [
        ("stars", "five", ["stars"], 'the value "five" of "stars" in review 1 is not used: it is a string, not a number'),
        ("useful", True, ["useful"], 'the value true of "useful" in review 1 is not used: it is true, not a number'),
        ("stars", float("nan"), ["stars"], 'the value NaN of "stars" in review 1 is not used: it is not finite'),
        ("useful", 2**63, ["useful"], f'the value {2**63} of "useful" in review 1 is not used: its magnitude is 2^63 or more'),
        ("date", "soon", ["year", "month", "date", "age_days"],
         'the date "soon" of review 1 is not used: its format is unknown'),
        ("date", "a\ud800", ["year", "month", "date", "age_days"],
         'the date "a\\ud800" of review 1 is not used: its format is unknown'),
        ("id", 2**63, [], 'the "id" of review 1 is not used: it has more than 64 bits'),
        ("id", [], [], 'the "id" of review 1 is not used: it is a list, neither a string nor a whole number'),
        ("id", "\udc00", [], 'the "id" of review 1 is not used: it contains a lone surrogate, which is not valid text'),
    ],
)  # fmt: skip
def test_faulty_metadata_is_null_for_one_review_alone(name: str, value: Any, keys: list[str], warning: str) -> None:
    read = read_context({"reviews": [GOOD, GOOD | {name: value}, GOOD]}, 17)
    assert [list(each.invalid_meta) for each in read.reviews] == [[], keys, []]
    assert all(read.reviews[1].meta[key] is None for key in keys)
    assert read.warnings == (warning,)


@pytest.mark.parametrize(
    ("data", "warning"),
    [
        ({"name": 3}, 'the "name" of context 17 is not used: it is a number, not a string'),
        (
            {"name": "\udc00"},
            'the "name" of context 17 is not used: it contains a lone surrogate, which is not valid text',
        ),
        (
            {"as_of": "soon"},
            "\"as_of\" of context 17 is not used: 'soon' can't be read as a date: its format is unknown",
        ),
        ({"as_of": "2024"}, "\"as_of\" of context 17 is not used: '2024' can't be read as a date: it has no day"),
        ({"as_of": 3}, '"as_of" of context 17 is not used: it is a number, not a date'),
    ],
)
def test_what_is_wrong_beside_the_reviews_loses_none_of_them(data: dict[str, Any], warning: str) -> None:
    read = read_context({"reviews": [GOOD], **data}, 17)
    assert [each.text for each in read.reviews] == ["good"]
    assert read.warnings == (warning,)
    assert read.name == ""


def test_other_keys_are_allowed() -> None:
    read = read_context({"name": "A", "city": "Ulm", "reviews": [{"text": "t", "language": "de", "id": "r1"}]})
    assert read.values["city"] == "Ulm"
    assert read.reviews[0].id == "r1"


def test_an_excerpt_is_one_bounded_line() -> None:
    read = read_context({"reviews": [{"text": "a\n\nb " + "c" * 10_000}]})
    assert read.reviews[0].excerpt.startswith("a b ccc")
    assert len(read.reviews[0].excerpt) <= 120
