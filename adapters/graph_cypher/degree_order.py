"""The first nodes of an order by degree. The edges of all nodes are counted once, and only the first nodes are fetched."""

from collections.abc import Mapping, Sequence

import numpy as np

from ...lang.trees.conditions import Field
from ...lang.trees.gasl import Order
from ..columns import Array
from ..graph_networkx.rows import DEGREES, Deadline
from .database import NodeTable, Statement
from .pull import rows_of_keys
from .search import SearchPlan, Source, head_of
from .table_rows import TableRow, Wanted
from .view import reads_degree

_MOST = 10_000
"""Maximum number of nodes that are fetched. If more nodes share the last degree, the database sorts all nodes."""


def first_by_degree(
    source: Source, plan: SearchPlan, order: Sequence[Order], most: int, deadline: Deadline
) -> list[TableRow] | None:
    """Return the rows of the first ``most`` nodes, and perhaps of others; None if the database must sort them.

    ``plan`` must be a search whose whole condition the database tests.
    """
    field = order[0].value if order else None
    if plan.kind != "nodes" or plan.rest or not source.database.dialect.is_typed or not 0 < most <= _MOST:
        return None
    if not isinstance(field, Field) or len(field.path) != 1 or field.path[0] not in DEGREES:
        return None
    found: list[TableRow] = []
    for each in plan.tables:
        table = each.table
        if not isinstance(table, NodeTable) or reads_degree(" ".join(each.pushed.texts)):
            return None
        counts = _counts(source, table, deadline)
        texts = (source.database.dialect.order.format("n"), table.key_text("n"))
        named = f"RETURN {texts[0]} AS p, {texts[1]} AS k"
        statement = Statement(f"{head_of(source, each)} {named}", each.parameters.values)
        columns = None if counts is None else source.database.columns(statement, deadline)
        if counts is None or columns is None:
            return None
        offsets = columns.column(0).to_numpy()
        degrees = counts[field.path[0]][offsets]
        chosen = _first(-degrees if order[0].descending else degrees, most)
        if len(chosen) > _MOST:
            return None
        keys = columns.column(1).take(chosen).to_pylist()
        for place, node, attributes, _ in rows_of_keys(source, table, keys, Wanted(), deadline):
            own = {name: int(counts[name][place[-1]]) for name in DEGREES}
            found.append((place, node, attributes, own))
    return found


def _first(ranks: Array, most: int) -> Array:
    """Return the positions of the ``most`` smallest numbers, and of all others that equal the largest of them."""
    if most >= len(ranks):
        return np.arange(len(ranks))
    return np.flatnonzero(ranks <= np.partition(ranks, most - 1)[most - 1])


def _counts(source: Source, table: NodeTable, deadline: Deadline) -> Mapping[str, Array] | None:
    """Return, for each degree, its value for each position of a table; None if the database returns no columns."""
    known = source.degree_columns.get(table.place)
    if known is not None:
        return known
    match, position = source.match(table), source.database.dialect.order.format("n")
    size = source.positions(table, lambda statement: source.database.run(statement, deadline))
    sides: list[Array] = []
    for edge in ("<-[r]-()", "-[r]->()"):
        statement = Statement(f"{match}{edge} RETURN {position} AS p, count(*) AS c")
        columns = source.database.columns(statement, deadline)
        if columns is None or deadline.hit:
            return None
        side = np.zeros(size, np.int64)
        side[columns.column(0).to_numpy()] = columns.column(1).to_numpy()
        sides.append(side)
    made = {"degree": sides[0] + sides[1], "in_degree": sides[0], "out_degree": sides[1]}
    source.degree_columns[table.place] = made
    return made
