"""Stopping a run: by event, by time, by its task. Nothing is under way afterwards, and what was finished stands."""

import asyncio
import socket
import time

import psutil
import pytest
from knotwork import answers
from knotwork.runtime.answers.answer_results import AnswerRequest
from knotwork.runtime.answers.service import answer
from knotwork.runtime.events import Events
from support.answer_server import AnswerServer
from support.answering import Model, caller_of, heard

REQUEST = AnswerRequest("Explain it.", eval_crit="It is clear.", iter_max=5, attempts=2, judges=2)


def sockets() -> int:
    """Count this process's connections to models."""
    return sum(c.type == socket.SOCK_STREAM and bool(c.raddr) for c in psutil.Process().net_connections())


def alone() -> bool:
    return asyncio.all_tasks() == {asyncio.current_task()}


async def stopped_at(model: Model, reached: int, **options):
    """Set cancel when so many calls have begun, of which the last does not end before, however slow the machine is."""
    cancel = asyncio.Event()
    model.stuck_at = reached
    run = asyncio.create_task(answer(REQUEST, caller_of(model), cancel=cancel, **options))
    while model.calls < reached:
        assert not run.done()
        await asyncio.sleep(0.001)
    cancel.set()
    made = await run
    assert model.now == 0
    assert alone()
    return made


@pytest.mark.parametrize("reached", [1, 3, 6])
def test_cancelled_in_the_first_iteration_there_is_no_answer(reached):
    made = asyncio.run(stopped_at(Model(["x"], [4], delay=0.02), reached))
    assert (made.status, made.stopped, made.iterations) == ("failed", "cancelled", ())
    assert made.reason == "the run was cancelled before an answer was evaluated"
    assert made.calls >= reached  # they were sent, and may be paid for


@pytest.mark.parametrize("reached", [7, 8, 9])
def test_cancelled_later_the_finished_iterations_stand(reached):
    made = asyncio.run(stopped_at(Model(["x"], [4], delay=0.02), reached))
    assert (made.status, made.stopped, made.total_iterations, made.final_answer) == ("best", "cancelled", 1, "x")
    assert made.reason == "the run was cancelled; the best answer scores 0.40"
    assert made.calls > made.iterations[0].calls == 6


def test_cancelled_before_it_begins_nothing_is_asked():
    async def run():
        cancel, model, events = asyncio.Event(), Model(), Events()
        told = heard(events)
        cancel.set()
        made = await answer(REQUEST, caller_of(model), cancel=cancel, events=events)
        assert (made.stopped, model.calls) == ("cancelled", 0)
        assert [event.name for event in told] == ["answer.started", "answer.finished"]

    asyncio.run(run())


def test_an_accepted_answer_is_accepted_though_cancel_is_set_while_it_is_told():
    async def run():
        cancel = asyncio.Event()
        made = await answer(
            REQUEST, caller_of(Model(["x"], [9])), cancel=cancel, on_iteration=lambda iteration: cancel.set()
        )
        assert (made.status, made.stopped) == ("accepted", "")

    asyncio.run(run())


def test_an_event_that_is_never_set_changes_nothing():
    async def run():
        texts = ["a", "b", "c", "d", "e"]
        made = await answer(REQUEST, caller_of(Model(texts, [4])), cancel=asyncio.Event(), time_limit=1e9)
        assert (made.status, made.total_iterations) == ("best", 5)
        assert alone()

    asyncio.run(run())


@pytest.mark.slow
def test_the_time_limit_stops_calls_under_way():
    async def run():
        model, began = Model(["x"], [4]), time.perf_counter()

        def slow(iteration):
            model.delay = 60.0

        made = await answer(REQUEST, caller_of(model), time_limit=0.4, on_iteration=slow)
        assert (made.status, made.stopped, made.total_iterations) == ("best", "time", 1)
        assert made.reason == "the time limit of 0.4 seconds passed; the best answer scores 0.40"
        assert 0.39 < time.perf_counter() - began < 20
        assert (model.now, alone()) == (0, True)
        early = await answer(REQUEST, caller_of(model), time_limit=0.01)
        assert (early.status, early.reason) == (
            "failed", "the time limit of 0.01 seconds passed before an answer was evaluated",
        )  # fmt: skip

    asyncio.run(run())


@pytest.mark.parametrize("options", [{}, {"cancel": asyncio.Event(), "time_limit": 60.0}], ids=["bare", "guarded"])
def test_a_cancelled_task_leaves_nothing_and_tells_its_end(options):
    async def run():
        model, events = Model(["x"], [4], delay=0.02), Events()
        told = heard(events)
        run = asyncio.create_task(answer(REQUEST, caller_of(model), events=events, **options))
        while model.calls < 8:
            assert not run.done()
            await asyncio.sleep(0.001)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert (model.now, alone()) == (0, True)
        assert (told[-1].name, told[-1].status, told[-1].score) == ("answer.finished", "best", 0.4)
        assert told[-1].reason.startswith("the run was cancelled")

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize("how", ["event", "task", "time"])
def test_over_real_sockets_none_is_left(how):
    async def run():
        before = sockets()
        async with AnswerServer() as server:
            cancel = asyncio.Event()
            asked = asyncio.create_task(
                answers.generate_answer(
                    "Explain it. [[scores 0.4]] [[delay 0 30]]", "", "It is clear.", 5, model=f"{server.url}#m", attempts=3,
                    cancel=cancel, time_limit=1.5 if how == "time" else None,
                )
            )  # fmt: skip
            while len(server.requests) < 9:
                assert not asked.done()
                await asyncio.sleep(0.005)
            if how == "task":
                asked.cancel()
            elif how == "event":
                cancel.set()
            (made,) = await asyncio.gather(asked, return_exceptions=True)
            if how == "task":
                assert isinstance(made, asyncio.CancelledError)
            else:
                assert (made.status, made.stopped, made.total_iterations) == (
                    "best",
                    {"event": "cancelled", "time": "time"}[how],
                    1,
                )
        assert sockets() == before
        assert alone()

    asyncio.run(run())
