"""Results and their JSON: what is written is read again; what is not a result is refused with its place."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.adapters.llm import Usage
from knotwork.runtime.seeds.seed_results import (
    Counts,
    Extraction,
    ResultError,
    ResultFault,
    SeedResult,
    read_result,
    read_results,
)

RESULT = SeedResult(
    "Café", 3, "partial", {"N": 1}, {}, Counts(5, 3, 2, 1, 1, 1, 1, 40),
    (ResultError("X", "division", "division by zero", "use max", "X", (4, 9)),),
    (
        Extraction(0, {"a": "x"}, {"stars": 4}, {}, "", "nice", "r1"),
        Extraction(
            2, {"a": None, "b": 3}, {}, {"a": "y"}, "", "odd", None, {"stars": "five"}, {"b": "3"}, "embedded", 40, ((0, 9), (7, 16)),
            {"b": (1,)},
        ),
        Extraction(4, {}, {}, {}, "refused: no", "bad"),
    ),
    Usage(10, 4), 0.25, 3, ("the date of review 1 is not used",), {"X": 1},
)  # fmt: skip


def test_the_json_of_a_result() -> None:
    assert RESULT.as_json() == {
        "name": "Café", "index": 3, "status": "partial", "outputs": {"N": 1},
        "counts": {
            "reviews": 5, "kept": 3, "extracted": 2, "invalid": 1, "failed": 1, "coerced": 1, "cut": 1, "cut_characters": 40,
            "not_asked": 0,
        },
        "errors": [{"step": "X", "kind": "division", "message": "division by zero", "hint": "use max", "root": "X", "span": [4, 9]}],
        "extractions": [
            {"review": 0, "id": "r1", "extraction": {"a": "x"}, "meta": {"stars": 4}, "excerpt": "nice"},
            {
                "review": 2, "extraction": {"a": None, "b": 3}, "meta": {}, "invalid": {"a": "y"}, "invalid_meta": {"stars": "five"},
                "coerced": {"b": "3"}, "read_as": "embedded", "cut": 40, "parts": [[0, 9], [7, 16]], "decided": {"b": [1]},
                "excerpt": "odd",
            },
            {"review": 4, "extraction": {}, "meta": {}, "failed": "refused: no", "excerpt": "bad"},
        ],
        "usage": {"calls": 3, "prompt_tokens": 10, "completion_tokens": 4}, "cost": 0.25,
        "unknown": {"X": 1}, "warnings": ["the date of review 1 is not used"],
    }  # fmt: skip


def test_what_is_written_is_read_again() -> None:
    assert read_result(RESULT.as_json()) == RESULT
    assert read_results(RESULT.line()) == [RESULT]
    assert read_results(RESULT.line() + b"\n" + RESULT.line()) == [RESULT, RESULT]
    assert read_results(json.dumps([RESULT.as_json()], indent=1)) == [RESULT]
    assert read_results(json.dumps(RESULT.as_json(), indent=1)) == [RESULT]
    assert read_results("") == []


def test_rows_are_those_that_did_not_fail() -> None:
    odd = {"extraction": {"a": None, "b": 3}, "meta": {}, "invalid": {"a": "y"}, "invalid_meta": {"stars": "five"}}
    assert RESULT.rows == [{"extraction": {"a": "x"}, "meta": {"stars": 4}}, odd]


def test_a_result_that_was_read_has_no_seed_with_it() -> None:
    with pytest.raises(ValueError, match="the result does not contain its seed: use"):
        RESULT.provenance("N")


def changed(**changes: Any) -> dict[str, Any]:
    made = RESULT.as_json() | changes
    return {key: value for key, value in made.items() if value != "MISSING"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "the result: the result is a list, not an object"),
        (changed(name="MISSING"), 'the result: "name" is missing'),
        (changed(name=3), 'the result: "name" is a number, not a string'),
        (changed(status="done"), "the result: \"status\" is 'done', not complete, partial or failed"),
        (changed(index=-1), 'the result: "index" is not a count'),
        (changed(index=True), 'the result: "index" is not a count'),
        (changed(counts={}), 'the result: "reviews" is missing'),
        (changed(outputs=[]), 'the result: "outputs" is a list, not an object'),
        (changed(extractions="MISSING"), 'the result: "extractions" is missing'),
        (changed(extractions=[1]), "the result: an extraction is a number, not an object"),
        (changed(extractions=[{"review": 0}]), 'the result: "extraction" is missing'),
        (changed(extractions=[{"review": 0, "extraction": {}, "id": 1.5}]),
            'the result: the "id" of a review is neither a string nor a whole number'),
        (changed(extractions=[{"review": 0, "extraction": {}, "invalid": {"a": 1}}]),
            'the result: "invalid" has an element that is not a string'),
        (changed(errors=[{"span": [1]}]), 'the result: the "span" of an error is not a pair of numbers'),
        (changed(cost="1"), 'the result: "cost" is not a number'),
        (changed(usage=3), 'the result: "usage" is a number, not an object'),
        (changed(warnings=[1]), 'the result: "warnings" has an element that is not a string'),
    ],
)  # fmt: skip
def test_what_is_no_result_is_refused(data: Any, message: str) -> None:
    with pytest.raises(ResultFault) as raised:
        read_result(data)
    assert str(raised.value) == message


def test_a_faulty_line_is_named() -> None:
    with pytest.raises(ResultFault, match="line 3 is not JSON"):
        read_results(RESULT.line() + b"\n{oops\n")
    with pytest.raises(ResultFault, match='line 2: "status" is missing'):
        read_results(RESULT.line() + b"{}\n")


@pytest.mark.slow
@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_else(body: bytes) -> None:
    with contextlib.suppress(ResultFault):
        read_results(body)


def test_deep_json_is_no_result() -> None:
    with pytest.raises(ResultFault):
        read_results("[" * 100_000)
