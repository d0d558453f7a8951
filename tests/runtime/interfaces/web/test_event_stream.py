"""Server-sent events of runs: their order, that nothing is told before it is kept, followers that go, come back, or are slow."""

import asyncio
import json
import socket
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from knotwork.runtime.events import CallFinished, CallStarted
from knotwork.runtime.interfaces.web import event_stream, live_runs
from knotwork.runtime.interfaces.web.answer_responses import GenerateAnswerResponse, RunResult
from knotwork.runtime.interfaces.web.event_stream import Stream, live_chunks
from support.lab import asking, lab, streamed
from support.web import Event

SCORES = "Explain it. [[scores 0.4 0.6 0.9]]"


def names(events: list[Event]) -> list[str]:
    return [event.name for event in events]


@pytest.mark.slow
async def test_events_come_in_order_numbered_from_one(tmp_path: Path) -> None:
    async with lab(tmp_path) as server, server.stream(SCORES) as stream:
        events = [event async for event in stream]
    assert [int(event.id) for event in events] == list(range(1, len(events) + 1))
    assert all(event.data.get("event", event.name) == event.name for event in events)
    told = [name for name in names(events) if not name.startswith("call.")]
    once = ["iteration.started", "candidate.written", "iteration.finished"]
    assert told == ["run", "answer.started", *once * 3, "answer.finished", "result"]
    assert names(events).count("call.started") == names(events).count("call.finished") == 6
    GenerateAnswerResponse.model_validate(events[-1].data)
    iterations = [event.data for event in events if event.name == "iteration.finished"]
    assert [each["result"] for each in iterations] == events[-1].data["iterations"]
    assert [(each["score"], each["accepted"]) for each in iterations] == [(0.4, False), (0.6, False), (0.9, True)]
    times = [event.data["at"] for event in events if "at" in event.data]
    assert times == sorted(times) and 0 <= times[0] <= times[-1] < 60
    assert not any("prompt" in event.data for event in events)


async def test_the_stream_says_where_the_run_is(tmp_path: Path) -> None:
    async with lab(tmp_path) as server:
        path = "/lab/generate-answer/stream"
        async with server.client.stream("POST", path, json=asking(SCORES)) as response:
            first = await anext(streamed(response))
            assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert response.headers["location"] == f"/lab/runs/{first.data['run']}"
            assert response.headers["x-accel-buffering"] == "no"
        assert first.data["model"] == "m"
        assert (first.data["iter_max"], first.data["score_threshold"]) == (3, 0.8)


async def test_an_iteration_is_kept_before_anybody_hears_of_it_and_so_is_the_end(tmp_path: Path) -> None:
    async with lab(tmp_path) as server, server.stream(SCORES) as stream:
        other = sqlite3.connect(server.path)
        async for event in stream:
            if event.name == "iteration.finished":
                query = "SELECT body FROM iterations WHERE number = ?"
                (body,) = other.execute(query, (event.data["iteration"],)).fetchone()
                assert json.loads(body) == event.data["result"]
            elif event.name == "result":
                assert other.execute("SELECT status FROM runs").fetchone() == ("accepted",)
            else:
                assert other.execute("SELECT count(*) FROM runs").fetchone() == (1,)
        other.close()


@pytest.mark.slow
async def test_a_run_goes_on_without_its_client_and_can_be_followed_again(tmp_path: Path) -> None:
    async with lab(tmp_path) as server:
        seen = []
        async with server.stream(f"{SCORES} [[delay 0.1]]") as stream:
            async for event in stream:
                seen.append(event)
                if event.name == "iteration.finished":
                    break
        rest = await server.events(seen[0].data["run"], int(seen[-1].id))
        assert [int(event.id) for event in seen + rest] == list(range(1, len(seen + rest) + 1))
        assert rest[-1].name == "result"
        assert names(rest).count("iteration.finished") == 2


@pytest.mark.slow
def test_several_follow_one_run_and_all_hear_the_same(tmp_path: Path) -> None:
    async def run() -> None:
        async with lab(tmp_path) as server:
            run = await server.begun(f"{SCORES} [[delay 0.05]]")
            first, second, third = await asyncio.gather(server.events(run), server.events(run), server.events(run, 4))
            assert first == second
            assert third == first[4:]

    asyncio.run(run())


@pytest.mark.slow
def test_a_run_that_is_over_is_told_from_the_history_under_the_same_numbers(tmp_path: Path) -> None:
    async def run() -> None:
        async with lab(tmp_path) as server:
            async with server.stream(SCORES) as stream:
                live = {int(event.id): event async for event in stream}
            run = live[1].data["run"]
            replayed = await server.events(run)
            assert names(replayed) == ["run", *["iteration.finished"] * 3, "result"]
            for event in replayed:
                told = {
                    name: value for name, value in live[int(event.id)].data.items() if name not in ("at", "seconds")
                }
                assert event.name == live[int(event.id)].name
                assert {name: event.data[name] for name in told} == told
            assert await server.events(run, 0) == replayed
            assert await server.events(run, int(replayed[1].id)) == replayed[2:]
            assert await server.events(run, int(replayed[2].id) - 1) == replayed[2:]
            done = await server.client.get(f"/lab/runs/{run}/events", headers={"Last-Event-ID": replayed[-1].id})
            assert done.status_code == 204  # so that an EventSource asks no more

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize("last", ["-1", "x", "1.5", "9" * 16])
def test_a_last_event_that_is_no_number_is_refused(tmp_path: Path, last: str) -> None:
    async def run() -> None:
        async with lab(tmp_path) as server:
            run = await server.begun(SCORES)
            response = await server.client.get(f"/lab/runs/{run}/events", headers={"Last-Event-ID": last})
            assert response.status_code == 422

    asyncio.run(run())


async def test_a_run_that_fails_ends_its_stream_with_the_problem(tmp_path: Path) -> None:
    async with lab(tmp_path) as server:
        async with server.stream("Explain it. [[judge fails always]]", iter_max=1) as stream:
            events = [event async for event in stream]
        assert events[-1].name == "problem"
        assert events[-1].data["type"] == "urn:knotwork:problem:no-answer"
        assert events[-1].data["run"] == events[0].data["run"]
        assert (await server.events(events[0].data["run"]))[-1] == events[-1]


@pytest.mark.slow
async def test_a_run_that_was_interrupted_tells_what_it_finished_whatever_the_client_has_seen(tmp_path: Path) -> None:
    async with lab(tmp_path) as server:
        async with server.stream(SCORES) as stream:
            ids = [int(event.id) async for event in stream]
        (listed,) = (await server.client.get("/lab/runs")).json()["runs"]
        file = server.runs.history._file
        assert file is not None
        # As a server that was killed while its last iteration was under way leaves it.
        file.execute("DELETE FROM iterations WHERE number = 3")
        query = "UPDATE runs SET status = 'interrupted', best = 1, score = 0.6, iterations = 2, last_event = ?, metadata = '{}'"
        file.execute(query, (ids[-4] - 7,))
        events = await server.events(listed["id"])
        assert names(events) == ["run", "iteration.finished", "iteration.finished", "result"]
        RunResult.model_validate(events[-1].data)
        assert events[-1].data["final_score"] == 0.6
        assert events[-1].data["success"] is False
        assert events[-1].data["metadata"]["status"] == "interrupted"
        assert events[-1].data["metadata"]["reason"] == "the server stopped before the run ended"
        (last,) = await server.events(listed["id"], ids[-1])  # it had seen more than was kept
        assert (last.name, int(last.id)) == ("result", ids[-1] + 1)


def test_who_goes_away_is_let_go_of(tmp_path: Path) -> None:
    async def run() -> None:
        async with lab(tmp_path) as server:
            before = len(asyncio.all_tasks())
            run = await server.begun("Explain it. [[delay 5]]")
            for _ in range(5):
                async with server.client.stream("GET", f"/lab/runs/{run}/events") as response:
                    await anext(streamed(response))
            await server.client.post(f"/lab/runs/{run}/cancel")
            await server.over(run)
            async with asyncio.timeout(60):
                while len(asyncio.all_tasks()) > before + 1:  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(0.01)

    asyncio.run(run())


LARGE = [f"Answer {number}. " + "word " * 60_000 for number in range(10)]


@pytest.mark.slow
async def test_a_reader_that_takes_nothing_holds_up_neither_the_run_nor_the_memory(
    tmp_path: Path, monkeypatch: Any
) -> None:
    most = 1_000_000
    monkeypatch.setattr(event_stream, "_LARGEST", most)
    monkeypatch.setattr(live_runs, "_LINGER", 0.0)

    play = {"when": "At length.", "answers": LARGE}
    async with lab(tmp_path, plays=[play]) as server:
        loop, body = (
            asyncio.get_running_loop(),
            json.dumps(asking("At length.", iter_max=10, judges=0, checks=["words:1..2"])),
        )
        host, port = server.url.removeprefix("http://").split(":")
        with socket.socket() as slow:
            slow.setblocking(False)
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            await loop.sock_connect(slow, (host, int(port)))
            head = f"POST /lab/generate-answer/stream HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            await loop.sock_sendall(slow, (head + body).encode())
            assert (await loop.sock_recv(slow, 100)).startswith(b"HTTP/1.1 200")
            (listed,) = (await server.client.get("/lab/runs")).json()["runs"]
            one = server.runs._live[listed["id"]]
            while one.task.done() is False:
                assert one.stream._size <= most or len(one.stream._kept) == 1
                await asyncio.sleep(0.005)
            assert (await server.over(listed["id"]))["iterations"] == 10
            assert server.runs._live == {}
            assert [told.name for told in one.stream._kept] == ["result"]
            rest = b""
            while piece := await loop.sock_recv(slow, 1 << 20):  # it reads on: what was lost is told, and the end comes
                rest += piece
        assert b"event: gap\n" in rest and b"event: result\n" in rest
        assert rest.index(b"event: gap\n") < rest.index(b"event: result\n")


# The stream by itself.


def told(count: int, text: str = "") -> Stream:
    made = Stream(time.perf_counter())
    for _ in range(count):
        made.append("note", {"text": text})
    return made


async def read(made: Stream, last: int = 0) -> list[tuple[int, str]]:
    return [(event.id, event.name) async for batch in made.after(last, 1.0) for event in batch]


def test_what_is_not_kept_any_more_is_a_gap_that_says_what_is_missing(monkeypatch: Any) -> None:
    monkeypatch.setattr(event_stream, "_MOST", 3)
    made = told(10)
    made.close()
    assert asyncio.run(read(made)) == [(7, "gap"), (8, "note"), (9, "note"), (10, "note")]
    assert asyncio.run(read(made, 5)) == [(7, "gap"), (8, "note"), (9, "note"), (10, "note")]
    assert asyncio.run(read(made, 7)) == [(8, "note"), (9, "note"), (10, "note")]
    assert asyncio.run(read(made, 10)) == asyncio.run(read(made, 99)) == []

    async def gap() -> Any:
        async for batch in made.after(2, 1.0):
            return json.loads(batch[0].data)

    assert asyncio.run(gap()) == {"event": "gap", "from": 3, "to": 7}


def test_bytes_are_bounded_and_the_newest_event_is_always_there(monkeypatch: Any) -> None:
    monkeypatch.setattr(event_stream, "_LARGEST", 1000)
    made = told(100, "x" * 90)
    assert made._size <= 1000
    made.append("result", {"text": "x" * 5000})
    made.close()
    assert asyncio.run(read(made)) == [(100, "gap"), (101, "result")]


def test_a_thinned_stream_has_its_end() -> None:
    made = told(5)
    made.close()
    made.thin()
    assert asyncio.run(read(made)) == [(4, "gap"), (5, "note")]


def test_where_nothing_happens_comments_keep_the_connection() -> None:
    async def run() -> list[bytes]:
        made, chunks = told(1), []
        async for chunk in live_chunks(made, 0, 0.01):
            chunks.append(chunk)
            if len(chunks) == 3:
                made.append("result", {})
                made.close()
        return chunks

    chunks = asyncio.run(run())
    assert chunks[0] == b'event: note\ndata: {"text":""}\nid: 1\n\n'
    assert chunks[1:3] == [b": ping\n\n"] * 2
    assert chunks[-1] == b"event: result\ndata: {}\nid: 2\n\n"


async def test_texts_with_all_kinds_of_ends_of_lines_come_whole(tmp_path: Path) -> None:
    asked = "One\r\ntwo\rthree\x85four\u2028five\u2029six\x00seven\x0b\x0c\x1e [[scores 1]]"

    async with lab(tmp_path) as server:
        async with server.stream(asked) as stream:
            events = [event async for event in stream]
        assert events[0].data["instruct"] == asked
        assert (await server.events(events[0].data["run"]))[0].data["instruct"] == asked
        assert (await server.client.get("/lab/runs")).json()["runs"][0]["instruct"] == asked


def test_prompts_and_the_texts_of_calls_are_left_out() -> None:
    made = told(0)
    made.emit(CallStarted("", "a long prompt"))
    made.emit(CallFinished("", "a long answer", 1, 1, None, False, 0.1))
    assert b"long" not in b"".join(event.data for event in made._kept)
