"""Items that stay in Arrow columns until they are read, without a row for each item."""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from ..columns import Array
from ..graph import Item
from .database import EdgeTable, NodeTable
from .search import Source

if TYPE_CHECKING:
    import pyarrow as pa

_STEP = 8192


@frozen(eq=False)
class TableItems:
    """The items of the fetched rows of one table: the names of their fields, and for each name a column or the value of all rows."""

    names: tuple[str, ...]
    fields: "tuple[pa.ChunkedArray | str, ...]"
    prefixes: tuple[str, ...]
    """For each name, a text before each value ("": the values as they are)."""
    size: int

    def items(self, at: Any = None) -> Iterator[Item]:
        """Yield the items at positions (None: all)."""
        if at is None:
            for start in range(0, self.size, _STEP):
                yield from self._made(lambda column, start=start: column.slice(start, _STEP))
        else:
            yield from self._made(lambda column: column.take(at))

    def _made(self, some: Any) -> Iterator[Item]:
        values: list[Any] = []
        for each, prefix in zip(self.fields, self.prefixes, strict=True):
            if isinstance(each, str):
                values.append(repeat(each))
                continue
            listed = some(each).to_pylist()
            values.append([f"{prefix}{value}" for value in listed] if prefix else listed)
        names = self.names
        for row in zip(*values, strict=False):  # repeated values have no end
            yield dict(zip(names, row, strict=True))


class ColumnItems:
    """The items of several tables. ``order`` has the positions of the items, counted through all tables, in the graph's own order."""

    def __init__(self, tables: Sequence[TableItems], order: Array | None) -> None:
        self._tables = tables
        self._order = order

    def __iter__(self) -> Iterator[Item]:
        if self._order is None:
            for each in self._tables:
                yield from each.items()
        elif len(self._tables) == 1:
            for start in range(0, len(self._order), _STEP):
                yield from self._tables[0].items(self._order[start : start + _STEP])
        else:
            every = [item for each in self._tables for item in each.items()]
            for at in self._order.tolist():
                yield every[at]

    def at(self, positions: Sequence[int]) -> list[Item]:
        """Return the items at positions."""
        chosen = np.asarray(positions, np.int64)
        if self._order is not None:
            chosen = self._order[chosen]
        made: list[Item] = [{}] * len(chosen)
        first = 0
        for each in self._tables:
            inside = np.flatnonzero((chosen >= first) & (chosen < first + each.size))
            for place, item in zip(inside.tolist(), each.items(chosen[inside] - first), strict=True):
                made[place] = item
            first += each.size
        return made


def items_of_columns(
    source: Source, table: NodeTable | EdgeTable, columns: "pa.Table"
) -> tuple[TableItems, list[Array]] | None:
    """Return the items of the fetched rows of a table, and the columns of their positions; None if rows must be read.

    The columns are those of ``statement_of``. The items have the order of the rows. Items are made from columns only if all values are
    shown as they are, and if all items have the same fields: each column has no nulls, or only nulls.
    """
    fetched = columns.columns
    fields: list[Any]
    if isinstance(table, NodeTable):
        offsets, properties = [fetched[0]], fetched[2:]
        fields, prefixes, kind, name = [fetched[1]], [table.prefix], table.label, source.address.label
    else:
        end = len(fetched) - 4
        properties = fetched[1:end]
        source_at, source_key, target_at, target_key = fetched[end:]
        offsets = [source_at, *([target_at] if source.multi else []), fetched[0]]
        fields, prefixes = [source_key, target_key], [table.source.prefix, table.target.prefix]
        kind, name = table.relation, source.address.relation
        if source.multi:
            fields.append(fetched[0])
            prefixes.append(f"{table.place}:")
    present = [each.null_count == 0 for each in properties]
    if any(0 < each.null_count < len(each) for each in properties) or not all(map(_is_shown, properties)):
        return None
    if name:
        fields.append(kind)
    fields += [each for each, is_there in zip(properties, present, strict=True) if is_there]
    names = source.names_of(table, present)
    if len(names) != len(fields):  # two properties have the same name in items
        return None
    prefixes += [""] * (len(fields) - len(prefixes))
    made = TableItems(names, tuple(fields), tuple(prefixes), columns.num_rows)
    return made, [each.to_numpy() for each in offsets]


def _is_shown(column: "pa.ChunkedArray") -> bool:
    """Return whether items show all values of a column as they are: no NaN, no infinity."""
    import pyarrow as pa
    from pyarrow import compute

    if not pa.types.is_floating(column.type):
        return True
    return compute.all(compute.is_finite(column)).as_py() is not False
