"""The parts around the steps: declared metadata, examples, resolved fields, reduced values, and seeds that only extract."""

from typing import Any

import pytest
from knotwork.lang.documents.seed import SEED_SCHEMA, read_seed
from knotwork.lang.trees.expr import Field
from knotwork.lang.trees.seed import Example, Reduce, Resolve, Tally
from support.seed_texts import FIELDS, diagnostics, of_form_002, seed_of

TALLY = {"name": "T", "op": "tally", "field": "extraction.note"}


def errors(document: Any) -> list[str]:
    return [each.code for each in diagnostics(document) if each.severity == "error"]


def test_metadata_is_declared_with_its_types() -> None:
    types = {"price": "float", "rooms": "int", "open": "bool", "country": "text", "tags": "list"}
    seed = seed_of(of_form_002({"name": "S", "op": "sum", "expr": "meta.price * meta.rooms"}, meta=types))
    assert seed.meta == types
    assert errors(of_form_002({"name": "S", "op": "sum", "expr": "meta.price * meta.rooms"}, meta=types)) == []
    assert seed_of(of_form_002(TALLY)).meta == {}


@pytest.mark.parametrize(
    "step",
    [
        {"name": "N", "op": "count", "where": {"meta.price": {">": 3}}},
        {"name": "N", "op": "max", "field": "meta.price", "default": 0},
        {"name": "N", "op": "tally", "field": "meta.price"},
        {"name": "N", "op": "expr", "expr": "[e['meta']['price'] for e in extractions]"},
    ],
)
def test_metadata_is_refused_unless_it_is_declared(step: dict[str, Any]) -> None:
    assert errors(of_form_002(step, meta={"price": "float"})) == []
    assert set(errors(of_form_002(step))) <= {"SEED045", "EXPR057"} and errors(of_form_002(step))


def test_a_seed_may_extract_alone() -> None:
    document = {"extract": {"fields": FIELDS}}
    seed = seed_of(document)
    assert seed.extracts_only and (seed.steps, seed.outputs) == ((), ())
    assert [each.code for each in diagnostics(document)] == []  # nor a warning about missing keywords
    assert "SEED057" in [each.code for each in diagnostics({**document, "compute": [TALLY], "output": ["T"]})]
    assert "required" not in SEED_SCHEMA


@pytest.mark.parametrize(
    ("document", "missing"),
    [
        ({}, ["compute", "output"]),
        ({"filter": {"keywords": ["a"]}}, ["compute", "output"]),
        ({"extract": {"fields": []}}, ["compute", "output"]),
        ({"extract": {"fields": FIELDS}, "compute": [TALLY]}, ["output"]),
        ({"extract": {"fields": FIELDS}, "output": ["T"]}, ["compute"]),
        ({"extract": {"fields": FIELDS}, "graph": [TALLY]}, ["compute", "output"]),
        ({"extract": {"fields": FIELDS}, "comput": [TALLY]}, ["output"]),
        (
            {"extract": {"fields": FIELDS}, "reduce": [{"name": "A", "from": ["text"], "prompt": "p"}]},
            ["compute", "output"],
        ),
    ],
)
def test_all_other_missing_parts_are_faults(document: Any, missing: list[str]) -> None:
    found = [each.message for each in diagnostics(document) if each.code == "SEED003"]
    assert [message for message in found if message.endswith("is missing")] == [f"{key} is missing" for key in missing]


def test_an_output_may_be_a_reduced_value_without_steps() -> None:
    reduce = [{"name": "A", "from": ["text"], "prompt": "p"}]
    document = {"extract": {"fields": FIELDS}, "reduce": reduce, "output": ["A"]}
    assert errors(document) == []
    assert seed_of(document).steps == (Reduce("A", (None,), "p"),)


def test_an_enum_may_be_ordered() -> None:
    fields = [{**FIELDS[0], "ordered": True}, *FIELDS[1:]]
    seed = seed_of(of_form_002(TALLY, extract={"fields": fields}))
    assert [each.ordered for each in seed.fields][:2] == [True, False]


def test_examples() -> None:
    examples = [{"text": "Hives.", "extraction": {"severity": "mild", "account": "none", "note": None}}]
    seed = seed_of(of_form_002(TALLY, extract={"fields": FIELDS, "examples": examples}))
    assert seed.examples == (Example("Hives.", examples[0]["extraction"]),)
    assert errors(seed.document) == []


def test_a_resolved_field_is_a_field_of_all_steps() -> None:
    resolve = [{"field": "note", "as": "dish", "method": "fuzzy", "scope": "run", "same_above": 1, "ask_above": 0}]
    steps = (
        {**TALLY, "field": "extraction.dish"},
        {"name": "N", "op": "expr", "expr": "len([e['dish'] for e in extractions])"},
    )
    document = of_form_002(*steps, resolve=resolve)
    assert errors(document) == []
    seed = seed_of(document)
    assert seed.resolve == (Resolve("note", "dish", "fuzzy", "run", 1.0, 0.0),)
    assert next(iter(seed.row_fields)) == "dish" and seed.row_fields["dish"].type == "text"


def test_a_reduced_value_is_a_step_before_all_others() -> None:
    reduce = [
        {
            "name": "COMPLAINTS", "from": ["extraction.note", "meta.stars", "text"], "where": {"extraction.served": False},
            "prompt": "The complaints.", "type": "list", "cite": True,
        }
    ]  # fmt: skip
    document = of_form_002({"name": "N", "op": "expr", "expr": "len(COMPLAINTS)"}, reduce=reduce)
    assert errors(document) == []
    seed = seed_of(document)
    (step,) = seed.reduce
    assert seed.steps[0] is step and seed.value_by_name["COMPLAINTS"] is step
    assert step.sources == (Field("extraction", "note"), Field("meta", "stars"), None)
    assert (step.prompt, step.type, step.cite) == ("The complaints.", "list", True)


def test_tally() -> None:
    seed = seed_of(of_form_002({**TALLY, "top": 5, "where": {"extraction.served": True}}))
    (step,) = seed.steps
    assert isinstance(step, Tally) and (step.element, step.top) == (Field("extraction", "note"), 5)


@pytest.mark.slow
def test_the_schema_takes_all_of_it() -> None:
    import jsonschema

    document = of_form_002(
        {"name": "N", "op": "tally", "field": "extraction.dish", "top": 3},
        meta={"price": "float"},
        extract={"fields": FIELDS, "examples": [{"text": "t", "extraction": {"severity": "none"}}]},
        resolve=[{"field": "note", "as": "dish"}],
        reduce=[{"name": "R", "from": ["text"], "prompt": "p", "type": "list"}],
    )
    jsonschema.validate(document, SEED_SCHEMA)
    jsonschema.validate({"extract": {"fields": FIELDS}}, SEED_SCHEMA)
    for wrong in ({**document, "meta": {"price": "number"}}, {"extract": {"fields": FIELDS}, "compute": []}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, SEED_SCHEMA)


@pytest.mark.slow
def test_what_is_no_object_is_a_fault_and_no_crash() -> None:
    for key in ("meta", "resolve", "reduce"):
        for value in (None, 3, "x", [1], {"a": 1}, [[]], [{}]):
            found = read_seed({**of_form_002(TALLY), key: value})
            assert found.seed is None, (key, value)
