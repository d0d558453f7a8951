"""Files that can't be read are diagnostics, in every command that reads them."""

import os
from pathlib import Path

import pytest
from support.command import call


def _one(result: object) -> dict[str, object]:
    (diagnostic,) = result.json  # type: ignore[attr-defined]
    assert isinstance(diagnostic, dict)
    return diagnostic


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (b"\x7fELF\x02\x01\x00\x00", "KW002", "binary"),
        (b'(a)=LLM("caf\xe9")', "KW002", "not text in UTF-8 (byte 12 is 0xe9, in line 1)"),
        ('(a)=LLM("x")'.encode("utf-16"), "KW002", "not text in UTF-8"),
    ],
)
def test_what_is_no_text(folder: Path, data: bytes, code: str, message: str) -> None:
    (folder / "x.lwt").write_bytes(data)
    result = call("check", "x.lwt", "--format", "json")
    assert result.code == 3
    assert _one(result)["code"] == code
    assert message in str(_one(result)["message"])
    assert call("fmt", "x.lwt").code == 3
    assert call("plan", "x.lwt").code == 3
    assert call("run", "x.lwt").code == 3
    assert (folder / "x.lwt").read_bytes() == data


def test_a_file_that_is_not_there(folder: Path) -> None:
    (folder / "cafes.lwt").touch()
    found = _one(call("check", "cafe.lwt", "--format", "json"))
    assert found["code"] == "KW001"
    assert found["file"] == "cafe.lwt"
    assert found["hints"] == ["did you mean cafes.lwt?"]


def test_a_folder_and_an_odd_name(folder: Path) -> None:
    assert "it is a folder" in call("check", folder).out
    assert call("check", "a\0b").code == 3


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(folder: Path) -> None:
    (folder / "x.lwt").touch(mode=0o000)
    assert "permission denied" in call("check", "x.lwt").out


def test_a_file_that_is_too_large_is_not_read(folder: Path) -> None:
    with open(folder / "x.lwt", "wb") as file:
        file.truncate(1 << 33)
    assert _one(call("check", "x.lwt", "--format", "json"))["code"] == "KW003"
    assert "KW003" in call("check", "cafes.lwt", "--input", "x.lwt").out


def test_a_byte_order_mark_is_no_text(folder: Path) -> None:
    (folder / "x.lwt").write_bytes(b'\xef\xbb\xbf(final)=LLM("x")\n')
    assert call("check", "x.lwt", "--format", "json").json == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("three cafes", "the input is not JSON"),
        ("", "the input is empty"),
        ('{"a": 1', "the input is not JSON"),
        ("[NaN]", "NaN is not a JSON number"),
        ("[" * 200_000, "nested too deeply"),
        ("1" * 10_000, "the input is not JSON"),
        (r'"\ud800"', "lone surrogate"),
    ],
)
def test_an_input_that_is_no_json(cafes: str, folder: Path, text: str, message: str) -> None:
    (folder / "bad.json").write_text(text, encoding="utf-8")
    result = call("run", "cafes.lwt", "-i", "bad.json", "--llm", cafes)
    assert result.code == 3
    assert "error[KW004]" in result.err
    assert message in result.err
    checked = call("check", "cafes.lwt", "-i", "bad.json", "--format", "json")
    assert checked.code == 3
    assert [found["code"] for found in checked.json] == ["KW004"]


def test_json_on_the_command_line_is_told_where_to_go(cafes: str) -> None:
    assert "--input -" in call("run", "cafes.lwt", "-i", '{"request": "x"}').err


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('{"a": 1}\n{"a": 2}\n', "the file has one JSON value per line"),
        ('{"a": 1,}', "remove the comma before the closing bracket"),
        ("{'a': 1}", "JSON needs double quotes"),
        ("soup", "convert plain text to a JSON string"),
    ],
)
def test_an_input_that_is_no_json_says_what_it_is(folder: Path, text: str, hint: str) -> None:
    (folder / "x.lwt").write_text('(final)=LLM("{(input)}")\n')
    (folder / "given").write_text(text)
    found = call("check", "x.lwt", "--input", "given", "--format", "json").json
    assert hint in found[0]["hints"][0]


def test_a_suffix_alone_is_no_likeness(folder: Path) -> None:
    (folder / "cafes.lwt").write_text('(final)=LLM("x")\n')
    assert _one(call("check", "nope.lwt", "--format", "json"))["hints"] == []
    assert _one(call("check", "cafes", "--format", "json"))["hints"] == ["did you mean cafes.lwt?"]
    assert _one(call("check", "caffes.lwt", "--format", "json"))["hints"] == ["did you mean cafes.lwt?"]
