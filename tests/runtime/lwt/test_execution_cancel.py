"""Ending a run early: nothing stays behind, and what was finished is kept."""

import asyncio
from pathlib import Path

import pytest
from knotwork import lwt
from support.cafe_seed import CONTEXTS, write_seed
from support.clients import Timed
from support.executing import library

FIFTY = "".join(f'(s{i})=LLM("{i}")\n' for i in range(50))
JOIN = '(final)=LLM("' + "".join(f"{{(s{i})}}" for i in range(50)) + '")\n'


def nothing_left() -> bool:
    return asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("schedule", ["eager", "layered"])
def test_cancel_with_50_calls_in_flight_leaves_no_task(schedule: str) -> None:
    async def whole() -> None:
        client = Timed(60)
        running = asyncio.ensure_future(
            lwt.run(FIFTY + JOIN, llm=client, max_concurrency=50, schedule=schedule)  # type: ignore[arg-type]
        )
        await client.reached(50)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (client.under_way, client.cancelled) == (0, 50)
        assert nothing_left()

    asyncio.run(whole())


def test_cancel_with_50_items_in_flight_leaves_no_task() -> None:
    async def whole() -> None:
        client = Timed(60)
        script = '(final)=EACH({(input)}, LLM("{(item)}"), max_concurrency=50)'
        running = asyncio.ensure_future(lwt.run(script, input=list(range(500)), llm=client, max_concurrency=50))
        await client.reached(50)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert client.under_way == 0
        assert nothing_left()

    asyncio.run(whole())


def test_a_cancelled_run_counts_what_was_sent() -> None:
    async def whole() -> None:
        cancel, sent = asyncio.Event(), list[str]()

        def seconds(prompt: str) -> float:
            sent.append(prompt)
            if prompt == "item 3":
                asyncio.get_running_loop().call_soon(cancel.set)
            return 60.0 if prompt in ("item 3", "item 4") else 0.0

        script = '(a)=LLM("quick")\n(final)=EACH({(input)}, LLM("item {(item)}"), max_concurrency=2)'
        run = await lwt.run(script, input=[1, 2, 3, 4, 5], llm=Timed(seconds), cancel=cancel)
        assert (run.status, run.calls) == ("cancelled", len(sent))

    asyncio.run(whole())


@pytest.mark.parametrize(
    "step",
    [
        'SEED(file="noise.seed.json", context={(input)})',
        'GASL("""FIND nodes AS x\nCLASSIFY x BY "name" INTO ("a", "b") AS c""")',
    ],
)
def test_a_cancelled_step_with_calls_of_its_own_counts_what_was_sent(step: str, tmp_path: Path) -> None:
    async def whole() -> None:
        write_seed(tmp_path)
        (tmp_path / "s.lwt").write_text(f"(final)={step}\n", encoding="utf-8")
        client, cancel = Timed(60.0), asyncio.Event()
        script = lwt.load(tmp_path / "s.lwt")
        running = asyncio.ensure_future(
            lwt.run(script, input=CONTEXTS[0], graph=library(), llm=client, cancel=cancel, max_concurrency=1)
        )
        await client.reached(1)
        cancel.set()
        run = await running
        assert (run.status, run.calls) == ("cancelled", client.cancelled)
        assert client.cancelled

    asyncio.run(whole())


def test_setting_the_cancel_event_returns_the_results_so_far() -> None:
    async def whole() -> None:
        cancel = asyncio.Event()

        def seconds(prompt: str) -> float:
            if prompt == "quick":
                return 0.0
            asyncio.get_running_loop().call_soon(cancel.set)
            return 60

        client = Timed(seconds)
        script = '(a)=LLM("quick")\n(b)=LLM("slow {(a)}")\n(final)=LLM("{(b)}")'
        result = await lwt.run(script, llm=client, cancel=cancel)
        assert (result.status, result.output) == ("cancelled", None)
        assert {step: (r.status, r.reason) for step, r in result.steps.items()} == {
            "a": ("done", ""),
            "b": ("skipped", "cancelled while it ran"),
            "final": ("skipped", "cancelled"),
        }
        assert nothing_left()

    asyncio.run(whole())


def test_a_timeout_around_a_run_ends_it() -> None:
    async def whole() -> None:
        client = Timed(60)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await lwt.run(FIFTY, llm=client, all_steps=True)
        assert client.under_way == 0
        assert nothing_left()

    asyncio.run(whole())


def test_a_run_that_is_cancelled_before_it_begins_makes_no_call() -> None:
    async def whole() -> None:
        client, cancel = Timed(), asyncio.Event()
        cancel.set()
        result = await lwt.run('(a)=LLM("x")', llm=client, cancel=cancel)
        assert (result.status, result.steps["a"].reason) == ("cancelled", "cancelled")
        assert client.most == 0

    asyncio.run(whole())
