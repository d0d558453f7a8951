"""What is told of an answer that is not JSON: our words, the same for each Python, with line and column."""

import pytest
from knotwork.adapters.llm.answers import check_answer
from knotwork.adapters.llm.json_schema import read_json

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
