"""Chooses the order in which elements of patterns are bound, from estimates of partial rows. EXPLAIN shows the order."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from ...lang.trees.conditions import Comparison, Condition
from ..graph import Caps, Plan
from .pattern_candidates import Candidates, LinkEdges, candidates_of, reduce
from .pattern_shape import Link, Shape, condition_text
from .pattern_values import RowValues
from .rows import Deadline
from .tables import Adjacency, Computed

_SHARE = 4
"""Candidates are reduced if more rows are expected than the graph's number of edges divided by this number."""
_SORTED = 4.0
"""Sorting a row is assumed to cost as much as examining this many partial rows."""
_BETTER = 1.3
"""Any other order must be this many times better than the order in the text, because the latter needs no sorting."""
_UNKNOWN = 0.5
_EQUAL = 0.1
_TESTED = 0.5
"""Expected shares of rows that satisfy a condition on several elements (``_EQUAL``: an equality; ``_UNKNOWN``: any other), and
of rows that satisfy a condition that is tested row by row (``_TESTED``)."""


@frozen(eq=False)
class Step:
    """One step of a search.

    The step binds ``spot`` by following one of ``links``. Each of ``links`` comes with the spot from which it is followed. The
    links that are not followed are then looked up in the sorted edges. If ``spot`` is None, both ends of all ``links`` are
    already bound. ``means`` are the expected numbers of edges that are followed from one row.
    """

    spot: int | None
    links: tuple[tuple[LinkEdges, int], ...]
    means: tuple[float, ...] = ()


@define(eq=False)
class PatternPlan:
    """A search: the first spot, the steps, and the expected sizes.

    If ``natural`` is true, the rows are found in the order of the result and need no sorting. ``between`` are the conditions
    that the search checks as soon as their elements are bound. ``rows`` and ``cost`` are the expected numbers of rows and of
    partial rows.
    """

    shape: Shape
    spots: list[Candidates]
    links: list[LinkEdges]
    values: RowValues
    between: list[Condition]
    start: int = 0
    steps: list[Step] = field(factory=list)
    natural: bool = True
    rows: float = 0.0
    cost: float = 0.0

    def impossible(self) -> bool:
        """Return whether an element has no candidate."""
        return any(each.count == 0 for each in self.spots) or any(each.entries() == 0 for each in self.links)


def planned(
    graph: Any, kept: Computed, shape: Shape, wanted: int | None, strict: bool, deadline: Deadline
) -> PatternPlan:
    """Return the plan of a search. Only the first ``wanted`` rows are needed; None means that all rows are needed.

    Raises ``ConditionError``. After the deadline, the plan is incomplete.
    """
    spots = [candidates_of(graph, kept, spot, strict, deadline) for spot in shape.spots]
    links = [LinkEdges(graph, kept, link, candidates_of(graph, kept, link, strict, deadline)) for link in shape.links]
    kinds = {slot: shape.kind(slot) for slot in shape.shown.values()}
    values = RowValues(graph, kept, lambda at: (shape.shown[at.path[0]], kinds[shape.shown[at.path[0]]], at.path[1:]))
    plan = PatternPlan(shape, spots, links, values, list(shape.between))
    if plan.impossible() or deadline.passed():
        return plan
    _arrange(plan, wanted)
    if plan.links and plan.cost > len(kept.edges(graph)) / _SHARE and _reducible(plan):
        local = _Local(plan)
        reduce(spots, links, local.mask, deadline)
        plan.between = [each for each in plan.between if id(each) not in local.answered]
        if not (plan.impossible() or deadline.passed()):
            _arrange(plan, wanted)
    return plan


def _reducible(plan: PatternPlan) -> bool:
    """Return whether columns can evaluate a condition on one element, or may be able to evaluate one on a link and its ends."""
    if any(each.mask is not None for each in plan.spots) or any(each.found.mask is not None for each in plan.links):
        return True
    return any(_is_local(plan.shape, each, link.link) for each in plan.between for link in plan.links)


def _is_local(shape: Shape, condition: Condition, link: Link) -> bool:
    return shape.slots_of(condition) <= {link.tail, link.head, link.slot}


class _Local:
    """The conditions that concern only a link and its ends. ``answered`` are those that columns could evaluate."""

    def __init__(self, plan: PatternPlan) -> None:
        self._plan = plan
        self.answered: dict[int, Condition] = {}

    def mask(self, link: Link, rows: Any, possible: Any) -> Any:
        """Return which of ``rows`` satisfy the conditions that concern only ``link`` and its ends; None if there are none."""
        joined, size = None, len(possible)
        for condition in self._plan.between:
            if _is_local(self._plan.shape, condition, link):
                mask = self._plan.values.mask(condition, rows, size)
                if mask is not None:
                    self._plan.values.count_left_out(condition, rows, size, possible)
                    self.answered[id(condition)] = condition
                    joined = mask if joined is None else joined & mask
        return joined


# The order of the elements


def _arrange(plan: PatternPlan, wanted: int | None) -> None:
    """Set the first spot and the steps: the order in the text, unless another order is much better."""
    costs = _Costs(plan)
    best = min((costs.greedy(spot.slot) for spot in plan.shape.spots), key=lambda each: each.cost)
    chosen, plan.natural = best, False
    natural = costs.natural()
    if natural is not None:
        cost = natural.cost
        if wanted is not None and natural.rows > wanted:
            cost *= (wanted + 1) / natural.rows
        if cost <= _BETTER * best.cost + _SORTED * best.rows:
            chosen, plan.natural = natural, True
    plan.start, plan.steps, plan.rows = chosen.start, chosen.steps, chosen.rows
    plan.cost = cost if plan.natural else chosen.cost


@define(eq=False)
class _Arranged:
    """An order of the elements, built step by step. ``rows``: expected rows so far; ``cost``: all expected partial rows."""

    start: int
    bound: set[int]
    rows: float
    cost: float
    steps: list[Step] = field(factory=list)
    checked: set[int] = field(factory=set)


class _Costs:
    """Estimates of the numbers of partial rows."""

    def __init__(self, plan: PatternPlan) -> None:
        self._plan = plan
        self._between = [(id(each), plan.shape.slots_of(each), _share(each)) for each in plan.between]
        self._means: dict[tuple[int, bool, bool], float] = {}

    def greedy(self, start: int) -> _Arranged:
        """Return the order that begins at ``start`` and in each step binds the spot with the lowest expected cost."""
        made = self._begun(start)
        self._loops(made, start)
        spots = len(self._plan.spots)
        while len({slot for slot in made.bound if slot < spots}) < spots:
            options: dict[int, list[tuple[LinkEdges, int]]] = {}
            for each in self._plan.links:
                ends = each.link.tail, each.link.head
                for spot, origin in (ends, ends[::-1]):
                    if spot not in made.bound and origin in made.bound:
                        options.setdefault(spot, []).append((each, origin))
            spot = min(options, key=lambda at: self._expected(made, at, options[at])[0])
            self._bind(made, spot, options[spot])
            self._loops(made, spot)
        return made

    def natural(self) -> _Arranged | None:
        """Return the order of the text. Return None if a later pattern begins with a spot that does not occur in earlier patterns."""
        keys = self._plan.shape.keys
        made = self._begun(keys[0])
        if sum(key < len(self._plan.spots) for key in keys) > 1:
            return None
        for each in self._plan.links:
            if each.link.right in made.bound:
                self._close(made, each)
            else:
                self._bind(made, each.link.right, [(each, each.link.left)])
        return made

    def _begun(self, start: int) -> _Arranged:
        rows = self._of_spot(start)
        return _Arranged(start, {start}, rows, rows)

    def _of_spot(self, spot: int) -> float:
        found = self._plan.spots[spot]
        return found.count * (1.0 if found.rest is None else _TESTED)

    def _bind(self, made: _Arranged, spot: int, options: Sequence[tuple[LinkEdges, int]]) -> None:
        cost, rows = self._expected(made, spot, options)
        means = tuple(self._mean(each, origin, made) for each, origin in options)
        made.steps.append(Step(spot, tuple(options), means))
        made.cost += cost
        made.rows = rows
        made.bound |= {spot, *(each.link.slot for each, _ in options)}
        self._check(made)

    def _loops(self, made: _Arranged, spot: int) -> None:
        """Add the links from ``spot`` to itself."""
        for each in self._plan.links:
            if each.link.tail == each.link.head == spot:
                self._close(made, each)

    def _close(self, made: _Arranged, each: LinkEdges) -> None:
        made.steps.append(Step(None, ((each, each.link.tail),)))
        made.cost += made.rows
        made.rows *= self._closing(each)
        made.bound.add(each.link.slot)
        self._check(made)

    def _expected(self, made: _Arranged, spot: int, options: Sequence[tuple[LinkEdges, int]]) -> tuple[float, float]:
        """Return the expected cost and the expected number of rows if ``spot`` is bound next."""
        found = self._plan.spots[spot]
        followed = [made.rows * self._mean(each, origin, made, lowest=len(options) > 1) for each, origin in options]
        best = min(range(len(options)), key=followed.__getitem__)
        each = options[best][0]
        rows = followed[best]
        if not each.reduced:
            rows *= each.found.count / max(each.found.size, 1) * found.count / max(found.size, 1)
        rows *= (1.0 if found.rest is None else _TESTED) * (1.0 if each.found.rest is None else _TESTED)
        for at, (other, _) in enumerate(options):
            if at != best:
                rows *= self._closing(other)
        return followed[best] + (rows if len(options) > 1 else 0.0), rows

    def _closing(self, each: LinkEdges) -> float:
        """Return the expected number of edges between two bound spots."""
        ends = self._of_spot(each.link.tail) * self._of_spot(each.link.head)
        return each.entries() / max(ends, 1.0) * (1.0 if each.found.rest is None else _TESTED)

    def _check(self, made: _Arranged) -> None:
        """Reduce the expected number of rows, because of the conditions whose elements are now bound."""
        for key, slots, share in self._between:
            if key not in made.checked and slots <= made.bound:
                made.checked.add(key)
                made.rows *= share

    def _mean(self, each: LinkEdges, origin: int, made: _Arranged, lowest: bool = False) -> float:
        """Return the expected number of edges from a candidate of ``origin``.

        A node that was reached over an edge has more edges than the average node, unless it was chosen for having few edges (``lowest``).
        """
        reached = origin != made.start and not lowest
        key = (each.link.slot, origin == each.link.tail, reached)
        if key not in self._means:
            found = self._plan.spots[origin]
            if each.reduced and not reached:
                self._means[key] = each.entries() / max(found.count, 1)
            else:
                degrees = self._degrees(
                    each.adjacency(origin == each.link.tail) if each.reduced else each.base(key[1]), found
                )
                total = float(degrees.sum())
                self._means[key] = (
                    float((degrees * degrees).sum()) / max(total, 1.0) if reached else total / max(len(degrees), 1)
                )
        return self._means[key]

    @staticmethod
    def _degrees(adjacency: Adjacency, found: Candidates) -> Any:
        degrees = np.diff(adjacency.first)
        return (degrees if found.mask is None else degrees[found.mask]).astype(np.float64)


def _share(condition: Condition) -> float:
    return _EQUAL if isinstance(condition, Comparison) and condition.operator == "=" else _UNKNOWN


# EXPLAIN


def explained(plan: PatternPlan, directed: bool, caps: Caps, limit: int | None) -> Plan:
    """Return the plan as EXPLAIN shows it: the start and its number of nodes, each step, and the limits of the search."""
    rows = round(plan.rows) if limit is None else min(round(plan.rows), limit)
    notes = [f"at most {caps.max_examined:,} partial rows (max_examined) and {caps.max_rows:,} rows (max_rows)"]
    if not plan.natural:
        notes.append("the rows are sorted into the order of the patterns")
    if note := undirected_note(plan.shape, directed):
        notes.append(note)
    if plan.impossible():
        return Plan("; ".join([*_beginning(plan), "an element of the patterns has no candidate"]), 0, tuple(notes))
    return Plan("; ".join(described(plan, rows)), rows, tuple(notes))


def described(plan: PatternPlan, rows: int | None = None) -> Iterator[str]:
    """Yield the steps of a plan in words; with ``rows``, also the expected number of rows."""
    yield from _beginning(plan)
    done, bound, most = set[int](), {plan.start}, 1.0
    yield from _checks(plan, bound, done)
    for step in plan.steps:
        first, *others = sorted(range(len(step.links)), key=lambda at: step.means[at] if step.means else 0.0)
        each, origin = step.links[first]
        if step.spot is None:
            yield f"look up {each.link.text} between nodes that are bound"
        else:
            against = " against its direction" if origin != each.link.tail and not each.link.either else ""
            yield f"follow {each.link.text}{against} (mean {step.means[first]:.1f})"
            most *= max(step.means[first], 1.0)
            bound.add(step.spot)
        bound |= {link.link.slot for link, _ in step.links}
        yield from (f"look up {step.links[at][0].link.text} between nodes that are bound" for at in others)
        yield from _checks(plan, bound, done)
    if rows is not None:
        yield f"about {rows:,} {'row' if rows == 1 else 'rows'}, about {round(most):,} examined for each start"


def _beginning(plan: PatternPlan) -> Iterator[str]:
    spot, found = plan.shape.spots[plan.start], plan.spots[plan.start]
    used = f" by {found.used}" if plan.shape.spots[plan.start].conditions else ""
    count = f"{found.count:,} {'node' if found.count == 1 else 'nodes'}"
    yield f"start at {spot.text or 'any node'}{used}, {'about ' if found.rest is not None else ''}{count}"


def _checks(plan: PatternPlan, bound: set[int], done: set[int]) -> Iterator[str]:
    for at, condition in enumerate(plan.shape.between):
        if at not in done and plan.shape.slots_of(condition) <= bound:
            done.add(at)
            yield f"check {condition_text(condition)}"


def undirected_note(shape: Shape, directed: bool) -> str:
    """Return the note that arrows have no direction in this graph, or "" if the note does not apply."""
    return "the graph is undirected: an arrow matches either way" if shape.arrows and not directed else ""
