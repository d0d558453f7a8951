"""How a server ends: runs under way get their grace, then are cancelled; whoever follows is told; what is finished is kept."""

import signal
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.command import cassette, silent_server
from support.served import served, until
from support.web import Address, reading, served_app

SCRIPT = {"script": '(final)=LLM("Say something")'}
ASKED = {
    "instruct": "x",
    "resp_format": "",
    "eval_crit": "",
    "judges": 0,
    "checks": ["contains:never there"],
    "iter_max": 3,
}


class Asking(threading.Thread):
    """A request that is under way in a thread of its own."""

    def __init__(self, at: Address, path: str, body: Any) -> None:
        super().__init__(daemon=True)
        self.at, self.path, self.body = at, path, body
        self.answer: httpx2.Response | None = None
        self.failed: Exception | None = None

    def run(self) -> None:
        try:
            with self.at.client() as client:
                self.answer = client.post(self.path, json=self.body)
        except Exception as error:
            self.failed = error

    def done(self) -> httpx2.Response:
        self.join(20)
        assert self.failed is None, self.failed
        assert self.answer is not None
        return self.answer


def closing(at: Address) -> bool:
    with at.client() as client:
        return client.get("/healthz").status_code == 503


@pytest.mark.slow
def test_without_runs_it_ends_at_once(tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with served_app(tmp_path, llm=cassette(tmp_path / "c.jsonl", {"": "x"})) as at:
            with at.client() as client:
                client.get("/healthz")  # and an idle connection is no reason to wait
                began = time.monotonic()
                assert at.stop(number) == 0
            assert time.monotonic() - began < 4
            assert "Traceback" not in "\n".join(at.said)


@pytest.mark.slow
def test_runs_under_way_finish_and_no_new_ones_begin(tmp_path: Path) -> None:
    with served(tmp_path, "--delay", "0.6") as model, served_app(tmp_path, llm=model.spec) as at:
        asking = Asking(at, "/scripts/run", SCRIPT)
        asking.start()
        until(model.reached(1))
        at.process.send_signal(signal.SIGTERM)
        until(lambda: closing(at))
        with at.client() as client:
            late = client.post("/scripts/run", json=SCRIPT)
        assert late.status_code == 503
        assert late.json()["type"] == "urn:knotwork:problem:shutting-down"
        assert late.headers["retry-after"]
        assert asking.done().status_code == 200
        assert at.process.wait(15) == 0
        assert any("1 run in progress" in line for line in at.said)


@pytest.mark.slow
def test_after_the_grace_runs_are_cancelled_and_told_so(tmp_path: Path) -> None:
    with silent_server() as (spec, asked), served_app(tmp_path, "--grace", "0.2", llm=spec) as at:
        with at.client() as client, client.stream("POST", "/scripts/run/stream", json=SCRIPT) as stream:
            assert asked.wait(20)
            asked.clear()
            asking = Asking(
                at, "/scripts/run", {"script": '(final)=LLM("Say something else")'}
            )  # the same is asked once
            asking.start()
            assert asked.wait(20)
            began = time.monotonic()
            at.process.send_signal(signal.SIGTERM)
            events = list(reading(stream))
        assert events[-1].name == "problem"
        assert events[-1].data["type"] == "urn:knotwork:problem:shutting-down"
        answer = asking.done()
        assert answer.status_code == 503
        assert answer.json()["run"]["status"] == "cancelled"
        assert at.process.wait(15) == 0
        assert time.monotonic() - began < 8


@pytest.mark.slow
def test_a_second_signal_cancels_at_once(tmp_path: Path) -> None:
    with silent_server() as (spec, asked), served_app(tmp_path, "--grace", "60", llm=spec) as at:
        asking = Asking(at, "/scripts/run", SCRIPT)
        asking.start()
        assert asked.wait(20)
        at.process.send_signal(signal.SIGINT)
        until(lambda: closing(at))
        began = time.monotonic()
        at.process.send_signal(signal.SIGINT)
        assert at.process.wait(10) == 130
        assert time.monotonic() - began < 6
        assert "Traceback" not in "\n".join(at.said)
        asking.join(5)


@pytest.mark.slow
def test_an_answer_under_way_keeps_its_finished_iterations(tmp_path: Path) -> None:
    """The second call is never answered; the first iteration is in the history after the end."""
    with (
        served(tmp_path, "--delay", "0.4") as model,
        served_app(tmp_path, "--grace", "0.1", "--history", "h.sqlite", llm=model.spec) as at,
    ):
        with at.client() as client, client.stream("POST", "/lab/generate-answer/stream", json=ASKED) as stream:
            events = []
            for event in reading(stream):
                events.append(event)
                if event.name == "iteration.finished" and event.data["iteration"] == 1:
                    at.process.send_signal(signal.SIGTERM)
        assert at.process.wait(15) == 0
        assert events[-1].name in ("result", "problem")
        run = events[0].data["run"]
    with (
        served_app(tmp_path, "--history", "h.sqlite", llm=cassette(tmp_path / "c.jsonl", {"": "x"})) as at,
        at.client() as client,
    ):
        kept = client.get(f"/lab/runs/{run}").json()
        assert kept["status"] in ("best", "interrupted")
        assert "iteration" in str(kept)
    with sqlite3.connect(tmp_path / "h.sqlite") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()


@pytest.mark.slow
def test_a_client_that_reads_nothing_does_not_keep_the_server(tmp_path: Path) -> None:
    with (
        silent_server() as (spec, asked),
        served_app(tmp_path, "--grace", "0.1", llm=spec) as at,
        at.client() as client,
        client.stream("POST", "/scripts/run/stream", json=SCRIPT),
    ):
        assert asked.wait(20)
        began = time.monotonic()
        assert at.stop() == 0
        assert time.monotonic() - began < 12
