"""The operation ``tally``: order, types, lists, limits, explanation, and the generated function beside the interpreter."""

from typing import Any

import pytest
from knotwork.lang.evaluate.seed.explanation import explain
from knotwork.lang.evaluate.seed.fused_engine import Compute
from knotwork.lang.evaluate.seed.interpreter import interpret
from knotwork.lang.evaluate.seed.step_dependencies import operations_of, reads_of, step_graph
from support.seed_texts import of_form_002, seed_of

TALLY = {"name": "T", "op": "tally", "field": "extraction.note"}


def rows(*values: Any, field: str = "note") -> list[dict[str, Any]]:
    return [{"extraction": {field: value, "served": bool(at % 2)}, "meta": {}} for at, value in enumerate(values)]


def tally(given: list[dict[str, Any]], **step: Any) -> Any:
    seed = seed_of(of_form_002({**TALLY, **step}))
    compute = Compute.of(seed)
    assert compute.quick is not None
    result = compute.run(given, {})
    assert result == interpret(seed, given, {})
    assert not result.errors, result.errors
    return [(each["value"], each["count"]) for each in result.values["T"]]


def test_by_count_then_by_value() -> None:
    assert tally(rows("b", "a", None, "c", "b", "a", "d")) == [("a", 2), ("b", 2), ("c", 1), ("d", 1)]
    assert tally(rows("b", "a", "c", "b"), top=2) == [("b", 2), ("a", 1)]
    assert tally([]) == []


def test_the_items_of_a_list_count_one_by_one() -> None:
    assert tally(rows(["a", "b"], ["b"], [], None, ["b", None], field="dishes"), field="extraction.dishes") == [
        ("b", 3),
        ("a", 1),
    ]


def test_only_matching_extractions() -> None:
    assert tally(rows("a", "b", "a", "b"), where={"extraction.served": True}) == [("b", 2)]


def test_numbers_and_booleans() -> None:
    assert tally(rows(2, 1, 2, 1.0, 3.5, field="price"), field="extraction.price") == [(1, 2), (2, 2), (3.5, 1)]
    assert tally(rows(True, False, True, field="served"), field="extraction.served") == [(False, 2), (True, 1)]
    (value, count) = tally(rows(1.0, 1, field="price"), field="extraction.price")[0]
    assert type(value) is int and count == 2


def test_the_value_can_be_used_by_later_steps() -> None:
    seed = seed_of(of_form_002(TALLY, {"name": "FIRST", "op": "expr", "expr": 'T[0]["value"] if len(T) > 0 else ""'}))
    assert Compute.of(seed).run(rows("b", "a", "b"), {}).values["FIRST"] == "b"


@pytest.mark.parametrize("value", [{"a": 1}, [["a"]]])
def test_an_object_is_an_error_that_names_it(value: Any) -> None:
    seed = seed_of(of_form_002({**TALLY, "field": "extraction.dishes"}))
    (error,) = Compute.of(seed).run(rows(value, field="dishes"), {}).errors
    assert (error.kind, "a tally counts strings, numbers and booleans" in error.message) == ("type", True)


def test_invalid_fields_are_counted_as_unknown_and_a_tally_of_nothing_else_has_no_value() -> None:
    seed = seed_of(of_form_002(TALLY))
    given = [{"extraction": {"note": None}, "meta": {}, "invalid": {"note": "?"}}, *rows("a")]
    found = Compute.of(seed).run(given, {})
    assert (found.values["T"], found.unknown) == ([{"value": "a", "count": 1}], {"T": 1})
    (error,) = Compute.of(seed).run(given[:1], {}).errors
    assert error.kind == "no_values"


def test_explanation_and_drawing() -> None:
    seed = seed_of(of_form_002({**TALLY, "top": 3, "where": {"extraction.served": True}}))
    told = explain(seed, rows("a", "b", "c"), {}, "T")
    (step,) = told.steps
    assert (
        step.operation
        == "number of extractions for each value of note where served is true; the 3 most frequent values"
    )
    assert step.selections[0].used == ((1, "b"),)
    assert reads_of(seed)["T"].fields == {"note", "served"}
    assert operations_of(seed, step_graph(seed))["T"] == "tally"
