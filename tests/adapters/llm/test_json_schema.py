"""What is told of an answer that is not JSON: our words, the same for each Python, with line and column."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.adapters.llm.answers import check_answer
from knotwork.adapters.llm.json_schema import read_json, read_json_bytes

SCHEMA = {"type": "object"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Sure, here is the plan that you want: {}", "it begins with 'Sure, here is the plan t...' (line 1, column 1)"),
        ("", "it is empty (line 1, column 1)"), ('{"a": 1', "it ends too early"), ('{"a": "b', "a string has no closing quote"),
        ('{"a": 1} so', "unexpected text after the JSON value: 'so' (line 1, column 10)"),
        ('{"a": 1\n "b": 2}', "a comma, or a closing bracket, is missing before"), ('{"a" 1}', "a colon is missing before '1}'"),
        ("{'a': 1}", """a key in double quotes is missing before "'a': 1}" (line 1, column 2)"""),
        ('{"a": }', "a value is missing before '}' (line 1, column 7)"), ('{"a": "b\nc"}', "a string has an unescaped line break"),
        ('{"a": "\\x"}', "unknown escape"), ('{"a": 1, "a": 2}', "the key 'a' occurs twice in an object"),
    ],
)  # fmt: skip
def test_what_is_no_json_is_told_in_our_words(text: str, told: str) -> None:
    with pytest.raises(ValueError) as error:
        read_json(text)
    assert told in str(error.value)
    assert "Expecting" not in str(error.value) and "(char" not in str(error.value)


def test_an_answer_that_is_nothing_is_told_as_that() -> None:
    assert check_answer(" ", SCHEMA) == ("", "the model's answer is empty")
    assert check_answer("Sure!", SCHEMA)[1] == "it is not valid JSON: it begins with 'Sure!' (line 1, column 1)"


def value_or_fault(read, text):
    """Return what ``read`` makes of ``text``: its value, or the words of its error."""
    try:
        return read(text)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize(
    "text",
    [
        "{}", "[]", "7", "null", '{"a": 1, "b": {"a": 2}, "c": [{"a": 3}]}', '{"a" : 1, "b"\n: 2}', '{"a": "\\": \\":", "b": "x\":y"}',
        '{"a": 1, "a": 2}', '{"a" : 1, "a": 2}', '{"a" : 1, "a" : 2}', '{"a": {"b": 1, "b": 2}, "a": 3}', '{"x": "\\":", "a" : 1, "a": 2}',
        '{"a": NaN}', '{"a": 1e400}', '{"a": 123456789012345678901234567890}', '{"a": "\\ud83d"}', '{"a": "\\ud83d\\ude00"}', '{"a": 1', "",
        "[" * 200 + "]" * 200, "[" * 201 + "]" * 201, "[" * 5000 + "]" * 5000,
    ],
)  # fmt: skip
def test_bytes_are_read_as_text_is(text: str) -> None:
    assert value_or_fault(read_json_bytes, text.encode()) == value_or_fault(read_json, text)


@pytest.mark.slow
@given(
    st.recursive(
        st.text(alphabet='":,a{} \n'), lambda inner: st.lists(inner) | st.dictionaries(st.text('":a '), inner)
    ),
    st.data(),
)
def test_bytes_of_any_objects_are_read_as_text_is(value: object, data: st.DataObject) -> None:
    text = json.dumps(
        value, separators=(data.draw(st.sampled_from([",", ", "])), data.draw(st.sampled_from([":", ": ", " :"])))
    )
    if data.draw(st.booleans()):
        text = text.replace("a", "", 1)  # makes some keys equal
    assert value_or_fault(read_json_bytes, text.encode()) == value_or_fault(read_json, text)
