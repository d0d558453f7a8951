"""What is parsed and printed again is the text itself: one line a case."""

from pathlib import Path

import pytest
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.printer.lwt_printer import format_lwt

LINES = (Path(__file__).parent.parent / "golden/lwt/identity.lwt").read_text(encoding="utf-8").splitlines()


def test_there_are_enough_cases() -> None:
    assert sum(not line.startswith("#") for line in LINES) >= 150


@pytest.mark.parametrize("line", LINES)
def test_line_prints_as_it_stands(line: str) -> None:
    script = parse_lwt(line)
    assert [d for d in script.diagnostics] == []
    assert format_lwt(script) == line + "\n"


def test_all_lines_together_are_one_script() -> None:
    text = "\n".join(LINES) + "\n"
    assert format_lwt(parse_lwt(text)) == text
