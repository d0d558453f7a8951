"""What is parsed and printed again is the text itself: one line a case."""

import pytest
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.parse.gasl import parse_command, parse_gasl
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.printer.expr_printer import format_expr
from knotwork.lang.printer.gasl_printer import format_command, format_gasl
from knotwork.lang.printer.lwt_printer import format_lwt
from support.folders import GOLDEN

LWT, GASL, EXPR = (
    (GOLDEN / f"{language}/identity.{language}").read_text(encoding="utf-8").splitlines()
    for language in ("lwt", "gasl", "expr")
)
EXPR = EXPR[1:]
COMMANDS = [line for line in GASL if not line.startswith("#")]
CODE = {"lwt": (parse_lwt, format_lwt), "gasl": (parse_gasl, format_gasl)}


def test_there_are_enough_cases() -> None:
    assert sum(not line.startswith("#") for line in LWT) >= 150
    assert len(COMMANDS) >= 150
    assert len(EXPR) == len(set(EXPR)) >= 150


@pytest.mark.parametrize(
    ("language", "text"),
    [
        *(("lwt", line) for line in (*LWT, "\n".join(LWT))),
        *(("gasl", line) for line in (*GASL, "\n".join(GASL))),
    ],
)
def test_a_line_is_printed_unchanged(language: str, text: str) -> None:
    parse, form = CODE[language]
    code = parse(text)
    assert code.diagnostics == ()
    assert form(code) == text + "\n"


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_is_the_same_alone_and_after_a_faulty_line(line: str) -> None:
    program = parse_command(line)
    assert program.diagnostics == ()
    assert format_command(program.statements[0].command) == line
    assert parse_command(f"  {line}\t ").statements == program.statements
    whole = parse_gasl(line)
    apart = parse_gasl(f"FIND nothing\n{line}")
    assert len(apart.diagnostics) >= 1
    assert apart.statements == whole.statements
    assert [s.span.shift(-len("FIND nothing\n")) for s in apart.statements] == [s.span for s in whole.statements]


@pytest.mark.parametrize("line", EXPR)
def test_an_expression_is_printed_unchanged(line: str) -> None:
    read = parse_expr(line)
    assert read.diagnostics == ()
    assert read.expr is not None
    assert format_expr(read.expr) == line


@pytest.mark.parametrize("line", EXPR)
def test_an_expression_is_the_same_in_blanks_parentheses_and_after_a_fault(line: str) -> None:
    inner, outer = parse_expr(line).expr, parse_expr(f"(({line}))").expr
    assert inner == outer == parse_expr(f"\r\n \t{line}\n").expr
    assert inner is not None and outer is not None
    assert (outer.span.start, outer.span.end) == (0, len(line) + 4)
    assert (inner.span.start, inner.span.end) == (0, len(line))
    read = parse_expr(f"= {line}")
    assert [diagnostic.code for diagnostic in read.diagnostics] == ["EXPR025"]
    [edit] = read.diagnostics[0].edits
    assert (edit.span.start, edit.span.end, edit.text) == (0, 2, "")
