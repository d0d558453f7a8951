"""Programs whose calls workers make give the results and the limits of those of one process; real processes and a real server."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest
from knotwork import gasl
from knotwork.runtime.errors import RequestError
from support.command import call, environment
from support.program_server import PROGRAM, graph_of
from support.served import Served, served, until
from support.worker_kills import Killer, children

pytestmark = pytest.mark.slow
SERVER = "support.program_server"
REFUSED = "http://127.0.0.1:9/v1#m"
NODES = 60
CALLS = NODES + NODES // 20


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "dishes.json"
    path.write_text(graph_of(NODES))
    (tmp_path / "dishes.gasl").write_text(PROGRAM)
    return path


def ran(graph: Path, spec: str, **options: Any) -> list[tuple[Any, ...]]:
    """The status, the value, the figures and the evidence of each command."""
    with gasl.open(graph, llm=spec, **options) as executor:
        return [
            (record.status, record.value, dict(record.summary), dict(record.provenance_summary))
            for record in executor.run_plan(PROGRAM)
        ]


def words(graph: Path, spec: str, *more: str) -> tuple[str, ...]:
    program = str(graph.with_suffix(".gasl"))
    return ("run", program, "--graph", str(graph), "--llm", spec, "--format", "json", "--max-concurrency", "8", *more)


def test_results_and_state_equal_those_of_one_process(tmp_path: Path, graph: Path) -> None:
    with served(tmp_path, module=SERVER) as server:
        alone = ran(graph, server.spec)
        calls = sum(server.asked.values())
        shared = ran(graph, server.spec, workers=2)
        assert calls == CALLS and sum(server.asked.values()) == 2 * calls
    assert shared == alone and [status for status, *_ in alone] == ["success"] * 3
    assert not children()


def test_a_limit_holds_and_cached_answers_are_not_requested_again(tmp_path: Path, graph: Path) -> None:
    with served(tmp_path, module=SERVER) as server:
        first = call(*words(graph, server.spec, "--workers", "2", "--max-calls", "20"))
        assert first.code == 1 and "the budget of 20 calls is used up" in first.err
        assert sum(server.asked.values()) == 20
        again = call(*words(graph, server.spec, "--workers", "2", "--max-calls", str(CALLS - 20)))
        assert again.code == 0, again.err
        assert sum(server.asked.values()) == CALLS == len(server.asked)
        alone = call(*words(graph, server.spec))
        assert sum(server.asked.values()) == CALLS
    assert again.json["value"] == alone.json["value"] and again.json["state"] == alone.json["state"]
    assert "(20 cached)" in again.err


def test_calls_that_exceeded_their_lease_are_counted_with_all_their_requests(tmp_path: Path) -> None:
    graph = tmp_path / "dishes.json"
    graph.write_text(graph_of(16))
    graph.with_suffix(".gasl").write_text(PROGRAM.rpartition("PROCESS")[0])
    with served(tmp_path, "--rate", "1", "--faults", "length", module=SERVER) as server:  # each prompt is asked twice
        found = call(*words(graph, server.spec, "--workers", "1", "--no-cache", "--max-calls", "60"))
        assert found.code == 0, found.err
        sent = sum(server.asked.values())
    assert 32 <= sent <= 60 and found.json["commands"][1]["metrics"]["calls"] == sent


def test_a_wrong_key_ends_the_calls(tmp_path: Path, graph: Path) -> None:
    with served(tmp_path, "--always", "401", module=SERVER) as server:
        found = call(*words(graph, server.spec, "--workers", "1", "--no-cache"))
        assert sum(server.asked.values()) <= 8
    assert found.code == 1 and "wrong_key" not in found.err.partition("401")[0] and "401" in found.err


def test_a_killed_worker_loses_no_answer_of_other_chunks(tmp_path: Path, graph: Path) -> None:
    def kill(server: Served) -> None:
        until(server.reached(20), 60)
        os.kill(children()[0].pid, signal.SIGKILL)

    with served(tmp_path, "--delay", "0.05", module=SERVER) as server:
        killer = threading.Thread(target=kill, args=(server,), daemon=True)
        killer.start()
        found = call(*words(graph, server.spec, "--workers", "2"))
        killer.join()
        assert len(server.asked) == CALLS and sum(server.asked.values()) <= CALLS + 4
        alone = call(*words(graph, server.spec))
    assert found.code == 0 and "warning: a worker died (killed by signal 9)" in found.err
    assert found.json["value"] == alone.json["value"] and found.json["state"] == alone.json["state"]


def test_a_call_that_kills_its_workers_fails_alone(tmp_path: Path) -> None:
    graph = tmp_path / "two.json"
    graph.write_text(graph_of(2).replace("Dish number 1.", "Poison."))
    text = PROGRAM.rpartition("PROCESS")[0]
    with served(tmp_path, "--delay", "0.3", module=SERVER) as server:
        killer = Killer(lambda: sum(count for prompt, count in server.asked.items() if "Poison" in prompt))
        killer.start()
        with gasl.open(graph, llm=server.spec, workers=1, max_concurrency=1) as executor:
            rated = executor.run_plan(text)[-1]
        killer.is_over.set()
        killer.join()
    assert rated.status == "partial" and [each["id"] for each in rated.value] == ["d0"]
    assert "its worker died 4 times (killed by signal 9)" in str(rated.error) and killer.kills == 4


def start(graph: Path, spec: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "knotwork", *words(graph, spec, "--workers", "2")]
    return subprocess.Popen(
        command,
        cwd=graph.parent,
        env=environment(graph.parent),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_driver_that_ends_leaves_no_worker_and_its_answers_are_cached(
    tmp_path: Path, graph: Path, end: signal.Signals
) -> None:
    with served(tmp_path, "--delay", "0.1", module=SERVER) as server:
        driver = start(graph, server.spec)
        until(server.reached(24), 60)
        orphans = children(driver.pid)
        driver.send_signal(end)
        driver.communicate(timeout=60)
        assert orphans and not psutil.wait_procs(orphans, timeout=20)[1]
        assert driver.returncode == (130 if end == signal.SIGINT else -signal.SIGKILL)
        assert len(server.asked) < CALLS
        again = start(graph, server.spec)
        _, said = again.communicate(timeout=120)
        assert again.returncode == 0, said
        assert len(server.asked) == CALLS and sum(server.asked.values()) <= CALLS + 8


def test_calls_run_on_ray(tmp_path: Path, graph: Path) -> None:
    pytest.importorskip("ray")
    with served(tmp_path, module=SERVER) as server:
        shared = ran(graph, server.spec, workers=1, engine="ray")
        assert sum(server.asked.values()) == CALLS
        assert shared == ran(graph, server.spec)


def test_commands_that_can_not_be_distributed_are_refused(tmp_path: Path, graph: Path) -> None:
    for more, said in (
        (
            ("--llm", f"record:a.json,{REFUSED}", "--workers", "2"),
            "--workers: several workers can't record one cassette",
        ),
        (("--workers", "9"), "--max-concurrency: 8 concurrent calls can't be divided among 9 workers"),
        (("--engine", "ray"), "--engine: the number of workers is not given"),
        (
            ("--llm", "replay:a.json", "--workers", "2", "--engine", "ray"),
            "--engine: a cassette is a file of this machine",
        ),
    ):
        refused = call(*words(graph, REFUSED), *more)
        assert refused.code == 2 and said in refused.err, refused.err
    script = tmp_path / "a.lwt"
    script.write_text('(final)=LLM("Hello")\n')
    refused = call("run", script, "--workers", "2", "--llm", REFUSED)
    assert refused.code == 2 and "--workers applies only to programs, plans and --each" in refused.err
    with pytest.raises(RequestError, match="a worker can't use a custom client"):
        gasl.open(graph, llm=object(), workers=2)
