"""A scheduler for any directed graph of steps: it runs steps eagerly or by layers, and a failed step is a value, not an exception.

The scheduler knows nothing about scripts. It uses only step ids and a coroutine function ``work(id) -> bool`` (False: the step
failed). A few workers take ready steps from a queue. A worker that finishes a step continues with a step that became ready, so
a chain of steps needs no additional task or event loop cycle for each step. Cancellation waits until nothing is running.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Literal

from attrs import define, field

Policy = Literal["eager", "layered"]

_TURN = 32
"""Maximum number of steps that a worker runs without waiting before it yields to the event loop."""


@define
class _Waiting:
    """A step that waits for its inputs; ``missing`` is the number of inputs that are not settled yet."""

    inputs: tuple[str, ...]
    missing: int


@define
class Scheduler:
    """Runs steps when their inputs are settled: done, failed or skipped.

    ``work`` runs a step and returns whether the step succeeded. If ``work`` raises an exception, everything stops and ``run`` raises
    the exception. ``skip(id, reason)`` is called for every step that will not run. At most ``limit`` steps run at once (None: no
    limit). The policy "layered" starts newly ready steps only when nothing is running.
    """

    work: Callable[[str], Awaitable[bool]]
    skip: Callable[[str, str], None]
    limit: int | None = None
    policy: Policy = "eager"
    cancelled: bool = field(default=False, init=False)
    _roots: dict[str, str | None] = field(factory=dict, init=False)  # settled steps: None, or the step that failed
    _waiting: dict[str, _Waiting] = field(factory=dict, init=False)
    _dependents: dict[str, list[str]] = field(factory=dict, init=False)
    _known: set[str] = field(factory=set, init=False)
    _ready: deque[str] = field(factory=deque, init=False)
    _next: list[str] = field(factory=list, init=False)  # layered: the next layer so far
    _workers: set[asyncio.Task[None]] = field(factory=set, init=False)
    _active: int = field(default=0, init=False)
    _failed: bool = field(default=False, init=False)
    _closed: bool = field(default=False, init=False)
    _stopped: bool = field(default=False, init=False)
    _over: asyncio.Future[None] | None = field(default=None, init=False)

    def add(self, step: str, inputs: Iterable[str]) -> None:
        """Add ``step``. Its inputs may be added later. Allowed until ``close`` is called, also while ``run`` is active."""
        if step in self._known or self._closed:
            raise ValueError(f"step {step!r} can't be added")
        self._known.add(step)
        inputs = tuple(dict.fromkeys(inputs))
        missing = 0
        for name in inputs:
            if name not in self._roots:
                missing += 1
                self._dependents.setdefault(name, []).append(step)
        self._waiting[step] = _Waiting(inputs, missing)
        if not missing:
            self._settle_all([step])
            self._pump()

    def close(self) -> None:
        """Declare that no more steps will be added. Steps that wait for an unknown step, or for themselves, are skipped."""
        self._closed = True
        self._pump()

    def hold(self) -> None:
        """Start no more steps: forget waiting and ready steps, but let running steps continue. Do not call ``add`` afterwards."""
        for waiting in (self._ready, self._next, self._waiting, self._dependents):
            waiting.clear()

    def drop(self, steps: Iterable[str]) -> None:
        """Forget ``steps``. They must not have started, and no remaining step may refer to them."""
        gone = set(steps)
        for step in gone & self._waiting.keys():
            del self._waiting[step]
        for queue in (self._ready, self._next):
            kept = [step for step in queue if step not in gone]
            queue.clear()
            queue.extend(kept)

    def settle(self, step: str, *, is_good: bool) -> None:
        """Mark ``step`` as already run, before its dependents are added."""
        self._known.add(step)
        self._roots[step] = None if is_good else step
        self._failed = self._failed or not is_good

    def fail(self, error: Exception) -> None:
        """End the run with ``error``, because no more steps can be supplied. Has an effect only while ``run`` is active."""
        if self._over is not None and not self._over.done():
            self._over.set_exception(error)

    async def run(self, cancel: asyncio.Event | None = None) -> None:
        """Run until every step is settled and the scheduler is closed. Nothing is running when this method returns or raises.

        Setting ``cancel`` stops the run: running steps are cancelled, ``cancelled`` becomes true, and settled steps are unchanged.
        The same happens when the awaiting task is cancelled; ``CancelledError`` is then raised again.
        """
        self._over = asyncio.get_running_loop().create_future()
        waited: set[asyncio.Future[None] | asyncio.Task[Literal[True]]] = {self._over}
        watcher = asyncio.ensure_future(cancel.wait()) if cancel is not None else None
        if watcher is not None:
            waited.add(watcher)
        if cancel is None or not cancel.is_set():
            self._pump()
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if self._over.done():
                self._over.result()
            else:
                self.cancelled = True
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        finally:
            self._closed = self._stopped = True
            await _stop([*self._workers, *([watcher] if watcher is not None else [])])
            if not self._over.done():
                self._over.cancel()

    def _pump(self) -> None:
        """Start workers for ready steps or for the next layer; if nothing remains, signal the end of the run."""
        if self._stopped or self._over is None or self._over.done():
            return
        if not self._ready and not self._active:
            if self._next:
                self._ready.extend(self._next)
                self._next.clear()
            elif self._closed:
                self._skip_stuck()
                if not self._over.done():
                    self._over.set_result(None)
                return
        startable = len(self._ready) if self.limit is None else min(len(self._ready), self.limit - self._active)
        for _ in range(startable):
            self._active += 1
            worker = asyncio.ensure_future(self._worker())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def _worker(self) -> None:
        ready, turn = self._ready, 0
        try:
            while ready and not self._stopped:
                step = ready.popleft()
                ok = await self.work(step)
                self._roots[step] = None if ok else step
                self._failed = self._failed or not ok
                released = self._release(step)
                if released:
                    self._settle_all(released)
                    if len(ready) > 1:
                        self._pump()
                turn += 1
                if turn == _TURN:
                    turn = 0
                    await asyncio.sleep(0)
        except Exception as error:  # an internal error: a step that fails returns False instead
            self.fail(error)
        finally:
            self._active -= 1
            self._pump()

    def _release(self, step: str) -> list[str]:
        """Return the steps whose inputs are all settled, now that ``step`` is settled."""
        released = []
        for dependent in self._dependents.pop(step, ()):
            waiting = self._waiting.get(dependent)
            if waiting is not None:
                waiting.missing -= 1
                if not waiting.missing:
                    released.append(dependent)
        return released

    def _settle_all(self, steps: list[str]) -> None:
        """Queue each step whose inputs all have an output. Skip the other steps, then settle the dependents of the skipped steps."""
        roots = self._roots
        for step in steps:  # the list grows during the iteration
            inputs = self._waiting.pop(step).inputs
            doomed = next(((n, roots[n]) for n in inputs if roots[n]), None) if self._failed else None
            if doomed is None:
                (self._ready if self.policy == "eager" else self._next).append(step)
                continue
            name, root = doomed
            roots[step] = root
            self.skip(step, f"({root}) failed" if name == root else f"it needs ({name}), and ({root}) failed")
            steps.extend(self._release(step))

    def _skip_stuck(self) -> None:
        """Skip the steps that can never start because they wait for an id that was never added, or because of a cycle."""
        stuck = self._waiting
        for step in list(stuck):
            unknown = next((name for name in stuck[step].inputs if name not in self._known), None)
            if unknown is not None:
                stuck[step].inputs = ()
                self._roots[step] = step
                self._failed = True
                self.skip(step, f"step ({unknown}) does not exist")
        released = [name for step, waiting in stuck.items() if not waiting.inputs for name in self._release(step)]
        for step in [step for step, waiting in stuck.items() if not waiting.inputs]:
            del stuck[step]
        self._settle_all([step for step in released if step in stuck])
        for step, waiting in stuck.items():
            blocking = next(name for name in waiting.inputs if name in stuck)
            self.skip(step, f"it waits for ({blocking}), which is in a cycle or depends on one")
        stuck.clear()


async def _stop(tasks: "list[asyncio.Future[None] | asyncio.Task[Literal[True]] | asyncio.Task[None]]") -> None:
    """Cancel ``tasks`` and wait until every task has ended, even if the wait itself is cancelled."""
    again: asyncio.CancelledError | None = None
    while left := [task for task in tasks if not task.done()]:
        for task in left:
            task.cancel()
        try:
            await asyncio.wait(left)
        except asyncio.CancelledError as error:
            again = error
    if again is not None:
        raise again
