"""kill -9 of workers and of drivers, again and again: the results equal those of an undisturbed run, and the budget is kept."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.command import environment
from support.examples import many
from support.review_server import contexts
from support.seeds import SEED
from support.served import Served, served, until

pytestmark = pytest.mark.slow
CONTEXTS, REVIEWS, IN_FLIGHT = 30, 5, 8
CALLS = CONTEXTS * REVIEWS


def prepared(folder: Path) -> None:
    (folder / "a.seed.json").write_text(json.dumps(SEED))
    lines = (json.dumps(each) for each in contexts(CONTEXTS, REVIEWS))
    (folder / "c.jsonl").write_text("\n".join(lines) + "\n")


def start(server: Served, folder: Path, *more: str) -> "subprocess.Popen[str]":
    words = ["seed", "run", "a.seed.json", "c.jsonl", "--llm", server.spec, "--out", "out.jsonl"]
    words += ["--max-concurrency", str(IN_FLIGHT), "--workers", "2", *more]
    return subprocess.Popen(
        [sys.executable, "-m", "knotwork", *words],
        cwd=folder,
        env=environment(folder),
        stderr=subprocess.PIPE,
        text=True,
    )


def workers(driver: "subprocess.Popen[str]") -> list[psutil.Process]:
    try:
        return psutil.Process(driver.pid).children()
    except psutil.NoSuchProcess:
        return []


def wait_for(server: Served, driver: "subprocess.Popen[str]", requests: int) -> None:
    """Wait until the server has got so many requests, or the driver has ended."""
    until(lambda: server.reached(requests)() or driver.poll() is not None, 60)


def results(folder: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (folder / "out.jsonl").read_bytes().splitlines()]
    for each in found:
        del each["usage"], each["cost"]
    return found


def undisturbed(folder: Path) -> list[dict[str, Any]]:
    """The results of a run without workers; the answers of the server depend only on the reviews."""
    folder.mkdir()
    prepared(folder)
    with served(folder, module="support.review_server") as server:
        words = ["seed", "run", "a.seed.json", "c.jsonl", "--llm", server.spec, "--out", "out.jsonl"]
        subprocess.run(
            [sys.executable, "-m", "knotwork", *words],
            cwd=folder,
            env=environment(folder),
            check=True,
            capture_output=True,
        )
    return results(folder)


@pytest.mark.parametrize("seed", range(max(2, many(10))))
def test_killed_workers(tmp_path: Path, seed: int) -> None:
    chance, kills = random.Random(seed), 5
    prepared(tmp_path)
    with served(tmp_path, "--delay", "0.05", module="support.review_server") as server:
        driver = start(server, tmp_path, "--max-calls", str(CALLS + kills * CALLS))
        for kill in range(kills):
            before = sum(server.asked.values())
            left = CALLS - len(server.asked)
            wait_for(server, driver, before + 1 + chance.randrange(max(1, left // (kills - kill))))
            alive = workers(driver)
            if alive:
                os.kill(chance.choice(alive).pid, signal.SIGKILL)
        _, said = driver.communicate(timeout=120)
        assert driver.returncode == 0, said
        assert len(server.asked) == CALLS and sum(server.asked.values()) <= CALLS + kills * IN_FLIGHT
    assert results(tmp_path) == undisturbed(tmp_path / "undisturbed")


@pytest.mark.parametrize("seed", range(max(2, many(10))))
def test_killed_drivers(tmp_path: Path, seed: int) -> None:
    chance, kills = random.Random(seed), 5
    prepared(tmp_path)
    run: tuple[str, ...] = ()
    with served(tmp_path, "--delay", "0.05", module="support.review_server") as server:
        for kill in range(kills):
            before = sum(server.asked.values())
            left = CALLS - len(server.asked)
            driver = start(server, tmp_path, *run)
            wait_for(server, driver, before + 1 + chance.randrange(max(1, left // (kills - kill + 1))))
            orphans = workers(driver)
            driver.kill()
            driver.communicate()
            psutil.wait_procs(orphans, timeout=20)
            (run_id,) = [path.name for path in (tmp_path / "knotwork" / "runs").iterdir()]
            run = ("--resume", run_id)
        driver = start(server, tmp_path, *run)
        _, said = driver.communicate(timeout=120)
        assert driver.returncode == 0, said
        assert len(server.asked) == CALLS and sum(server.asked.values()) <= CALLS + kills * IN_FLIGHT
    assert results(tmp_path) == undisturbed(tmp_path / "undisturbed")


def test_the_server_never_sees_more_than_the_budget(tmp_path: Path) -> None:
    prepared(tmp_path)
    with served(tmp_path, "--delay", "0.05", module="support.review_server") as server:
        driver = start(server, tmp_path, "--max-calls", "70")
        until(server.reached(20), 60)
        os.kill(workers(driver)[0].pid, signal.SIGKILL)
        _, said = driver.communicate(timeout=120)
        assert driver.returncode == 4 and "the budget of 70 calls is used up" in said
        assert 20 <= sum(server.asked.values()) <= 70
