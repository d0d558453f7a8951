"""Gold tables: keys, labels, annotators, and all faults at once."""

from collections.abc import Mapping
from typing import Any

import pytest
from knotwork.runtime.loops.evaluate.gold import Binding, Expected, Gold, GoldError, read_gold, unknown

KNOWN = ("a", "b", "c")
RATING = Expected("rating", "label", ("positive", "negative"))


def bind(keys: Mapping[str, Any]) -> Binding:
    key = keys.get("id")
    return Binding(KNOWN.index(key), f"g{key}") if key in KNOWN else Binding(fault=unknown("review id", key, KNOWN))


def read(rows: list[dict[str, Any]], *expected: Expected) -> Gold:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return read_gold(
        columns,
        rows,
        {each.name: each for each in expected or (RATING,)},
        ["id"],
        bind,
        name="gold.csv",
        what="the seed",
    )


def faults(rows: list[dict[str, Any]], *expected: Expected) -> tuple[str, ...]:
    with pytest.raises(GoldError) as raised:
        read(rows, *expected)
    return raised.value.faults


def test_a_row_labels_an_item_and_an_empty_cell_is_not_labelled() -> None:
    gold = read([{"id": "a", "rating": " positive "}, {"id": "b", "rating": ""}, {"id": "c", "rating": None}])
    assert [(item.keys, item.labels, item.place, item.group) for item in gold.items] == [
        ({"id": "a"}, {"rating": "positive"}, 0, "ga")
    ]


def test_all_faults_are_reported_together_with_the_nearest_name() -> None:
    assert faults(
        [{"id": "a", "rating": "positiv"}, {"id": "bb", "rating": "negative"}, {"id": "c", "rating": "fair"}]
    ) == (
        'gold.csv, row 1: rating is "positiv"; did you mean positive?',
        'gold.csv, row 2: unknown review id "bb"; did you mean b?',
        'gold.csv, row 3: rating is "fair"; the labels are positive, negative',
    )


def test_the_same_key_with_two_labels_is_a_fault_and_with_one_label_is_one_item() -> None:
    (fault,) = faults([{"id": "a", "rating": "positive"}, {"id": "a", "rating": "negative"}])
    assert 'a has the rating "positive" in row 1 and "negative" here; a column named annotator' in fault
    gold = read([{"id": "a", "rating": "positive"}, {"id": "a", "rating": "positive"}])
    assert (len(gold.items), gold.repeated) == (1, 1)
    topics = Expected("topics", "set")
    assert read([{"id": "a", "topics": "x; y"}, {"id": "a", "topics": ["y", "x"]}], topics).repeated == 1


def test_a_label_in_another_case_or_unicode_form_is_read_and_counted() -> None:
    cafe = Expected("rating", "label", ("caf\u00e9", "bar"))
    gold = read(
        [{"id": key, "rating": text} for key, text in zip("abc", ("Cafe\u0301", "bar", "BAR"), strict=True)], cafe
    )
    assert [item.labels["rating"] for item in gold.items] == ["caf\u00e9", "bar", "bar"]
    assert gold.respelled == {"rating": 2}
    (fault,) = faults([{"id": "a", "rating": "Us"}], Expected("rating", "label", ("US", "us")))
    assert 'rating is "Us"' in fault


def test_the_majority_of_the_annotators_counts_and_ties_are_left_out_and_counted() -> None:
    votes = [
        ("a", "x", "positive"),
        ("a", "y", "positive"),
        ("a", "z", "negative"),
        ("b", "x", "positive"),
        ("b", "y", "negative"),
    ]
    gold = read([{"id": key, "annotator": who, "rating": label} for key, who, label in votes])
    assert [item.labels for item in gold.items] == [{"rating": "positive"}]
    assert gold.ties == {"rating": 1} and gold.annotators == ("x", "y", "z")
    assert gold.votes["rating"][1] == {"x": "positive", "y": "negative"}


def test_a_table_without_gold_or_keys_says_what_is_missing() -> None:
    assert "no column that the seed can be scored on" in faults([{"id": "a", "ratng": "positive"}])[0]
    assert faults([{"key": "a", "rating": "positive"}])[0] == "gold.csv has no key column"
    assert "every cell of rating is empty" in faults([{"id": "a", "rating": ""}])[0]


@pytest.mark.parametrize(
    ("expected", "raw", "value"),
    [
        (Expected("v", "flag"), "TRUE", True),
        (Expected("v", "flag"), 0, False),
        (Expected("v", "number"), "4.5", 4.5),
        (Expected("v", "number", whole=True), "4", 4),
        (Expected("v", "set"), '["x", "y"]', ["x", "y"]),
        (Expected("v", "set"), "x; y", ["x", "y"]),
        (Expected("v", "text"), " as it is ", " as it is "),
        (Expected("v", "check"), "words:1..3", "words:1..3"),
        (Expected("v", "score"), "0.5", 0.5),
    ],
)
def test_labels_are_read_in_the_type_of_their_column(expected: Expected, raw: Any, value: Any) -> None:
    (item,) = read([{"id": "a", "v": raw}], expected).items
    assert item.labels == {"v": value} and type(item.labels["v"]) is type(value)


@pytest.mark.parametrize(
    ("expected", "raw", "reason"),
    [
        (Expected("v", "flag"), "maybe", "neither true nor false"),
        (Expected("v", "number"), "four", "not a number"),
        (Expected("v", "number"), "nan", "not a finite number"),
        (Expected("v", "number", whole=True), "4.5", "not a whole number"),
        (Expected("v", "set"), "[x", "not a JSON list"),
        (Expected("v", "check"), "word:1", "checks"),
        (Expected("v", "score"), "1.5", "from 0 to 1"),
    ],
)
def test_a_label_that_does_not_fit_its_column_is_a_fault(expected: Expected, raw: Any, reason: str) -> None:
    assert reason in faults([{"id": "a", "v": raw}], expected)[0]


def test_the_hash_depends_on_keys_and_labels_but_not_on_the_order_of_the_rows() -> None:
    rows = [{"id": "a", "rating": "positive"}, {"id": "b", "rating": "negative"}]
    assert read(rows).hash == read(rows[::-1]).hash != read([rows[0], {"id": "b", "rating": "positive"}]).hash


def test_faults_beyond_twenty_are_counted() -> None:
    found = faults([{"id": f"z{number}", "rating": "positive"} for number in range(30)])
    assert len(found) == 21 and found[-1] == "and 10 more faults"
