"""Expressions against Python's own eval: where both give a value it is the same, but for what the reference page lists."""

import json
import math
import re
import statistics
from typing import Any

import pytest
from knotwork import expr

VALUES: dict[str, Any] = {
    "xs": [3, 1, 2], "e": [], "n": None, "s": "Ab c", "d": {"a": 1, "b": None}, "i": 7, "z": 0, "m": -7, "g": 2.5, "h": -0.0,
    "words": ["b", "a", "b"], "nul": [None, 1], "nest": [[1], [2, 1]],
}  # fmt: skip
ATOMS = [
    *VALUES,
    "0",
    "1",
    "-1",
    "0.5",
    "1e3",
    "'a'",
    "'1'",
    "''",
    "true",
    "false",
    "null",
    "[]",
    "{}",
    "[1, 2]",
    "(1, 2)",
    "()",
    "{'a': 1}",
    "1000",
]
SIGNS = ("+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or")
ONE = (
    "abs({})", "bool({})", "ceil({})", "float({})", "floor({})", "int({})", "len({})", "ln({})", "max({})", "min({})", "round({})",
    "round({}, 1)",
    "round({}, 401)", "sorted({})", "sqrt({})", "str({})", "sum({})", "median({})", "mode({})", "stdev({})", "variance({})", "not {}",
    "-({})",
    "1 if {} else 2", "[{0}].count({0})", "{}[::-1]", "{}[1:]", "{}[0]", "max({}, 1)", "[x for x in {}]", "{}.count('a')", "{}.upper()",
    "1 < {} < 3",
)  # fmt: skip
PYTHON: dict[str, Any] = {
    **VALUES, "true": True, "false": False, "null": None, "floor": math.floor, "ceil": math.ceil, "ln": math.log, "sqrt": math.sqrt,
    "median": statistics.median, "mode": statistics.mode, "stdev": statistics.stdev, "variance": statistics.variance,
}  # fmt: skip


def _both(text: str) -> tuple[Any, Any] | None:
    try:
        return expr.evaluate(text, VALUES), eval(text, {}, PYTHON)
    except Exception:  # one of them has no value: listed by hand
        return None


def _written(value: Any) -> str:
    return json.dumps(value, default=str)


def _is_listed(text: str) -> bool:
    """Say whether the page lists it: a boolean that is not a number, a tuple that is a list, a comparison with null."""
    nulls = re.search(r"\b(?:n|null|nul)\b", text) and re.search(r"==|!=|\bin\b", text)
    return "true" in text or "false" in text or "(" in text or bool(nulls)


@pytest.mark.slow
@pytest.mark.parametrize("sign", SIGNS)
def test_operators(sign: str) -> None:
    texts = [f"{left} {sign} {right}" for left in ATOMS for right in ATOMS]
    found = {
        text: both for text in texts if (both := _both(text)) is not None and _written(both[0]) != _written(both[1])
    }
    assert [text for text in found if not _is_listed(text)] == []
    assert len([text for text in texts if _both(text) is not None]) > 20


@pytest.mark.slow
def test_functions_and_methods() -> None:
    texts = [form.format(atom) for form in ONE for atom in ATOMS]
    found = [text for text in texts if (both := _both(text)) is not None and _written(both[0]) != _written(both[1])]
    assert found == ["str(n)", "str(true)", "str(false)", "str(null)"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true == 1", False), ("true in [1, 2]", False), ("[1].count(true)", 0), ("null in [null]", False), ("[null].count(null)", 1),
        ("null not in [1]", False), ("(1, 2) == [1, 2]", True), ("str(true)", "true"), ("str(null)", "null"), ("round(2.5, 401)", 2.5),
        ("round(15, -500)", 0), ("sum([0.1, 0.2, 0.3])", 0.6), ("mode('ab')", "a"), ("max([1.0, 1])", 1),
    ],
)  # fmt: skip
def test_what_the_page_lists(text: str, value: Any) -> None:
    found = expr.evaluate(text, {})
    assert found == value and type(found) is type(value)
