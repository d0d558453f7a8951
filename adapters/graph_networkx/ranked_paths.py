"""``FIND paths ... SHORTEST [k] [BY value]``: finds the simple paths of each pair of a start and an end, cheapest first.

Each pair's paths are found one by one (Yen 1971, in Lawler's form of 1972). A *branch* holds all paths that begin with a given
prefix and don't continue with given edges. The cheapest path of a branch is found by A*; the branch is then split at every node
of this path. One search by Dijkstra's algorithm per start or per end, which goes only as far as necessary, gives the lower
bounds of branches and the estimates of A*. For a single pair, this search goes from both ends. A label is an integer: the cost,
shifted left by ``SHIFT`` bits, plus the number of edges. Paths of equal cost are thus ordered by length. Paths with equal
labels are sorted by their starts, then by their edges. The results are exact; costs are added without rounding.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count as counter
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field, frozen

from .path_conditions import PathOrder
from .paths import Endpoints, Filter
from .rows import Deadline
from .tables import Adjacency

SHIFT = 32
"""Number of bits of a label that contain the number of edges."""
_EDGES = (1 << SHIFT) - 1
UNIT = (1 << SHIFT) + 1
"""The label of an edge if every edge costs 1."""
_NEVER = 1 << 4096
"""The label of a node from which the end can't be reached."""
_LOOK = 256
"""Number of steps between two checks of the clock."""

State: TypeAlias = Any
"""A node; or, if the length is bounded or values must increase, a node, the number of edges and the last edge."""


class OutOfTime(Exception):
    """Raised if the time limit has passed or the caller has cancelled."""


@frozen(eq=False)
class RankedPath:
    """A path with its label. Nodes and edges are positions; ``start`` is the index of the first node among the starts."""

    label: int
    start: int
    nodes: tuple[int, ...]
    edges: tuple[int, ...]

    @property
    def key(self) -> tuple[int, int, tuple[int, ...]]:
        """The sort key: cost, length, start, edges."""
        return self.label, self.start, self.edges


@define(eq=False)
class Steps:
    """The usable edges of a node, as ``(edge, head, label)``, cached for one search."""

    adjacency: Adjacency
    costs: Sequence[int] | None
    unused: frozenset[int]
    nodes: Filter | None
    edges: Filter | None
    _known: dict[int, list[tuple[int, int, int]]] = field(factory=dict)

    def of(self, node: int) -> list[tuple[int, int, int]]:
        """Return the edges of ``node`` in the graph's order."""
        known = self._known.get(node)
        return self._read(node) if known is None else known

    def _read(self, node: int) -> list[tuple[int, int, int]]:
        adjacency = self.adjacency
        here = slice(int(adjacency.first[node]), int(adjacency.first[node + 1]))
        edges, heads = adjacency.edges[here], adjacency.heads[here]
        if self.edges is not None and len(edges):
            keep = self.edges.allowed(edges)
            edges, heads = edges[keep], heads[keep]
        if self.nodes is not None and len(edges):
            keep = self.nodes.allowed(heads)
            edges, heads = edges[keep], heads[keep]
        pairs = zip(edges.tolist(), heads.tolist(), strict=True)
        costs, unused = self.costs, self.unused
        if costs is None:
            made = [(edge, head, UNIT) for edge, head in pairs]
        else:
            made = [(edge, head, (costs[edge] << SHIFT) + 1) for edge, head in pairs if edge not in unused]
        self._known[node] = made
        return made


class _Ball:
    """The nodes nearest to ``root``, with their labels. Dijkstra's algorithm adds one node at a time."""

    def __init__(self, root: int, steps: Steps, look: Callable[[], None]) -> None:
        self.root = root
        self.labels: dict[int, int] = {}
        self.open = {root: 0}
        self._heap = [(0, root)]
        self._steps = steps
        self._look = look

    @property
    def radius(self) -> int | None:
        """The smallest known label of a node outside the ball; None if no such label is known."""
        heap, labels = self._heap, self.labels
        while heap and heap[0][1] in labels:
            heappop(heap)
        return heap[0][0] if heap else None

    def grow(self) -> tuple[int, int] | None:
        """Add the nearest node, and return the node with its label; None if no node is left."""
        if self.radius is None:
            return None
        if len(self.labels) % _LOOK == 0:
            self._look()
        label, node = heappop(self._heap)
        self.labels[node] = label
        known, open_ = self.labels, self.open
        for _, head, step in self._steps.of(node):
            new = label + step
            if head not in known and new < open_.get(head, new + 1):
                open_[head] = new
                heappush(self._heap, (new, head))
        return node, label

    @property
    def frontier(self) -> int:
        """The number of known labels outside the ball. The smaller this number, the cheaper it is to grow the ball."""
        return len(self._heap)


@define(eq=False)
class _Pair:
    """A start and an end. ``remaining`` returns a lower bound of the label from a node to the end.

    ``label`` is the label of the best accepted path.
    """

    index: int
    start: int
    end: int
    remaining: Callable[[int], int]
    accepted: int = 0
    label: int = -1


@frozen(eq=False)
class _Branch:
    """The paths of a pair that begin with a given prefix and don't continue with one of the edges ``banned``."""

    pair: _Pair
    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    label: int
    banned: frozenset[int] = frozenset()


@define(eq=False)
class RankedSearch:
    """The search for the cheapest simple paths of each pair of a start and an end.

    ``count`` is the number of paths of each pair; None means all paths with the smallest cost. ``costs`` has the exact cost of
    every edge except the edges in ``unused``; it is None if every edge costs 1. ``longest`` is the maximum number of edges. A
    path must cost less than ``dearest``. For ``longest`` and ``dearest``, None means no limit. ``order`` contains the values
    that must increase along a path. ``accepts`` tests a path.
    """

    points: Endpoints
    forward: Adjacency
    backward: Adjacency
    accepts: Callable[[RankedPath], bool]
    deadline: Deadline
    count: int | None = None
    costs: Sequence[int] | None = None
    unused: frozenset[int] = frozenset()
    nodes: Filter | None = None
    edges: Filter | None = None
    order: PathOrder | None = None
    longest: int | None = None
    dearest: int | None = None
    examined: int = 0
    cut: bool = False
    """Whether a path was excluded because it has more than ``longest`` edges."""
    _out: Steps = field(init=False)
    _in: Steps = field(init=False)
    _numbers: Iterator[int] = field(init=False, factory=counter)

    def __attrs_post_init__(self) -> None:
        """Prepare the steps in both directions."""
        self._out = Steps(self.forward, self.costs, self.unused, self.nodes, self.edges)
        self._in = Steps(self.backward, self.costs, self.unused, self.nodes, self.edges)

    def first(self, most: int) -> list[RankedPath]:
        """Return the first ``most`` paths of all pairs in order. On timeout ``deadline.hit`` is true, and paths may be missing."""
        starts: list[int] = self.points.starts.tolist()
        if self.nodes is not None:
            keep = self.nodes.allowed(self.points.starts)
            starts = [start for start, kept in zip(starts, keep.tolist(), strict=True) if kept]
        if not starts or most <= 0:
            return []
        places = {node: at for at, node in enumerate(starts)}
        ends: set[int] | None = None
        if self.points.ends is not None:
            ends = set(self.points.ends.tolist())
        found: list[RankedPath] = []
        try:
            if ends is not None and len(ends) < len(starts):
                for end in sorted(ends):
                    found = self._merged(found, self._to_end(places, end), most)
            elif ends is not None and len(starts) == 1 and len(ends) == 1:
                (end,) = ends
                found = self._merged([], self._of_pair(starts[0], end), most)
            else:
                for start, at in places.items():
                    found = self._merged(found, self._from_start(start, at, ends), most)
        except OutOfTime:
            self.deadline.passed()
        return found

    def _merged(self, found: list[RankedPath], more: Iterator[RankedPath], most: int) -> list[RankedPath]:
        """Merge ``found`` and ``more``, which are sorted. Return the first ``most`` paths."""
        worst = found[-1].key if len(found) >= most else None
        new: list[RankedPath] = []
        try:
            for path in more:
                if worst is not None and path.key > worst:
                    break
                new.append(path)
                if len(new) >= most:
                    break
        except OutOfTime:
            self.deadline.passed()
        if not found:
            return new
        return sorted([*found, *new], key=lambda path: path.key)[:most]

    # One search per start, per end, or from both ends of a single pair.

    def _of_pair(self, start: int, end: int) -> Iterator[RankedPath]:
        if start == end:
            return
        ahead, back = _Ball(start, self._out, self._look), _Ball(end, self._in, self._look)
        best: int | None = None
        while True:
            far, near = ahead.radius, back.radius
            if far is None or near is None or (best is not None and far + near >= best):
                break
            ball, other = (ahead, back) if ahead.frontier <= back.frontier else (back, ahead)
            grown = ball.grow()
            if grown is not None and grown[0] in other.open:
                met = grown[1] + other.open[grown[0]]
                best = met if best is None or met < best else best
        if best is None:
            return
        yield from self._ranked([_Pair(0, start, end, _within(back))])

    def _to_end(self, places: Mapping[int, int], end: int) -> Iterator[RankedPath]:
        if self.nodes is not None and not self.nodes.allowed(np.array([end]))[0]:
            return
        ball = _Ball(end, self._in, self._look)
        wanted = len(places) - (end in places)
        pairs: list[int] = []
        while len(pairs) < wanted and (grown := ball.grow()) is not None:
            if grown[0] in places and grown[0] != end:
                pairs.append(grown[0])
        yield from self._ranked([_Pair(places[start], start, end, _within(ball)) for start in pairs])

    def _from_start(self, start: int, at: int, ends: set[int] | None) -> Iterator[RankedPath]:
        ball = _Ball(start, self._out, self._look)
        wanted = None if ends is None else len(ends) - (start in ends)

        def pairs() -> Iterator[tuple[int, _Pair] | None]:
            left = wanted
            while left != 0 and (grown := ball.grow()) is not None:
                end, label = grown
                if end != start and (ends is None or end in ends):
                    left = None if left is None else left - 1
                    yield label, _Pair(at, start, end, self._through(ball, end, label))
                else:
                    yield None

        yield from self._ranked((), pairs(), ball)

    def _through(self, ball: _Ball, end: int, label: int) -> Callable[[int], int]:
        """Return a function that maps a node to a lower bound of the label from it to ``end``.

        ``label`` is the label of ``end`` in ``ball``.
        """
        labels = ball.labels
        tight: dict[int, int] = {}

        def remaining(node: int) -> int:
            if not tight:
                tight[end] = 0
                stack = [end]
                while stack:
                    at = stack.pop()
                    here = labels[at]
                    for _, tail, step in self._in.of(at):
                        if tail not in tight and labels.get(tail) == here - step:
                            tight[tail] = label - labels[tail]
                            stack.append(tail)
            known = tight.get(node)
            if known is not None:
                return known
            reached = labels.get(node)  # from a node that is not on a cheapest path, the rest of the path costs more
            return 1 if reached is None or reached >= label else label - reached + 1

        return remaining

    # The paths of several pairs with the same start or the same end, in order.

    def _ranked(
        self, pairs: Sequence[_Pair], later: Iterator[tuple[int, _Pair] | None] | None = None, ball: _Ball | None = None
    ) -> Iterator[RankedPath]:
        """Yield the accepted paths.

        Each step of ``later`` adds a node to ``ball``. If the node is the end of a pair, ``later`` yields the label of the
        pair's best path, and the pair; otherwise it yields None.
        """
        heap: list[tuple[int, int, int, tuple[int, ...], int, Any]] = []
        for pair in pairs:
            self._push(heap, _Branch(pair, (pair.start,), (), 0), pair.remaining(pair.start))
        while True:
            while ball is not None and (not heap or (ball.radius is not None and ball.radius <= heap[0][0])):
                if later is None or (more := next(later, ())) == ():
                    ball = None
                    break
                if more:
                    self._push(heap, _Branch(more[1], (more[1].start,), (), 0), more[0])
            if not heap:
                break
            self._look()  # a search that accepts no path, or whose searches are all short, would never look at the clock
            label, solved, _, _, _, what = heappop(heap)
            pair = what[0].pair if solved else what.pair
            if self._is_done(pair, label):
                continue
            if not solved:
                if (path := self._best(what)) is not None:
                    heappush(heap, (path.label, 1, path.start, path.edges, next(self._numbers), (what, path)))
                continue
            branch, path = what
            self.examined += 1
            self._split(heap, branch, path)
            if self.accepts(path):
                pair.accepted += 1
                pair.label = path.label if pair.label < 0 else pair.label
                yield path

    def _is_done(self, pair: _Pair, label: int) -> bool:
        if self.dearest is not None and label >> SHIFT >= self.dearest:
            return True
        if self.count is not None:
            return pair.accepted >= self.count
        return pair.accepted > 0 and label >> SHIFT > pair.label >> SHIFT

    def _push(self, heap: list[Any], branch: _Branch, least: int) -> None:
        heappush(heap, (least, 0, branch.pair.index, branch.edges, next(self._numbers), branch))

    def _split(self, heap: list[Any], branch: _Branch, path: RankedPath) -> None:
        """Push branches with all other paths of ``branch``: one branch for the paths that leave ``path`` at the same node."""
        label, pair = branch.label, branch.pair
        steps = {node: self._out.of(node) for node in path.nodes[len(branch.edges) : -1]}
        for at in range(len(branch.edges), len(path.edges)):
            banned = branch.banned if at == len(branch.edges) else frozenset()
            nodes, edges = path.nodes[: at + 1], path.edges[:at]
            other = _Branch(pair, nodes, edges, label, banned | {path.edges[at]})
            least = self._least(other)
            if least is not None:
                self._push(heap, other, max(least, path.label))
            label += next(step for edge, _, step in steps[nodes[-1]] if edge == path.edges[at])

    def _least(self, branch: _Branch) -> int | None:
        """Return a lower bound of the labels of a branch's paths; None if the branch has no paths."""
        best: int | None = None
        inside, banned, remaining = branch.nodes, branch.banned, branch.pair.remaining
        for edge, head, step in self._out.of(branch.nodes[-1]):
            if edge in banned or head in inside:
                continue
            label = branch.label + step + remaining(head)
            if label < _NEVER and (best is None or label < best):
                best = label
        return best

    def _best(self, branch: _Branch) -> RankedPath | None:
        """Return the first path of a branch, by A*; None if the branch has no path.

        Of several best paths, the first in the graph's order is returned. To find it, all states up to the label of the end are
        settled.
        """
        pair, order, longest = branch.pair, self.order, self.longest
        end, remaining = pair.end, pair.remaining
        plain = order is None and longest is None
        inside, banned = set(branch.nodes), branch.banned
        tail = branch.nodes[-1]
        last = branch.edges[-1] if branch.edges else -1
        first: State = tail if plain else (tail, len(branch.edges), last)
        labels: dict[State, int] = {first: branch.label}
        before: dict[State, list[tuple[int, State]]] = {}
        heap: list[tuple[int, int, int, int, State]] = [
            (branch.label + remaining(tail), branch.label, tail, last, first)
        ]
        best: int | None = None
        reached: list[State] = []
        settled: set[State] = set()
        followed = 0
        dearest = None if self.dearest is None else self.dearest << SHIFT
        while heap:
            least, label, node, arrived, state = heappop(heap)
            if (best is not None and least > best) or (dearest is not None and least >= dearest):
                break
            if state in settled:
                continue
            settled.add(state)
            if node == end:
                best = label
                reached.append(state)
                continue
            steps = self._out.of(node)
            followed += 1 + len(steps)  # a node may have very many edges
            if followed >= _LOOK:
                followed = 0
                self._look()
            for edge, head, step in steps:
                if head in inside or (edge in banned and state == first):
                    continue
                new = label + step
                rest = remaining(head)
                if rest >= _NEVER:
                    continue
                if not plain:
                    length = new & _EDGES
                    if longest is not None and length + (head != end) > longest:
                        self.cut = True
                        continue
                    if order is not None and not (
                        order.may_begin(node, edge, head)
                        if arrived < 0
                        else order.may_follow(arrived, node, edge, head)
                    ):
                        continue
                    following: State = (head, 0 if longest is None else length, -1 if order is None else edge)
                else:
                    following = head
                old = labels.get(following)
                if old is None or new < old:
                    labels[following] = new
                    before[following] = [(edge, state)]
                    heappush(heap, (new + rest, new, head, edge, following))
                elif new == old:
                    before[following].append((edge, state))
        if best is None:
            return None
        nodes, edges = self._traced(first, reached, before)
        return RankedPath(best, pair.index, (*branch.nodes, *nodes), (*branch.edges, *edges))

    @staticmethod
    def _traced(
        first: State, reached: list[State], before: Mapping[State, list[tuple[int, State]]]
    ) -> tuple[list[int], list[int]]:
        """Return the rest of a branch's best path: nodes and edges after the prefix. Of several best paths, the first is used."""
        after: dict[State, list[tuple[int, State]]] = {}
        stack, seen = list(reached), set(reached)
        while stack:
            state = stack.pop()
            for edge, earlier in before.get(state, ()):
                after.setdefault(earlier, []).append((edge, state))
                if earlier not in seen:
                    seen.add(earlier)
                    stack.append(earlier)
        nodes: list[int] = []
        edges: list[int] = []
        state, ends = first, set(reached)
        while state not in ends:
            edge, state = min(after[state], key=lambda step: step[0])
            edges.append(edge)
            nodes.append(state[0] if isinstance(state, tuple) else state)
        return nodes, edges

    def _look(self) -> None:
        if self.deadline.passed():
            raise OutOfTime


def _within(ball: _Ball) -> Callable[[int], int]:
    """Return a function that maps a node to a lower bound of the label from the node to the root of ``ball``.

    For a node outside the ball, the bound is the ball's radius.
    """
    labels, radius = ball.labels, ball.radius
    outside = _NEVER if radius is None else radius
    return lambda node: labels.get(node, outside)
