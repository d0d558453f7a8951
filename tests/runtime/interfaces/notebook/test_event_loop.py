"""The session's loop beside a notebook's: interrupts, one after the other and at once, and nothing that runs on."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator

import pytest
from knotwork.runtime.interfaces.notebook.event_loop import Abandoned, Cancelled, Loop


async def nothing() -> None:
    pass


@pytest.fixture
def loop() -> Iterator[Loop]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    made = Loop()
    yield made
    made.leave(nothing)
    made.join()
    signal.signal(signal.SIGINT, before)
    assert made.is_over


def interrupts(said: list[str], times: int) -> Callable[[], None]:
    """Return a tick that interrupts once more each time the one before it was heard."""
    sent = 0

    def tick() -> None:
        nonlocal sent
        if sent == len(said) and sent < times:
            sent += 1
            signal.raise_signal(signal.SIGINT)

    return tick


class Work:
    """Work that takes long; how it ended."""

    ended = ""

    async def __call__(self, cancel: asyncio.Event) -> None:
        try:
            await asyncio.sleep(60)
            self.ended = "ran to its end"
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise


async def other(cancel: asyncio.Event) -> int:
    return 42


@pytest.mark.slow
def test_the_first_interrupt_sets_the_event(loop: Loop) -> None:
    async def work(cancel: asyncio.Event) -> str:
        await cancel.wait()
        return "in order"

    said: list[str] = []
    assert loop.run(work, interrupts(said, 1), said.append) == "in order"
    assert said == ["cancelling; interrupt again to stop without waiting"]


@pytest.mark.slow
def test_the_second_interrupt_cancels_the_task_and_the_loop_goes_on(loop: Loop) -> None:
    work, said = Work(), list[str]()
    with pytest.raises(Cancelled):
        loop.run(work, interrupts(said, 2), said.append)
    assert len(said) == 2 and work.ended == "cancelled"
    assert loop.run(other) == 42


@pytest.mark.slow
def test_an_interrupt_while_one_is_being_handled_is_the_next_one(loop: Loop) -> None:
    work, said = Work(), list[str]()

    def slow(text: str) -> None:
        said.append(text)
        if len(said) == 1:
            signal.raise_signal(signal.SIGINT)  # as if a display took its time

    with pytest.raises(Cancelled):
        loop.run(work, interrupts(said, 1), slow)
    assert len(said) == 2 and work.ended == "cancelled"
    assert loop.run(other) == 42


@pytest.mark.slow
def test_two_interrupts_at_once_are_two(loop: Loop) -> None:
    work, sent = Work(), list[int]()

    def tick() -> None:
        if not sent:
            sent.append(1)
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Cancelled):
        loop.run(work, tick)
    assert work.ended == "cancelled"


@pytest.mark.slow
def test_where_a_display_raises_nothing_runs_on(loop: Loop) -> None:
    work = Work()

    def tick() -> None:
        raise ValueError("no display")

    with pytest.raises(ValueError, match="no display"):
        loop.run(work, tick)
    assert work.ended == "cancelled"


@pytest.mark.slow
def test_the_third_interrupt_waits_no_more_and_what_is_left_ends_as_soon_as_it_can(loop: Loop) -> None:
    leave, closed = threading.Event(), list[str]()

    async def work(cancel: asyncio.Event) -> None:
        leave.wait(20)  # what blocks the loop can't be cancelled

    async def last() -> None:
        closed.append("closed")

    said: list[str] = []
    left = Loop()
    with pytest.raises(Abandoned):
        left.run(work, interrupts(said, 3), said.append)
    left.leave(last)
    assert not left.is_over and not closed
    leave.set()
    left.join()
    assert left.is_over and closed == ["closed"]


def test_leaving_cancels_what_is_left_before_the_last_thing(loop: Loop) -> None:
    ended: list[str] = []
    left = Loop()

    async def beside() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("what was left")

    async def begin(cancel: asyncio.Event) -> asyncio.Task[None]:
        task = asyncio.create_task(beside())
        await asyncio.sleep(0)
        return task

    async def last() -> None:
        ended.append("the last thing")
        raise ValueError("nobody is left to tell")

    left.run(begin)
    left.leave(last)
    left.join()
    assert left.is_over and ended == ["what was left", "the last thing"]


def test_what_the_work_raises_is_raised(loop: Loop) -> None:
    async def work(cancel: asyncio.Event) -> None:
        raise TimeoutError("the work's own")

    with pytest.raises(TimeoutError, match="the work's own"):
        loop.run(work)


def test_the_handler_that_was_there_is_there_again(loop: Loop) -> None:
    assert loop.run(other) == 42
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_it_is_waited_for_in_another_thread_too(loop: Loop) -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(loop.run(other)))
    thread.start()
    thread.join(10)
    assert found == [42]


def test_leaving_ends_the_thread() -> None:
    loop = Loop()
    loop.leave(nothing)
    loop.join()
    assert loop.is_over
