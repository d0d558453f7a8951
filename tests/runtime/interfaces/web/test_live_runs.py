"""Runs belong to the server: their limits, cancelling, deleting, clients that go away, and the end of the server."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from knotwork.runtime.interfaces.http.access import LOCAL
from knotwork.runtime.interfaces.http.server import Limits
from knotwork.runtime.interfaces.web import live_runs
from knotwork.runtime.interfaces.web.answer_responses import RunDetail, RunsPage, RunSummary
from support.answer_server import draft
from support.lab import Lab, asking, lab

SLOW = "Explain it. [[delay 5]]"
THIRD = "Explain it. [[scores 0.4 0.6 0.5]] [[delay 0 0 5]]"
"""Two rounds are quick, the third is not."""


async def second_round(server: Lab, instruct: str = THIRD, **more: Any) -> str:
    """Begin a run and return its id when its second round is finished."""
    async with server.stream(instruct, **more) as events:
        async for event in events:
            if event.name == "run":
                run = event.data["run"]
            if event.name == "iteration.finished" and event.data["iteration"] == 2:
                return str(run)
    raise AssertionError("the run has no second round")


def test_a_cancelled_run_ends_at_once_with_the_best_answer_that_it_has(tmp_path: Path) -> None:
    async def run() -> None:
        async with lab(tmp_path) as server:
            run = await second_round(server)
            response = await server.client.post(f"/lab/runs/{run}/cancel")
            assert response.status_code == 202
            RunSummary.model_validate(response.json())
            async with asyncio.timeout(60):
                found = await server.over(run)
            assert (found["status"], found["stopped"], found["score"], found["iterations"]) == (
                "best",
                "cancelled",
                0.6,
                2,
            )
            assert found["result"]["final_answer"] == draft(2)
            again = await server.client.post(f"/lab/runs/{run}/cancel")  # is not a fault, and changes nothing
            assert (again.status_code, again.json()["status"]) == (202, "best")
            assert server.runs.gate.runs == 0

    asyncio.run(run())


async def test_who_waits_for_a_cancelled_run_gets_what_it_has(tmp_path: Path) -> None:
    async with lab(tmp_path) as server:
        for instruct, status in ((THIRD, 200), (SLOW, 502)):
            waiting = asyncio.create_task(server.answer(instruct))
            (one,) = await under_way(server, 1)
            if status == 200:
                while (await server.client.get(f"/lab/runs/{one}")).json()["iterations"] < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            await server.client.post(f"/lab/runs/{one}/cancel")
            response = await waiting
            assert response.status_code == status
        assert response.json()["type"] == "urn:knotwork:problem:run-cancelled"


async def under_way(server: Lab, count: int) -> list[str]:
    """Wait until so many runs are under way, and return their ids."""
    async with asyncio.timeout(60):
        while len(server.runs._live) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    return list(server.runs._live)


@pytest.mark.slow
def test_a_run_outlives_the_request_that_waits_for_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with lab(tmp_path) as server:
            with pytest.raises(httpx2.ReadTimeout):
                await server.client.post(
                    "/lab/generate-answer", json=asking("Explain it. [[scores 0.4 0.9]] [[delay 0.1]]"), timeout=0.1
                )
            (run,) = await under_way(server, 1)
            found = await server.over(run)
            assert found["status"] == "accepted"
            (listed,) = (await server.client.get("/lab/runs")).json()["runs"]
            assert listed["id"] == run

    asyncio.run(run())


@pytest.mark.slow
def test_a_run_is_told_as_far_as_it_is_while_it_goes(tmp_path: Path) -> None:
    async def run() -> None:
        async with lab(tmp_path) as server:
            run = await second_round(server, score_threshold=0.7)
            found = (await server.client.get(f"/lab/runs/{run}")).json()
            RunDetail.model_validate(found)
            assert (found["status"], found["score"], found["iterations"], found["iter_max"]) == ("running", 0.6, 2, 3)
            assert found["result"]["final_answer"] == draft(2)
            assert [each["answer"] for each in found["result"]["iterations"]] == [draft(1), draft(2)]
            assert found["request"] == asking(
                THIRD,
                iter_max=3,
                score_threshold=0.7,
                model="gpt-4o",
                attempts=1,
                judges=1,
                checks=[],
                template="default",
            )
            page = (await server.client.get("/lab/runs")).json()
            RunsPage.model_validate(page)
            assert page["runs"] == [{name: found[name] for name in page["runs"][0]}]
            assert found["tokens"] > 0 and found["calls"] == 4

    asyncio.run(run())


@pytest.mark.slow
async def test_lists_are_cut_into_pages(tmp_path: Path) -> None:
    async with lab(tmp_path) as server:
        for number in range(5):
            await server.answer(f"Question {number}. " + "x" * 300 * (number == 4) + "[[scores 1]]")
        first = (await server.client.get("/lab/runs", params={"limit": 2})).json()
        assert [one["instruct"][:11] for one in first["runs"]] == ["Question 4.", "Question 3."]
        assert len(first["runs"][0]["instruct"]) == 201
        rest = (await server.client.get("/lab/runs", params={"limit": 3, "before": first["next"]})).json()
        assert [one["instruct"][:11] for one in rest["runs"]] == ["Question 2.", "Question 1.", "Question 0."]
        assert rest["next"] is None
        created = [one["created"] for one in first["runs"] + rest["runs"]]
        assert created == sorted(created, reverse=True) and created[0].endswith("+00:00")
        for wrong in ({"limit": 0}, {"limit": 101}, {"limit": "x"}, {"before": "x"}):
            assert (await server.client.get("/lab/runs", params=wrong)).status_code == 422


@pytest.mark.parametrize("method", ["get", "delete", "post"])
async def test_a_run_that_is_not_there_is_a_404(tmp_path: Path, method: str) -> None:
    async with lab(tmp_path) as server:
        ends = ("/cancel",) if method == "post" else ("", "/events") if method == "get" else ("",)
        for end in ends:
            response = await server.client.request(method, f"/lab/runs/{'0' * 32}{end}")
            assert response.status_code == 404
            assert response.json()["type"] == "urn:knotwork:problem:no-such-run"


@pytest.mark.slow
async def test_a_run_is_deleted_and_one_under_way_is_cancelled_first(tmp_path: Path) -> None:
    async with lab(tmp_path) as server:
        done = (await server.answer("Explain it. [[scores 1]]")).json()["metadata"]["run"]
        going = await second_round(server)
        for one in (done, going):
            assert (await server.client.delete(f"/lab/runs/{one}")).status_code == 204
            assert (await server.client.get(f"/lab/runs/{one}")).status_code == 404
            assert (await server.client.delete(f"/lab/runs/{one}")).status_code == 404
        assert (await server.client.get("/lab/runs")).json()["runs"] == []
        assert server.runs.gate.runs == 0


@pytest.mark.slow
async def test_a_key_has_so_many_runs_at_once_and_the_server_so_many_of_all(tmp_path: Path) -> None:
    limits = Limits(runs=3, runs_per_key=2)

    async with lab(tmp_path, keys=("one", "two"), limits=limits) as server, server.of("two") as other:
        runs = [await server.begun(SLOW) for _ in range(2)]
        full = await server.answer(SLOW)
        assert full.status_code == 429
        assert full.json()["type"] == "urn:knotwork:problem:too-many-runs"
        assert int(full.headers["retry-after"]) > 0
        third = asyncio.create_task(other.post("/lab/generate-answer", json=asking(SLOW)))
        await under_way(server, 3)
        busy = await other.post("/lab/generate-answer/stream", json=asking(SLOW))
        assert busy.status_code == 503
        assert int(busy.headers["retry-after"]) > 0
        await server.client.post(f"/lab/runs/{runs[0]}/cancel")
        await server.over(runs[0])
        assert (await server.answer("Explain it. [[scores 1]]")).status_code == 200  # there is a place again
        third.cancel()


async def test_a_request_that_is_refused_takes_no_place(tmp_path: Path) -> None:
    async with lab(tmp_path, limits=Limits(runs=1)) as server:
        for more in ({"model": "none"}, {"checks": ["nonsense"]}, {"iter_max": 0}):
            assert (await server.answer("Explain it.", **more)).status_code == 422
        assert server.runs.gate.runs == 0
        assert (await server.answer("Explain it. [[scores 1]]")).status_code == 200


@pytest.mark.slow
async def test_draining_lets_runs_finish_and_then_has_them_end_with_what_they_have(tmp_path: Path) -> None:
    async with lab(tmp_path) as server:
        quick = await server.begun("Explain it. [[scores 0.9]] [[delay 0.1]]")
        slow = await second_round(server)
        await server.runs.drain(0.4)
        assert (await server.answer("Explain it.")).status_code == 503
        assert (await server.over(quick))["status"] == "accepted"
        found = await server.over(slow)
        assert (found["status"], found["stopped"], found["iterations"]) == ("best", "cancelled", 2)


@pytest.mark.slow
def test_an_error_of_our_own_loses_no_finished_iteration_and_says_nothing_of_itself(
    tmp_path: Path, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(request: Any, models: Any, **options: Any) -> Any:
        async def kept(iteration: Any) -> None:
            await told(iteration)
            if iteration.iteration_number == 2:
                raise ZeroDivisionError("a secret")

        told = options.pop("on_iteration")
        return await real(request, models, **options, on_iteration=kept)

    real = live_runs.answer_request
    monkeypatch.setattr(live_runs, "answer_request", broken)

    async def run() -> None:
        async with lab(tmp_path) as server:
            async with server.stream("Explain it. [[scores 0.4 0.3 0.2]]") as stream:
                events = [event async for event in stream]
            assert events[-1].name == "result"
            told = events[-1].data
            assert (told["metadata"]["status"], told["total_iterations"], told["final_score"]) == (
                "interrupted",
                2,
                0.4,
            )
            assert "secret" not in str(told) and "Zero" not in str(told)
            kept = (await server.client.get(f"/lab/runs/{told['metadata']['run']}")).json()
            assert kept["result"] == told
            assert server.runs.gate.runs == 0
            assert (await server.client.delete(f"/lab/runs/{told['metadata']['run']}")).status_code == 204

    asyncio.run(run())
    assert "broke" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(("instruct", "last"), [(THIRD, "result"), (SLOW, "problem")])
def test_a_run_whose_task_is_ended_from_outside_is_interrupted_and_not_under_way(
    tmp_path: Path, instruct: str, last: str
) -> None:
    async def run() -> None:
        async with lab(tmp_path) as server:
            run = await (second_round(server) if last == "result" else server.begun(instruct))
            following = asyncio.create_task(server.events(run))
            await asyncio.sleep(0.05)
            server.runs._live[run].task.cancel()
            events = await following
            assert events[-1].name == last
            told = events[-1].data["metadata"]
            assert (told["status"], told["reason"]) == ("interrupted", "the server stopped before the run ended")
            assert (await server.client.get(f"/lab/runs/{run}")).json()["status"] == "interrupted"
            assert server.runs._live == {} and server.runs.gate.runs == 0

    asyncio.run(run())


async def test_ids_sort_by_time_also_within_a_millisecond_and_when_the_clock_is_set_back(
    tmp_path: Path, monkeypatch: Any
) -> None:
    async with lab(tmp_path) as server:
        made = [server.runs.new_id() for _ in range(500)]
        monkeypatch.setattr("time.time_ns", lambda: 1_000_000_000_000)
        made += [server.runs.new_id() for _ in range(50)]
        assert made == sorted(made) and len(set(made)) == 550
        assert {len(one) for one in made} == {32}
        assert server.runs.live(LOCAL, made[0]) is None


@pytest.mark.slow
async def test_many_runs_at_once_all_end_and_all_are_kept(tmp_path: Path) -> None:
    async with lab(tmp_path, limits=Limits(runs=60)) as server:
        asked = [server.answer(f"Question {number}. [[scores 0.4 0.6 0.9]]") for number in range(60)]
        told = [response.json() for response in await asyncio.gather(*asked)]
        assert {one["final_score"] for one in told} == {0.9}
        assert len({one["metadata"]["run"] for one in told}) == 60
        listed = (await server.client.get("/lab/runs", params={"limit": 100})).json()["runs"]
        assert {(one["status"], one["iterations"]) for one in listed} == {("accepted", 3)}
        assert len(listed) == 60
        assert server.runs._live == {}
