"""``FIND nodes`` and ``FIND edges`` in a database: fetches the rows, tests the rest of the condition, and sorts."""

from collections.abc import Sequence

from ...lang.evaluate.conditions import Predicate, compiled
from ...lang.evaluate.conditions.values import check
from ...lang.trees.conditions import Condition
from ...lang.trees.gasl import Order
from ..graph import Caps, GraphResult, Item
from ..graph_networkx.find import ordered
from ..graph_networkx.rows import Deadline, Items, plain
from .degree_order import first_by_degree
from .rows_in_database import search_exactly
from .search import LARGEST_LIMIT, Source, TablePlan, count_left_out, near_the_top, plan_search, statement_of, used_of
from .table_rows import ARITY, Kind, TableRow, item_of

_CHUNK = 8192


def find(
    source: Source,
    kind: Kind,
    where: Condition | None,
    order: Sequence[Order],
    limit: int | None,
    caps: Caps,
) -> GraphResult:
    """Find nodes or edges. Raises ``ConditionError``, ``AdapterError``."""
    deadline = Deadline.of(caps)
    readers = source.readers(kind)
    if where is not None:
        compiled(where, readers, arity=ARITY[kind], plain=plain)  # refuses an invalid condition
        count_left_out(source, kind, where, deadline)
    shown = caps.max_results if limit is None else min(limit, caps.max_results)
    # One row more than the cap shows that the cap cuts.
    most = shown if limit is not None and limit <= caps.max_results else shown + 1
    plan = plan_search(source, kind, where, order, most if most < LARGEST_LIMIT else None)
    if limit is None and not order and not plan.rest and source.database.dialect.is_typed:
        exact = search_exactly(source, kind, where, caps, deadline)
        if exact is not None:
            return exact
    rows: list[TableRow] = []
    crossed = 0
    first = first_by_degree(source, plan, order, most, deadline)
    if first is not None:
        rows, crossed = first, len(first)
    for each in plan.tables if first is None else ():
        if kind == "nodes" and not order and len(rows) >= most:
            break
        each = near_the_top(source, each, order, deadline)
        found = source.database.run(statement_of(source, each, plan.wanted), deadline)
        crossed += len(found)
        columns = source.columns(each.table, plan.wanted, deadline)
        tested = _predicate(source, each, kind)
        chosen: list[TableRow] = []
        for start in range(0, len(found), _CHUNK):
            check()
            some = [columns.row(values) for values in found[start : start + _CHUNK]]
            chosen += some if tested is None else tested.select(some)
        if not (deadline.hit and plan.wanted.degrees):  # otherwise, the degrees of ends are not complete
            rows += chosen
        if deadline.passed():
            break
    rows.sort(key=lambda row: row[0])
    if order:
        rows = ordered(rows, order, readers, ARITY[kind])
    hit = ("max_results",) if len(rows) > shown and shown == caps.max_results and shown != limit else ()
    if deadline.hit:
        hit = (*hit, "timeout_s")
    items: Sequence[Item] = Items(rows[:shown], lambda row: item_of(kind, row))
    return GraphResult(items, hit, used_of(plan, crossed), crossed)


def _predicate(source: Source, plan: TablePlan, kind: Kind) -> Predicate | None:
    if plan.pushed.rest is None:
        return None
    return compiled(plan.pushed.rest, source.readers(kind), arity=ARITY[kind], plain=plain)
