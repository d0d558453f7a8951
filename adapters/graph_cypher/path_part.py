"""``FIND paths`` in a database: copies the part of the graph that contains all paths of a bounded length, and searches it.

Edges are fetched step by step, forwards from the starts and backwards from the ends, always on the side with fewer nodes. Each edge
of a walk from a start to an end with at most ``reach`` edges is fetched by one of the two sides, so the part contains every such path.
Its nodes and edges are in the graph's own order, so the search returns the same paths in the same order as on the whole graph.

If longer paths matter (a default limit may have cut the result, or the shortest paths of a pair are not found yet), the reach grows
until the answer is known, or until a side has fetched everything that it can reach.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field

from ...lang.evaluate.conditions.other_types import is_counting
from ...lang.evaluate.conditions.values import uncounted
from ...lang.trees.conditions import Condition
from ..graph import DEFAULT_CAPS, Caps, Direction, GraphResult, NodeId, Plan, Schema
from ..graph_networkx.adapter import NetworkXAdapter
from ..graph_networkx.left_out import with_name
from ..graph_networkx.path_conditions import both, parts_of
from ..graph_networkx.rows import Deadline
from .find_rows import find
from .pull import (
    Frontier,
    TooLarge,
    check_copied,
    check_size,
    copy_deadline,
    edges_at,
    graph_of,
    needs_all,
    rows_by_id,
    rows_of,
)
from .push_down import Parameters, Pushed
from .search import Source, TablePlan, count_left_out, explain, statement_of
from .table_rows import TableRow, Wanted

Search = Callable[..., GraphResult]
"""``NetworkXAdapter.paths`` with the arguments of the query that do not depend on the reach."""
_EVERY = 2**31 - 1


@define
class _Side:
    """The nodes reached from the starts or from the ends. ``is_done`` is true if no further node can be reached."""

    frontier: Frontier
    direction: Direction
    seen: set[NodeId] = field(factory=set)

    @property
    def is_done(self) -> bool:
        """Whether no edges are left to fetch."""
        return not self.frontier.places


@define
class PathPart:
    """The part of the graph between the starts and the ends, as far as it was fetched."""

    source: Source
    sides: list[_Side]
    via: Condition | None
    deadline: Deadline
    rows: dict[NodeId, TableRow]
    links: dict[Any, TableRow] = field(factory=dict)
    reach: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether the part contains all paths of any length."""
        return any(side.is_done for side in self.sides)

    def grow(self, reach: int) -> None:
        """Fetch edges until the part contains all paths of ``reach`` edges. Raises ``AdapterError``."""
        while self.reach < reach and not self.is_whole:
            self._step(min(self.sides, key=lambda side: len(side.frontier.places)))
            self.reach += 1

    def _step(self, side: _Side) -> None:
        source, reached = self.source, dict[NodeId, int]()
        for table, row in edges_at(source, side.frontier, side.direction, self.via, self.deadline):
            self.links[row[0]] = row
            for end, place in ((row[1], table.source.place), (row[4], table.target.place)):
                if end not in side.seen:
                    reached.setdefault(end, place)
            check_size(source, len(self.rows) + len(self.links) + len(reached), "FIND paths")
        check_copied(source, self.deadline)
        new = Frontier({node: place for node, place in reached.items() if node not in self.rows})
        for row in rows_of(source, new, self.deadline):
            self.rows[row[1]] = row
        check_copied(source, self.deadline)
        side.seen.update(reached)
        side.frontier = Frontier(reached)

    def adapter(self) -> NetworkXAdapter:
        """Return the part as a graph."""
        return NetworkXAdapter(
            graph_of(self.source, self.rows.values(), self.links.values()), self.source.database.name
        )


def can_search(
    starts: Sequence[NodeId] | Condition | None,
    ends: Sequence[NodeId] | Condition | None,
    via: Condition | None,
    where: Condition | None,
) -> bool:
    """Return whether a part of the graph is enough: the starts or the ends are known, and no condition reads a degree."""
    parts = parts_of(where)
    known = [_condition(starts, parts.starts), _condition(ends, parts.ends)]
    is_bounded = any(given is not None for given in (starts, ends, *known))
    return is_bounded and not needs_all([via, where, *known])


def _condition(given: Sequence[NodeId] | Condition | None, also: Condition | None) -> Condition | None:
    return None if isinstance(given, Sequence) else both(given, also)


def find_paths(
    source: Source,
    starts: Sequence[NodeId] | Condition | None,
    ends: Sequence[NodeId] | Condition | None,
    via: Condition | None,
    where: Condition | None,
    *,
    shortest: bool,
    limit: int | None,
    max_length: int | None,
    count: int | None,
    direction: Direction,
    capped: bool,
    caps: Caps,
) -> GraphResult:
    """Find paths; see ``GraphAdapter.paths``. The query satisfies ``can_search``, and has no cost."""
    parts, deadline = parts_of(where), copy_deadline(caps)
    first = _ids(source, starts, parts.starts, "source", caps)
    last = _ids(source, ends, parts.ends, "target", caps)
    part = _part(source, first, last, via, direction, deadline)

    def search(length: int | None, capped: bool, caps: Caps = caps) -> GraphResult:
        return part.adapter().paths(
            first, last, via=via, where=where, shortest=shortest, limit=limit, max_length=length, count=count,
            direction=direction, capped=capped, caps=caps,
        )  # fmt: skip

    bound = caps.max_path_length if max_length is None and not shortest else max_length
    is_cap = capped or (max_length is None and not shortest)
    if bound is not None and not is_cap:
        part.grow(bound)
        return _with_fetched(search(bound, False), part)
    if shortest and bound is not None:
        # The search compares the bound with the number of nodes, so other nodes of the graph are added, without edges.
        part.rows = {row[1]: row for row in _some_nodes(source, bound + 2, deadline)} | part.rows
    reach = max(1, 1 if bound is None else bound + 1)
    while True:
        try:
            part.grow(reach)
        except TooLarge:
            if bound is None or part.reach < bound:
                raise
            # All paths up to the bound are in the part. Longer paths may exist in the rest of the graph, so the result is cut.
            found = _with_fetched(search(bound, False), part)
            cut = () if limit is not None and len(found.items) >= limit else ("max_path_length",)
            return evolve(found, caps_hit=(*found.caps_hit, *cut))
        if part.is_whole:
            return _with_fetched(search(max_length, capped), part)
        with uncounted():
            found = search(bound if bound is not None else part.reach, bound is not None)
        if bound is None:
            is_known = _is_complete(found, first, last, limit, count)
        else:
            is_known = bool(found.caps_hit) or (limit is not None and len(found.items) >= limit)
        if is_known:
            return _with_fetched(search(bound if bound is not None else part.reach, bound is not None), part)
        reach = part.reach + 1


def _part(
    source: Source,
    first: Sequence[NodeId] | None,
    last: Sequence[NodeId] | None,
    via: Condition | None,
    direction: Direction,
    deadline: Deadline,
) -> PathPart:
    backwards: Direction = "both" if direction == "both" else "in" if direction == "out" else "out"
    rows: dict[NodeId, TableRow] = {}
    sides: list[_Side] = []
    for ids, way in ((first, direction), (last, backwards)):
        if ids is not None:
            own = rows_by_id(source, ids, Wanted(), deadline)
            rows.update({row[1]: row for row in own})
            sides.append(_Side(Frontier.of(own), way, {row[1] for row in own}))
    check_size(source, len(rows), "FIND paths")
    check_copied(source, deadline)
    # The edges that a condition leaves out can be counted only if they are fetched.
    usable = None if via is not None and is_counting(via) else via
    return PathPart(source, sides, usable, deadline, rows)


def _some_nodes(source: Source, most: int, deadline: Deadline) -> list[TableRow]:
    """Return the rows of ``most`` nodes of the graph, or of all nodes if there are fewer."""
    found: list[TableRow] = []
    for table in source.tables.nodes:
        if len(found) < most:
            plan = TablePlan(table, Pushed(), Parameters(), limit=most - len(found))
            rows = source.database.run(statement_of(source, plan, Wanted()), deadline)
            found += map(source.columns(table, Wanted(), deadline).row, rows)
    check_copied(source, deadline)
    return found


def _ids(
    source: Source, given: Sequence[NodeId] | Condition | None, also: Condition | None, name: str, caps: Caps
) -> Sequence[NodeId] | None:
    """Return the ids of the starts or ends; None if every node is one. ``also`` is the part of the path's condition about them."""
    if isinstance(given, Sequence):
        return given
    where = both(given, also)
    if where is None:
        return None
    with uncounted():
        found = find(source, "nodes", where, (), None, _unlimited(caps))
        ids = [item["id"] for item in found.items]
    count_left_out(source, "nodes", where, copy_deadline(caps), with_name(name, also) if also is not None else None)
    return ids


def _unlimited(caps: Caps) -> Caps:
    return evolve(caps, max_results=_EVERY)


def _is_complete(
    found: GraphResult,
    first: Sequence[NodeId] | None,
    last: Sequence[NodeId] | None,
    limit: int | None,
    count: int | None,
) -> bool:
    """Return whether a search for shortest paths found all of them: enough paths in all, or enough for each pair."""
    if found.caps_hit or (limit is not None and len(found.items) >= limit):
        return True
    if first is None or last is None:
        return False
    starts, ends = set(first), set(last)
    pairs = len(starts) * len(ends) - len(starts & ends)
    numbers: dict[tuple[Any, Any], int] = {}
    for item in found.items:
        pair = (item["source"], item["target"])
        numbers[pair] = numbers.get(pair, 0) + 1
    return sum(1 for number in numbers.values() if number >= (count or 1)) == pairs


def _with_fetched(found: GraphResult, part: PathPart) -> GraphResult:
    crossed = f"{len(part.rows):,} nodes and {len(part.links):,} edges fetched"
    return evolve(found, used=f"{found.used}; {crossed}")


def explain_paths(
    source: Source,
    starts: Sequence[NodeId] | Condition | None,
    ends: Sequence[NodeId] | Condition | None,
    where: Condition | None,
    schema: Schema,
    rest: Mapping[str, Any],
) -> Plan:
    """Return the plan of ``find_paths``. ``rest`` are the other arguments of ``GraphAdapter.paths``."""
    parts, caps = parts_of(where), rest.get("caps", DEFAULT_CAPS)
    notes, numbers = list[str](), list[int | None]()
    for given, also in ((starts, parts.starts), (ends, parts.ends)):
        condition = _condition(given, also)
        if isinstance(given, Sequence):
            numbers.append(len(given))
        elif condition is None:
            numbers.append(None)
        else:
            plan = explain(source, "nodes", condition)
            notes += plan.notes
            numbers.append(plan.rows)
    bound = rest.get("max_length")
    length = bound or (None if rest.get("shortest") else caps.max_path_length)
    numbered = ["any node" if number is None else f"{number:,} nodes" for number in numbers]
    sides = [
        side
        for side, number in (("forwards from the starts", numbers[0]), ("backwards from the ends", numbers[1]))
        if number is not None
    ]
    reach = "until the shortest paths are known" if length is None else f"for paths of at most {length:,} edges"
    notes.append(
        f"edges are fetched step by step, {' and '.join(sides)}, {reach}; at most {source.address.pull:,} nodes and edges"
    )
    spread = schema.edges / max(schema.nodes, 1)
    first = numbers[0] if numbers[0] is not None else schema.nodes
    share = 1.0 if numbers[1] is None else numbers[1] / max(schema.nodes, 1)
    rows = sum(first * spread**at * share for at in range(1, min(length or 3, 20) + 1))
    limit = rest.get("limit")
    most = min(caps.max_paths, caps.max_results, caps.max_paths if limit is None else limit)
    return Plan(
        f"paths from {numbered[0]} to {numbered[1]}, in the fetched part of the graph",
        min(round(rows), most),
        tuple(notes),
    )
