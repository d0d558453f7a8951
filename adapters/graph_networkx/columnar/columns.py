"""Columns: what one field is in every row, as an array, so that a comparison looks at all rows at once.

A column of numbers is the numbers themselves (null is NaN). Any other column is coded: ``codes[i]`` says which of the different
values row i has, and a comparison is asked once of each different value. Texts of which most are different are searched
side by side, in one buffer. All answers are those of ``lang.evaluate``, whose tests they use.
"""

from collections.abc import Hashable, Sequence
from typing import Any, Protocol

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from ....lang.evaluate.conditions import identity
from ..rows.jsonable import plain
from .coded import Coded
from .leaves import Array, Leaf, Mask
from .numeric import Numbers, numbers_of

__all__ = ["Column", "Through", "column_of"]


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
