"""The plan of ``FIND paths`` for EXPLAIN: the search that would run, its early checks, and the estimated number of paths."""

from collections.abc import Sequence
from typing import Any

import attrs

from ...lang.printer.gasl_printer import format_condition
from ...lang.trees.conditions import Condition
from ..graph import Caps, NodeId, Plan
from .find import plan_of
from .path_conditions import PathParts, both
from .path_search import PathQuery, lengths_of, longest_caps, prepared
from .tables import Computed

_ESTIMATED = 3
"""The number of shortest paths is estimated for lengths up to this number."""


def path_plan(graph: Any, kept: Computed, query: PathQuery, caps: Caps, strict: bool) -> Plan:
    """Return the plan that ``find_paths`` would use: starts and ends, early checks, estimated number of paths."""
    parts = prepared(graph, kept, query.where)[1]
    starts, used_starts, many_starts = _end_plan(graph, kept, query.starts, parts.starts, strict)
    ends, used_ends, many_ends = _end_plan(graph, kept, query.ends, parts.ends, strict)
    if query.shortest:
        caps = attrs.evolve(caps, max_path_length=min(query.max_length or _ESTIMATED, _ESTIMATED))
    lengths, beyond = lengths_of(parts, caps if query.shortest else longest_caps(query, caps), len(kept.nodes(graph)))
    notes = [f"lengths {lengths[0]} to {lengths[-1]}" if lengths else "no length satisfies the condition"]
    if query.shortest:
        bound = "of any length" if query.max_length is None else f"of at most {query.max_length:,} edges"
        notes = [f"{_way(query, parts, many_starts, many_ends)}, {bound}"]
    notes += [*starts, *ends]
    if many_ends is not None:
        notes.append("pruned from both ends")
    if parts.nodes is not None:
        notes.append("a condition on every node is tested while paths grow")
    if both(query.via, parts.edges) is not None:
        notes.append("a condition on every edge is tested while paths grow")
    if query.direction != "out" and graph.is_directed():
        notes.append(
            "edges are followed backwards" if query.direction == "in" else "edges are followed in either direction"
        )
    if parts.increasing:
        notes.append("a path is dropped as soon as a value decreases")
    if query.cost is not None:
        notes.append(f"the cost of every edge is computed once: {format_condition(query.cost)}")
    if parts.lengths and beyond is not None and query.max_length is None and not query.shortest:
        notes.append("the condition allows longer paths than max_path_length")
    size, edges = len(kept.nodes(graph)), len(kept.edges(graph))
    branching = edges * (1 if graph.is_directed() else 2) / max(size, 1)
    hitting = 1.0 if many_ends is None else many_ends / max(size, 1)
    many = size if many_starts is None else many_starts
    rows = sum(many * branching**length * hitting for length in lengths)
    most = min(caps.max_paths, caps.max_results, caps.max_paths if query.limit is None else query.limit)
    return Plan(f"paths from {used_starts} to {used_ends}", min(round(rows), most), tuple(notes))


def _way(query: PathQuery, parts: PathParts, starts: int | None, ends: int | None) -> str:
    """Return a description of the search for shortest paths."""
    which = "all shortest paths of each pair"
    if query.count is not None:
        which = "the shortest path of each pair" if query.count == 1 else f"the {query.count:,} shortest of each pair"
    if query.cost is None and query.count is None and not parts.increasing:
        return "breadth first from each start"
    what = "cheapest first" if query.cost is not None else "shortest first"
    if starts == ends == 1:
        return f"{what} from both ends; {which}"
    return f"{what} from each {'end' if ends is not None and (starts is None or ends < starts) else 'start'}; {which}"


def _end_plan(
    graph: Any, kept: Computed, given: Sequence[NodeId] | Condition | None, also: Condition | None, strict: bool
) -> tuple[tuple[str, ...], str, int | None]:
    """Return notes on the starts or the ends, how they would be found, and their estimated number (None: all nodes)."""
    if given is None or not isinstance(given, Sequence):
        where = both(given, also)
        if where is None:
            return (), "any node", None
        plan = plan_of(graph, kept, "nodes", where, strict)
        return plan.notes, f"nodes by {plan.used}", plan.rows
    return (), f"{len(given):,} nodes", len(given)
