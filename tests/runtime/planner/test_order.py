"""From the last step's text to a ranking: known items only, and nothing is guessed."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.runtime.planner.ranking import read_order

ITEMS = [{"name": f"Cafe {name}"} for name in ("Ada", "Bo", "Cy", "Di", "Ed", "Milkcrate", "Flo", "Gus", "Hal", "Ivy")]


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("5", (5,)), (" 5\n", (5,)), ("[5]", (5,)), ("[5, 2, 7]", (5, 2, 7)), ("5, 2, 7", (5, 2, 7)), ("5 2 7", (5, 2, 7)),
        ("5 > 2 > 7", (5, 2, 7)), ("`5`", (5,)), ("**5**", (5,)), ("5.", (5,)), ('"5"', (5,)), ("['5', '2']", (5, 2)),
        ("5.0", (5,)), ("```json\n[5, 2]\n```", (5, 2)), ('{"ranking": [5, 2]}', (5, 2)), ('{"best_index": 5}', (5,)),
        ('[{"index": 5, "why": "tea"}, {"index": 2}]', (5, 2)),
        ("Item 5", (5,)), ("item 5 and item 2", (5, 2)), ("Best index: 5", (5,)), ("Ranking: 5, 2", (5, 2)), ("Answer: [5]", (5,)),
        ("The best index is 5.", (5,)), ("The best item is item 5", (5,)), ("Final answer: 5", (5,)),
        ("All conditions hold for one of them.\n\n5", (5,)), ("Ranking:\n1. 5\n2. 2", (5, 2)), ("- 5\n- 2", (5, 2)),
        ("1) item 5\n2) item 2", (5, 2)), ("Cafe Milkcrate", (5,)), ("1. Cafe Milkcrate\n2. cafe ada", (5, 0)),
        ("Item 5 is the best match, since it has a drive-thru.", (5,)), ("5, 5, 2", (5, 2)), ("[]5", (5,)),
        ("Rank: 1\nItem: 7", (7,)), ("Rank: 1\nItem: 7\nRank: 2\nItem: 3", (7, 3)), ("Order: 1\n4", (4,)), ("Items: 2\n4\n5", (4, 5)),
        ("Rank 1: item 4\nRank 2: item 2", (4, 2)), ("Rank: 5, 2", (5, 2)), ('{"rank": [5, 2]}', (5, 2)), ("Items: 4, 5", (4, 5)),
        ("2 items:\n4\n5", (4, 5)), ("item 5, item 2", (5, 2)),
    ],
)  # fmt: skip
def test_indices(text: str, indices: tuple[int, ...]) -> None:
    order = read_order(text, ITEMS)
    assert (order.indices, order.reason) == (indices, "")


@pytest.mark.parametrize(
    "text",
    [
        "", "none", "No item matches.", "I looked at 3 cafes.", "3 items match", "null", "[]", "{}", "true", "-1", "10", "[42, 99]",
        "Item 3 does not match.", "Item 3 is close, item 5 too.", "I can't tell.", "5.5", "Cafe Unknown", "1000000000000", "five",
        "Cafes that I looked at:\n3", "0 items", "Result: 0 items", "2 items", "Answer: 2 items", "Rank: 5", "Order: 3",
        '{"rank": 5}', "2 item(s)",
         "The best index is not 5", "item 5.2",
    ],
)  # fmt: skip
def test_what_names_no_item_is_a_failure_and_no_rank(text: str) -> None:
    order = read_order(text, ITEMS)
    assert order.indices == ()
    assert order.reason


def test_unknown_items_are_left_out_and_named() -> None:
    order = read_order("[5, 42, 2]", ITEMS)
    assert (order.indices, order.unknown) == ((5, 2), ('"42"',))


def test_a_name_that_two_items_have_names_none() -> None:
    assert read_order("Twin", [{"name": "Twin"}, {"name": "twin"}]).indices == ()


@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    assert all(0 <= index < len(ITEMS) for index in read_order(text, ITEMS).indices)


@pytest.mark.parametrize("piece", [" ", "1 ", "the best ", "item ", "\n", "[", "final answer ", "best:"])
def test_long_odd_texts_are_read_quickly(piece: str) -> None:
    began = time.perf_counter()
    read_order(piece * (19_000 // len(piece)) + "!", ITEMS)
    assert time.perf_counter() - began < 2
