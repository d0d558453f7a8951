"""Found nodes and edges, stored as positions in the columns of the graph. See ``adapters.columns.ColumnarItems``.

A column is used only if it contains exactly the values that the items show. A column with infinities is not used, because items
show them as null. A column with mixed types is not used, because it stores only one of several equal values, such as 1 and 1.0.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ...lang.evaluate.conditions.values import check
from ...lang.trees import walk
from ...lang.trees.conditions import Condition, Field
from ..columns import CodeArray, ColumnArray, GroupQuery, NumberArray
from ..graph import Item
from .column_types import Coded, Numbers
from .find_plan import column_of_field, is_answerable
from .rows import Kind, attribute_reader, edge_item, item_value, node_item, readers_of, reserved
from .stale import warn_stale
from .stored_columns import Rows
from .tables import Computed, EdgeTable, NodeTable, Through, forget, mask_of

_STEP = 8192
"""Number of values read in one step. The clock is checked before each step."""
_AUDITED = 8
"""Number of values that are compared with the live graph each time a column is used."""


class Found(Sequence[Item]):
    """The nodes or edges at ``positions`` in their table. ``positions`` is an array, or None for all rows."""

    def __init__(self, graph: Any, kept: Computed, kind: Kind, positions: Any) -> None:
        self._graph = graph
        self._kept = kept
        self._kind: Kind = kind
        self._table: NodeTable | EdgeTable = kept.table(graph, kind)
        self._positions = positions
        self._arrays: dict[tuple[str, ...], ColumnArray | None] = {}

    def __len__(self) -> int:
        return len(self._table) if self._positions is None else len(self._positions)

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> list[Item]: ...
    def __getitem__(self, at: int | slice) -> Item | list[Item]:
        if isinstance(at, slice):
            chosen = range(len(self))[at]
            return self._built(chosen if self._positions is None else self._positions[at].tolist())
        if not -len(self) <= at < len(self):
            raise IndexError("item index out of range")
        at %= len(self)
        position = at if self._positions is None else int(self._positions[at])
        table = self._table
        if isinstance(table, NodeTable):
            return node_item(table.nodes[position], table.data[position])
        nodes, keys = table.ends.nodes, table.keys
        key = None if keys is None else keys[position]
        return edge_item(nodes[table.sources[position]], nodes[table.targets[position]], key, table.data[position])

    def __iter__(self) -> Iterator[Item]:
        for start in range(0, len(self), _STEP):
            yield from self[start : start + _STEP]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence) and not isinstance(other, str):
            return len(self) == len(other) and all(mine == its for mine, its in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # unhashable, like a list

    def _built(self, positions: Sequence[int]) -> list[Item]:
        rows = self._table.rows(positions)
        if self._kind == "nodes":
            return [node_item(node, data) for node, data in rows]
        return [edge_item(source, target, key, data) for source, target, key, data in rows]

    def take(self, positions: Any) -> "Found":
        """See ``ColumnarItems``."""
        chosen = np.asarray(positions, np.int64)
        return Found(
            self._graph, self._kept, self._kind, chosen if self._positions is None else self._positions[chosen]
        )

    def expect(self, positions: Sequence[int]) -> None:
        """See ``ColumnarItems``: all items are in memory."""

    def array(self, path: tuple[str, ...]) -> ColumnArray | None:
        """See ``ColumnarItems``."""
        if not self._has(path) or not self._agrees(path):
            return None
        if path not in self._arrays:
            whole = self._whole_array(path)
            self._arrays[path] = whole if whole is None or self._positions is None else whole.take(self._positions)
        return self._arrays[path]

    def values(self, path: tuple[str, ...]) -> list[Any] | None:
        """See ``ColumnarItems``."""
        array = self.array(path)
        if array is not None:
            return array.listed()
        if not self._has(path):
            return None
        return self._read(path, range(len(self._table)) if self._positions is None else self._positions.tolist())

    def _read(self, path: tuple[str, ...], positions: Sequence[int]) -> list[Any]:
        """Return the values of a field from the live graph, in the form in which items show them."""
        table = self._table
        names = reserved(self._kind, self._graph.is_multigraph())
        if path[0] not in names:
            read, data = attribute_reader(path, names, 0).read, table.data

            def some_of(some: Sequence[int]) -> list[Any]:
                return [read(data[at]) for at in some]

        else:
            read = readers_of(self._graph, self._kind)(Field(path)).read

            def some_of(some: Sequence[int]) -> list[Any]:
                return [read(*row) for row in table.rows(some)]

        made: list[Any] = []
        for start in range(0, len(positions), _STEP):
            check()
            found = map(item_value, some_of(positions[start : start + _STEP]))
            made += [None if value != value else value for value in found]
        return made

    def _has(self, path: tuple[str, ...]) -> bool:
        """Return whether the graph is unchanged and ``path`` means the same field here as in conditions on the graph."""
        names = reserved(self._kind, self._graph.is_multigraph())
        if self._graph.__networkx_cache__.get("knotwork") is not self._kept:
            return False  # the graph was changed
        if len(path) == 1 or path[0] not in names:
            return True
        if self._kind == "nodes" or path[0] == "key":
            return False
        whole = ".".join(path)  # an attribute with this name hides the field of the end
        return not self._kept.part(("named", self._kind, whole), lambda: whole in self._names(None))

    def _whole_array(self, path: tuple[str, ...]) -> ColumnArray | None:
        """Return the array of a field for all rows of the table."""
        return self._kept.part(
            ("array", self._kind, path),
            lambda: _array_of(column_of_field(self._graph, self._kept, self._kind, Field(path))),
        )

    def _agrees(self, path: tuple[str, ...]) -> bool:
        """Return whether a few sampled values of the column equal those of the live graph; if not, warn and discard the cache."""
        column = column_of_field(self._graph, self._kept, self._kind, Field(path))
        kept, size = self._kept, len(self)
        if column is None:
            return True
        kept.turn += 1
        places = (
            sorted({(kept.turn * 2_654_435_761 + at * size // _AUDITED) % size for at in range(_AUDITED)})
            if size
            else []
        )
        chosen = places if self._positions is None else [int(self._positions[at]) for at in places]
        read = readers_of(self._graph, self._kind)(Field(path)).read
        if all(column.agrees(at, read(*row)) for at, row in zip(chosen, self._table.rows(chosen), strict=True)):
            return True
        warn_stale()
        forget(self._graph)
        return False

    def mask(self, condition: Condition) -> NDArray[np.bool_] | None:
        """See ``ColumnarItems``."""
        fields = [node for node in walk(condition) if isinstance(node, Field)]
        if any(at.quantifier is not None or self.array(at.path) is None for at in fields):
            return None
        if not is_answerable(self._graph, self._kept, self._kind, condition):
            return None

        def columns(at: Field) -> Any:
            return column_of_field(self._graph, self._kept, self._kind, at)

        return mask_of(columns, condition, True, self._positions, len(self._table))

    def fields(self) -> tuple[str, ...]:
        """See ``ColumnarItems``."""
        own = reserved(self._kind, self._graph.is_multigraph())
        first = (
            ("id",) if self._kind == "nodes" else ("source", "target", "key") if "key" in own else ("source", "target")
        )
        names: dict[Any, None]
        if self._positions is None:
            names = self._kept.part(("names", self._kind), lambda: self._names(None))
        else:
            names = self._names(self._positions)
        return tuple(dict.fromkeys((*first, *(f"attr.{name}" if name in own else str(name) for name in names))))

    def first_fields(self, most: int) -> None:
        """See ``ColumnarItems``: all items are in memory."""

    def possible_fields(self) -> None:
        """See ``ColumnarItems``: all items are in memory."""

    def grouped(self, query: GroupQuery) -> None:
        """See ``ColumnarItems``: the groups are computed from the columns."""

    def grouping(self, query: GroupQuery) -> tuple[str, ...]:
        """See ``ColumnarItems``."""
        return ()

    def _names(self, positions: Any) -> dict[Any, None]:
        """Return the names of the attributes in the rows at ``positions`` (None: all rows), in the order of their first occurrence."""
        data = self._table.data
        if isinstance(data, Rows):
            return dict(data.names(positions))
        chosen = data if positions is None else map(data.__getitem__, positions.tolist())
        return dict.fromkeys(chain.from_iterable(chosen))


def _array_of(column: Any) -> ColumnArray | None:
    """Return a column as an array; None if items may show other values than the column contains."""
    ends = None
    if isinstance(column, Through):
        ends, column = column.ends, column.inner
    made: ColumnArray | None = None
    if isinstance(column, Numbers) and column.whole is not None and not np.isinf(column.values).any():
        made = NumberArray(column.values, column.whole)
    elif (
        isinstance(column, Coded)
        and not column.forms
        and all(value.__class__ in (str, bool) for value in column.values)
    ):
        made = CodeArray(column.codes, column.values, column.ranks_by_code)
    return made if made is None or ends is None else made.take(ends)
