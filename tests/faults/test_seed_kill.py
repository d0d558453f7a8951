"""kill -9 of a run over many contexts, again and again: what is extracted is never asked, or paid, twice."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import environment
from support.examples import many
from support.served import TESTS, Served, served, until

IN_FLIGHT = 8


def child(server: Served, folder: Path, count: int, reviews: int, *run: str) -> "subprocess.Popen[str]":
    words = [server.spec, str(count), str(reviews), str(folder / "out.jsonl"), *run]
    return subprocess.Popen(
        [sys.executable, "-m", "support.seed_child", *words], env=environment(folder, PYTHONPATH=str(TESTS)),
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def killed_and_resumed(folder: Path, count: int, reviews: int, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    calls = count * reviews
    run: tuple[str, ...] = ()
    with served(folder, "--delay", "0.01", module="support.review_server") as server:
        for kill in range(kills):
            before = sum(server.asked.values())
            left = calls - len(server.asked)
            running = child(server, folder, count, reviews, *run)
            try:
                until(server.reached(before + 1 + chance.randrange(max(1, left // (kills - kill + 1)))), 60)
            finally:
                running.kill()
                running.communicate()
            (run_id,) = [path.name for path in (folder / "knotwork" / "runs").iterdir()]
            run = (run_id,)
        last = child(server, folder, count, reviews, *run)
        _, said = last.communicate(timeout=120)
        assert last.returncode == 0, said
        asked = server.asked
    assert len(asked) == calls
    assert sum(asked.values()) <= calls + kills * IN_FLIGHT
    results = [json.loads(line) for line in (folder / "out.jsonl").read_bytes().splitlines()]
    assert [result["index"] for result in results] == list(range(count))
    assert all(result["status"] == "complete" for result in results)
    if kills == 1:
        return
    again = child(server, folder, count, reviews, *run)  # the server is gone: all of it is there
    _, said = again.communicate(timeout=120)
    assert again.returncode == 0, said
    repeated = [json.loads(line) for line in (folder / "out.jsonl").read_bytes().splitlines()]
    assert [result["outputs"] for result in repeated] == [result["outputs"] for result in results]
    assert [result["extractions"] for result in repeated] == [result["extractions"] for result in results]
    assert all(result["usage"]["calls"] == 0 for result in repeated)


@pytest.mark.slow
def test_a_run_that_is_killed_repeats_at_most_what_was_in_flight(tmp_path: Path) -> None:
    killed_and_resumed(tmp_path, 20, 5, 1, 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(many(5)))
def test_many_kills(tmp_path: Path, seed: int) -> None:
    killed_and_resumed(tmp_path, 60, 8, 8, seed)


@pytest.mark.slow
def test_a_hundred_contexts_lose_nothing_where_the_service_fails(tmp_path: Path) -> None:
    options = ("--rate", "0.05", "--faults", "500,reset,length,json_cut,html_502")
    with served(tmp_path, *options, module="support.review_server") as server:
        running = child(server, tmp_path, 100, 20)
        _, said = running.communicate(timeout=300)
        assert running.returncode == 0, said
        assert len(server.asked) == 2_000
    results = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert [result["index"] for result in results] == list(range(100))
    assert all(
        {name: count for name, count in result["counts"].items() if count}
        == {"reviews": 20, "kept": 20, "extracted": 20}
        for result in results
    )
    assert all(result["outputs"]["N"] == 20 for result in results)
