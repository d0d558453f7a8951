"""``knotwork seed compile``, in this process."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.command import Result, call, cassette, environment, silent_server
from support.compiling import CASSETTE, GOOD, TASK, Author, written

HAND = f"replay:{CASSETTE}"


@pytest.fixture(autouse=True)
def task(folder: Path) -> Path:
    (folder / "task.md").write_text(TASK, encoding="utf-8")
    return folder


def run(*args: str | Path, **options: object) -> Result:
    return call("seed", "compile", *args, **options)


@pytest.fixture
def good(folder: Path) -> str:
    return model(folder)


def model(folder: Path, **texts: str) -> str:
    answers = {"conditions": "first of three", "graph": "second of three", "seed": "last of three"}
    return cassette(
        folder / "m.cassette", {mark: texts.get(phase, written(GOOD[phase])) for phase, mark in answers.items()}
    )


@pytest.mark.slow
def test_the_seed_goes_to_stdout_and_the_steps_to_stderr() -> None:
    told = run("task.md", "--llm", HAND)
    assert told.code == 0
    assert told.json == GOOD["seed"]
    lines = told.err.splitlines()
    assert [line for line in lines if line.startswith("[")] == [
        "[1/3] conditions",
        "[2/3] computation graph",
        "[3/3] seed",
    ]
    assert any("fixed:" in line and "betrayel" in line for line in lines)
    assert any("repair 1 of 3: 3 errors" in line for line in lines)
    assert "compiled: 3 fields, 33 steps, 12 outputs · 1 repair · 4 calls" in told.err


@pytest.mark.slow
def test_what_is_written_passes_check(folder: Path) -> None:
    told = run("task.md", "-o", "risk.seed.json", "--llm", HAND, "--task-name", "mine")
    assert (told.code, told.out) == (0, "")
    assert told.err.splitlines()[-1] == "written to risk.seed.json"
    assert json.loads((folder / "risk.seed.json").read_text())["task_name"] == "mine"
    checked = call("check", "risk.seed.json", "--format", "json")
    assert checked.code == 0
    assert {each["severity"] for each in checked.json} <= {"warning", "info"}


@pytest.mark.slow
def test_a_file_that_is_there_is_written_with_force_only(folder: Path, good: str) -> None:
    (folder / "risk.seed.json").write_text("mine")
    told = run("task.md", "-o", "risk.seed.json", "--llm", good)
    assert told.code == 2
    assert "--force" in told.err
    assert (folder / "risk.seed.json").read_text() == "mine"
    assert run("task.md", "-o", "risk.seed.json", "--llm", good, "--force").code == 0
    assert json.loads((folder / "risk.seed.json").read_text()) == GOOD["seed"]


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_the_task_is_not_overwritten(folder: Path, good: str, force: list[str]) -> None:
    assert run("task.md", "-o", "task.md", "--llm", good, *force).code == 2
    assert (folder / "task.md").read_text(encoding="utf-8") == TASK


@pytest.mark.parametrize("name", [".", "no/folder/x.json"])
def test_where_nothing_can_be_written_nothing_is_asked(good: str, name: str) -> None:
    told = run("task.md", "-o", name, "--llm", good)
    assert told.code == 2
    assert "[1/3]" not in told.err


@pytest.mark.slow
def test_a_failure_shows_the_best_draft_and_writes_nothing(folder: Path) -> None:
    spec = model(folder, graph=written({"nodes": GOOD["graph"]["nodes"][:-1]}))
    told = run("task.md", "-o", "risk.seed.json", "--llm", spec, "--repairs", "1")
    assert (told.code, told.out) == (1, "")
    assert not (folder / "risk.seed.json").exists()
    assert "best draft of the computation graph:" in told.err
    assert "error[SEED049]: nodes: no node computes the output VERDICT" in told.err
    assert "ADJUSTED_INCIDENT_SCORE" in told.err
    assert told.err.splitlines()[-1] == "nothing was written"


def test_a_draft_moves_no_cursor(folder: Path) -> None:
    told = run("task.md", "--llm", model(folder, conditions="\x1b[2J{"), "--repairs", "0")
    assert told.code == 1
    assert "\x1b" not in told.err


@pytest.mark.slow
def test_the_task_may_come_through_stdin(good: str) -> None:
    told = run("-", "--llm", good, stdin=TASK)
    assert (told.code, told.json) == (0, GOOD["seed"])
    assert run("-", "--example", "-", "--llm", good, stdin=TASK).code == 2


@pytest.mark.slow
def test_an_example_is_checked_too(folder: Path, good: str) -> None:
    contexts = folder / "cafes.jsonl"
    contexts.write_text(
        '{"name": "A", "categories": ["Thai"], "reviews": [{"text": "an allergy"}, {"text": "fine"}]}\n'
    )
    told = run("task.md", "--llm", good, "--example", "cafes.jsonl")
    assert told.code == 0
    assert "1 of 2 reviews" in told.err
    contexts.write_text('{"name": "A", "reviews": [{"text": "an allergy"}]}\n')
    told = run("task.md", "--llm", good, "--example", "cafes.jsonl", "--repairs", "0")
    assert told.code == 1
    assert "categories" in told.err
    for text in ("", "no", '{"name": "A"}\n', "[1]", written(GOOD["seed"])):
        contexts.write_text(text)
        assert run("task.md", "--llm", good, "--example", "cafes.jsonl").code == 2


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("task.md", "", "task.md: the task is empty"), ("task.md", "  \n", "task.md: the task is empty"),
        ("task.md", "x" * 1_000_000, "task.md: 1,000,000 characters are too many"),
        ("a.seed.json", "{}", "a.seed.json is already a Formula Seed\n  = help: check it with: knotwork check a.seed.json"),
        ("task.md", written(GOOD["seed"]), "task.md is already a Formula Seed"),
        ("cafes.csv", "name,stars\n", "cafes.csv is not a description of a task"),
        ("items.json", "[1]", "items.json is not a description of a task"),
        ("items.txt", '{"a": 1}\n{"a": 2}\n', "items.txt is not a description of a task"),
    ],
)  # fmt: skip
def test_a_task_that_is_none(folder: Path, good: str, name: str, text: str, why: str) -> None:
    (folder / name).write_text(text)
    told = run(name, "--llm", good)
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith(f"error: {why}")


@pytest.mark.slow
def test_a_task_may_quote_json(folder: Path, good: str) -> None:
    (folder / "task.md").write_text('{"vegan": true} is what the answer looks like. Find it.')
    assert "is not a description of a task" not in run("task.md", "--llm", good).err


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Find the allergies", "echo '...' | knotwork seed compile -"), (".", "name a file in it: ./*.md"),
        ("absent.md", "a task describes the values to compute"),
    ],
)  # fmt: skip
def test_a_task_that_is_no_file_is_met_with_how_it_is_given(good: str, name: str, hint: str) -> None:
    told = run(name, "--llm", good)
    assert told.code == 3
    assert hint in told.err


def test_a_file_that_is_not_there(good: str) -> None:
    told = run("taks.md", "--llm", good)
    assert told.code == 3
    assert "did you mean task.md?" in told.err
    assert told.err.splitlines()[-1] == "no model was called"


def test_a_budget_ends_it(good: str) -> None:
    told = run("task.md", "--llm", good, "--max-calls", "2")
    assert told.code == 1
    assert "the budget is reached" in told.err
    assert "2 calls" in told.err


def test_without_a_model_it_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knotwork.runtime.models.factory.find_spec", lambda name: None)
    assert run("task.md").code == 2


@pytest.mark.slow
def test_the_debug_log_is_of_phase_1(good: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_DEBUG", "2")
    told = run("task.md", "--llm", HAND)
    assert "[P1:R00] compile: conditions started" in told.err
    assert "[P1:R00] seed: repair 1: " in told.err
    assert "fixed: " in told.err


@pytest.mark.slow
def test_a_task_is_compiled_once_for_a_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    author = Author()
    monkeypatch.setattr(
        "knotwork.runtime.models.factory.open_model",
        lambda *_, **more: author,
    )
    first = run("task.md", "--llm", "openai:some-model")
    again = run("task.md", "--llm", "openai:some-model")
    assert (first.code, again.code, again.json, len(author.prompts)) == (0, 0, first.json, 3)
    assert "outputs · from the cache" in again.err
    assert [path.name for path in (folder / "knotwork" / "cache").iterdir() if path.suffix == ".sqlite"] == [
        "compiled.sqlite"
    ]
    assert run("task.md", "--llm", "openai:some-model", "--no-cache").code == 0
    assert len(author.prompts) == 6


@pytest.mark.slow
def test_what_was_stopped_says_how_it_goes_on_and_counts_what_was_sent(folder: Path) -> None:
    with silent_server() as (spec, _):
        told = run("task.md", "--llm", spec, "--time-limit", "0.3")
    assert (told.code, told.out) == (1, "")
    assert "not compiled: 1 call · " in told.err
    assert told.err.endswith(
        "nothing was written\nrun the same command to continue; the answers so far are in the cache\n"
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_stops_it_and_writes_nothing(folder: Path) -> None:
    shutil.copy(CASSETTE, folder / "hand.jsonl")
    words = ["seed", "compile", "task.md", "-o", "x.json", "--llm", "replay:hand.jsonl"]
    with subprocess.Popen(
        [sys.executable, "-c", _SLOW, *words], cwd=folder, env=environment(folder), stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if line.startswith("[2/3]"):
                break
        time.sleep(0.3)
        os.kill(running.pid, signal.SIGINT)
        rest = running.stderr.read()
        assert running.wait(20) == 130
    assert "stopping" in rest
    assert "nothing was written" in rest
    assert "run the same command to continue" not in rest  # what a cassette answers is in no cache
    assert not (folder / "x.json").exists()


_SLOW = """
import asyncio, sys
from knotwork.adapters.llm.replay import ReplayModel
from knotwork.runtime.interfaces.cli import main
answer = ReplayModel.generate
async def generate(self, prompt, **options):
    if "second of three" in prompt:
        await asyncio.sleep(60)
    return await answer(self, prompt, **options)
ReplayModel.generate = generate
main(sys.argv[1:])
"""
