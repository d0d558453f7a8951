"""What is parsed and printed again is the text itself: one line a case."""

from pathlib import Path

import pytest
from knotwork.lang.parse.gasl import parse_command, parse_gasl
from knotwork.lang.printer.gasl_printer import format_command, format_gasl

LINES = (Path(__file__).parents[2] / "golden/gasl/identity.gasl").read_text(encoding="utf-8").splitlines()
COMMANDS = [line for line in LINES if not line.startswith("#")]


def test_there_are_enough_cases() -> None:
    assert len(COMMANDS) >= 150


@pytest.mark.parametrize("line", LINES)
def test_line_prints_as_it_stands(line: str) -> None:
    program = parse_gasl(line)
    assert program.diagnostics == ()
    assert format_gasl(program) == line + "\n"


@pytest.mark.parametrize("line", COMMANDS)
def test_case_and_blanks_mean_nothing(line: str) -> None:
    program = parse_command(line)
    assert program.diagnostics == ()
    assert format_command(program.statements[0].command) == line
    spread = f"  {line}\t "
    assert parse_command(spread).statements == program.statements


def test_all_lines_together_are_one_program() -> None:
    text = "\n".join(LINES) + "\n"
    assert format_gasl(parse_gasl(text)) == text


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_read_behind_a_faulty_line_is_the_same(line: str) -> None:
    whole = parse_gasl(line)
    apart = parse_gasl(f"FIND nothing\n{line}")
    assert len(apart.diagnostics) >= 1
    assert apart.statements == whole.statements
    assert [s.span.shift(-len("FIND nothing\n")) for s in apart.statements] == [s.span for s in whole.statements]
