"""The README's example on the real model: every answer is right."""

import asyncio
import json

import pytest
from knotwork import lwt
from knotwork.adapters.llm.local import LocalModel
from support.folders import EXAMPLES

pytestmark = pytest.mark.slow

FOLDER = EXAMPLES / "reviews"

EXPECTED = [
    ("mushroom soup", "positive"),
    ("fish tacos", "negative"),
    ("lemon tart", "positive"),
    ("lamb curry", "negative"),
    ("pizza", "positive"),
    ("chicken salad", "negative"),
    ("blueberry pancakes", "positive"),
    ("ramen", "positive"),
    ("beef burger", "negative"),
    ("grilled octopus", "positive"),
]


def script() -> str:
    return (FOLDER / "reviews.lwt").read_text(encoding="utf-8")


def test_script_and_data_hold_the_same_reviews() -> None:
    reviews = json.loads((FOLDER / "reviews.json").read_text(encoding="utf-8"))
    assert [review["id"] for review in reviews] == list(range(1, 11))
    for review in reviews:
        assert json.dumps(review["text"]) in script()


def test_the_script_has_no_fault() -> None:
    assert lwt.check(lwt.parse(script())) == []


def test_every_sentiment_and_dish_is_right(model: LocalModel) -> None:
    run = asyncio.run(lwt.run(script(), llm=model))
    assert run.status == "complete"
    assert run.steps["sentiments"].value == [sentiment for _, sentiment in EXPECTED]
    assert run.steps["dishes"].value == [dish for dish, _ in EXPECTED]
    assert run.steps["final"].value == [f"{dish}, {sentiment}" for dish, sentiment in EXPECTED]
