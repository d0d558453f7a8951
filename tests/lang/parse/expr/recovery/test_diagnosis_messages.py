"""What people type at a prompt where an expression is read: one slip is one fault, in words that fit."""

import pytest
from knotwork.lang.diagnostic import picture
from knotwork.lang.parse.expr import parse_expr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("help FIND", "help and FIND need an operator between them"),
        ("show tables", "show and tables need an operator between them"),
        ("\\d", "unexpected character \\"),
        ("\\dt x", "unexpected character \\"),
        (".", "a value is missing before ."),
        ("..", "a value is missing before ."),
        (".help mode", "a value is missing before ."),
    ],
)
def test_one_slip_is_one_fault(text: str, message: str) -> None:
    assert [found.message for found in parse_expr(text).diagnostics] == [message]


def test_a_control_character_is_shown_in_one_way() -> None:
    read = parse_expr("a\x1b")
    assert "\\u001b" not in picture(read.diagnostics[0], read.source)
    assert picture(read.diagnostics[0], read.source).count("\\x1b") == 2


def test_a_number_may_begin_with_a_point() -> None:
    assert [found.message for found in parse_expr(".5 + 1").diagnostics] != ["a value is missing before ."]


@pytest.mark.parametrize(("text", "hint"), [
    ("x.birth year + 1", "write ['birth year'] for a key of this name"),
    ("x.rdf:type", "write ['rdf:type'] for a key of this name"),
    ("x.birth-year > 2", "write ['birth'], or ['birth-year'] for a key of this name"),
])  # fmt: skip
def test_a_key_of_several_words_after_a_dot_gets_no_edit_for_its_first_word(text, hint):
    found = parse_expr(text).diagnostics[0]
    assert (found.code, found.hints, found.edits) == ("EXPR012", (hint,), ())
