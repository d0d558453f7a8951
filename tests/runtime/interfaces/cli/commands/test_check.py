"""``knotwork check``."""

from pathlib import Path

import pytest
from support.command import CAFES, call

BAD = '(a)=LLM("Hi {(b)}")\n(a)=LLM("x)\n'


def test_nothing_wrong(cafes: str) -> None:
    result = call("check", "cafes.lwt", "--input", "request.json")
    assert (result.code, result.err) == (0, "")
    assert result.out == "nothing to report in 1 file (3 steps)\n"


def test_errors_are_drawn_and_counted(folder: Path) -> None:
    (folder / "bad.lwt").write_text(BAD)
    result = call("check", "bad.lwt")
    assert result.code == 3
    assert "error[LWT002]" in result.out
    assert "--> bad.lwt:2:" in result.out
    assert "^" in result.out
    assert "errors in 1 file" in result.out or "1 error" in result.out
    assert "\x1b" not in result.out


def test_json_is_one_array_across_files(cafes: str, folder: Path) -> None:
    (folder / "bad.lwt").write_text(BAD)
    result = call("check", "cafes.lwt", "bad.lwt", "nope.lwt", "--format", "json")
    assert result.code == 3
    assert {found["file"] for found in result.json} == {"bad.lwt", "nope.lwt"}
    for found in result.json:
        assert found.keys() == {"code", "severity", "message", "file", "span", "hints", "edits"}
    assert call("check", "cafes.lwt", "--format", "json").json == []


def test_stdin_and_lenient() -> None:
    text = 'Here is the script:\n(final)=LLM("Say "yes".")\n'
    assert call("check", "-", stdin=text).code == 3
    result = call("check", "-", "--lenient", stdin=text)
    assert result.code == 0
    assert "<stdin>:1:1" in result.out


def test_paths_into_the_input_are_checked(cafes: str, folder: Path) -> None:
    (folder / "other.json").write_text('{"request_": 1}')
    result = call("check", "cafes.lwt", "--input", "other.json", "--format", "json")
    assert result.code == 3
    assert [found["code"] for found in result.json] == ["LWT023"]


def test_warnings_alone_are_no_failure(folder: Path) -> None:
    (folder / "x.lwt").write_text(CAFES + '(dead)=LLM("x")\n')
    result = call("check", "x.lwt")
    assert result.code == 0
    assert "1 warning in 1 file" in result.out


def test_colours_are_the_users_choice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bad.lwt").write_text(BAD)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;31merror[" in call("check", "bad.lwt").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in call("check", "bad.lwt").out


@pytest.mark.slow
def test_ten_thousand_steps_and_a_megabyte(folder: Path) -> None:
    steps = '(0)=LLM("a")\n' + "".join(f'({n})=LLM("see {{({n - 1})}}")\n' for n in range(1, 10_000))
    (folder / "long.lwt").write_text(steps)
    (folder / "wide.lwt").write_text(f'(final)=LLM("{"x" * 1_000_000}")\n')
    assert call("check", "long.lwt", "wide.lwt").code == 0


@pytest.mark.slow
def test_thousands_of_faults_are_cut_for_a_person_and_whole_for_a_program(folder: Path) -> None:
    text = '(a)=LLM("x")\n' + "".join(f'(s{n})=LLM("{{(zz{n})}}", temprature=1)\n' for n in range(1_000))
    (folder / "many.lwt").write_text(text)
    result = call("check", "many.lwt")
    assert result.out.count("error[") == 50
    assert "and 1,951 more in many.lwt; knotwork check --format json lists all" in result.out
    assert "2,000 errors" in result.out
    found = call("check", "many.lwt", "--format", "json").json
    assert len(found) == 2_001
    assert all(one["edits"] for one in found if one["code"] == "LWT019")


@pytest.mark.parametrize("typed", ["check", "fmt --check", "plan", "run --dry-run"])
def test_the_most_steps_of_a_script_are_an_option(folder: Path, typed: str) -> None:
    (folder / "s.lwt").write_text('(a)=LLM("x")\n(b)=LLM("{(a)}")\n(final)=LLM("{(b)}")\n')
    refused = call(*typed.split(), "s.lwt", "--max-steps", "2")
    assert refused.code == 3 and "LWT011" in refused.out + refused.err
    assert call(*typed.split(), "s.lwt", "--max-steps", "3").code == 0


@pytest.mark.parametrize(
    ("file", "option", "message"),
    [
        ("x.gasl", "--lenient", "--lenient has no effect: no file is a prompt script"),
        ("x.gasl", "--max-steps=5", "--max-steps has no effect: no file is a prompt script"),
        ("x.gasl", "--input=input.json", "--input has no effect: no file is a prompt script or a seed"),
        ("x.lwt", "--graph=nx:karate_club", "--graph and --state have no effect: no file is a GASL program or a plan"),
    ],
)
def test_an_option_without_effect_is_reported(folder: Path, file: str, option: str, message: str) -> None:
    (folder / "x.gasl").write_text("FIND nodes AS x\n")
    (folder / "x.lwt").write_text('(final)=LLM("x")\n')
    (folder / "input.json").write_text("{}")
    result = call("check", file, option)
    assert result.code == 0
    assert f"warning: {message}" in result.err
    assert " no effect" not in call("check", "x.gasl", "x.lwt", option).err
