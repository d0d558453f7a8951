"""Evaluations with workers give the report, the record and the limits of those without; real worker processes and a real server."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest
from knotwork import evals
from knotwork.runtime.errors import RequestError
from knotwork.runtime.loops.evaluate.call_record import load
from support.command import call, environment
from support.evaluations import SEED as RATING
from support.evaluations import contexts as rated
from support.evaluations import gold_rows, write_files
from support.review_server import contexts
from support.seeds import SEED
from support.served import Served, served, until

REFUSED = "http://127.0.0.1:9/v1#m"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))


def gold(count: int, reviews: int) -> list[dict[str, Any]]:
    """Labels of fields of reviews and, in the last context, of an output."""
    rows = [
        {"context": f"Café {place}", "review": number, "severity": "mild", "people": 2 + number, "VERDICT": ""}
        for place in range(count - 1)
        for number in range(reviews)
    ]
    return [*rows, {"context": f"Café {count - 1}", "review": "", "severity": "", "people": "", "VERDICT": "bad"}]


def evaluated(count: int, reviews: int, **settings: Any) -> evals.EvaluationReport:
    given: dict[str, Any] = {"cache": False, "max_concurrency": 8, "max_failed": 1.0, **settings}
    return evals.run_sync(SEED, gold(count, reviews), contexts=contexts(count, reviews), **given)


def compared(report: evals.EvaluationReport) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The report and its rows without times and names of runs."""
    made, rows = report.as_json(), [dict(row) for row in report.rows()]
    for name in ("seconds", "run"):
        del made[name]
    for candidate in made["candidates"].values():
        del candidate["run"]["seconds"]
    for row in rows:
        row.pop("seconds", None)
        for answer in row.get("answers", {}).values():
            answer.pop("seconds", None)
    return made, rows


@pytest.mark.slow
def test_the_report_equals_that_of_one_process(tmp_path: Path) -> None:
    with served(tmp_path, module="support.review_server") as server:
        url = server.spec.partition("#")[0]
        candidates = {
            "one": {"llm": f"{url}#one"},
            "votes": {"llm": f"{url}#a", "options": {"vote": [f"{url}#a", f"{url}#b"], "escalate": f"{url}#c"}},
        }
        alone = evaluated(5, 3, candidates=candidates, repeat=2)
        calls = sum(server.asked.values())
        shared = evaluated(5, 3, candidates=candidates, repeat=2, workers=2)
        assert sum(server.asked.values()) == 2 * calls
    assert compared(shared) == compared(alone)
    assert alone["one"].figures.calls == 30 and alone["votes"].figures.calls >= 60


@pytest.mark.slow
def test_a_limit_is_kept_and_a_resumed_evaluation_repeats_no_call(tmp_path: Path) -> None:
    with served(tmp_path, module="support.review_server") as server:
        first = evaluated(9, 5, llm=server.spec, record=True, max_calls=20, workers=2)
        assert first.status == "stopped" and first["model"].figures.calls == 20 == sum(server.asked.values())
        assert "the budget of 20 calls is used up" in first.reason
        path = first.path
        assert path is not None and load(path).answered_calls == 20
        again = evaluated(9, 5, llm=server.spec, resume=path, max_calls=0, workers=2)
        assert (again["model"].figures.reused, again["model"].figures.calls) == (20, 20)
        whole = evaluated(9, 5, llm=server.spec, resume=path, workers=2)
        assert whole["model"].figures.reused == 20 and whole["model"].figures.calls == 45
        assert sum(server.asked.values()) == 45 == len(server.asked)
        alone = evaluated(9, 5, llm=server.spec, resume=path)  # without workers: nothing is left to ask
        assert sum(server.asked.values()) == 45 and alone["model"].figures.reused == 45
    assert [row["answers"] for row in map(strip, compared(whole)[1])] == [
        row["answers"] for row in map(strip, compared(alone)[1])
    ]


def strip(row: dict[str, Any]) -> dict[str, Any]:
    return {"answers": {name: {**answer, "cost": None} for name, answer in row.get("answers", {}).items()}}


@pytest.mark.slow
def test_a_worker_that_dies_loses_no_answer_of_other_chunks(tmp_path: Path) -> None:
    def kill(server: Served) -> None:
        until(server.reached(10), 60)
        found = [each for each in psutil.Process().children() if "adapters.engine.worker" in " ".join(each.cmdline())]
        os.kill(found[0].pid, signal.SIGKILL)

    with served(tmp_path, "--delay", "0.05", module="support.review_server") as server:
        killer = threading.Thread(target=kill, args=(server,), daemon=True)
        killer.start()
        report = evaluated(9, 5, llm=server.spec, workers=2, cache=tmp_path / "calls.sqlite")
        killer.join()
        assert len(server.asked) == 45 and sum(server.asked.values()) <= 45 + 4
    assert report.status == "complete"


@pytest.mark.slow
def test_a_cancelled_evaluation_keeps_the_answers_that_workers_have(tmp_path: Path) -> None:
    async def work(server: Served) -> evals.EvaluationReport:
        cancel = asyncio.Event()

        def cancel_after_thirty_calls() -> None:
            if server.reached(30)():
                cancel.set()
            else:
                asyncio.get_running_loop().call_later(0.02, cancel_after_thirty_calls)

        cancel_after_thirty_calls()
        return await evals.run(
            SEED, gold(21, 10), contexts=contexts(21, 10), llm=server.spec, cache=False, record=True, workers=2, cancel=cancel
        )  # fmt: skip

    with served(tmp_path, "--delay", "0.05", module="support.review_server") as server:
        report = asyncio.run(work(server))
        asked = sum(server.asked.values())
    assert report.status == "cancelled" and report.path is not None
    assert asked - 8 <= load(report.path).answered_calls <= asked < 210


@pytest.mark.slow
def test_the_command_distributes_and_refuses(folder: Path) -> None:
    write_files(folder)
    words = ("eval", "rating.seed.json", "gold.csv", "--contexts", "contexts.jsonl", "--no-cache", "--format", "json")
    with served(folder, module="support.review_server") as server:
        spec = ("--llm", server.spec)
        shared, alone = call(*words, *spec, "--workers", "2"), call(*words, *spec)
        assert shared.code == alone.code == 0, shared.err
        fields = [next(iter(each.json["candidates"].values()))["fields"] for each in (shared, alone)]
        assert fields[0] == fields[1] and sum(server.asked.values()) == 36
        few = call(*words, *spec, "--workers", "3", "--max-concurrency", "2")
    assert few.code == 2 and "--max-concurrency: 2 concurrent calls can't be divided among 3 workers" in few.err
    recorded = call(*words, "--llm", f"record:a.json,{REFUSED}", "--workers", "2")
    assert recorded.code == 2 and "--workers: several workers can't record one cassette" in recorded.err
    lonely = call(*words, *spec, "--ray-address", "auto")
    assert lonely.code == 2 and "--ray-address: the number of workers is not given" in lonely.err


@pytest.mark.slow
def test_workers_make_the_calls_of_a_script_and_of_a_ranking(tmp_path: Path) -> None:
    script, items = tmp_path / "words.lwt", tmp_path / "items.json"
    script.write_text('(first)=LLM("Say {(input)}.")\n(final)=LLM("Is {(first)} it?", type=int)\n')
    items.write_text(json.dumps([{"name": f"place {number}"} for number in range(4)]))
    words = [{"input": f"word {number}", "expect": 7} for number in range(12)]
    places = [{"request": f"a place for {number}", "relevant": ["place 1"]} for number in range(3)]
    with served(tmp_path) as server:
        for target, rows in ((script, words), (f"rank:{items}", places)):
            given: dict[str, Any] = {"llm": server.spec, "cache": False, "max_concurrency": 4, "max_failed": 1.0}
            alone = evals.run_sync(target, rows, **given)
            calls = sum(server.asked.values())
            shared = evals.run_sync(target, rows, **given, workers=2, record=True)
            assert sum(server.asked.values()) - calls == alone["model"].figures.calls > 0
            assert compared(shared) == compared(alone)
            resumed = evals.run_sync(target, rows, **given, workers=2, resume=shared.path)
            assert resumed["model"].figures.reused == shared["model"].figures.calls
            before = sum(server.asked.values())
            few = evals.run_sync(target, rows, **given, workers=2, max_calls=5)
            assert sum(server.asked.values()) - before == 5 and few.status == "stopped"
            server.log.write_text("")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "rows"),
    [
        ("ask:nx:les_miserables", [{"question": "Who has most neighbours?", "expect": "Valjean"}]),
        ("answer", [{"instruct": f"Say {number}.", "criteria": "It is short.", "human": 0.5} for number in range(3)]),
    ],
)
def test_workers_make_the_calls_of_questions_and_answers(
    tmp_path: Path, target: str, rows: list[dict[str, Any]]
) -> None:
    with served(tmp_path) as server:
        given: dict[str, Any] = {"llm": server.spec, "cache": False, "max_concurrency": 4, "max_failed": 1.0}
        alone = evals.run_sync(target, rows, **given)
        calls = sum(server.asked.values())
        shared = evals.run_sync(target, rows, **given, workers=2)
        assert sum(server.asked.values()) == 2 * calls > 0
    assert compared(shared) == compared(alone)


@pytest.mark.slow
def test_an_evaluation_runs_on_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    with served(tmp_path, module="support.review_server") as server:
        alone = evaluated(3, 3, llm=server.spec)
        shared = evaluated(3, 3, llm=server.spec, workers=1, engine="ray")
        assert sum(server.asked.values()) == 18
    assert compared(shared) == compared(alone)


@pytest.mark.slow
def test_a_killed_driver_is_resumed(folder: Path) -> None:
    count, reviews = 15, 5
    (folder / "a.seed.json").write_text(json.dumps(SEED))
    for name, rows in (("gold", gold(count + 1, reviews)[:-1]), ("c", contexts(count, reviews))):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    words = ["eval", "a.seed.json", "gold.jsonl", "--contexts", "c.jsonl", "--format", "json", "--workers", "2"]
    with served(folder, "--delay", "0.05", module="support.review_server") as server:
        command = [sys.executable, "-m", "knotwork", *words, "--llm", server.spec, "--max-concurrency", "8"]
        driver = subprocess.Popen(command, cwd=folder, env=environment(folder), stderr=subprocess.DEVNULL)
        until(server.reached(30), 60)
        orphans = psutil.Process(driver.pid).children()
        driver.kill()
        driver.wait()
        assert not psutil.wait_procs(orphans, timeout=20)[1] and len(server.asked) < count * reviews
        (run,) = (folder / "knotwork" / "runs").iterdir()
        again = subprocess.run(
            [sys.executable, "-m", "knotwork", "eval", "--resume", run.name, "--workers", "2", "--format", "json"],
            cwd=folder, env=environment(folder), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert again.returncode in (0, 1), again.stderr
        assert len(server.asked) == count * reviews and sum(server.asked.values()) <= count * reviews + 8
        alone = evals.run_sync(
            SEED, gold(count + 1, reviews)[:-1], contexts=contexts(count, reviews), llm=server.spec, cache=False
        )
    made = next(iter(json.loads(again.stdout)["candidates"].values()))
    assert made["fields"] == alone.as_json()["candidates"]["model"]["fields"]


@pytest.mark.parametrize(
    ("target", "options", "parameter", "words"),
    [
        ("answer", {"workers": 2, "llm": object()}, "workers", "give the model as a spec"),
        (RATING, {"workers": 0}, "workers", "from 1 to 1,024"),
        (RATING, {"workers": 9}, "max_concurrency", "8 concurrent calls can't be divided among 9 workers"),
        (RATING, {"workers": 2, "llm": object()}, "workers", "give the model as a spec"),
        (RATING, {"workers": 2, "engine": "dask"}, "engine", "processes, ray"),
        (
            RATING,
            {"workers": 2, "candidates": {"v": {"llm": REFUSED, "options": {"escalate": "record:a,openai:m"}}}},
            "workers",
            "can't record one cassette",
        ),
    ],
)
def test_commands_that_can_not_be_distributed_are_refused(
    target: Any, options: dict[str, Any], parameter: str, words: str
) -> None:
    given: dict[str, Any] = {"cache": False, **options}
    if "candidates" not in given:
        given.setdefault("llm", REFUSED)
    rows = (
        [{"instruct": "Say yes", "criteria": "short", "answer": "yes", "accept": "true"}]
        if target == "answer"
        else gold_rows()
    )
    if target != "answer":
        given["contexts"] = rated()
    with pytest.raises(RequestError) as refused:
        evals.run_sync(target, rows, **given)
    assert refused.value.parameter == parameter and words in str(refused.value)
