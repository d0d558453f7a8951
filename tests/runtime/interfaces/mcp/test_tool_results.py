"""Results in pages: bounded, and together the whole."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.runtime.api.shared_workspace import ResultStore
from knotwork.runtime.interfaces.mcp.tool_results import LIMIT, part_of

_sound = st.characters(exclude_categories=["Cs"])
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | st.text(_sound, max_size=60),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(_sound, max_size=8), inner, max_size=5),
    max_leaves=20,
)  # fmt: skip


def pages(value: Any, characters: int, limit: int = LIMIT) -> list[Any]:
    found, at = [], 0
    while True:
        part = part_of(value, at, characters, limit)
        found.append(part)
        if part.following is None:
            return found
        assert part.following > at, "every page gets further"
        at = part.following


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(_json, max_size=40), st.integers(50, 2_000), st.integers(1, 20))
def test_the_pages_of_a_list_are_bounded_and_together_all_of_it(value: list[Any], characters: int, limit: int) -> None:
    parts = pages(value, characters, limit)
    assert sum(part.shown for part in parts) == len(value) == parts[0].total
    assert all(part.shown <= limit for part in parts)
    if not any(part.cut for part in parts):
        assert [item for part in parts for item in part.value] == value


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), _json, max_size=30),
    st.integers(50, 500),
)
def test_the_pages_of_an_object_have_every_member_once(value: dict[str, Any], characters: int) -> None:
    parts = pages(value, characters)
    assert [name for part in parts for name in part.value] == list(value)


@pytest.mark.slow
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=500), st.integers(1, 100))
def test_the_pages_of_a_text_are_the_text(value: str, characters: int) -> None:
    assert "".join(part.value for part in pages(value, characters)) == value


@pytest.mark.slow
def test_a_page_costs_what_it_shows() -> None:
    million = [{"id": number} for number in range(1_000_000)]
    part = part_of(million, 999_990, 20_000)
    assert part.shown == 10 and part.following is None
    assert len(json.dumps(part_of(million, 0, 5_000, LIMIT).value)) < 12_000


@pytest.mark.parametrize(
    "item", ["x" * 100_000, {"text": "x" * 100_000, "id": 7}, [["x" * 1_000] * 50] * 50, {"x" * 5_000: 1}]
)
def test_what_is_larger_than_a_page_is_shown_in_brief(item: Any) -> None:
    part = part_of([item, "small"], 0, 1_000)
    assert len(json.dumps(part.value)) < 6_000 and part.cut and part.shown >= 1


@pytest.mark.parametrize("value", ["\ud800", {"\ud800": "\udfff"}, [float("inf"), 2**80, float("nan")]])
def test_what_no_json_can_say_is_said_otherwise(value: Any) -> None:
    json.dumps(part_of(value, 0, 1_000).value, allow_nan=False).encode()


def test_no_client_takes_anothers_pages() -> None:
    shelf = ResultStore(most=2)
    mine = shelf.put("ada", "mine")
    for number in range(10):
        shelf.put("bob", number)
    assert shelf.get("ada", mine) == "mine"


def test_the_shelf_keeps_the_latest_and_knows_whose_they_are() -> None:
    shelf = ResultStore(most=2)
    handles = [shelf.put("ada", number) for number in range(3)]
    assert [shelf.get("ada", handle) for handle in handles[1:]] == [1, 2]
    for who, handle in (("ada", handles[0]), ("bob", handles[1])):
        with pytest.raises(KeyError):
            shelf.get(who, handle)
