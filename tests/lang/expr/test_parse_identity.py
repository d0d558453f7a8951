"""What is parsed and printed again is the text itself: one line a case."""

from pathlib import Path

import pytest
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.printer.expr_printer import format_expr

LINES = (Path(__file__).parents[2] / "golden/expr/identity.expr").read_text(encoding="utf-8").splitlines()[1:]


def test_there_are_enough_cases() -> None:
    assert len(LINES) >= 150
    assert len(set(LINES)) == len(LINES)


@pytest.mark.parametrize("line", LINES)
def test_line_prints_as_it_stands(line: str) -> None:
    read = parse_expr(line)
    assert read.diagnostics == ()
    assert read.expr is not None
    assert format_expr(read.expr) == line


@pytest.mark.parametrize("line", LINES)
def test_blanks_and_line_breaks_around_mean_nothing(line: str) -> None:
    read = parse_expr(f"\r\n \t{line}\n")
    assert read.expr == parse_expr(line).expr


@pytest.mark.parametrize("line", LINES)
def test_parentheses_around_mean_nothing(line: str) -> None:
    inner, outer = parse_expr(line).expr, parse_expr(f"(({line}))").expr
    assert inner == outer
    assert inner is not None and outer is not None
    assert (outer.span.start, outer.span.end) == (0, len(line) + 4)
    assert (inner.span.start, inner.span.end) == (0, len(line))


@pytest.mark.parametrize("line", LINES)
def test_behind_a_fault_the_same_is_understood(line: str) -> None:
    read = parse_expr(f"= {line}")
    assert [diagnostic.code for diagnostic in read.diagnostics] == ["EXPR025"]
    [edit] = read.diagnostics[0].edits
    assert (edit.span.start, edit.span.end, edit.text) == (0, 2, "")
