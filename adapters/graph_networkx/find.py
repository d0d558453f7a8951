"""``FIND nodes`` and ``FIND edges``: the search for matching rows, their order, and a description of the search."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import attrs
from attrs import frozen

from ...lang.evaluate.conditions import Predicate, Reader, compiled, simplified, sort_key
from ...lang.trees.conditions import Condition, Field
from ...lang.trees.gasl import Order
from ..graph import AdapterError, Caps, GraphResult, Item, Plan
from .find_plan import Decision, column_of_field, decide, fields_of, selected
from .rows import Deadline, Items, Kind, edge_item, node_id, node_item, plain, readers_of, rows_of, scan
from .tables import Computed, Table, forget

if TYPE_CHECKING:
    from .tables import Column

# ``ORDER BY``: several fields, each ascending or descending, null always last, ties in the original order.

Row = TypeVar("Row", bound=tuple[Any, ...])


def ordered(rows: Sequence[Row], order: Sequence[Order], readers: Callable[[Field], Reader]) -> list[Row]:
    """Return ``rows`` sorted by the fields of ``order``, first by the first field."""
    result = list(rows)
    for each in reversed(order):  # sorting is stable, so sort by the last field first
        read = readers(Field(each.field.parts)).read
        keyed = [(sort_key(plain(read(*row))), row) for row in result]
        null = sort_key(None)
        present = sorted((pair for pair in keyed if pair[0] != null), key=lambda pair: pair[0], reverse=each.descending)
        result = [row for _, row in present] + [row for key, row in keyed if key == null]
    return result


def by_columns(graph: Any, kept: Computed, kind: Kind, order: Sequence[Order], positions: Any) -> Any:
    """Return the indices that sort the array ``positions`` by the fields of ``order``; the values are read from columns."""
    import numpy as np

    keys = []
    for each in reversed(order):  # lexsort's last key is the first to sort by
        column = column_of_field(graph, kept, kind, Field(each.field.parts))
        if column is None:
            raise AdapterError(f"the values of {each.field.text} are nested too deeply to be sorted")
        ranks = column.ranks(positions)
        keys.append(-ranks if each.descending else ranks)  # NaN, which means null, comes last in both directions
    return np.lexsort(keys)


# Conversion of an item's id to the graph's node, or to ``MISSING``.

MISSING: Any = object()
"""Marker for an unknown id."""


def find_node(graph: Any, kept: Computed, identifier: Any) -> Any:
    """Return the node with id ``identifier``, or ``MISSING``. A node that is not a string or an integer is found by its text."""
    if isinstance(identifier, bool) or not isinstance(identifier, str | int):
        return MISSING
    if identifier in graph:
        return identifier
    return _texts(graph, kept).get(identifier, MISSING) if isinstance(identifier, str) else MISSING


def _texts(graph: Any, kept: Computed) -> Mapping[str, Any]:
    """Map generated item ids to their nodes, which are not strings or integers; an id of several nodes maps to the first node."""

    def make() -> dict[str, Any]:
        texts: dict[str, Any] = {}
        for node in graph:
            if node.__class__ is not str and node.__class__ is not int:
                texts.setdefault(str(node_id(node)), node)
        return texts

    return kept.part("texts", make)


# Detection of attributes written without NetworkX's methods: such a write does not clear the cache (NetworkX issue 7344).
# Every search that uses columns compares some of their rows with the live graph, different rows each time. If they differ, a
# warning is issued and the columns are rebuilt.

AuditColumns: TypeAlias = "tuple[tuple[Column, Callable[..., Any]], ...]"
"""Columns, each with a function that reads the column's value from a row of the live graph."""

_ROWS = 8
_STRIDE = 2_654_435_761
"""Knuth's multiplier, which spreads the checked rows of successive searches over the graph."""


class StaleGraphWarning(UserWarning):
    """The graph's attributes were written directly, so cached data were wrong."""


def warn_stale() -> None:
    """Warn that cached data differ from the graph."""
    warnings.warn(
        "attributes of the graph were written without NetworkX's methods, so its indexes were outdated and are rebuilt. "
        "Call invalidate() after such writes, or use strict=True",
        StaleGraphWarning,
        stacklevel=2,
    )


def audit_columns(graph: Any, kept: Computed, kind: Kind, where: Condition) -> AuditColumns:
    """Return the columns that ``where`` reads, each with a function that reads the same value from the live graph."""
    pairs = []
    for at in {field.path: field for field in fields_of(where)}.values():
        column = column_of_field(graph, kept, kind, Field(at.path))
        if column is not None:
            pairs.append((column, readers_of(graph, kind)(at).read))
    return tuple(pairs)


def agrees_with_graph(kept: Computed, table: "Table", columns: AuditColumns) -> bool:
    """Return whether a few rows of the columns agree with the live graph."""
    kept.turn += 1
    size = len(table)
    first = kept.turn * _STRIDE
    some = sorted({(first + at * size // _ROWS) % size for at in range(min(_ROWS, size))})
    rows = table.rows(some)
    return all(column.agrees(at, read(*row)) for column, read in columns for at, row in zip(some, rows, strict=True))


_RECHECKED = 64
"""Up to this many hits are all rechecked at once. Of more hits, a sample is rechecked at once and the others when they are read."""
_SAMPLED = 8
_SAMPLE = 1000
_CHUNK = 8192


def predicate_of(graph: Any, kind: Kind, where: Condition) -> Predicate:
    """Return ``where`` as a predicate over rows (see ``rows_of``) of the live graph. Raises ``ConditionError``."""
    return compiled(where, readers_of(graph, kind), arity=2 if kind == "nodes" else 4, plain=plain)


def positions_of(
    graph: Any, kept: Computed, kind: Kind, where: Condition, deadline: Deadline, strict: bool
) -> tuple[Any, str, Predicate]:
    """Return the ascending positions of the rows that satisfy ``where``, the kind of search used, and the compiled ``where``.

    This function does not recheck rows found by columns: the caller rechecks the rows that it shows.
    """
    import numpy as np

    question = _prepared(graph, kept, kind, where, strict)
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
    """Return the plan that ``find`` would use. Rows are counted if an index can count them, else estimated from a sample."""
    size = graph.number_of_nodes() if kind == "nodes" else graph.number_of_edges()
    if where is None:
        return Plan("scan", size, ("no condition: returns all",))
    question = _prepared(graph, kept, kind, where, strict)
    decision = question.decision
    notes = []
    if decision.rows is not None:
        notes.append(f"the index gives {decision.rows:,} of {size:,}")
    if decision.first is not None and decision.rest:
        names = dict.fromkeys(".".join(at.path) for operand in decision.rest for at in fields_of(operand))
        notes.append(f"then columns on {', '.join(names)}")
    if not decision.exact:
        notes.append("the remaining rows are tested one by one")
    if decision.way == "scan":
        notes.append(f"examines all {size:,}")
    if decision.first is not None and not decision.rest and decision.exact:
        return Plan(decision.used, decision.rows or 0, tuple(notes))
    table = kept.table(graph, kind)
    among: Any = range(size)
    if decision.first is not None:
        among = selected(graph, kept, kind, attrs.evolve(decision, rest=()))
    # A random sample, because attributes often repeat periodically. The seed is fixed, so that EXPLAIN is repeatable.
    places = sorted(Random(0).sample(range(len(among)), min(_SAMPLE, len(among))))  # noqa: S311  # no secret
    sample = [int(among[place]) for place in places]
    hits = len(question.predicate.select(table.rows(sample)))
    return Plan(decision.used, round(hits * len(among) / max(1, len(sample))), tuple(notes))


def find(
    graph: Any,
    kept: Computed,
    kind: Kind,
    where: Condition | None,
    order: Sequence[Order],
    limit: int | None,
    caps: Caps,
    strict: bool,
) -> GraphResult:
    """Find nodes or edges. Raises ``ConditionError``.

    Up to some sixty hits are rechecked against the full condition on the live graph at once. Of more hits, a sample is rechecked at
    once and the others when their items are read. If a hit fails, attributes were written without NetworkX's methods: the cache is
    discarded with a ``StaleGraphWarning``, and the live graph is scanned.
    """
    deadline = Deadline.of(caps)
    question = None if where is None else _prepared(graph, kept, kind, where, strict)
    if question is None or question.decision.way == "scan":
        return _scan_result(graph, kind, None if question is None else question.predicate, order, limit, caps)
    predicate, decision = question.predicate, question.decision
    positions = selected(graph, kept, kind, decision)
    examined = len(kept.table(graph, kind)) if decision.rows is None else decision.rows
    table = kept.table(graph, kind)
    stale = not agrees_with_graph(kept, table, question.columns)
    settle = None
    rows: Any = positions
    if not decision.exact or len(positions) <= _RECHECKED:
        rows = []
        for start in range(0, len(positions), _CHUNK):
            if deadline.passed():
                break
            rows += predicate.select(table.rows(positions[start : start + _CHUNK].tolist()))
        stale = stale or (decision.exact and not deadline.hit and len(rows) < len(positions))
    else:
        sample = table.rows(positions[:: max(1, len(positions) // _SAMPLED)].tolist())
        stale = stale or len(predicate.select(sample)) < len(sample)
        settle = _rechecker(table, predicate)
    if stale:
        warn_stale()
        forget(graph)
        return _scan_result(graph, kind, predicate, order, limit, caps)
    if order:
        if settle is None:
            rows = ordered(rows, order, readers_of(graph, kind))
        else:
            rows = positions[by_columns(graph, kept, kind, order, positions)]
    return _limited(kind, rows, settle, limit, caps, deadline, decision.used, examined)


def _rechecker(table: Table, predicate: Predicate) -> Callable[[Any], Sequence[Any]]:
    def settle(positions: Any) -> Sequence[Any]:
        rows = table.rows(positions.tolist())
        found = predicate.select(rows)
        if len(found) < len(rows):
            warn_stale()
        return found

    return settle


def _scan_result(
    graph: Any, kind: Kind, predicate: Predicate | None, order: Sequence[Order], limit: int | None, caps: Caps
) -> GraphResult:
    deadline = Deadline.of(caps)
    most = caps.max_results if limit is None else min(limit, caps.max_results)
    # One row more than is shown is searched for, to know whether a cap cut the result.
    rows, examined = scan(rows_of(graph, kind), predicate, None if order else most + 1, deadline)
    if order:
        rows = ordered(rows, order, readers_of(graph, kind))
    return _limited(kind, rows, None, limit, caps, deadline, "scan", examined)


def _limited(
    kind: Kind,
    rows: Any,
    settle: Callable[[Any], Sequence[Any]] | None,
    limit: int | None,
    caps: Caps,
    deadline: Deadline,
    used: str,
    examined: int,
) -> GraphResult:
    """Return ``rows`` within the limit and the caps. If the limit is not larger than the cap, the cap was not hit."""
    most = caps.max_results if limit is None else min(limit, caps.max_results)
    capped = len(rows) > caps.max_results and (limit is None or limit > caps.max_results)
    hit = (("max_results",) if capped else ()) + (("timeout_s",) if deadline.hit else ())
    build: Callable[..., Item] = node_item if kind == "nodes" else edge_item
    return GraphResult(Items(rows[:most], lambda row: build(*row), settle), hit, used, examined)


@frozen(eq=False)
class _Prepared:
    """A condition with its compiled parts: the predicate, the decision, and the columns to audit."""

    predicate: Predicate
    decision: Decision
    columns: AuditColumns


def _prepared(graph: Any, kept: Computed, kind: Kind, condition: Condition, strict: bool) -> _Prepared:
    def make() -> _Prepared:
        where = simplified(condition)
        # Compile first, so that an invalid condition is refused before columns are built for the condition.
        predicate = predicate_of(graph, kind, where)
        decision = decide(graph, kept, kind, where, strict)
        return _Prepared(predicate, decision, () if decision.way == "scan" else audit_columns(graph, kept, kind, where))

    return kept.prepared(("question", kind, strict), condition, make)
