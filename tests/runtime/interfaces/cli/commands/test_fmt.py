"""``knotwork fmt``."""

import os
import sys
from pathlib import Path

import pytest
from support.command import call

LOOSE = """  (a) = LLM( 'hi' ,temperature=0 )


# end
"""
TIDY = '(a)=LLM("hi", temperature=0)\n\n# end\n'


def test_in_place(folder: Path) -> None:
    (folder / "x.lwt").write_text(LOOSE)
    result = call("fmt", "x.lwt")
    assert result.code == 0
    assert (folder / "x.lwt").read_text() == TIDY
    assert result.err == "x.lwt formatted\n"
    before = (folder / "x.lwt").stat()
    assert call("fmt", "x.lwt").err == ""
    assert (folder / "x.lwt").stat().st_mtime_ns == before.st_mtime_ns
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


def test_check_and_diff_write_nothing(folder: Path) -> None:
    (folder / "x.lwt").write_text(LOOSE)
    checked = call("fmt", "--check", "x.lwt")
    assert checked.code == 1
    assert "x.lwt would change" in checked.err
    shown = call("fmt", "--diff", "x.lwt")
    assert shown.code == 0
    assert '+(a)=LLM("hi", temperature=0)' in shown.out
    assert (folder / "x.lwt").read_text() == LOOSE
    (folder / "x.lwt").write_text(TIDY)
    assert call("fmt", "--check", "x.lwt").code == 0


def test_stdin_goes_to_stdout() -> None:
    assert call("fmt", "-", stdin=LOOSE).out == TIDY


def test_a_file_with_errors_is_left_alone(folder: Path) -> None:
    (folder / "bad.lwt").write_text('(a)=LLM("x)\n')
    (folder / "x.lwt").write_text(LOOSE)
    result = call("fmt", "bad.lwt", "x.lwt")
    assert result.code == 3
    assert "error[LWT002]" in result.err
    assert "bad.lwt was not changed" in result.err
    assert (folder / "bad.lwt").read_text() == '(a)=LLM("x)\n'
    assert (folder / "x.lwt").read_text() == TIDY


def test_lenient_writes_the_strict_spelling(folder: Path) -> None:
    (folder / "x.lwt").write_text('Sure!\n```\n(final)=LLM("Say "yes".")\n```\n')
    assert call("fmt", "--lenient", "x.lwt").code == 0
    assert (folder / "x.lwt").read_text() == "# Sure!\n(final)=LLM('Say \"yes\".')\n"
    assert call("check", "x.lwt").code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="permissions and links")
def test_permissions_and_links_stay(folder: Path) -> None:
    (folder / "x.lwt").write_text(LOOSE)
    os.chmod(folder / "x.lwt", 0o640)
    (folder / "link.lwt").symlink_to("x.lwt")
    assert call("fmt", "link.lwt").code == 0
    assert (folder / "link.lwt").is_symlink()
    assert (folder / "x.lwt").read_text() == TIDY
    assert (folder / "x.lwt").stat().st_mode & 0o777 == 0o640


def test_line_endings_become_newlines(folder: Path) -> None:
    (folder / "x.lwt").write_bytes(b'(a)=LLM("x")\r\n(b)=LLM("{(a)}")\r\n')
    assert call("fmt", "x.lwt").code == 0
    assert (folder / "x.lwt").read_bytes() == b'(a)=LLM("x")\n(b)=LLM("{(a)}")\n'


def test_liberties_are_told_on_stderr() -> None:
    result = call("fmt", "--lenient", "-", stdin='Sure!\n- (final)=LLM("Say "yes".")\n')
    assert result.code == 0
    assert result.out == "# Sure!\n(final)=LLM('Say \"yes\".')\n"
    assert [line.rpartition(" ")[2] for line in result.err.splitlines()] == ["(LWT001)", "(LWT037)", "(LWT004)"]
    assert result.err.startswith("<stdin>:1:1: this line is not a step")
