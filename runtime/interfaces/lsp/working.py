"""A thread that works for the server, one piece of work after the other, and holds up nobody's end.

The pool of the standard library is waited for when the interpreter ends: a graph that is still being loaded, or the tokens of a huge
line, would keep the process of an editor that has long gone.
"""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar

__all__ = ["Worker"]

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Work = tuple["Future[Any]", Callable[[], Any]]


class Worker(Executor):
    """One thread that begins with the first work given to it, and dies with the process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread: Thread | None = None

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> "Future[_T]":
        """Have something done when all that was given before is; cancelled before its turn, it is not begun."""
        future: Future[_T] = Future()
        self._queue.put((future, lambda: fn(*args, **kwargs)))
        if self._thread is None:
            self._thread = Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = True) -> None:
        """Begin nothing more. What is under way goes on as long as the process does, and is not waited for."""
        while not self._queue.empty():
            work = self._queue.get()
            if work is not None:
                work[0].cancel()
        self._queue.put(None)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            future, call = work
            if not future.set_running_or_notify_cancel():
                continue
            try:
                made = call()
            except BaseException as error:  # whatever it was, whoever waits for it is told
                future.set_exception(error)
            else:
                future.set_result(made)
