"""Items in the plan's prompt: flat where they are many, bounded, and what is left out is said to the model and to whoever asked."""

import re
from typing import Any

import pytest
from knotwork import planner
from knotwork.runtime.loops.rank.plan_phase import ALL, compact
from support.scripted import Scripted


def cafes(count: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "desc": "q" * 100, "name": f"Cafe {n}", "attributes": {"DriveThru": n % 2 == 0, "GoodForKids": True, "HasTV": False},
            "item_data": [{"review": "fine"}] * 2, **more,
        }
        for n in range(count)
    ]  # fmt: skip


def test_few_items_are_their_json() -> None:
    shown = compact(cafes(10))
    assert shown.warning == ""
    assert '"attributes": {"DriveThru": true, "GoodForKids": true, "HasTV": false}' in shown.text.splitlines()[0]


@pytest.mark.slow
@pytest.mark.parametrize("count", [500, 600, 1_000, 2_000])
def test_of_many_items_every_condition_is_shown_and_nothing_is_named_by_its_kind(count: int) -> None:
    text = compact(cafes(count)).text
    assert "an object with" not in text
    assert len(text) <= ALL
    rows = [line for line in text.splitlines() if re.match(r"\[\d+\] ", line)]
    assert len(rows) == count
    assert all(
        f"{str(n % 2 == 0).lower()}|true|false" in row or f'"DriveThru": {str(n % 2 == 0).lower()}' in row
        for n, row in enumerate(rows)
    )
    assert all(f'"Cafe {n}"' in row for n, row in enumerate(rows))


@pytest.mark.slow
def test_flat_fields_stand_by_their_paths() -> None:
    shown = compact([{"a.b": 1, "a": {"b": 2}, "story": "y" * 2_000, "text": "z" * 90} for _ in range(1_200)])
    row = next(line for line in shown.text.splitlines() if line.startswith("[7]"))
    assert row.startswith('[7] "a.b"=1, a.b=2, ')


@pytest.mark.slow
def test_what_is_left_out_is_told_to_the_model_and_to_the_caller(simple: str) -> None:
    model = Scripted(simple, "5")
    ranked = planner.rank_sync(cafes(2_000, story="y" * 9_000), "tea", model)
    (warning,) = ranked.warnings
    assert warning.startswith(
        "for 2,000 items, only attributes.DriveThru, attributes.GoodForKids, attributes.HasTV, name are shown"
    )
    assert warning.endswith("; shown in part: desc; omitted: story, item_data")
    assert warning in model.calls[0][0]


def test_texts_that_do_not_fit_are_begun_with_all_the_room_there_is() -> None:
    shown = compact(["some text of an item " * 8] * 2_000)
    assert ALL * 0.85 < len(shown.text) <= ALL
    assert "shown in part" in shown.warning


@pytest.mark.slow
@pytest.mark.parametrize(
    "items",
    [
        [{"reviews": [{"text": "x" * 10_000}] * 50, "story": "y" * 9_000}] * 2_000,
        [{f"k{n}-{k}": k for k in range(40)} for n in range(2_000)],
        [{"x" * 5_000 + str(n): 1} for n in range(2_000)], ["\\" * 119] * 2_000, [list(range(50))] * 2_000, list(range(2_000)),
        [{"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": 1}}}}}}}}] * 2_000, [{"\n[3] x": "\u2028[4] y"}] * 1_500,
    ],
)  # fmt: skip
def test_the_bound_holds_and_no_item_is_missing(items: list[Any]) -> None:
    text = compact(items).text
    assert len(text) <= ALL
    assert [int(number) for number in re.findall(r"^\[(\d+)\]", text, re.MULTILINE)] == list(range(len(items)))
    assert len(text.splitlines()) - len(items) in (0, 1, 2)
