"""WALK, SUBGRAPH, CONNECT and MEASURE: what the graph has around, between and of a set of nodes."""

import attrs

from ...adapters.graph import NodeId
from ...lang.diagnostic import nearest
from ...lang.trees.gasl import Connect, Measure, Name, Subgraph, Walk
from ..records import ExecutionResult
from ..session import Session
from .bindings import Refused, bound, node_ids, refusing, rows_of
from .finding import near_in_graph, of_graph, searched, unknown_nodes

__all__ = ["run_connect", "run_measure", "run_subgraph", "run_walk"]


@refusing
async def run_walk(command: Walk, session: Session) -> ExecutionResult:
    """WALK: DEPTH is 1 and DIRECTION out where they are not given, as in the port."""
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
        return attrs.evolve(result, message=f"there is nowhere to walk from: {command.source.text} is empty")
    hint = await unknown_nodes(starts, session) or await near_in_graph([via], "edges", session)
    if not hint and via is None and direction != "both":
        hint = "DIRECTION both follows edges either way"
    return attrs.evolve(result, message=f"no node is reached from {command.source.text}", hint=hint)


@refusing
async def run_subgraph(command: Subgraph, session: Session) -> ExecutionResult:
    """SUBGRAPH: the variable is the one object ``{"nodes", "edges"}``; the count is that of its nodes."""
    centers, caps = _nodes(command.source, session), session.caps
    answer = await searched(lambda caps: session.graph.subgraph(centers, command.radius, caps=caps), caps)
    item = answer.items[0] if answer.items else {"nodes": [], "edges": []}
    nodes, edges = len(item["nodes"]), len(item["edges"])
    result = of_graph(answer, session, caps, value=item)
    status = result.status if answer.caps_hit else "success" if nodes else "empty"
    if nodes:
        message, hint = result.message, result.hint
    else:
        message, hint = f"there is nothing around {command.source.text}", await unknown_nodes(centers, session)
    return attrs.evolve(
        result,
        status=status,
        count=nodes,
        summary={"count": nodes, "nodes": nodes, "edges": edges},
        message=message,
        hint=hint,
    )


@refusing
async def run_connect(command: Connect, session: Session) -> ExecutionResult:
    """CONNECT: the edges between two sets, in either direction."""
    left, right = _nodes(command.left, session), _nodes(command.right, session)
    via, caps = bound(command.via, session), session.caps
    answer = await searched(lambda caps: session.graph.connect(left, right, via=via, caps=caps), caps)
    result = of_graph(answer, session, caps)
    if result.status != "empty":
        return result
    for side, ids in ((command.left, left), (command.right, right)):
        if not ids:
            return attrs.evolve(result, message=f"there is nothing to connect: {side.text} is empty")
    hint = await unknown_nodes([*left, *right], session) or await near_in_graph([via], "edges", session)
    return attrs.evolve(result, message=f"no edge joins {command.left.text} and {command.right.text}", hint=hint)


@refusing
async def run_measure(command: Measure, session: Session) -> ExecutionResult:
    """MEASURE: ``{"id", algorithm: value}`` for each node, in the graph's order."""
    known = session.graph.measures
    if command.algorithm not in known:
        like = nearest(command.algorithm, known)
        hint = f"did you mean {like}?" if like else f"there are: {', '.join(known)}"
        raise Refused("error", f"there is no algorithm {command.algorithm}", hint)
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
