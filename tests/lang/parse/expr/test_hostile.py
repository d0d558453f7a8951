"""Text that was made to hurt: every one is read, or refused with a diagnostic, in little time."""

import time

import pytest
from knotwork.lang.diagnostic import as_json, picture
from knotwork.lang.parse.expr import parse_expr

pytestmark = pytest.mark.slow

SIZE = 9_990
TEXTS = {
    "open parentheses": "(" * SIZE,
    "open lists": "[" * SIZE,
    "open braces": "{" * SIZE,
    "nots": "not " * (SIZE // 4) + "a",
    "minus": "-" * SIZE + "a",
    "bangs": "!" * SIZE + "a",
    "plus": "+" * SIZE + "a",
    "chain": "a+" * (SIZE // 2) + "a",
    "chain without end": "a+" * (SIZE // 2),
    "pow": "a**" * (SIZE // 3) + "a",
    "dots": "a" + ".b" * (SIZE // 2),
    "indices": "a" + "[0]" * (SIZE // 3),
    "calls": "a" + "()" * (SIZE // 2),
    "methods": "a" + ".b()" * (SIZE // 4),
    "ternary": "a?b:" * (SIZE // 4) + "c",
    "ternaries without end": "a?" * (SIZE // 2) + "c",
    "ifs in ifs": "if a then " * (SIZE // 10) + "b",
    "else ifs": "if a then b else " * (SIZE // 17) + "c",
    "case": "CASE WHEN a THEN " * (SIZE // 17) + "b",
    "choices": "a if b else " * (SIZE // 12) + "c",
    "choices without else": "a if b;" * (SIZE // 7),
    "choices in a list": "[a if b, " * (SIZE // 9),
    "quotes": '"' * SIZE,
    "apostrophes": "'" * SIZE,
    "curly": "“" * SIZE,
    "backslashes": '"' + "\\" * SIZE,
    "escapes": '"' + "\\q" * (SIZE // 2 - 2) + '"',
    "line breaks": '"' + "\n" * (SIZE - 2) + '"',
    "unclosed": '"' + "x" * (SIZE - 2),
    "open calls": "f(" * (SIZE // 2),
    "digits": "9" * SIZE,
    "points": "." * SIZE,
    "thousands": "1" + ",000" * (SIZE // 4),
    "exponent": "1e" + "9" * (SIZE - 2),
    "between": "a between b and " * (SIZE // 16) + "c",
    "between without end": "a between " * (SIZE // 10),
    "contains": "a contains " * (SIZE // 11) + "b",
    "is": "a is " * (SIZE // 5),
    "not in": "a not " * (SIZE // 6),
    "counts": "count of " * (SIZE // 9) + "a",
    "counts where": "count of a where " * (SIZE // 17) + "b",
    "open ifs": "IF(" * (SIZE // 3),
    "ifs": "IF(a,b," * (SIZE // 7),
    "lambda": "lambda " * (SIZE // 7),
    "prose": "word " * (SIZE // 5),
    "semi": ";" * SIZE,
    "commas": "," * SIZE,
    "colons": ":" * SIZE,
    "stars": "*" * SIZE,
    "backticks": "`" * SIZE,
    "fences": "```" * (SIZE // 3),
    "nulls": "\x00" * SIZE,
    "blanks": "\xa0" * SIZE,
    "blanks and signs": "a\xa0+" * (SIZE // 3),
    "surrogates": "\ud800" * SIZE,
    "comment": "#" * SIZE,
    "comments in comments": "/*" * (SIZE // 2),
    "formatted": 'f"{a}"' * (SIZE // 6),
    "formatted parts": 'f"' + "{a}" * (SIZE // 3 - 2) + '"',
    "formatted without end": 'f"' + "{f" * (SIZE // 2 - 2) + '"',
    "walrus": "(a:=" * (SIZE // 4),
    "open comprehensions": "[x for x in " * (SIZE // 12),
    "fors": "[x " + "for x in y " * (SIZE // 11) + "]",
    "open generators": "f(x for x in " * (SIZE // 13),
    "generators": "f(" + "(a for b in c)," * (SIZE // 15),
    "open objects": "{a:" * (SIZE // 3),
    "open sets": "{1," * (SIZE // 3),
    "sets side by side": "{1}+" * (SIZE // 4),
    "dollars": "$a+" * (SIZE // 3),
    "closing": ")" * SIZE,
    "mixed": "([{" * (SIZE // 3) + "}])" * 5,
    "wrong brackets": "(]" * (SIZE // 2),
    "20,000 parentheses": "(" * 20000,
    "20,000 nots": "not " * 20000,
    "20,000 minus": "-" * 20000 + "a",
    "null": "null." * (SIZE // 5),
    "open ands": "AND(a," * (SIZE // 6),
    "coalesce": "coalesce(a," * (SIZE // 11),
    "open wheres": "f(a where " * (SIZE // 10),
    "spaces": "a" + " " * (SIZE - 2) + "b",
    "ifs with brackets": "if (" * (SIZE // 4),
    "when": "when a " * (SIZE // 7),
    "a name": "x" * SIZE,
    "shares": "5%" * (SIZE // 2),
    "strings side by side": '"a"' * (SIZE // 3),
    "touching": "2x" * (SIZE // 2),
    "ands": "a AND " * (SIZE // 6) + "b",
    "dunder": "__a__." * (SIZE // 6),
    "three quotes": '"""' * (SIZE // 3),
    "raw strings": 'r"\\"' * (SIZE // 5),
    "as deep as allowed": "(" * 99 + "a AND b" + ")" * 99,
    "else": "else " * (SIZE // 5),
    "if": "if " * (SIZE // 3),
    "misplaced nots": "- not " * (SIZE // 6) + "a",
    "phrases": "a greater than or equal to " * (SIZE // 27) + "b",
    "long coalesce": "coalesce(" + "a," * (SIZE // 2 - 10) + "b)",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if at % 4 else ()) for at, name in enumerate(TEXTS)]
)
def test_hostile_text(name: str) -> None:
    text = TEXTS[name]
    begun = time.process_time()
    read = parse_expr(text)
    taken = time.process_time() - begun
    assert (read.expr is None) == bool(read.diagnostics)
    assert len(read.diagnostics) <= 50
    for diagnostic in read.diagnostics[:5]:
        assert picture(diagnostic, read.source)
        assert as_json(diagnostic, read.source)["span"]
    assert taken < 5  # a bound against blow-ups, not a benchmark


def test_20_000_brackets_are_refused_for_what_they_are() -> None:
    for text in ("(" * 4_900 + "a" + ")" * 4_900, "[" * 9_000, "not " * 2_400 + "a", "-" * 9_000 + "a"):
        assert [found.code for found in parse_expr(text).diagnostics] == ["EXPR030"]
