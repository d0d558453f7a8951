"""Relations, which store the rows of a variable as columns. An item is built when it is read.

``FoundRows`` are nodes or edges as positions in the graph, ``ColumnRows`` have computed columns, ``JoinedRows`` are pairs of
items, and ``UnnestedRows`` are items with one field replaced.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from sys import getsizeof
from typing import TYPE_CHECKING, Any, overload

from ...lang.evaluate.conditions import dotted, look_up
from ...lang.evaluate.conditions.values import hold
from ...lang.trees.conditions import Condition
from .column_cells import LARGE, Cells, Path, Pick, array_picker, blocks_of, picker

if TYPE_CHECKING:
    from ...adapters.columns import Array, ColumnarItems, ColumnArray, GroupedItems, GroupQuery


class Relation(Sequence[Any]):
    """A sequence of items, each built when it is accessed. ``items`` builds all items once and caches them."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: list[Any] | None = None

    @property
    def items(self) -> list[Any]:
        """All items as a list."""
        if self._items is None:
            made: list[Any] = []
            for at in blocks_of(len(self)):
                some = self.block(at)
                hold(len(some) * (8 + getsizeof(some[0])))  # the values are shared, so not counted
                made += some
            self._items = made
        return self._items

    def block(self, at: slice) -> list[Any]:
        """Build the items at a slice."""
        return self._items[at] if self._items is not None else [self.item(index) for index in range(len(self))[at]]

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def item(self, at: int) -> Any:
        """Build the item at an index from 0."""

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> list[Any]: ...
    def __getitem__(self, at: int | slice) -> Any:
        if self._items is not None:
            return self._items[at]
        if isinstance(at, slice):
            return self.block(at)
        if not -len(self) <= at < len(self):
            raise IndexError("item index out of range")
        return self.item(at % len(self))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items) if self._items is not None else map(self.item, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, Sequence) and not isinstance(other, str):
            return len(self) == len(other) and all(mine == its for mine, its in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # not hashable, like a list

    def __repr__(self) -> str:
        return f"<{len(self):,} items>"

    @abstractmethod
    def take(self, positions: Any) -> "Relation":
        """Return the rows at ``positions``, an array or a sequence of indices, in that order."""

    def expect(self, positions: Sequence[int]) -> None:
        """Prepare for reading the items at ``positions``; a relation that fetches its items fetches these together."""

    @abstractmethod
    def values(self, path: Path) -> list[Any] | None:
        """Return the field's value in each row, with None for null. Return None if the values can only be read from the items."""

    def reader(self, path: Path) -> Pick | None:
        """Return the ``Pick`` that reads a field's values; None if ``values`` returns None."""
        array = self.array(path) if len(self) > LARGE else None
        if array is not None:
            return array_picker(array)
        values = self.values(path)
        return None if values is None else picker(values)

    @abstractmethod
    def fields(self) -> tuple[str, ...] | None:
        """Return the fields of all items, in order of first occurrence. Return None if an item is not an object."""

    def array(self, path: Path) -> "ColumnArray | None":
        """Return the values of a field as an array; None if there is no such array."""
        return None

    def mask(self, condition: Condition) -> Any:
        """Return a boolean array: whether the condition is true for each row. Return None if columns can't evaluate the condition."""
        return None


def head_of(value: Any, most: int) -> Any:
    """Return the first ``most`` items of a longer list or relation. Return any other value unchanged."""
    if isinstance(value, Relation):
        return value.take(range(most)) if len(value) > most else value
    return value[:most] if isinstance(value, list) and len(value) > most else value


def plain_of(value: Any) -> Any:
    """Return the items of a relation as a list. Return any other value unchanged."""
    return value.items if isinstance(value, Relation) else value


class FoundRows(Relation):
    """Nodes or edges of the graph."""

    __slots__ = ("_found",)

    def __init__(self, found: "ColumnarItems") -> None:
        super().__init__()
        self._found = found

    def __len__(self) -> int:
        return len(self._found)

    def item(self, at: int) -> Any:
        """See ``Relation``."""
        return self._found[at]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items if self._items is not None else self._found)

    def block(self, at: slice) -> list[Any]:
        """See ``Relation``."""
        return self._items[at] if self._items is not None else self._found[at]

    def take(self, positions: Any) -> "FoundRows":
        """See ``Relation``."""
        return FoundRows(self._found.take(positions))

    def expect(self, positions: Sequence[int]) -> None:
        """See ``Relation``."""
        if self._items is None:
            self._found.expect(positions)

    def values(self, path: Path) -> list[Any] | None:
        """See ``Relation``."""
        return self._found.values(path)

    def array(self, path: Path) -> "ColumnArray | None":
        """See ``Relation``."""
        return self._found.array(path)

    def mask(self, condition: Condition) -> Any:
        """See ``Relation``."""
        return self._found.mask(condition)

    def fields(self) -> tuple[str, ...]:
        """See ``Relation``."""
        return self._found.fields()

    def first_fields(self, most: int) -> tuple[str, ...] | None:
        """See ``ColumnarItems.first_fields``."""
        return None if self._items is not None else self._found.first_fields(most)

    def possible_fields(self) -> frozenset[str] | None:
        """See ``ColumnarItems.possible_fields``."""
        return self._found.possible_fields()

    def grouped(self, query: "GroupQuery") -> "GroupedItems | None":
        """See ``ColumnarItems.grouped``."""
        return None if self._items is not None else self._found.grouped(query)

    def grouping(self, query: "GroupQuery") -> tuple[str, ...]:
        """See ``ColumnarItems.grouping``."""
        return () if self._items is not None else self._found.grouping(query)


class ColumnRows(Relation):
    """Objects with one field for each column."""

    __slots__ = ("_columns", "_length")

    def __init__(self, columns: Mapping[str, Sequence[Any]], length: int) -> None:
        super().__init__()
        self._columns = columns
        self._length = length

    def __len__(self) -> int:
        return self._length

    def item(self, at: int) -> Any:
        """See ``Relation``."""
        return {name: column[at] for name, column in self._columns.items()}

    def __iter__(self) -> Iterator[Any]:
        if self._items is not None:
            return iter(self._items)
        names = tuple(self._columns)
        return (dict(zip(names, row, strict=True)) for row in zip(*self._columns.values(), strict=True))

    def block(self, at: slice) -> list[Any]:
        """See ``Relation``."""
        if self._items is not None:
            return self._items[at]
        if not self._columns:
            return [{} for _ in range(self._length)[at]]
        names = tuple(self._columns)
        rows = zip(*(column[at] for column in self._columns.values()), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def take(self, positions: Any) -> "ColumnRows":
        """See ``Relation``."""
        columns: dict[str, Sequence[Any]] = {}
        for name, column in self._columns.items():
            columns[name] = column.take(positions) if isinstance(column, Cells) else _taken(column, positions)
        return ColumnRows(columns, len(positions))

    def array(self, path: Path) -> "ColumnArray | None":
        """See ``Relation``."""
        column = self._columns.get(".".join(path))
        return column.array if isinstance(column, Cells) else None

    def values(self, path: Path) -> list[Any] | None:
        """See ``Relation``."""
        for name, rest in dotted(path):
            if name in self._columns:
                return _values_in(self._columns[name], tuple(rest)) if rest else list(self._columns[name])
        return None

    def fields(self) -> tuple[str, ...]:
        """See ``Relation``."""
        return tuple(self._columns)


class JoinedRows(Relation):
    """Pairs of an item of ``left`` and an item of ``right``. In a LEFT JOIN, the right item may be missing.

    ``left_at`` and ``right_at`` are arrays of positions; -1 means that the right item is missing. A row has the fields of the left
    item, with null for each name in ``own`` that the item lacks. Next come the fields of the right item, with their new names from
    ``renamed``, or the complete right item in the field ``nested``. Last comes one value of each column in ``more``.
    """

    __slots__ = ("_left", "_left_at", "_more", "_nested", "_own", "_renamed", "_right", "_right_at")

    def __init__(
        self,
        left: Sequence[Any],
        right: Sequence[Any],
        left_at: "Array",
        right_at: "Array",
        own: Sequence[str],
        renamed: Mapping[str, str],
        nested: str | None,
        more: "Mapping[str, Array]",
    ) -> None:
        super().__init__()
        self._left, self._right = left, right
        self._left_at, self._right_at = left_at, right_at
        self._own, self._renamed, self._nested, self._more = own, renamed, nested, more

    def __len__(self) -> int:
        return len(self._left_at)

    def item(self, at: int) -> Any:
        """See ``Relation``."""
        made = dict(self._left[int(self._left_at[at])])
        if len(made) < len(self._own):
            for name in self._own:
                made.setdefault(name, None)
        place = int(self._right_at[at])
        right = None if place < 0 else self._right[place]
        if self._nested is not None:
            made[self._nested] = right
        elif isinstance(right, dict):
            for name, into in self._renamed.items():
                made[into] = right.get(name)
        else:
            made.update(dict.fromkeys(self._renamed.values()))
        for name, column in self._more.items():
            made[name] = column[at].item()
        return made

    def take(self, positions: Any) -> "JoinedRows":
        """See ``Relation``."""
        import numpy as np  # imported late: reading a program needs no arrays

        chosen = np.asarray(positions, np.int64)
        return JoinedRows(
            self._left, self._right, self._left_at[chosen], self._right_at[chosen], self._own, self._renamed, self._nested,
            {name: column[chosen] for name, column in self._more.items()},
        )  # fmt: skip

    def values(self, path: Path) -> list[Any] | None:
        """See ``Relation``."""
        return _read(self.reader(path), len(self))

    def reader(self, path: Path) -> Pick | None:
        """See ``Relation``."""
        whole = ".".join(path)
        if whole in self._more:
            column = self._more[whole]
            return lambda at: column[at].tolist()
        found = self._source(path)
        if found is None:
            return None
        source, inner, positions = found
        return _composed(reader_of(source, inner), positions)

    def array(self, path: Path) -> "ColumnArray | None":
        """See ``Relation``."""
        found = None if ".".join(path) in self._more else self._source(path)
        return None if found is None else _array_at(*found)

    def _source(self, path: Path) -> "tuple[Sequence[Any], Path, Array] | None":
        """Return the side with a field, the field's path in its items, and the items' positions; None if no side has it."""
        sources = {into: name for name, into in self._renamed.items()}
        for name, rest in dotted(path):
            if name in sources:
                return self._right, (sources[name], *rest), self._right_at
            if name == self._nested:
                return (self._right, tuple(rest), self._right_at) if rest else None
            if name in self._own:
                return self._left, (name, *rest), self._left_at
        return None

    def fields(self) -> tuple[str, ...]:
        """See ``Relation``."""
        nested = () if self._nested is None else (self._nested,)
        return (*self._own, *self._renamed.values(), *nested, *self._more)


class UnnestedRows(Relation):
    """The items of ``source`` at the positions ``at``; the field ``name`` of each item is replaced by an element of ``elements``."""

    __slots__ = ("_at", "_elements", "_name", "_source")

    def __init__(self, source: Sequence[Any], at: "Array", elements: Sequence[Any], name: str) -> None:
        super().__init__()
        self._source, self._at, self._elements, self._name = source, at, elements, name

    def __len__(self) -> int:
        return len(self._at)

    def item(self, at: int) -> Any:
        """See ``Relation``."""
        return {**self._source[int(self._at[at])], self._name: self._elements[at]}

    def take(self, positions: Any) -> "UnnestedRows":
        """See ``Relation``."""
        import numpy as np

        chosen = np.asarray(positions, np.int64)
        return UnnestedRows(self._source, self._at[chosen], _taken(self._elements, chosen), self._name)

    def values(self, path: Path) -> list[Any] | None:
        """See ``Relation``."""
        return _read(self.reader(path), len(self))

    def reader(self, path: Path) -> Pick | None:
        """See ``Relation``."""
        whole = ".".join(path)
        if self._name == whole:
            return picker(self._elements)
        if self._name == path[0]:
            if whole in (fields_of_items(self._source) or ()):
                return None  # a field with the dotted name has priority over a field of the element
            values = _values_in(self._elements, path[1:])
            return None if values is None else picker(values)
        return _composed(reader_of(self._source, path), self._at)

    def array(self, path: Path) -> "ColumnArray | None":
        """See ``Relation``."""
        return None if self._name in (".".join(path), path[0]) else _array_at(self._source, path, self._at)

    def fields(self) -> tuple[str, ...] | None:
        """See ``Relation``."""
        import numpy as np

        source = self._source
        kept, first = np.unique(self._at, return_index=True)
        chosen = kept[np.argsort(first)].tolist()
        names = fields_of_items(source.take(chosen) if isinstance(source, Relation) else [source[at] for at in chosen])
        return None if names is None else tuple(dict.fromkeys((*names, self._name)))


def values_of(items: Sequence[Any], path: Path) -> list[Any] | None:
    """Return the value of a field in each item, with None for null. Return None if all values are null or the items must be read."""
    if isinstance(items, Relation):
        return items.values(path)
    if len(path) == 1:
        found = [item.get(path[0]) if isinstance(item, dict) else None for item in items]
        return found if any(value is not None for value in found) else None
    return _values_in(items, path)


def reader_of(items: Sequence[Any], path: Path) -> Pick | None:
    """Return the ``Pick`` that reads a field's values in the items; None if ``values_of`` returns None."""
    if isinstance(items, Relation):
        return items.reader(path)
    values = values_of(items, path)
    return None if values is None else picker(values)


def _read(pick: Pick | None, size: int) -> list[Any] | None:
    """Return all values that ``pick`` reads, or None if ``pick`` is None."""
    if pick is None:
        return None
    made: list[Any] = []
    for at in blocks_of(size):
        made += pick(at)
    return made


def _composed(pick: Pick | None, positions: "Array") -> Pick | None:
    """Return a ``Pick`` that reads the values of ``pick`` at ``positions``, with None for a negative position."""
    if pick is None:
        return None
    if not len(positions) or int(positions.min()) >= 0:
        return lambda at: pick(positions[at])

    def read(at: Any) -> list[Any]:
        places = positions[at]
        there = places >= 0
        values = iter(pick(places[there]))
        return [next(values) if found else None for found in there.tolist()]

    return read


def _array_at(source: Sequence[Any], path: Path, positions: "Array") -> "ColumnArray | None":
    """Return the array of a field at ``positions`` of a relation, with null for a negative position; None if it has no array."""
    array = source.array(path) if isinstance(source, Relation) else None
    if array is None or not len(array):
        return None
    return array.take(positions) if not len(positions) or int(positions.min()) >= 0 else array.take_or_null(positions)


def _taken(values: Sequence[Any], positions: Any) -> list[Any]:
    """Return the values at ``positions``, an array or a sequence of indices."""
    if not hasattr(positions, "tolist"):
        return [values[at] for at in positions]
    made: list[Any] = []
    for at in blocks_of(len(positions)):
        made += [values[place] for place in positions[at].tolist()]
    return made


def _values_in(values: Sequence[Any], path: Path) -> list[Any] | None:
    """Return the value at ``path`` in each of ``values``, with None for null. Return None if all results are null."""
    found = [None if value is None else look_up(value, path) for value in values]
    return found if any(value is not None for value in found) else None


def fields_of_items(items: Sequence[Any]) -> tuple[str, ...] | None:
    """Return the fields of all items, in order of first occurrence. Return None if an item is not an object or ``items`` is empty."""
    if isinstance(items, Relation):
        return items.fields() if len(items) else None
    found: dict[str, None] = {}
    for item in items:
        if not isinstance(item, dict):
            return None
        if found.keys() != item.keys():
            found.update(dict.fromkeys(item))
    return tuple(found) if items else None
