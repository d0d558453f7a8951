"""``knotwork seed run --batch`` with Anthropic's batch API, whose batches have no marks: they are found by time and size."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.batch_server import in_thread
from support.cafe_seed import lines
from support.command import Result, call, environment
from support.folders import TESTS
from support.message_batch_server import MessageBatchServer
from support.review_server import answer_review, contexts
from support.seeds import SEED as FOOD

from .test_seed_batches import ARGS, place, results, the_run

KEY = "sk-ant-test-0123456789abcdef"


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MessageBatchServer]:
    (folder / "food.seed.json").write_text(json.dumps(FOOD))
    (folder / "food.jsonl").write_text(lines(contexts(3, 4)))
    with in_thread(MessageBatchServer(answer=answer_review)) as server:
        for name, value in (
            ("KNOTWORK_BATCH_POLL", "0.01"),
            ("ANTHROPIC_BASE_URL", server.url),
            ("ANTHROPIC_API_KEY", KEY),
        ):
            monkeypatch.setenv(name, value)
        yield server


def run(*more: str) -> Result:
    return call(*ARGS, "--llm", "anthropic:m", *more)


@pytest.mark.slow
def test_a_run_with_batches_gives_the_results_of_a_live_run(folder: Path, server: MessageBatchServer) -> None:
    live = run("--no-cache")
    assert (live.code, len(server.live)) == (0, 12), live.err
    server.expires, server.fails, server.loses = place(0), place(1), lambda prompt: "place 2, visit 1" in prompt

    def after_create(count: int) -> None:
        if count == 2:
            server.expires = server.fails = server.loses = ()

    server.after_create = after_create
    done = run("--batch")
    assert (done.code, len(server.live)) == (0, 12), done.err
    assert {id: len(found) for id, found in server.requests.items()} == {"msgbatch_0": 12, "msgbatch_1": 9}
    assert results(done.out) == results(live.out)
    assert not any(KEY in file.read_text() for file in (folder / "knotwork" / "runs").rglob("*.jsonl"))


@pytest.mark.slow
def test_a_cancelled_batch_has_no_successor(folder: Path, server: MessageBatchServer) -> None:
    server.polls = 1000
    begun = run("--batch", "--no-wait")
    assert begun.code == 0, begun.err
    assert call("runs", "cancel", the_run(folder)).out == "cancelled: msgbatch_0\n"
    done = call(*ARGS, "--resume", the_run(folder))
    assert (done.code, len(server.batches), server.live) == (1, 1, []), done.err


def killed(folder: Path, step: str, when: str) -> str:
    """Run until the process kills itself, and return the id of the run."""
    named = {name: os.environ[name] for name in ("KNOTWORK_BATCH_POLL", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")}
    child = subprocess.run(
        [sys.executable, "-m", "support.batch_child", step, when, *ARGS, "--llm", "anthropic:m", "--batch"],
        env=environment(folder, PYTHONPATH=str(TESTS), **named), cwd=folder, capture_output=True, timeout=60,
    )  # fmt: skip
    assert child.returncode == -9, child.stderr
    return the_run(folder)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_killed_submission_is_found_by_time_and_size(folder: Path, server: MessageBatchServer) -> None:
    name = killed(folder, "2", "before")  # the batch is made, and its id is not noted
    assert len(server.batches) == 1
    done = call(*ARGS, "--resume", name)
    assert (done.code, len(server.batches)) == (0, 1), done.err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_where_time_and_size_do_not_decide_the_user_does(folder: Path, server: MessageBatchServer) -> None:
    name = killed(folder, "1", "after")  # the intent is noted, and no batch is made
    assert not server.batches
    others = [[{**each, "custom_id": f"other-{n}"} for each in REQUESTS * 12] for n in range(2)]
    for other in others:
        server.add(other)
    unclear = call(*ARGS, "--resume", name)
    assert (unclear.code, len(server.batches)) == (1, 2), unclear.err
    assert "2 batches may be this batch: msgbatch_1, msgbatch_0" in unclear.err
    assert "--batch-id ID" in unclear.err
    wrong = call(*ARGS, "--resume", name, "--batch-id", "msgbatch_0")
    assert (wrong.code, len(server.batches)) == (1, 2), wrong.err
    assert "it is the batch of another run" in wrong.err
    assert call("runs", "cancel", name).code == 1
    done = call(*ARGS, "--resume", name, "--batch-lost")
    assert (done.code, len(server.batches)) == (0, 3), done.err


REQUESTS = [{"params": {"model": "m", "messages": [{"role": "user", "content": "```\nThe food.\n```"}]}}]
