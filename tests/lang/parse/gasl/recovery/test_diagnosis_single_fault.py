"""One slip is told once, with its fix, where two commands show it; and what only may be meant is a hint without an edit."""

import pytest
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.linter.gasl import check
from knotwork.lang.parse.gasl import parse_gasl


def told(text):
    return check(parse_gasl(text), state={})


def fixed(text):
    return apply_edits(text, [edit for each in told(text) for edit in each.edits])


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("FIND nodes\nCOUNT people BY field AS n", "FIND nodes AS people\nCOUNT people BY field AS n"),
        (
            "FIND nodes AS people\nWALK people VIA kind = 'x'\nCOUNT cities AS n",
            "FIND nodes AS people\nWALK people VIA kind = 'x' AS cities\nCOUNT cities AS n",
        ),
        ("FIND nodes  \n\nCOUNT `a b` AS n", "FIND nodes AS `a b`  \n\nCOUNT `a b` AS n"),
    ],
)
def test_a_command_without_as_gets_the_name_that_nothing_binds(text, right):
    assert fixed(text) == right
    assert {each.code for each in told(text)} == {"GASL006"}
    assert told(right) == []


def test_of_two_commands_without_as_the_first_waits_for_what_the_second_reads():
    text = "FIND nodes\nWALK a\nCOUNT b AS n"
    assert fixed(text) == "FIND nodes\nWALK a AS b\nCOUNT b AS n"
    assert fixed(fixed(text)) == "FIND nodes AS a\nWALK a AS b\nCOUNT b AS n"


@pytest.mark.parametrize(
    "text",
    [
        "FIND nodes\nCOUNT a AS n\nCOUNT b AS m",  # one of two names
        "FIND nodes\nFIND edges\nCOUNT a AS n",  # told of the nearer command only
        "COUNT a AS n\nFIND nodes",  # the name stands above
        "FIND nodes AS a\nFIND nodes\nCOUNT a AS n",  # nothing is unbound
    ],
)
def test_no_name_is_given_where_another_is_possible(text):
    unnamed = [each for each in told(text) if each.code == "GASL006"]
    assert unnamed
    assert not unnamed[0].edits


def test_a_name_that_is_not_given_is_still_told():
    assert [each.code for each in told("FIND nodes\nCOUNT a AS n\nCOUNT b AS m")] == ["GASL006", "GASL050", "GASL050"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("DECLARE answer AS LIST\nFIND nodes AS a\nUPDATE result.answer WITH a", "did you mean answer?"),
        (
            "DECLARE r AS DICT\nDECLARE r.answer AS LIST\nFIND nodes AS a\nUPDATE answer WITH a",
            "did you mean r.answer?",
        ),
    ],
)
def test_a_key_that_stands_elsewhere_is_offered_and_not_taken(text, hint):
    (found,) = told(text)
    assert found.code == "GASL055"
    assert found.hints[0] == hint
    assert found.hints[1].startswith("add DECLARE")
    assert found.edits == ()


def test_a_key_inside_of_one_that_is_declared_is_new():
    text = "DECLARE answer AS LIST\nDECLARE r AS DICT\nFIND nodes AS a\nUPDATE r.answer WITH a"
    (found,) = told(text)
    assert found.hints == ("add DECLARE r.answer AS LIST before it",)
    assert found.edits


def test_of_two_such_keys_neither_is_offered():
    text = "DECLARE a AS DICT\nDECLARE a.x AS LIST\nDECLARE b AS DICT\nDECLARE b.x AS LIST\nFIND nodes AS n\nUPDATE x WITH n"
    (found,) = told(text)
    assert found.hints == ("add DECLARE x AS LIST before it",)


def test_what_a_command_that_could_not_be_read_may_declare_is_not_declared_again():
    text = "DECALRE answer AS LIST\nFIND nodes AS a\nUPDATE answer WITH a"
    assert fixed(text) == text.replace("DECALRE", "DECLARE")
    assert [each.code for each in told(text)] == ["GASL001", "GASL055"]


@pytest.mark.parametrize("word", ["UPdATE", "UPDdATE", "UaDATE", "UPDATe"])
def test_a_command_with_a_slip_of_the_shift_key_is_no_prose(word):
    text = f"DECLARE answer AS LIST\nFIND nodes AS a\n{word} answer WITH a"
    assert told(fixed(text)) == []
    assert "# " not in fixed(text)


@pytest.mark.parametrize("line", ["Findings are below.", "Updates follow here", "McDonald had a farm"])
def test_prose_stays_prose(line):
    assert fixed(f"{line}\nFIND nodes AS a").startswith("# ")


@pytest.mark.parametrize("sign", ["&&", "||"])
def test_a_text_without_quotes_ends_before_a_foreign_sign(sign):
    text = f"FIND nodes WHERE field = old optics {sign} age >= 29 AS a\nCOUNT a AS n"
    joined = "AND" if sign == "&&" else "OR"
    assert fixed(text) == f'FIND nodes WHERE field = "old optics" {joined} age >= 29 AS a\nCOUNT a AS n'
    assert [each.code for each in told(text)] == ["GASL007", "GASL014"]


@pytest.mark.parametrize("words", ["ORDER BY", "order by", "SORTED BY"])
def test_the_two_words_of_sql_are_one_in_rank(words):
    text = f"FIND nodes AS people\nRANK people {words} age DESC LIMIT 3 AS b\nCOUNT b AS n"
    assert fixed(text).splitlines()[1].upper() == "RANK PEOPLE BY AGE DESC LIMIT 3 AS B"
    assert told(fixed(text)) == []
    assert [each.code for each in told(text)] == ["GASL014"]
