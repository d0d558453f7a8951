"""The forms in which the local model answers: what their texts mean as JSON, and which schemas have one."""

import json

import pytest
from knotwork.adapters.llm.local_forms import MAX_ITEMS, form_of, has_no_end


def read(schema: dict[str, object], text: str) -> object:
    form = form_of(schema)
    assert form is not None
    return json.loads(form.as_json(text))


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("integer", "The answer is 4.", 4),
        ("integer", "The answer is -12\n", -12),
        ("number", "The answer is 49.50.\n", 49.5),
        ("number", "The answer is 3. ", 3),
        ("array", '- A cat\n- 3\n- "3"\n- true\n- {"a": 1}\n- NaN\n', ["A cat", 3, "3", True, '{"a": 1}', "NaN"]),
    ],
)
def test_a_text_of_the_grammar_is_read_as_json(kind: str, text: str, value: object) -> None:
    found = read({"type": kind}, text)
    assert (found, type(found)) == (value, type(value))


def test_another_text_is_returned_unchanged() -> None:
    form = form_of({"type": "integer"})
    assert form is not None and form.as_json("The answer is") == "The answer is"  # a cut answer is refused by the check


def test_schemas_that_say_more_are_generated_as_json() -> None:
    assert form_of({"type": "array", "items": {}}) is not None
    assert form_of({"type": "integer", "minimum": 3}) is not None  # the answer is checked afterwards
    for schema in (
        {},
        {"type": "object"},
        {"type": "integer", "multipleOf": 3},
        {"type": "array", "items": {"type": "string"}},
    ):
        assert form_of(schema) is None


def test_a_list_without_an_end_is_recognised() -> None:
    assert has_no_end("- x\n" * MAX_ITEMS)
    assert not has_no_end("- x\n" * (MAX_ITEMS - 1))
