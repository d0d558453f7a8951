"""``FIND patterns``: expands blocks of partial rows along the adjacency, in the order that a ``PatternPlan`` gives.

A row has one position for each element of the patterns. Blocks of at most ``BLOCK`` rows are expanded depth first, so memory does not
depend on the number of partial rows. An edge between two nodes that are already bound is looked up in the edges sorted by their ends.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from attrs import define, field

from ...lang.trees.conditions import Condition
from ..graph import Caps
from .column_types import Array, Mask
from .pattern_candidates import LinkEdges
from .pattern_plan import PatternPlan, Step
from .rows import Deadline

BLOCK = 100_000
"""Maximum number of partial rows that are expanded at once."""
_FIRST = 256
"""Number of rows of the first block if ``PatternRun.first``. Each further block has twice as many rows, up to ``BLOCK``."""


class Rows:
    """Rows with one position per slot. If rows are made from other rows, their columns are computed on the first access.

    Such a column is the parent's column at the indices ``owner``. ``read_later`` is (slot, array, indices): for this slot, the
    column is ``array`` at ``indices`` instead.
    """

    __slots__ = ("_columns", "_later", "_owner", "_parent", "size")

    def __init__(
        self,
        columns: dict[int, Array],
        size: int,
        parent: "Rows | None" = None,
        owner: Array | None = None,
        read_later: tuple[int, Array, Array] | None = None,
    ) -> None:
        self.size = size
        self._columns = columns
        self._parent = parent
        self._owner = owner
        self._later = read_later

    def __getitem__(self, slot: int) -> Array:
        column = self._columns.get(slot)
        if column is None:
            if self._later is not None and slot == self._later[0]:
                column = self._later[1].take(self._later[2])
            else:
                assert self._parent is not None and self._owner is not None  # noqa: S101  # otherwise all columns exist
                column = self._parent[slot].take(self._owner)
            self._columns[slot] = column
        return column

    def having(self, mask: Mask) -> "Rows":
        """Return the rows where ``mask`` is true."""
        at = np.flatnonzero(mask)
        return self if len(at) == self.size else self._with(lambda values: values.take(at), len(at))

    def piece(self, begin: int, end: int) -> "Rows":
        """Return the rows from ``begin`` to ``end``."""
        return self._with(lambda values: values[begin:end], min(end, self.size) - begin)

    def _with(self, choose: Callable[[Array], Array], size: int) -> "Rows":
        owner = None if self._owner is None else choose(self._owner)
        later = self._later
        if later is not None:
            later = None if later[0] in self._columns else (later[0], later[1], choose(later[2]))
        return Rows({slot: choose(column) for slot, column in self._columns.items()}, size, self._parent, owner, later)

    def more(
        self, owner: Array, columns: dict[int, Array], read_later: tuple[int, Array, Array] | None = None
    ) -> "Rows":
        """Return rows with additional columns. Each element of ``owner`` is the index of the row of this object that is extended."""
        return Rows(columns, len(owner), self, owner, read_later)


@define(eq=False)
class PatternRun:
    """One search. ``examined`` counts the partial rows; ``hit`` contains the names of the caps that ended the search.

    If ``first`` is true, the search may need only its first rows, so the first blocks are small.
    """

    plan: PatternPlan
    caps: Caps
    deadline: Deadline
    first: bool
    examined: int = 0
    hit: set[str] = field(factory=set)
    _stages: list["_Stage"] = field(factory=list)

    def blocks(self) -> Iterator[Rows]:
        """Yield the rows in blocks, until all rows are found or a cap ends the search."""
        plan = self.plan
        bound, stages = {plan.start}, list[_Stage]()
        waiting = list(plan.between)
        beginning = _ready(waiting, bound, plan)
        for step in plan.steps:
            before = set(bound)
            if step.spot is not None:
                bound.add(step.spot)
            if len(step.links) == 1:
                bound.add(step.links[0][0].link.slot)
            early = _ready(waiting, bound, plan)
            bound |= {each.link.slot for each, _ in step.links}
            stages.append(_Stage(step, before, early, _ready(waiting, bound, plan)))
        self._stages = stages
        start = plan.spots[plan.start]
        positions, done, size = start.positions(), 0, _FIRST if self.first else BLOCK
        while done < len(positions) and not self._over():
            some = positions[done : done + size]
            done, size = done + size, min(size * 2, BLOCK)
            self.examined += len(some)
            if start.rest is not None:
                some = some[start.rest.allowed(some)]
            rows = self._checked(Rows({plan.start: some}, len(some)), beginning)
            yield from self._grown(rows, 0)

    def _over(self) -> bool:
        if self.examined > self.caps.max_examined:
            self.hit.add("max_examined")
        if self.deadline.passed():
            self.hit.add("timeout_s")
        return bool(self.hit)

    def _grown(self, rows: Rows, level: int) -> Iterator[Rows]:
        """Yield the rows that result from extending ``rows`` by the stages from ``level`` on."""
        if not rows.size:
            return
        if level == len(self._stages):
            yield rows
            return
        for some in self._stepped(rows, self._stages[level]):
            yield from self._grown(some, level + 1)
            if self.hit:
                return

    def _stepped(self, rows: Rows, stage: "_Stage") -> Iterator[Rows]:
        step = stage.step
        if step.spot is None:
            for begin in range(0, rows.size, BLOCK):
                if self._over():
                    return
                piece = rows.piece(begin, begin + BLOCK) if rows.size > BLOCK else rows
                for some in self._closed(piece, [each for each, _ in step.links], stage.before):
                    yield self._checked(some, [*stage.early, *stage.late])
            return
        for option, part in self._parts(rows, step):
            each, origin = step.links[option]
            others = [other for at, (other, _) in enumerate(step.links) if at != option]
            for found in self._expanded(part, each, origin, step.spot, stage.before, not others):
                quick, waiting = self._quickly_checked(found, stage.early)
                for some in self._closed(quick, others, {*stage.before, each.link.slot}):
                    # This test follows the look-ups, because they leave few rows.
                    distinct = self._distinct(some, each, stage.before) if others else some
                    yield self._checked(distinct, [*waiting, *stage.late])

    @staticmethod
    def _parts(rows: Rows, step: Step) -> Iterator[tuple[int, Rows]]:
        """Yield the index of each link, with the rows that follow it: those for which this link has the fewest edges."""
        if len(step.links) == 1:
            yield 0, rows
            return
        counts = [each.adjacency(origin == each.link.tail).degrees(rows[origin]) for each, origin in step.links]
        chosen = np.argmin(np.stack(counts), axis=0)
        for option in range(len(step.links)):
            part = rows.having(chosen == option)
            if part.size:
                yield option, part

    def _expanded(
        self, rows: Rows, each: LinkEdges, origin: int, spot: int, before: set[int], distinct: bool
    ) -> Iterator[Rows]:
        """Yield the rows, in blocks, extended by each candidate edge of a link at ``origin`` and by the node at its other end.

        If ``distinct`` is true, this checks that the edge is not bound already; otherwise the caller does.
        """
        adjacency = each.adjacency(origin == each.link.tail)
        nodes = rows[origin]
        after = adjacency.first.take(nodes + 1)
        ends = np.cumsum(after - adjacency.first.take(nodes))
        shifts = after - ends
        for begin, owner in self._ranges(ends):
            at = shifts.take(owner)
            at += np.arange(begin, begin + len(at))
            some = rows.more(owner, {spot: adjacency.heads.take(at)}, (each.link.slot, adjacency.edges, at))
            if not each.reduced:
                for slot, mask in ((spot, self.plan.spots[spot].mask), (each.link.slot, each.found.mask)):
                    if mask is not None:
                        some = some.having(mask.take(some[slot]))
            if distinct:
                some = self._distinct(some, each, before)
            for slot, rest in ((each.link.slot, each.found.rest), (spot, self.plan.spots[spot].rest)):
                if rest is not None and some.size:
                    some = some.having(rest.allowed(some[slot]))
            yield some

    def _closed(self, rows: Rows, links: Sequence[LinkEdges], before: set[int]) -> Iterator[Rows]:
        """Yield the rows, in blocks, extended by an edge for each of ``links``. Both ends of these links are already bound."""
        if not (rows.size and links):
            if rows.size:
                yield rows
            return
        each, link = links[0], links[0].link
        pairs = each.pairs()
        found, first, counts = pairs.between(rows[link.tail], rows[link.head])
        ends = np.cumsum(counts)
        shifts = first + counts - ends
        for begin, owner in self._ranges(ends):
            at = shifts.take(owner)
            at += np.arange(begin, begin + len(at))
            edges = pairs.edges.take(at)
            some = rows.more(found.take(owner), {link.slot: edges})
            keep = each.kept_pairs(edges, some[link.tail])
            if keep is not None:
                some = some.having(keep)
            some = self._distinct(some, each, before)
            if each.found.rest is not None and some.size:
                some = some.having(each.found.rest.allowed(some[link.slot]))
            yield from self._closed(some, links[1:], {*before, link.slot})

    def _ranges(self, ends: Array) -> Iterator[tuple[int, Array]]:
        """Yield the numbers from 0 to ``ends[-1] - 1`` in blocks: the first number of the block, and the row of each number.

        The numbers of row i end before ``ends[i]``. The iteration stops if a cap is reached.
        """
        total, size, begin = int(ends[-1]) if len(ends) else 0, _FIRST if self.first else BLOCK, 0
        while begin < total and not self._over():
            end = min(begin + size, total)
            low, high = np.searchsorted(ends, (begin, end - 1), "right").tolist()
            counts = np.diff(np.clip(ends[low : high + 1], begin, end), prepend=begin)
            self.examined += end - begin
            yield begin, np.repeat(np.arange(low, high + 1), counts)
            begin, size = end, min(2 * size, BLOCK)

    def _distinct(self, rows: Rows, each: LinkEdges, before: set[int]) -> Rows:
        """Return the rows in which the edge of a link differs from all edges that were bound earlier."""
        nodes = len(self.plan.spots)
        for slot in before:
            if slot >= nodes and rows.size and not _disjoint(each, self.plan.links[slot - nodes]):
                rows = rows.having(rows[each.link.slot] != rows[slot])
        return rows

    def _quickly_checked(self, rows: Rows, conditions: Sequence[Condition]) -> tuple[Rows, list[Condition]]:
        """Apply the conditions that columns can evaluate. Return the rows that satisfy them, and the other conditions."""
        waiting: list[Condition] = []
        for condition in conditions:
            mask = self.plan.values.mask(condition, rows, rows.size) if rows.size else None
            if mask is None:
                waiting.append(condition)
            else:
                self.plan.values.count_left_out(condition, rows, rows.size)
                rows = rows.having(mask)
        return rows, waiting

    def _checked(self, rows: Rows, conditions: Sequence[Condition]) -> Rows:
        """Return the rows that satisfy ``conditions``; conditions that columns can evaluate are checked first."""
        rows, waiting = self._quickly_checked(rows, conditions)
        for condition in waiting:
            if not rows.size:
                return rows
            self.plan.values.count_left_out(condition, rows, rows.size)
            rows = rows.having(self.plan.values.holds(condition, rows, rows.size, self.deadline))
        return rows


@define(eq=False)
class _Stage:
    """A step, the slots bound before it, and the conditions that can be checked after the first link and after all links."""

    step: Step
    before: set[int]
    early: list[Condition]
    late: list[Condition]


def _ready(waiting: list[Condition], bound: set[int], plan: PatternPlan) -> list[Condition]:
    """Remove from ``waiting`` the conditions whose elements are all bound, and return them."""
    found = [each for each in waiting if plan.shape.slots_of(each) <= bound]
    waiting[:] = [each for each in waiting if not any(each is other for other in found)]
    return found


def _disjoint(one: LinkEdges, other: LinkEdges) -> bool:
    """Return whether two links never have the same edge, because they have different labels."""
    first, second = one.link.labels, other.link.labels
    return first is not None and second is not None and not set(first) & set(second)
