"""Splits: whole groups, sizes near 40/30/30, even classes, and refusals that say how many labels are missing."""

import random
from collections import Counter
from typing import Any

import pytest
from knotwork.runtime.loops.evaluate.gold import Binding, Expected, Gold, GoldError, read_gold
from knotwork.runtime.loops.evaluate.splits import refuse_small, split_items

MOOD = Expected("mood", "label", ("good", "bad", "odd"))


def gold(labels: list[str], groups: int, columns: dict[str, Expected] | None = None, **more: list[Any]) -> Gold:
    """Return gold items whose group is their number modulo ``groups``."""
    rows = [
        {"id": number, "mood": label, **{name: values[number] for name, values in more.items()}}
        for number, label in enumerate(labels)
    ]
    return read_gold(
        list(rows[0]),
        rows,
        columns or {"mood": MOOD},
        ["id"],
        lambda keys: Binding((0, keys["id"]), f"g{keys['id'] % groups}"),
    )


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("items", "groups"), [(60, 60), (100, 20), (200, 7), (90, 3)])
def test_a_group_is_in_one_part(seed: int, items: int, groups: int) -> None:
    chance = random.Random(seed)
    given = gold([chance.choice(["good", "bad"]) for _ in range(items)], groups)
    split = split_items(given, ["mood"], seed)
    parts = (split.train, split.dev, split.test)
    assert sorted(item.number for part in parts for item in part) == list(range(items))
    assert all(part for part in parts)
    names = [{item.group for item in part} for part in parts]
    assert not (names[0] & names[1] or names[0] & names[2] or names[1] & names[2])
    assert split_items(given, ["mood"], seed) == split


def test_sizes_and_classes_are_even() -> None:
    given = gold(["good"] * 150 + ["bad"] * 50, 200)
    split = split_items(given, ["mood"])
    for part, share in ((split.train, 0.4), (split.dev, 0.3), (split.test, 0.3)):
        counts = Counter(item.labels["mood"] for item in part)
        assert counts["good"] == pytest.approx(150 * share, abs=8)
        assert counts["bad"] == pytest.approx(50 * share, abs=4)
    assert split.as_json()["train"]["groups"] == len(split.train)


def test_another_seed_is_another_split() -> None:
    given = gold(["good", "bad"] * 40, 80)
    assert split_items(given, ["mood"], 0) != split_items(given, ["mood"], 1)


def test_too_few_items_are_refused_with_the_number_to_add() -> None:
    with pytest.raises(GoldError) as caught:
        refuse_small(gold(["good"] * 22 + ["bad"] * 19, 41), ["mood"])
    assert caught.value.faults == ("60 labelled items are needed to tune a seed; the gold table has 41: label 19 more",)


def test_too_few_items_of_a_class_are_refused() -> None:
    with pytest.raises(GoldError) as caught:
        refuse_small(gold(["good"] * 60 + ["bad"] * 7 + ["odd"] * 14, 81), ["mood"])
    (fault,) = caught.value.faults
    assert "15 labelled items of each class of mood" in fault
    assert "bad has 7 (label 8 more), odd has 14 (label 1 more)" in fault


def test_a_class_without_labels_is_noted() -> None:
    assert refuse_small(gold(["good", "bad"] * 40, 80), ["mood"]) == [
        "no item of mood is labelled odd: nothing is tuned or tested for it"
    ]


def test_numbers_have_no_classes() -> None:
    given = gold(["good"] * 60, 60, {"stars": Expected("stars", "number")}, stars=list(range(60)))
    assert refuse_small(given, ["stars"]) == []
    assert len(split_items(given, ["stars"]).train) == 24


def test_items_without_a_label_in_the_fields_are_left_out() -> None:
    columns = {"mood": MOOD, "stars": Expected("stars", "number")}
    given = gold(["good", "bad"] * 40, 80, columns, stars=[1 if place < 30 else None for place in range(80)])
    split = split_items(given, ["stars"])
    assert len(split.train) + len(split.dev) + len(split.test) == 30


@pytest.mark.parametrize("groups", [1, 2])
def test_items_that_cannot_be_split_are_refused(groups: int) -> None:
    with pytest.raises(GoldError, match="can't be split by group"):
        refuse_small(gold(["good", "bad"] * 40, groups), ["mood"])


def test_one_huge_group_is_refused() -> None:
    rows = [{"id": number, "mood": "good"} for number in range(90)]
    given = read_gold(
        ["id", "mood"],
        rows,
        {"mood": MOOD},
        ["id"],
        lambda keys: Binding((0, keys["id"]), f"g{max(0, keys['id'] - 87)}"),
    )
    try:
        split = split_items(given, ["mood"])
    except GoldError as error:
        assert "a group has nearly all of them" in error.message
    else:
        assert split.train and split.dev and split.test
