"""What commands write: whole files in one move; what is not a file is written into and never replaced; a gift's links are not followed."""

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from knotwork.runtime.api.files import UnknownSuffix, is_stream, known_suffix, new_file, replace_file
from support.command import call, cassette, environment
from support.compiling import GOOD, TASK, written

pytestmark = [
    pytest.mark.usefixtures("folder"),
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs"),
]


@contextmanager
def read_beside(path: Path) -> Iterator[list[str]]:
    """Read all that comes through a FIFO, beside the block."""
    came: list[str] = []
    reading = threading.Thread(target=lambda: came.append(path.read_text(encoding="utf-8")), daemon=True)
    reading.start()
    yield came
    reading.join(20)


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


@pytest.fixture
def run(folder: Path) -> Path:
    """The folder of a run that a report can be made of."""
    (folder / "x.lwt").write_text('(a)=LLM("x")')
    assert call("run", "x.lwt", "--llm", cassette(folder / "m.cassette", {"x": "y"})).code == 0
    (kept,) = (folder / "knotwork" / "runs").iterdir()
    return kept


@pytest.fixture
def task(folder: Path) -> str:
    (folder / "task.md").write_text(TASK, encoding="utf-8")
    answers = {"first of three": "conditions", "second of three": "graph", "last of three": "seed"}
    return cassette(folder / "s.cassette", {mark: written(GOOD[phase]) for mark, phase in answers.items()})


@pytest.mark.parametrize("by", ["name", "link"])
def test_a_pipe_is_written_into_and_stays_one(fifo: Path, by: str) -> None:
    named = fifo
    if by == "link":
        named = fifo.with_name("link")
        named.symlink_to(fifo)
    with read_beside(fifo) as came:
        replace_file(named, "é\n")
    assert came == ["é\n"]
    assert stat.S_ISFIFO(fifo.lstat().st_mode)
    assert named.is_symlink() == (by == "link")


def test_a_file_is_replaced_through_a_link_with_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "file").chmod(0o640)
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "new").symlink_to("made")
    replace_file(tmp_path / "link", "new")
    replace_file(tmp_path / "new", "made")
    assert (tmp_path / "file").read_text() == "new" and (tmp_path / "link").is_symlink()
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640
    assert (tmp_path / "made").read_text() == "made"
    assert not is_stream(tmp_path / "link") and not is_stream(tmp_path) and not is_stream(tmp_path / "nothing")


@pytest.mark.parametrize("aim", ["precious", "nowhere", "fifo"])
def test_a_name_of_ours_is_no_way_out_of_the_folder(fifo: Path, aim: str) -> None:
    folder = fifo.parent
    (folder / "precious").write_text("mine")
    (folder / "link").symlink_to(aim)
    for named, why in ((folder / "link", "the file is a link"), (fifo, "the file is not regular")):
        with pytest.raises(OSError, match=why):
            replace_file(named, "x", follow=False)
    assert (folder / "precious").read_text() == "mine" and not (folder / "nowhere").exists()
    replace_file(folder / "precious", "x", follow=False)
    assert (folder / "precious").read_text() == "x"


def test_a_report_takes_no_link_of_a_folder_that_was_given_away(folder: Path, run: Path) -> None:
    (folder / "precious").write_text("mine")
    (run / "report.html").symlink_to(folder / "precious")
    told = call("report", run)
    assert (told.code, (folder / "precious").read_text()) == (1, "mine")
    assert told.err == f"error: {run / 'report.html'}: the file is a link; name it with -o to write it\n"
    assert call("report", run, "-o", run / "report.html").code == 0, "who names a link means it"
    assert (folder / "precious").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (run / "report.html").is_symlink()


def test_a_report_goes_into_a_pipe(fifo: Path, run: Path) -> None:
    with read_beside(fifo) as came:
        assert call("report", run, "-o", fifo).code == 0
    assert came[0].startswith("<!doctype html>") and came[0].endswith("</html>")
    assert stat.S_ISFIFO(fifo.lstat().st_mode)


def test_a_report_in_the_place_of_a_folder_is_met_with_a_name(folder: Path, run: Path) -> None:
    told = call("report", run, "-o", folder / "knotwork")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith(f"error: {folder / 'knotwork'} is a folder\n")
    assert f"--output {folder / 'knotwork' / 'report.html'}" in told.err


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="there is no /dev/stdout")
@pytest.mark.parametrize("to_file", [False, True])
def test_stdout_has_a_name_that_may_be_written_to(folder: Path, run: Path, to_file: bool) -> None:
    """Where it leads to a file, too: what stood there before, and what comes after, is not lost."""
    words = [sys.executable, "-m", "knotwork", "report", str(run), "-o", "/dev/stdout"]
    if to_file:
        with (folder / "all.txt").open("wb") as out:
            out.write(b"before\n")
            out.flush()
            assert subprocess.run(words, stdout=out, cwd=folder, env=environment(folder), timeout=60).returncode == 0
            out.seek(0, os.SEEK_END)
            out.write(b"\nafter")
        text = (folder / "all.txt").read_text(encoding="utf-8")
    else:
        done = subprocess.run(words, capture_output=True, cwd=folder, env=environment(folder), timeout=60)
        text = f"before\n{done.stdout.decode()}\nafter"
        assert done.returncode == 0, done.stderr
    first, _, rest = text.partition("\n")
    assert (first, rest[:15], rest[-13:]) == ("before", "<!doctype html>", "</html>\nafter")


@pytest.mark.slow
def test_a_seed_goes_into_a_pipe_without_force(fifo: Path, task: str) -> None:
    with read_beside(fifo) as came:
        assert call("seed", "compile", "task.md", "-o", fifo, "--llm", task).code == 0
    assert json.loads(came[0]) == GOOD["seed"]
    assert stat.S_ISFIFO(fifo.lstat().st_mode)


@pytest.mark.slow
def test_a_link_that_leads_nowhere_is_there_already(folder: Path, task: str) -> None:
    (folder / "d.json").symlink_to("nowhere.json")
    told = call("seed", "compile", "task.md", "-o", "d.json", "--llm", task)
    assert (told.code, "[1/3]" in told.err) == (2, False)
    assert told.err == "error: d.json already exists\n  = help: use --force to overwrite it\n"
    assert call("seed", "compile", "task.md", "-o", "d.json", "--llm", task, "--force").code == 0
    assert (folder / "d.json").is_symlink() and (folder / "nowhere.json").is_file()


def test_what_a_pipe_says_is_formatted_to_stdout(folder: Path) -> None:
    os.mkfifo(folder / "x.lwt")
    writing = threading.Thread(target=(folder / "x.lwt").write_text, args=['(a) = LLM("x")\n'], daemon=True)
    writing.start()
    told = call("fmt", "x.lwt")
    writing.join(20)
    assert (told.code, told.out) == (0, '(a)=LLM("x")\n')
    assert stat.S_ISFIFO((folder / "x.lwt").lstat().st_mode)


def test_a_new_file_is_made_whole_and_never_in_the_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_file(tmp_path / "new", "made")
    assert (tmp_path / "new").read_text() == "made" and (tmp_path / "new").stat().st_mode & 0o777 == 0o666 & ~_mask()
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "pipe")
    for taken in ("new", "nowhere", "pipe", "."):
        with pytest.raises(FileExistsError):
            new_file(tmp_path / taken, "other")
    with pytest.raises(FileNotFoundError):
        new_file(tmp_path / "gone" / "x", "other")
    assert (tmp_path / "new").read_text() == "made"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "nowhere", "pipe"]


def test_of_two_who_make_a_file_at_once_the_quicker_one_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def late(source: str, target: Path) -> None:
        target.write_text("somebody's")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(FileExistsError):
        new_file(tmp_path / "new", "mine")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["somebody's"]


def test_a_new_file_is_made_where_there_are_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(source: str, target: Path) -> None:
        raise PermissionError(1, "this file system has no links")

    monkeypatch.setattr(os, "link", none)
    new_file(tmp_path / "new", "made")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["made"]


def _mask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def test_a_suffix_is_known_or_refused_and_a_stream_may_have_any_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.parquet")
    for name in ("a.JSONL", "dir.parquet/a.jsonl", ".results.jsonl"):
        assert known_suffix(name, (".jsonl", ".csv")) == ".jsonl"
    for name in ("results", ".results", "/dev/stdout", "/dev/stderr", str(tmp_path / "pipe.parquet"), "trailing."):
        assert known_suffix(name, (".jsonl", ".csv")) == ""
    for name in ("a.parquet", "a.jsonl.gz", "a.2024", "results.jsonl~"):
        with pytest.raises(UnknownSuffix, match=r"write \.jsonl or \.csv"):
            known_suffix(name, (".jsonl", ".csv"))


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("seed run n.seed.json c.jsonl --out a.xlsx", "write .jsonl, .ndjson, .json, .csv, .tsv, .parquet or .duckdb"),
        (
            "seed run n.seed.json c.jsonl --out a.csv --format jsonl",
            "--format jsonl and the name a.csv contradict each other",
        ),
        (
            "seed run n.seed.json c.jsonl --out a.jsonl --format csv",
            "--format csv and the name a.jsonl contradict each other",
        ),
        ("seed compute n.seed.json c.jsonl --out a.xlsx", "can't write .xlsx: a.xlsx"),
        ("seed convert n.seed.json -o a.yaml", "write .json"),
        ("seed compile task.md -o a.yaml", "write .json"),
        ("state export st -o a.csv", "write .json"),
        ("report st -o a.pdf", "write .html or .htm"),
        ("ask nx:les_miserables Who? --search beam --tree a.svg", "write .json, .mmd, .dot or .txt"),
    ],
)
def test_a_name_that_denies_what_would_be_written_is_refused(folder: Path, typed: str, told: str) -> None:
    for name in ("n.seed.json", "c.jsonl", "task.md"):
        (folder / name).write_text("{}")
    before = sorted(path.name for path in folder.iterdir())
    result = call(*typed.split())
    assert result.code == 2, result.err
    assert told in result.err
    assert sorted(path.name for path in folder.iterdir()) == before
