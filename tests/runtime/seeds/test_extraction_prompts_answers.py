"""How an answer is read: what fits, what nearly fits, what does not."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.adapters.llm.answers import check_answer
from knotwork.lang.literals import short
from knotwork.lang.trees.seed import Extracted, ReviewHandling
from knotwork.runtime.seeds.extraction_prompts import (
    FieldValues,
    agreement,
    answer_coercion,
    answer_schema,
    merged_parts,
    parts_of,
    read_answer,
    read_choice,
)
from support.seeds import PEOPLE, SEVERITY

KINDS = {
    kind: Extracted("f", kind, {"a": "", "B c": ""} if kind == "enum" else {})
    for kind in ("enum", "int", "float", "bool", "text", "list")
}


def one(kind: str, value: Any) -> FieldValues:
    said = read_answer(json.dumps({"f": value}), [KINDS[kind]])
    assert isinstance(said, FieldValues)
    return said


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        ("enum", "a", "a"), ("enum", " A\n", "a"), ("enum", "b C", "B c"), ("int", 3, 3), ("int", 3.0, 3), ("int", None, None),
        ("float", 2, 2), ("float", 2.5, 2.5), ("bool", False, False), ("bool", None, None), ("text", "", ""), ("list", [], []),
        ("list", ["a", 1, True], ["a", 1, True]), ("list", None, None), ("int", "3", 3), ("float", "4.5", 4.5), ("bool", "Yes", True),
        ("text", 1, "1"), ("list", "a", ["a"]), ("int", "N/A", None), ("enum", "**a**", "a"), ("enum", "a, because it rained", "a"),
    ],
)  # fmt: skip
def test_values_that_fit(kind: str, value: Any, read: Any) -> None:
    said = one(kind, value)
    assert said.invalid == {}
    assert (said.values["f"], type(said.values["f"])) == (read, type(read))


@pytest.mark.parametrize(
    ("kind", "value", "raw"),
    [
        ("enum", "c", "c"), ("enum", None, "null"), ("enum", ["a"], '["a"]'), ("int", "3 of 5", "3 of 5"), ("int", 2.5, "2.5"),
        ("int", True, "true"), ("int", 2**63, str(2**63)), ("float", "x", "x"), ("float", False, "false"), ("bool", 1, "1"),
        ("text", [1], "[1]"), ("list", "a, b", "a, b"), ("list", [[1]], "[[1]]"), ("list", [None], "[null]"),
    ],
)  # fmt: skip
def test_values_that_do_not_fit_are_kept_as_they_were_said(kind: str, value: Any, raw: str) -> None:
    assert one(kind, value) == FieldValues({}, {"f": raw})


def test_a_field_that_is_missing_is_invalid() -> None:
    assert read_answer('{"severity": "mild"}', (SEVERITY, PEOPLE)) == FieldValues(
        {"severity": "mild"}, {"people": '{"severity": "mild"}'}
    )


def test_a_fence_around_the_answer_does_not_matter() -> None:
    assert read_answer('```json\n{"severity": "mild"}\n```', (SEVERITY,)) == FieldValues(
        {"severity": "mild"}, read_as="fenced"
    )


@pytest.mark.parametrize(
    "text", ["", "mild", "[]", '{"severity": "mild"', '{"severity": "mild", "severity": "none"}', "[" * 10_000]
)
def test_what_is_no_object_says_nothing(text: str) -> None:
    assert isinstance(read_answer(text, (SEVERITY,)), str)


def test_a_raw_value_is_kept_in_part() -> None:
    said = one("enum", "x" * 10_000)
    assert len(said.invalid["f"]) == 300


def test_an_answer_that_nearly_fits_is_made_to_fit() -> None:
    tidy = answer_coercion((SEVERITY, PEOPLE))
    made = tidy('{"severity": " MILD ", "people": 2, "why": "because"}')
    assert json.loads(made) == {"severity": "mild", "people": 2}
    assert check_answer(made, answer_schema((SEVERITY, PEOPLE)))[1] == ""


@pytest.mark.parametrize(
    "text", ["no JSON", '{"severity":  "mild", "people": 2}', '{"severity": "worse", "people": 2}']
)
def test_any_other_answer_stays_as_it_is(text: str) -> None:
    assert answer_coercion((SEVERITY, PEOPLE))(text) == text


def test_two_values_that_differ_in_case_only_are_told_apart() -> None:
    cases = Extracted("f", "enum", {"x": "", "X": ""})
    assert read_answer('{"f": "X"}', (cases,)) == FieldValues({"f": "X"})
    assert read_answer('{"f": " X"}', (cases,)) == FieldValues({"f": "X"}, coerced={"f": "X"})
    other = Extracted("f", "enum", {"yes": "", "YES": ""})
    assert read_answer('{"f": "Yes"}', (other,)) == FieldValues({}, {"f": "Yes"})


def test_a_choice_is_read_like_a_field() -> None:
    assert read_choice(" Mild", SEVERITY) == FieldValues({"severity": "mild"}, coerced={"severity": "Mild"})
    assert read_choice("awful", SEVERITY) == FieldValues({}, {"severity": "awful"})


SCALAR = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
VALUE = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@pytest.mark.slow
@given(st.sampled_from(sorted(KINDS)), VALUE)
def test_a_value_that_the_schema_takes_fits_and_no_other_does(kind: str, value: Any) -> None:
    said = one(kind, value)
    fits = check_answer(answer_coercion([KINDS[kind]])(json.dumps({"f": value})), answer_schema([KINDS[kind]]))[1] == ""
    small = not isinstance(value, int | float | list) or all(
        abs(n) < 2**63 for n in (value if isinstance(value, list) else [value]) if isinstance(n, int | float)
    )
    if small:
        assert ("f" in said.values) is fits
    else:
        assert fits or "f" in said.invalid


# Long reviews


def handling(strategy: str, most: int = 10) -> ReviewHandling:
    return ReviewHandling(most, strategy)


def test_a_long_review_keeps_its_beginning_its_end_or_all_of_it() -> None:
    text = "one two three four"
    assert parts_of(text, handling("truncate_head"), False).texts == ("one two th",)
    assert parts_of(text, handling("truncate_tail"), False).texts == ("three four",)
    assert parts_of(text, handling("split"), False).texts == ("one two ", "three four")


def test_a_short_review_stays_whole() -> None:
    assert parts_of("x" * 2000, ReviewHandling(), False).texts == ("x" * 2000,)


@pytest.mark.slow
@given(st.text(max_size=200), st.integers(1, 30))
def test_chunks_are_the_whole_text_and_none_is_too_long(text: str, most: int) -> None:
    chunks = parts_of(text, handling("split", most), False).texts
    assert "".join(chunks) == text
    assert all(len(chunk) <= most for chunk in chunks)


MANY = (
    SEVERITY,
    Extracted("n", "int"),
    Extracted("any", "bool"),
    Extracted("said", "text"),
    Extracted("dishes", "list"),
)


def test_chunks_merge_by_field() -> None:
    first = FieldValues({"severity": "mild", "n": 2, "any": False, "said": "a", "dishes": ["x"]})
    second = FieldValues({"severity": "none", "n": 5, "any": True, "said": None, "dishes": ["y"]})
    third = FieldValues({"severity": "severe", "n": None, "any": None, "said": "b", "dishes": None})
    assert merged_parts(MANY, [first, second, third]) == FieldValues(
        {"severity": "severe", "n": 5, "any": True, "said": "a\nb", "dishes": ["x", "y"]},
        parts={"severity": (2,), "n": (1,), "any": (1,), "said": (0, 2), "dishes": (0, 1)},
    )


def test_nothing_in_any_chunk_is_null() -> None:
    nothing = FieldValues({"severity": "none", "n": None, "any": None, "said": None, "dishes": None})
    assert merged_parts(MANY, [nothing, nothing]).values == nothing.values


def test_a_field_that_one_chunk_did_not_say_rightly_is_invalid() -> None:
    said = merged_parts((SEVERITY,), [FieldValues({"severity": "none"}), FieldValues({}, {"severity": "awful"})])
    assert said == FieldValues({}, {"severity": "awful"}, parts={"severity": (1,)})


# Two readings


def test_two_readings_agree_but_for_spelling() -> None:
    one, other = (
        FieldValues({"severity": "mild", "n": 2, "said": "A  b"}),
        FieldValues({"severity": "mild", "n": 2.0, "said": "a b"}),
    )
    assert agreement((MANY[0], MANY[1], MANY[3]), one, other) == (one, ())


@pytest.mark.parametrize(("first", "second"), [(1, True), (None, 0), ("a", "b"), (["a"], ["a", "b"]), (0, False)])
def test_two_readings_differ(first: Any, second: Any) -> None:
    wanted = Extracted("f", "text")
    assert agreement((wanted,), FieldValues({"f": first}), FieldValues({"f": second})) == (FieldValues(), (wanted,))


def test_an_invalid_field_agrees_with_none() -> None:
    invalid = FieldValues({}, {"severity": "x"})
    assert agreement((SEVERITY,), invalid, invalid) == (FieldValues(), (SEVERITY,))


DISHES = Extracted("dishes", "list")
CODE = Extracted("code", "text")
MENU = (SEVERITY, DISHES, CODE)


@pytest.mark.parametrize(
    ("written", "value", "coerced"),
    [
        ('"none"', None, "none"), ('"None"', None, "None"), ('"N/A"', None, "N/A"), ('["none"]', None, '["none"]'), ('[""]', None, '[""]'),
        ("null", None, ""), ("[]", [], ""), ('"soup"', ["soup"], "soup"), ('["no salt", "soup"]', ["no salt", "soup"], ""),
        ('["No dessert"]', ["No dessert"], ""),
    ],
)  # fmt: skip
def test_a_word_for_nothing_is_an_empty_list(written: str, value: Any, coerced: str) -> None:
    said = read_answer(f'{{"severity": "mild", "dishes": {written}, "code": "a"}}', MENU)
    assert isinstance(said, FieldValues)
    assert (said.values["dishes"], said.coerced.get("dishes", "")) == (value, coerced)


@pytest.mark.parametrize(
    "written",
    [
        '"No dessert"',
        '"-"', '"\u2014"', '"not mentioned"', '"Not specified."', '"unknown"', '"nothing"', '"keine"', '"No dishes mentioned."',
        '"The guest does not say."', '["-"]', '["not mentioned"]', '["soup", "none"]', '["soup", ""]', "[null]", '["soup", "N/A"]',
    ],
)  # fmt: skip
def test_a_word_for_nothing_is_no_element_of_a_list(written: str) -> None:
    said = read_answer(f'{{"severity": "mild", "dishes": {written}, "code": "a"}}', MENU)
    assert isinstance(said, FieldValues)
    assert said.invalid == {"dishes": json.loads(written) if written[0] == '"' else written}


@pytest.mark.parametrize(
    "digits",
    ["1.10", "2.50", "1e3", "1E+5", "-0", "0", "3.0", "0.1234567890123456789", "12345678901234567890123", "1e400"],
)
@pytest.mark.parametrize(
    "text", ['{"severity": "mild", "dishes": [], "code": %s}', "{'severity': 'mild', 'dishes': None, 'code': %s}"]
)
def test_a_text_keeps_the_digits_of_a_number(text: str, digits: str) -> None:
    for written in (text % digits, f"So:\n{text % digits} Good?"):
        said = read_answer(written, MENU)
        if not isinstance(said, FieldValues):  # as a Python literal it is too large
            assert digits == "1e400"
            continue
        assert (said.values["code"], said.coerced["code"]) == (digits, digits)
        tidied = json.loads(answer_coercion(MENU)(written))
        assert tidied["code"] == digits


def test_an_invalid_number_is_kept_as_it_was_written() -> None:
    said = read_answer('{"severity": 1.10, "dishes": [[2.50]], "code": [1e3]}', MENU)
    assert isinstance(said, FieldValues)
    assert said.invalid == {"severity": "1.10", "dishes": "[[2.50]]", "code": "[1e3]"}


@pytest.mark.parametrize(
    "text",
    [
        '{"error": "I may not read this."}', '{"name": "save", "arguments": {"severity": "mild"}}', "{}", "I may not read this.",
        '{"answer": {"severity": "mild"}}', 'Sorry. {"error": "no"}', "```json\n{}\n```", '{"severity_": "mild"}',
    ],
)  # fmt: skip
def test_an_answer_without_a_field_fails_with_its_text(text: str) -> None:
    said = read_answer(text, MENU)
    assert isinstance(said, str)
    assert said.endswith(f"; it is {short(' '.join(text.split()), 300)}")
    if "{" in text:
        with (
            pytest.raises(ValueError, match=r"no field|no JSON object") if text[0] == "{" else contextlib.nullcontext()
        ):
            assert answer_coercion(MENU)(text) == text


def test_keys_in_another_letter_case_are_read_and_noted() -> None:
    text = '{"Severity": "mild", "DISHES": ["soup"], "code": "a"}'
    said = read_answer(text, MENU)
    assert isinstance(said, FieldValues)
    assert said.values == {"severity": "mild", "dishes": ["soup"], "code": "a"}
    assert said.coerced == {"severity": '"Severity": "mild"', "dishes": '"DISHES": ["soup"]'}
    assert json.loads(answer_coercion(MENU)(text)) == said.values
    assert isinstance(read_answer(text, MENU, strict=True), FieldValues)
    assert read_answer(text, MENU, strict=True).invalid.keys() == {"severity", "dishes"}
    same = read_answer('{"code": "a", "Code": "a"}', (CODE,))
    assert isinstance(same, FieldValues) and same.values == {"code": "a"}
    both = (CODE, Extracted("Code", "text"))
    assert read_answer('{"code": "a", "Code": "b"}', both) == FieldValues({"code": "a", "Code": "b"})


@pytest.mark.parametrize(
    "text",
    [
        '{"code": "a", "Code": "b"}', '{"CODE": "a", "Code": "b"}', '{"code": "a", "code": "a"}', '{"code": "a"} {"code": "b"}',
        '{"code": "a" "x": 1}', '{"code": a}', '{code: "a"}', '{"code": "a',
    ],
)  # fmt: skip
def test_what_has_two_readings_is_refused(text: str) -> None:
    assert isinstance(read_answer(text, (CODE,)), str)


@pytest.mark.parametrize(
    "text",
    [
        '{"code": "a\nb"}', '{"code": "a\nb",}', '{"code": "a\nb" /* {it\'s} */}', '// the code\n{"code": "a\nb"}',
        '{"code": "a\nb", // last, "x": 1\n}', "{'code': 'a\\nb'}", "{\u201ccode\u201d: \u201ca\\nb\u201d}",
        '```json\n{"code": "a\nb", "more": None,}\n```', '\ufeff{"code": "a\nb", "ok": True}',
    ],
)  # fmt: skip
def test_what_has_one_reading_is_read_and_noted(text: str) -> None:
    assert read_answer(text, (CODE,)) == FieldValues({"code": "a\nb"}, read_as="literal")
