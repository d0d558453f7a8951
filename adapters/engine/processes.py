"""Workers that are processes of this machine, and that exchange frames with the driver over pipes (see ``worker``).

The workers are started with the interpreter and the import path of the driver. Each worker is in a separate session, so that
Ctrl-C in a terminal reaches only the driver; the workers end when the driver ends, because their stdin then ends.
"""

import asyncio
import os
import pickle
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress

from attrs import define, field

from . import EngineError, Setup, WorkerDied
from .worker import CANCEL, CHUNK, FAILURE, HEAD, RESULT, SETUP, frame

_TAIL = 2_000
"""Bytes of a worker's stderr that are kept for messages."""
_PATIENCE = 6.0
"""Maximum number of seconds that a worker may take to end; after that, it is killed."""


@define(eq=False)
class _Worker:
    process: Process
    tail: bytearray = field(factory=bytearray)
    listener: "asyncio.Task[None] | None" = None

    def is_alive(self) -> bool:
        return self.process.returncode is None

    async def listen(self) -> None:
        """Keep the end of stderr."""
        assert self.process.stderr is not None  # noqa: S101
        while block := await self.process.stderr.read(4096):
            self.tail += block
            del self.tail[:-_TAIL]

    async def send(self, body: bytes) -> None:
        assert self.process.stdin is not None  # noqa: S101
        with suppress(ConnectionError):  # the worker has died: reading its result reports that
            self.process.stdin.write(body)
            await self.process.stdin.drain()

    async def receive(self) -> bytes:
        """Return the result of the chunk. Raises ``WorkerDied`` and ``EngineError``."""
        assert self.process.stdout is not None  # noqa: S101
        try:
            kind, size = HEAD.unpack(await self.process.stdout.readexactly(HEAD.size))
            body = await self.process.stdout.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            code = await self.process.wait()
            raise WorkerDied(self._reason(code)) from None
        if kind == FAILURE:
            raise EngineError(f"a worker failed: {body.decode('utf-8', 'replace').strip()}")
        if kind != RESULT:
            raise EngineError("a worker sent data of an unknown form")
        return body

    def _reason(self, code: int) -> str:
        said = self.tail.decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
        how = f"killed by signal {-code}" if code < 0 else f"it ended with exit code {code}"
        return f"{how}: {said}" if said and code >= 0 else how

    async def end(self, *, at_once: bool = False) -> None:
        """Let the worker save its results and end. Kill it immediately if ``at_once``, or later if it does not end in time."""
        if at_once and self.is_alive():
            with suppress(ProcessLookupError):
                self.process.kill()
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            async with asyncio.timeout(_PATIENCE):
                await self.process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()
        if self.listener is not None:
            self.listener.cancel()
            await asyncio.gather(self.listener, return_exceptions=True)


@define(eq=False)
class ProcessEngine:
    """Runs chunks in ``workers`` processes; see ``Engine``."""

    setup: Setup
    workers: int
    _free: "asyncio.Queue[_Worker | None]" = field(factory=asyncio.Queue, init=False)
    """Workers without a chunk; None stands for a worker that is to be started."""
    _all: list[_Worker] = field(factory=list, init=False)
    _busy: set[_Worker] = field(factory=set, init=False)

    @property
    def alive(self) -> int:
        """The number of workers that are running now."""
        return sum(worker.is_alive() for worker in self._all)

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers that are running now."""
        return [worker.process.pid for worker in self._all if worker.is_alive()]

    async def start(self) -> None:
        """Start the first worker. The others are started with their first chunk. Raises ``EngineError``."""
        self._free.put_nowait(await self._started())
        for _ in range(self.workers - 1):
            self._free.put_nowait(None)

    async def _started(self) -> _Worker:
        found = [place for place in sys.path if place]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(found)}
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-c", "from knotwork.adapters.engine.worker import main; main()", stdin=PIPE, stdout=PIPE,
                stderr=PIPE, env=environment, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise EngineError(f"a worker can't be started: {error.strerror or error}") from error
        worker = _Worker(process)
        worker.listener = asyncio.create_task(worker.listen())
        self._all = [each for each in self._all if each.is_alive()] + [worker]
        await worker.send(frame(SETUP, pickle.dumps(self.setup)))
        return worker

    async def run(self, chunk: bytes) -> bytes:
        """Run a chunk in a free worker; see ``Engine``."""
        worker: _Worker | None = await self._free.get()
        try:
            if worker is None or not worker.is_alive():
                worker = None
                worker = await self._started()
            self._busy.add(worker)
            await worker.send(frame(CHUNK, chunk))
            result = await worker.receive()
        except BaseException as error:
            if worker is not None:
                self._busy.discard(worker)
                if not isinstance(error, WorkerDied):
                    with suppress(ProcessLookupError):
                        worker.process.send_signal(signal.SIGKILL)
            self._free.put_nowait(None)
            raise
        self._busy.discard(worker)
        self._free.put_nowait(worker)
        return result

    async def cancel(self) -> None:
        """Ask all handlers to return what is finished; see ``Engine``."""
        for worker in list(self._busy):
            await worker.send(frame(CANCEL))

    async def aclose(self) -> None:
        """End all workers."""
        await asyncio.gather(*(worker.end(at_once=worker in self._busy) for worker in self._all))
        self._all = []
