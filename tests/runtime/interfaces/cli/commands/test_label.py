"""``knotwork label`` on a real terminal: keys, sizes, kills. ``test_label_view`` tests the screen without one."""

import csv
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest
from support.command import call, environment
from support.tmux import Tmux

SEED = {
    "task_name": "noise",
    "extract": {"fields": [
        {"name": "level", "type": "enum", "values": {"quiet": "no noise", "loud": "much noise"}, "description": "How loud is it?"},
        {"name": "minutes", "type": "int"},
    ]},
    "compute": [{"name": "N", "op": "count", "where": {"extraction.level": "loud"}}],
    "output": ["N"],
}  # fmt: skip
CONTEXTS = [
    {
        "name": f"Café {number}",
        "reviews": [{"id": f"r{number}", "text": f"Noise number {number}, " + "very long " * 60, "stars": 3}],
    }
    for number in range(8)
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "noise.seed.json").write_text(json.dumps(SEED))
    (tmp_path / "reviews.jsonl").write_text("".join(json.dumps(each) + "\n" for each in CONTEXTS))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def terminal(folder: Path, *more: str, columns: int = 80, rows: int = 24, **env: str) -> pexpect.spawn:
    words = ["-m", "knotwork", "label", "noise.seed.json", "reviews.jsonl", "--sample", "5", *more]
    child = pexpect.spawn(
        sys.executable, words, cwd=str(folder), dimensions=(rows, columns), timeout=20, encoding="utf-8",
        env={**environment(folder), "TERM": "xterm", **env},
    )  # fmt: skip
    child.delaybeforesend = None
    return child


def rows_of(folder: Path, name: str = "gold.csv") -> list[dict[str, str]]:
    path = folder / name
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) if path.exists() else []


def press(child: pexpect.spawn, keys: str, folder: Path, until: Callable[[list[dict[str, str]]], bool]) -> None:
    """Send keys, and wait until the file on disk says what they mean."""
    child.send(keys)
    limit = time.monotonic() + 20
    while not until(rows_of(folder)):
        assert time.monotonic() < limit, (keys, rows_of(folder))
        time.sleep(0.02)


@pytest.mark.slow
def test_keys_label_undo_note_skip_and_quit(folder: Path) -> None:
    child = terminal(folder, "--annotator", "Ann")
    child.expect("1 of 5")
    child.expect("1 quiet: no noise")
    press(child, "2", folder, lambda rows: rows[-1:] != [] and rows[-1]["level"] == "loud")
    child.expect("minutes>")
    press(child, "30\r", folder, lambda rows: rows[-1]["minutes"] == "30" and rows[-1]["status"] == "labelled")
    child.expect("2 of 5")
    child.send("x")
    child.expect("unknown key; press 1 to 2, u, s, n, q or -")
    press(child, "nnoisy?\r", folder, lambda rows: rows[-1]["note"] == "noisy?")
    press(child, "s", folder, lambda rows: rows[-1]["status"] == "skipped" and rows[-1]["note"] == "noisy?")
    child.expect("3 of 5.*1 skipped")
    press(child, "u", folder, lambda rows: rows[-1]["status"] == "")
    child.expect("2 of 5")
    press(child, "1", folder, lambda rows: rows[-1]["level"] == "quiet")
    child.send("4.5\r")
    child.expect("it is not a whole number")
    child.send("\x7f\x7f\x7f")
    press(child, "\r", folder, lambda rows: rows[-1]["status"] == "labelled")
    child.send("q")
    child.expect("2 reviews labelled, 0 skipped, 3 left; labels in gold.csv")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    first, second = rows_of(folder)
    assert (first["annotator"], first["picked"], first["shown"], first["review"]) == ("Ann", "random", "", "0")
    assert (second["level"], second["minutes"], second["note"]) == ("quiet", "", "noisy?")


@pytest.mark.slow
def test_started_again_it_goes_on_and_all_done_ends(folder: Path) -> None:
    child = terminal(folder, "--field", "level")
    child.expect("1 of 5")
    press(child, "12", folder, lambda rows: len(rows) == 2)
    child.sendintr()
    child.expect("2 reviews labelled, 0 skipped, 3 left")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    again = terminal(folder, "--field", "level")
    again.expect("3 of 5")
    again.send("111")
    again.expect("5 reviews labelled, 0 skipped, 0 left")
    again.expect("knotwork eval noise.seed.json gold.csv --contexts reviews.jsonl")
    again.expect(pexpect.EOF)
    assert [row["level"] for row in rows_of(folder)] == ["quiet", "loud", "quiet", "quiet", "quiet"]
    assert len({row["id"] for row in rows_of(folder)}) == 5 and not list(folder.glob(".gold*"))


@pytest.mark.slow
def test_killed_after_each_key_no_label_is_lost(folder: Path) -> None:
    wanted: list[str] = []
    for key, value in zip("12121", ("quiet", "loud", "quiet", "loud", "quiet"), strict=True):
        child = terminal(folder, "--field", "level")
        child.expect(f"{len(wanted) + 1} of 5")
        press(child, key, folder, lambda rows: len(rows) == len(wanted) + 1)
        child.kill(signal.SIGKILL)
        child.wait()
        wanted.append(value)
        assert [row["level"] for row in rows_of(folder)] == wanted


@pytest.mark.slow
def test_it_works_at_40_columns_without_colour(folder: Path) -> None:
    child = terminal(folder, columns=40, rows=16, NO_COLOR="1")
    child.expect("more lines \\(space\\)")
    child.expect("q quit")
    screen = child.before + child.after
    assert "\x1b[1m" not in screen and "\x1b[3" not in screen
    child.send(" ")
    child.expect("more lines|end of")
    child.send("q")
    child.expect(pexpect.EOF)


@pytest.mark.slow
def test_the_model_s_answer_is_shown_only_on_request(folder: Path) -> None:
    counts = dict.fromkeys(("reviews", "kept", "extracted", "invalid", "failed"), 1)
    results = []
    for number, each in enumerate(CONTEXTS):
        found = {"level": "loud" if number % 2 else "quiet", "minutes": 1}
        result = {
            "name": each["name"],
            "index": number,
            "status": "complete",
            "outputs": {},
            "counts": counts,
            "errors": [],
        }
        results.append(result | {"extractions": [{"review": 0, "extraction": found, "meta": {}, "excerpt": ""}]})
    (folder / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in results))
    child = terminal(folder, "--results", "a.jsonl", "--show")
    child.expect("model: (loud|quiet)")
    press(child, "1", folder, lambda rows: rows[-1:] != [] and rows[-1]["shown"] == "yes")
    child.send("q")
    child.expect(pexpect.EOF)
    hidden = terminal(folder, "--results", "a.jsonl", "-o", "other.csv")
    hidden.expect("1 quiet")
    assert "model:" not in hidden.before
    hidden.send("q")
    hidden.expect(pexpect.EOF)
    for each in results[::2]:
        each["extractions"][0]["extraction"]["level"] = "loud"
    (folder / "b.jsonl").write_text("".join(json.dumps(each) + "\n" for each in results))
    differs = terminal(folder, "--results", "a.jsonl,b.jsonl", "--pick", "disagree", "-o", "third.csv")
    differs.expect("1 of 4")
    differs.expect("picked: disagree")
    differs.send("q")
    differs.expect(pexpect.EOF)


@pytest.mark.slow
def test_two_processes_cant_label_one_file(folder: Path) -> None:
    child = terminal(folder)
    child.expect("1 of 5")
    second = terminal(folder)
    second.expect("being labelled by another process")
    second.expect(pexpect.EOF)
    second.close()
    assert second.exitstatus == 2
    child.send("q")
    child.expect(pexpect.EOF)


@pytest.mark.slow
def test_without_a_terminal_it_is_refused_with_a_reason(folder: Path) -> None:
    done = call("label", "noise.seed.json", "reviews.jsonl")
    assert done.code == 2 and "label needs a terminal" in done.err and done.out == ""
    done = call("label", "-", "reviews.jsonl")
    assert done.code == 2 and "no input can come from stdin" in done.err
    piped = subprocess.run(
        [sys.executable, "-m", "knotwork", "label", "noise.seed.json", "reviews.jsonl"], input=b"1", capture_output=True,
        env=environment(folder), cwd=folder,
    )  # fmt: skip
    assert piped.returncode == 2 and b"needs a terminal" in piped.stderr and not (folder / "gold.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--pick", "disagree", "--results", "a.jsonl"), "at least two runs"),
        (("--pick", "unsure"), "needs the results of a run"),
        (("--show",), "add --results"),
        (("--field", "levle"), "did you mean 'level'"),
        (("--stratify", "sars"), "did you mean 'stars'"),
        (("--column", "x"), "expected NAME=COL"),
        (("-o", "gold.xlsx"), "not a .csv or .tsv file"),
        (("-o", "nowhere/gold.csv"), "folder does not exist"),
    ],
)  # fmt: skip
def test_wrong_options_are_told_on_a_terminal(folder: Path, args: tuple[str, ...], told: str) -> None:
    child = terminal(folder, *args)
    child.expect(told)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 2


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_a_resized_terminal_shows_the_field_again(folder: Path) -> None:
    args = ("label", folder / "noise.seed.json", folder / "reviews.jsonl", "-o", folder / "gold.csv", "--sample", "5")
    with Tmux(args, folder, columns=100, rows=30) as tmux:
        tmux.wait("1 of 5", "How loud is it?", "q quit")
        tmux.resize(40, 14)
        tmux.wait("1 quiet: no noise", "more lines", "q quit")
        tmux.type("2")
        tmux.wait("minutes>")
        tmux.type("30")
        tmux.keys("Enter")
        tmux.wait("2 of 5")
        tmux.keys("C-c")
        tmux.wait("1 review labelled", "left with 130")
    assert rows_of(folder)[0]["minutes"] == "30"


@pytest.mark.slow
def test_the_command_at_the_end_names_the_columns_of_a_flat_table(folder: Path) -> None:
    (folder / "reviews.jsonl").write_text(
        "".join(f'{{"shop": "s{n}", "id": "r{n}", "my text": "Noise {n}."}}\n' for n in range(5))
    )
    child = terminal(
        folder, "--field", "level", "--group", "shop", "--text", "my text", "--column", "id=id", columns=200
    )
    child.expect("1 of 5")
    child.send("12121")
    child.expect(
        "knotwork eval noise.seed.json gold.csv --contexts reviews.jsonl --group shop --text 'my text' --column id=id --llm SPEC"
    )
    child.expect(pexpect.EOF)
