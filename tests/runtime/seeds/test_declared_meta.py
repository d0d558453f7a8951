"""Declared metadata of reviews: where a value comes from, its type, and what becomes of a faulty one. Seeds that only extract."""

import asyncio
import math
from datetime import date, datetime
from typing import Any

import pytest
from knotwork.runtime.seeds.compute import load
from knotwork.runtime.seeds.cost_estimate import estimate
from knotwork.runtime.seeds.declared_meta import meta_value, with_declared_meta
from knotwork.runtime.seeds.reviews import read_context
from knotwork.runtime.seeds.seed_results import SeedResult, read_result
from knotwork.runtime.seeds.seed_run import run_one

TYPES: Any = {"price": "float", "country": "text"}
FIELDS = [{"name": "mood", "values": ["good", "bad"]}]


class Reader:
    """Answers every review in the same way."""

    def __init__(self, answer: str = '{"mood": "good"}') -> None:
        self.answer, self.calls = answer, 0

    async def generate(self, prompt: str, **options: Any) -> str:
        self.calls += 1
        return self.answer


def read(*reviews: Any, types: Any = TYPES) -> Any:
    return with_declared_meta(read_context({"reviews": list(reviews)}), types)


def test_a_value_is_the_reviews_own_or_stands_in_its_meta() -> None:
    one, two, three, four = read(
        {"text": "a", "price": 4.5, "country": "IT"}, {"text": "b", "meta": {"price": 3, "country": "DE"}},
        {"text": "c", "price": None, "meta": {"price": 9}}, {"text": "d", "meta": {"colour": "red"}},
    ).reviews  # fmt: skip
    assert [each.meta["price"] for each in (one, two, three, four)] == [4.5, 3, None, None]
    assert [each.meta["country"] for each in (one, two)] == ["IT", "DE"]
    assert "colour" not in four.meta and not any(each.invalid_meta for each in (one, two, three, four))


def test_a_faulty_value_is_null_and_reported() -> None:
    found = read({"text": "a", "price": "4.50"}, {"text": "b", "meta": [1]}, {"text": "c", "country": 3})
    assert [each.meta["price"] for each in found.reviews] == [None] * 3
    assert found.reviews[0].invalid_meta == {"price": '"4.50"'}
    assert found.reviews[2].invalid_meta == {"country": "3"}
    assert found.warnings == (
        'the value "4.50" of "price" in review 0 is not used: it is a string, not a number',
        'the "meta" of review 1 is not used: it is a list, not an object',
        'the value 3 of "country" in review 2 is not used: it is a number, not a string',
    )
    assert len(read(*[{"text": "a", "price": "x"}] * 100).warnings) == 6


def test_an_unusable_review_has_null_metadata() -> None:
    found = read(3, {"text": None, "price": 2})
    assert [each.meta["price"] for each in found.reviews] == [None, 2]


@pytest.mark.parametrize(
    ("written", "kind", "value"),
    [
        (3, "int", 3), (3.0, "int", 3), (3.5, "int", None), (True, "int", None), ("3", "int", None), (2**63, "int", None),
        (3, "float", 3), (2.5, "float", 2.5), (math.nan, "float", None), (math.inf, "float", None), (False, "float", None),
        (True, "bool", True), (1, "bool", None), ("true", "bool", None),
        ("a", "text", "a"), (3, "text", None), ("\ud800", "text", None), (date(2024, 5, 1), "text", "2024-05-01"),
        (datetime(2024, 5, 1, 8), "text", "2024-05-01T08:00:00"),
        (["a", 1, None], "list", ["a", 1, None]), ("a", "list", None), ([[1]], "list", None), ([{}], "list", None),
    ],
)  # fmt: skip
def test_types(written: Any, kind: Any, value: Any) -> None:
    found, fault = meta_value(written, kind)
    assert found == value and type(found) is type(value)
    missing = isinstance(written, float) and math.isnan(written)
    assert bool(fault) == (value is None and not missing)


def priced(**more: Any) -> Any:
    return load(
        {
            "meta": {"price": "float"},
            "extract": {"fields": FIELDS},
            "compute": [{"name": "SPENT", "op": "sum", "field": "meta.price", "where": {"extraction.mood": "good"}}],
            "output": ["SPENT"],
            **more,
        }
    )


def test_steps_compute_with_declared_metadata() -> None:
    context = {
        "name": "A",
        "reviews": [{"text": "a", "price": 2.5}, {"text": "b", "meta": {"price": 4}}, {"text": "c"}],
    }
    result = asyncio.run(run_one(priced(), context, Reader()))
    assert (result.status, result.outputs) == ("complete", {"SPENT": 6.5})
    assert read_result(result.as_json()).extractions == result.extractions


def test_a_faulty_value_makes_the_context_partial_only_where_a_step_uses_it() -> None:
    context = {"reviews": [{"text": "a", "price": 2.5}, {"text": "b", "price": "dear"}]}
    result = asyncio.run(run_one(priced(), context, Reader()))
    assert (result.status, result.outputs) == ("partial", {"SPENT": 2.5})
    assert "meta.price is missing for 1 of 2 kept reviews" in result.errors[0].message
    step = {"name": "SPENT", "op": "count"}
    result = asyncio.run(run_one(priced(compute=[step]), context, Reader()))
    assert (result.status, len(result.warnings)) == ("complete", 1)


def test_an_estimate_warns_of_faulty_metadata() -> None:
    found = estimate(priced(), [{"reviews": [{"text": "a", "price": "dear"}]}])
    assert found.warnings == [
        'context 0: the value "dear" of "price" in review 0 is not used: it is a string, not a number'
    ]


def extracts(reviews: list[Any], client: Any, **more: Any) -> SeedResult:
    seed = load({"extract": {"fields": [*FIELDS, {"name": "note", "type": "text"}]}, **more})
    return asyncio.run(run_one(seed, {"name": "A", "reviews": reviews}, client))


def test_a_seed_that_only_extracts_has_extractions_and_no_outputs() -> None:
    result = extracts([{"text": "a"}, {"text": "b"}], Reader('{"mood": "good", "note": null}'))
    assert (result.status, dict(result.outputs), result.errors) == ("complete", {}, ())
    assert [each.extraction for each in result.extractions] == [{"mood": "good", "note": None}] * 2
    assert read_result(result.as_json()).status == "complete"


def test_its_result_is_partial_where_a_field_is_invalid_and_failed_where_nothing_was_extracted() -> None:
    reviews = [{"text": "a"}, {"text": "b"}]
    result = extracts(reviews, Reader('{"mood": "great", "note": "n"}'))
    assert result.status == "partial"
    assert "the field mood is missing for 2 of 2 kept reviews" in result.errors[0].message
    assert extracts(reviews, Reader('{"mood": "great", "note": "n"}'), allow_invalid=1).status == "complete"
    assert extracts(reviews, Reader("no idea")).status == "failed"
    assert extracts([{"text": "a"}, {"text": 3}], Reader('{"mood": "good", "note": "n"}')).status == "partial"


def test_a_context_without_kept_reviews_is_complete() -> None:
    client = Reader()
    assert extracts([{"text": " "}], client).status == "complete"
    assert client.calls == 0
