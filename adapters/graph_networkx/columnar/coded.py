"""A column of any values by number, so that a comparison is asked once of each different value."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from attrs import define
from numpy.typing import NDArray

from ....lang.conditions import Comparison, NullTest
from ....lang.evaluate.conditions import identity, sort_key
from ....lang.evaluate.conditions.comparing import is_of_empty_list
from ....lang.evaluate.conditions.interpreter import leaf_test
from ..rows.jsonable import plain
from .leaves import Array, Leaf, Mask, holds_null, right_of
from .textsearch import TextSearch

__all__ = ["Coded"]

_FEW_VALUES = 4096
"""So many different texts are asked one by one; more lie in a buffer."""
_FEW_ROWS = 50
"""One row in so many is few: they are gathered, not looked up in a table."""


@define(eq=False)
class Coded:
    """Values of any kind by number: 0 is null, ``code`` is ``values[code - 1]``. ``known`` gives the code of an identity."""

    codes: Array
    values: list[Any]
    known: dict[Hashable, int]
    text: bool
    _counts: Array | None = None
    _index: tuple[Array, Array] | None = None
    _ranks: NDArray[np.float64] | None = None
    _search: TextSearch | None = None
    _fit: bool | None = None

    def mask(self, leaf: Leaf, wanted: bool, at: Array | None) -> Mask | None:
        """See ``Column``."""
        codes = self.codes if at is None else self.codes[at]
        few, holds = self._equal(leaf)
        if few is not None and holds is wanted and len(few) <= 2:
            mask = np.zeros(len(codes), np.bool_)
            for code in few:
                mask |= codes == code
            return mask
        if at is None and wanted and self._searchable(leaf):
            return self._searched(leaf)
        if at is not None and len(at) < len(self.values) and few is None and not self._searchable(leaf):
            test, values = leaf_test(leaf), self.values
            return np.array([test(values[code - 1] if code else None) is wanted for code in codes.tolist()], np.bool_)
        return self._table(leaf, wanted)[codes]

    def _equal(self, leaf: Leaf) -> tuple[list[int] | None, bool]:
        """Return the codes of the values that equal what is at the right, and whether ``leaf`` is true or false of them.

        None for a leaf that is no equality.
        """
        if isinstance(leaf, NullTest):
            return [0], not leaf.negated
        right, operator = right_of(leaf), leaf.operator
        if operator in ("=", "!=") and plain(right) is not None:
            wanted = [right]
        elif operator in ("IN", "NOT IN") and isinstance(right, tuple | list):
            wanted = [value for value in right if plain(value) is not None]
        else:
            return None, False
        codes = {self.known.get(identity(value)) for value in wanted}
        return sorted(code for code in codes if code is not None), operator in ("=", "IN")

    def _table(self, leaf: Leaf, wanted: bool) -> Mask:
        """Return for each code whether ``leaf`` is ``wanted`` of its value."""
        table = np.zeros(len(self.values) + 1, np.bool_)
        few, holds = self._equal(leaf)
        if few is not None:
            if holds is wanted:
                table[few] = True
            elif isinstance(leaf, NullTest) or leaf.operator in ("=", "!=") or not holds_null(right_of(leaf)):
                knows_null = not isinstance(leaf, Comparison) or is_of_empty_list(leaf)
                table[not knows_null :] = True
                table[few] = False
            return table
        test = leaf_test(leaf)
        table[0] = test(None) is wanted
        if self._searchable(leaf):
            found = self._texts(leaf)
            if wanted:
                table[found + 1] = True
            else:
                table[1:] = True
                table[found + 1] = False
        else:
            table[1:] = [test(value) is wanted for value in self.values]
        return table

    def _texts(self, leaf: Leaf) -> Array:
        """Return the places of the values in which a text is found."""
        if self._search is None:
            self._search = TextSearch.of(self.values)
        assert isinstance(leaf, Comparison)  # noqa: S101  # searchable
        return self._search.find(leaf.operator, right_of(leaf))

    def _searched(self, leaf: Leaf) -> Mask:
        """Return for each row whether a text is found in it; few rows are gathered by the index."""
        codes = self._texts(leaf) + 1
        mask: Mask = np.zeros(len(self.codes), np.bool_)
        if int(self._counted()[codes].sum()) * _FEW_ROWS < len(mask):
            mask[self._gathered(codes.tolist())] = True
            return mask
        table = np.zeros(len(self.values) + 1, np.bool_)
        table[codes] = True
        return table[self.codes]

    def _searchable(self, leaf: Leaf) -> bool:
        return (
            self.text
            and isinstance(leaf, Comparison)
            and leaf.operator in ("CONTAINS", "STARTS_WITH", "ENDS_WITH")
            and isinstance(right_of(leaf), str)
            and len(self.values) > _FEW_VALUES
            and self._fits()
        )

    def _fits(self) -> bool:
        if self._fit is None:
            self._fit = TextSearch.fits(self.values)
        return self._fit

    def _found(self, leaf: Leaf) -> list[int] | None:
        """Return the codes of the values for which ``leaf`` is true, if it is an equality."""
        codes, holds = self._equal(leaf)
        return codes if holds else None

    def _counted(self) -> Array:
        if self._counts is None:
            self._counts = np.bincount(self.codes, minlength=len(self.values) + 1)
        return self._counts

    def count(self, leaf: Leaf) -> int | None:
        """See ``Column``."""
        codes = self._found(leaf)
        return None if codes is None else int(self._counted()[codes].sum())

    def positions(self, leaf: Leaf) -> Array:
        """See ``Column``."""
        codes = self._found(leaf) or []
        rows = self._gathered(codes)
        return rows if len(codes) == 1 else np.sort(rows)

    def _gathered(self, codes: Sequence[int]) -> Array:
        """Return the rows of ``codes``, code by code."""
        if self._index is None:
            order = np.argsort(self.codes, kind="stable").astype(np.int32)
            self._index = (order, np.concatenate([[0], np.cumsum(self._counted())]))
        order, first = self._index
        pieces = [order[first[code] : first[code + 1]] for code in codes]
        return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty(0, np.int32), *pieces])

    def ranks(self, at: Array) -> NDArray[np.float64]:
        """See ``Column``."""
        if self._ranks is None:
            ranks = np.full(len(self.values) + 1, np.nan)
            order = sorted(range(len(self.values)), key=lambda code: sort_key(self.values[code]))
            ranks[np.array(order, np.int64) + 1] = np.arange(len(order), dtype=np.float64)
            self._ranks = ranks
        return self._ranks[self.codes[at]]

    def agrees(self, at: int, value: Any) -> bool:
        """See ``Column``."""
        live = plain(value)
        return int(self.codes[at]) == (0 if live is None else self.known.get(identity(live)))
