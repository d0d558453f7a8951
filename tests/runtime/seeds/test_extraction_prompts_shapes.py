"""Answers in the shapes in which models give them, each with what a seed takes of it. DATA, section 4."""

from typing import Any

import pytest
from knotwork.lang.trees.seed import Extracted
from knotwork.runtime.seeds.extraction_prompts import FieldValues, read_answer

FIELDS = (
    Extracted("mood", "enum", {"glad": "", "sad": "", "very sad": ""}), Extracted("n", "int"), Extracted("score", "float"),
    Extracted("open", "bool"), Extracted("dishes", "list"), Extracted("note", "text"),
)  # fmt: skip
GOOD: dict[str, Any] = {"mood": "sad", "n": 2, "score": 4.5, "open": True, "dishes": ["soup"], "note": "cold"}
J = '{"mood": "sad", "n": 2, "score": 4.5, "open": true, "dishes": ["soup"], "note": "cold"}'
P = "{'mood': 'sad', 'n': 2, 'score': 4.5, 'open': True, 'dishes': ['soup'], 'note': 'cold'}"
OTHER = J.replace("sad", "glad")
SPREAD = J.replace(", ", ",\n  ").replace("{", "{\n  ").replace("}", "\n}")

WHOLE: list[tuple[str, str]] = [
    (J, "exact"), (f"  {J}\n", "exact"), (SPREAD, "exact"), (f"\ufeff{J}", "exact"), (J.replace(", ", ","), "exact"),
    (f"<think>The review is sad.</think>{J}", "thinking"), (f"<think>\nGlad? No.\n</think>\n\n{SPREAD}\n", "thinking"),
    (f"<thinking>{OTHER}</thinking>{J}", "thinking"), (f"<reasoning>n is 2</reasoning>\n{J}", "thinking"),
    (f"The review is sad, so\n</think>\n{J}", "thinking"), (f"<think>{{\"mood\": \"gl</think>{J}", "thinking"),
    (f"<think>a</think>\n<think>b</think>\n{J}", "thinking"), (f"<THINK>x</THINK>{J}", "thinking"), (f"<think></think>\n\n{J}", "thinking"),
    (f"```json\n{J}\n```", "fenced"), (f"```\n{J}\n```", "fenced"), (f"```JSON\n{SPREAD}\n```", "fenced"), (f"~~~\n{J}\n~~~", "fenced"),
    (f"Here you go:\n\n```json\n{J}\n```", "fenced"), (f"```json\n{J}\n```\n\nLet me know!", "fenced"),
    (f"<think>x</think>\n```json\n{J}\n```", "fenced"), (f"Sure:\n```json\n{J}\n```\nIt's {{cold}}.", "fenced"),
    (f"````\n{J}\n````", "fenced"), (f"  ```json\n  {J}\n  ```", "fenced"), (f"```json\n{J}\n```\n```json\n{J}\n```", "fenced"),
    (f"Sure! Here is the JSON: {J}", "embedded"), (f"{J}\n\nI hope this helps!", "embedded"), (f"Answer: {J}.", "embedded"),
    (f"The guest says \"cold\" and it's sad: {J}", "embedded"), (f"**Result**\n\n{J}", "embedded"), (f"`{J}`", "embedded"),
    (f"As asked {{fields}}:\n{J}", "embedded"), (f"1. Read.\n2. Answer:\n{J}\n3. Done.", "embedded"), (f"```json\n{J}", "embedded"),
    (f"{J}\n{J}", "embedded"), (f"First {J} and again {SPREAD}", "embedded"), (f"<think>x</think>So: {J}", "embedded"),
    (f'{{"type": "object"}} is the form. {J}', "embedded"), (f"> {J}", "embedded"), (f"Output = {J};", "embedded"),
    (P, "literal"), (f"Here: {P}", "literal"), (f"```python\n{P}\n```", "literal"), (J.replace("}", ",}"), "literal"),
    (J.replace('"soup"]', '"soup",]'), "literal"), (f"<think>x</think>{P}", "literal"),
]  # fmt: skip

VALUES: list[tuple[str, str, Any]] = [
    ("mood", '"Sad"', "sad"), ("mood", '" sad "', "sad"), ("mood", '"SAD."', "sad"), ("mood", '"**sad**"', "sad"),
    ("mood", '"\'sad\'"', "sad"),
    ("mood", '"sad, because it was cold"', "sad"), ("mood", '"very  sad"', "very sad"), ("mood", '"Very sad: all cold"', "very sad"),
    ("mood", r'"\\boxed{sad}"', "sad"), ("mood", '"`sad`"', "sad"), ("mood", '"Sad - all of it was cold"', "sad"),
    ("n", '"2"', 2), ("n", '" 2 "', 2), ("n", "2.0", 2), ("n", '"2.0"', 2), ("n", '"-2"', -2), ("n", '"null"', None), ("n", '"N/A"', None),
    ("n", '""', None), ("score", '"4.5"', 4.5), ("score", '" 4.5"', 4.5), ("score", '"n/a"', None), ("score", '"4"', 4.0),
    ("open", '"true"', True), ("open", '"FALSE"', False), ("open", '"Yes"', True), ("open", '"no"', False), ("open", '"null"', None),
    ("dishes", '"soup"', ["soup"]), ("dishes", '"N/A"', None), ("note", "5", "5"), ("note", "2.50", "2.50"),
]  # fmt: skip
EXACT: list[tuple[str, str, Any]] = [
    ("n", "null", None), ("score", "4", 4), ("score", "null", None), ("open", "false", False), ("open", "null", None), ("dishes", "[]", []),
    ("dishes", '["a", 1, true]', ["a", 1, True]), ("dishes", "null", None), ("note", '"null"', "null"), ("note", '""', ""),
    ("note", "null", None), ("mood", '"very sad"', "very sad"),
]  # fmt: skip
INVALID: list[tuple[str, str]] = [
    ("mood", '"sa"'), ("mood", '"unhappy"'), ("mood", '"not sad"'), ("mood", '"sad or glad"'), ("mood", '"sad, glad"'),
    ("mood", '"sad? No."'),
    ("mood", "null"), ("mood", '""'), ("mood", '["sad"]'), ("mood", "1"), ("mood", '"sadly"'), ("mood", '"sad, but not really sad"'),
    ("n", "4.5"), ("n", '"4.5"'), ("n", '"three"'), ("n", '"3/5"'), ("n", '"1,200"'), ("n", "true"), ("n", "[2]"), ("n", '"2 dishes"'),
    ("score", '"4,5"'), ("score", '"85%"'), ("score", "NaN"), ("score", "Infinity"), ("score", '"4.5 of 5"'), ("score", "false"),
    ("open", "0"), ("open", "1"), ("open", '"maybe"'), ("open", '"open"'), ("dishes", '"soup, bread"'), ("dishes", '[["soup"]]'),
    ("dishes", '{"a": "soup"}'), ("dishes", "[null]"), ("dishes", "3"), ("note", '["cold"]'), ("note", '{"a": 1}'), ("note", "true"),
]  # fmt: skip
REFUSED: list[tuple[str, str]] = [
    (f"{J}\n{OTHER}", "two different"), (f"```json\n{J}\n```\n```json\n{OTHER}\n```", "two different"),
    (f"No: {OTHER}. Yes: {J}", "two different"),
    (J[:-1], "cut off"), (J[:40], "cut off"), (f"Here: {J[:60]}", "cut off"), (f"```json\n{J[:60]}", "cut off"),
    (f"{J} {J[:9]}", "cut off"),
    (f"<think>{J}", "</think>"), (f"{J}<think>or", "</think>"), (f"[{J}]", "a list"), ("sad", "no JSON object"), ("", "empty"),
    ("I can't answer that.", "no JSON object"), ('{"feeling": "sad"} is all', "no JSON object"), (J.replace('"n"', '"mood"'), "duplicate"),
    (J.replace('"sad"', "sad"), "not valid JSON"), (f"So {J.replace('2', '')} or {J}", "not valid JSON"), ('"sad"', "a string"),
]  # fmt: skip


def field(name: str, written: str) -> str:
    """Return the answer with one field written otherwise."""
    was = {"mood": '"sad"', "n": "2,", "score": "4.5", "open": "true", "dishes": '["soup"]', "note": '"cold"'}[name]
    return J.replace(f'"{name}": {was}', f'"{name}": {written}{"," if was.endswith(",") else ""}')


def test_there_are_enough_of_them() -> None:
    assert sum(map(len, (WHOLE, VALUES, EXACT, INVALID, REFUSED))) >= 120


@pytest.mark.parametrize(("text", "read_as"), WHOLE)
def test_the_object_is_found_in_what_stands_around_it(text: str, read_as: str) -> None:
    assert read_answer(text, FIELDS) == FieldValues(GOOD, read_as=read_as)


@pytest.mark.parametrize(("name", "written", "value"), VALUES)
def test_a_value_in_other_words_is_taken_and_noted(name: str, written: str, value: Any) -> None:
    said = read_answer(field(name, written), FIELDS)
    assert isinstance(said, FieldValues)
    assert (said.values, said.invalid) == (GOOD | {name: value}, {})
    assert type(said.values[name]) is type(value)
    assert list(said.coerced) == [name]
    strict = read_answer(field(name, written), FIELDS, strict=True)
    assert isinstance(strict, FieldValues)
    assert list(strict.invalid) == [name]


@pytest.mark.parametrize(("name", "written", "value"), EXACT)
def test_a_value_as_it_is_wanted_is_not_noted(name: str, written: str, value: Any) -> None:
    for strict in (False, True):
        assert read_answer(field(name, written), FIELDS, strict) == FieldValues(GOOD | {name: value})


@pytest.mark.parametrize(("name", "written"), INVALID)
def test_a_value_that_is_none_is_invalid_and_the_others_count(name: str, written: str) -> None:
    said = read_answer(field(name, written), FIELDS)
    assert isinstance(said, FieldValues)
    assert list(said.invalid) == [name]
    assert said.values == {key: value for key, value in GOOD.items() if key != name}


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_an_answer_without_one_sure_object_is_refused(text: str, reason: str) -> None:
    said = read_answer(text, FIELDS)
    assert isinstance(said, str)
    assert reason in said
