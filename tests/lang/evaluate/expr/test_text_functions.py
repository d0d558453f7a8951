"""Functions of texts: coalesce, number, replace, substring, fold, similarity, and the trigrams that joins share with similarity."""

import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from knotwork.lang.evaluate.expr import ExprError, Limits, Meter, evaluate
from knotwork.lang.evaluate.expr.functions import FUNCTION_TABLE
from knotwork.lang.evaluate.expr.text_functions import folded, trigrams
from knotwork.lang.parse.expr import parse_expr
from support.expr_results import failure, value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("coalesce(null, null)", None), ("coalesce(null, 0, 1)", 0), ("coalesce(false, 1)", False), ('coalesce("", "a")', ""),
        ("coalesce(null, [1])", [1]), ("sum(coalesce(x, 1) for x in [2, null])", 3),
        ('replace("a-b-c", "-", "")', "abc"), ('replace("aaa", "aa", "b")', "ba"), ('replace("abc", "x", "y")', "abc"),
        ('replace("", "x", "y")', ""), ('replace("a", "a", "éé")', "éé"), ('replace("ab", "ab", "abab")', "abab"),
        ('substring("abcdef", 0, 3)', "abc"), ('substring("abcdef", 4, 9)', "ef"), ('substring("abc", 3, 1)', ""),
        ('substring("abc", 10 ** 30, 1)', ""), ('substring("abc", 1, 10 ** 30)', "bc"), ('substring("aé😀b", 1, 2)', "é😀"),
        ('substring("abc", 0, 0)', ""),
        ('fold("  Café \\t\\n DU   Monde ")', "cafe du monde"), ('fold("")', ""), ('fold(" ")', ""), ('fold("Straße")', "strasse"),
        ('fold("ÅNGSTRÖM")', "angstrom"), ('fold("ΟΔΥΣΣΕΎΣ")', "οδυσσευσ"), ('fold("İstanbul")', "istanbul"),
        ('fold("ﬁn ½ ①")', "fin 1\u20442 1"), ('fold("한국어")', "한국어"), ('fold("zażółć")', "zazolc"),
        ('fold("  Đorđe  Søren\u00a0")', "dorde soren"), ('fold("ǾÆþħŧ")', "oæþht"),
        ("fold('A\u00a0b')", "a b"),
        ('similarity("", "")', 0.0), ('similarity("?!", "?!")', 0.0), ('similarity("a", "b")', 0.0), ('similarity("a", "A ")', 1.0),
        ('similarity("Café", "CAFE")', 1.0), ('similarity("snake_case", "case snake")', 1.0),
        ('similarity("Smith, John", "John Smith")', 1.0), ('similarity("J. Smith", "John Smith")', 7 / 12),
        ('similarity("SCROOGE", "EBENEZER SCROOGE")', 8 / 17), ('similarity("word", "two words")', 4 / 11),
    ],
)  # fmt: skip
def test_texts(text, expected):
    found = value(text)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (5, 5), (0.5, 0.5), (-0.0, -0.0), (2**1023, None), ("12", 12), (" 12\n", 12), ("-12", -12), ("+1.50", 1.5), ("1e3", 1000.0),
        ("007", 7), (".5", 0.5), ("5.", 5.0), ("9" * 18, 10**18 - 1), ("", None), (" ", None), ("12 kg", None), ("1,000", None),
        ("1_000", None), ("0x10", None), ("nan", None), ("inf", None), ("1e999", None), ("-1e999", None), ("9" * 401, None),
        (float("nan"), None), (float("inf"), None), ("1" + "0" * 309, None), ("٣", None), (True, None), (False, None), (None, None),
        ([1], None), ({"a": 1}, None), ("1e-999", 0.0), ("\ud800", None),
    ],
)  # fmt: skip
def test_numbers(given_, expected):
    if given_ == 2**1023:  # inside an expression an integer has up to 1,024 bits; a result has 64
        assert value("number(x) == x", x=given_) is True
        assert value("number(x) is null", x=2**1024) is True
        return
    assert repr(value("number(x)", x=given_)) == repr(expected)


def test_a_number_of_a_generator_is_null_and_not_a_number_of_its_list():
    assert value("number(x for x in [1])") is None


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("fold(null)", "type", "fold takes a string, not null"),
        ("fold(5)", "type", "fold takes a string, not a number: 5"),
        ('similarity("a", null)', "type", "similarity takes strings, not null"),
        ('replace("a", 1, "b")', "type", "replace takes strings, not a number: 1"),
        ('replace("a", "", "b")', "value", "can't replace an empty string"),
        ('substring("abc", -1, 1)', "value", "substring's from is negative: -1"),
        ('substring("abc", 0, -1)', "value", "substring's count is negative: -1"),
        ('substring("abc", 0.0, 1)', "type", "substring takes a whole number as from, not 0.0"),
        ('substring("abc", 0, true)', "type", "substring takes a whole number as count, not a boolean: true"),
        ('substring("abc", null, 1)', "type", "substring takes a whole number as from, not null"),
        ('substring(null, 0, 1)', "type", "substring takes a string, not null"),
        ("coalesce((x for x in [1]), 1)", "type", "coalesce takes values, not a generator"),
        ("coalesce(null, 1 / 0)", "division", "can't divide 1 by zero"),
        ("coalesce(1)", "type", "coalesce takes at least 2 arguments, not 1"),
    ],
)  # fmt: skip
def test_what_is_refused(text, kind, message):
    error = failure(text)
    assert (error.kind, error.message) == (kind, message)


def test_an_error_names_the_argument_that_is_null():
    assert failure("fold(name)", name=None).hint == "name is null"


def test_half_a_surrogate_pair_is_a_letter_of_its_own_and_no_result():
    assert folded("\ud800 A\u0301") == "\ud800 a"
    assert value("fold(x) == x", x="\ud800") is True
    assert value("similarity(x, 'a')", x="a \ud800") == 1.0
    assert failure("fold(x)", x="\ud800").kind == "result"


def test_trigrams_are_those_of_pg_trgm():
    # SELECT show_trgm('word'), from the documentation of pg_trgm
    assert trigrams("word") == {"  w", " wo", "wor", "ord", "rd "}
    assert trigrams("Two Words") == {"  t", "  w", " tw", " wo", "ds ", "ord", "rds", "two", "wo ", "wor"}
    assert trigrams("a") == {"  a", " a "}
    assert trigrams("Ärger_2") == {"  a", " ar", "arg", "rge", "ger", "er ", "  2", " 2 "}
    assert trigrams("...") == trigrams("") == frozenset()


@pytest.mark.slow
@given(st.text())
@example("\u0f73" * 3)
def test_folding_again_changes_nothing(text):
    assert folded(folded(text)) == folded(text)
    assert trigrams(folded(text)) == trigrams(text)


@pytest.mark.slow
def test_folding_any_letter_again_changes_nothing():
    for at in range(0, sys.maxunicode + 1, 200):
        text = " ".join(map(chr, range(at, min(at + 200, sys.maxunicode + 1))))
        assert folded(folded(text)) == folded(text)


@pytest.mark.slow
@given(st.text(max_size=30), st.text(max_size=30))
def test_similarity_is_symmetric_and_a_share(first, second):
    share = FUNCTION_TABLE["similarity"](Meter(), first, second)
    assert share == FUNCTION_TABLE["similarity"](Meter(), second, first)
    assert 0 <= share <= 1 and (share == 1) == (trigrams(first) == trigrams(second) != frozenset())


@pytest.mark.parametrize(
    "text", ["é" * 255 + "e\u0301" * 5, "\u1100\u1161\u11a8" * 300, "각" * 1000, ("ß" * 300 + " ") * 4]
)
def test_a_long_text_is_folded_as_its_parts_are(text):
    assert folded(text) == "".join(folded(each) for each in ([text] if "각" not in text else text)) != ""
    assert folded("x" * 255 + text) == "x" * 255 + folded(text)


@pytest.mark.slow
def test_growth_is_limited():
    million = "a" * 1_000_000
    for text, message in {
        "replace(x, 'a', 'bb')": "the expression creates a string of more than 1,000,000 characters",
        "similarity(x, 'a')": "the expression creates a set of more than 1,000,000 elements",
    }.items():
        assert (failure(text, x=million).kind, failure(text, x=million).message) == ("limit", message)
    assert (
        failure("fold(x)", x="\ufdfa" * 100_000).message
        == "the expression creates a string of more than 1,000,000 characters"
    )
    assert value("len(replace(x, 'a', 'b'))", x=million) == 1_000_000
    assert value("len(substring(x, 1, 10 ** 9))", x=million) == 999_999
    assert failure("fold(x)", x=million + "a").kind == "limit"
    assert value("number(x)", x=million) is None


@pytest.mark.slow
@pytest.mark.parametrize("mark", ["\u0300\u0316", "\u0f73", "\u0327\u0301"])
def test_many_marks_take_no_quadratic_time(mark):
    assert folded("a" + mark * (400_000 // len(mark))) == "a"


@pytest.mark.parametrize(
    "text", ["fold(x)", "similarity(x, x)", "replace(x, 'a', 'b')", "substring(x, 0, 9)", "number(x)"]
)
def test_each_call_is_charged(text):
    expr = parse_expr(text).expr
    for long in ("a" * 100_000, "é" * 100_000):
        meter = Meter()
        evaluate(expr, {"x": long}, meter=meter)
        if "substring" not in text:
            assert meter.limits.steps - meter.left >= 100_000 // 256
            with pytest.raises(ExprError, match="more than 300 steps"):
                evaluate(expr, {"x": long}, meter=Meter(Limits(steps=300)))


def test_values_can_have_the_names_of_the_newer_functions():
    assert value("year(date) == year", date="2024-03-05", year=2024) is True
    assert value("[number for number in [1]]") == [1]
