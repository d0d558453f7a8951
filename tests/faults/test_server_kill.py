"""kill -9 of ``knotwork serve`` during runs, again and again: what a client has heard of is in the history after the restart."""

import random
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.examples import many
from support.served import served, until
from support.web import Address, reading, served_app

RUNS = 4


class Reader(threading.Thread):
    """A client that asks for an answer and keeps what it hears until the connection breaks."""

    def __init__(self, server: Address, instruct: str) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.instruct = instruct
        self.run_id = ""
        self.finished: dict[int, tuple[int, dict[str, Any]]] = {}
        self.last = 0
        self.result: dict[str, Any] | None = None

    def run(self) -> None:
        asked = {"instruct": self.instruct, "resp_format": "", "eval_crit": "It is right.", "iter_max": 10}
        try:
            with (
                self.server.client() as client,
                client.stream("POST", "/lab/generate-answer/stream", json=asked) as response,
            ):
                for event in reading(response):
                    self.last = int(event.id)
                    if event.name == "run":
                        self.run_id = event.data["run"]
                    elif event.name == "iteration.finished":
                        self.finished[event.data["iteration"]] = self.last, event.data["result"]
                    elif event.name == "result":
                        self.result = event.data
        except httpx2.TransportError:
            pass  # it was killed


def killed_once(folder: Path, spec: str, chance: random.Random, kill: int, rounds: int) -> list[Reader]:
    """Start a server, let ``RUNS`` clients ask, and kill it at a random moment."""
    with served_app(folder, llm=spec) as server:
        readers = [Reader(server, f"Explain {kill} and {number}. [[scores 0.1 0.3 0.2]]") for number in range(RUNS)]
        for reader in readers:
            reader.start()
        wanted = chance.randrange(rounds)
        until(lambda: sum(len(reader.finished) for reader in readers) >= wanted)
        threading.Event().wait(chance.random() * 0.03)
        server.process.kill()
        server.process.wait(10)
        for reader in readers:
            reader.join(10)
    return readers


def check(client: httpx2.Client, reader: Reader) -> None:
    """Look for all that the client heard of."""
    if not reader.run_id:
        return
    response = client.get(f"/lab/runs/{reader.run_id}")
    assert response.status_code == 200, "a run that a client heard of is gone"
    found = response.json()
    iterations = {each["iteration_number"]: each for each in found["result"]["iterations"]}
    for number, (_, told) in reader.finished.items():
        assert iterations[number] == told
    assert sorted(iterations) == list(range(1, len(iterations) + 1))
    if reader.result is not None:
        assert found["result"] == reader.result
    elif found["status"] != "best":  # the end may have been kept and not told
        assert (found["status"], found["score"]) == ("interrupted", best(iterations))
        assert found["iterations"] == len(iterations)
    with client.stream("GET", f"/lab/runs/{reader.run_id}/events", headers={"Last-Event-ID": str(reader.last)}) as rest:
        missed = [] if rest.status_code == 204 else list(reading(rest))
    heard = {event.data["iteration"]: event.data["result"] for event in missed if event.name == "iteration.finished"}
    assert {number: told for number, (_, told) in reader.finished.items()} | heard == iterations
    assert not set(heard) & set(reader.finished)
    if reader.result is None:
        assert missed[-1].name == ("result" if iterations else "problem")


def best(iterations: dict[int, dict[str, Any]]) -> float | None:
    return max((each["evaluation"]["score"] for each in iterations.values()), default=None)


def killed_and_started_again(folder: Path, kills: int, seed: int) -> None:
    chance, readers = random.Random(seed), []
    with served(folder, "--delay", "0.02", module="support.answer_server") as models:
        for kill in range(kills):
            readers += killed_once(folder, models.spec, chance, kill, 3 if kills == 1 else 8 * RUNS)
        with served_app(folder, llm=models.spec) as server, server.client() as client:
            for reader in readers:
                check(client, reader)
            listed = client.get("/lab/runs", params={"limit": 100}).json()["runs"]
            assert {reader.run_id for reader in readers if reader.run_id} <= {one["id"] for one in listed}
            assert not any(one["status"] == "running" for one in listed)
            assert server.stop() == 0
    assert any(reader.finished for reader in readers) or kills == 1


@pytest.mark.slow
def test_after_a_kill_every_iteration_that_was_told_is_there(tmp_path: Path) -> None:
    killed_and_started_again(tmp_path, 1, 4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(many(5)))
def test_many_kills(tmp_path: Path, seed: int) -> None:
    killed_and_started_again(tmp_path, 6, seed)
