"""A client whose calls are made by workers: calls that wait are sent in chunks, and each worker makes them through its own layers.

The client stands behind the interface of all clients, so the callers (PROCESS, CLASSIFY, scripts, loops) do not depend on the workers.
Evidence, records and events stay in the driver. See ``docs/reference/scale.md``.
"""

import asyncio
import pickle
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from time import perf_counter
from typing import Any, Unpack

from attrs import define, evolve, field, frozen

from ...adapters.engine import EngineError
from ...adapters.llm import BudgetExceeded, Completion, LLMError, Notice, Options, Tally, Unavailable, Usage, error_of
from ...adapters.llm.budget import Ledger
from ...adapters.llm.middleware import Client, Layer, Patience
from ..events import Events, Warned
from ..results import add_costs, unasked
from .caller import HOPELESS, Spent
from .chunk_queue import Chunk, ChunkQueue, ChunkResult, Workers

__all__ = ["AHEAD", "Call", "CallChunk", "CallItem", "CallResult", "CallResults", "CallWorkers", "DistributedClient"]

AHEAD = 8
"""Calls that are passed on at the same time, as a multiple of the calls that the workers make at the same time.

A worker returns a chunk as a whole; with several rounds of calls in a chunk, the last of them waits for the others only briefly.
"""


@frozen
class Call:
    """A call of the model ``spec``. ``options`` are those of the port without functions that only the driver can call."""

    spec: str
    prompt: str
    options: Mapping[str, Any]
    has_tally: bool = False


@frozen
class CallItem:
    """A call on its way to a worker: its number, its model, and the pickled ``Call``."""

    number: int
    spec: str
    body: bytes


@frozen
class CallResult:
    """The result of a call: its answer, or its error. ``seconds`` is how long it took in the worker.

    ``tally`` has the requests, tokens and dollars that its budget has counted, if the caller requested them.
    """

    answer: Completion | None = None
    error: LLMError | None = None
    notices: tuple[Notice, ...] = ()
    tally: tuple[int, Usage, float | None] | None = None
    seconds: float = 0.0


CallChunk = Chunk[CallItem]
CallResults = ChunkResult[CallResult]


@define(eq=False)
class _Calls:
    """Calls as items of a ``ChunkQueue``."""

    ledger: Ledger
    noun: str = "call"
    done: str = "made"

    def failed(self, item: CallItem, kind: str, message: str) -> CallResult:
        """Return the result of a call that is not made."""
        error: LLMError
        if kind == "budget":
            spent = self.ledger
            is_calls = spent.max_calls is not None and spent.calls >= spent.max_calls
            size = "cost" if spent.max_tokens is None else "tokens"
            error = BudgetExceeded(message, limit="calls" if is_calls else size)  # type: ignore[arg-type]
        elif kind == "worker":
            error = Unavailable(message, hint="this call may need too much memory; run it without workers to see why")
        else:
            error = error_of(kind, message)
        error.attempts = 0
        return CallResult(error=error)

    def taken(self, items: Iterable[CallItem], result: CallResults) -> Callable[[CallItem], CallResult | None] | None:
        """If all further calls of a model would fail, decide the waiting calls of this model: they are not made."""
        lost = {
            item.spec: found.error
            for item, found in zip(items, result.results, strict=True)
            if found is not None and found.error is not None and found.error.kind in HOPELESS - {"budget"}
        }
        if not lost:
            return None
        return lambda item: None if (error := lost.get(item.spec)) is None else not_called(error)


def not_called(error: LLMError) -> CallResult:
    """Return the result of a call that is not made, because an earlier call failed with ``error`` and this one would, too."""
    message = unasked(error.message)
    again = error_of(error.kind, message, hint=error.hint)
    again.attempts = 0
    return CallResult(error=again)


def _with_earlier(found: CallResult, lost: Spent) -> CallResult:
    """Return a result that includes what was spent on earlier attempts at its call."""
    if found.answer is not None:
        answer = found.answer
        cost = add_costs(answer.cost, lost.cost)
        more = evolve(answer, usage=answer.usage + lost.usage, attempts=answer.attempts + lost.attempts, cost=cost)
        return evolve(found, answer=more)
    assert found.error is not None  # noqa: S101 - a result has an answer or an error
    found.error.usage += lost.usage
    found.error.attempts += lost.attempts
    found.error.cost = add_costs(found.error.cost, lost.cost)
    return found


@define(eq=False)
class CallWorkers:
    """The workers that make the calls of a run. The engine starts with the first call, or with ``start``.

    ``open_engine`` returns the engine and the budget of the run for ``async with``. ``max_concurrency`` is the number of calls that
    all workers together make at the same time. ``events`` receives the event of each chunk, and warnings; without ``events``, ``warn``
    receives the warnings.
    """

    open_engine: Callable[[], "AbstractAsyncContextManager[Workers | None]"]
    workers: int
    max_concurrency: int
    ledger: Ledger
    warn: Callable[[str], None]
    events: Events | None = None
    _context: "AbstractAsyncContextManager[Workers | None] | None" = field(default=None, init=False)
    _queue: ChunkQueue[CallItem, CallResult] | None = field(default=None, init=False)
    _starting: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _calls: int = field(default=0, init=False)
    _lost: dict[int, Spent] = field(factory=dict, init=False)

    @property
    def window(self) -> int:
        """The number of calls that the driver should pass on at the same time."""
        return AHEAD * self.max_concurrency

    def client(self, spec: str, inner: Client) -> "DistributedClient":
        """Return a client of the model ``spec``. ``inner`` is the driver's client for calls that can't be sent to a worker."""
        return DistributedClient(inner, self, spec)

    async def start(self) -> None:
        """Start the engine. Raises ``EngineError``."""
        async with self._starting:
            if self._queue is None:
                context = self.open_engine()
                workers = await context.__aenter__()
                assert workers is not None  # noqa: S101 - the number of workers is given
                most = max(1, AHEAD // 2 * self.max_concurrency // self.workers)
                self._context = context
                workers = evolve(workers, on_calls=self._note_open)
                self._queue = ChunkQueue(workers, _Calls(self.ledger), self.events, self._warn, most)

    async def make(self, spec: str, body: bytes) -> CallResult:
        """Return the result of a pickled ``Call``. Raises ``EngineError``."""
        await self.start()
        assert self._queue is not None  # noqa: S101 - it was started
        self._calls += 1
        number = self._calls
        found = await self._queue.put(CallItem(number, spec, body))
        lost = self._lost.pop(number, None)
        return found if lost is None else _with_earlier(found, lost)

    def _note_open(self, calls: Mapping[int, Spent]) -> None:
        """Note what was spent on calls that are made again, because the lease of their chunk did not suffice."""
        for number, spent in calls.items():
            self._lost.setdefault(number, Spent()).include(spent)

    def _warn(self, message: str) -> None:
        if self.events:
            self.events.emit(Warned("", message))
        else:
            self.warn(message)

    async def aclose(self) -> None:
        """Stop the calls, let the workers write their caches, and end them."""
        context, self._context = self._context, None
        if context is None:
            return
        queue, self._queue = self._queue, None
        try:
            if queue is not None:
                await queue.finish_early()
                await queue.aclose()
        finally:
            await context.__aexit__(None, None, None)


class DistributedClient(Layer):
    """Makes calls in workers; the interface is that of all clients. Retries, repairs, caches and limits are layers in the workers.

    Notices of a call arrive together with its answer. Closing the client ends the workers, which all clients of a run share.
    """

    def __init__(self, inner: Client, workers: CallWorkers, spec: str) -> None:
        super().__init__(inner)
        self._workers, self._spec = workers, spec

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the answer that a worker got. A call whose options can't be pickled is made by the driver."""
        sent: dict[str, Any] = {**options}
        notify, tally, timeout = sent.pop("notify", None), sent.pop("tally", None), sent.get("timeout")
        if timeout is not None:
            sent["timeout"] = float(timeout)
        try:
            body = pickle.dumps(Call(self._spec, prompt, sent, tally is not None))
        except (AttributeError, TypeError, pickle.PicklingError):
            return await self._inner.generate(prompt, **options)
        began = perf_counter()
        try:
            found = await self._workers.make(self._spec, body)
        except EngineError as error:
            raise Unavailable(f"the workers have failed: {error.message}", hint=error.hint, attempts=0) from None
        finally:
            waited = perf_counter() - began
        Patience.waited(options, max(0.0, waited - found.seconds))
        for notice in found.notices if notify is not None else ():
            notify(notice)
        if isinstance(tally, Tally) and found.tally is not None:
            calls, usage, cost = found.tally
            tally.calls += calls
            tally.took(usage, cost)
        if found.error is not None:
            raise found.error
        assert found.answer is not None  # noqa: S101 - a result has an answer or an error
        return found.answer

    async def aclose(self) -> None:
        """End the workers, and close the driver's client."""
        await self._workers.aclose()
        await self._inner.aclose()
