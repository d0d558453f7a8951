"""Engines, which run chunks of work in other processes.

This module is the interface; ``processes`` and ``ray_tasks`` implement it. An engine knows nothing about the work. It starts
workers. Each worker calls a function, which the engine names by its import path, with a payload (``bytes``); this function
returns the worker's ``Handler``. The driver (the process with the engine) then sends chunks as ``bytes``, and a worker returns
the result of a chunk as ``bytes``. The driver and the workers run the same version of the code and trust each other, so both
sides may use ``pickle``.
"""

import asyncio
from importlib import import_module
from typing import Any, Protocol

from attrs import frozen

from ...lang.errors import KnotworkError

__all__ = ["Engine", "EngineError", "Handler", "Setup", "WorkerDied"]


class EngineError(KnotworkError):
    """Raised if an engine can't start, or if the code in a worker raises an exception."""


class WorkerDied(Exception):
    """Raised if a worker ends before it has returned the result of its chunk. The message is the reason, such as "killed by signal 9"."""


class Handler(Protocol):
    """The code in a worker. It handles one chunk at a time."""

    async def run(self, chunk: bytes, cancel: asyncio.Event) -> bytes:
        """Return the result of a chunk. When ``cancel`` is set, return the part of the result that is finished."""
        ...

    async def aclose(self) -> None:
        """Release everything. The worker ends afterwards."""
        ...


@frozen
class Setup:
    """Builds the handler of a worker: ``factory`` is "MODULE:FUNCTION"; the function receives ``payload`` and returns the handler."""

    factory: str
    payload: bytes

    def handler(self) -> Handler:
        """Build the handler."""
        module, _, name = self.factory.partition(":")
        made: Any = getattr(import_module(module), name)(self.payload)
        handler: Handler = made
        return handler


class Engine(Protocol):
    """Runs chunks in workers, one chunk for each worker at a time. ``workers`` is the number of workers."""

    workers: int

    @property
    def alive(self) -> int:
        """The number of workers that are running now."""
        ...

    async def start(self) -> None:
        """Start the workers. Raises ``EngineError``."""
        ...

    async def run(self, chunk: bytes) -> bytes:
        """Run a chunk in a free worker and return its result; wait while no worker is free.

        Raises ``WorkerDied`` if the worker ends first (the engine starts another worker), and ``EngineError`` if the handler raises an
        exception. If the caller is cancelled, the worker of the chunk ends.
        """
        ...

    async def cancel(self) -> None:
        """Ask all handlers to return what is finished. ``run`` then returns these results, or raises ``WorkerDied``."""
        ...

    async def aclose(self) -> None:
        """End all workers. Chunks that are still running are lost."""
        ...
