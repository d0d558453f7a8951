"""The accessor ladder: what a text is read as."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.literals import Reading, Unreadable, read

READ: list[tuple[str, str, Any]] = [
    ('["Canada", "Peru"]', "json", ["Canada", "Peru"]),
    (' {"a": [1, 2.5, null, true]} ', "json", {"a": [1, 2.5, None, True]}),
    ("5", "json", 5),
    ('"text"', "json", "text"),
    ("['Canada', 'Peru']", "python", ["Canada", "Peru"]),
    ("{'open': True, 'seats': None}", "python", {"open": True, "seats": None}),
    ("('a', 'b')", "python", ["a", "b"]),
    ("('a',)", "python", ["a"]),
    ("{'x', 'y'}", "python", ["x", "y"]),
    ("['it\\'s', \"a \\\"quote\\\"\", r'\\d', '\\x41\\u00e9\\n']", "python", ["it's", 'a "quote"', "\\d", "Aé\n"]),
    ("'''three\nlines'''", "python", "three\nlines"),
    ("['mixed', null, true,]", "python", ["mixed", None, True]),
    ("{1: 'one'}", "python", {"1": "one"}),
    ("[1_000, -2, +3.5e1]", "python", [1000, -2, 35.0]),
    ('Here it is:\n```json\n{"a": 1}\n```\nEnjoy!', "fence", {"a": 1}),
    ("```\n['a']\n```", "fence", ["a"]),
    ("~~~\n[Canada, Peru]\n~~~", "fence", ["Canada", "Peru"]),
    ("[Canada, Peru]", "bracket list", ["Canada", "Peru"]),
    ("[New York (NY, USA), 'Lima']", "bracket list", ["New York (NY, USA)", "Lima"]),
    ("[one,\n two,\n]", "bracket list", ["one", "two"]),
    ("[rock 'n' roll, dogs', \"jazz\"]", "bracket list", ["rock 'n' roll", "dogs'", "jazz"]),
    ('\ufeff["Oslo"]', "json", ["Oslo"]),
    (r"{'match': '\d+\w'}", "python", {"match": r"\d+\w"}),
    (r'["\ud83c\udf19"]', "json", ["\U0001f319"]),
]


@pytest.mark.parametrize(("text", "how", "value"), READ)
def test_an_answer_is_read_by_the_first_rung_that_takes_it(text: str, how: str, value: Any) -> None:
    assert read(text) == Reading(value, how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The capital is Lima.", "it is not JSON"),
        ("", "it is not JSON"),
        ("[a, , b]", "it is not JSON"),
        ('["Oslo" "Bergen"]', "it is not JSON"),
        ('["Oslo, Norway", Bergen]', "it is not JSON"),
        ("[Oslo, Bergen, ...]", "it is not JSON"),
        ('{{"town": "Oslo"}}', "it is not JSON"),
        (r"['C:\maps\new']", "a backslash that is not escaped"),
        (r'"\ud83c"', "a lone surrogate"),
        ("[{broken]", "it is not JSON"),
        ("[a] and [b]", "it is not JSON"),
        ('{"a": 1, "a": 2}', 'duplicate key "a"'),
        ("{'a': 1, 'a': 2}", 'duplicate key "a"'),
        ("[NaN]", "NaN is not a JSON value"),
        ("-Infinity", "-Infinity is not a JSON value"),
        ("1e999", "a number is too large"),
        ("9" * 5000, "an integer has more than 300 digits"),
        ("[" * 100_000, "nested more than"),
        ("[" * 500 + "]" * 500, "nested more than"),
        ("(" * 500 + ")" * 500, "nested more than"),
        ('{"a":' * 50_000, "nested more than"),
        ("-" * 50_000, "it is not JSON"),
        ("__import__('os')", "it is not JSON"),
        ("[x for x in 'ab']", None),
        ("0x" + "f" * 10_000, "it is not JSON"),
        ("'" * 100_001, "it is not JSON"),
        ("```" * 30_000, "it is not JSON"),
        ("```\n" * 30_000, "it is not JSON"),
        ("~" * 500_000, "it is not JSON"),
        (" " * 500_000 + "x", "it is not JSON"),
        ("[" + " " * 500_000 + "x", "it is not JSON"),
        ("''" * 250_000 + "'", "it is not JSON"),
        ("[" + "1_" * 100_000 + "]", None),
        ("".join("`" * n + "x\n" for n in range(1000, 3, -1)), "it is not JSON"),
    ],
)
def test_what_is_no_value_is_unreadable_and_says_why(text: str, reason: str | None) -> None:
    found = read(text)  # work that grows faster than the text would not end here
    if reason is not None:
        assert isinstance(found, Unreadable)
        assert reason in found.reason


@pytest.mark.slow
def test_a_long_answer_is_read_in_bounded_memory() -> None:
    text = "[" + ",".join(["'abc'"] * 50_000) + "]"
    tracemalloc.start()
    found = read(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(found, Reading)
    assert len(found.value) == 50_000
    assert peak < 40 * len(text)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.slow
@given(values)
@settings(deadline=None)
def test_a_python_literal_is_read_as_python_reads_it(value: Any) -> None:
    found = read(repr(value))
    assert isinstance(found, Reading)
    assert found.value == value
