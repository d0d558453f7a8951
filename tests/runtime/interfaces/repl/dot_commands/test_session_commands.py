"""``.save`` and ``.output``: a file that is there stays as it is until its owner says otherwise, and then it is written whole."""

import os
import sys
from pathlib import Path

import pytest
from knotwork.runtime.api.session import Session
from support.sessions import new_session, run

posix = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of POSIX")


@pytest.fixture
def kept() -> Session:
    made = new_session()
    run(made, "n = 1")
    return made


@pytest.mark.parametrize("dot", [".save", ".output"])
def test_a_file_that_is_there_is_told_of_and_untouched(kept: Session, folder: Path, dot: str) -> None:
    (folder / "mine.txt").write_text("mine")
    told = run(kept, f"{dot} mine.txt")
    assert (told.status, told.message) == ("misused", "mine.txt already exists") and "--force" in told.hint
    assert (folder / "mine.txt").read_text() == "mine"


@posix
@pytest.mark.parametrize("dot", [".save", ".output"])
def test_forced_a_link_stays_and_what_it_names_is_written_whole(kept: Session, folder: Path, dot: str) -> None:
    (folder / "mine.txt").write_text("mine")
    (folder / "mine.txt").chmod(0o640)
    (folder / "link.txt").symlink_to("mine.txt")
    assert run(kept, f"{dot} link.txt --force").status == "done"
    assert (folder / "link.txt").is_symlink()
    assert (folder / "mine.txt").read_text() == ("n = 1\n" if dot == ".save" else "")
    assert (folder / "mine.txt").stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in folder.iterdir()) == ["link.txt", "mine.txt"]


def test_where_writing_fails_what_was_there_is_there(
    kept: Session, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "mine.txt").write_text("mine")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for told in (run(kept, ".save mine.txt --force"), run(kept, ".save other.txt")):
        assert told.status == "failed" and told.message.endswith("can't be written: No space left on device")
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    assert (folder / "mine.txt").read_text() == "mine"


def test_names_that_can_not_be_files(kept: Session, folder: Path) -> None:
    for name in ("nowhere/x", "a\0b", "~nobody-of-this-name/x"):
        for command in (f".save '{name}'", f".output '{name}'", f".output '{name}' --append"):
            told = run(kept, command)
            assert told.status == "failed" and "can't be written" in told.message, command
    assert not list(folder.iterdir())


def test_to_add_to_a_file_makes_it(kept: Session, folder: Path) -> None:
    assert run(kept, ".output new.csv --append").status == "done"
    assert (folder / "new.csv").read_text() == ""


def test_a_suffix_that_is_not_written_is_refused(kept: Session, folder: Path) -> None:
    for command, hint in ((".save a.py", ".gasl, .lwt or .txt"), (".output a.parquet", ".json, .csv, .md or .txt")):
        told = run(kept, command)
        assert told.status == "misused" and told.message.startswith("can't write .p") and hint in told.hint
    assert not list(folder.iterdir())
