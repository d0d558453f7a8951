"""Ends work in pure Python when its time is over or nobody waits any more: NetworkX's algorithms can't be told to.

A thread of its own watches the clock and raises an exception in the working thread, which the interpreter delivers at the next
bytecode, wherever that is. Work in C ends when it returns.
"""

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from time import monotonic
from typing import Any, Generic, TypeVar

__all__ = ["Alarm", "Ended", "Late", "watched"]

T = TypeVar("T")

_LOOK = 0.05
"""Seconds between two looks at the clock, and between two alarms where the first one was swallowed."""

_ALGORITHMS = frozenset({"networkx", __name__.partition(".")[0]})
_MISSES = 200
"""Looks at a thread that is elsewhere, a millisecond each, before it is taken for work too."""


class Ended(Exception):
    """Nobody wants the result any more."""


class Late(Exception):
    """The time is over."""


class Alarm(Generic[T]):
    """Runs ``work`` for at most ``seconds``, or until ``ended()`` is true."""

    def __init__(self, seconds: float, ended: Callable[[], bool]) -> None:
        self._until = monotonic() + seconds
        self._ended = ended
        self._done = threading.Event()
        self._missed = 0

    def run(self, work: Callable[[], T]) -> T:
        """Return what ``work`` returns. Raises ``Late`` and ``Ended``, and what it raises."""
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
            self._stop(watcher)  # it may have come on the way there
            if not result:
                raise
        return result[0]

    def _stop(self, watcher: threading.Thread) -> None:
        """Make sure that no alarm comes any more, also none that was on its way."""
        while True:
            try:
                self._done.set()
                watcher.join()
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(threading.get_ident()), None)
                for _ in range(3):  # one that was under way comes here
                    pass
            except (Late, Ended):
                continue
            return

    def _watch(self, thread: int) -> None:
        while not self._done.wait(max(0.001, min(_LOOK, self._until - monotonic()))):
            reason = Ended if self._ended() else Late if monotonic() > self._until else None
            if reason is None or not self._at_work(thread):
                continue
            with suppress(AttributeError):  # an interpreter without it: the algorithm runs to its end
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(reason))
            if self._done.wait(_LOOK):
                return

    def _at_work(self, thread: int) -> bool:
        """Say whether the thread is in the algorithm: in what the interpreter calls by itself an exception is lost."""
        frame = sys._current_frames().get(thread)
        name = "" if frame is None else str(frame.f_globals.get("__name__"))
        self._missed += 1
        return name != __name__ and (name.partition(".")[0] in _ALGORITHMS or self._missed > _MISSES)


# A graph that stops an algorithm which nobody waits for any more.
# NetworkX's algorithms can't be told to end. All of them go through the nodes of the graph that they are given, though, and those
# that take long do so again and again; so they are given the same graph in a class that asks first.


def watched(graph: Any, ended: Callable[[], bool], *, rows: bool = False) -> Any:
    """Return ``graph``, sharing all that it holds, in a class that raises ``Ended`` in place of its nodes once ``ended()`` is true.

    Results are the same bit for bit: the nodes come in their order. ``rows``: also in place of a node's neighbours, attributes and
    degree, for algorithms that ask for those only; that costs a little at each node. Graphs that an algorithm makes in the class of
    the one it was given are watched, too.
    """
    kind: Any = type(graph)

    def look() -> None:
        if ended():
            raise Ended

    class Watched(kind):  # type: ignore[misc]
        """The graph's class, which asks first."""

        def __iter__(self) -> Iterator[Any]:
            look()
            return iter(super().__iter__())

    class WithRows(Watched):
        """The same, which also asks before what one node has."""

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
    # Views that are kept hold on to the graph they are of: each of the two makes its own.
    views = {name for each in kind.__mro__ for name, value in vars(each).items() if isinstance(value, cached_property)}
    made.__dict__ = {name: value for name, value in vars(graph).items() if name not in views}
    return made
