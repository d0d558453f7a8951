"""Runs work in a separate event loop and thread, so that CPU work does not block the caller's event loop.

An expression may take a third of a second, and steps without model calls run without a pause. A thousand such steps in a server's
own loop would block every other client for minutes. Model clients stay in the caller's loop, because they are bound to it.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, Unpack, cast

from ...adapters.llm import Completion, Notice, Options
from ...adapters.llm.middleware import Client, Layer

T = TypeVar("T")


async def run_in_worker(work: Callable[[asyncio.Event], Coroutine[Any, Any, T]], cancel: asyncio.Event) -> T:
    """Run the coroutine that ``work`` returns in a separate event loop; return its result, or raise its exception.

    ``work`` receives an event of the separate loop, which is set when ``cancel`` is set. If the caller is cancelled, the work is
    cancelled too; ``CancelledError`` is re-raised after the work has ended.
    """
    loop, runner, worker_cancel = (
        asyncio.get_running_loop(),
        asyncio.Runner(loop_factory=asyncio.new_event_loop),
        asyncio.Event(),
    )
    worker_loop = runner.get_loop()
    finished: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()

    def run() -> None:
        result, error = None, None
        try:
            with runner:
                result = runner.run(work(worker_cancel))
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the caller's loop is closed: the process is ending, and nothing waits
            loop.call_soon_threadsafe(finished.set_result, (result, error))

    def cancel_all() -> None:
        for task in asyncio.all_tasks(worker_loop):
            task.cancel()

    def call_in_worker(callback: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the worker's loop is closed: the work is done
            worker_loop.call_soon_threadsafe(callback)

    async def forward_cancel() -> None:
        await cancel.wait()
        call_in_worker(worker_cancel.set)

    watcher = asyncio.create_task(forward_cancel())
    try:
        threading.Thread(target=run, name="knotwork-script", daemon=True).start()
        result, error = await asyncio.shield(finished)
    except asyncio.CancelledError:
        call_in_worker(cancel_all)
        await asyncio.wait([finished])
        raise
    finally:
        watcher.cancel()
    if error is not None:
        raise error
    return cast(T, result)


class CrossLoopClient(Layer):
    """Lets callers in another event loop use a client of the event loop ``home``. The client is closed in ``home``, not here."""

    def __init__(self, inner: Client, home: asyncio.AbstractEventLoop) -> None:
        super().__init__(inner)
        self._home = home

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer."""
        loop, notify = asyncio.get_running_loop(), options.get("notify")
        if notify is not None:

            def forward(notice: Notice) -> None:
                with contextlib.suppress(RuntimeError):  # the caller's loop is closed: nothing waits for the answer
                    loop.call_soon_threadsafe(notify, notice)

            options["notify"] = forward
        if (on_delta := options.get("on_delta")) is not None:

            def forward_delta(text: str) -> None:
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(on_delta, text)

            options["on_delta"] = forward_delta
        answer = asyncio.run_coroutine_threadsafe(self._inner.generate(prompt, **options), self._home)
        return await asyncio.wrap_future(answer)

    async def aclose(self) -> None:
        """Leave the client open."""
