"""``FIND patterns``: rows of nodes and edges that match patterns. See ``docs/design/gasl.md#commands``.

First, the candidates for each element of the patterns are found: the nodes or edges that satisfy its own conditions
(``pattern_candidates``). Then the order of the elements is chosen (``pattern_plan``). The search binds the elements in this
order (``pattern_search``). Memory depends on the number of rows of the result, not on the number of partial rows.
"""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from ...lang.evaluate.conditions.values import uncounted
from ...lang.trees import walk
from ...lang.trees.conditions import Condition, Field, Value
from ...lang.trees.gasl import Order, Pattern
from ..graph import AdapterError, Caps, GraphResult, Plan, Schema
from .find import AuditColumns, agrees_with_graph
from .find_plan import column_of_field
from .pattern_candidates import either_way
from .pattern_gaps import gap_of
from .pattern_plan import PatternPlan, described, explained, planned, undirected_note
from .pattern_rows import Collector, pattern_items
from .pattern_search import PatternRun
from .pattern_shape import Shape, shape_of
from .rows import Deadline, Kind, readers_of
from .stale import warn_stale
from .tables import Computed, computed, forget


@frozen
class PatternQuery:
    """A ``FIND patterns`` query; see ``GraphAdapter.patterns``."""

    patterns: tuple[Pattern, ...]
    where: Condition | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    per: tuple[Value, ...] = ()


class _Late(Exception):
    """Raised if the time limit passes before the graph's tables are built."""


def find_patterns(
    graph: Any, kept: Computed, query: PatternQuery, caps: Caps, strict: bool, schema: Callable[[], Schema]
) -> GraphResult:
    """Find the rows that match patterns. The time limit includes building the tables for the first search.

    If attributes were written without NetworkX's methods, the cache is discarded with a ``StaleGraphWarning``, and the search begins
    again. Raises ``AdapterError``, ``ConditionError``.
    """
    shape = _shape(graph, query, caps, schema)
    deadline = Deadline.of(caps)
    try:
        _tables(graph, kept, shape, deadline)
    except _Late:
        return GraphResult((), ("timeout_s",), "tables of the graph (not yet complete)")
    if not strict and not _agrees(graph, kept, shape):
        warn_stale()
        forget(graph)
        return find_patterns(graph, computed(graph), query, caps, strict, schema)
    cap = min(caps.max_rows, caps.max_results)
    wanted = cap + 1 if query.limit is None else min(query.limit, cap + 1)
    plan = planned(graph, kept, shape, None if query.order or query.per else wanted, strict, deadline)
    for condition in shape.between:
        plan.values.check(condition)
    collector = Collector(
        plan, query.order, query.per, None if query.limit is None else wanted, cap + 1 if query.per else wanted
    )
    run = PatternRun(plan, caps, deadline, collector.stops and wanted < plan.rows)
    if query.limit != 0 and not plan.impossible() and not deadline.hit:
        for rows in run.blocks():
            if not collector.add(rows):
                break
    return _result(graph, kept, query, caps, strict, collector, run)


def _result(
    graph: Any, kept: Computed, query: PatternQuery, caps: Caps, strict: bool, collector: Collector, run: PatternRun
) -> GraphResult:
    plan, deadline = run.plan, run.deadline
    cap = min(caps.max_rows, caps.max_results)
    columns = collector.columns()
    size = len(columns[0])
    hit = sorted(run.hit)
    if size > cap or collector.cut:
        hit.append("max_rows" if caps.max_rows <= caps.max_results else "max_results")
        columns = {slot: column[:cap] for slot, column in columns.items()}
    if deadline.hit and "timeout_s" not in hit:
        hit.append("timeout_s")
    items, matches = pattern_items(graph, kept, plan, columns)
    note = undirected_note(plan.shape, graph.is_directed())
    return GraphResult(
        items,
        tuple(hit),
        "; ".join(described(plan)),
        run.examined,
        matches,
        _gap(graph, kept, plan, strict, deadline) if not (len(items) or hit or query.limit == 0) else "",
        (note,) if note else (),
    )


def _gap(graph: Any, kept: Computed, plan: PatternPlan, strict: bool, deadline: Deadline) -> str:
    with uncounted():  # the search has counted what the conditions leave out
        return gap_of(graph, kept, plan, strict, deadline)


def explain_patterns(
    graph: Any, kept: Computed, query: PatternQuery, caps: Caps, strict: bool, schema: Callable[[], Schema]
) -> Plan:
    """Return the plan that ``find_patterns`` would use. Raises the same errors as ``find_patterns``."""
    shape = _shape(graph, query, caps, schema)
    deadline = Deadline.of(caps)
    try:
        _tables(graph, kept, shape, deadline)
    except _Late:
        return Plan("tables of the graph", 0, ("the time limit passed before they were built",))
    cap = min(caps.max_rows, caps.max_results)
    wanted = cap + 1 if query.limit is None else min(query.limit, cap + 1)
    with uncounted():
        plan = planned(graph, kept, shape, None if query.order or query.per else wanted, strict, deadline)
    if deadline.hit:
        return Plan("candidates of each element", 0, ("the time limit passed before they were found",))
    return explained(plan, graph.is_directed(), caps, None if query.per else query.limit)


def _shape(graph: Any, query: PatternQuery, caps: Caps, schema: Callable[[], Schema]) -> Shape:
    if not query.patterns:
        raise AdapterError("a search for patterns needs at least one pattern")
    values = [*(each.value for each in query.order), *query.per]
    return shape_of(query.patterns, query.where, values, graph.is_directed(), schema, caps.max_pattern_edges)


def _tables(graph: Any, kept: Computed, shape: Shape, deadline: Deadline) -> None:
    """Build the tables that a search needs. Raises ``_Late``."""

    def look() -> None:
        if deadline.passed():
            raise _Late

    kept.nodes(graph)
    look()
    for link in shape.links:
        if link.either:
            either_way(graph, kept, look)
        else:
            kept.outgoing(graph, look)
            kept.incoming(graph, look)
    look()


def _agrees(graph: Any, kept: Computed, shape: Shape) -> bool:
    """Return whether a few rows of the columns that a search reads agree with the live graph."""
    read: dict[Kind, set[tuple[str, ...]]] = {"nodes": set(), "edges": set()}
    for element in shape.elements():
        read[element.kind].update(_paths(element.conditions))
    for path in _paths(shape.between):
        if len(path) > 1:
            read[shape.kind(shape.shown[path[0]])].add(path[1:])
    return all(
        agrees_with_graph(kept, kept.table(graph, kind), _columns(graph, kept, kind, paths))
        for kind, paths in read.items()
        if paths
    )


def _paths(conditions: Sequence[Condition]) -> set[tuple[str, ...]]:
    return {node.path for condition in conditions for node in walk(condition) if isinstance(node, Field)}


def _columns(graph: Any, kept: Computed, kind: Kind, paths: set[tuple[str, ...]]) -> AuditColumns:
    """Return the columns that exist already, each with a function that reads the same value from a row of the live graph."""
    readers = readers_of(graph, kind)
    found = []
    for path in sorted(paths):
        if kept.has(("column", kind, path)) and (column := column_of_field(graph, kept, kind, Field(path))) is not None:
            found.append((column, readers(Field(path)).read))
    return tuple(found)
