"""Runs of a script over rows with workers: real worker processes and a real model server."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from knotwork import lwt
from knotwork.runtime.errors import RequestError
from support.clients import Scripted
from support.command import call, environment
from support.served import served, until

SCRIPT = """\
(first)=LLM("Say {(input)}["word"].")
(loud)=CALL("up", text={(first)})
(second)=LLM("Is {(first)} it?", type=int)
(final)=JOIN(loud=[{(loud)}], second=[{(second)}])
"""
PLAIN = """(first)=LLM('Say {(input)}["word"].')\n(final)=LLM("Is {(first)} it?", type=int)\n"""
REFUSED = "http://127.0.0.1:9/v1#m"


def up(text: str) -> str:
    return text.upper()


def rows(count: int) -> list[dict[str, Any]]:
    return [{"id": number, "word": f"word {number}"} for number in range(count)]


def run(spec: Any, script: str = PLAIN, count: int = 8, **options: Any) -> lwt.RowRun:
    return lwt.run_each_sync(script, rows(count), llm=spec, **{"max_concurrency": 4, **options})


@pytest.mark.slow
def test_the_results_equal_those_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with served(tmp_path) as server:
        given: dict[str, Any] = {"script": SCRIPT, "functions": {"up": up}}
        alone = run(server.spec, **given)
        shared = run(server.spec, **given, workers=2, record=True)
        assert sum(server.asked.values()) == 32
        assert alone.status == shared.status == "complete"
        assert shared.table.to_dicts() == alone.table.to_dicts()
        few = run(server.spec, workers=2, max_calls=5, record=True)
        assert (sum(server.asked.values()), few.totals.calls) == (37, 5) and few.status in ("partial", "failed")
        assert "the budget of 5 calls is used up" in few.totals.stopped
        again = run(server.spec, workers=2, resume=few.totals.run_id)  # no answered call is repeated
        assert (sum(server.asked.values()), again.status) == (48, "complete")


@pytest.mark.slow
def test_a_killed_worker(folder: Path) -> None:
    (folder / "s.lwt").write_text(PLAIN)
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows(14)))
    words = ("run", "s.lwt", "--each", "rows.jsonl", "--out", "o.jsonl")
    with served(folder, "--delay", "0.05") as server:
        command = [
            sys.executable,
            "-m",
            "knotwork",
            *words,
            "--llm",
            server.spec,
            "--workers",
            "2",
            "--max-concurrency",
            "4",
        ]
        driver = subprocess.Popen(command, cwd=folder, env=environment(folder), stderr=subprocess.PIPE, text=True)
        until(server.reached(6), 60)
        os.kill(psutil.Process(driver.pid).children()[0].pid, signal.SIGKILL)
        _, said = driver.communicate(timeout=120)
        assert driver.returncode == 0, said
        assert len(server.asked) == 28 and sum(server.asked.values()) <= 28 + 8
        shared = [json.loads(line) for line in (folder / "o.jsonl").read_text().splitlines()]
        alone = run(server.spec, count=14).table
    assert [(each["id"], each["final"]) for each in shared] == [(each["id"], each["final"]) for each in alone]


@pytest.mark.parametrize(
    ("options", "parameter", "words"),
    [
        ({"workers": 0}, "workers", "from 1 to 1,024"),
        ({"workers": 5}, "max_concurrency", "4 concurrent calls can't be divided among 5 workers"),
        ({"workers": 2, "max_concurrency": "auto"}, "max_concurrency", "workers can't adapt it"),
        ({"workers": 2, "spec": Scripted({})}, "workers", "give the model as a spec"),
        ({"workers": 2, "spec": f"record:a,{REFUSED}"}, "workers", "can't record one cassette"),
        ({"workers": 2, "engine": "dask"}, "engine", "processes, ray"),
        ({"engine": "processes"}, "engine", "the number of workers is not given"),
    ],
)
def test_what_can_not_be_distributed_is_refused(options: dict[str, Any], parameter: str, words: str) -> None:
    with pytest.raises(RequestError) as refused:
        run(**{"spec": REFUSED, **options})
    assert refused.value.parameter == parameter and words in str(refused.value)


def test_the_command_refuses_before_a_run_is_stored(folder: Path) -> None:
    (folder / "s.lwt").write_text(PLAIN)
    (folder / "rows.jsonl").write_text(json.dumps(rows(1)[0]) + "\n")
    words = ("run", "s.lwt", "--llm", REFUSED, "--workers", "3")
    few = call(*words, "--each", "rows.jsonl", "--max-concurrency", "2")
    assert few.code == 2 and "--max-concurrency: 2 concurrent calls can't be divided among 3 workers" in few.err
    recorded = call("run", "s.lwt", "--each", "rows.jsonl", "--llm", f"record:a,{REFUSED}", "--workers", "2")
    assert recorded.code == 2 and "--workers: several workers can't record one cassette" in recorded.err
    assert not (folder / "knotwork").exists()
    (folder / "in.json").write_text(json.dumps(rows(1)[0]))
    single = call(*words, "-i", "in.json")
    assert single.code == 2 and "--workers applies only to programs, plans and --each" in single.err
