"""Looking at every node or edge of the live graph. Always right, whatever was written to the graph and how."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from time import monotonic
from typing import Any, Literal

from ....lang.evaluate.conditions import Predicate
from ...graph import Caps, Stoppable

__all__ = ["Deadline", "Kind", "rows_of", "scan"]

Kind = Literal["nodes", "edges"]
_CHUNK, _WIDE_CHUNK = 8192, 64
"""Rows between two looks at the clock; few for a condition so wide that each row takes long."""


class Deadline:
    """When searching must end. ``passed`` says whether it has, and remembers. ``ended``: whether the caller wants no more of it."""

    def __init__(self, seconds: float, ended: Callable[[], bool] = lambda: False) -> None:
        self._end = monotonic() + seconds
        self.ended = ended
        self.hit = False

    @classmethod
    def of(cls, caps: Caps) -> "Deadline":
        """Return the deadline of a search under ``caps`` that begins now."""
        return cls(caps.timeout_s, caps.ended) if isinstance(caps, Stoppable) else cls(caps.timeout_s)

    def passed(self) -> bool:
        """Say whether the time is over, or nobody waits any more."""
        self.hit = self.hit or monotonic() > self._end or self.ended()
        return self.hit


def rows_of(graph: Any, kind: Kind) -> Iterator[tuple[Any, ...]]:
    """Yield ``(node, attributes)`` or ``(source, target, key, attributes)`` in the graph's own order; key None without one."""
    if kind == "nodes":
        return iter(graph.nodes.items())
    if graph.is_multigraph():
        return iter(graph.edges(keys=True, data=True))
    return ((source, target, None, data) for source, target, data in graph.edges(data=True))


def scan(
    rows: Iterable[tuple[Any, ...]], predicate: Predicate | None, most: int | None, deadline: Deadline
) -> tuple[list[tuple[Any, ...]], int]:
    """Return the rows for which the predicate holds, at most ``most`` of them, and how many were looked at."""
    found: list[tuple[Any, ...]] = []
    examined = 0
    source = iter(rows)
    largest = _CHUNK if predicate is None or predicate.made == "code" else _WIDE_CHUNK
    while not deadline.passed() and (most is None or len(found) < most):
        # Small chunks at first: a small LIMIT is often satisfied by the first rows.
        chunk = list(islice(source, min(largest, 64 + 4 * examined)))
        if not chunk:
            break
        examined += len(chunk)
        found += chunk if predicate is None else predicate.select(chunk)
    return (found if most is None else found[:most]), examined
