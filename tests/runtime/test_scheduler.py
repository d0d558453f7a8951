"""The scheduler, by itself: graphs of ids."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.runtime.scheduler import Policy, Scheduler


def run(
    graph: Mapping[str, Sequence[str]], work: Callable[[str], Any], policy: Policy = "eager", limit: int | None = None
) -> tuple[list[str], dict[str, str]]:
    """Run ``graph`` and return the steps in the order of their ends, and why steps were skipped."""
    ended: list[str] = []
    skipped: dict[str, str] = {}

    async def one(step: str) -> bool:
        result = work(step)
        if asyncio.iscoroutine(result):
            result = await result
        ended.append(step)
        return result is not False

    async def whole() -> None:
        scheduler = Scheduler(one, skipped.__setitem__, limit, policy)
        for step, inputs in graph.items():
            scheduler.add(step, inputs)
        scheduler.close()
        await scheduler.run()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(whole())
    return ended, skipped


DIAMOND = {"top": [], "left": ["top"], "right": ["top"], "bottom": ["left", "right"]}


@pytest.mark.parametrize("policy", ["eager", "layered"])
def test_a_step_runs_after_all_its_inputs(policy: Policy) -> None:
    ended, _ = run(DIAMOND, lambda step: None, policy)
    assert ended == ["top", "left", "right", "bottom"]


@pytest.mark.parametrize(("policy", "last"), [("eager", "slow"), ("layered", "after quick")])
def test_eager_starts_a_step_when_its_last_input_is_ready_and_layered_waits_for_the_layer(
    policy: Policy, last: str
) -> None:
    begun = {step: asyncio.Event() for step in ("quick", "after quick")}

    async def work(step: str) -> None:
        if step == "slow":
            await begun["after quick" if policy == "eager" else "quick"].wait()
            await asyncio.sleep(0)
        else:
            begun[step].set()

    assert run({"slow": [], "quick": [], "after quick": ["quick"]}, work, policy)[0][-1] == last


def test_a_failure_skips_what_needs_it_and_names_the_root_cause() -> None:
    graph = {**DIAMOND, "below": ["bottom"], "alone": []}
    ended, skipped = run(graph, lambda step: step != "left")
    assert set(ended) == {"top", "left", "right", "alone"}
    assert skipped == {"bottom": "(left) failed", "below": "it needs (bottom), and (left) failed"}


def test_of_two_failed_inputs_the_first_named_is_the_reason_whichever_failed_first() -> None:
    async def fail(step: str) -> bool:
        for _ in range(5 if step == "a" else 1):
            await asyncio.sleep(0)
        return False

    assert run({"a": [], "b": [], "c": ["a", "b"]}, fail)[1] == {"c": "(a) failed"}


def test_steps_that_can_never_start_are_skipped_instead_of_waited_for() -> None:
    graph = {"a": ["b"], "b": ["a"], "c": ["b"], "self": ["self"], "lost": ["nobody"], "d": ["lost"], "fine": []}
    ended, skipped = run(graph, lambda step: None)
    assert ended == ["fine"]
    assert skipped.keys() == {"a", "b", "c", "self", "lost", "d"}
    assert skipped["lost"] == "step (nobody) does not exist"
    assert "cycle" in skipped["a"]


def test_no_more_steps_than_the_limit_are_under_way() -> None:
    under_way, most = 0, 0

    async def work(_: str) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1

    run({str(i): [] for i in range(40)}, work, limit=7)
    assert most == 7


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["eager", "layered"])
def test_a_chain_of_10000_steps_and_a_skip_through_it(policy: Policy) -> None:
    chain = {str(i): [str(i - 1)] if i else [] for i in range(10_000)}
    assert len(run(chain, lambda step: None, policy)[0]) == 10_000
    assert len(run(chain, lambda step: False, policy)[1]) == 9_999


def test_steps_that_never_wait_leave_the_event_loop_to_others() -> None:
    async def whole() -> None:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async def work(_: str) -> bool:
            return True

        scheduler = Scheduler(work, lambda step, reason: None)
        for i in range(2000):
            scheduler.add(str(i), [str(i - 1)] if i else [])
        scheduler.close()
        task = asyncio.ensure_future(other())
        await scheduler.run()
        task.cancel()
        assert turns > 20

    asyncio.run(whole())


def test_steps_can_be_added_while_it_runs() -> None:
    async def whole() -> list[str]:
        ended: list[str] = []

        async def work(step: str) -> bool:
            ended.append(step)
            return True

        scheduler = Scheduler(work, lambda step, reason: None)
        scheduler.add("b", ["a"])
        running = asyncio.ensure_future(scheduler.run())
        await asyncio.sleep(0.001)
        assert ended == []
        scheduler.add("a", [])
        while ended != ["a", "b"]:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.001)
        assert not running.done()
        scheduler.add("c", ["a"])
        scheduler.close()
        await running
        with pytest.raises(ValueError, match="can't be added"):
            scheduler.add("d", [])
        return ended

    assert asyncio.run(whole()) == ["a", "b", "c"]


def test_setting_cancel_stops_what_is_under_way_and_keeps_what_ended() -> None:
    async def whole() -> None:
        ended, stopped, cancel, begun = [], [], asyncio.Event(), asyncio.Event()

        async def work(step: str) -> bool:
            try:
                if step == "slower":
                    begun.set()
                await (begun.wait() if step == "quick" else asyncio.sleep(60))
            except asyncio.CancelledError:
                await asyncio.sleep(0.01)  # a client may take a moment to clean up
                stopped.append(step)
                raise
            ended.append(step)
            asyncio.get_running_loop().call_soon(cancel.set)
            return True

        scheduler = Scheduler(work, lambda step, reason: pytest.fail(f"{step} skipped: {reason}"))
        for step in ("quick", "slow", "slower"):
            scheduler.add(step, [])
        scheduler.add("after", ["slow"])
        scheduler.close()
        await scheduler.run(cancel)
        assert scheduler.cancelled
        assert (ended, sorted(stopped)) == (["quick"], ["slow", "slower"])
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(whole())


def test_cancelling_the_awaiting_task_twice_still_waits_for_every_worker() -> None:
    async def whole() -> None:
        cleaned = 0

        async def work(_: str) -> bool:
            nonlocal cleaned
            try:
                await asyncio.sleep(60)
            finally:
                try:
                    await asyncio.sleep(0.02)
                finally:
                    cleaned += 1
            return True

        scheduler = Scheduler(work, lambda step, reason: None)
        for i in range(5):
            scheduler.add(str(i), [])
        scheduler.close()
        running = asyncio.ensure_future(scheduler.run())
        await asyncio.sleep(0.005)
        running.cancel()
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert cleaned == 5
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(whole())


def test_a_fault_of_the_work_function_stops_everything_and_is_raised() -> None:
    async def work(step: str) -> bool:
        await asyncio.sleep(0.001 if step == "bad" else 60)
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        run({"bad": [], "other": []}, work)


graphs = st.integers(1, 12).flatmap(
    lambda n: st.tuples(*[st.sets(st.integers(0, i - 1)) if i else st.just(set[int]()) for i in range(n)])
)


@pytest.mark.slow
@given(graphs, st.sets(st.integers(0, 11)), st.sampled_from([None, 1, 3]))
@settings(deadline=None, max_examples=60)
def test_both_policies_run_and_skip_the_same_steps(
    graph: tuple[set[int], ...], failing: set[int], limit: int | None
) -> None:
    named = {str(i): [str(j) for j in sorted(inputs)] for i, inputs in enumerate(graph)}
    eager = run(named, lambda step: int(step) not in failing, "eager", limit)
    layered = run(named, lambda step: int(step) not in failing, "layered", limit)
    assert set(eager[0]) == set(layered[0])
    assert eager[1] == layered[1]
    for ended, _ in (eager, layered):
        for place, step in enumerate(ended):
            assert set(named[step]) <= set(ended[:place])
