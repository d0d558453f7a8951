"""FIND, WALK, SUBGRAPH, CONNECT and MEASURE: return parts of the graph with their sources. No model calls."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from ....adapters.graph import Caps, GraphResult, NodeId, Stoppable
from ....lang.diagnostic import nearest
from ....lang.trees.conditions import Condition
from ....lang.trees.gasl import Connect, Find, FindPaths, Measure, Name, Subgraph, Walk
from ..records import ExecutionResult, Session, Value
from .bindings import Refused, bound, node_ids, refusing, rows_of
from .evidence import graph_evidence
from .suggestions import known_of_graph, near

_CAPS = {
    "max_path_length": "max_path_length ({0.max_path_length})",
    "max_results": "max_results ({0.max_results:,})",
    "max_paths": "max_paths ({0.max_paths:,})",
    "timeout_s": "timeout_s ({0.timeout_s:g} s)",
}


@refusing
async def run_find(command: Find, session: Session) -> ExecutionResult:
    """Find nodes or edges. Raises ``Unbound``, ``ConditionError``, ``AdapterError``."""
    where = bound(command.where, session)
    search = session.graph.nodes if command.kind == "nodes" else session.graph.edges
    answer = await searched(
        lambda caps: search(where, order=command.order, limit=command.limit, caps=caps), session.caps
    )
    result = of_graph(answer, session, session.caps)
    if result.status != "empty" or command.limit == 0:
        return result
    if where is None:
        return attrs.evolve(result, message=f"the graph has no {command.kind}")
    hint = await near_in_graph([where], command.kind, session)
    return attrs.evolve(result, message=f"no {command.kind[:-1]} satisfies the condition", hint=hint)


@refusing
async def run_find_paths(command: FindPaths, session: Session) -> ExecutionResult:
    """Find paths of at most MAXLEN edges; MAXLEN can't exceed the host's ceiling.

    SHORTEST is bounded only by MAXLEN, or by ``max_path_length`` if the plan has SET this cap, because SHORTEST does not enumerate
    the simple paths of each length.
    """
    start, end = path_ends(command.start, session), path_ends(command.end, session)
    via, where = bound(command.via, session), bound(command.where, session)
    caps, above, length = session.caps, False, command.max_length
    if command.shortest:
        length = shortest_bound(command, session)
    elif command.max_length is not None:
        ceiling = session.ceiling.max_path_length
        above = command.max_length > ceiling
        length = min(command.max_length, ceiling)
        caps = attrs.evolve(caps, max_path_length=length)
    answer = await searched(
        lambda caps: session.graph.paths(
            start,
            end,
            via=via,
            where=where,
            shortest=command.shortest,
            limit=command.limit,
            max_length=length,
            caps=caps,
        ),
        caps,
    )
    if "MAXLEN" in answer.caps_hit:
        return _bounded(of_graph(answer, session, caps), command, caps)
    if above and "max_path_length" not in answer.caps_hit:
        answer = attrs.evolve(answer, caps_hit=(*answer.caps_hit, "max_path_length"))
    result = of_graph(answer, session, caps)
    if above:
        told = f"MAXLEN {command.max_length} is above the host's ceiling of {caps.max_path_length}"
        return attrs.evolve(result, message=told, hint="")
    if result.status != "empty" or command.limit == 0:
        if "max_path_length" in answer.caps_hit and not answer.items:
            told = f"no path of at most {caps.max_path_length} edges was found, but a longer one exists"
            return attrs.evolve(result, message=told, hint=_LONGER)
        return result
    for side, ids in ((command.start, start), (command.end, end)):
        if isinstance(side, Name) and not ids:
            return attrs.evolve(result, message=f"no path was found: {side.text} is empty")
    if unknown := await unknown_nodes(
        [node_id for ids in (start, end) if isinstance(ids, list) for node_id in ids], session
    ):
        return attrs.evolve(result, message="no path was found", hint=unknown)
    ends = [each for each in (start, end) if not isinstance(each, list)]
    hints = [await near_in_graph(ends, "nodes", session), await near_in_graph([via, where], "paths", session)]
    message = f"no path of at most {caps.max_path_length} edges was found"
    if command.shortest and length is None:
        message = "no path of any length was found"
    elif command.max_length is not None and not command.shortest:
        hints.append("a larger MAXLEN may find paths")
    elif command.where is None:
        message = "no path of any length was found"
    return attrs.evolve(result, message=message, hint="; ".join(filter(None, hints)))


_LONGER = "write MAXLEN with a larger number, SHORTEST for the shortest paths of any length, or SET adapter.caps.max_path_length higher"


def shortest_bound(command: FindPaths, session: Session) -> int | None:
    """Return the maximum length of the shortest paths; None for no limit."""
    if command.max_length is None and "max_path_length" in session.chosen:
        return session.caps.max_path_length
    return command.max_length


def _bounded(result: ExecutionResult, command: FindPaths, caps: Caps) -> ExecutionResult:
    """Return the result; if a limit may have hidden shortest paths, add a message and a hint."""
    if command.max_length is not None:
        which, hit = f"MAXLEN ({command.max_length:,})", "MAXLEN"
        hint = "write a larger MAXLEN, or omit it: SHORTEST needs no limit"
    else:
        which, hit = f"max_path_length ({caps.max_path_length:,})", "max_path_length"
        hint = "SET adapter.caps.max_path_length higher, or omit that SET: SHORTEST needs no limit"
    caps_hit = tuple(hit if name == "MAXLEN" else name for name in result.caps_hit)
    said = (
        f"cut short by {which}; longer paths exist"
        if result.count
        else f"no path was found: cut short by {which}; a longer path exists"
    )
    more = [name for name in caps_hit if name != hit]
    message = f"{said}; {caps_message(more, caps)}" if more else said
    return attrs.evolve(result, caps_hit=caps_hit, message=message, hint=hint)


_CHECKED = 20
"""Maximum number of ids that are looked up in the graph if a search from these ids found nothing."""


async def unknown_nodes(ids: Sequence[NodeId], session: Session) -> str:
    """Return a message about the first ids without a node, with nodes whose name matches; "" if all nodes exist."""

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


def path_ends(side: Name | Condition | None, session: Session) -> list[NodeId] | Condition | None:
    """Return the start or end nodes of paths: the node ids of a variable, or a condition; None for any node."""
    return node_ids(rows_of(side, session)) if isinstance(side, Name) else bound(side, session)


async def searched(search: Callable[[Caps], GraphResult], caps: Caps) -> GraphResult:
    """Run a search of the graph in a thread and build its items there, so that the event loop can handle interrupts.

    An engine may return lazy items, but a variable holds plain lists. If the caller is cancelled, the search is stopped; otherwise
    its thread would keep the processor busy and delay the closing of the event loop.
    """
    ended = threading.Event()

    def run() -> GraphResult:
        found = search(Stoppable(**attrs.asdict(caps), ended=ended.is_set))
        return found if type(found.items) is list else attrs.evolve(found, items=list(found.items))

    try:
        return await asyncio.to_thread(run)
    finally:
        ended.set()


def of_graph(found: GraphResult, session: Session, caps: Caps, value: Any = None) -> ExecutionResult:
    """Return the found graph items (or ``value``, which was made from these items) as a result with their evidence."""
    items = list(found.items) if not isinstance(found.items, list) else found.items
    evidence = graph_evidence(items, session.chunks)
    count = len(items)
    return ExecutionResult(
        "partial" if found.caps_hit else "success" if items else "empty",
        Value(items if value is None else value, evidence),
        count,
        {"count": count},
        caps_hit=tuple(found.caps_hit),
        used=found.used,
        message=caps_message(found.caps_hit, caps),
        hint=f"narrow the condition, or SET adapter.caps.{found.caps_hit[0]} higher" if found.caps_hit else "",
    )


def caps_message(hit: Sequence[str], caps: Caps) -> str:
    """Return a message that names the caps that cut a result short; "" for no caps."""
    if not hit:
        return ""
    named = [_CAPS[name].format(caps) if name in _CAPS else name for name in hit]
    return f"cut short by {' and '.join(named)}; there may be more"


async def near_in_graph(conditions: Sequence[Condition | None], kind: str, session: Session) -> str:
    """Return hints for unknown names and values in the conditions, which suggest similar ones from the graph; "" without hints."""

    def look() -> str:
        known = known_of_graph(session.graph, kind)
        return "; ".join(dict.fromkeys(filter(None, (near(condition, known) for condition in conditions))))

    return await asyncio.to_thread(look) if any(condition is not None for condition in conditions) else ""


# WALK, SUBGRAPH, CONNECT and MEASURE: neighbourhood, subgraph, connections and measures of a set of nodes.


@refusing
async def run_walk(command: Walk, session: Session) -> ExecutionResult:
    """Run WALK; DEPTH defaults to 1 and DIRECTION to out, as in the graph port."""
    starts, via = _nodes(command.source, session), bound(command.via, session)
    depth, direction = command.depth if command.depth is not None else 1, command.direction or "out"
    caps = session.caps
    answer = await searched(
        lambda caps: session.graph.walk(starts, via=via, depth=depth, direction=direction, caps=caps), caps
    )
    result = of_graph(answer, session, caps)
    if result.status != "empty":
        return result
    if not starts:
        return attrs.evolve(result, message=f"nothing to walk from: {command.source.text} is empty")
    hint = await unknown_nodes(starts, session) or await near_in_graph([via], "edges", session)
    if not hint and via is None and direction != "both":
        hint = "DIRECTION both follows edges in both directions"
    return attrs.evolve(result, message=f"no node is reached from {command.source.text}", hint=hint)


@refusing
async def run_subgraph(command: Subgraph, session: Session) -> ExecutionResult:
    """Run SUBGRAPH: the value is one object ``{"nodes", "edges"}``; the count is the number of nodes."""
    centers, caps = _nodes(command.source, session), session.caps
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
    """Run CONNECT: find the edges between two sets, in either direction."""
    left, right = _nodes(command.left, session), _nodes(command.right, session)
    via, caps = bound(command.via, session), session.caps
    answer = await searched(lambda caps: session.graph.connect(left, right, via=via, caps=caps), caps)
    result = of_graph(answer, session, caps)
    if result.status != "empty":
        return result
    for side, ids in ((command.left, left), (command.right, right)):
        if not ids:
            return attrs.evolve(result, message=f"nothing to connect: {side.text} is empty")
    hint = await unknown_nodes([*left, *right], session) or await near_in_graph([via], "edges", session)
    return attrs.evolve(result, message=f"no edge joins {command.left.text} and {command.right.text}", hint=hint)


@refusing
async def run_measure(command: Measure, session: Session) -> ExecutionResult:
    """Run MEASURE: return ``{"id", algorithm: value}`` for each node, in the order of the graph's nodes."""
    known = session.graph.measures
    if command.algorithm not in known:
        like = nearest(command.algorithm, known)
        hint = f"did you mean {like}?" if like else f"available: {', '.join(known)}"
        raise Refused("error", f"unknown algorithm {command.algorithm}", hint)
    among = None if command.source is None else _nodes(command.source, session)
    caps = session.caps
    answer = await searched(lambda caps: session.graph.measure(command.algorithm, among, caps=caps), caps)
    result = of_graph(answer, session, caps)
    if result.status == "empty":
        whose = "the graph" if command.source is None else command.source.text
        return attrs.evolve(result, message=f"{whose} has no nodes to measure")
    return result


def _nodes(name: Name, session: Session) -> list[NodeId]:
    return node_ids(rows_of(name, session))


RUNNERS = {
    Find: run_find,
    FindPaths: run_find_paths,
    Walk: run_walk,
    Subgraph: run_subgraph,
    Connect: run_connect,
    Measure: run_measure,
}
