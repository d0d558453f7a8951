"""A command is complete when it has all the places that docs/internals.md names. A test fails for each place that is left out."""

import json
import re
from typing import get_args

import pytest
from attrs import evolve
from knotwork import gasl, grammar, lwt
from knotwork.lang.catalogue.commands import BY_NODE, SPECS, CommandSpec
from knotwork.lang.catalogue.commands import COMMANDS as KEYWORDS
from knotwork.lang.diagnostic import Diagnostic
from knotwork.lang.linter.gasl.context import Context
from knotwork.lang.printer.gasl_printer import format_command
from knotwork.lang.source import Source, Span
from knotwork.lang.trees import gasl as tree
from knotwork.lang.trees import walk
from knotwork.runtime.api.file_kinds import kind_of
from knotwork.runtime.gasl.commands import RUNNERS
from knotwork.runtime.interfaces.mcp.resources import card
from knotwork.runtime.report.steps import describe_command
from support.folders import DOCS, GOLDEN

COMMANDS = get_args(tree.Command)
CONTROL = {tree.On, tree.Branch, tree.Explain, tree.SetCommand, tree.Cancel, tree.Try}
"""Commands that the executor itself runs."""


def commands_in(text: str) -> list[tree.Command]:
    return [node for item in gasl.parse(text).items for node in walk(item) if isinstance(node, COMMANDS)]


@pytest.fixture(scope="module")
def written() -> dict[type, tree.Command]:
    """A command of each class, out of the identity cases."""
    text = (GOLDEN / "gasl/identity.gasl").read_text(encoding="utf-8")
    text += "TRY\n  RESET k\nEND\n"  # a block is no line
    return {type(command): command for command in commands_in(text)}


@pytest.fixture(scope="module")
def documented() -> set[type]:
    page = (DOCS / "reference/gasl.md").read_text(encoding="utf-8")
    return {
        type(command)
        for block in re.findall(r"^```gasl\n(.*?)^```$", page, re.M | re.S)
        for command in commands_in(block)
    }


def test_every_command_of_the_grammar_is_in_the_tables() -> None:
    """The words of the grammar's rule for commands, and the classes, are those of the catalogue."""
    (alternatives,) = re.findall(r"^\?closed: (.*?)\n\n", grammar.text("gasl"), re.M | re.S)
    rules = [rule for rule in re.findall(r"^(?:\s*\| )?([a-z_]+)$", alternatives, re.M)]
    assert len(rules) > 20
    heads = {re.search(rf"^{rule}: ([A-Z_]+)", grammar.text("gasl"), re.M)[1] for rule in rules}  # type: ignore[index]
    assert not heads - {"SET_OPERATION"} - {*KEYWORDS}
    assert {word.strip("[]") for spec in SPECS for word in spec.form.split()[0].split("|")} <= {*KEYWORDS}
    assert {*COMMANDS} == {*BY_NODE, tree.Try}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_a_command_has_every_place(command: type, written: dict[type, tree.Command], documented: set[type]) -> None:
    assert command in written, "tests/golden/gasl/identity.gasl has no line with it"
    text = format_command(written[command])
    assert text.split()[0].upper() == text.split()[0]
    assert f'"{text.split()[0]}"i' in grammar.text("gasl")
    assert describe_command(written[command])
    assert (command in RUNNERS) != (command in CONTROL)
    if command is not tree.Cancel:  # it would end the example
        assert command in documented, "docs/reference/gasl.md has no example that runs"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_a_command_is_known_wherever_words_are_listed(command: type, written: dict[type, tree.Command]) -> None:
    text = format_command(written[command])
    word = text.split()[0]
    assert kind_of(Source(text, "<stdin>")) == "program", "lang/catalogue/commands.py does not have it"
    assert not [each for each in checked(text) if "unknown command" in each.message], "a prompt script does not know it"
    coloured = json.loads((DOCS / "editors/vscode/syntaxes/gasl.tmLanguage.json").read_text(encoding="utf-8"))
    (heads,) = [rule["match"] for rule in coloured["patterns"] if rule.get("name") == "keyword.control.gasl"]
    assert re.search(rf"\b{word}\b", heads), "python docs/editors/generate.py writes it"
    assert re.search(rf"\b{word}\b", card("plan")), "a model that writes plans is not told that it exists"


def test_an_unknown_command_is_reported_with_all_commands() -> None:
    program = gasl.parse("DANCE nodes AS x")
    (found,) = gasl.check(program)
    assert (found.code, found.message, found.span) == ("GASL001", "unknown command DANCE", Span(0, 5))
    assert found.hints == (f"the commands are {', '.join(KEYWORDS)}",)
    assert not found.edits and not program.items


FIRST = {node: field for node in COMMANDS for field in ("left", "source") if hasattr(node, field)}
"""The attribute of each class that holds its first variable."""


def of_variable(command: tree.Command, name: str) -> str:
    """Return the command with ``name`` as its first variable."""
    return format_command(evolve(command, **{FIRST[type(command)]: tree.Name(name)}))


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.node in FIRST], ids=lambda spec: spec.node.__name__)
def test_a_script_and_the_linter_know_what_a_command_takes(
    spec: CommandSpec, written: dict[type, tree.Command]
) -> None:
    command = written[spec.node]
    if spec.node is not tree.On:
        program = of_variable(command, "it").replace(" it", " {(a)}", 1)
        assert "(GASL027)" not in str(checked(program)), (
            "its form has no `WORD name`, so scripts can't insert a reference"
        )
    if spec.node not in {tree.Update, tree.Require, tree.On}:  # these take any value
        text = f"FIND nodes AS found\nCOUNT found AS it\n{of_variable(command, 'it')}"
        assert "GASL059" in {each.code for each in gasl.check(gasl.parse(text))}, "its takes= is missing"


@pytest.mark.parametrize("spec", [s for s in SPECS if hasattr(s.node, "into")], ids=lambda spec: spec.node.__name__)
def test_the_linter_knows_what_a_command_gives(spec: CommandSpec, written: dict[type, tree.Command]) -> None:
    names = ("left", "right", "source", "start", "end")
    command = written[spec.node]
    bound = {field: tree.Name("it") for field in names if isinstance(getattr(command, field, None), tree.Name)}
    program = gasl.parse(f"FIND nodes AS it\n{format_command(evolve(command, **bound))}")
    assert Context(program).flow.bindings[-1].kind != "unknown", "its gives= is missing"


def checked(program: str) -> list[Diagnostic]:
    script = f"(a)=CONST([1])\n(final)=GASL('''{program}''')"
    return [each for each in lwt.check(script) if each.code == "LWT042"]
