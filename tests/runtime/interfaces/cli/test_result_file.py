"""The file that results go to: whole lines only, completed without duplicates, and nothing lost that someone else wrote."""

import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from knotwork.runtime.interfaces.cli.output import Misused
from knotwork.runtime.interfaces.cli.result_file import OutFile, Unwritten


def result(index: int, status: str = "complete", **outputs: Any) -> dict[str, Any]:
    counts = {"reviews": 4, "kept": 3, "extracted": 2, "invalid": 1, "failed": 1}
    return {"name": f"c{index}", "index": index, "status": status, "outputs": outputs, "counts": counts}


def json_line(index: int, status: str = "complete") -> str:
    return json.dumps(result(index, status)) + "\n"


def write(path: Path, *lines: str, opening: Any = "new") -> dict[int, str]:
    file = OutFile.open(str(path), opening)
    for line in lines:
        file.write(line)
    file.close()
    return file.kept


def test_a_new_file_is_written_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    file = OutFile.open(str(path), "new")
    file.write(json_line(0))
    assert path.read_text() == json_line(0)  # at once: whoever follows the file sees it
    file.close()
    file.close()


def test_a_file_that_is_there_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("something\n")
    with pytest.raises(Misused, match="exists"):
        write(path, json_line(0))
    assert path.read_text() == "something\n"
    write(path, json_line(0), opening="overwrite")
    assert path.read_text() == json_line(0)


def test_an_empty_file_may_be_there(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").touch()
    assert write(tmp_path / "out.jsonl", json_line(0)) == {}


def test_going_on_keeps_what_is_complete_and_cuts_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json_line(0) + json_line(2) + json_line(1)[:20])
    before = path.stat().st_ino
    assert write(path, json_line(1), opening="continue") == {0: "c0", 2: "c2"}
    assert path.read_text() == json_line(0) + json_line(2) + json_line(1)
    assert path.stat().st_ino == before


def test_going_on_makes_incomplete_results_anew_and_leaves_no_duplicates(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json_line(0) + json_line(1, "partial") + json_line(2, "failed") + json_line(3) + json_line(0))
    path.chmod(0o640)
    assert write(path, json_line(1), json_line(2), opening="continue") == {0: "c0", 3: "c3"}
    assert path.read_text() == "".join(map(json_line, (0, 3, 1, 2)))
    assert sys.platform == "win32" or path.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.jsonl"]


def test_going_on_follows_a_link(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json_line(1, "partial") + json_line(0))
    (tmp_path / "link").symlink_to(path)
    write(tmp_path / "link", json_line(1), opening="continue")
    assert (tmp_path / "link").is_symlink()
    assert path.read_text() == json_line(0) + json_line(1)


@pytest.mark.parametrize("text", ["precious\n", '{"a": 1}\n', '{"index": true}\n', "[]\n"])
def test_going_on_refuses_what_no_run_wrote(tmp_path: Path, text: str) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json_line(0) + text)
    with pytest.raises(Misused, match="line 2: not a result"):
        write(path, opening="continue")
    assert path.read_text() == json_line(0) + text


def test_a_full_disk_takes_back_the_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.jsonl"
    file = OutFile.open(str(path), "new")
    file.write(json_line(0))
    real, left = os.write, [10]

    def full(handle: int, data: Any) -> int:
        if not left:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle, bytes(data)[: left.pop()])

    monkeypatch.setattr("knotwork.runtime.interfaces.cli.result_file.os.write", full)
    with pytest.raises(Unwritten, match="No space left on device"):
        file.write(json_line(1))
    file.close()
    assert path.read_text() == json_line(0)


@pytest.mark.skipif(sys.platform == "win32", reason="flock")
def test_one_process_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    for before in ("", json_line(1, "partial") + json_line(0)):
        path.write_text(before)
        first = OutFile.open(str(path), "continue")
        with pytest.raises(Misused, match="another process is writing to"):
            OutFile.open(str(path), "continue")
        first.close()


def test_half_a_character_is_written_as_json_says_it(tmp_path: Path) -> None:
    write(tmp_path / "x", json.dumps({"a": "\ud800"}, ensure_ascii=False) + "\n")
    assert json.loads((tmp_path / "x").read_bytes()) == {"a": "\ud800"}
