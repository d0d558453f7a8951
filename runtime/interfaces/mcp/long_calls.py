"""Long work of a tool: runs outside the server's loop with a time limit and progress reports, and ends when its caller is gone.

The SDK cancels the call of a client that cancels or disconnects. The work then ends in order: the command under way is cancelled,
earlier commits remain, and the call ends when none of its work is running. A call's time starts with the call: waiting for a
slot, or for the state, counts.
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
"""Seconds that cancelled work gets to end in order."""


@define
class Timeout:
    """Whether the work was cancelled for its time limit."""

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
    """Return the result of ``function`` for ``client``; it reads a text of ``characters`` characters. Raises ``ToolError``."""
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
    """Run the coroutine of ``work`` for ``client``, and return its result. ``turn``: it needs the state. Raises ``ToolError``.

    ``work`` receives an event that is set when it must end.
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
    """Raise ``ToolError`` if the enclosed work takes longer than a call may."""
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
        with anyio.CancelScope(shield=True):  # the SDK repeatedly cancels work that continues to wait
            await asyncio.wait([task], timeout=_LINGER)
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # retrieved; no caller is left to receive it
        raise
    finally:
        timer.cancel()


# The events of a run as progress of its call: a number that only grows, and a sentence.

ReportProgress = Callable[[float, float | None, str], Awaitable[None]]
"""Sends progress: amount done, total (None: unknown), message."""

_PAUSE = 0.1
"""Minimum seconds between two messages; events in between are covered by the next one."""
_LONGEST = 200


@define(eq=False)
class Progress:
    """Counts finished work. Steps and commands count one each; model calls are fractions of the present one."""

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
        """The amount done, including a fraction for the present work: grows with every call, always below the next integer."""
        return self.done + self._since / (self._since + 1)

    def _finish_one(self, message: str) -> None:
        self.done += 1
        self._since = 0
        self.message = printable(message)[:_LONGEST]


@asynccontextmanager
async def progress_reports(report: ReportProgress) -> AsyncIterator[Callable[[Event], None]]:
    """Yield a subscriber for events of any thread; ``report`` is called in this loop, at a limited rate, until the end."""
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
        await asyncio.gather(reporter, return_exceptions=True)  # a disconnected client receives no more
