"""``FIND nodes`` and ``FIND edges``: which rows of the graph satisfy a condition, in what order, and how that was found out."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import attrs
from attrs import frozen

from ....lang.conditions import Condition
from ....lang.evaluate.conditions import Predicate, compiled, simplified
from ....lang.gasl import Order
from ...graph import Caps, Found, Item, Plan
from ..columnar.computed import Computed, forget
from ..columnar.tables import Table
from ..rows.fields import readers_of
from ..rows.items import Items, edge_item, node_item
from ..rows.jsonable import plain
from ..rows.scan import Deadline, Kind, rows_of, scan
from .audit import Watched, audited, warn_stale, watched
from .ordering import by_columns, ordered
from .planning import Decision, decide, fields_of, selected

_RECHECKED = 64
"""Hits that are asked the whole condition again at once; of more a sample is, and the others when they are read."""
_SAMPLED = 8
_SAMPLE = 1000
_CHUNK = 8192

__all__ = ["find", "plan_of", "positions_of", "predicate_of"]


def predicate_of(graph: Any, kind: Kind, where: Condition) -> Predicate:
    """Return ``where`` as a predicate over rows (see ``rows_of``) of the live graph. Raises ``ConditionError``."""
    return compiled(where, readers_of(graph, kind), arity=2 if kind == "nodes" else 4, plain=plain)


def positions_of(
    graph: Any, kept: Computed, kind: Kind, where: Condition, deadline: Deadline, strict: bool
) -> tuple[Any, str, Predicate]:
    """Return the positions of the rows for which ``where`` is true, rising; how they were found; and ``where`` made ready.

    What columns found is not asked again here: that is for the caller, of the rows that it shows.
    """
    import numpy as np

    question = _question(graph, kept, kind, where, strict)
    decision, table = question.decision, kept.table(graph, kind)
    candidates: Any = range(len(table))
    if decision.way != "scan":
        candidates = selected(graph, kept, kind, decision)
        if decision.exact:
            return candidates, decision.used, question.predicate
    found: list[int] = []
    holds = question.predicate.holds
    for start in range(0, len(candidates), _CHUNK):
        if deadline.passed():
            break
        some = [int(at) for at in candidates[start : start + _CHUNK]]
        found += [at for at, row in zip(some, table.rows(some), strict=True) if holds(*row)]
    return np.array(found, np.int32), decision.used, question.predicate


def plan_of(graph: Any, kept: Computed, kind: Kind, where: Condition | None, strict: bool) -> Plan:
    """Say how ``find`` would search. The rows are counted where an index counts them, else estimated from a sample."""
    size = graph.number_of_nodes() if kind == "nodes" else graph.number_of_edges()
    if where is None:
        return Plan("scan", size, ("no condition: all of them",))
    question = _question(graph, kept, kind, where, strict)
    decision = question.decision
    notes = []
    if decision.rows is not None:
        notes.append(f"the index gives {decision.rows:,} of {size:,}")
    if decision.first is not None and decision.rest:
        names = dict.fromkeys(".".join(at.path) for operand in decision.rest for at in fields_of(operand))
        notes.append(f"then columns on {', '.join(names)}")
    if not decision.exact:
        notes.append("what is left is asked one by one")
    if decision.way == "scan":
        notes.append(f"looks at all {size:,}")
    if decision.first is not None and not decision.rest and decision.exact:
        return Plan(decision.used, decision.rows or 0, tuple(notes))
    table = kept.table(graph, kind)
    among = range(size) if decision.first is None else _index_rows(graph, kept, kind, decision)
    # Drawn, not every n-th: attributes often repeat. The same each time, so that EXPLAIN is repeatable.
    places = sorted(Random(0).sample(range(len(among)), min(_SAMPLE, len(among))))  # noqa: S311  # no secret
    sample = [int(among[place]) for place in places]
    hits = len(question.predicate.select(table.rows(sample)))
    return Plan(decision.used, round(hits * len(among) / max(1, len(sample))), tuple(notes))


def _index_rows(graph: Any, kept: Computed, kind: Kind, decision: Decision) -> Any:
    return selected(graph, kept, kind, attrs.evolve(decision, rest=()))


def find(
    graph: Any,
    kept: Computed,
    kind: Kind,
    where: Condition | None,
    order: Sequence[Order],
    limit: int | None,
    caps: Caps,
    strict: bool,
) -> Found:
    """Find nodes or edges. Raises ``ConditionError``.

    Up to some sixty hits are asked the whole condition again on the live graph at once; of more, a sample is, and the
    others when their items are read. Hits that fail mean that attributes were written past NetworkX's methods: what was kept
    is forgotten with a ``StaleGraphWarning``, and the live graph is scanned.
    """
    deadline = Deadline.of(caps)
    question = None if where is None else _question(graph, kept, kind, where, strict)
    if question is None or question.decision.way == "scan":
        return _scanned(graph, kind, None if question is None else question.predicate, order, limit, caps)
    predicate, decision = question.predicate, question.decision
    positions = selected(graph, kept, kind, decision)
    examined = len(kept.table(graph, kind)) if decision.rows is None else decision.rows
    table = kept.table(graph, kind)
    stale = not audited(kept, table, question.columns)
    settle = None
    rows: Any = positions
    if not decision.exact or len(positions) <= _RECHECKED:
        rows = _asked(table, positions, predicate, deadline)
        stale = stale or (decision.exact and not deadline.hit and len(rows) < len(positions))
    else:
        sample = table.rows(positions[:: max(1, len(positions) // _SAMPLED)].tolist())
        stale = stale or len(predicate.select(sample)) < len(sample)
        settle = _settling(table, predicate)
    if stale:
        warn_stale()
        forget(graph)
        return _scanned(graph, kind, predicate, order, limit, caps)
    if order:
        if settle is None:
            rows = ordered(rows, order, readers_of(graph, kind))
        else:
            rows = positions[by_columns(graph, kept, kind, order, positions)]
    return _within(kind, rows, settle, limit, caps, deadline, decision.used, examined)


def _asked(table: Table, positions: Any, predicate: Predicate, deadline: Deadline) -> list[Any]:
    found: list[Any] = []
    for start in range(0, len(positions), _CHUNK):
        if deadline.passed():
            break
        found += predicate.select(table.rows(positions[start : start + _CHUNK].tolist()))
    return found


def _settling(table: Table, predicate: Predicate) -> Callable[[Any], Sequence[Any]]:
    def settle(positions: Any) -> Sequence[Any]:
        rows = table.rows(positions.tolist())
        found = predicate.select(rows)
        if len(found) < len(rows):
            warn_stale()
        return found

    return settle


def _scanned(
    graph: Any, kind: Kind, predicate: Predicate | None, order: Sequence[Order], limit: int | None, caps: Caps
) -> Found:
    deadline = Deadline.of(caps)
    most = caps.max_results if limit is None else min(limit, caps.max_results)
    # One more than is shown tells whether a cap cuts.
    rows, examined = scan(rows_of(graph, kind), predicate, None if order else most + 1, deadline)
    if order:
        rows = ordered(rows, order, readers_of(graph, kind))
    return _within(kind, rows, None, limit, caps, deadline, "scan", examined)


def _within(
    kind: Kind,
    rows: Any,
    settle: Callable[[Any], Sequence[Any]] | None,
    limit: int | None,
    caps: Caps,
    deadline: Deadline,
    used: str,
    examined: int,
) -> Found:
    """Return ``rows`` within the limit and the caps. A limit that is no larger than the cap is not cut short by it."""
    most = caps.max_results if limit is None else min(limit, caps.max_results)
    capped = len(rows) > caps.max_results and (limit is None or limit > caps.max_results)
    hit = (("max_results",) if capped else ()) + (("timeout_s",) if deadline.hit else ())
    build = _build_node if kind == "nodes" else _build_edge
    return Found(Items(rows[:most], build, settle), hit, used, examined)


def _build_node(row: Any) -> Item:
    return node_item(*row)


def _build_edge(row: Any) -> Item:
    return edge_item(*row)


@frozen(eq=False)
class _Question:
    """A condition with all that is made ready for it: the predicate, the decision, and the columns to audit."""

    predicate: Predicate
    decision: Decision
    columns: Watched


def _question(graph: Any, kept: Computed, kind: Kind, condition: Condition, strict: bool) -> _Question:
    def make() -> _Question:
        where = simplified(condition)
        # First of all: a condition that can't be compiled is refused before columns are made for it.
        predicate = predicate_of(graph, kind, where)
        decision = decide(graph, kept, kind, where, strict)
        return _Question(predicate, decision, () if decision.way == "scan" else watched(graph, kept, kind, where))

    return kept.prepared(("question", kind, strict), condition, make)
