"""FIND nodes and edges, WALK, SUBGRAPH and CONNECT: return parts of the graph with their sources. No model calls."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal

import attrs

from ....adapters.graph import Caps, GraphResult, NodeId, Stoppable
from ....lang.evaluate.conditions.values import current_tally, uncounted
from ....lang.linter.gasl.fields import Scope
from ....lang.trees.conditions import Condition, Field
from ....lang.trees.gasl import Connect, Find, Name, Subgraph, Walk
from ..records import ExecutionResult, Session, Value
from ..relation import FoundRows
from .bindings import Rows, bound, bound_command, fixed, node_ids, refusing, rows_of, threaded
from .caps import caps_message
from .columns import fields_of, found_items
from .evidence import graph_evidence, picked
from .mixed_values import Found, count_equalities, count_kinds, is_mixed
from .row_commands import first_of_groups
from .suggestions import known_of_graph, near

_OF_ROWS = {"max_results": "max_rows"}
"""FIND passes ``max_rows`` to the engine as ``max_results``, so a cap that the engine reports is renamed."""


@refusing
async def run_find(command: Find, session: Session) -> ExecutionResult:
    """Find nodes or edges. Raises ``Unbound``, ``ConditionError``, ``AdapterError``."""
    command = bound_command(command, session)
    where = command.where
    search = session.graph.nodes if command.kind == "nodes" else session.graph.edges
    limit, caps = fixed(command.limit), session.caps
    most = None if command.per else limit
    rows_caps = attrs.evolve(caps, max_results=caps.max_rows)
    answer = await searched(
        lambda caps: search(where, order=command.order, limit=most, caps=caps), rows_caps, columns=True
    )
    await _count_types(command, session, rows_caps)
    answer = attrs.evolve(answer, caps_hit=tuple(_OF_ROWS.get(cap, cap) for cap in answer.caps_hit))
    result = of_graph(answer, session, caps, graph_items=command.kind)
    if command.per and result.value is not None and limit is not None:
        rows = Rows(command.into.text, result.value, result.value.held)
        per = await threaded(first_of_groups, rows, range(len(rows)), limit, command.per, session, of_graph=True)
        kept = Value(rows.taken(per), picked(rows.value, per), graph_items=command.kind)
        result = attrs.evolve(result, value=kept, count=kept.count, summary={"count": kept.count})
        if not kept.count and result.status == "success":
            result = attrs.evolve(result, status="empty")
    if result.status != "empty" or command.limit == 0:
        return result
    if where is None:
        return attrs.evolve(result, message=f"the graph has no {command.kind}")
    hint = await near_in_graph([where], command.kind, session)
    return attrs.evolve(result, message=f"no {command.kind[:-1]} satisfies the condition", hint=hint)


async def _count_types(command: Find, session: Session, caps: Caps) -> None:
    """Count the nodes or edges that an equality or an order separates, because of the types of their values."""
    scope, schema, tally = Scope(command.kind), session.graph.schema, current_tally()
    if tally is None or not any(is_mixed(field, scope, schema) for field in fields_of(command)):
        return
    search = session.graph.nodes if command.kind == "nodes" else session.graph.edges

    def found(where: Condition | None) -> Found:
        with uncounted():
            items = list(search(where, caps=caps).items)
        rows = Rows("the graph", Value(items, graph_items=command.kind), items)
        return found_items(rows, range(len(items)), session)

    def count() -> None:
        count_equalities(command.where, lambda field: is_mixed(field, scope, schema), found)
        fields = [each.value for each in command.order if isinstance(each.value, Field)]
        if fields := [field for field in fields if is_mixed(field, scope, schema)]:
            items = found(command.where)
            for field in fields:
                count_kinds(tally, field, items.values(field), items.name)

    await threaded(count)


_CHECKED = 20
"""Maximum number of ids that are looked up in the graph if a search from these ids found nothing."""


async def unknown_nodes(ids: Sequence[NodeId], session: Session) -> str:
    """Return a message about the first ids without a node, and about nodes with these ids as names; "" if all nodes exist."""

    def look() -> str:
        hints = []
        for node_id in dict.fromkeys(ids[:_CHECKED]):
            node = session.graph.get_node(node_id)
            if node is None:
                hints.append(f"the graph has no node {node_id!r}")
            elif node["id"] != node_id:
                hints.append(f"no node has the id {node_id!r}; the node with that name is {node['id']!r}")
        return "; ".join(hints[:3])

    return await asyncio.to_thread(look)


async def searched(search: Callable[[Caps], GraphResult], caps: Caps, *, columns: bool = False) -> GraphResult:
    """Run a search of the graph in a thread and build the items there, so that the event loop can handle interrupts.

    An engine may return lazy items; they are converted to a plain list. With ``columns``, the items in the result are positions
    in the engine's columns, if the engine has columns. If the caller is cancelled, the search is stopped; otherwise its thread
    would keep the processor busy and delay the closing of the event loop. No search returns more than ``max_rows`` items.
    """
    ended = threading.Event()
    fewer = caps.max_rows < caps.max_results
    if fewer:
        caps = attrs.evolve(caps, max_results=caps.max_rows)

    def run() -> GraphResult:
        found = search(Stoppable(**attrs.asdict(caps), ended=ended.is_set))
        if fewer:
            found = attrs.evolve(found, caps_hit=tuple(_OF_ROWS.get(cap, cap) for cap in found.caps_hit))
        if columns and found.columnar is not None and (positions := found.columnar()) is not None:
            return attrs.evolve(found, items=FoundRows(positions))
        return found if type(found.items) is list else attrs.evolve(found, items=list(found.items))

    try:
        return await asyncio.to_thread(run)
    finally:
        ended.set()


def of_graph(
    found: GraphResult,
    session: Session,
    caps: Caps,
    value: Any = None,
    *,
    graph_items: Literal["", "nodes", "edges", "paths"] = "",
) -> ExecutionResult:
    """Return a result with the found graph items (or with ``value``, which was made from these items) and their evidence.

    ``graph_items`` is the kind of the items if they are complete nodes, edges or paths.
    """
    items = found.items if isinstance(found.items, list | FoundRows) else list(found.items)
    evidence = graph_evidence(items, session.chunks)
    count = len(items)
    return ExecutionResult(
        "partial" if found.caps_hit else "success" if count else "empty",
        Value(items if value is None else value, evidence, graph_items=graph_items),
        count,
        {"count": count},
        caps_hit=tuple(found.caps_hit),
        used=found.used,
        message=caps_message(found.caps_hit, caps),
        hint=f"narrow the condition, or SET adapter.caps.{found.caps_hit[0]} higher" if found.caps_hit else "",
    )


async def near_in_graph(conditions: Sequence[Condition | None], kind: str, session: Session) -> str:
    """Return hints about unknown names and values in the conditions, with similar ones from the graph; "" without hints."""

    def look() -> str:
        known = known_of_graph(session.graph, kind)
        return "; ".join(dict.fromkeys(filter(None, (near(condition, known) for condition in conditions))))

    return await asyncio.to_thread(look) if any(condition is not None for condition in conditions) else ""


# WALK, SUBGRAPH and CONNECT: neighbourhood, subgraph and connections of a set of nodes.


def other_directions(direction: str | None, session: Session) -> str:
    """Return the hint for a search that found nothing and followed the edges of a directed graph one way; else an empty text."""
    one_way = direction != "both" and session.graph.schema.directed
    return "DIRECTION both follows edges in both directions" if one_way else ""


@refusing
async def run_walk(command: Walk, session: Session) -> ExecutionResult:
    """Run WALK; the default of DEPTH is 1, and that of DIRECTION is out, as in the graph port."""
    command = bound_command(command, session)
    starts, via, given = nodes_of(command.source, session), command.via, fixed(command.depth)
    depth, direction = 1 if given is None else given, command.direction or "out"
    caps = session.caps
    answer = await searched(
        lambda caps: session.graph.walk(
            starts, via=via, depth=depth, direction=direction, trace=command.trace, caps=caps
        ),
        caps,
    )
    result = of_graph(answer, session, caps, graph_items="nodes")
    if result.status != "empty":
        return result
    if not starts:
        return attrs.evolve(result, message=f"nothing to walk from: {command.source.text} is empty")
    hint = await unknown_nodes(starts, session) or await near_in_graph([via], "edges", session)
    if not hint and via is None and depth > 0:
        hint = other_directions(direction, session)
    return attrs.evolve(result, message=f"no node is reached from {command.source.text}", hint=hint)


@refusing
async def run_subgraph(command: Subgraph, session: Session) -> ExecutionResult:
    """Run SUBGRAPH: the value is one object ``{"nodes", "edges"}``; the count is the number of nodes."""
    centers, caps = nodes_of(command.source, session), session.caps
    answer = await searched(lambda caps: session.graph.subgraph(centers, command.radius, caps=caps), caps)
    item = answer.items[0] if answer.items else {"nodes": [], "edges": []}
    nodes, edges = len(item["nodes"]), len(item["edges"])
    result = of_graph(answer, session, caps, value=item)
    status = result.status if answer.caps_hit else "success" if nodes else "empty"
    if nodes:
        message, hint = result.message, result.hint
    else:
        message, hint = f"no nodes around {command.source.text}", await unknown_nodes(centers, session)
    summary = {"count": nodes, "nodes": nodes, "edges": edges}
    return attrs.evolve(result, status=status, count=nodes, summary=summary, message=message, hint=hint)


@refusing
async def run_connect(command: Connect, session: Session) -> ExecutionResult:
    """Run CONNECT: find the edges between two sets of nodes, in either direction."""
    left, right = nodes_of(command.left, session), nodes_of(command.right, session)
    via, caps = bound(command.via, session), session.caps
    answer = await searched(lambda caps: session.graph.connect(left, right, via=via, caps=caps), caps)
    result = of_graph(answer, session, caps, graph_items="edges")
    if result.status != "empty":
        return result
    for side, ids in ((command.left, left), (command.right, right)):
        if not ids:
            return attrs.evolve(result, message=f"nothing to connect: {side.text} is empty")
    hint = await unknown_nodes([*left, *right], session) or await near_in_graph([via], "edges", session)
    return attrs.evolve(result, message=f"no edge joins {command.left.text} and {command.right.text}", hint=hint)


def nodes_of(name: Name, session: Session) -> list[NodeId]:
    """Return the ids of the nodes that a variable refers to."""
    return node_ids(rows_of(name, session))


RUNNERS = {
    Find: run_find,
    Walk: run_walk,
    Subgraph: run_subgraph,
    Connect: run_connect,
}
