"""While a plan is under way, an event from outside can cancel it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .flow import Flow

__all__ = ["watched"]


@asynccontextmanager
async def watched(flow: Flow, cancel: asyncio.Event | None) -> AsyncIterator[None]:
    """Stop ``flow`` as soon as ``cancel`` is set; no task is left afterwards."""
    flow.cancelled = flow.cancelled_by_task = False
    flow.session.cancel = asyncio.Event()
    task: asyncio.Task[None] | None = None
    if cancel is not None:
        if cancel.is_set():
            flow.stop()
        else:
            task = asyncio.create_task(_stop(flow, cancel))
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))


async def _stop(flow: Flow, cancel: asyncio.Event) -> None:
    await cancel.wait()
    flow.stop()
