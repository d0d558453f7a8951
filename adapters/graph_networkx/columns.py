"""Columns: what one field is in every row, as an array, so that a comparison looks at all rows at once.

A column of numbers is the numbers themselves (null is NaN). Any other column is coded: ``codes[i]`` says which of the different
values row i has, and a comparison is asked once of each different value. Texts of which most are different are searched
side by side, in one buffer. All answers are those of ``lang.evaluate``, whose tests they use.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from ...lang.evaluate.conditions import Bound, identity
from ...lang.evaluate.conditions.interpreter import leaf_test
from ...lang.trees.conditions import And, Comparison, Condition, Field, Not, NullTest
from .column_types import Array, Coded, Leaf, Mask, Numbers, numbers_of
from .json_values import plain

__all__ = ["Column", "Through", "column_of", "mask_of"]


class Column(Protocol):
    """One field of all rows. ``at`` are positions of rows; None is all rows."""

    def mask(self, leaf: Leaf, wanted: bool, at: Array | None) -> Mask | None:
        """Return for each row whether ``leaf`` is ``wanted`` (true or false); None where the column can't say."""
        ...

    def count(self, leaf: Leaf) -> int | None:
        """Return for how many rows an index finds ``leaf`` true, exactly; None where no index can."""
        ...

    def positions(self, leaf: Leaf) -> Array:
        """Return the rows for which ``leaf`` is true, rising, by the index that ``count`` spoke of."""
        ...

    def ranks(self, at: Array) -> NDArray[np.float64]:
        """Return numbers in the order of the rows' values; NaN for null."""
        ...

    def agrees(self, at: int, value: Any) -> bool:
        """Say whether row ``at`` has ``value`` (what the live graph has) here."""
        ...


@frozen(eq=False)
class Through:
    """A field of the node at one end of each edge: ``inner`` is the nodes' column, ``ends[i]`` the node of edge i."""

    inner: Column
    ends: Array
    _index: list[tuple[Array, Array]] = field(factory=list)

    def mask(self, leaf: Leaf, wanted: bool, at: Array | None) -> Mask | None:
        """See ``Column``."""
        if at is not None:
            return self.inner.mask(leaf, wanted, self.ends[at])
        mask = self.inner.mask(leaf, wanted, None)
        return None if mask is None else mask[self.ends]

    def _by_node(self) -> tuple[Array, Array]:
        if not self._index:
            order = np.argsort(self.ends, kind="stable").astype(np.int32)
            counts = np.bincount(self.ends)
            self._index.append((order, np.concatenate([[0], np.cumsum(counts)])))
        return self._index[0]

    def _nodes(self, leaf: Leaf) -> Array:
        nodes, known = self.inner.positions(leaf), len(self._by_node()[1]) - 1
        return nodes[nodes < known]

    def count(self, leaf: Leaf) -> int | None:
        """See ``Column``."""
        many = self.inner.count(leaf)
        if many is None:
            return None
        if many > len(self.ends):
            return len(self.ends)
        first, nodes = self._by_node()[1], self._nodes(leaf)
        return int((first[nodes + 1] - first[nodes]).sum())

    def positions(self, leaf: Leaf) -> Array:
        """See ``Column``."""
        order, first = self._by_node()
        nodes = self._nodes(leaf)
        counts = first[nodes + 1] - first[nodes]
        owner = np.repeat(np.arange(len(nodes)), counts)
        return np.sort(order[np.arange(len(owner)) + (first[nodes] - np.cumsum(counts) + counts)[owner]])

    def ranks(self, at: Array) -> NDArray[np.float64]:
        """See ``Column``."""
        return self.inner.ranks(self.ends[at])

    def agrees(self, at: int, value: Any) -> bool:
        """See ``Column``."""
        return self.inner.agrees(int(self.ends[at]), value)


def column_of(raw: Sequence[Any]) -> Column:
    """Return the column of ``raw``, the live values of all rows, None where there is none.

    Raises ``AdapterError`` or ``ConditionError`` for a value that nests too deep to be compared.
    """
    kinds = set(map(type, raw))
    if kinds <= {int, float, type(None)} and kinds & {int, float}:
        numbers = numbers_of(raw, int in kinds)
        if numbers is not None:
            return Numbers(numbers)
    if kinds <= {str, type(None)}:
        values = [value for value in dict.fromkeys(raw) if value is not None]
        known: dict[Hashable, int] = dict(zip(values, range(1, len(values) + 1), strict=True))
        codes: Any = map({**known, None: 0}.__getitem__, raw)
        return Coded(np.fromiter(codes, _width(len(values)), len(raw)), values, known, True)
    known, values, coded = {}, [], []
    for each in raw:
        value = plain(each)
        key = identity(value)
        code = 0 if key is None else known.setdefault(key, len(known) + 1)
        if code > len(values):
            values.append(value)
        coded.append(code)
    return Coded(np.array(coded, _width(len(values))), values, known, all(isinstance(value, str) for value in values))


def _width(many: int) -> type[np.unsignedinteger[Any]]:
    return np.uint8 if many < 255 else np.uint16 if many < 65_535 else np.uint32


# A condition over columns: which of many rows satisfy it, at once. As in the generated code, NOT asks for what is false.


Columns = Callable[[Field], Column | None]


def mask_of(columns: Columns, condition: Condition, wanted: bool, at: Array | None, rows: int) -> Mask | None:
    """Return for each row at ``at`` (None: all ``rows``) whether ``condition`` is ``wanted``; None where a column can't say."""
    if isinstance(condition, Not):
        return mask_of(columns, condition.operand, not wanted, at, rows)
    if isinstance(condition, Comparison | NullTest):
        left: Any = condition.left
        if isinstance(left, Bound):
            return np.full(rows if at is None else len(at), leaf_test(condition)(left.value) is wanted, np.bool_)
        column = columns(left)
        return None if column is None else column.mask(condition, wanted, at)
    # One by one into the first: as many masks as operands would not fit into memory.
    joined: Mask | None = None
    join = np.bitwise_and if isinstance(condition, And) is wanted else np.bitwise_or
    for operand in condition.operands:
        mask = mask_of(columns, operand, wanted, at, rows)
        if mask is None:
            return None
        joined = mask if joined is None else join(joined, mask, out=joined)
    return joined
