"""The session's loop beside a notebook's: interrupts, one after the other."""

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from knotwork.runtime.interfaces.notebook.looping import Abandoned, Loop


@pytest.fixture
def loop() -> Iterator[Loop]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    made = Loop()
    yield made
    made.close()
    signal.signal(signal.SIGINT, before)


def interrupts(said: list[str], times: int) -> Callable[[], None]:
    """Return a tick that interrupts once more each time the one before it was heard."""
    sent = 0

    def tick() -> None:
        nonlocal sent
        if sent == len(said) and sent < times:
            sent += 1
            signal.raise_signal(signal.SIGINT)

    return tick


def test_the_first_interrupt_sets_the_event(loop: Loop) -> None:
    async def work(cancel: asyncio.Event) -> str:
        await cancel.wait()
        return "in order"

    said: list[str] = []
    assert loop.run(work, interrupts(said, 1), said.append) == "in order"
    assert said == ["cancelling; a second interrupt does not wait for it"]


def test_the_second_interrupt_cancels_the_task_and_the_loop_goes_on(loop: Loop) -> None:
    async def work(cancel: asyncio.Event) -> None:
        await asyncio.sleep(60)

    async def other(cancel: asyncio.Event) -> int:
        return 42

    said: list[str] = []
    assert loop.run(work, interrupts(said, 2), said.append) is None
    assert len(said) == 2 and loop.run(other) == 42


def test_the_third_interrupt_waits_no_more(loop: Loop) -> None:
    leave = threading.Event()

    async def work(cancel: asyncio.Event) -> None:
        leave.wait(20)  # what blocks the loop can't be cancelled

    said: list[str] = []
    with pytest.raises(Abandoned):
        loop.run(work, interrupts(said, 3), said.append)
    leave.set()


def test_what_the_work_raises_is_raised(loop: Loop) -> None:
    async def work(cancel: asyncio.Event) -> None:
        raise TimeoutError("the work's own")

    with pytest.raises(TimeoutError, match="the work's own"):
        loop.run(work)


def test_closing_ends_the_thread(loop: Loop) -> None:
    began = time.monotonic()
    other = Loop()
    other.close()
    assert time.monotonic() - began < 5
    assert not other._thread.is_alive()
