"""Workers that are Ray tasks: each chunk is a task, which Ray runs on any machine of its cluster. Needs the extra ``ray``.

Ray starts and reuses the processes; a process builds its handler with its first chunk and keeps it. Tasks are not retried by Ray, because
only the driver knows what a chunk may still spend. At most ``workers`` tasks are pending, so that the limits on concurrent calls and on the
rate hold on clusters of any size.
"""

import asyncio
import logging
import os
import sys
from typing import Any

from attrs import define, field

from . import EngineError, Handler, Setup, WorkerDied

_handlers: dict[bytes, "tuple[asyncio.Runner, Handler]"] = {}
"""Maps the hash of a setup to the handler of this process and its event loop; there is at most one entry."""


def run_chunk(setup: Setup, chunk: bytes) -> bytes:
    """Run a chunk in a process of Ray. The handler of an earlier setup is closed first."""
    from blake3 import blake3

    key = blake3(setup.factory.encode() + b"\0" + setup.payload).digest()
    if key not in _handlers:
        while _handlers:
            runner, handler = _handlers.popitem()[1]
            runner.run(handler.aclose())
            runner.close()
        runner = asyncio.Runner()
        runner.get_loop()
        _handlers[key] = (runner, runner.run(_built(setup)))
    runner, handler = _handlers[key]
    return runner.run(_run(handler, chunk))


async def _built(setup: Setup) -> Handler:
    return setup.handler()


async def _run(handler: Handler, chunk: bytes) -> bytes:
    return await handler.run(chunk, asyncio.Event())


@define(eq=False)
class RayEngine:
    """Runs chunks as Ray tasks; see ``Engine``. ``address`` is that of a cluster; "" starts a local one for this engine."""

    setup: Setup
    workers: int
    address: str = ""
    _ray: Any = field(default=None, init=False)
    _is_ours: bool = field(default=False, init=False)
    _task: Any = field(default=None, init=False)
    _setup: Any = field(default=None, init=False)
    _pending: set[Any] = field(factory=set, init=False)
    _places: asyncio.Semaphore = field(init=False)

    @_places.default
    def _default_places(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(self.workers)

    @property
    def alive(self) -> int:
        """The number of tasks that are pending now."""
        return len(self._pending)

    async def start(self) -> None:
        """Connect to the cluster, or start a local one. Raises ``EngineError``."""
        try:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            import ray
        except ImportError:
            raise EngineError("the engine ray is not installed", hint="pip install 'knotwork[ray]'") from None
        self._ray = ray
        if not ray.is_initialized():
            await asyncio.to_thread(self._connect, ray)
            self._is_ours = True
        self._task = ray.remote(max_retries=0, num_cpus=1)(run_chunk)
        self._setup = ray.put(self.setup)

    def _connect(self, ray: Any) -> None:
        given: dict[str, Any] = {"address": self.address}
        if not self.address:
            path = os.pathsep.join(place for place in sys.path if place)
            given = {
                "num_cpus": self.workers, "include_dashboard": False, "runtime_env": {"env_vars": {"PYTHONPATH": path}}
            }  # fmt: skip
        try:
            ray.init(**given, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            where = f"the Ray cluster at {self.address}" if self.address else "a local Ray cluster"
            raise EngineError(f"{where} can't be used: {str(error)[:300]}") from error

    async def run(self, chunk: bytes) -> bytes:
        """Run a chunk as a task; see ``Engine``."""
        errors = self._ray.exceptions
        async with self._places:
            task = self._task.remote(self._setup, chunk)
            self._pending.add(task)
            try:
                result = await asyncio.wrap_future(task.future())
            except asyncio.CancelledError:
                self._ray.cancel(task, force=True)
                raise
            except errors.RayTaskError as error:
                raise EngineError(f"a worker failed: {str(error)[:2_000]}") from None
            except (errors.TaskCancelledError, errors.RaySystemError) as error:
                raise WorkerDied(_reason(error)) from None
            except errors.RayError as error:  # the process, its machine or the memory is gone
                raise WorkerDied(_reason(error)) from None
            finally:
                self._pending.discard(task)
        return bytes(result)

    async def cancel(self) -> None:
        """End all tasks. ``run`` raises ``WorkerDied``, because a task of Ray can't be asked for a partial result."""
        for task in list(self._pending):
            self._ray.cancel(task, force=True)

    async def aclose(self) -> None:
        """End all tasks, and the local cluster."""
        if self._ray is None:
            return
        await self.cancel()
        if self._is_ours:
            await asyncio.to_thread(self._ray.shutdown)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
