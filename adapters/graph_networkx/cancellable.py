"""Interrupts pure-Python code on timeout or cancellation. NetworkX's algorithms need this, because they can't be cancelled.

A separate thread watches the clock and raises an exception in the working thread; the interpreter delivers the exception before
the next bytecode instruction. A call into C can't be interrupted before it returns.
"""

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from time import monotonic
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_LOOK = 0.05
"""Seconds between two checks of the clock. If the first exception has no effect, another one is raised after the same time."""

_ALGORITHMS = frozenset({"networkx", __name__.partition(".")[0]})
_MISSES = 200
"""If this many checks, a millisecond apart, find no running algorithm, the thread is interrupted anyway."""


class Ended(Exception):
    """Raised if the caller no longer needs the result."""


class Late(Exception):
    """Raised if the time limit is exceeded."""


class Alarm(Generic[T]):
    """Runs ``work`` for at most ``seconds``, or until ``ended()`` is true."""

    def __init__(self, seconds: float, ended: Callable[[], bool]) -> None:
        self._until = monotonic() + seconds
        self._ended = ended
        self._done = threading.Event()
        self._missed = 0

    def run(self, work: Callable[[], T]) -> T:
        """Return the result of ``work``. Raises ``Late``, ``Ended`` and the exceptions of ``work``."""
        if self._ended():
            raise Ended
        watcher = threading.Thread(
            target=self._watch, args=(threading.get_ident(),), name="knotwork-alarm", daemon=True
        )
        watcher.start()
        result: list[T] = []
        try:
            try:
                result.append(work())
            finally:
                self._stop(watcher)
        except (Late, Ended):
            self._stop(watcher)  # the exception may have arrived while the watcher was being stopped
            if not result:
                raise
        return result[0]

    def _stop(self, watcher: threading.Thread) -> None:
        """Stop the watcher, and deliver or cancel a pending exception, so that no exception arrives later."""
        while True:
            try:
                self._done.set()
                watcher.join()
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(threading.get_ident()), None)
                for _ in range(3):  # a pending exception is delivered here
                    pass
            except (Late, Ended):
                continue
            return

    def _watch(self, thread: int) -> None:
        while not self._done.wait(max(0.001, min(_LOOK, self._until - monotonic()))):
            reason = Ended if self._ended() else Late if monotonic() > self._until else None
            if reason is None or not self._at_work(thread):
                continue
            with suppress(AttributeError):  # if the interpreter does not support this, the algorithm runs to its end
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(reason))
            if self._done.wait(_LOOK):
                return

    def _at_work(self, thread: int) -> bool:
        """Return whether the thread is executing the algorithm. An exception in a callback of the interpreter would be lost."""
        frame = sys._current_frames().get(thread)
        name = "" if frame is None else str(frame.f_globals.get("__name__"))
        self._missed += 1
        return name != __name__ and (name.partition(".")[0] in _ALGORITHMS or self._missed > _MISSES)


# A graph that cancels an algorithm whose result is no longer wanted. NetworkX's algorithms can't be cancelled, but slow algorithms
# iterate over the nodes repeatedly. So they get the same graph as an instance of a subclass that checks on each iteration.


def watched(graph: Any, ended: Callable[[], bool], *, rows: bool = False) -> Any:
    """Return a view of ``graph`` whose iteration raises ``Ended`` once ``ended()`` is true.

    The view shares the data of ``graph`` and is an instance of a subclass. Results are identical, because the order of nodes is
    unchanged. If ``rows`` is true, each access to a node's neighbours, attributes or degree checks ``ended()`` too. Algorithms
    that do not iterate over nodes need this; it makes each access slightly slower. If an algorithm creates graphs with the
    class of its argument, those graphs are checked too.
    """
    kind: Any = type(graph)

    def look() -> None:
        if ended():
            raise Ended

    class Watched(kind):  # type: ignore[misc]
        """The graph's class, with a check before each iteration."""

        def __iter__(self) -> Iterator[Any]:
            look()
            return iter(super().__iter__())

    class WithRows(Watched):
        """The same class, with an additional check before each access to a node's data."""

        def __getitem__(self, node: Any) -> Any:
            look()
            return super().__getitem__(node)

        @property
        def nodes(self) -> Any:
            look()
            return super().nodes

        @property
        def degree(self) -> Any:
            look()
            return super().degree

    made = object.__new__(WithRows if rows else Watched)
    # Cached views refer to their graph, so each of the two graphs creates its own views.
    views = {name for each in kind.__mro__ for name, value in vars(each).items() if isinstance(value, cached_property)}
    made.__dict__ = {name: value for name, value in vars(graph).items() if name not in views}
    return made
