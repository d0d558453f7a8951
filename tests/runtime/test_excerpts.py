"""An excerpt says which items there are before it says what is written about them."""

import json
from typing import Any

import pytest
from knotwork.runtime.excerpts import abridged as in_history
from knotwork.runtime.excerpts import excerpt

LONG = "It makes instruments for laboratories. " * 12
NODES = [{"entity_type": "ORGANIZATION", "description": LONG, "rank": n, "id": f"ORG {n}"} for n in range(30)]


@pytest.mark.parametrize("most", [1_600, 4_000, 9_000])
def test_all_items_are_named_where_there_is_room_for_names(most: int) -> None:
    written = excerpt(NODES, most, 40)
    assert len(written) <= most
    assert [each["id"] for each in json.loads(written)] == [f"ORG {n}" for n in range(30)]


def test_long_fields_go_before_short_ones() -> None:
    shown = json.loads(excerpt(NODES, 4_000, 40))
    assert all(each["rank"] == number for number, each in enumerate(shown))
    assert "description" not in shown[0] and shown[0]["…"] == "… [1 more fields]"


@pytest.mark.parametrize("most", [90, 200, 400, 700])
def test_few_items_are_named_where_there_is_little_room(most: int) -> None:
    written = excerpt(NODES, most)
    assert len(written) <= most
    assert "ORG 0" in written and "an object with" not in written


def test_what_has_no_name_is_shown_by_its_short_fields() -> None:
    rows = [{"text": LONG, "year": 1900 + n} for n in range(20)]
    assert [each["year"] for each in json.loads(excerpt(rows, 1_000))] == [1900 + n for n in range(20)]


def test_items_inside_of_items_are_named_too() -> None:
    nested: Any = {"a": {"b": {"c": {"d": {"id": "deep", "text": LONG}}}}}
    assert '"id": "deep"' in excerpt(nested)


def test_a_name_behind_many_fields_is_kept() -> None:
    item = {**{f"field {n}": LONG for n in range(200)}, "id": "last"}
    assert "last" in excerpt(item, 300)
    assert in_history(item, 20)["id"] == "last"
