"""Groups the rows of an exact search in the database: one statement for each table, and one fetched row for each group.

The database groups and computes only what has the same result there as in this process: groups by strings, integers and booleans,
and counts, sums and means of integers, smallest and largest values. For everything else, the columns are fetched.
"""

from collections.abc import Callable, Hashable, Sequence
from operator import itemgetter
from typing import Any

from attrs import evolve, frozen

from ...lang.evaluate.conditions import identity
from ..columns import GroupedItems, GroupQuery
from ..graph_networkx.rows import DEGREES
from .database import EdgeTable, NodeTable, Row, Statement
from .search import SearchPlan, Source, TablePlan, head_of, own_order
from .view import Fixed, Known

_LARGEST = 2**63
_KEYS = frozenset(("text", "integer", "boolean"))
"""The families of fields by which the database groups. Floats are left out, because of negative zero and NaN."""

Run = Callable[[Statement], list[Row]]


@frozen
class _Parts:
    """The statement on one table, and how to read its rows: keys, size, first position, computed values and their counts."""

    plan: TablePlan
    keys: tuple[Any, ...]
    """For each field of the groups, its expression as ``Known``, or its value in all rows as ``Fixed``."""
    computed: tuple[Known | None, ...]
    """For each computation, its field; None for ``count()`` and for a field that is null in the whole table."""
    radices: tuple[int, ...]
    """The factors that combine the positions of a row into one number; each is larger than all positions of its table."""


def grouping(source: Source, plan: SearchPlan, query: GroupQuery, run: Run) -> list[_Parts] | None:
    """Return the statements that group the rows; None if the database would give other groups or values."""
    made: list[_Parts] = []
    for each in plan.tables:
        view = source.view(each.table)
        if each.pushed.rest is not None or any(_is_hidden(source, path) for path in _paths(query)):
            return None
        keys = [view.meaning(path) for path in query.by]
        if not all(isinstance(at, Fixed) or (isinstance(at, Known) and at.family in _KEYS) for at in keys):
            return None
        if any(isinstance(at, Known) and at.family == "text" and not at.composed() for at in keys):
            return None
        computed: list[Known | None] = []
        for function, path in query.computed:
            meaning = None if path is None else view.meaning(path)
            if path is None or (isinstance(meaning, Fixed) and meaning.value is None):
                computed.append(None)
            elif (
                isinstance(meaning, Known)
                and meaning.family == "text"
                and function != "count"
                and not meaning.composed()
            ):
                return None
            elif isinstance(meaning, Known) and meaning.family in _FAMILIES.get(function, ()):
                computed.append(evolve(meaning, always=source.is_full(each.table, meaning, run)))
            else:
                return None
        radices = _radices(source, each.table, run)
        if radices is None:
            return None
        made.append(_Parts(each, tuple(keys), tuple(computed), radices))
    for at, (_, path) in enumerate(query.computed):
        families = {known.family for parts in made if (known := parts.computed[at]) is not None}
        if path is not None and len(families) != 1:
            return None
    return made


def grouped(
    source: Source, plan: SearchPlan, counts: Sequence[int], query: GroupQuery, run: Run
) -> GroupedItems | None:
    """Return the groups of the rows of a search, computed by the database; None if it can't compute exactly these groups.

    ``counts`` are the numbers of rows in the tables of the plan.
    """
    parts = grouping(source, plan, query, run)
    if parts is None:
        return None
    tables = [(each, count) for each, count in zip(parts, counts, strict=True) if count]
    fetched: list[list[Any]] = []
    crossed = 0
    for each, count in tables:
        rows = run(statement_of_groups(source, each, query))
        crossed += len(rows)
        fetched.append(_read(source, each, rows, query))
        if sum(row[1] for row in fetched[-1]) != count:
            return None  # the graph has changed; the code that reads columns reports it
    rows = fetched[0] if len(fetched) == 1 else _united(fetched, query)
    rows.sort(key=itemgetter(0))
    if any(all(row[2][at] is None for row in rows) for at in range(len(query.by))):
        return None  # no item has the field
    computed: list[list[Any]] = []
    nulls: list[int] = []
    total = sum(row[1] for row in rows)
    for at, (function, path) in enumerate(query.computed):
        if path is None:
            computed.append([row[1] for row in rows])
            nulls.append(0)
            continue
        present = sum(row[4][at] for row in rows)
        if not present:
            return None
        values = [_value(function, row[3][at], row[4][at]) for row in rows]
        if any(value.__class__ is float and not value and function != "mean" for value in values):
            return None  # the sign of a zero is that of the first zero of the group
        computed.append(values)
        nulls.append(total - present)
    used = f"grouped by the database, {crossed:,} rows fetched"
    return GroupedItems([row[2] for row in rows], [row[1] for row in rows], computed, nulls, used)


_FAMILIES = {
    "count": frozenset(("text", "integer", "boolean", "float")),
    "sum": frozenset(("integer",)),
    "mean": frozenset(("integer",)),
    "min": frozenset(("text", "integer", "float")),
    "max": frozenset(("text", "integer", "float")),
}
"""For each function that the database computes, the families of its fields. Sums of floats depend on the order in an engine."""


def _paths(query: GroupQuery) -> list[tuple[str, ...]]:
    return [*query.by, *(path for _, path in query.computed if path is not None)]


def _is_hidden(source: Source, path: tuple[str, ...]) -> bool:
    """Return whether a degree is read, or an attribute of an edge may hide a field of its end."""
    if path[-1] in DEGREES:
        return True
    whole = ".".join(path)
    return path[0] in ("source", "target") and any(whole in table.properties for table in source.tables.edges)


def _radices(source: Source, table: NodeTable | EdgeTable, run: Run) -> tuple[int, ...] | None:
    """Return a number above all positions for each end and the edges of a table; None if their product is too large for an integer."""
    if isinstance(table, NodeTable):
        return ()
    ends = (table.source, table.target, table) if source.multi else (table.source, table)
    radices = tuple(source.positions(each, run) for each in ends)
    product = 1
    for radix in radices:
        product *= radix
    return radices if product < _LARGEST else None


def _first(source: Source, parts: _Parts) -> str:
    """Return the expression for the position of the first row of a group: the positions of its ends and its own, in one number."""
    texts = [text for text, _ in own_order(source, parts.plan.table)]
    made = texts[0]
    for text, radix in zip(texts[1:], parts.radices[1:], strict=True):
        made = f"({made}) * {radix} + {text}"
    return f"min({made})"


def statement_of_groups(source: Source, parts: _Parts, query: GroupQuery) -> Statement:
    """Return the statement that fetches the groups of a table."""
    texts = [at.text for at in parts.keys if isinstance(at, Known)]
    texts += ["count(*)", _first(source, parts)]
    for (function, _), known in zip(query.computed, parts.computed, strict=True):
        if known is None:
            continue
        value = known.text
        if known.family == "float" and not known.always:  # NaN and infinity count as null
            value = f"CASE WHEN {value} - {value} = 0.0 THEN {value} END"
        if function != "count":
            texts.append(f"{'sum' if function == 'mean' else function}({value})")
        if not known.always:
            texts.append(f"count({value})")
    head = head_of(source, parts.plan, [*(at.text for at in parts.keys if isinstance(at, Known))])
    return Statement(f"{head} RETURN {', '.join(texts)}", parts.plan.parameters.values)


def _read(source: Source, parts: _Parts, rows: list[Row], query: GroupQuery) -> list[Any]:
    """Return ``(first position, size, keys, values, counts)`` for each fetched row."""
    made: list[Any] = []
    table = parts.plan.table
    width = sum(isinstance(at, Known) for at in parts.keys)
    plain = width == len(parts.keys)
    reads = [
        (None, None) if known is None else (function != "count", not known.always)
        for (function, _), known in zip(query.computed, parts.computed, strict=True)
    ]
    for row in rows:
        size = row[width]
        if not size:  # an aggregate without groups has one row, also if nothing is found
            continue
        if plain:
            keys = tuple(row[:width])
        else:
            own = iter(row)
            keys = tuple(next(own) if isinstance(at, Known) else at.value for at in parts.keys)
        place = width + 2
        values: list[Any] = []
        counts: list[int] = []
        for has_value, has_count in reads:
            value = None
            if has_value:
                value = row[place]
                place += 1
            count = 0 if has_value is None else size
            if has_count:
                count = row[place]
                place += 1
            values.append(value)
            counts.append(count)
        made.append((_position(source, table, row[width + 1], parts.radices), size, keys, values, counts))
    return made


def _position(source: Source, table: NodeTable | EdgeTable, packed: int, radices: Sequence[int]) -> tuple[int, ...]:
    """Return the position of a row in the graph's own order."""
    if isinstance(table, NodeTable):
        return table.place, packed
    parts: list[int] = []
    for radix in radices[:0:-1]:
        packed, rest = divmod(packed, radix)
        parts.append(rest)
    if source.multi:
        return table.source.place, packed, table.target.place, parts[1], table.place, parts[0]
    return table.source.place, packed, table.place, parts[0]


def _united(tables: Sequence[Sequence[Any]], query: GroupQuery) -> list[Any]:
    """Return the groups of all tables; equal groups of several tables become one."""
    known: dict[Hashable, Any] = {}
    for rows in tables:
        for row in rows:
            key = tuple(map(identity, row[2]))
            other = known.get(key)
            known[key] = row if other is None else _joined(other, row, query)
    return list(known.values())


def _joined(one: Any, other: Any, query: GroupQuery) -> Any:
    first, second = (one, other) if one[0] < other[0] else (other, one)
    values = []
    for (function, _), left, right in zip(query.computed, first[3], second[3], strict=True):
        if left is None or right is None:
            values.append(right if left is None else left)
        else:
            values.append(
                {"min": min, "max": max}[function](left, right) if function in ("min", "max") else left + right
            )
    counts = [left + right for left, right in zip(first[4], second[4], strict=True)]
    return first[0], first[1] + second[1], first[2], values, counts


def _value(function: str, value: Any, count: int) -> Any:
    if function == "count":
        return count
    if not count:
        return None
    return float(value / count) if function == "mean" else value
