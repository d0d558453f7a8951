"""Distributes items, such as reviews or model calls, among workers: chunks, leases of the budget, workers that die, the end of a run.

Items that wait for their result are collected into chunks. A worker handles a chunk and returns a result for each item. The driver keeps
everything else, so a run with workers has the same results and the same record as a run without workers. See ``docs/reference/scale.md``.
"""

import asyncio
import pickle
from collections import deque
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar

from attrs import define, evolve, field, frozen

from ...adapters.engine import Engine, EngineError, WorkerDied
from ...adapters.llm import Usage
from ...adapters.llm.budget import Lease, Ledger
from ..events import BudgetReached, CallFinished, CallRetried, CallStarted, ChunkFinished, Event, Events, next_call
from ..results import Failed, unasked
from .caller import Spent

__all__ = ["CHUNK", "Chunk", "ChunkQueue", "ChunkResult", "ItemKind", "Workers"]

CHUNK = 256
"""Maximum number of items in a chunk."""
_LEAST = 8
"""Minimum number of items in a chunk, if that many wait."""
_AHEAD = 4
"""Number of chunks for each worker that the driver prepares, counting the running one."""
_DEATHS = 3
"""A chunk is divided after this number of workers died while they handled it."""
_DEATHS_IN_A_ROW = 20
"""A run ends if more than this number of workers, plus two for each worker, die before a chunk is finished."""
_NOTHING = Lease(calls=0)
"""The lease of a chunk if the budget is used up."""
_GATHER = 0.01
"""Seconds that a free worker waits for further items."""

I = TypeVar("I")  # noqa: E741 - the item
R = TypeVar("R")
I_contra = TypeVar("I_contra", contravariant=True)


@frozen
class Chunk(Generic[I]):
    """Work for a worker: items, and what their calls may spend. ``has_events``: whether the events of the calls are wanted.

    ``job`` names the seed and the models, if the workers have several.
    """

    items: tuple[I, ...]
    lease: Lease
    has_events: bool
    job: str = ""


@frozen
class ChunkResult(Generic[R]):
    """The result of a chunk.

    ``results`` has an element for each item: its result, or None if the budget of the chunk did not suffice or the chunk was
    cancelled first. ``spent`` is the cost of all calls; ``counted`` are the calls, the tokens and the US dollars that the
    budget has counted. ``stopped`` is a failure that all further calls would have. ``now`` is the clock of the worker for the
    times of ``events``. ``calls`` are the calls that an evaluation records (None: they are not recorded).
    """

    results: tuple[R | None, ...]
    spent: Spent
    counted: tuple[int, Usage, float]
    stopped: Failed | None = None
    events: tuple[Event, ...] = ()
    warnings: tuple[str, ...] = ()
    now: float = field(factory=perf_counter)
    calls: Any = None


@frozen
class Workers:
    """The workers of a run: an engine that has started, and the run's budget, parts of which are leased to the chunks.

    ``job`` names the seed and the models that the workers use, if they have several. ``on_calls`` receives the ``calls`` of
    each chunk.
    """

    engine: Engine
    ledger: Ledger
    job: str = ""
    on_calls: Callable[[Any], None] | None = None

    @property
    def window(self) -> int:
        """The number of items that the driver passes on at the same time."""
        return self.engine.workers * CHUNK * _AHEAD


class ItemKind(Protocol[I_contra, R]):
    """The kind of items in a queue: their names in messages, and their results."""

    @property
    def noun(self) -> str:
        """The name of an item in messages, such as "review"."""
        ...

    @property
    def done(self) -> str:
        """The participle for a handled item in messages, such as "extracted"."""
        ...

    def failed(self, item: I_contra, kind: str, message: str) -> R:
        """Return the result of an item that is not handled. ``kind`` is the kind of the failure, such as "budget" or "worker"."""
        ...

    def taken(self, items: Iterable[I_contra], result: "ChunkResult[R]") -> Callable[[I_contra], R | None] | None:
        """Note the result of a chunk. If it also decides waiting items, return a function of an item: its result, or None."""
        ...


@define(eq=False)
class _Waiting(Generic[I, R]):
    """An item that waits for its result. ``deaths`` is the number of workers that died while they handled its chunk."""

    item: I
    future: "asyncio.Future[R]"
    deaths: int = 0
    group: int = 0
    """Items of a divided chunk with the same number stay together (0: any items)."""
    tries: int = 0
    """Number of times that the budget of the chunk did not suffice."""


@define(eq=False)
class ChunkQueue(Generic[I, R]):
    """Sends items to ``workers`` in chunks of at most ``most``. ``warn`` receives warnings, ``events`` the events of the workers."""

    workers: Workers
    kind: ItemKind[I, R]
    events: Events | None
    warn: Callable[[str], None]
    most: int = CHUNK
    spent: Spent = field(factory=Spent, init=False)
    """The cost of all calls of the workers."""
    stopped: Failed | None = field(default=None, init=False)
    """The failure that ended further calls; None if calls are still made."""
    _queue: "deque[_Waiting[I, R]]" = field(factory=deque, init=False)
    _came: asyncio.Event = field(factory=asyncio.Event, init=False)
    _returned: asyncio.Event = field(factory=asyncio.Event, init=False)
    _leases: int = field(default=0, init=False)
    _groups: int = field(default=0, init=False)
    _deaths: int = field(default=0, init=False)
    """Number of workers that have died since a worker finished a chunk."""
    _is_ending: bool = field(default=False, init=False)
    _jobs: "list[asyncio.Task[None]]" = field(factory=list, init=False)
    _fault: BaseException | None = field(default=None, init=False)

    async def put(self, item: I) -> R:
        """Return the result of an item, even if the item failed. Raises ``EngineError``."""
        if self.stopped is not None and self.stopped.kind != "budget":  # without a budget, answers may be in a cache
            return self.kind.failed(item, self.stopped.kind, unasked(self.stopped.message))
        if not self._jobs:
            self._jobs = [asyncio.create_task(self._work()) for _ in range(self.workers.engine.workers)]
        if self._fault is not None:
            raise self._fault
        waiting = _Waiting[I, R](item, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        self._came.set()
        return await waiting.future

    async def finish_early(self) -> None:
        """End the chunks, and return finished results to their callers. Further items never end."""
        self._is_ending = True
        await self.workers.engine.cancel()
        busy = [job for job in self._jobs if not job.done()]
        if busy:
            self._came.set()
            self._returned.set()
            await asyncio.wait(busy, timeout=5.0)
        for _ in range(3):  # let the callers record the results
            await asyncio.sleep(0)

    async def aclose(self) -> None:
        """Stop the work. The engine stays open."""
        for job in self._jobs:
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)

    async def _work(self) -> None:
        """Send chunks to one worker after the other, until the run ends."""
        try:
            while not self._is_ending:
                taken = await self._next_chunk()
                if taken:
                    await self._run(taken)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._fault = self._fault or error
            for waiting in self._queue:
                _fail(waiting, error)
            self._queue.clear()

    async def _next_chunk(self) -> "list[_Waiting[I, R]]":
        """Return the items of the next chunk. Chunks become smaller at the end of a run, so that all workers finish together."""
        while not self._queue:
            if self._is_ending:
                return []
            self._came.clear()
            await self._came.wait()
        workers = self.workers.engine.workers
        while len(self._queue) < workers * self.most:
            before = len(self._queue)
            await asyncio.sleep(_GATHER)
            if len(self._queue) <= before:
                break
        size = max(_LEAST, min(self.most, -(-len(self._queue) // (2 * workers))))
        if len(self._queue) <= workers * _LEAST:
            size = max(1, -(-len(self._queue) // workers))
        taken: list[_Waiting[I, R]] = []
        while self._queue and len(taken) < size and (not taken or self._queue[0].group == taken[0].group):
            waiting = self._queue.popleft()
            if not waiting.future.done():  # else its caller was cancelled
                taken.append(waiting)
        return taken

    async def _run(self, taken: "list[_Waiting[I, R]]") -> None:
        """Let a worker handle a chunk."""
        lease, is_whole = await self._lease(taken)
        if lease is None:
            return
        chunk = Chunk(tuple(each.item for each in taken), lease, bool(self.events), self.workers.job)
        began = perf_counter()
        try:
            body = await self.workers.engine.run(pickle.dumps(chunk))
        except WorkerDied as error:
            self._leases -= 1
            self._returned.set()
            self._after_death(taken, str(error))
            self._deaths += 1
            if self._deaths > _DEATHS_IN_A_ROW + 2 * self.workers.engine.workers and not self._is_ending:
                hint = "the machine may lack memory: use fewer workers"
                raise EngineError(
                    f"{self._deaths} workers died one after the other; the last one: {error}", hint=hint
                ) from None
            return
        except BaseException as error:
            for waiting in taken:
                _fail(waiting, error)
            raise
        result: ChunkResult[R] = pickle.loads(body)  # noqa: S301 - a worker of this run wrote it
        self._leases -= 1
        self._deaths = 0
        if lease is not _NOTHING:
            self.workers.ledger.take_back(lease, *result.counted)
        self._returned.set()
        self.spent.include(result.spent)
        if self.workers.on_calls is not None and result.calls is not None:
            self.workers.on_calls(result.calls)
        self._emit(result, perf_counter() - began)
        decided = self.kind.taken((waiting.item for waiting in taken), result)
        again = []
        for waiting, found in zip(taken, result.results, strict=True):
            if found is None:
                again.append(waiting)
            else:
                _settle(waiting, found)
        if decided is not None:
            again = [waiting for waiting in again if not _decide(waiting, decided)]
            self._queue = deque(waiting for waiting in self._queue if not _decide(waiting, decided))
        if result.stopped is not None and result.stopped.kind != "budget":
            self.stopped = self.stopped or result.stopped
            self._give_up(again)
        elif self._is_ending:
            return
        elif again and is_whole:
            self._exhausted(again)
        else:
            for waiting in reversed(again):
                waiting.tries += 1
                self._queue.appendleft(waiting)
            self._came.set()

    async def _lease(self, taken: "list[_Waiting[I, R]]") -> tuple[Lease | None, bool]:
        """Return the budget of a chunk, and whether this is everything that is left.

        A chunk gets 1 / (4 * workers) of what is left, and twice as much for each time that this did not suffice. A chunk waits while other
        chunks may still return a part of their leases. If nothing is left, the lease allows no call: the worker returns what a cache or
        an earlier process has. Without a lease, the run is ending.
        """
        share = min(1.0, 2 ** max(each.tries for each in taken) / (4 * self.workers.engine.workers))
        while not self._is_ending:
            self._returned.clear()
            if self.stopped is not None:
                break
            if not self._leases or share < 1:
                lease = self.workers.ledger.lend(share, len(taken))
                if lease is not None:
                    self._leases += 1
                    return lease, share >= 1
            if self._leases:
                await self._returned.wait()
            elif share < 1:
                share = 1.0
            else:
                break
        if self._is_ending:
            return None, False
        self._leases += 1
        return _NOTHING, True

    def _exhausted(self, taken: "Iterable[_Waiting[I, R]]") -> None:
        """Let items fail because the budget of the run is used up."""
        message = self.workers.ledger.exhausted
        for waiting in taken:
            _settle(waiting, self.kind.failed(waiting.item, "budget", message))
        if self.events and self.stopped is None:
            self.events.emit(BudgetReached("", message))
        self.stopped = self.stopped or Failed("budget", message)

    def _give_up(self, taken: "Iterable[_Waiting[I, R]]") -> None:
        """Let items, and all waiting items, fail because no more calls are made."""
        assert self.stopped is not None  # noqa: S101
        for waiting in (*taken, *self._queue):
            failed = self.kind.failed(waiting.item, self.stopped.kind, unasked(self.stopped.message))
            _settle(waiting, failed)
        self._queue.clear()

    def _after_death(self, taken: "list[_Waiting[I, R]]", reason: str) -> None:
        """Put a chunk's items back after its worker died. After three deaths, divide the chunk; a single item fails."""
        if self._is_ending:
            return
        deaths = taken[0].deaths + 1
        if deaths >= _DEATHS and len(taken) == 1:
            message = f"its worker died {deaths} times ({reason})"
            _settle(taken[0], self.kind.failed(taken[0].item, "worker", message))
            return
        count = f"{len(taken):,} {self.kind.noun}{'' if len(taken) == 1 else 's'}"
        self.warn(f"a worker died ({reason}); {count} in its chunk are {self.kind.done} again")
        half = (len(taken) + 1) // 2 if deaths >= _DEATHS else len(taken)
        for start in reversed(range(0, len(taken), half)):
            self._groups += 1
            part = taken[start : start + half]
            for waiting in part:
                waiting.deaths, waiting.group = deaths, self._groups
            self._queue.extendleft(reversed(part))
        self._came.set()

    def _emit(self, result: ChunkResult[R], seconds: float) -> None:
        for message in result.warnings:
            self.warn(message)
        if self.events:
            shift, numbers = perf_counter() - result.now, dict[int, int]()  # the clocks of two machines differ
            for event in result.events:
                if (
                    isinstance(event, CallStarted | CallRetried | CallFinished) and event.call
                ):  # each process counts from 1
                    if event.call not in numbers:
                        numbers[event.call] = next_call()
                    event = evolve(event, call=numbers[event.call])
                self.events.emit(evolve(event, at=event.at + shift))
            done = sum(each is not None for each in result.results)
            self.events.emit(ChunkFinished(done, seconds, self.workers.engine.alive, len(self._queue)))


def _settle(waiting: _Waiting[I, R], found: R) -> None:
    if not waiting.future.done():
        waiting.future.set_result(found)


def _decide(waiting: _Waiting[I, R], decided: Callable[[I], R | None]) -> bool:
    """Settle a waiting item if ``decided`` has its result; return whether it has."""
    found = decided(waiting.item)
    if found is not None:
        _settle(waiting, found)
    return found is not None


def _fail(waiting: _Waiting[I, R], error: BaseException) -> None:
    if not waiting.future.done():
        waiting.future.set_exception(error)
