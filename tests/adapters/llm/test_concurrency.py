"""The automatic limit on concurrent calls, with a simulated model: a clock, and a time that each call takes at each limit."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

import pytest
from knotwork.adapters.llm import Completion, LLMError, RateLimited, TimedOut
from knotwork.adapters.llm.concurrency import FIRST, MOST, AutoConcurrency, AutomaticLimit
from knotwork.adapters.llm.throttled import Throttled


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def simulated(
    limit: AutomaticLimit, clock: Clock, calls: int, seconds: Callable[[int], float],
    error: Callable[[int], LLMError | None] = lambda active: None, callers: int = MOST,
) -> None:  # fmt: skip
    """Make so many calls; ``seconds`` and ``error`` say what becomes of a call that is one of so many running calls."""

    async def run() -> None:
        ends: list[tuple[float, int, asyncio.Event]] = []
        numbers, left, active = count(), calls, 0

        async def caller() -> None:
            nonlocal left, active
            while left:
                left -= 1
                began = await limit.begin()
                active += 1
                fault, done = error(active), asyncio.Event()
                heapq.heappush(ends, (clock.now + seconds(active), next(numbers), done))
                await done.wait()
                active -= 1
                limit.end(began, fault)

        tasks = [asyncio.create_task(caller()) for _ in range(callers)]
        while not all(task.done() for task in tasks):
            for _ in range(4):
                await asyncio.sleep(0)
            if ends:
                clock.now, _, done = heapq.heappop(ends)
                done.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())


def test_the_limit_doubles_while_calls_per_second_grow_and_then_goes_back() -> None:
    clock = Clock()
    limit = AutomaticLimit(clock=clock)
    simulated(
        limit, clock, 2_000, lambda active: 0.1 * max(1, active / 32)
    )  # 32 calls at once is all that the model can
    assert (limit.limit, limit.highest, limit.halved) == (32, 64, 0)
    assert limit.rate == pytest.approx(320, rel=0.1)
    said = limit.summary("m")
    assert said.startswith("automatic concurrency of m: 32 calls at once at the end, ") and said.endswith(
        " calls/s, 64 at most"
    )


def test_the_limit_ends_at_its_maximum() -> None:
    clock = Clock()
    limit = AutomaticLimit(20, clock=clock)
    simulated(limit, clock, 500, lambda active: 0.1)
    assert limit.limit == limit.highest == 20


def test_too_few_callers_leave_the_limit_as_it_is() -> None:
    clock = Clock()
    limit = AutomaticLimit(clock=clock)
    simulated(limit, clock, 500, lambda active: 0.1, callers=FIRST)
    assert limit.limit == FIRST and not limit.rate


@pytest.mark.parametrize("error", [RateLimited("429 too many requests"), TimedOut("no answer in time")])
def test_an_overload_halves_the_limit_once_for_all_calls_that_ran(error: LLMError) -> None:
    clock = Clock()
    limit = AutomaticLimit(clock=clock)
    simulated(limit, clock, 3_000, lambda active: 0.01, lambda active: error if active > 40 else None)
    assert limit.highest == 64 and limit.limit == 32 and limit.halved == 1
    assert error.message in limit.summary("m")


def test_after_a_minute_without_overload_the_limit_rises_again() -> None:
    clock = Clock()
    limit = AutomaticLimit(clock=clock)
    simulated(
        limit,
        clock,
        1_000,
        lambda active: 0.1,
        lambda active: RateLimited("429") if clock.now < 2 and active > 8 else None,
    )
    assert limit.limit == FIRST
    clock.now += 60
    simulated(limit, clock, 500, lambda active: 0.1)
    assert limit.limit > FIRST


def test_calls_that_take_three_times_as_long_halve_the_limit() -> None:
    clock = Clock()
    limit = AutomaticLimit(clock=clock)
    simulated(limit, clock, 400, lambda active: 0.1 if active <= 8 else 0.5)
    assert limit.limit <= FIRST and limit.halved == 1 and "95 % of the calls took up to 0.50 s" in limit.reason


def test_a_cancelled_call_passes_its_turn_on() -> None:
    async def run() -> int:
        limit = AutomaticLimit(1, clock=Clock())
        began = await limit.begin()
        first, second = (asyncio.create_task(limit.begin()) for _ in range(2))
        await asyncio.sleep(0)
        limit.end(began)  # the turn of the first
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await asyncio.wait_for(second, 60)
        return limit.limit

    assert asyncio.run(run()) == 1


def test_the_layer_says_at_its_end_what_the_limit_is() -> None:
    class Model:
        async def generate(self, prompt: str, **options: object) -> Completion:
            return Completion("yes")

        async def aclose(self) -> None: ...

    async def run() -> list[str]:
        told: list[str] = []
        client = Throttled(Model(), max_concurrency=AutoConcurrency(), model="m", tell=told.append)
        await client.generate("?")
        await client.aclose()
        return told

    assert asyncio.run(run()) == ["automatic concurrency of m: 8 calls at once at the end, 8 at most"]
