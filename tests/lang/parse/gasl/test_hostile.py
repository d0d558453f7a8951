"""Text that was made to hurt: every one is read, or refused with a diagnostic, in little time."""

import time

import pytest
from knotwork.lang.diagnostic import as_json, picture
from knotwork.lang.parse.gasl import parse_condition, parse_gasl
from support.cpu_time import pace

pytestmark = pytest.mark.slow

MEGABYTE = 1_000_000


def hostile(size: int) -> dict[str, str]:
    """Return texts of about ``size`` characters each, by name."""
    few = size * 20_000 // MEGABYTE
    return {
        "one long string": 'CANCEL PLAN "' + "x" * size + '"',
        "one long name": "FIND nodes AS " + "x" * size,
        "one long word": "x" * size,
        "quotes": '"' * (size // 10),
        "apostrophes": "FIND nodes WHERE a = '" + "''x" * (size // 20),
        "backslashes": 'CANCEL PLAN "' + "\\" * size + '"',
        "backticks": "`" * (size // 10),
        "unclosed": 'CANCEL PLAN "' + "x" * size,
        "unclosed many": 'FIND nodes WHERE a = "x AS y\n' * (size * 5000 // MEGABYTE),
        "newlines": "\n" * size,
        "spaces": "FIND nodes" + " " * size + "AS",
        "prose": "some prose \n" * (size * 50_000 // MEGABYTE),
        "fences": "```\n" * few,
        "bullets": "- - - - " * few,
        "reasons": "#: a\n" * few,
        "comments": "# a\n" * few + "x",
        "parentheses": "ASSERT " + "(" * few + "LEN ${a} > 0" + ")" * few,
        "open parentheses": "(" * size,
        "open brackets in lines": "FIND nodes WHERE (a = 1 AS x\n" * (size * 5000 // MEGABYTE),
        "nots": "ASSERT " + "NOT " * few + "LEN ${a} > 0",
        "ands": "ASSERT " + "LEN ${a} > 0 AND " * few + "LEN ${a} > 0",
        "ors that end early": "ASSERT " + "LEN ${a} > 0 OR " * few,
        "explains": "EXPLAIN " * few + "FIND nodes AS a",
        "branches": "BRANCH IF LEN ${a} > 0 THEN " * (few // 4) + "RESET b",
        "dangling elses": "BRANCH IF LEN ${a} > 0 THEN RESET a ELSE " * (few // 4) + "RESET b",
        "blocks": "TRY\n" * few + "END\n" * few,
        "open blocks": "TRY\n" * few,
        "ends": "END\n" * few,
        "long list": "FIND nodes WHERE a IN (" + '"x", ' * few + '"y") AS b',
        "long broken list": "FIND nodes WHERE a IN (" + '"x", ' * few + '"y" AS b',
        "long path": "ANALYZE " + "a." * few + 'a USING "b" AS c',
        "long variable": "ASSERT ${" + "a." * few + "a} > 0",
        "huge number": "FIND nodes LIMIT " + "9" * size + " AS a",
        "huge exponent": "FIND nodes WHERE a = 1e" + "9" * size + " AS a",
        "huge index": "ASSERT ${a[" + "9" * size + "]} > 0",
        "commas": "FIND nodes ORDER BY " + "a, " * few + "AS b",
        "options": "FIND nodes " + "LIMIT 1 " * few + "AS b",
        "many commands": "FIND nodes WHERE a = 1 AS b\n" * few,
        "many faults": "FIND nodes WHERE a = b AS c\n" * few,
        "many joins": "FIND nodes\nWHERE a = 1\n" * few,
        "continued": "FIND nodes " + "\nAND a = 1" * few,
        "dollars": "$" * few,
        "braces": "ASSERT " + "{" * few,
        "nulls": "\0" * few,
        "surrogates": 'CANCEL PLAN "\ud800\udfff \udc00"',
        "escaped surrogate": 'CANCEL PLAN "\\ud800"',
        "emoji": 'CANCEL PLAN "' + "\U0001f642" * few + '"',
        "bidi": 'CANCEL PLAN "\u202e\u2066\u2069" \u202e',
        "carriage returns": "FIND nodes AS a\rFIND edges AS b\r",
        "form feeds": "\fFIND nodes AS a\v\u2028FIND edges AS b",
    }


@pytest.mark.parametrize("size", [MEGABYTE // 10, pytest.param(MEGABYTE, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", hostile(10_000))
def test_hostile_text_is_read_or_refused_quickly(name: str, size: int) -> None:
    text = hostile(size)[name]
    begun = time.process_time()
    program = parse_gasl(text)
    for diagnostic in program.diagnostics[:50]:
        picture(diagnostic, program.source).encode("utf-8")
        as_json(diagnostic, program.source)
    # A bound against blow-ups, not a benchmark.
    assert time.process_time() - begun < 10 * pace()
    blank = name in ("newlines",)
    assert blank or program.items or program.diagnostics


@pytest.mark.parametrize("name", ["parentheses", "nots", "ors that end early", "dollars"])
def test_a_hostile_condition_is_refused(name: str) -> None:
    condition, diagnostics = parse_condition(hostile(MEGABYTE)[name].removeprefix("ASSERT "))
    assert condition is None
    assert diagnostics


def test_a_program_over_the_limit_is_refused() -> None:
    program = parse_gasl("FIND nodes AS a\n" * 200_000)
    assert [d.code for d in program.diagnostics] == ["GASL023"]
    assert program.items == ()


@pytest.mark.parametrize("nested", ["NOT " * 20_000 + "LEN ${a} > 0", "(" * 20_000 + "LEN ${a} > 0" + ")" * 20_000])
def test_deep_nesting_is_a_fault_of_its_own(nested: str) -> None:
    assert [d.code for d in parse_gasl(f"ASSERT {nested}").diagnostics] == ["GASL023"]
