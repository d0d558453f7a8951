"""The text in every match of a pattern: known patterns, and random ones against the engine of the patterns."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.graph_cypher.pattern_texts import PatternText, text_in
from knotwork.lang.evaluate.conditions import ConditionError
from knotwork.lang.evaluate.conditions.comparison import pattern_of
from support.examples import many


@pytest.mark.parametrize(
    ("pattern", "text", "place"),
    [
        ("99$", "99", "ENDS WITH"),
        ("^Ada", "Ada", "STARTS WITH"),
        ("Love.*lace", "Love", "CONTAINS"),
        ("[Aa]da Lovelace", "da Lovelace", "CONTAINS"),
        ("(Mr|Mrs) Bo", " Bo", "CONTAINS"),
        (r"1\.5", "1.5", "CONTAINS"),
        ("colou?r", "colo", "CONTAINS"),
        ("ab+c", "ab", "CONTAINS"),
        ("x{2,3}yz", "yz", "CONTAINS"),
        (r"\d+ years", " years", "CONTAINS"),
        ("[[:alpha:]]x", "x", "CONTAINS"),
        ("[]a]x", "x", "CONTAINS"),
    ],
)
def test_known_patterns(pattern: str, text: str, place: str) -> None:
    assert text_in(pattern) == PatternText(text, place)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pattern", ["", ".", "a|b", "(?i)ada", r"\Qa.b\E", r"\pL+", r"\x41", "a?", "(ada)?", "^*", r"a(?i:b)", "[a"]
)
def test_patterns_without_a_text(pattern: str) -> None:
    assert text_in(pattern) is None


pieces = st.sampled_from(
    ("a", "b", "ab", "é", "1", ".", "^", "$", "*", "+", "?", "{2}", "{0,1}", "|", "(", ")", "(?:", "[ab]", "[^a]", "[]a]", "[[:alpha:]]",
     r"\.", r"\d", r"\b", r"\n", "(?i)", r"\Q", r"\E", r"\x61", " ", "{", "-")
)  # fmt: skip


@pytest.mark.slow
@given(
    pattern=st.lists(pieces, max_size=8).map("".join), strings=st.lists(st.text("abé1 .-{\n", max_size=6), max_size=20)
)
@settings(max_examples=many(2_500))
def test_every_match_has_the_text(pattern: str, strings: list[str]) -> None:
    found = text_in(pattern)
    try:
        matches = pattern_of(pattern)
    except ConditionError:
        return
    if found is None:
        return
    test = {"CONTAINS": str.__contains__, "STARTS WITH": str.startswith, "ENDS WITH": str.endswith}[found.place]
    for string in (*strings, found.text, f"a{found.text}b", f"{found.text}{found.text}"):
        assert not matches(string) or test(string, found.text)
