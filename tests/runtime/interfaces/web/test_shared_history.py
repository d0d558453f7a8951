"""Two ``knotwork serve`` processes with one history in a real PostgreSQL server: what one begins, the other lists, follows and ends."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.lab import asking
from support.postgres import BINARIES, Server
from support.served import Served, served, until
from support.web import Address, Event, reading, served_app

pytest.importorskip("psycopg", reason="the extra postgres is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BINARIES, reason="PostgreSQL is not installed in /usr/lib/postgresql"),
]
QUICK = "Explain it. [[scores 0.4 0.6 0.9]] [[delay 0.1]]"
LONG = "Explain it. [[scores 0.4 0.6]] [[delay 0.1 60]]"
"""The first iteration ends soon, the second one does not."""


@dataclass
class Two:
    """A database, a model server, and two servers that use both."""

    database: Server
    model: Served
    a: Address
    b: Address


@contextlib.contextmanager
def another(folder: Path, database: Server, model: Served, *options: str) -> Iterator[Address]:
    """Start a server with a home of its own."""
    folder.mkdir(exist_ok=True)
    url = database.url.replace(":hunter2", "")
    words = ["--history", url, "--no-cache", "--grace", "0.2", *options]
    with served_app(folder, *words, env={"PGPASSWORD": "hunter2"}, llm=model.spec) as at:
        yield at


@pytest.fixture(scope="module")
def database() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("model"), module="support.answer_server") as running:
        yield running


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, database: Server, model: Served) -> Iterator[Two]:
    folder = tmp_path_factory.mktemp("servers")
    with another(folder / "a", database, model) as a, another(folder / "b", database, model) as b:
        yield Two(database, model, a, b)


class Following(threading.Thread):
    """A client that begins a run, or follows one, in a thread of its own."""

    def __init__(self, at: Address, instruct: str = "", *, run: str = "", last: str = "") -> None:
        super().__init__(daemon=True)
        self.at, self.instruct, self.run_id, self.last = at, instruct, run, last
        self.events: list[Event] = []
        self.failed: Exception | None = None
        self.start()

    def run(self) -> None:
        path, more = f"/lab/runs/{self.run_id}/events", {"headers": {"Last-Event-ID": self.last or "0"}}
        method = "GET"
        if self.instruct:
            method, path, more = "POST", "/lab/generate-answer/stream", {"json": asking(self.instruct)}
        try:
            with self.at.client() as client, client.stream(method, path, **more) as response:
                for event in reading(response):
                    self.events.append(event)
        except httpx2.HTTPError as error:  # its server was killed
            self.failed = error

    def reached(self, name: str) -> bool:
        """Tell whether an event of this name has come."""
        return any(event.name == name for event in list(self.events))

    def all(self) -> list[Event]:
        """Wait for the end, and return the events."""
        self.join(30)
        assert not self.is_alive() and self.failed is None, (self.failed, self.events)
        return self.events

    @property
    def id(self) -> str:
        until(lambda: self.reached("run"))
        return str(self.events[0].data["run"])


def get(at: Address, path: str) -> Any:
    with at.client() as client:
        return client.get(path)


def status(at: Address, run: str) -> str:
    return str(get(at, f"/lab/runs/{run}").json().get("status"))


def begun(at: Address, instruct: str = LONG) -> Following:
    """Begin a run, and return it when its first iteration has ended."""
    client = Following(at, instruct)
    until(lambda: client.reached("iteration.finished"))
    return client


def iterations(events: list[Event]) -> list[int]:
    return [event.data["iteration"] for event in events if event.name == "iteration.finished"]


def test_a_run_at_one_server_is_listed_and_followed_at_the_other(two: Two) -> None:
    begun_at = Following(two.a, QUICK)
    followed = Following(two.b, run=begun_at.id)
    assert begun_at.id in {run["id"] for run in get(two.b, "/lab/runs").json()["runs"]}
    theirs, ours = begun_at.all(), followed.all()
    assert [event.name for event in ours] == ["run", *["iteration.finished"] * 3, "result"]
    numbered = {event.id: event for event in theirs}
    for event in ours:
        assert event.name == numbered[event.id].name
    assert [event.data for event in ours if event.name != "iteration.finished"] == [theirs[0].data, theirs[-1].data]
    assert get(two.b, f"/lab/runs/{begun_at.id}").json() == get(two.a, f"/lab/runs/{begun_at.id}").json()
    assert Following(two.b, run=begun_at.id, last=ours[1].id).all() == ours[2:]
    with two.b.client() as client:
        done = client.get(f"/lab/runs/{begun_at.id}/events", headers={"Last-Event-ID": theirs[-1].id})
    assert done.status_code == 204


def test_a_stream_that_began_at_one_server_goes_on_at_the_other_without_repeats(two: Two) -> None:
    client = begun(two.a, "Explain it. [[scores 0.4 0.6 0.9]] [[delay 0.1 0.5 0.5]]")
    seen = client.events[-1].id
    rest = Following(two.b, run=client.id, last=seen).all()
    assert all(int(event.id) > int(seen) for event in rest)
    assert rest[-1] == client.all()[-1]
    missed = [event for event in client.events if int(event.id) > int(seen)]
    assert iterations(rest) == iterations(missed)


def test_a_run_is_cancelled_at_the_other_server(two: Two) -> None:
    client = begun(two.a)
    assert status(two.b, client.id) == "running"
    followed = Following(two.b, run=client.id)
    with two.b.client() as other:
        assert other.post(f"/lab/runs/{client.id}/cancel").status_code == 202
    assert client.all()[-1].data["metadata"]["stopped"] == "cancelled"
    assert followed.all()[-1] == client.events[-1]
    assert status(two.b, client.id) == status(two.a, client.id) == "best"


def test_a_run_is_deleted_at_the_other_server(two: Two) -> None:
    client = begun(two.a)
    followed = Following(two.b, run=client.id)
    until(lambda: followed.reached("iteration.finished"))
    with two.b.client() as other:
        assert other.delete(f"/lab/runs/{client.id}").status_code == 204
        assert other.delete(f"/lab/runs/{client.id}").status_code == 404
    assert client.all()[-1].name == "result"
    end = followed.all()[-1]
    assert end.name == "result" or end.data["type"] == "urn:knotwork:problem:no-such-run"
    for at in (two.a, two.b):
        assert get(at, f"/lab/runs/{client.id}").status_code == 404
    assert two.database.rows("SELECT FROM knotwork_iterations_1 WHERE run = %s", client.id) == []


def test_nobody_sees_the_password(two: Two) -> None:
    for at in (two.a, two.b):
        assert b"hunter2" not in Path(f"/proc/{at.pid}/cmdline").read_bytes()
        assert "hunter2" not in "\n".join(at.said)


def test_a_server_that_ends_leaves_the_streams_of_others_to_be_followed_elsewhere(tmp_path: Path, two: Two) -> None:
    client = begun(two.a)
    with another(tmp_path / "c", two.database, two.model) as c:
        followed = Following(c, run=client.id)
        until(lambda: followed.reached("iteration.finished"))
        assert c.stop() == 0  # although a stream is open
        assert [event.name for event in followed.all()] == ["run", "iteration.finished"]
    with two.b.client() as other:
        other.post(f"/lab/runs/{client.id}/cancel")
    client.all()


def test_a_server_that_is_killed_and_a_database_that_stops(tmp_path: Path, two: Two) -> None:
    """One after the other: for a while after the database has stopped, a server does not judge others by their leases."""
    killed_server(tmp_path, two)
    stopped_database(two)


def killed_server(folder: Path, two: Two) -> None:
    """The runs of a killed server are interrupted, and no others."""
    b, database = two.b, two.database
    with another(folder / "d", database, two.model) as d:
        lost, own = begun(d), begun(b, f"{LONG} Mine.")
        followed = Following(b, run=lost.id)
        until(lambda: followed.reached("iteration.finished"))
        d.process.send_signal(signal.SIGKILL)
        d.process.wait(10)
    query = "SELECT server FROM knotwork_runs_1 WHERE id = %s"
    database.rows(
        "UPDATE knotwork_servers_1 SET until = now() - interval '1 s' WHERE id = %s", *database.rows(query, lost.id)[0]
    )
    assert status(b, lost.id) == "interrupted"
    end = followed.all()[-1]
    assert (end.name, end.data["metadata"]["status"]) == ("result", "interrupted")
    assert status(b, own.id) == status(two.a, own.id) == "running"
    until(lambda: database.rows("SELECT status FROM knotwork_runs_1 WHERE id = %s", lost.id) == [("interrupted",)])
    # A client that followed the run at the killed server gets the end here, whatever it has seen.
    (last,) = Following(b, run=lost.id, last="99").all()
    assert (last.name, last.id) == ("result", "100")
    with two.a.client() as client:
        assert client.delete(f"/lab/runs/{lost.id}").status_code == 204
        client.post(f"/lab/runs/{own.id}/cancel")
    assert own.all()[-1].data["metadata"]["stopped"] == "cancelled"


def stopped_database(two: Two) -> None:
    """A database that stops costs no answer; it is used again when it is back."""
    a, b = two.a, two.b
    client = begun(a, "Explain it. [[scores 0.4 0.6 0.9]] [[delay 0.1 1 60]]")
    followed = Following(b, run=client.id)
    until(lambda: followed.reached("iteration.finished"))
    two.database.stop()
    for at in (a, b):
        response = get(at, "/lab/runs")
        assert response.status_code == 503
        assert response.headers["retry-after"]
        assert response.json()["type"] == "urn:knotwork:problem:history-unavailable"
        assert "postgres" not in response.text
    assert get(a, f"/lab/runs/{client.id}").json()["status"] == "running"  # a server knows its own runs
    until(lambda: iterations(client.events) == [1, 2])
    until(lambda: all(any("can't be used for now" in line for line in at.said) for at in (a, b)))
    two.database.start()
    # The iteration that ended in between is stored as soon as the database is back, not only at the end of the run.
    until(lambda: iterations(followed.events) == [1, 2])
    with b.client() as other:
        assert other.post(f"/lab/runs/{client.id}/cancel").status_code == 202
    end = client.all()[-1]
    assert end.data["metadata"]["warnings"] == []
    assert followed.all()[-1] == end
    for at in (a, b):
        until(lambda at=at: any("can be used again" in line for line in at.said))  # type: ignore[misc]
        assert "hunter2" not in "\n".join(at.said) and "Traceback" not in "\n".join(at.said)
