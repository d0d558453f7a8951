"""From the last step's text to a ranking: known items only, and nothing is guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.runtime.loops.rank.ranking_parser import read_order
from support.cpu_time import within

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


@pytest.mark.parametrize("text", ["{}", '["{}"]', "1. {}", "The best one is {}.", '{{"best": "{}"}}'])
def test_a_name_is_that_of_the_item_in_any_unicode_form(text: str) -> None:
    for item, answer in (
        ("Caf\u00e9 Zo\u00eb", "Cafe\u0301 Zoe\u0308"),
        ("Cafe\u0301 Zoe\u0308", "Caf\u00e9 Zo\u00eb"),
    ):
        assert read_order(text.format(answer), [{"name": "Bar"}, {"name": item}]).indices == (1,)


@pytest.mark.parametrize(
    "text",
    [
        "", "I looked at 3 cafes.", "3 items match", "null", "{}", "true", "-1", "10", "[42, 99]",
        "Item 3 does not match.", "Item 3 is close, item 5 too.", "I can't tell.", "5.5", "Cafe Unknown", "1000000000000", "five",
        "Cafes that I looked at:\n3", "2 items", "Answer: 2 items", "Rank: 5", "Order: 3",
        '{"rank": 5}', "2 item(s)",
         "The best index is not 5", "item 5.2",
    ],
)  # fmt: skip
def test_what_names_no_item_is_a_failure_and_no_rank(text: str) -> None:
    order = read_order(text, ITEMS)
    assert order.indices == ()
    assert order.reason


CAFES = [
    {"name": name}
    for name in (
        "Cafe Ada",
        "Blue Door",
        "Cafe",
        "Milkcrate",
        "Best",
        "Milkcrate Cafe",
        "The Tea Room",
        "Hot Pot 24/7",
        "Tea Room Two",
    )
]


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("5 (Milkcrate Cafe)", (5,)), ("**5** (Milkcrate Cafe)", (5,)), ("5 - Milkcrate Cafe", (5,)), ("5: Milkcrate Cafe", (5,)),
        ("Milkcrate Cafe (item 5)", (5,)), ("[5] Milkcrate Cafe", (5,)), ("#5 Milkcrate Cafe", (5,)), ("5. Milkcrate Cafe", (5,)),
        ("5\n\nIt has a drive-thru and 4.5 stars.", (5,)), ("5, because it has a drive-thru.", (5,)), ("\\boxed{5}", (5,)),
        ("5\n\nItem 5 has a drive-thru; the others lack one.", (5,)), ("5\nMilkcrate Cafe", (5,)), ("Milkcrate Cafe\n5", (5,)),
        ("The answer is Milkcrate Cafe.", (5,)), ("I recommend Milkcrate Cafe because it has a drive-thru.", (5,)),
        ("Milkcrate Cafe has 3 out of 10 stars", (5,)), ("Blue Door has 5 stars", (1,)), ("Milkcrate", (3,)), ("Best", (4,)),
        ("The best index is 5 (Milkcrate Cafe).", (5,)), ('{"answer": "5 (Milkcrate Cafe)"}', (5,)), ("7 (Hot Pot 24/7)", (7,)),
        ('["Milkcrate Cafe", "Blue Door"]', (5, 1)), ('[{"index": 5, "name": "Milkcrate Cafe"}]', (5,)),
        ("1. Milkcrate Cafe\n2. Blue Door", (5, 1)), ("1. 5 (Milkcrate Cafe)\n2. 1 (Blue Door)", (5, 1)),
        ("5 (Milkcrate Cafe), 1 (Blue Door)", (5, 1)), ("5 (Milkcrate Cafe)\n1 (Blue Door)", (5, 1)), ("Milkcrate Cafe, Blue Door", (5, 1)),
        ("Here is the ranking:\n1. Milkcrate Cafe - drive-thru\n2. Blue Door - TV", (5, 1)),
        ("5, 1\n\nMilkcrate Cafe and Blue Door fit.", (5, 1)), ("Ranking: 5 (Milkcrate Cafe) > 1 (Blue Door)", (5, 1)),
    ],
)  # fmt: skip
def test_an_index_may_have_its_name_and_its_reason_behind_it(text: str, indices: tuple[int, ...]) -> None:
    order = read_order(text, CAFES)
    assert (order.indices, order.reason, order.none) == (indices, "", False)


@pytest.mark.parametrize(
    "text",
    [
        "5 (Blue Door)", "item 5 (Blue Door)", "Blue Door (item 5)", "5. Blue Door", "5 Blue Door", "Blue Door\n5", "Best: 5 (Blue Door)",
        "Blue Door is best.\n\n5", '[{"index": 5, "name": "Blue Door"}]', "5\n\nItem 3 was close.",
        "I would not recommend Milkcrate Cafe.", "Milkcrate Cafe does not match.", "Not Milkcrate Cafe",
        "Milkcrate Cafe is better than Blue Door",
        "not 5 but 3", "3 out of 10 stars", "5/10", "5 stars", "5 or 3", "5 - does not match", "5 (does not match)", "5 is not a match",
        "5, but 3 would also do", "None of them is perfect, but item 5 is closest", "No item has a drive-thru except 5", "No.", "No idea.",
        "Tea Room", "the cafe with tea", "Is it Milkcrate Cafe?",
    ],
)  # fmt: skip
def test_what_is_ambiguous_or_contradicts_itself_is_not_read(text: str) -> None:
    order = read_order(text, CAFES)
    assert (order.indices, order.none) == ((), False)
    assert order.reason


@pytest.mark.parametrize(
    "text",
    [
        "none", "None.", "**None**", "None fits.", "None of them fits the request.", "No items match all conditions.", "No item matches.",
        "[]", '{"ranking": []}', '{"answer": "none"}', "0 items", "Result: 0 items", "Answer: none",
        "None of the cafes has a drive-thru and a TV.", "There are no matching items.", "```json\n[]\n```",
    ],
)  # fmt: skip
def test_that_no_item_fits_is_a_result(text: str) -> None:
    order = read_order(text, CAFES)
    assert (order.indices, order.reason, order.none) == ((), "", True)


def test_an_item_may_be_called_none_and_an_empty_list_is_none_of_them() -> None:
    items = [{"name": name} for name in ("A", "None", "[]")]
    assert read_order("None", items).indices == (1,)
    for text in ("[]", '{"ranking": []}', "Ranking: []", "[]\n\nNo item has a piano.", "None of them"):
        assert read_order(text, items).none, text


@pytest.mark.parametrize("text", ['["none"]', '{"ranking": ["None"]}', "- none", "> None."])
def test_none_in_a_list_is_none(text: str) -> None:
    assert read_order(text, CAFES).none


NUMBERED = ("Harbour", "9 Lives", "24/7 Ramen", "3-Bells", "1871: A Pub", "1066", "Pier 6", "Bar #2")


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("9 Lives", (1,)), ("**9 lives**.", (1,)), ("`9 Lives`", (1,)), ("9 Lives, for its garden", (1,)), ("24/7 Ramen", (2,)),
        ("3-Bells", (3,)), ("1871: A Pub", (4,)), ("1066", (5,)), ("The best is 9 Lives.", (1,)), ("Pier 6", (6,)), ("Bar #2", (7,)),
        ("1. 9 Lives\n2. Harbour", (1, 0)), ("- 3-Bells\n- 1066", (3, 5)), ("9 Lives, 3-Bells", (1, 3)), ("1 (9 Lives)", (1,)),
        ("9 Lives (1)", (1,)), ("3: 3-Bells", (3,)), ('["9 Lives", "1066"]', (1, 5)), ('{"answer": "9 Lives"}', (1,)), ("3", (3,)),
        ('{"index": 2, "name": "24/7 Ramen"}', (2,)), ("6, 2", (6, 2)),
    ],
)  # fmt: skip
def test_a_number_in_a_name_is_no_index(text: str, indices: tuple[int, ...]) -> None:
    order = read_order(text, [{"name": name} for name in NUMBERED])
    assert (order.indices, order.reason) == (indices, "")


@pytest.mark.parametrize(
    "text",
    ["9", "9 Seas", "3 (9 Lives)", "9 Lives or 3-Bells", "I read 1066 reviews: 3", '{"index": 3, "name": "9 Lives"}'],
)
def test_a_part_of_a_name_with_a_number_names_no_item(text: str) -> None:
    assert read_order(text, [{"name": name} for name in NUMBERED]).indices == ()


def test_a_number_that_is_an_index_and_another_items_name_is_ambiguous() -> None:
    items = [{"name": name} for name in ("Harbour", "2", "Pier")]
    order = read_order("2", items)
    assert (order.indices, order.reason) == ((), "the output is ambiguous: it is the index 2, and the name of item 1")
    assert read_order('["2"]', items).indices == (1,)
    assert read_order("1", [{"id": 1}, {"id": 2}]).indices == (1,)


@pytest.mark.parametrize(
    "text",
    [
        "1: Harbour", "(1) Harbour", "1 - Harbour", "#1 Harbour", "1. Harbour", "1) Harbour", "1 Harbour", "[1] Harbour", "1 (Harbour)",
        "**1** Harbour", "> 1: Harbour", "Item 1: Harbour", "Harbour (1)", "Harbour: 1", "1\nHarbour", "1, because Harbour is loud",
        '"1: Harbour"', '["1: Harbour"]', '[1, "Harbour"]', '{"1": "Harbour"}', '{"index": 1, "name": "Harbour"}',
        '{"index": 1, "item": "Harbour"}', '{"best": {"index": 1, "name": "Harbour"}}', "1: Harbour\n2: Pier", "(1) Harbour\n(2) Mill",
    ],
)  # fmt: skip
def test_an_index_with_another_items_name_is_refused(text: str) -> None:
    order = read_order(text, [{"name": name} for name in ("Harbour", "Mill", "Pier")])
    assert (order.indices, order.none) == ((), False)
    assert order.reason


def test_unknown_items_are_left_out_and_named() -> None:
    order = read_order("[5, 42, 2]", ITEMS)
    assert (order.indices, order.unknown) == ((5, 2), ('"42"',))


def test_a_name_that_two_items_have_names_none() -> None:
    assert read_order("Twin", [{"name": "Twin"}, {"name": "twin"}]).indices == ()


@pytest.mark.slow
@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    assert all(0 <= index < len(ITEMS) for index in read_order(text, ITEMS).indices)


@pytest.mark.parametrize("piece", [" ", "1 ", "the best ", "item ", "\n", "[", "final answer ", "best:"])
@pytest.mark.slow
def test_long_odd_texts_are_read_quickly(piece: str) -> None:
    within(2, lambda: read_order(piece * (19_000 // len(piece)) + "!", ITEMS))


@pytest.mark.parametrize(
    ("names", "text", "indices"),
    [
        (("Fig", "Plum", "Pear"), "Rank 1: Pear\nRank 2: Fig", (2, 0)),
        (("Fig", "Plum", "Pear"), "The order:\n**Place 1:** Pear\n**Place 2:** Fig (cheap)", (2, 0)),
        (("Fig", "Plum", "Pear"), "Rank 2: Pear\nRank 1: Fig", ()),
        (("Emma", "1984", "Ulysses"), '{"answer": 1984}', (1,)), (("Emma", "1984", "Ulysses"), '[1984, "Emma"]', (1, 0)),
        (("Emma", "1984", "Ulysses"), '{"answer": 2666}', ()),
        (("a", "2", "c"), "1: 2", (1,)), (("a", "2", "c"), "0: 2", ()),
    ],
)  # fmt: skip
def test_places_and_names_that_are_numbers(names: tuple[str, ...], text: str, indices: tuple[int, ...]) -> None:
    assert read_order(text, [{"name": name} for name in names]).indices == indices
