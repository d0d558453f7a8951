"""FIND patterns: rows of named nodes and edges, with the nodes and edges of the complete match as evidence. No model calls."""

import asyncio

import attrs

from ....lang.diagnostic import nearest
from ....lang.literals import short
from ....lang.trees.gasl import FindPatterns
from ..records import ExecutionResult, Runner, Session
from .bindings import bound_command, fixed, refusing
from .evidence import Lazy, graph_piece
from .find import of_graph
from .paths import usable


@refusing
async def run_find_patterns(command: FindPatterns, session: Session) -> ExecutionResult:
    """Find the rows that match patterns. Raises ``Unbound``, ``ConditionError``, ``AdapterError``."""
    command = bound_command(command, session)
    graph, limit = session.graph, fixed(command.limit)
    answer = await usable(
        lambda caps: graph.patterns(
            command.patterns, command.where, order=command.order, limit=limit, per=command.per, caps=caps
        ),
        session.caps,
    )
    result = of_graph(answer, session, session.caps)
    matches, chunks = answer.matches, session.chunks
    if result.value is not None:
        evidence = Lazy(len(matches), lambda index: (graph_piece(matches[index], chunks),))
        result = attrs.evolve(result, value=attrs.evolve(result.value, evidence=evidence))
    notes = "; ".join(answer.notes)
    if result.status != "empty" or limit == 0:
        return attrs.evolve(result, message="; ".join(filter(None, (result.message, notes))))
    hint = await asyncio.to_thread(_unknown_names, command, session)
    return attrs.evolve(result, message=answer.missing, hint="; ".join(filter(None, (hint, notes))))


def _unknown_names(command: FindPatterns, session: Session) -> str:
    """Return hints for labels and attributes that the graph does not have; "" if it has all of them."""
    schema = session.graph.schema
    hints: dict[str, None] = {}
    for pattern in command.patterns:
        used = [(label, schema.labels) for node in pattern.nodes for label in node.labels]
        used += [(label, schema.relations) for edge in pattern.edges for label in edge.labels]
        for label, known in used:
            if label not in known and (like := nearest(label, known)):
                hints[f"there is no {short(label)}; did you mean {like}?"] = None
    return "; ".join(list(hints)[:3])


RUNNERS: dict[type, Runner] = {FindPatterns: run_find_patterns}
