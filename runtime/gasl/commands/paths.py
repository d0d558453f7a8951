"""FIND paths and FIND cycles: simple paths between nodes, the shortest or cheapest of them, and cycles."""

from collections.abc import Callable

import attrs

from ....adapters.graph import Caps, GraphResult, NodeId, UnusableValue
from ....lang.printer.gasl_printer import format_condition
from ....lang.trees.conditions import Condition
from ....lang.trees.conditions import Value as ValueNode
from ....lang.trees.gasl import FindCycles, FindPaths, Name
from ..records import ExecutionResult, Session
from .bindings import Refused, bound, bound_command, fixed, node_ids, refusing, rows_of
from .caps import caps_message
from .find import near_in_graph, of_graph, other_directions, searched, unknown_nodes


def path_ends(side: Name | Condition | None, session: Session) -> list[NodeId] | Condition | None:
    """Return the start or end nodes of paths: the node ids of a variable, or a condition. None means any node."""
    return node_ids(rows_of(side, session)) if isinstance(side, Name) else bound(side, session)


@refusing
async def run_find_paths(command: FindPaths, session: Session) -> ExecutionResult:
    """Find paths of at most MAXLEN edges. The result is ``partial`` if another bound cuts it short (see ``length_bound``)."""
    command = bound_command(command, session)
    start, end = path_ends(command.start, session), path_ends(command.end, session)
    via, where, caps = command.via, command.where, session.caps
    bound = length_bound(command, session)

    def search(caps: Caps, *, limit: int | None, max_length: int | None, capped: bool) -> GraphResult:
        return session.graph.paths(
            start,
            end,
            via=via,
            where=where,
            shortest=command.shortest,
            limit=limit,
            max_length=max_length,
            count=fixed(command.count),
            cost=command.cost,
            direction=command.direction or "out",
            capped=capped,
            caps=caps,
        )

    limit = fixed(command.limit)
    answer = await usable(lambda caps: search(caps, limit=limit, max_length=bound.length, capped=bound.capped), caps)
    result = of_graph(answer, session, caps, graph_items="paths")
    if "max_path_length" in answer.caps_hit:
        result = cut_by_length(result, bound, "path", session, shortest=command.shortest)
    result = with_unused(result, answer, command.cost)
    if result.status != "empty" or command.limit == 0:
        return result
    for side, ids in ((command.start, start), (command.end, end)):
        if isinstance(side, Name) and not ids:
            return attrs.evolve(result, message=f"no path was found: {side.text} is empty")
    if unknown := await unknown_nodes(
        [node_id for ids in (start, end) if isinstance(ids, list) for node_id in ids], session
    ):
        return attrs.evolve(result, message="no path was found", hint=unknown)
    ends = [each for each in (start, end) if not isinstance(each, list)]
    if answer.unused_edges and command.cost is not None:
        ends_message = f"no path was found along edges with a value of {format_condition(command.cost)}"
        return attrs.evolve(result, message=f"{ends_message}; {result.message}", hint="")
    hints = [await near_in_graph(ends, "nodes", session), await near_in_graph([via, where], "paths", session)]
    message = "no path of any length was found"
    if bound.written is not None:
        message = f"no path of at most {bound.written:,} edges was found"
        quick = attrs.evolve(caps, timeout_s=min(caps.timeout_s, _LONGER_S))
        if not command.shortest:
            hints.append("a larger MAXLEN may find paths")
        elif (await usable(lambda caps: search(caps, limit=1, max_length=None, capped=False), quick)).items:
            message += ", but a longer one exists"
            hints = ["write a larger MAXLEN, or omit it: SHORTEST needs no limit"]
    elif where is not None and not command.shortest and bound.length is None:
        message = f"no path of at most {caps.max_path_length:,} edges was found"
    if not any(hints) and via is where is None:
        hints = [other_directions(command.direction, session)]
    return attrs.evolve(result, message=message, hint="; ".join(filter(None, hints)))


_LONGER_S = 1.0
"""If no path has at most MAXLEN edges, longer paths are searched for; this is the time limit of that search in seconds."""


@attrs.frozen
class LengthBound:
    """The maximum number of edges of paths or cycles. ``written`` is the command's MAXLEN.

    ``length`` is the bound of the search: None means the cap, or with SHORTEST no bound. ``capped`` is true if the bound is
    lower than the command requests, so that the result may be incomplete.
    """

    length: int | None
    capped: bool
    written: int | None


def length_bound(command: FindPaths | FindCycles, session: Session) -> LengthBound:
    """Return the bound of a command: its MAXLEN, but at most the host's ceiling; without MAXLEN, the cap ``max_path_length``.

    SHORTEST is bounded only by MAXLEN, or by the cap if the plan has SET it, because SHORTEST does not enumerate the simple paths
    of each length.
    """
    written, ceiling = fixed(command.max_length), session.ceiling.max_path_length
    if isinstance(command, FindPaths) and command.shortest:
        if written is None and "max_path_length" in session.chosen:
            return LengthBound(session.caps.max_path_length, True, None)
        return LengthBound(written, False, written)
    if written is not None and written > ceiling:
        return LengthBound(ceiling, True, written)
    return LengthBound(written, written is None, written)


def cut_by_length(
    result: ExecutionResult, bound: LengthBound, what: str, session: Session, *, shortest: bool = False
) -> ExecutionResult:
    """Return ``result`` with advice, because a bound on the length has cut it short. ``what`` is "path" or "cycle"."""
    ceiling, directed = session.ceiling.max_path_length, session.graph.schema.directed
    length = session.caps.max_path_length if bound.length is None else bound.length
    if bound.written is not None:
        limit, hints = (
            f"MAXLEN {bound.written:,} is above the host's ceiling of {ceiling:,} edges",
            [_INSTEAD[what, directed]],
        )
    elif shortest:
        limit = f"limited to {length:,} edges by max_path_length"
        hints = ["SET adapter.caps.max_path_length higher, or omit that SET: SHORTEST needs no limit"]
    else:
        limit = f"limited to {length:,} edges by max_path_length, because the command has no MAXLEN"
        hints = [f"write MAXLEN with a larger number (at most {ceiling:,})"] if length < ceiling else []
        hints.append(_INSTEAD[what, directed])
    found = f"longer {what}s may exist" if result.count else f"no {what} was found, but longer {what}s may exist"
    others = [cap for cap in result.caps_hit if cap != "max_path_length"]
    message = "; ".join(filter(None, (limit, found, caps_message(others, session.caps))))
    return attrs.evolve(result, message=message, hint="; ".join(hints))


_OF_ANY_LENGTH = "SHORTEST finds the shortest paths of any length, WALK all nodes that can be reached"
_INSTEAD = {
    ("path", True): _OF_ANY_LENGTH,
    ("path", False): _OF_ANY_LENGTH,
    ("cycle", True): "MEASURE graph USING strong_components finds the nodes on cycles: its groups of several nodes",
    ("cycle", False): "MEASURE graph USING bridges finds the edges on cycles: those that are not bridges",
}
"""Advice on finding paths or cycles of any length, for directed and for undirected graphs."""


async def usable(search: Callable[[Caps], GraphResult], caps: Caps) -> GraphResult:
    """Run a search. If the search rejects a value in the graph as unusable, raise ``Refused`` (``schema_mismatch``)."""
    try:
        return await searched(search, caps)
    except UnusableValue as error:
        raise Refused("schema_mismatch", error.message, error.hint) from None


def with_unused(result: ExecutionResult, answer: GraphResult, value: ValueNode | None) -> ExecutionResult:
    """Add to the summary and message of ``result`` the number of edges that were not used because ``value`` is null."""
    count = answer.unused_edges
    if not count or value is None:
        return result
    text = format_condition(value)
    said = f"{count:,} edges without {text} were not used" if count > 1 else f"1 edge without {text} was not used"
    summary = {**result.summary, "nulls": {text: {"missing": count}}}
    return attrs.evolve(result, summary=summary, message="; ".join(filter(None, (result.message, said))))


@refusing
async def run_find_cycles(command: FindCycles, session: Session) -> ExecutionResult:
    """Find cycles of at most MAXLEN edges. The result is ``partial`` if a bound other than MAXLEN cuts it short."""
    command = bound_command(command, session)
    caps, via, where = session.caps, command.via, command.where
    bound, limit = length_bound(command, session), fixed(command.limit)
    answer = await searched(
        lambda caps: session.graph.cycles(
            via=via, where=where, limit=limit, max_length=bound.length, capped=bound.capped, caps=caps
        ),
        caps,
    )
    result = of_graph(answer, session, caps, graph_items="paths")
    if "max_path_length" in answer.caps_hit:
        return cut_by_length(result, bound, "cycle", session)
    if result.status != "empty" or command.limit == 0:
        return result
    hints = [await near_in_graph([via], "edges", session), await near_in_graph([where], "paths", session)]
    message = "no cycle was found" if via is not None or where is not None else "the graph has no cycle"
    if bound.written is not None:
        message = f"no cycle of at most {bound.written:,} edges was found"
        hints.append("a larger MAXLEN may find cycles")
    return attrs.evolve(result, message=message, hint="; ".join(filter(None, hints)))


RUNNERS = {FindPaths: run_find_paths, FindCycles: run_find_cycles}
