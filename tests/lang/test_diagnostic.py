"""Diagnostics as values: edits, pictures, JSON, did-you-mean."""

import pytest
from knotwork.lang.diagnostic import (
    Diagnostic,
    Edit,
    apply_edits,
    as_json,
    has_errors,
    nearest,
    picture,
    printable,
    sort_key,
)  # fmt: skip
from knotwork.lang.source import Source, Span


def test_edits_are_exact_and_independent_of_their_order():
    edits = [Edit(Span(4, 7), "you"), Edit(Span(0, 1), "A"), Edit(Span(7, 7), "!")]
    assert apply_edits("a b me.", edits) == "A b you!"


def test_of_overlapping_edits_the_first_is_made():
    assert apply_edits("abcdef", [Edit(Span(2, 5), "X"), Edit(Span(0, 3), "Y")]) == "Ydef"


def test_json_counts_code_points_from_one_in_lines_and_columns():
    source = Source("é\nab 😀 c", "x.lwt")
    shown = as_json(Diagnostic("LWT012", "error", "no", Span(7, 8), ("hint",), (Edit(Span(7, 8), "d"),)), source)
    assert shown == {
        "code": "LWT012",
        "severity": "error",
        "message": "no",
        "file": "x.lwt",
        "span": {"start": 7, "end": 8, "line": 2, "column": 6, "end_line": 2, "end_column": 7},
        "hints": ["hint"],
        "edits": [{"start": 7, "end": 8, "text": "d"}],
    }
    assert as_json(Diagnostic("KW001", "error", "no"), source)["span"] is None


def test_picture():
    source = Source("(a)=LLM()\n(final)=LLM('日本 {(b)}')", "x.lwt")
    start = source.text.index("{")
    drawn = picture(Diagnostic("LWT012", "error", "unknown step (b)", Span(start, start + 5), ("look",)), source)
    assert drawn.splitlines() == [
        "error[LWT012]: unknown step (b)",
        "  --> x.lwt:2:17",
        "   2 | (final)=LLM('日本 {(b)}')",
        "     |                   ^^^^^",
        "  = help: look",
    ]


def test_picture_of_a_long_line_is_cut_around_the_fault():
    source = Source("x" * 5000 + "HERE" + "y" * 5000)
    lines = picture(Diagnostic("LWT005", "error", "no", Span(5000, 5004)), source).splitlines()
    assert "HERE" in lines[2]
    assert len(lines[2]) < 130
    assert lines[3].index("^") == lines[2].index("HERE")


def test_picture_at_the_end_and_over_lines():
    source = Source("ab\ncd")
    assert picture(Diagnostic("LWT003", "error", "no", Span(5, 5)), source).splitlines()[3] == "     |   ^"
    assert picture(Diagnostic("LWT003", "error", "no", Span(0, 5)), source).splitlines()[3] == "     | ^^"


def test_a_terminal_is_not_written_to():
    assert printable("a\tb\x1b[31m\u202e\ud800") == "a b\\x1b[31m\\u202e\\ud800"


@pytest.mark.parametrize(
    "word",
    ["نمی\u200cدانم", "«خانه»\u200cها", "۵\u200cساله", "ක්\u200dර", "👩\u200d🚒", "🏳️\u200d🌈"],  # noqa: RUF001
)
def test_a_joiner_inside_a_word_or_an_emoji_is_text(word: str) -> None:
    assert printable(f"{word}\t") == f"{word} "


@pytest.mark.parametrize("text", ["\u200ca", "a\u200d", "a \u200cb", "a\u200c\u200db", "\u200c"])
def test_a_joiner_that_joins_nothing_is_escaped(text: str) -> None:
    assert not {"\u200c", "\u200d"} & set(printable(text))
    assert "\x1b" not in picture(Diagnostic("LWT035", "warning", "no", Span(1, 2)), Source("a\x1bb", "\x1bname"))


def test_order_and_errors():
    late, early, nowhere = (
        Diagnostic("LWT001", "warning", "m", Span(9, 10)),
        Diagnostic("LWT012", "error", "m", Span(1, 2)),
        Diagnostic("KW001", "info", "m"),
    )
    assert sorted([late, early, nowhere], key=sort_key) == [nowhere, early, late]
    assert has_errors([late, early])
    assert not has_errors([late, nowhere])


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("chekc", ["check", "final"], "check"),
        ("Check", ["check", "chick"], "check"),
        ("xyz", ["check", "final"], None),
        ("temprature", ["temperature", "type", "timeout"], "temperature"),
        ("a", [], None),
        ("x" * 10_000, ["x"], None),
    ],
)
def test_nearest(name, known, meant):
    assert nearest(name, known) == meant


def test_nearest_asks_for_more_likeness_among_many():
    assert nearest("abcx", ["abyy", "qqqq"]) == "abyy"
    assert nearest("abcx", ["abyy", *(f"q{number}qqqqqq" for number in range(200))]) is None
