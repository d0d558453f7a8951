"""Runs the long work of a tool outside the server's loop, with a time limit and progress reports.

When a client cancels a call or disconnects, the SDK cancels the call. The running command is then cancelled, earlier commits
remain, and the call ends when none of its work is running. The time limit starts with the call, so it includes the time of waiting
for a slot or for the state.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, ParamSpec, TypeVar

import anyio
from attrs import define, field

from ....lang.diagnostic import printable
from ...api.worker import run_in_worker
from ...events import CallFinished, CommandFinished, Event, PlanStarted, RunStarted, StepFinished, StepSkipped
from .tool_errors import ToolError
from .workspace import ServerWorkspace

P = ParamSpec("P")
T = TypeVar("T")

_LINGER = 2.0
"""Number of seconds in which work can end by itself after a request to end. After that, its task is cancelled."""


@define
class Timeout:
    """Records whether the work of a call was cancelled because it reached the time limit."""

    is_reached: bool = False


async def run_in_pool(
    workspace: ServerWorkspace,
    client: str,
    characters: int,
    function: Callable[P, T],
    /,
    *args: P.args,
    **options: P.kwargs,
) -> T:
    """Run ``function`` for ``client`` and return its result. ``function`` reads a text of ``characters`` characters.

    Raises ``ToolError``.
    """
    async with _in_time(workspace):
        return await workspace.parsers.run(client, characters, function, *args, **options)


async def run_long(
    workspace: ServerWorkspace,
    client: str,
    work: Callable[[asyncio.Event], Coroutine[Any, Any, T]],
    expiry: Timeout,
    *,
    turn: bool,
) -> T:
    """Run the coroutine that ``work`` creates for ``client``, and return its result. Raises ``ToolError``.

    ``work`` receives an event, which is set when the work must end. If ``turn``, the work needs the state and waits for its turn.
    """
    until = asyncio.get_running_loop().time() + workspace.settings.limits.seconds
    async with AsyncExitStack() as held:
        async with _in_time(workspace):
            await held.enter_async_context(workspace.slot(client))
            if turn:
                await held.enter_async_context(workspace.turn)
        return await _within(until, work, expiry)


@asynccontextmanager
async def _in_time(workspace: ServerWorkspace) -> AsyncIterator[None]:
    """Raise ``ToolError`` if the enclosed block takes longer than the time limit of a call."""
    seconds = workspace.settings.limits.seconds
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        message = f"the server was busy with other calls for {seconds:g} s, the limit per call"
        raise ToolError("busy", message, "call again later; nothing was run") from None


async def _within(until: float, work: Callable[[asyncio.Event], Coroutine[Any, Any, T]], expiry: Timeout) -> T:
    cancel = asyncio.Event()

    def on_timeout() -> None:
        expiry.is_reached = True
        cancel.set()

    timer = asyncio.get_running_loop().call_at(until, on_timeout)
    task = asyncio.create_task(run_in_worker(work, cancel), name="tool")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        cancel.set()
        with anyio.CancelScope(shield=True):  # without the shield, the SDK would cancel this wait repeatedly
            await asyncio.wait([task], timeout=_LINGER)
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved, because no caller is left to receive it
        raise
    finally:
        timer.cancel()


# Reports the events of a run as the progress of its call: an increasing number, and a message.

ReportProgress = Callable[[float, float | None, str], Awaitable[None]]
"""Sends progress to the client: the amount done, the total (None: unknown), and a message."""

_PAUSE = 0.1
"""Minimum number of seconds between two messages. The next message includes the events in between."""
_LONGEST = 200


@define(eq=False)
class Progress:
    """Counts finished work. Each step or command counts as one; model calls count as fractions of the current step or command."""

    total: float | None = None
    done: float = 0.0
    calls: int = 0
    message: str = ""
    _since: int = field(default=0, init=False)

    def __call__(self, event: Event) -> bool:
        """Record an event, and return whether it should be reported."""
        match event:
            case RunStarted(layers=layers):
                self.total = float(sum(map(len, layers)))
                self.message = f"{int(self.total)} steps"
            case PlanStarted(commands=commands):
                self.total = float(commands)
                self.message = f"{commands} commands"
            case StepFinished(step=step, status=status):
                self._finish_one(f"step ({step}) {status}")
            case StepSkipped(step=step):
                self._finish_one(f"step ({step}) skipped")
            case CommandFinished(step=step, status=status, count=count) if "." not in step:
                self._finish_one(f"command {step}: {status}" + ("" if count is None else f", {count:,} found"))
            case CallFinished():
                self.calls += 1
                self._since += 1
                self.message = f"{self.calls:,} call{'' if self.calls == 1 else 's'} to models"
            case _:
                return False
        return True

    @property
    def reached(self) -> float:
        """The number of finished steps or commands, plus a fraction below 1 for the current one; model calls increase it."""
        return self.done + self._since / (self._since + 1)

    def _finish_one(self, message: str) -> None:
        self.done += 1
        self._since = 0
        self.message = printable(message)[:_LONGEST]


@asynccontextmanager
async def progress_reports(report: ReportProgress) -> AsyncIterator[Callable[[Event], None]]:
    """Yield a subscriber for events from any thread. Until the block ends, call ``report`` in this loop at a limited rate."""
    loop, changed, progress = asyncio.get_running_loop(), asyncio.Event(), Progress()
    sent = -1.0

    def on_event(event: Event) -> None:
        if progress(event):
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(changed.set)

    async def send() -> None:
        nonlocal sent
        if progress.message and progress.reached > sent:
            sent = progress.reached
            total = progress.total
            await report(sent, None if total is None else max(total, sent), progress.message)

    async def report_repeatedly() -> None:
        while True:
            await changed.wait()
            changed.clear()
            await send()
            await asyncio.sleep(_PAUSE)

    reporter = asyncio.create_task(report_repeatedly())
    try:
        yield on_event
        await asyncio.sleep(0)
        await send()
    finally:
        reporter.cancel()
        await asyncio.gather(reporter, return_exceptions=True)  # reporting fails if the client has disconnected
