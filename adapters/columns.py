"""Columns of found items. A column contains the values of one field of many items as an array; the items need not be built."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias, overload, runtime_checkable

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from ..lang.trees.conditions import Condition

Array: TypeAlias = NDArray[Any]


@frozen(eq=False)
class NumberArray:
    """Numbers as floats, NaN for null. If ``whole``, all are integers that floats represent exactly; else all are floats."""

    values: NDArray[np.float64]
    whole: bool

    def __len__(self) -> int:
        return len(self.values)

    @property
    def has_values(self) -> bool:
        """Whether a value is not null."""
        return not bool(np.isnan(self.values).all())

    def take(self, positions: Array) -> "NumberArray":
        """Return the values at ``positions``."""
        return NumberArray(self.values[positions], self.whole)

    def take_or_null(self, positions: Array) -> "NumberArray":
        """Return the values at ``positions``, with null at negative positions."""
        values = self.values[positions]
        values[positions < 0] = np.nan
        return NumberArray(values, self.whole)

    def listed(self) -> list[Any]:
        """Return the numbers as Python numbers, with None for null."""
        null = np.isnan(self.values)
        if not null.any():
            return (self.values.astype(np.int64) if self.whole else self.values).tolist()  # type: ignore[no-any-return]
        made = (np.where(null, 0, self.values).astype(np.int64) if self.whole else self.values).astype(object)
        made[null] = None
        return made.tolist()  # type: ignore[no-any-return]

    def ranks(self, descending: bool = False) -> NDArray[np.float64]:
        """Return numbers that sort like the values; NaN for null."""
        return self.values


@frozen(eq=False)
class CodeArray:
    """Strings and booleans, stored as codes: code 0 means null, any other code means ``values[code - 1]``.

    The values are distinct; no two texts are canonically equivalent. ``order`` returns the sort rank of each code's value in a descending
    order, if its argument is true, or in an ascending order; NaN for null.
    """

    codes: Array
    values: Sequence[Any]
    order: Callable[[bool], NDArray[np.float64]]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def has_values(self) -> bool:
        """Whether a value is not null."""
        return bool(self.codes.any())

    def take(self, positions: Array) -> "CodeArray":
        """Return the values at ``positions``."""
        return CodeArray(self.codes[positions], self.values, self.order)

    def take_or_null(self, positions: Array) -> "CodeArray":
        """Return the values at ``positions``, with null at negative positions."""
        codes = self.codes[positions]
        codes[positions < 0] = 0
        return CodeArray(codes, self.values, self.order)

    def listed(self) -> list[Any]:
        """Return the values, with None for null."""
        table = [None, *self.values]
        return [table[code] for code in self.codes.tolist()]

    def ranks(self, descending: bool = False) -> NDArray[np.float64]:
        """Return numbers that sort like the values, in a descending order if ``descending`` is true; NaN for null."""
        return self.order(descending)[self.codes]


ColumnArray: TypeAlias = NumberArray | CodeArray


@frozen
class GroupQuery:
    """A query for groups of items: the fields whose values make the groups, and the computations for each group.

    A computation is a function of AGGREGATE and the field to which it is applied; the field is None for ``count()``. Without
    fields in ``by``, all items are one group.
    """

    by: tuple[tuple[str, ...], ...]
    computed: tuple[tuple[str, tuple[str, ...] | None], ...] = ()


@frozen(eq=False)
class GroupedItems:
    """The groups of items, in the order of the first item of each group.

    ``keys`` are the values of the fields, ``sizes`` the numbers of items. ``computed`` has a list for each computation with a
    value for each group; ``nulls`` has the number of nulls that each computation ignores. ``used`` describes how the groups were computed.
    """

    keys: Sequence[tuple[Any, ...]]
    sizes: Sequence[int]
    computed: Sequence[Sequence[Any]]
    nulls: Sequence[int]
    used: str


@runtime_checkable
class ColumnarItems(Protocol):
    """Found nodes or edges as positions in the graph's columns: a sequence of items that are built on access.

    The fields are the items' own fields and the computed fields: the degrees of a node, ``source.x`` and ``target.x`` of an
    edge.
    """

    def __len__(self) -> int:
        """Return the number of items."""
        ...

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, at: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        """Return the item at an index, or a list of the items in a slice."""
        ...

    def take(self, positions: Any) -> "ColumnarItems":
        """Return the items at ``positions``, an array or a sequence of indices, in that order."""
        ...

    def expect(self, positions: Sequence[int]) -> None:
        """Prepare for reading the items at ``positions``, so that an engine fetches them together."""
        ...

    def array(self, path: tuple[str, ...]) -> ColumnArray | None:
        """Return the values of a field as an array; None if their types are mixed, or if the column can't supply them."""
        ...

    def values(self, path: tuple[str, ...]) -> list[Any] | None:
        """Return the values of a field, with None for null. Return None if the column can't supply them."""
        ...

    def mask(self, condition: Condition) -> NDArray[np.bool_] | None:
        """Return for each item whether the condition is true; None if the columns can't evaluate it."""
        ...

    def fields(self) -> tuple[str, ...]:
        """Return the fields of all items, in order of first occurrence, without computed fields."""
        ...

    def first_fields(self, most: int) -> tuple[str, ...] | None:
        """Return the fields of the first ``most`` items as ``fields`` does; None unless they are known without reading items."""
        ...

    def possible_fields(self) -> frozenset[str] | None:
        """Return all fields that an item may have; None unless they are known without reading items."""
        ...

    def grouped(self, query: GroupQuery) -> GroupedItems | None:
        """Return the groups of the items if the engine computes them without reading the items; else None."""
        ...

    def grouping(self, query: GroupQuery) -> tuple[str, ...]:
        """Return the statements that ``grouped`` would run, for EXPLAIN; empty if the engine does not compute the groups."""
        ...


def ascending(keys: Iterable[tuple[NDArray[np.float64], bool]], most: int | None = None) -> Array:
    """Return the first ``most`` positions, sorted by ``keys``, the first key first; positions with equal keys keep their order.

    A key is a pair: the ranks of the values (NaN for null), and whether the order is descending. Null is last in both directions.
    """
    signed = [-ranks if descending else ranks for ranks, descending in keys]
    size = len(signed[0])
    among: Array | None = None
    if most is not None and 0 < most < size // 4:
        last = np.partition(signed[0], most - 1)[most - 1]  # NaN is last here too
        if last == last:
            among = np.flatnonzero(signed[0] <= last)
            signed = [key[among] for key in signed]
    order = np.lexsort(signed[::-1])  # lexsort's last key is the primary key
    if most is not None:
        order = order[:most]
    return order if among is None else among[order]
