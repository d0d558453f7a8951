"""A loop and a thread run_in_worker the server's: what is returned, raised and cancelled crosses over, and nothing is left behind."""

import asyncio
import threading
from typing import Any

import pytest
from knotwork.adapters.llm import Completion, Notice
from knotwork.runtime.api.worker import CrossLoopClient, run_in_worker


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "knotwork-script"]


def test_work_has_a_thread_of_its_own_and_its_outcome_comes_back() -> None:
    async def work(cancel: asyncio.Event) -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    async def broken(cancel: asyncio.Event) -> None:
        raise ZeroDivisionError("here")

    async def both() -> None:
        assert await run_in_worker(work, asyncio.Event()) == "knotwork-script"
        with pytest.raises(ZeroDivisionError, match="here"):
            await run_in_worker(broken, asyncio.Event())

    asyncio.run(both())


def test_the_event_is_set_over_there_too_however_early() -> None:
    async def work(cancel: asyncio.Event) -> bool:
        await cancel.wait()
        return True

    async def asking() -> None:
        early, late = asyncio.Event(), asyncio.Event()
        early.set()
        asyncio.get_running_loop().call_later(0.02, late.set)
        assert await asyncio.gather(run_in_worker(work, early), run_in_worker(work, late)) == [True, True]

    asyncio.run(asking())


@pytest.mark.parametrize("after", [0.0, 0.02])
def test_who_is_cancelled_goes_on_when_the_work_has_let_go(after: float) -> None:
    seen: list[str] = []

    async def work(cancel: asyncio.Event) -> None:
        seen.append("begun")
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            seen.append("let go")

    async def asking() -> None:
        task = asyncio.create_task(run_in_worker(work, asyncio.Event()))
        await asyncio.sleep(after)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert seen in ([], ["begun", "let go"])
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(asking())
    for thread in threading.enumerate():
        if thread.name == "knotwork-script":
            thread.join(5)
    assert not threads()


class Model:
    """A client that says where it is asked."""

    def __init__(self) -> None:
        self.loops: list[asyncio.AbstractEventLoop] = []
        self.cancelled = asyncio.Event()

    async def generate(self, prompt: str, **options: Any) -> Completion:
        self.loops.append(asyncio.get_running_loop())
        options["notify"](Notice("again", 1, "a word"))
        if prompt == "wait":
            try:
                await asyncio.sleep(60)
            finally:
                self.cancelled.set()
        return Completion(text=prompt, finish_reason="stop", model="m")

    async def aclose(self) -> None:
        raise AssertionError("it is the server's")


def test_a_client_is_asked_in_its_own_loop_and_tells_in_that_of_the_caller() -> None:
    async def asking() -> None:
        home, model, told = asyncio.get_running_loop(), Model(), list[tuple[str, asyncio.AbstractEventLoop]]()

        async def work(cancel: asyncio.Event) -> bool:
            here, client = asyncio.get_running_loop(), CrossLoopClient(model, home)
            answer = await client.generate(
                "x", notify=lambda notice: told.append((notice.reason, asyncio.get_running_loop()))
            )
            await client.aclose()
            assert told == [("a word", here)]  # before the answer
            return answer.text == "x" and here is not home

        assert await run_in_worker(work, asyncio.Event())
        assert model.loops == [home]

    asyncio.run(asking())


def test_a_call_that_is_given_up_is_given_up_at_home() -> None:
    async def asking() -> None:
        home, model = asyncio.get_running_loop(), Model()

        async def work(cancel: asyncio.Event) -> None:
            async with asyncio.timeout(0.02):
                await CrossLoopClient(model, home).generate("wait", notify=lambda notice: None)

        with pytest.raises(TimeoutError):
            await run_in_worker(work, asyncio.Event())
        async with asyncio.timeout(60):
            await model.cancelled.wait()

    asyncio.run(asking())
