"""``FIND nodes`` and ``FIND edges``: the search for matching rows, their order, and a description of the search."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from sys import getsizeof
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import attrs
from attrs import frozen

from ...lang.evaluate.conditions import Predicate, Reader, compiled, order_key, simplified, value_function
from ...lang.evaluate.conditions.other_types import is_counting
from ...lang.evaluate.conditions.values import check, hold
from ...lang.trees.conditions import Comparison, Condition, Field
from ...lang.trees.gasl import Order
from ...lang.unicode_forms import canonical
from ..graph import AdapterError, Caps, GraphResult, Item, Plan
from .find_plan import Decision, column_of_field, count_left_out, decide, fields_of, selected
from .rows import Deadline, Items, Kind, edge_item, node_id, node_item, plain, readers_of, rows_of, scan
from .stale import StaleGraphWarning as StaleGraphWarning
from .stale import warn_stale
from .tables import Computed, Table, forget, keeps

if TYPE_CHECKING:
    from .found import Found
    from .tables import Column

# ``ORDER BY``: several fields, each ascending or descending, null always last, ties in the original order.

Row = TypeVar("Row", bound=tuple[Any, ...])
_ARITY: Mapping[Kind, int] = {"nodes": 2, "edges": 4}
"""The number of elements of a row of nodes or edges; see ``rows_of``."""


def ordered(rows: Sequence[Row], order: Sequence[Order], readers: Callable[[Field], Reader], arity: int) -> list[Row]:
    """Return ``rows``, which have ``arity`` elements, sorted by the values of ``order``; the first value is the primary key."""
    result = list(rows)
    for each in reversed(order):  # sorting is stable, so sort by the last field first
        value_of = value_function(each.value, readers, arity=arity, plain=plain, lenient=True)
        keyed: list[tuple[Any, Row]] = []
        is_new = not isinstance(each.value, Field)
        for start in range(0, len(result), _CHUNK):
            check()
            for row in result[start : start + _CHUNK]:
                keyed.append((key := order_key(value_of(*row), each.descending), row))
                if is_new and len(key) > 1 and key[1].__class__ is str and len(key[1]) > _SHORT:
                    hold(getsizeof(key[1]))
        null = order_key(None, each.descending)
        present = sorted((pair for pair in keyed if pair[0] != null), key=lambda pair: pair[0], reverse=each.descending)
        result = [row for _, row in present] + [row for key, row in keyed if key == null]
    return result


def _shifted(readers: Callable[[Field], Reader]) -> Callable[[Field], Reader]:
    """Return readers of the same fields for rows that have an additional first element."""

    def read(at: Field) -> Reader:
        reader = readers(at)
        return attrs.evolve(reader, arguments=tuple(index + 1 for index in reader.arguments))

    return read


def by_columns(graph: Any, kept: Computed, kind: Kind, order: Sequence[Order], positions: Any, most: int | None) -> Any:
    """Return the indices of the first ``most`` rows, sorted by the fields of ``order``, whose values are in columns.

    The rows are those at ``positions`` (None: all rows); an index is an index in ``positions``.
    """
    from ..columns import ascending

    keys = []
    for each in order:
        assert isinstance(each.value, Field)  # noqa: S101  # the caller sorts computed values row by row
        column = column_of_field(graph, kept, kind, each.value)
        if column is None:
            raise AdapterError(f"the values of {each.value.text} are nested too deeply to be sorted")
        keys.append((column.ranks(positions, each.descending), each.descending))
    return ascending(keys, most)


# Conversion of an item's id to the graph's node, or to ``MISSING``.

MISSING: Any = object()
"""Marker for an unknown id."""


def find_node(graph: Any, kept: Computed, identifier: Any) -> Any:
    """Return the node with this item id, or ``MISSING``. The id of a node that is not a string or an integer is its text.

    If no id is written in the same way, the node is the first one whose id is canonically equivalent.
    """
    if isinstance(identifier, bool) or not isinstance(identifier, str | int):
        return MISSING
    if identifier in graph:
        return identifier
    if not isinstance(identifier, str):
        return MISSING
    texts, form = _texts(graph, kept), canonical(identifier)
    return texts[identifier] if identifier in texts else form if form in graph else texts.get(form, MISSING)


def _texts(graph: Any, kept: Computed) -> Mapping[str, Any]:
    """Map item ids and their canonical forms to nodes. An id of several nodes maps to the first one.

    Nodes whose id is an integer or an ASCII text are omitted, because the graph itself finds them.
    """

    def make() -> dict[str, Any]:
        texts: dict[str, Any] = {}
        for node in graph:
            if node.__class__ is int or (node.__class__ is str and node.isascii()):
                continue
            text = str(node_id(node))
            texts.setdefault(canonical(text), node)
            if node.__class__ is not str:
                texts.setdefault(text, node)
        return texts

    return kept.part("texts", make)


# Detection of attributes written without NetworkX's methods: such a write does not clear the cache (NetworkX issue 7344).
# Every search that uses columns compares some of their rows with the live graph, different rows each time. If they differ, a
# warning is issued and the columns are rebuilt.

AuditColumns: TypeAlias = "tuple[tuple[Column, Callable[..., Any]], ...]"
"""Columns, each with a function that reads the column's value from a row of the live graph."""

_ROWS = 8
_STRIDE = 2_654_435_761
"""Knuth's multiplier. It spreads the rows that successive searches check over the entire graph."""


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


_LARGE = 256
"""A graph with fewer nodes or edges is scanned, because a scan is faster than building columns."""
_RECHECKED = 64
"""Up to this many hits are rechecked immediately.

If there are more, only a sample is rechecked; the others are rechecked when they are read.
"""
_SHORT = 100
"""Texts of up to this many characters are not counted in the memory of a command."""
_SAMPLED = 8
_SAMPLE = 1000
_CHUNK = 8192


def predicate_of(graph: Any, kind: Kind, where: Condition) -> Predicate:
    """Return ``where`` as a predicate over rows (see ``rows_of``) of the live graph. Raises ``ConditionError``."""
    return compiled(where, readers_of(graph, kind), arity=_ARITY[kind], plain=plain)


def positions_of(
    graph: Any, kept: Computed, kind: Kind, where: Condition, deadline: Deadline, strict: bool
) -> tuple[Any, str, Predicate]:
    """Return the ascending positions of the rows that satisfy ``where``, the kind of search used, and the compiled ``where``.

    Rows that columns found are not rechecked here: the caller rechecks the rows that it shows.
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


def count_types(
    graph: Any,
    kept: Computed,
    kind: Kind,
    where: Condition,
    strict: bool,
    shown: Callable[[Comparison], Comparison] = lambda leaf: leaf,
) -> None:
    """Count the nodes or edges that ``where`` leaves out because of value types. See ``count_left_out`` for ``shown``."""
    if is_counting(where):
        question = _prepared(graph, kept, kind, where, strict)
        by_columns = question.decision.way != "scan"
        count_left_out(graph, kept, kind, where, question.predicate, by_columns=by_columns, shown=shown)


def plan_of(graph: Any, kept: Computed, kind: Kind, where: Condition | None, strict: bool) -> Plan:
    """Return the plan that ``find`` would use. Rows are counted by an index if possible, else estimated from a sample."""
    size = kept.size(graph, kind)
    if where is None:
        return Plan("scan", size, ("no condition: returns all",))
    question = _prepared(graph, kept, kind, where, strict)
    decision = question.decision
    notes = []
    if decision.rows is not None:
        notes.append(f"the index finds {decision.rows:,} of {size:,} {kind}")
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

    Up to 64 hits are rechecked immediately against the full condition on the live graph. If there are more, a sample is
    rechecked immediately; the other hits are rechecked when their items are read. If a hit fails, attributes were written
    without NetworkX's methods: the cache is discarded with a ``StaleGraphWarning``, and the live graph is scanned.
    """
    import numpy as np

    deadline = Deadline.of(caps)
    if where is None and (every := _whole(graph, kept, kind, order, limit, caps, strict, deadline)) is not None:
        return every
    question = None if where is None else _prepared(graph, kept, kind, where, strict)
    if question is not None and where is not None:
        count_left_out(graph, kept, kind, where, question.predicate, by_columns=question.decision.way != "scan")
    if question is None or question.decision.way == "scan":
        return _scan_result(graph, kind, None if question is None else question.predicate, order, limit, caps)
    predicate, decision = question.predicate, question.decision
    positions = selected(graph, kept, kind, decision)
    examined = len(kept.table(graph, kind)) if decision.rows is None else decision.rows
    table = kept.table(graph, kind)
    stale = not agrees_with_graph(kept, table, question.columns)
    settle = None
    rows: Any = positions
    most = _most(limit, caps)
    if not decision.exact or len(positions) <= _RECHECKED:
        rows, pieces = [], list[Any]()
        for start in range(0, len(positions), _CHUNK):
            if deadline.passed():
                break
            chunk = positions[start : start + _CHUNK]
            tested = table.rows(chunk.tolist())
            chosen = predicate.select(tested)
            rows += chosen
            pieces.append(chunk[_indices(tested, chosen)])
        matching = np.concatenate(pieces) if pieces else positions[:0]
        stale = stale or (decision.exact and not deadline.hit and len(rows) < len(positions))
    else:
        matching = positions
        sample = table.rows(positions[:: max(1, len(positions) // _SAMPLED)].tolist())
        stale = stale or len(predicate.select(sample)) < len(sample)
        settle = _rechecker(table, predicate)
    if stale:
        warn_stale()
        forget(graph)
        return _scan_result(graph, kind, predicate, order, limit, caps)
    total = len(rows)
    if order:
        if settle is None or not all(isinstance(each.value, Field) for each in order):
            found = list(zip(range(total), table.rows(matching.tolist()), strict=True))
            of_row = _shifted(readers_of(graph, kind))
            sorted_rows = ordered([(at, *row) for at, row in found], order, of_row, _ARITY[kind] + 1)
            places = np.array([at for at, *_ in sorted_rows], np.int64)
            rows = [tuple(row) for _, *row in sorted_rows] if settle is None else matching[places]
        else:
            places = by_columns(graph, kept, kind, order, positions, most)
            rows = positions[places]
        matching = matching[places]

    def columnar() -> "Found | None":
        from .found import Found

        chosen = matching[:most]
        if settle is not None:
            tested = table.rows(chosen.tolist())
            if len(predicate.select(tested)) < len(tested):
                return None  # reading the items issues the warning
        return Found(graph, kept, kind, chosen)

    made = _limited(kind, rows, settle, limit, caps, deadline, decision.used, examined, total)
    return attrs.evolve(made, columnar=columnar)


def _indices(rows: Sequence[Any], chosen: Sequence[Any]) -> Any:
    """Return a mask or a slice that selects ``chosen`` from ``rows``. ``chosen`` has some of the rows, in the same order."""
    import numpy as np

    if len(chosen) == len(rows):
        return slice(None)
    wanted = set(map(id, chosen))
    return np.fromiter((id(row) in wanted for row in rows), np.bool_, len(rows))


def _most(limit: int | None, caps: Caps) -> int:
    return caps.max_results if limit is None else min(limit, caps.max_results)


def _whole(
    graph: Any, kept: Computed, kind: Kind, order: Sequence[Order], limit: int | None, caps: Caps, strict: bool,
    deadline: Deadline,
) -> GraphResult | None:  # fmt: skip
    """Return all nodes or edges, or the first in an order, from columns; None if reading the graph is faster or necessary."""
    import numpy as np

    from .found import Found

    fields = [(each.value, each.descending) for each in order if isinstance(each.value, Field)]
    if strict or not keeps(graph) or len(fields) < len(order) or deadline.passed():
        return None
    size = kept.size(graph, kind)
    most = _most(limit, caps)
    if size < _LARGE or (not order and most < size // 4 and not _has_table(graph, kept, kind)):
        return None
    columns = [column_of_field(graph, kept, kind, at) for at, _ in fields]
    if None in columns:
        return None
    table = kept.table(graph, kind)
    places = None if most >= size else np.arange(most)
    if order:
        places = by_columns(graph, kept, kind, order, None, most)
    readers = [readers_of(graph, kind)(at).read for at, _ in fields]
    if not agrees_with_graph(kept, table, tuple(zip(columns, readers, strict=True))):
        warn_stale()
        forget(graph)
        return None
    used = f"column on {', '.join(at.text for at, _ in fields)}" if order else "scan"
    if deadline.passed():
        return None
    found = Found(graph, kept, kind, places)
    capped = size > caps.max_results and (limit is None or limit > caps.max_results)
    return GraphResult(found, ("max_results",) if capped else (), used, size, columnar=lambda: found)


def _has_table(graph: Any, kept: Computed, kind: Kind) -> bool:
    """Return whether the table of ``kind`` exists; a graph opened from a prepared copy always has it."""
    return kept.has(kind) or hasattr(graph, "node_table")


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
    # Search for one row more than is shown, to know whether a cap cut the result short.
    rows, examined = scan(rows_of(graph, kind), predicate, None if order else most + 1, deadline)
    if order:
        rows = ordered(rows, order, readers_of(graph, kind), _ARITY[kind])
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
    total: int | None = None,
) -> GraphResult:
    """Return the result with as many ``rows`` as the limit and the caps allow.

    If ``rows`` has only the first matches, ``total`` is the number of all matches.

    If the limit is not larger than the cap, the result does not report the cap as hit.
    """
    most = _most(limit, caps)
    total = len(rows) if total is None else total
    capped = total > caps.max_results and (limit is None or limit > caps.max_results)
    hit = (("max_results",) if capped else ()) + (("timeout_s",) if deadline.hit else ())
    build: Callable[..., Item] = node_item if kind == "nodes" else edge_item
    return GraphResult(Items(rows[:most], lambda row: build(*row), settle), hit, used, examined)


@frozen(eq=False)
class _Prepared:
    """The data prepared for a condition: the predicate, the search decision, and the columns to compare with the live graph."""

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
