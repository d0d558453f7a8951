"""Shared code of all workers: models that stay open between chunks, the lease of a chunk, and cancellation."""

import asyncio
import pickle
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from attrs import define, field

if TYPE_CHECKING:
    from ...adapters.llm import Usage
    from ...adapters.llm.budget import Lease
    from ..models.chunk_queue import Chunk, ChunkResult
    from .clients import ModelOpener


@define(eq=False)
class ChunkHandler:
    """Handles chunks in a worker; see ``adapters.engine.Handler``. Clients and caches stay open between chunks.

    ``setup`` has ``opening`` (options of ``ModelOpener``), ``cache``, and ``max_concurrency``, this worker's share.
    """

    setup: Any
    _opener: "ModelOpener | None" = None
    _clients: dict[str, Any] = field(factory=dict)
    _warnings: list[str] = field(factory=list)

    async def run(self, chunk: bytes, cancel: asyncio.Event) -> bytes:
        """Handle a pickled ``Chunk`` and return a pickled ``ChunkResult``."""
        return pickle.dumps(await self.handle(pickle.loads(chunk), cancel))  # noqa: S301 - the driver of this run wrote it

    async def handle(self, chunk: "Chunk[Any]", cancel: asyncio.Event) -> "ChunkResult[Any]":
        """Return the result of a chunk; when ``cancel`` is set, return the part that is finished."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Close the clients."""
        if self._opener is not None:
            await self._opener.__aexit__()

    def opened(self) -> "ModelOpener":
        """Return the opener of the models. It is created when the first chunk arrives."""
        if self._opener is None:
            from .clients import ModelOpener

            self._opener = ModelOpener(self._warnings.append, cache=self.setup.cache, **self.setup.opening)
        return self._opener

    def client(self, spec: str) -> Any:
        """Return the client of a spec. It is opened once."""
        if spec not in self._clients:
            self._clients[spec] = self.opened().open(spec)
        return self._clients[spec]

    def begin(self, lease: "Lease") -> "Callable[[], tuple[int, Usage, float]]":
        """Limit what is spent from now on to ``lease``. Return a function that returns what was spent since then."""
        from ...adapters.llm import Usage

        ledger = self.opened().ledger
        ledger.limit_to(lease)
        calls, usage, cost = ledger.calls, ledger.usage, ledger.cost

        def counted() -> tuple[int, Usage, float]:
            return ledger.calls - calls, ledger.usage - usage, ledger.cost - cost

        return counted

    def warnings(self) -> tuple[str, ...]:
        """Return the warnings since the last chunk, each once."""
        found = tuple(dict.fromkeys(self._warnings))
        self._warnings.clear()
        return found

    async def each(self, count: int, work: Callable[[int], Awaitable[None]], cancel: asyncio.Event) -> None:
        """Run ``work(0)`` to ``work(count - 1)``, as many at once as the worker may call, until ``cancel`` is set.

        Not all at once: after a failure that all calls would have, work that has not begun makes no call.
        """
        left = iter(range(count))

        async def run() -> None:
            for place in left:
                await work(place)

        await _all([run() for _ in range(min(count, self.setup.max_concurrency))], cancel)


async def _all(jobs: list[Coroutine[Any, Any, None]], cancel: asyncio.Event) -> None:
    """Run ``jobs`` concurrently until all are done or ``cancel`` is set."""
    stop: asyncio.Task[Any] = asyncio.create_task(cancel.wait())
    tasks = [asyncio.create_task(job) for job in jobs]
    left = set(tasks)
    try:
        while left and not cancel.is_set():
            done, _ = await asyncio.wait({*left, stop}, return_when=asyncio.FIRST_COMPLETED)
            left -= {task for task in done if task is not stop}
            for task in done:
                task.result()  # raises an exception of a job
    finally:
        for task in (*tasks, stop):
            task.cancel()
        await asyncio.gather(*tasks, stop, return_exceptions=True)
