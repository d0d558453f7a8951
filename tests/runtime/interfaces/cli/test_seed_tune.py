"""``knotwork seed tune``: the seed that is written, what is said, and the exit codes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command import Result, call
from support.served import Served, served
from support.tuning import write_files


@pytest.fixture
def server(folder: Path) -> Iterator[Served]:
    write_files(folder)
    with served(folder, module="support.tuning") as running:
        yield running


def tune(*args: str) -> Result:
    return call("seed", "tune", "mood.seed.json", "gold.csv", "--contexts", "places.jsonl", *args)


@pytest.mark.slow
def test_a_tuned_seed_is_written_and_its_test_is_told(server: Served, folder: Path) -> None:
    told = tune(
        "--llm", server.spec, "--trials", "4", "--descriptions", "0", "-o", "tuned.seed.json", "--require-better"
    )
    assert told.code == 0, told.err
    assert told.out == ""
    document = json.loads((folder / "tuned.seed.json").read_text())
    assert len(document["extract"]["examples"]) == document["tuned_from"]["examples"] == 8
    assert "mood.seed.json: mood; train 48 in 16 groups, dev 36 in 12 groups, test 36 in 12 groups" in told.err
    assert "test: 36 items in 12 groups, accuracy" in told.err
    assert "verdict: better" in told.err and "saved in " in told.err
    shown = call("runs", "show", document["tuned_from"]["run"])
    assert shown.code == 0 and "4 trials" in shown.out and "verdict: better" in shown.out
    assert "tune" in call("runs").out
    checked = call("check", "tuned.seed.json")
    assert checked.code == 0, checked.out + checked.err


def test_an_existing_file_is_kept_and_missing_parts_are_named(folder: Path) -> None:
    write_files(folder)
    (folder / "tuned.seed.json").write_text("{}")
    told = tune("--llm", "local", "-o", "tuned.seed.json")
    assert told.code == 2 and "already exists" in told.err
    assert tune("--llm", "local", "-o", "gold.csv").code == 2
    told = call("seed", "tune", "mood.seed.json", "gold.csv", "--llm", "local")
    assert told.code == 2 and "--contexts" in told.err
    told = tune("--llm", "local", "--field", "moood")
    assert told.code == 2 and "did you mean mood" in told.err
    told = tune("--llm", "local", "--resume", "20260101-000000-abcd")
    assert told.code == 2 and "does not exist" in told.err


def test_too_few_labels_are_refused_with_the_number_to_add(folder: Path) -> None:
    write_files(folder, 41, 20)
    told = tune("--llm", "local")
    assert told.code == 3
    assert "41: label 19 more" in told.err and "good has 14 (label 1 more)" in told.err
    assert "no call was made" in told.err


def test_a_limit_below_the_test_is_refused(folder: Path) -> None:
    write_files(folder)
    told = tune("--llm", "http://127.0.0.1:9/v1#m", "--max-calls", "100")
    assert told.code == 2 and "--max-calls: 100 is too little: the test of 36 items may need" in told.err


@pytest.mark.slow
def test_a_run_that_shows_no_difference_has_code_5(server: Served, folder: Path) -> None:
    """The labels are moved by seven items, so that they have nothing to do with the texts."""
    gold = (folder / "gold.csv").read_text().splitlines()
    labels = [line.rsplit(",", 1)[1] for line in gold[1:]]
    moved = [line.rsplit(",", 1)[0] + "," + labels[(place + 7) % len(labels)] for place, line in enumerate(gold[1:])]
    (folder / "gold.csv").write_text("\n".join([gold[0], *moved]) + "\n")
    told = tune(
        "--llm", server.spec, "--trials", "4", "--descriptions", "0", "-o", "tuned.seed.json", "--require-better"
    )
    assert told.code == 5, told.err
    assert "verdict: no difference shown" in told.err
    assert (folder / "tuned.seed.json").exists()


@pytest.mark.slow
def test_a_limit_that_ends_the_trials_is_told(server: Served) -> None:
    told = tune("--llm", server.spec, "--trials", "24", "--max-calls", "260", "--no-cache")
    assert told.code == 0, told.err
    assert "the trials ended early, because the test is reserved: the budget of" in told.err
    assert json.loads(told.out)["tuned_from"]["run"]
    assert sum(server.asked.values()) <= 260
