"""A graph that stops an algorithm which nobody waits for any more.

NetworkX's algorithms can't be told to end. All of them go through the nodes of the graph that they are given, though, and those that
take long do so again and again; so they are given the same graph in a class that asks first.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from .alarm import Ended

__all__ = ["Ended", "watched"]


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
