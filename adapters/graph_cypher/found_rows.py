"""Found nodes or edges that stay in the database: their number is known, rows and columns are fetched when they are read.

A result is left in the database only if the database selects it exactly, and does not change while it is open. The numbers of
fetched and of counted rows are compared; a difference is an error.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, overload

import numpy as np
from attrs import frozen

from ...lang.evaluate.conditions import order_key
from ...lang.evaluate.conditions.values import check
from ...lang.trees.conditions import Condition
from ...lang.unicode_forms import has_equivalents
from ..columns import Array, CodeArray, ColumnArray, GroupedItems, GroupQuery, NumberArray
from ..graph import Item
from ..graph_networkx.rows import item_value
from .column_items import ColumnItems
from .table_rows import Kind, TableRow, item_of

FIRST = 16
"""Number of rows that are fetched if only items before this index are read, such as the items that a history shows."""
_FIRST = 1_000
"""The next larger number of rows that are fetched, for the items that a record reads."""
_MOST_EXPECTED = 2_000
"""Maximum number of rows that are fetched by their places; for more, all rows are fetched."""
_EXACT = 2**53
_STEP = 8192


@frozen
class Places:
    """For each row of a selection, in the graph's own order: the index of its table in the plan, and its position there."""

    tables: Array
    offsets: Array


class Selection(Protocol):
    """The rows that a search selects. All functions raise ``AdapterError`` if their number has changed."""

    @property
    def kind(self) -> Kind:
        """Whether the rows are nodes or edges."""
        ...

    @property
    def total(self) -> int:
        """The number of rows."""
        ...

    @property
    def is_fetched(self) -> bool:
        """Whether all rows were fetched already, so that reading them runs no statement."""
        ...

    def rows(self, most: int | None) -> list[TableRow]:
        """Return the first ``most`` rows (None: all) in the graph's own order."""
        ...

    def items(self) -> ColumnItems | None:
        """Return all items in the graph's own order; None if they must be made from rows."""
        ...

    def rows_at(self, places: Places, positions: Sequence[int]) -> dict[int, TableRow]:
        """Return the rows at positions of the selection, by position."""
        ...

    def column(self, path: tuple[str, ...]) -> tuple[ColumnArray | None, Places] | None:
        """Return the values of a field in the graph's own order, with the places of the rows.

        The array is None if an array can't hold the values; the result is None if the database can't return them.
        """
        ...

    def first_fields(self, most: int) -> tuple[str, ...] | None:
        """See ``ColumnarItems``."""
        ...

    def possible_fields(self) -> frozenset[str] | None:
        """See ``ColumnarItems``."""
        ...

    def grouped(self, query: GroupQuery) -> GroupedItems | None:
        """See ``ColumnarItems``."""
        ...

    def grouping(self, query: GroupQuery) -> tuple[str, ...]:
        """See ``ColumnarItems``."""
        ...


class RowsInDatabase:
    """A result in the database. Its rows and columns are fetched when they are read."""

    def __init__(self, selection: Selection) -> None:
        self.kind: Kind = selection.kind
        self.count = selection.total
        self.selection = selection
        self._whole: list[TableRow] | None = None
        self._items: ColumnItems | None = None
        self._first: list[TableRow] = []
        self._some: dict[int, TableRow] = {}
        self._expected: set[int] = set()
        self._places: Places | None = None
        self._arrays: dict[tuple[str, ...], ColumnArray | None] = {}

    def items(self, positions: Sequence[int]) -> list[Item]:
        """Return the items at positions."""
        if positions and self._items is None and self._whole is None and self.selection.is_fetched:
            self._fetch()
        if self._items is not None:
            return self._items.at(positions)
        rows: Any = self._whole
        if rows is None and positions:
            last = max(positions)
            if last < _FIRST < self.count:
                if last >= len(self._first):
                    self._first = self.selection.rows(FIRST if last < FIRST else _FIRST)
                rows = self._first
            elif (some := self._fetched(positions)) is None:
                return self.items(positions)
            else:
                rows = some
        return [item_of(self.kind, rows[at]) for at in positions]

    def each(self) -> Iterator[Item]:
        """Yield all items."""
        if self._whole is None and self._items is None:
            self._fetch()
        if self._items is not None:
            yield from self._items
        else:
            for row in self._whole or ():
                yield item_of(self.kind, row)

    def expect(self, positions: Sequence[int]) -> None:
        """Prepare to return the items at a few positions: the first access fetches them together, and not all rows."""
        if self._whole is None and self._items is None and len(positions) <= _MOST_EXPECTED:
            if len(self._expected) > _MOST_EXPECTED:
                self._expected.clear()
            self._expected.update(map(int, positions))

    def _fetched(self, positions: Sequence[int]) -> "dict[int, TableRow] | list[TableRow] | None":
        """Return the rows at positions: the expected rows if they are few and their places are known; else all rows.

        If all items were fetched instead of rows, return None.
        """
        missing = [at for at in positions if at not in self._some]
        is_few = len(missing) <= _MOST_EXPECTED and self._expected.issuperset(missing)
        if missing and (self._places is None or not is_few):
            self._fetch()
            return self._whole
        if missing and self._places is not None:
            wanted = [
                *missing,
                *(self._expected.difference(self._some, missing) if len(missing) < _MOST_EXPECTED else ()),
            ]
            self._some |= self.selection.rows_at(self._places, wanted[:_MOST_EXPECTED])
            self._expected.clear()
        return self._some

    def _fetch(self) -> None:
        """Fetch all items, or all rows if the items must be made from them."""
        self._items = self.selection.items()
        if self._items is None:
            self._whole = self.selection.rows(None)
        self._some.clear()

    def array(self, path: tuple[str, ...]) -> ColumnArray | None:
        """Return the values of a field of all rows as an array; None if the database or an array can't supply them."""
        if path not in self._arrays:
            found = self.selection.column(path)
            self._arrays[path] = None if found is None else found[0]
            if found is not None:
                self._places = found[1]
        return self._arrays[path]


class FoundInDatabase(Sequence[Item]):
    """The items at ``positions`` of a result (None: all). See ``ColumnarItems``."""

    def __init__(self, result: RowsInDatabase, positions: Any = None) -> None:
        self._result = result
        self._positions = positions

    def __len__(self) -> int:
        return self._result.count if self._positions is None else len(self._positions)

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> list[Item]: ...
    def __getitem__(self, at: int | slice) -> Item | list[Item]:
        chosen = range(len(self))[at]  # raises IndexError
        if isinstance(chosen, int):
            return self._result.items([chosen if self._positions is None else int(self._positions[chosen])])[0]
        return self._result.items(list(chosen) if self._positions is None else self._positions[at].tolist())

    def __iter__(self) -> Iterator[Item]:
        if self._positions is not None and len(self._positions) <= _MOST_EXPECTED:
            yield from self._result.items(self._positions.tolist())
            return
        if self._positions is None:
            yield from self._result.each()
            return
        for start in range(0, len(self), _STEP):
            yield from self._result.items(self._positions[start : start + _STEP].tolist())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence) and not isinstance(other, str):
            return len(self) == len(other) and all(mine == its for mine, its in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # unhashable, like a list

    def take(self, positions: Any) -> "FoundInDatabase":
        """See ``ColumnarItems``."""
        chosen = _array_of_positions(positions)
        taken = FoundInDatabase(self._result, chosen if self._positions is None else self._positions[chosen])
        if len(taken) <= _MOST_EXPECTED:
            self._result.expect(taken._positions.tolist())
        return taken

    def expect(self, positions: Sequence[int]) -> None:
        """See ``ColumnarItems``."""
        chosen = np.asarray(positions, np.int64)
        self._result.expect((chosen if self._positions is None else self._positions[chosen]).tolist())

    def array(self, path: tuple[str, ...]) -> ColumnArray | None:
        """See ``ColumnarItems``."""
        whole = self._result.array(path)
        return whole if whole is None or self._positions is None else whole.take(self._positions)

    def values(self, path: tuple[str, ...]) -> list[Any] | None:
        """See ``ColumnarItems``."""
        array = self.array(path)
        return None if array is None else array.listed()

    def mask(self, condition: Condition) -> None:
        """See ``ColumnarItems``: conditions on found rows are evaluated on their items."""
        return

    def fields(self) -> tuple[str, ...]:
        """See ``ColumnarItems``."""
        if (known := self.first_fields(len(self))) is not None:
            return known
        names: dict[str, None] = {}
        for item in self:
            names.update(dict.fromkeys(item))
        return tuple(names)

    def first_fields(self, most: int) -> tuple[str, ...] | None:
        """See ``ColumnarItems``."""
        return self._result.selection.first_fields(most) if self._positions is None else None

    def possible_fields(self) -> frozenset[str] | None:
        """See ``ColumnarItems``."""
        return self._result.selection.possible_fields()

    def grouped(self, query: GroupQuery) -> GroupedItems | None:
        """See ``ColumnarItems``."""
        return self._result.selection.grouped(query) if self._positions is None else None

    def grouping(self, query: GroupQuery) -> tuple[str, ...]:
        """See ``ColumnarItems``."""
        return self._result.selection.grouping(query) if self._positions is None else ()


def _array_of_positions(positions: Any) -> Array:
    """Return positions as an array. NumPy would read a range element by element."""
    if isinstance(positions, range):
        return np.arange(positions.start, positions.stop, positions.step, dtype=np.int64)
    return np.asarray(positions, np.int64)


def array_of(values: list[Any]) -> ColumnArray | None:
    """Return values as an array; None if an array can't hold them: mixed types, infinities, large integers, lists, objects."""
    check()
    kinds = set(map(type, values)) - {type(None)}
    if kinds <= {str, bool} and kinds:
        codes: dict[Any, int] = {}
        made = np.fromiter(
            (0 if value is None else codes.setdefault((type(value), value), len(codes) + 1) for value in values),
            np.int32,
            len(values),
        )
        distinct = [value for _, value in codes]
        return code_array(made, distinct)
    if kinds == {int} and all(value is None or abs(value) < _EXACT for value in values):
        return NumberArray(_floats(values), True)
    if kinds == {float}:
        floats = _floats(values)
        return None if np.isinf(floats).any() else NumberArray(floats, False)
    return None


def code_array(codes: Any, distinct: Sequence[Any]) -> CodeArray | None:
    """Return strings or booleans as an array; code 0 means null. Return None if two strings are canonically equivalent."""
    if has_equivalents([value for value in distinct if isinstance(value, str)]):
        return None
    return CodeArray(codes, distinct, lambda descending: _ranks(distinct, descending))


def _floats(values: list[Any]) -> Any:
    return np.fromiter((np.nan if value is None else value for value in values), np.float64, len(values))


def _ranks(distinct: Sequence[Any], descending: bool) -> Any:
    """Return, for each code, the rank of its value; NaN for code 0, which means null."""
    ranks = np.full(len(distinct) + 1, np.nan)
    order = sorted(range(len(distinct)), key=lambda at: order_key(distinct[at], descending))
    ranks[np.array(order, np.int64) + 1] = np.arange(len(distinct))
    return ranks


def shown(value: Any) -> Any:
    """Return a value of a column in the form in which items show it."""
    made = item_value(value)
    return None if made != made else made
