"""What is printed is said of as what was written: no warning and no error is gone because a file was formatted."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from knotwork.lang.diagnostic import has_errors
from knotwork.lang.linter.gasl import check as check_program
from knotwork.lang.linter.lwt import check as check_script
from knotwork.lang.parse.gasl import parse_gasl
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.printer.gasl_printer import format_gasl
from knotwork.lang.printer.lwt_printer import format_lwt
from support.corruptions import corrupted
from support.folders import GOLDEN

SCRIPTS = sorted((GOLDEN / "lwt").glob("*/*.lwt"))
PROGRAMS = sorted((GOLDEN / "gasl").glob("**/*.gasl"))


def of_script(text: str) -> tuple[Counter[str], str | None]:
    """Return the codes of what is said of a script, and its formatted text; None where it can't be read."""
    script = parse_lwt(text)
    said = Counter(found.code for found in check_script(script))
    return said, None if has_errors(script.diagnostics) else format_lwt(script)


def of_program(text: str) -> tuple[Counter[str], str | None]:
    """Return the same of a program."""
    program = parse_gasl(text)
    said = Counter(found.code for found in check_program(program))
    return said, None if has_errors(program.diagnostics) else format_gasl(program)


def assert_kept(text: str, look) -> None:
    said, formatted = look(text)
    if formatted is not None:
        assert look(formatted) == (said, formatted), text


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_scripts(path: Path) -> None:
    assert_kept(path.read_bytes().decode("utf-8"), of_script)


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_programs(path: Path) -> None:
    text = path.read_bytes().decode("utf-8")
    assert_kept(text, of_program)
    for line in text.splitlines():
        assert_kept(line, of_program)


@pytest.mark.slow
def test_scripts_with_slips() -> None:
    readable = 0
    for _, text, _ in corrupted(1, seed=1):
        assert_kept(text, of_script)
        readable += of_script(text)[1] is not None
    assert readable >= 15


@pytest.mark.slow
def test_characters_left_out_of_scripts_and_put_in() -> None:
    """Braces, brackets, commas and quotes are what a reference and an argument are made of."""
    chance, readable = Random("format"), 0
    lines = (GOLDEN / "lwt/identity.lwt").read_text("utf-8").splitlines()
    for line in [line for line in lines if line.startswith("(") and "{(" in line]:
        for _ in range(3):
            at = chance.randrange(line.index("=") + 1, len(line))
            text = (
                line[:at]
                + chance.choice(["", "{", "{(", ")}", "[", ",", "\\", "5, "])
                + line[at + chance.randint(0, 1) :]
            )
            assert_kept(text, of_script)
            readable += of_script(text)[1] is not None
    assert readable >= 40


@pytest.mark.parametrize(
    "call",
    [
        'LLM("{(a)}", temperature=0,5)',
        'LLM("see {(a}, {(a))}")',
        'LLM("{(the name of the dish?)}")',
        'LLM("{(a)}[the name]")',
        'EACH({(a)}, LLM(temperature=0,5, "{(item)}"))',
    ],
)
def test_what_is_told_stays_as_it_is_written(call: str) -> None:
    text = f'(a)=LLM("x")\n(final)={call}\n'
    assert of_script(text)[1] == text
    assert set(of_script(text)[0]) - {"LWT017"}


def test_what_nothing_is_said_of_is_printed_canonically() -> None:
    assert of_script("(a)=LLM( 'x',temperature = 0 )")[1] == '(a)=LLM("x", temperature=0)\n'
    assert of_script("(final)=LLM( '{{(x)} [1]' )")[1] == '(final)=LLM("{{(x)} [1]")\n'


def test_the_lenient_reading_mends_and_prints_what_was_meant() -> None:
    text = '(a)=LLM("x")\n(final)=LLM("see {(a}")\n'
    assert format_lwt(parse_lwt(text, "lenient")) == '(a)=LLM("x")\n(final)=LLM("see {(a)}")\n'
