"""The history of runs: what it keeps, what it does with a file that is damaged, busy or full, and how it ends what has no end."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from knotwork.runtime.interfaces.web.history import (
    HistoryError,
    Row,
    RunHistory,
    StoredEvaluation,
    StoredIteration,
    StoredRun,
)
from knotwork.runtime.interfaces.web.postgres_history import PostgresHistory
from knotwork.runtime.interfaces.web.sqlite_history import SqliteHistory
from support.answer_server import draft
from support.command import call, cassette
from support.lab import Lab, lab
from support.postgres import BINARIES, Server

NEEDS_POSTGRES = [
    pytest.mark.slow,
    pytest.mark.skipif(not BINARIES or find_spec("psycopg") is None, reason="PostgreSQL or psycopg is not installed"),
]


def row(number: int, owner: str = "me", **more: Any) -> Row:
    return Row(f"{number:032x}", owner, 1000.0 + number, "running", "", "m", f"Ask {number}.", 3, 0.8, **more)


def part(number: int, score: float | None = 0.5) -> StoredIteration:
    evaluation = None if score is None else {"score": score}
    return StoredIteration(number, number * 10, {"answer": f"Answer {number}.", "evaluation": evaluation})


Place = Path | str
"""The file of a history, or the URL of its database."""


@contextlib.asynccontextmanager
async def opened_history(place: Place, keep: int = 1000) -> AsyncIterator[Any]:
    history = PostgresHistory(place, keep) if isinstance(place, str) else SqliteHistory(place, keep)
    await history.open()
    try:
        yield history
    finally:
        await history.aclose()


def with_history(place: Place, work: Callable[[Any], Awaitable[Any]], keep: int = 1000) -> Any:
    async def run() -> Any:
        async with opened_history(place, keep) as history:
            return await work(history)

    return asyncio.run(run())


@pytest.fixture(scope="module")
def database() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=NEEDS_POSTGRES)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty history of each kind."""
    if request.param == "sqlite":
        return tmp_path / "new" / "h.db"
    server: Server = request.getfixturevalue("database")
    server.rows(
        "DROP TABLE IF EXISTS knotwork_iterations_1, knotwork_runs_1, knotwork_servers_1, knotwork_evaluations_1"
    )
    return server.url


def iterations(place: Place, request: pytest.FixtureRequest) -> int:
    """Return the number of all stored iterations."""
    if isinstance(place, str):
        return int(request.getfixturevalue("database").rows("SELECT count(*) FROM knotwork_iterations_1")[0][0])
    with contextlib.closing(sqlite3.connect(place)) as file:
        return int(file.execute("SELECT count(*) FROM iterations").fetchone()[0])


async def ended(history: RunHistory, one: Row) -> None:
    await history.add_run(one, {"instruct": one.instruct})
    await history.finish_run(evolve(one, status="best"), {"status": "best"})


def test_what_was_written_is_read_again(place: Place) -> None:
    async def write(history: RunHistory) -> None:
        await history.add_run(row(1), {"instruct": "Ask 1."})
        await history.add_iteration(row(1, iterations=1, score=0.5, best=0, last_event=10), part(1))
        done = row(1, iterations=1, score=0.5, best=0, seconds=2.5, calls=2, cost=0.25, last_event=12)
        await history.finish_run(evolve(done, status="best", stopped="cancelled"), {"warnings": ["so"]})

    async def read(history: RunHistory) -> None:
        found = await history.find("me", row(1).id)
        assert found is not None
        assert (found.row.status, found.row.stopped, found.row.score, found.row.best) == ("best", "cancelled", 0.5, 0)
        assert (found.row.seconds, found.row.calls, found.row.cost, found.row.last_event) == (2.5, 2, 0.25, 12)
        assert found.request == {"instruct": "Ask 1."}
        assert found.metadata == {"warnings": ["so"]}
        assert found.parts == (part(1),)
        assert await history.find("you", row(1).id) is None

    with_history(place, write)
    with_history(place, read)


def evaluation(number: int, owner: str = "me") -> StoredEvaluation:
    return StoredEvaluation(f"{number:032x}", owner, 1000.0 + number, "complete", "a\0b.seed.json", {"report": number})


def test_evaluations_are_read_again_by_their_owner_and_the_oldest_go(place: Place) -> None:
    async def write(history: RunHistory) -> None:
        for number in (1, 2, 3):
            await history.add_evaluation(evaluation(number))
        await history.add_evaluation(evaluation(4, "you"))

    async def read(history: RunHistory) -> None:
        listed, more = await history.evaluations("me", 1)
        assert more and listed == [evolve(evaluation(3), body=None)]
        listed, more = await history.evaluations("me", 5, before=evaluation(3).id)
        assert not more and [each.id for each in listed] == [evaluation(2).id]  # the first is beyond the limit
        assert await history.find_evaluation("me", evaluation(3).id) == evaluation(3)
        assert await history.find_evaluation("you", evaluation(3).id) is None
        assert not await history.delete_evaluation("you", evaluation(3).id)
        assert await history.delete_evaluation("me", evaluation(3).id)
        assert await history.find_evaluation("me", evaluation(3).id) is None

    with_history(place, write, keep=2)
    with_history(place, read, keep=2)


def test_only_the_user_reads_the_file(tmp_path: Path) -> None:
    with_history(tmp_path / "new" / "h.db", lambda history: history.page("me", 1))
    assert (tmp_path / "new" / "h.db").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_a_run_without_an_end_is_interrupted_and_what_it_finished_stands(place: Place) -> None:
    async def write(history: RunHistory) -> None:
        await history.add_run(row(1), {})
        await history.add_iteration(row(1, iterations=1, score=0.5, best=0), part(1))
        await ended(history, row(2))

    async def read(history: RunHistory) -> list[Row]:
        return (await history.page("me", 10))[0]

    with_history(place, write)
    newest, oldest = with_history(place, read)
    assert newest.status == "best"
    assert (oldest.status, oldest.score, oldest.best, oldest.iterations) == ("interrupted", 0.5, 0, 1)


async def test_pages_go_from_the_newest_to_the_oldest_also_where_runs_go_or_come_meanwhile(place: Place) -> None:
    async with opened_history(place) as history:
        for number in range(7):
            await ended(history, row(number))
        await ended(history, row(100, "you"))
        first, more = await history.page("me", 3)
        assert ([one.instruct for one in first], more) == (["Ask 6.", "Ask 5.", "Ask 4."], True)
        assert await history.delete_run("me", row(4).id)
        await ended(history, row(8))
        second, more = await history.page("me", 4, first[-1].id)
        assert ([one.instruct for one in second], more) == (["Ask 3.", "Ask 2.", "Ask 1.", "Ask 0."], False)
        assert await history.page("nobody", 3) == ([], False)


def test_the_oldest_runs_of_an_owner_go_when_there_are_too_many_but_none_under_way(
    place: Place, request: pytest.FixtureRequest
) -> None:
    async def work(history: RunHistory) -> None:
        await history.add_run(row(0), {})
        await history.add_iteration(row(0), part(1))
        await ended(history, row(50, "you"))
        for number in range(1, 6):
            await ended(history, row(number))
        kept = [one.instruct for one in (await history.page("me", 10))[0]]
        assert kept == ["Ask 5.", "Ask 4.", "Ask 3.", "Ask 0."]
        assert len((await history.page("you", 10))[0]) == 1

    with_history(place, work, keep=3)
    assert iterations(place, request) == 1


def test_a_deleted_run_takes_its_iterations_with_it(place: Place, request: pytest.FixtureRequest) -> None:
    async def work(history: RunHistory) -> None:
        await history.add_run(row(1), {})
        await history.add_iteration(row(1), part(1))
        assert not await history.delete_run("you", row(1).id)
        assert await history.delete_run("me", row(1).id)
        assert not await history.delete_run("me", row(1).id)

    with_history(place, work)
    assert iterations(place, request) == 0


async def test_a_run_that_is_stored_again_as_a_whole_replaces_what_is_there(place: Place) -> None:
    async with opened_history(place) as history:
        await history.add_run(row(1), {})
        await history.add_iteration(row(1, iterations=1), part(1))
        whole = StoredRun(row(1, iterations=2, last_event=20), {"instruct": "Ask 1."}, {}, (part(1), part(2)))
        await history.replace_run(whole, is_new=False)
        found = await history.find("me", row(1).id)
        assert found is not None and (found.row.iterations, found.parts) == (2, whole.parts)
        new = StoredRun(evolve(row(2), status="best"), {"instruct": "Ask 2."}, {"status": "best"}, (part(1),))
        await history.replace_run(new, is_new=True)
        await history.replace_run(new, is_new=True)  # the first attempt may have been committed without an answer
        assert await history.find("me", row(2).id) == new


async def test_a_run_that_does_not_exist_is_not_written(place: Place) -> None:
    async with opened_history(place) as history:
        for write in (history.add_iteration(row(1), part(1)), history.finish_run(row(1), {})):
            with pytest.raises(HistoryError, match="can't be written"):
                await write
        await history.add_run(row(1), {})
        with pytest.raises(HistoryError, match="can't be written"):
            await history.add_run(row(1), {})
        assert not await history.ask("me", row(1).id, "cancel")  # no other server has the run active


def test_one_server_at_a_time_has_a_history(tmp_path: Path) -> None:
    async def work(history: SqliteHistory) -> None:
        await history.add_run(row(1), {})
        other = SqliteHistory(tmp_path / "h.db", keep=1000)
        with pytest.raises(HistoryError, match="another server is using"):
            await other.open()
        assert (await history.page("me", 1))[0][0].status == "running"

    with_history(tmp_path / "h.db", work)
    with_history(tmp_path / "h.db", lambda history: history.page("me", 1))


@pytest.mark.slow
@pytest.mark.parametrize("what", ["garbage", "header", "page", "torn"])
def test_a_damaged_file_is_told_at_the_start_and_left_as_it_is(tmp_path: Path, what: str) -> None:
    path = tmp_path / "h.db"

    async def write(history: SqliteHistory) -> None:
        for number in range(30):
            await ended(history, row(number))

    with_history(path, write)
    body = bytearray(path.read_bytes())
    if what == "garbage":
        body = bytearray(b"this is no database, but somebody's text\n" * 200)
    elif what == "header":
        body[:16] = b"SQLite format 2\0"
    elif what == "page":
        body[4096:12288] = b"\xff" * 8192
    else:
        body = body[: len(body) // 2 // 4096 * 4096]
    path.write_bytes(body)
    with pytest.raises(HistoryError) as raised:
        with_history(path, lambda history: history.page("me", 1))
    assert "is damaged" in raised.value.message
    assert raised.value.hint == "move the file away; the server then creates a new one"
    assert path.read_bytes() == body


def test_another_database_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE treasure (gold)")
    file.close()
    before = path.read_bytes()
    with pytest.raises(HistoryError, match="is a database of another program"):
        with_history(path, lambda history: history.page("me", 1))
    assert path.read_bytes() == before


def test_a_later_version_is_not_touched(tmp_path: Path) -> None:
    with_history(tmp_path / "h.db", lambda history: history.page("me", 1))
    with sqlite3.connect(tmp_path / "h.db") as file:
        file.execute("PRAGMA user_version=2")
    file.close()
    with pytest.raises(HistoryError, match="has version 2, not 1"):
        with_history(tmp_path / "h.db", lambda history: history.page("me", 1))


def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HistoryError, match="can't be opened"):
        with_history(tmp_path / "file" / "h.db", lambda history: history.page("me", 1))


async def test_writes_that_come_together_share_a_transaction_and_one_that_fails_fails_alone(tmp_path: Path) -> None:
    async with opened_history(tmp_path / "h.db") as history:
        await history.add_run(row(1), {})
        writes = [history.add_iteration(row(1), part(number)) for number in (1, 2, 2, 3)]
        writes.append(history.add_iteration(row(2), part(1)))  # a run that was never begun
        done = await asyncio.gather(*writes, return_exceptions=True)
        assert [type(one) for one in done] == [type(None), type(None), HistoryError, type(None), HistoryError]
        found = await history.find("me", row(1).id)
        assert found is not None and [one.number for one in found.parts] == [1, 2, 3]


async def test_half_a_surrogate_pair_is_kept_as_something_that_is_text(place: Place) -> None:
    async with opened_history(place) as history:
        await history.add_run(evolve(row(1), instruct="with a NUL \0"), {})
        await history.add_iteration(row(1), StoredIteration(1, 5, {"answer": "half \ud800"}))
        found = await history.find("me", row(1).id)
        assert found is not None and found.parts[0].body == {"answer": "half ?"}
        assert found.row.instruct == "with a NUL \0"


# Where it can't be written the answer still comes.


async def full(history: SqliteHistory) -> None:
    """Leave no room in the file: what SQLite says then is what it says on a full disk."""
    file = history._file
    assert file is not None
    pages = file.execute("PRAGMA page_count").fetchone()[0]
    assert file.execute(f"PRAGMA max_page_count={pages}").fetchone()[0] == pages
    file.execute("PRAGMA wal_checkpoint(TRUNCATE)")


LONG = "A long instruction that needs pages of its own. " * 400


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    return lambda: [record.getMessage() for record in caplog.records if record.name == "knotwork.server"]


@pytest.mark.slow
def test_on_a_full_disk_the_answer_comes_with_a_warning(tmp_path: Path, warned: Any) -> None:
    async def run() -> None:
        async with lab(tmp_path) as server:
            await full(server.runs.history)
            response = await server.answer(f"{LONG}[[scores 0.4 0.9]]")
            assert response.status_code == 200
            told = response.json()
            assert told["final_answer"] == draft(2)
            assert told["metadata"]["warnings"] == [
                "the history can't be written: this run is not stored, or only partly stored"
            ]
            assert (await server.client.get("/lab/runs")).json()["runs"] == []
            assert (await server.client.get(response.headers["location"])).status_code == 404

    asyncio.run(run())
    (said,) = warned()
    assert "can't be stored for now: the history can't be written: database or disk is full" in said


@pytest.mark.slow
def test_a_run_that_could_not_be_kept_for_a_while_is_kept_whole_at_its_end(tmp_path: Path, warned: Any) -> None:
    async def run() -> None:
        async with lab(tmp_path) as server:
            await full(server.runs.history)
            async with server.stream(f"{LONG}[[scores 0.4 0.9]] [[delay 0.05]]") as events:
                async for event in events:
                    if event.name == "iteration.finished" and event.data["iteration"] == 1:
                        file = server.runs.history._file
                        assert file is not None
                        file.execute("PRAGMA max_page_count=1000000")
                    last = event
            assert last.name == "result"
            assert last.data["metadata"]["warnings"] == []
            run = last.data["metadata"]["run"]
            kept = (await server.client.get(f"/lab/runs/{run}")).json()
            assert kept["status"] == "accepted"
            assert kept["result"] == last.data
            assert [event.name for event in await server.events(run)] == ["run", *["iteration.finished"] * 2, "result"]

    asyncio.run(run())
    assert len(warned()) == 1


@pytest.mark.slow
def test_a_run_whose_end_could_not_be_written_is_an_interrupted_one(tmp_path: Path) -> None:
    async def run() -> None:
        async with lab(tmp_path) as server:
            server.runs.history._file.execute("PRAGMA busy_timeout=20")  # type: ignore[union-attr]
            other = sqlite3.connect(tmp_path / "history.db")
            async with server.stream("Explain it. [[scores 0.4 0.9]] [[delay 0.05]]") as events:
                async for event in events:
                    if event.name == "iteration.finished" and event.data["iteration"] == 1:
                        other.execute("BEGIN IMMEDIATE")
                    last = event
            assert last.data["metadata"]["status"] == "accepted"
            assert last.data["metadata"]["warnings"]
            run = last.data["metadata"]["run"]
            kept = (await server.client.get(f"/lab/runs/{run}")).json()
            assert (kept["status"], kept["iterations"], kept["score"]) == ("interrupted", 1, 0.4)
            assert (await server.client.get("/lab/runs")).json()["runs"][0]["status"] == "interrupted"
            assert [event.name for event in await server.events(run)] == ["run", "iteration.finished", "result"]
            other.close()
            assert (await server.client.delete(f"/lab/runs/{run}")).status_code == 204

    asyncio.run(run())


@pytest.mark.slow
def test_a_history_that_another_process_holds_costs_the_record_and_no_answer(tmp_path: Path, warned: Any) -> None:
    async def run() -> None:
        async with lab(tmp_path) as server:
            server.runs.history._file.execute("PRAGMA busy_timeout=20")  # type: ignore[union-attr]
            other = sqlite3.connect(tmp_path / "history.db")
            other.execute("BEGIN EXCLUSIVE")
            response = await server.answer("Explain it. [[scores 0.9]]")
            other.close()
            assert response.status_code == 200
            assert response.json()["metadata"]["warnings"]
            again = await server.answer("Explain it. [[scores 0.9]]")  # the next run is kept as ever
            assert again.json()["metadata"]["warnings"] == []
            assert len((await server.client.get("/lab/runs")).json()["runs"]) == 1

    asyncio.run(run())
    assert "database is locked" in warned()[0]


def test_a_history_that_can_not_be_read_is_told_without_its_insides(tmp_path: Path, warned: Any) -> None:
    async def run() -> None:
        async with lab(tmp_path) as server:
            server.runs.history._file.execute("DROP TABLE runs")  # type: ignore[union-attr]
            for path in ("/lab/runs", f"/lab/runs/{'0' * 32}", f"/lab/runs/{'0' * 32}/events"):
                response = await server.client.get(path)
                assert response.status_code == 503
                assert response.json()["type"] == "urn:knotwork:problem:history-unavailable"
                assert "runs" not in response.json().get("detail", "")
            assert (await server.answer("Explain it. [[scores 0.9]]")).status_code == 200

    asyncio.run(run())
    assert any("no such table" in said for said in warned())


async def asked_and_gone(server: Lab) -> str:
    told = (await server.answer("Explain it. [[scores 0.4 0.9]]")).json()
    return str(told["metadata"]["run"])


@pytest.mark.slow
def test_the_history_is_there_after_a_restart(tmp_path: Path) -> None:
    async def first() -> tuple[str, Any, Any]:
        async with lab(tmp_path) as server:
            run = await asked_and_gone(server)
            return run, (await server.client.get(f"/lab/runs/{run}")).json(), await server.events(run)

    async def second() -> None:
        run, kept, events = found
        async with lab(tmp_path) as server:
            assert (await server.client.get(f"/lab/runs/{run}")).json() == kept
            assert await server.events(run) == events
            (listed,) = (await server.client.get("/lab/runs")).json()["runs"]
            assert listed == {name: kept[name] for name in listed}

    found = asyncio.run(first())
    asyncio.run(second())


def test_serve_tells_of_a_damaged_history_and_ends(tmp_path: Path) -> None:
    (tmp_path / "h.db").write_text("somebody's notes\n" * 100)
    spec = cassette(tmp_path / "c.jsonl", {"": "x"})
    done = call("serve", "--history", tmp_path / "h.db", "--keys", tmp_path / "keys.json", "--port", "0", "--llm", spec)
    assert done.code == 1
    assert "the history is damaged" in done.err and "the server then creates a new one" in done.err
    assert "Traceback" not in done.err
