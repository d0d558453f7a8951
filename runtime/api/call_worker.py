"""The code in a worker that makes calls of models: scripts, programs and loops run in the driver, and send only their calls."""

import asyncio
import pickle
from time import perf_counter
from typing import TYPE_CHECKING, Any

from attrs import frozen

from .chunk_handler import ChunkHandler

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...adapters.engine import Handler
    from ...adapters.llm import LLMError, Notice
    from ..models.distributed_client import Call, CallChunk, CallResult, CallResults


@frozen
class CallSetup:
    """The data that a worker needs to make calls: the options of ``ModelOpener``, the cache, and its share of the concurrent calls."""

    opening: "Mapping[str, Any]"
    cache: Any
    max_concurrency: int


def open_handler(payload: bytes) -> "Handler":
    """Build the handler of a worker from a pickled ``CallSetup``. Called in the worker."""
    return CallHandler(pickle.loads(payload))  # noqa: S301 - the driver of this run wrote it


class CallHandler(ChunkHandler):
    """Makes the calls of chunks in a worker. ``setup`` is a ``CallSetup``."""

    async def handle(self, chunk: "CallChunk", cancel: asyncio.Event) -> "CallResults":
        """Return the results of the calls in a chunk."""
        from ...adapters.llm import BudgetExceeded
        from ..models.caller import HOPELESS, Spent
        from ..models.chunk_queue import ChunkResult
        from ..models.distributed_client import not_called

        counted = self.begin(chunk.lease)
        found: list[CallResult | None] = [None] * len(chunk.items)
        lost: dict[str, LLMError] = {}
        open_calls: dict[int, Spent] = {}

        async def make(place: int) -> None:
            item = chunk.items[place]
            if (error := lost.get(item.spec)) is not None:
                found[place] = not_called(error)
                return
            made = await self._make(pickle.loads(item.body))  # noqa: S301 - the driver of this run wrote it
            if isinstance(made.error, BudgetExceeded):  # it is made again with a larger lease, or fails in the driver
                if made.error.attempts:
                    spent = open_calls[item.number] = Spent()
                    spent.add(made.error.attempts, made.error.usage, made.error.cost, made.error.attempts)
                return
            found[place] = made
            if made.error is not None and made.error.kind in HOPELESS:
                lost.setdefault(item.spec, made.error)

        await self.each(len(chunk.items), make, cancel)
        return ChunkResult(tuple(found), Spent(), counted(), warnings=self.warnings(), calls=open_calls or None)

    async def _make(self, call: "Call") -> "CallResult":
        from ...adapters.llm import LLMError, Tally, TimedOut
        from ..models.distributed_client import CallResult

        notices: list[Notice] = []
        tally = Tally() if call.has_tally else None
        options: dict[str, Any] = {**call.options, "notify": notices.append}
        if tally is not None:
            options["tally"] = tally
        began, answer, error = perf_counter(), None, None
        try:
            answer = await self.client(call.spec).generate(call.prompt, **options)
        except LLMError as raised:
            error = raised.with_traceback(None)
        except TimeoutError as raised:
            error = TimedOut(str(raised) or "the call took too long")
        taken = None if tally is None else (tally.calls, tally.usage, tally.cost)
        return CallResult(answer, error, tuple(notices), taken, perf_counter() - began)
