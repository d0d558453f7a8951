"""Decides whether a search uses an index, columns, or a scan of the live graph. EXPLAIN shows this decision.

Only the operands of the outermost AND are considered separately. An index is used for the operand that matches the fewest rows,
if it matches at most a tenth of all rows. For more rows, scanning a complete column is faster than gathering single rows.
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal

from attrs import frozen

from ...lang.evaluate.conditions import ConditionError, Predicate
from ...lang.evaluate.conditions.other_types import count_other_types, is_counting, typed_leaves
from ...lang.evaluate.conditions.values import count_mismatch, uncounted
from ...lang.trees import walk
from ...lang.trees.conditions import And, Comparison, Condition, Constant, Field, Increasing, Items, NullTest
from ..graph import AdapterError
from .rows import (
    DEGREES,
    Kind,
    attribute_reader,
    degree_of,
    examples_of,
    node_id,
    plain,
    readers_of,
    reserved,
    row_label,
    rows_of,
)
from .tables import Computed, keeps

_SMALL = 256
"""A graph with fewer rows is scanned, because a scan is faster than building columns."""
_SELECTIVE = 0.10
_TELLING = 0.01
_MOST_FIELDS = 64
_MOST_LEAVES = 256
"""A condition with more fields or comparisons is evaluated row by row, so that the search can stop at the time limit."""


@frozen
class Decision:
    """The decision for one search. ``first``: the operand answered by an index. ``rest``: the operands answered by columns.

    ``exact``: the index and the columns answer the entire condition; otherwise the rows that they find are tested one by one.
    ``rows``: the number of rows that the index finds.
    """

    way: Literal["index", "columns", "scan"]
    used: str
    first: Comparison | None = None
    rest: tuple[Condition, ...] = ()
    exact: bool = True
    rows: int | None = None


def decide(graph: Any, kept: Computed, kind: Kind, where: Condition | None, strict: bool) -> Decision:
    """Return the decision for a search with ``where``. Missing columns that the search needs are built."""
    size = kept.size(graph, kind)
    if where is None or strict or size < _SMALL or not keeps(graph):
        return Decision("scan", "scan")
    operands = operands_of(where)
    answered = [operand for operand in operands if is_answerable(graph, kept, kind, operand)]
    if not answered:
        return Decision("scan", "scan")
    exact = len(answered) == len(operands)
    best: Comparison | None = None
    fewest = int(size * _SELECTIVE) + 1
    for operand in sorted(answered, key=_promise):
        if _promise(operand) == _HOPELESS or (_promise(operand) == _RANGE and fewest < size * _TELLING):
            continue
        assert isinstance(operand, Comparison) and isinstance(operand.left, Field)  # noqa: S101  # promising
        column = column_of_field(graph, kept, kind, operand.left)
        count = None if column is None else column.count(operand)
        if count is not None and count < fewest:
            best, fewest = operand, count
    names = ", ".join(dict.fromkeys(".".join(at.path) for operand in answered for at in fields_of(operand) if at.path))
    if best is None:
        word = "columns" if "," in names else "column"
        return Decision("columns", f"{word} on {names}" if names else "scan", None, tuple(answered), exact)
    assert isinstance(best.left, Field)  # noqa: S101  # promising
    rest = tuple(operand for operand in answered if operand is not best)
    return Decision("index", f"index on {'.'.join(best.left.path)}", best, rest, exact, fewest)


def selected(graph: Any, kept: Computed, kind: Kind, decision: Decision) -> Any:
    """Return the positions, as an ascending array, of the rows that satisfy ``decision.first`` and all of ``decision.rest``."""
    import numpy as np

    from .tables import mask_of

    def columns(at: Field) -> Any:
        return column_of_field(graph, kept, kind, at)

    rows = len(kept.table(graph, kind))
    at = None
    if decision.first is not None:
        assert isinstance(decision.first.left, Field)  # noqa: S101  # an index has a field
        at = columns(decision.first.left).positions(decision.first)
    mask = None
    for operand in decision.rest:
        new = mask_of(columns, operand, True, at, rows)
        if new is None:
            raise AssertionError("a column can't evaluate an operand that it accepted")
        if at is not None:
            at = at[new]
        else:
            mask = new if mask is None else np.bitwise_and(mask, new, out=mask)
    if at is not None:
        return at
    return np.arange(rows, dtype=np.int32) if mask is None else np.flatnonzero(mask)


def fields_of(condition: Condition) -> Iterable[Field]:
    """Return the fields that a condition reads."""
    return [node for node in walk(condition) if isinstance(node, Field)]


def column_of_field(graph: Any, kept: Computed, kind: Kind, at: Field) -> Any:
    """Return the column of a field; None if the field's values are nested too deeply for a column."""
    return kept.part(("column", kind, at.path), lambda: _build_column(graph, kept, kind, at.path))


def _build_column(graph: Any, kept: Computed, kind: Kind, path: tuple[str, ...]) -> Any:
    from .copied_graph import stored_column, stored_values
    from .tables import Through, column_of

    if kind == "edges" and path[0] in ("source", "target"):
        inner = column_of_field(graph, kept, "nodes", Field(path[1:] or ("id",)))
        table = kept.edges(graph)
        return inner and Through(inner, table.sources if path[0] == "source" else table.targets)
    raw: list[Any]
    if kind == "nodes" and path == ("id",):
        raw = [node_id(node) for node in kept.nodes(graph).nodes]
    elif kind == "nodes" and len(path) == 1 and path[0] in DEGREES:
        raw = [degree for _, degree in degree_of(graph, path[0])]
    elif kind == "edges" and path == ("key",) and graph.is_multigraph():
        raw = [node_id(key) for key in kept.edges(graph).keys or ()]
    else:
        reader = attribute_reader(path, reserved(kind, graph.is_multigraph()), 0)
        data_of_rows = kept.table(graph, kind).data
        if reader.key is not None and (column := stored_column(data_of_rows, reader.key)) is not None:
            return column
        if (stored := stored_values(data_of_rows, path, reader.read)) is not None:
            raw = stored
        elif reader.key is not None:
            name = reader.key
            raw = [data.get(name) for data in data_of_rows]
        else:
            raw = [reader.read(data) for data in data_of_rows]
    try:
        return column_of(raw)
    except (ConditionError, AdapterError):
        return None


_EQUAL, _RANGE, _HOPELESS = 0, 1, 2


def _promise(operand: Condition) -> int:
    """Return the rank of an operand. The lower the rank, the more likely an index helps: equality, range, any other operand."""
    if not isinstance(operand, Comparison) or not isinstance(operand.left, Field):
        return _HOPELESS
    if operand.operator in ("=", "IN"):
        return _EQUAL
    return _RANGE if operand.operator in ("<", "<=", ">", ">=") else _HOPELESS


def operands_of(where: Condition | None) -> list[Condition]:
    """Return the operands of the outermost AND; a list with the condition itself if it is not an AND."""
    found: list[Condition] = []
    stack = [where] if where is not None else []
    while stack:
        current = stack.pop()
        if isinstance(current, And):
            stack.extend(reversed(current.operands))
        else:
            found.append(current)
    return found


def is_answerable(graph: Any, kept: Computed, kind: Kind, operand: Condition) -> bool:
    """Return whether columns can evaluate ``operand``.

    It must compare few fields with constants, all fields must have columns, and no number may be too large.
    """
    fields = {at.path for at in fields_of(operand)}
    leaves = [node for node in walk(operand) if isinstance(node, Comparison | NullTest)]
    if any(isinstance(node, Increasing) for node in walk(operand)):
        return False
    if len(fields) > _MOST_FIELDS or len(leaves) > _MOST_LEAVES or any(at.quantifier for at in fields_of(operand)):
        return False
    if any(column_of_field(graph, kept, kind, Field(path)) is None for path in fields):
        return False
    return all(map(_fits, leaves))


def _fits(leaf: Comparison | NullTest) -> bool:
    if not isinstance(leaf.left, Field | Constant):
        return False
    if isinstance(leaf, NullTest):
        return True
    if isinstance(leaf.right, Constant | Items):
        from ...lang.evaluate.conditions.comparison import constant_of

        right = constant_of(leaf.right)
        values = right if isinstance(right, tuple | list) else (right,)
        return not any(isinstance(value, int) and abs(value) >= 2**53 for value in values)
    return False


_FEW_ROWS = 1000


def count_left_out(
    graph: Any,
    kept: Computed,
    kind: Kind,
    where: Condition,
    predicate: Predicate,
    *,
    by_columns: bool,
    shown: Callable[[Comparison], Comparison] = lambda leaf: leaf,
) -> None:
    """If a caller wants the counts, count the rows that ``where`` leaves out because of the types of their values.

    If ``where`` is only a part of the command's condition, ``shown`` converts a comparison to the form that it has in the
    command.
    """
    if not is_counting(where):
        return
    readers = readers_of(graph, kind)
    if not by_columns:
        rows = list(rows_of(graph, kind))

        def values_of(at: Field) -> list[Any]:
            read = readers(at).read
            return [plain(read(*row)) for row in rows]

        count_other_types(
            where, values_of, lambda index: predicate(*rows[index]), shown, lambda index: row_label(rows[index])
        )
        return
    from .tables import mask_of

    table = kept.table(graph, kind)
    answerable, size = all(is_answerable(graph, kept, kind, each) for each in operands_of(where)), len(table)
    for leaf, at, is_other in typed_leaves(where):
        column = column_of_field(graph, kept, kind, at)
        if column is None:  # nested too deeply
            read = readers(at).read
            others = [index for index, row in enumerate(table.rows(range(size))) if is_other(plain(read(*row)))]
        else:
            mask = column.others(is_other)
            others = [] if mask is None else mask.nonzero()[0].tolist()
            if len(others) > _FEW_ROWS and answerable:
                for wanted in (True, False):
                    known = mask_of(lambda each: column_of_field(graph, kept, kind, each), where, wanted, None, size)
                    mask = mask if known is None else mask & ~known
                left_out = mask.nonzero()[0].tolist()
                count_mismatch(shown(leaf), len(left_out), examples_of(table.rows(left_out), readers(at)))
                continue
        with uncounted():
            found = [row for row in table.rows(others) if predicate(*row) is None]
        if found:
            count_mismatch(shown(leaf), len(found), examples_of(found, readers(at)))


# The distinct strings of a field in a graph, used to suggest corrections for a string without matches.


def texts_of(graph: Any, kept: Computed, kind: Kind, name: str, most: int) -> list[str]:
    """Return the first ``most`` distinct strings of a field, from the field's column if it exists, else from the graph."""
    if most <= 0:
        return []
    path = tuple(name.split("."))
    part = ("column", kind, path)
    if kept.has(part):
        from .column_types import Coded, Numbers

        column: Any = kept.part(part, lambda: None)
        if isinstance(column, Numbers):
            return []
        if isinstance(column, Coded):
            return [value for value in column.values if isinstance(value, str)][:most]
    read = readers_of(graph, kind)(Field(path)).read
    found: dict[str, None] = {}
    for row in rows_of(graph, kind):
        value = read(*row)
        if value.__class__ is not str:
            value = None if value is None else plain(value)
            if not isinstance(value, str):
                continue
        if value not in found:
            found[value] = None
            if len(found) == most:
                break
    return list(found)
