"""Runs and states that an earlier version of the development branch wrote still open, and nothing of them is paid for again.

``tests/golden/written`` has what commit 2d7e884 wrote: a script's run, a ranking, a run of a seed, a state of commands, and a state of
a question. The files are as they were written, without the locks, except for one key: the prompt that plans a ranking has changed since,
so the key of the ranking's plan is that of the present prompt; its answer is unchanged.
"""

import shutil
from pathlib import Path

import pytest
from support.command import call
from support.folders import GOLDEN, ROOT

WRITTEN = GOLDEN / "written"
SCRIPT, RANK, SEED = "20261123-144148-a7b0", "20261123-144149-27d9", "20261123-144214-8281"
NOBODY = "http://127.0.0.1:9/v1#nobody"
"""A model that can't be reached: a call would fail."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(WRITTEN, tmp_path / "home")
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(ROOT)
    return tmp_path / "home"


def test_runs_are_listed_and_shown(home: Path) -> None:
    listed = call("runs", "--format", "json").json
    assert {(each["run"], each["status"]) for each in listed} == {(name, "complete") for name in (SCRIPT, RANK, SEED)}
    for name in (SCRIPT, RANK, SEED):
        assert call("runs", "show", name).code == 0
        assert call("report", name, "--output", home / f"{name}.html").code == 0


def test_a_finished_script_is_resumed_without_a_call(home: Path) -> None:
    resumed = call("run", "--resume", SCRIPT, "--llm", NOBODY, "--format", "json")
    assert (resumed.code, resumed.json["status"]) == (0, "complete")
    assert resumed.json["output"] == "Pumpkin soup: it is autumn, and pumpkins are in."


def test_a_finished_ranking_is_resumed_without_a_call(home: Path) -> None:
    resumed = call("rank", "--resume", RANK, "--format", "plain")  # another model would plan again
    assert (resumed.code, resumed.out) == (0, "6\n")
    assert "0 calls" in resumed.err


def test_a_finished_run_of_a_seed_is_resumed_without_a_call(home: Path, tmp_path: Path) -> None:
    cafes = ROOT / "docs/examples/cafes"
    resumed = call(
        "seed", "run", cafes / "cafes.seed.json", cafes / "cafes.jsonl", "--resume", SEED, "--llm", NOBODY, "--out", tmp_path / "r.jsonl",
        "--force",
    )  # fmt: skip
    assert resumed.code == 0, resumed.err
    assert "0 calls" in resumed.err


def test_states_are_whole_and_go_on(home: Path) -> None:
    for name in ("state", "asked"):
        assert call("state", "verify", home / name).code == 0
        assert call("state", "show", home / name).code == 0
    more = call("gasl", "-c", "UPDATE hubs WITH h", "--graph", "nx:les_miserables", "--state", home / "state")
    assert more.code == 3  # a variable lives as long as its plan
    more = call(
        "gasl", "-c", "FIND nodes WHERE degree >= 36 AS h", "-c", "UPDATE hubs WITH h", "--graph", "nx:les_miserables",
        "--state", home / "state",
    )  # fmt: skip
    assert more.code == 0, more.err


def test_a_question_that_was_answered_costs_no_call(home: Path) -> None:
    answered = call(
        "ask", "nx:les_miserables", "Who meets the most people?", "--state", home / "asked", "--llm", NOBODY
    )
    assert (answered.code, answered.out) == (0, "Valjean: he meets 36 others, more than anybody else.\n"), answered.err
