"""A command is whole when it has all the places that docs/internals.md names. This holds each of them for all commands."""

import re
from pathlib import Path
from typing import get_args

import pytest
from knotwork import gasl, grammar, lwt
from knotwork.lang.printer.gasl_printer import format_command
from knotwork.lang.source import Source
from knotwork.lang.trees import gasl as tree
from knotwork.lang.trees import walk
from knotwork.runtime.api.file_kinds import kind_of
from knotwork.runtime.gasl.commands import RUNNERS
from knotwork.runtime.report.steps import in_words

ROOT = Path(__file__).parents[3]
COMMANDS = get_args(tree.Command)
CONTROL = {tree.On, tree.Branch, tree.Explain, tree.SetCommand, tree.Cancel, tree.Try}
"""Commands that the executor itself runs."""


def commands_in(text: str) -> list[tree.Command]:
    return [node for item in gasl.parse(text).items for node in walk(item) if isinstance(node, COMMANDS)]


@pytest.fixture(scope="module")
def written() -> dict[type, tree.Command]:
    """A command of each class, out of the identity cases."""
    text = (ROOT / "tests/golden/gasl/identity.gasl").read_text(encoding="utf-8")
    text += "TRY\n  RESET k\nEND\n"  # a block is no line
    return {type(command): command for command in commands_in(text)}


@pytest.fixture(scope="module")
def documented() -> set[type]:
    page = (ROOT / "docs/reference/gasl.md").read_text(encoding="utf-8")
    return {
        type(command)
        for block in re.findall(r"^```gasl\n(.*?)^```$", page, re.M | re.S)
        for command in commands_in(block)
    }


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_a_command_has_every_place(command: type, written: dict[type, tree.Command], documented: set[type]) -> None:
    assert command in written, "tests/golden/gasl/identity.gasl has no line with it"
    text = format_command(written[command])
    assert text.split()[0].upper() == text.split()[0]
    assert f'"{text.split()[0]}"i' in grammar.text("gasl")
    assert in_words(written[command])
    assert (command in RUNNERS) != (command in CONTROL)
    if command is not tree.Cancel:  # it would end the example
        assert command in documented, "docs/reference/gasl.md has no example that runs"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_a_command_is_known_wherever_words_are_listed(command: type, written: dict[type, tree.Command]) -> None:
    text = format_command(written[command])
    word = text.split()[0]
    assert kind_of(Source(text, "<stdin>")) == "program", "runtime/api/file_kinds.py does not know it"
    script = lwt.check(f"(final)=GASL('''{text}''')")
    unknown = [each for each in script if each.code == "LWT042" and "there is no command" in each.message]
    assert not unknown, "a prompt script does not know it"
    coloured = (ROOT / "docs/editors/vscode/syntaxes/gasl.tmLanguage.json").read_text(encoding="utf-8")
    assert word in coloured, "python docs/editors/generate.py writes it"
