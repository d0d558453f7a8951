"""Determines whether a search with a bound on the length omits longer paths or cycles.

A longer path begins with a simple path of exactly the bound's number of edges, and continues over other nodes to an end. The
search tries these simple paths depth first, until one of them continues to an end. The search is skipped if no walk is long
enough. At first, a path may continue only over nodes near the ends. These nodes are collected backwards from the ends, until
one of them is the end of a walk with one edge more than the bound. In most graphs, these nodes are enough to find a longer
path. Otherwise, a path may continue over all nodes from which an end can be reached. If the search follows too many edges, the
answer is that longer paths may exist.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import define
from numpy.typing import NDArray

from .path_conditions import PathOrder
from .paths import Endpoints, Filter
from .ranked_paths import Steps
from .rows import Deadline
from .tables import Adjacency, distinct

_MOST = 500_000
"""Maximum number of edges that are followed, which takes about a second."""
_FEW = 20_000
"""Maximum number of edges that are followed if only the nodes near the ends are used."""
_LOOK = 4096
"""Number of edges between two checks of the clock."""

Mask: TypeAlias = NDArray[np.bool_]
Test: TypeAlias = Callable[[int], bool]
"""A function that returns whether a node has a certain property."""


def has_longer_path(
    points: Endpoints,
    forward: Adjacency,
    backward: Adjacency,
    length: int,
    nodes: Filter | None,
    edges: Filter | None,
    order: PathOrder | None,
    deadline: Deadline,
) -> bool:
    """Return whether a simple path of more than ``length`` edges leads from a start to an end (start ≠ end).

    The other arguments are the same as for ``search_paths``.
    """
    size = len(forward.first) - 1
    starts, ends = points.starts, points.ends
    if nodes is not None:
        starts = starts[nodes.allowed(starts)]
        ends = None if ends is None else ends[nodes.allowed(ends)]
    every = np.ones(size, np.bool_)
    ahead = _walked(starts, forward, length + 1, every, nodes, edges)
    if length >= size - 1 or not len(ahead):
        return False
    steps = Steps(forward, None, frozenset(), nodes, edges)
    if ends is None:
        return _Search(steps, order, deadline, _MOST).any_goes_on(starts, length, every, every, None)
    leads, last = np.zeros(size, np.bool_), ends
    leads[ends] = True
    while len(last) and not leads[ahead].any():
        last = _grown(leads, last, backward, nodes, edges)
    if not leads[ahead].any():
        return False
    quick = _Search(steps, order, deadline, _FEW)
    if quick.any_goes_on(starts, length, every, leads, set(ends.tolist())) and not quick.is_over:
        return True
    while len(last):
        last = _grown(leads, last, backward, nodes, edges)
    if not len(_walked(starts[leads[starts]], forward, length + 1, leads, nodes, edges)):
        return False
    search = _Search(steps, order, deadline, _MOST)
    return search.any_goes_on(starts[leads[starts]], length, leads, leads, set(ends.tolist()))


def has_longer_cycle(
    forward: Adjacency,
    roots: Iterable[int],
    length: int,
    *,
    directed: bool,
    order: PathOrder | None,
    deadline: Deadline,
) -> bool:
    """Return whether a simple cycle of more than ``length`` edges runs through one of ``roots``.

    ``forward`` are the usable edges. Without ``order``, the search for a cycle begins only at the first node of the cycle.
    """
    search = _Search(Steps(forward, None, frozenset(), None, None), order, deadline, _MOST)
    least = length if directed else max(length, 2)  # two parallel edges of an undirected graph are not a cycle
    for root in roots:
        may_visit: Test = root.__lt__ if order is None else lambda node: True
        if search.goes_on(root, least, may_visit, may_visit, root.__eq__, around=True):
            return True
    return False


def _grown(leads: Mask, last: Any, backward: Adjacency, nodes: Filter | None, edges: Filter | None) -> Any:
    """Add to the mask ``leads`` the nodes from which an edge leads to one of ``last``. Return the added nodes."""
    place = backward.expand(last)[1]
    new = _followed(backward, place[~leads[backward.heads[place]]], nodes, edges)
    leads[new] = True
    return new


def _walked(
    starts: Any, forward: Adjacency, length: int, among: Mask, nodes: Filter | None, edges: Filter | None
) -> Any:
    """Return the nodes at which a walk of ``length`` edges from ``starts`` can end, if it visits only nodes in ``among``."""
    current = starts
    for _ in range(length):
        place = forward.expand(current)[1]
        current = _followed(forward, place[among[forward.heads[place]]], nodes, edges)
        if not len(current):
            break
    return current


def _followed(adjacency: Adjacency, place: Any, nodes: Filter | None, edges: Filter | None) -> Any:
    if edges is not None:
        place = place[edges.allowed(adjacency.edges[place])]
    heads = distinct(adjacency.heads[place])
    return heads if nodes is None else heads[nodes.allowed(heads)]


@define(eq=False)
class _Search:
    """Searches for paths that continue to an end.

    If ``followed``, the number of edges followed in all calls, exceeds ``most``, every result is True.
    """

    steps: Steps
    order: PathOrder | None
    deadline: Deadline
    most: int
    followed: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the search has ended early."""
        return self.followed > self.most or self.deadline.hit

    def any_goes_on(self, starts: Any, length: int, first: Mask, later: Mask, ends: set[int] | None) -> bool:
        """Return whether ``goes_on`` is true for one of ``starts``.

        ``first`` and ``later`` mask the nodes that a path may visit. If ``ends`` is None, any node is an end.
        """
        is_end: Test = (lambda node: True) if ends is None else ends.__contains__
        may_begin: Test = first.tolist().__getitem__
        may_go_on: Test = may_begin if later is first else later.tolist().__getitem__
        return any(self.goes_on(start, length, may_begin, may_go_on, is_end) for start in starts.tolist())

    def goes_on(self, start: int, length: int, first: Test, later: Test, is_end: Test, *, around: bool = False) -> bool:
        """Return whether a simple path of ``length`` edges from ``start`` can be continued to an end.

        ``first`` returns whether a node may be on this path, and ``later`` whether it may be on the continuation. With
        ``around``, the end is ``start`` itself.
        """
        if not length:
            return self._continues([start], -1, later, is_end, around=around)
        path, arrived = [start], [-1]
        waiting = [iter(self.steps.of(start))]
        while waiting:
            for edge, head, _ in waiting[-1]:
                if self._ends():
                    return True
                if head in path or not first(head) or not self._may(arrived[-1], path[-1], edge, head):
                    continue
                path.append(head)
                arrived.append(edge)
                if len(path) <= length:
                    waiting.append(iter(self.steps.of(head)))
                    break
                if self._continues(path, edge, later, is_end, around=around):
                    return True
                path.pop()
                arrived.pop()
            else:
                waiting.pop()
                path.pop()
                arrived.pop()
        return False

    def _continues(self, path: Sequence[int], arrived: int, later: Test, is_end: Test, *, around: bool) -> bool:
        """Return whether edges lead from the last node of ``path`` to an end, over nodes that are not on the path.

        If values must increase along the path, the edges by which a walk may leave a node depend on the edge by which it
        reached the node. A walk that visits a node twice remains valid if the part between the two visits is removed.
        """
        inside = set(path)
        seen: set[Any] = set()
        stack = [(path[-1], arrived)]
        while stack:
            node, last = stack.pop()
            for edge, head, _ in self.steps.of(node):
                if self._ends():
                    return True
                if not self._may(last, node, edge, head):
                    continue
                if around and head == path[0]:
                    return True
                if head in inside or not later(head):
                    continue
                if is_end(head):
                    return True
                state = head if self.order is None else (head, edge)
                if state not in seen:
                    seen.add(state)
                    stack.append((head, edge))
        return False

    def _may(self, last: int, node: int, edge: int, head: int) -> bool:
        if self.order is None:
            return True
        if last < 0:
            return bool(self.order.may_begin(node, edge, head))
        return bool(self.order.may_follow(last, node, edge, head))

    def _ends(self) -> bool:
        self.followed += 1
        return self.followed > self.most or (self.followed % _LOOK == 0 and self.deadline.passed())
