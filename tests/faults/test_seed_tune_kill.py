"""kill -9 of a tuning, again and again: no answered call is made twice, and the result is that of an undisturbed run."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.command import environment
from support.examples import many
from support.served import Served, served, until
from support.tuning import write_files

IN_FLIGHT = 8
WORDS = (
    "-m", "knotwork", "seed", "tune", "mood.seed.json", "gold.csv", "--contexts", "places.jsonl", "--trials", "10", "--descriptions", "2",
    "--force", "--no-cache",
)  # fmt: skip


def started(folder: Path, server: Served, out: str, *more: str) -> "subprocess.Popen[str]":
    words = [*WORDS, "--llm", server.spec, "-o", out, *more]
    return subprocess.Popen(
        [sys.executable, *words], cwd=folder, env=environment(folder), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )  # fmt: skip


def result(folder: Path, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / name).read_text())
    document["tuned_from"].pop("run")
    return document


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("seed", range(many(5)))
def test_no_answer_is_paid_for_twice(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    write_files(folder)
    kills = 4
    with served(folder, "--delay", "0.02", module="support.tuning") as server:
        run: tuple[str, ...] = ()
        for _ in range(kills):
            running = started(folder, server, "killed.seed.json", *run)
            try:
                until(server.reached(sum(server.asked.values()) + chance.randrange(5, 90)), 100)
            finally:
                running.kill()
                running.communicate()
            assert not (folder / "killed.seed.json").exists()
            (run_id,) = [path.name for path in (folder / "knotwork" / "runs").iterdir()]
            run = ("--resume", run_id)
        last = started(folder, server, "killed.seed.json", *run)
        _, told = last.communicate(timeout=200)
        assert last.returncode == 0, told
        asked = server.asked
        assert sum(asked.values()) - len(asked) <= kills * IN_FLIGHT
        whole = started(folder, server, "whole.seed.json")
        _, told = whole.communicate(timeout=200)
        assert whole.returncode == 0, told
        assert set(server.asked) == set(asked), "an undisturbed run asks the same"
    assert result(folder, "killed.seed.json") == result(folder, "whole.seed.json")
