"""``knotwork seed run --batch`` through the real SDKs, against a server with the batch API."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from support.batch_server import BatchServer, in_thread
from support.cafe_seed import lines
from support.command import Result, call, environment
from support.folders import TESTS
from support.review_server import answer_review, contexts
from support.seeds import SEED as FOOD
from support.served import until

ARGS = ("seed", "run", "food.seed.json", "food.jsonl")


@pytest.fixture(autouse=True)
def quick(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_BATCH_POLL", "0.01")
    (folder / "food.seed.json").write_text(json.dumps(FOOD))
    (folder / "food.jsonl").write_text(lines(contexts(3, 4)))


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with in_thread(BatchServer(answer=answer_review)) as server:
        yield server


def run(server: BatchServer, *more: str) -> Result:
    return call(*ARGS, "--llm", f"{server.url}#m", *more)


def results(text: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in text.splitlines()]
    return [{key: value for key, value in each.items() if key not in ("usage", "cost", "calls")} for each in found]


def the_run(folder: Path) -> str:
    """Return the id of the run with a batch."""
    (found,) = (each.parent.name for each in (folder / "knotwork" / "runs").glob("*/batch-1.jsonl"))
    return found


@pytest.mark.slow
def test_a_run_with_a_batch_gives_the_results_of_a_live_run(folder: Path, server: BatchServer) -> None:
    live = run(server, "--no-cache")
    assert (live.code, len(server.live)) == (0, 12), live.err
    batch = run(server, "--batch")
    assert (batch.code, len(server.live), len(server.batches)) == (0, 12, 1), batch.err
    assert results(batch.out) == results(live.out)
    assert "batch 1: completed, 12 of 12 requests answered" in batch.err
    assert "batches: 1, 12 requests, 132 + 84 tokens" in batch.err
    again = run(server, "--batch")
    assert (again.code, len(server.live), len(server.batches)) == (0, 12, 1), "all answers are in the cache"
    assert results(again.out) == results(live.out)


def place(number: int) -> Callable[[str], bool]:
    return lambda prompt: f"place {number}" in prompt


@pytest.mark.slow
def test_what_a_batch_leaves_open_goes_into_the_next(folder: Path, server: BatchServer) -> None:
    live = run(server, "--no-cache")
    server.expires, server.fails, server.loses = place(0), place(1), lambda prompt: "place 2, visit 1" in prompt

    def after_create(count: int) -> None:
        if count == 2:
            server.expires = server.fails = server.loses = ()

    server.after_create = after_create
    done = run(server, "--batch")
    assert (done.code, len(server.batches)) == (0, 2), done.err
    assert "batch 2: 9 requests" in done.err
    assert results(done.out) == results(live.out)


@pytest.mark.slow
def test_after_three_batches_what_is_open_fails_or_is_made_live(folder: Path, server: BatchServer) -> None:
    whole = run(server, "--no-cache")
    server.live.clear()
    server.expires = place(1)
    done = run(server, "--batch", "-o", "r.jsonl")
    assert (done.code, len(server.batches), server.live) == (4, 3, []), done.err
    assert "4 requests are open and fail" in done.err
    found = [json.loads(line) for line in (folder / "r.jsonl").read_text().splitlines()]
    assert [each["counts"]["failed"] for each in found] == [0, 4, 0]
    assert "no batch has answered this call: This request could not be" in found[1]["extractions"][0]["failed"]
    args = (*ARGS, "--resume", the_run(folder), "-o", "s.jsonl")
    again = call(*args)
    assert (again.code, len(server.batches), server.live) == (4, 3, []), "a run has three batches"
    live = call(*args, "--finish-live", "--force")
    assert (live.code, len(server.batches), len(server.live)) == (0, 3, 4), live.err
    assert results((folder / "s.jsonl").read_text()) == results(whole.out)


@pytest.mark.slow
def test_a_run_ends_without_waiting_and_is_resumed(folder: Path, server: BatchServer) -> None:
    whole = run(server, "--no-cache")
    server.polls = 2
    begun = run(server, "--batch", "--no-wait", "-o", "r.jsonl")
    assert begun.code == 0, begun.err
    assert "the batch batch-0 continues at the service" in begun.err
    command = next(line for line in begun.err.splitlines() if line.startswith("resume with: knotwork "))
    args = shlex.split(command.removeprefix("resume with: knotwork "))
    assert args[:4] == list(ARGS)
    waiting = call(*args, "--no-wait")
    assert (waiting.code, len(server.batches)) == (0, 1), waiting.err
    done = call(*args)
    assert (done.code, len(server.batches)) == (0, 1), done.err
    assert results((folder / "r.jsonl").read_text()) == results(whole.out)
    [row] = [each for each in call("runs", "--format", "json").json if each["run"] == the_run(folder)]
    assert row["tokens"] == 12 * 18


@pytest.mark.slow
def test_a_cancelled_batch_has_no_successor(folder: Path, server: BatchServer) -> None:
    server.polls = 1000
    run(server, "--batch", "--no-wait")
    name = the_run(folder)
    cancelled = call("runs", "cancel", name)
    assert (cancelled.code, cancelled.out) == (0, "cancelled: batch-0\n")
    other = call(*ARGS, "--resume", name, "--llm", "openai:m")
    assert other.code == 2
    assert "the run has batches of" in other.err
    done = call(*ARGS, "--resume", name)
    assert (done.code, len(server.batches), server.live) == (1, 1, []), done.err
    assert call("runs", "cancel", name).out == "the run has no batch that is running\n"
    assert call("runs", "cancel", "nothing").code == 2


@pytest.mark.slow
def test_the_budget_holds_for_the_worst_case_at_half_price(folder: Path, server: BatchServer) -> None:
    for limit in (("--max-calls", "11"), ("--max-tokens", "20000"), ("--max-cost", "0.01", "--price", "1/1")):
        refused = run(server, "--batch", *limit)
        assert (refused.code, server.batches) == (1, {}), refused.err
        assert "the batch " in refused.err
        assert "left" in refused.err
    need = re.search(r"may cost ([\d.]+) US", refused.err)
    assert need is not None
    cost = float(need[1])
    exact = run(server, "--batch", "--max-cost", f"{cost + 0.0002:.4f}", "--price", "1/1")
    assert (exact.code, len(server.batches)) == (0, 1), exact.err
    asked = json.loads(server.files["file-0"].splitlines()[0])["body"]
    assert asked["max_tokens"] == 1024, "the worst case is sent as a limit"
    assert f"${12 * 18 / 2e6:.4f} (half price)" in exact.err


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (("--llm", "local"), "local has no batch API"),
        (("--llm", "replay:x.jsonl"), "replay has no batch API"),
        (("--llm", "openai:m"), "OPENAI_API_KEY is not set"),
        (("--workers", "2"), "has no workers"),
        (("--no-cache",), "fills the cache"),
        (("--vote", "openai:a,openai:b"), "several models"),
    ],
)
def test_a_run_that_can_have_no_batch_is_refused(server: BatchServer, more: tuple[str, ...], reason: str) -> None:
    refused = call(*ARGS, "--batch", *(() if "--llm" in more else ("--llm", f"{server.url}#m")), *more)
    assert (refused.code, server.batches) == (2, {}), refused.err
    assert reason in refused.err


def test_options_without_a_batch_are_refused(folder: Path, server: BatchServer) -> None:
    for option in ("--no-wait", "--finish-live", "--batch-lost"):
        assert run(server, option).code == 2
    assert run(server, "--batch", "--dry-run").code == 2
    given = call("seed", "run", "food.seed.json", "-", "--batch", "--llm", f"{server.url}#m", stdin="{}")
    assert given.code == 2
    assert "stdin can be read once" in given.err
    assert not (folder / "knotwork" / "runs").exists()


@pytest.mark.slow
def test_a_server_without_batches_is_refused(folder: Path) -> None:
    with in_thread(BatchServer(has_batches=False)) as server:
        refused = run(server, "--batch")
    assert refused.code == 2, refused.err
    assert "the server has no batch API" in refused.err
    assert not (folder / "knotwork" / "runs").exists()


@pytest.mark.slow
def test_a_refused_parameter_is_left_out_of_the_next_batch(server: BatchServer) -> None:
    server.refused = {"temperature": "Unsupported parameter: 'temperature' is not supported with this model."}
    done = run(server, "--batch")
    assert (done.code, len(server.batches)) == (0, 2), done.err


@pytest.mark.slow
def test_a_batch_that_the_service_refuses_is_submitted_again_when_the_run_is_resumed(
    folder: Path, server: BatchServer
) -> None:
    server.invalid = "Enqueued token limit reached"
    refused = run(server, "--batch")
    assert refused.code == 1
    assert "the service refused the batch batch-0: Enqueued token limit reached" in refused.err
    server.invalid = ""
    done = call(*ARGS, "--resume", the_run(folder))
    assert (done.code, len(server.batches)) == (0, 2), done.err


@pytest.mark.slow
def test_a_submission_without_an_answer_is_not_repeated(server: BatchServer) -> None:
    server._faults.append("drop")
    done = run(server, "--batch")
    assert (done.code, len(server.batches)) == (0, 1), done.err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_killed_run_submits_no_batch_twice(folder: Path, server: BatchServer) -> None:
    whole = run(server, "--no-cache")
    kills = ((1, "after"), (3, "before"), (3, "after"), (4, "after"))  # tests/bench/bench_batches.py has all of them
    for number, (step, when) in enumerate(kills):
        home = folder / f"home{number}"
        server.batches.clear()
        args = [*ARGS, "--llm", f"{server.url}#m", "--batch"]
        child = subprocess.run(
            [sys.executable, "-m", "support.batch_child", str(step), when, *args],
            env=environment(home, KNOTWORK_BATCH_POLL="0.01", PYTHONPATH=str(TESTS)), cwd=folder, capture_output=True, timeout=60,
        )  # fmt: skip
        assert child.returncode == -9, child.stderr
        with mock.patch.dict(os.environ, {"KNOTWORK_HOME": str(home / "knotwork")}):
            (name,) = (each.name for each in (home / "knotwork" / "runs").iterdir())
            done = call(*ARGS, "--resume", name, "--batch")
        assert (done.code, len(server.batches)) == (0, 1), (step, when, done.err)
        assert results(done.out) == results(whole.out)
    assert len(server.live) == 12


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_leaves_the_batch_running(folder: Path, server: BatchServer) -> None:
    server.polls = 1_000_000
    command = [sys.executable, "-m", "knotwork", *ARGS, "--llm", f"{server.url}#m", "--batch"]
    with subprocess.Popen(
        command, env=environment(folder, KNOTWORK_BATCH_POLL="0.05"), cwd=folder, stderr=subprocess.PIPE
    ) as running:
        try:
            until(lambda: any(each["polls"] < 999_999 for each in server.batches.values()), 60)
            running.send_signal(signal.SIGINT)
            _, err = running.communicate(timeout=30)
        finally:
            running.kill()
    assert running.returncode == 130, err
    assert b"the batch batch-0 continues at the service" in err
    assert b"knotwork runs cancel" in err
    server.polls = 0
    server.batches["batch-0"]["polls"] = 0
    done = call(*ARGS, "--resume", the_run(folder))
    assert (done.code, len(server.batches)) == (0, 1), done.err
