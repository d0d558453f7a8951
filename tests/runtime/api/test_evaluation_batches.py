"""Evaluations of seeds by batches give the report of a live one; a real server of batches on loopback."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from knotwork import evals
from knotwork.adapters.llm import BudgetExceeded
from knotwork.runtime.api.seed_batches import BatchWaiting, cancel
from knotwork.runtime.errors import RequestError
from support.alone import alone_in
from support.batch_server import BatchServer, in_thread
from support.command import call, environment
from support.folders import TESTS
from support.review_server import answer_review, contexts
from support.seeds import SEED

CONTEXTS = contexts(3, 3)
GOLD: list[dict[str, Any]] = [
    {"context": f"Café {place}", "review": number, "severity": "mild"} for place in range(2) for number in range(3)
] + [{"context": "Café 2", "review": "", "VERDICT": "bad"}]
NOWHERE = "http://127.0.0.1:9/v1#m"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    alone_in(tmp_path, monkeypatch)
    monkeypatch.setenv("KNOTWORK_BATCH_POLL", "0.01")
    with in_thread(BatchServer(answer=answer_review)) as server:
        yield server


def evaluated(**settings: Any) -> evals.EvaluationReport:
    return evals.run_sync(SEED, GOLD, contexts=CONTEXTS, **{"max_failed": 1.0, **settings})


def prepared(folder: Path) -> tuple[str, ...]:
    """Write the files of the evaluation, and return the command without its model."""
    (folder / "a.seed.json").write_text(json.dumps(SEED))
    for name, rows in (("gold", GOLD), ("c", CONTEXTS)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return ("eval", "a.seed.json", "gold.jsonl", "--contexts", "c.jsonl", "--format", "json", "--max-failed", "1")


def answers(report: evals.EvaluationReport) -> list[Any]:
    found = [dict(row).get("answers", {}) for row in report.rows()]
    return [{name: {**each, "seconds": 0, "cost": None} for name, each in answer.items()} for answer in found]


def scores(report: evals.EvaluationReport) -> Any:
    return {name: each["fields"] for name, each in report.as_json()["candidates"].items()}


@pytest.mark.slow
def test_the_report_of_batches_is_that_of_calls(server: BatchServer) -> None:
    url = server.url
    given: dict[str, Any] = {"candidates": {"a": f"{url}#a", "b": f"{url}#b"}, "repeat": 2}
    live = evaluated(cache=False, **given)
    assert len(server.live) == 36
    batch = evaluated(batch=True, record=True, price=(1.0, 1.0), **given)
    assert (len(server.live), len(server.batches)) == (36, 2)
    assert scores(batch) == scores(live) and answers(batch) == answers(live)
    figures = [batch[name].figures for name in "ab"]
    assert [each.calls for each in figures] == [18, 18]
    tokens = [live[name].figures.prompt_tokens + live[name].figures.completion_tokens for name in "ab"]
    assert [each.prompt_tokens + each.completion_tokens for each in figures] == tokens
    assert [each.cost for each in figures] == [pytest.approx(count / 2e6) for count in tokens]


@pytest.mark.slow
def test_an_evaluation_ends_while_its_batches_continue(server: BatchServer, tmp_path: Path) -> None:
    url, server.polls = server.url, 3
    candidates = {"a": f"{url}#a", "b": f"{url}#b"}
    with pytest.raises(BatchWaiting) as caught:
        evaluated(candidates=candidates, batch=True, record=True, no_wait=True)
    assert sorted(caught.value.batches) == ["batch-0", "batch-1"]
    (run,) = (tmp_path / "knotwork" / "runs").iterdir()
    whole = evaluated(candidates=candidates, resume=run.name)
    assert whole.status == "complete" and (server.live, len(server.batches)) == ([], 2)
    assert cancel(run.name).batches == ()
    with pytest.raises(RequestError, match="workers"):
        evaluated(candidates=candidates, resume=run.name, workers=2)


@pytest.mark.slow
def test_the_batches_of_a_stored_evaluation_are_cancelled(server: BatchServer, tmp_path: Path) -> None:
    server.polls = 10_000
    with pytest.raises(BatchWaiting):
        evaluated(llm=f"{server.url}#a", batch=True, record=True, no_wait=True)
    (run,) = (tmp_path / "knotwork" / "runs").iterdir()
    assert cancel(run.name).batches == ("batch-0",)


@pytest.mark.slow
def test_a_limit_holds_for_the_batches_of_all_candidates(server: BatchServer) -> None:
    url = server.url
    with pytest.raises(BudgetExceeded, match="the batch has 9 calls; 1 of 10 are left"):
        evaluated(candidates={"a": f"{url}#a", "b": f"{url}#b"}, batch=True, record=True, max_calls=10)
    assert len(server.batches) <= 1 and not server.live


@pytest.mark.slow
def test_calls_that_batches_leave_open_fail_or_are_made_live(server: BatchServer) -> None:
    server.expires = lambda prompt: "place 0, visit 1." in prompt
    left = evaluated(llm=f"{server.url}#a", batch=True, record=True)
    assert len(server.batches) == 3 and not server.live
    made = left["model"].severity
    assert made.counts["failed"] == 1 and made.counts["answered"] == 5
    whole = evaluated(llm=f"{server.url}#a", resume=left.path, batch=True, finish_live=True)
    assert len(server.live) == 1 and whole["model"].severity.counts["answered"] == 6


@pytest.mark.slow
def test_the_command(server: BatchServer, tmp_path: Path) -> None:
    given = prepared(tmp_path)
    server.polls = 3
    waiting = call(*given, "--llm", f"{server.url}#a", "--batch", "--no-wait")
    assert waiting.code == 0 and not waiting.out
    assert "batch 1: 9 requests, submitted as batch-0" in waiting.err
    assert (
        "the batch batch-0 continues at the service" in waiting.err
        and "resume with: knotwork eval --resume" in waiting.err
    )
    (run,) = (tmp_path / "knotwork" / "runs").iterdir()
    whole = call("eval", "--resume", run.name, "--format", "json", "--max-failed", "1")
    assert whole.code == 0, whole.err
    assert "batch 1: submitted before as batch-0" in whole.err
    assert whole.json["candidates"][f"{server.url}#a"]["run"]["calls"] == 9 and not server.live
    for more, said in (
        (("--batch", "--dry-run"), "--dry-run estimates calls at full price"),
        (("--no-wait",), "--no-wait needs a run with batches"),
        (("--batch-lost",), "name the run with --resume"),
        (("--batch", "--workers", "2"), "--batch: a run with batches has no workers"),
        (("--batch", "--no-cache"), "--batch: a batch fills the cache"),
    ):
        refused = call(*given, "--llm", NOWHERE, *more)
        assert refused.code == 2 and said in refused.err, refused.err


@pytest.mark.slow
@pytest.mark.parametrize(("step", "when"), [(1, "after"), (3, "before"), (4, "after")])
def test_a_killed_evaluation_submits_no_batch_twice(server: BatchServer, tmp_path: Path, step: int, when: str) -> None:
    given = prepared(tmp_path)
    child = subprocess.run(
        [sys.executable, "-m", "support.batch_child", str(step), when, *given, "--llm", f"{server.url}#a", "--batch"],
        env=environment(tmp_path, KNOTWORK_BATCH_POLL="0.01", PYTHONPATH=str(TESTS)), cwd=tmp_path, capture_output=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert child.returncode == -9, child.stderr
    (run,) = (tmp_path / "knotwork" / "runs").iterdir()
    done = call("eval", "--resume", run.name, "--format", "json", "--max-failed", "1")
    assert (done.code, len(server.batches), server.live) == (0, 1, []), done.err
    assert done.json["candidates"][f"{server.url}#a"]["run"]["calls"] == 9


@pytest.mark.parametrize(
    ("target", "options", "reason"),
    [
        (SEED, {"record": False}, "no batch is submitted twice"),
        (SEED, {"cache": False}, "this run has none"),
        (SEED, {"llm": object()}, "a custom client has no batch API"),
        (SEED, {"llm": "replay:x"}, "replay has no batch API"),
        (SEED, {"candidates": {"v": {"llm": NOWHERE, "options": {"vote": [NOWHERE]}}}}, "several models"),
        ("answer", {}, "answer is not a seed"),
    ],
)
def test_targets_and_options_without_batches_are_refused(target: Any, options: dict[str, Any], reason: str) -> None:
    given = {"batch": True, "record": True, **({} if "candidates" in options else {"llm": NOWHERE}), **options}
    gold = GOLD
    if target == "answer":
        gold = [{"instruct": "Say yes", "criteria": "short", "answer": "yes", "accept": "true"}]
    else:
        given["contexts"] = CONTEXTS
    with pytest.raises(Exception, match=reason):
        evals.run_sync(target, gold, **given)
