"""Column types. Numbers are stored as floats, other values as codes. A comparison is evaluated once for each distinct value."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from ...lang.evaluate.conditions import identity, order_key
from ...lang.evaluate.conditions.comparison import constant_of, is_of_empty_list
from ...lang.evaluate.conditions.interpreter import leaf_test
from ...lang.trees.conditions import Comparison, Constant, Items, NullTest, Operator
from ...lang.unicode_forms import canonical
from .rows import plain

# Search for a string in many texts at once: all texts are stored in one buffer, which is searched in one pass.

_BETWEEN = b"\xff"
"""Separator before and after each text; the byte never occurs in UTF-8, so no match spans two texts."""
_LARGEST = 256 << 20
_MANY, _FAR = 100, 2000
"""A needle counts as frequent if its first ``_MANY`` matches lie within ``_MANY * _FAR`` bytes."""


@frozen(eq=False)
class TextSearch:
    """Texts in canonical form, stored one after another in one ``buffer``; the i-th text begins at ``first[i]``."""

    buffer: bytes
    first: NDArray[np.int64]

    @classmethod
    def fits(cls, texts: Sequence[str]) -> bool:
        """Return whether the texts are short enough for a buffer (256 MiB)."""
        return sum(map(len, texts)) <= _LARGEST

    @classmethod
    def of(cls, texts: Sequence[str]) -> "TextSearch":
        """Store ``texts`` in one buffer."""
        encoded = [canonical(text).encode("utf-8", "surrogatepass") for text in texts]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        first = np.cumsum(lengths + 1) - lengths
        return cls(_BETWEEN + _BETWEEN.join(encoded) + _BETWEEN, first)

    def find(self, operator: Operator, wanted: str) -> NDArray[np.int64]:
        """Return the ascending positions of the texts that contain, start with or end with ``wanted``."""
        needle = canonical(wanted).encode("utf-8", "surrogatepass")
        if not needle:
            return np.arange(len(self.first))
        before = operator == "STARTS_WITH"
        needle = (_BETWEEN if before else b"") + needle + (_BETWEEN if operator == "ENDS_WITH" else b"")
        places: list[int] = []
        next_place = self._rare(needle)
        at = next_place(0)
        while at >= 0:
            places.append(at)
            if len(places) == _MANY and at < _MANY * _FAR:
                next_place = partial(self.buffer.find, needle)  # fast for frequent needles
            # Continue with the next text, so that each text is counted once.
            at = next_place(self.buffer.find(_BETWEEN, at + 1))
        return np.searchsorted(self.first, np.array(places, np.int64) + before, "right") - 1

    def _rare(self, needle: bytes) -> Callable[[int], int]:
        """Return a function from an offset to the next position of ``needle`` (-1: none); it is fast if needles are rare."""
        import re2

        options = re2.Options()
        options.literal = options.never_capture = True
        options.encoding = re2.Options.Encoding.LATIN1  # match raw bytes
        search, buffer = re2.compile(needle, options).search, self.buffer

        def following(start: int) -> int:
            match = search(buffer, start)
            return match.start() if match is not None else -1

        return following


# Helpers for the comparisons and null tests of columns, and shared types.

Leaf: TypeAlias = Comparison | NullTest
Mask: TypeAlias = NDArray[np.bool_]
Array: TypeAlias = NDArray[Any]


def right_of(leaf: Comparison) -> Any:
    """Return the right-hand value of a comparison; a list is returned as a tuple."""
    assert isinstance(leaf.right, Constant | Items)  # noqa: S101  # columns answer only comparisons with constants
    return constant_of(leaf.right)


def holds_null(right: Any) -> bool:
    """Return whether ``right`` is a list that contains null."""
    return isinstance(right, tuple | list) and any(plain(value) is None for value in right)


def is_number(value: Any) -> bool:
    """Return whether ``value`` is a number (booleans do not count)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


_FEW_VALUES = 4096
"""Up to this many distinct texts are tested one by one. If there are more, all texts are searched at once in a buffer."""
_FEW_ROWS = 50
"""If fewer than one row in this many matches, the matching rows are found with the index instead of a table of codes."""


@define(eq=False)
class Coded:
    """Values of any type, stored as codes: 0 means null, a code c > 0 ``values[c - 1]``.

    ``known`` maps identities to codes. Canonically equivalent texts have a code each, so that items show them as they were
    written: ``forms`` maps the code in ``known`` to all codes of an identity that has several.
    """

    codes: Array
    values: list[Any]
    known: dict[Hashable, int]
    text: bool
    forms: dict[int, list[int]]
    _counts: Array | None = None
    _index: tuple[Array, Array] | None = None
    _ranks: dict[bool, NDArray[np.float64]] = field(factory=dict)
    _search: TextSearch | None = None
    _fit: bool | None = None

    @classmethod
    def of(cls, codes: Array, values: list[Any], keys: Sequence[Hashable]) -> "Coded":
        """Return the column. ``keys`` are distinct: for each value, the text as it is written, or the identity of another value."""
        text = all(isinstance(value, str) for value in values)
        known: dict[Hashable, int] = {}
        forms: dict[int, list[int]] = {}
        for code, key in enumerate(keys, 1):
            if isinstance(key, str) and not key.isascii():
                key = canonical(key)
            first = known.setdefault(key, code)
            if first != code:
                forms.setdefault(first, [first]).append(code)
        return cls(codes, values, known, text, forms)

    def codes_of(self, value: Any) -> Sequence[int]:
        """Return the codes of the values that are equal to ``value``, which is not null."""
        code = self.known.get(identity(value))
        return () if code is None else self.forms.get(code, (code,))

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
        """Return the codes of the values that an equality names, and whether ``leaf`` is true or false for these values.

        Equalities are ``=``, ``!=``, ``IN``, ``NOT IN`` and null tests. For any other ``leaf`` the codes are None.
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
        return sorted({code for value in wanted for code in self.codes_of(value)}), operator in ("=", "IN")

    def _table(self, leaf: Leaf, wanted: bool) -> Mask:
        """Return, for each code, whether ``leaf`` gives the result ``wanted`` for the code's value."""
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
        """Return the indices of the distinct texts that match."""
        if self._search is None:
            self._search = TextSearch.of(self.values)
        assert isinstance(leaf, Comparison)  # noqa: S101  # searchable
        return self._search.find(leaf.operator, right_of(leaf))

    def _searched(self, leaf: Leaf) -> Mask:
        """Return, for each row, whether its text matches. If few rows match, the index is used."""
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

    def _matching_codes(self, leaf: Leaf) -> list[int] | None:
        """Return the codes of the values for which ``leaf`` is true; None if ``leaf`` is not ``=``, ``IN`` or IS NULL."""
        codes, holds = self._equal(leaf)
        return codes if holds else None

    def _counted(self) -> Array:
        if self._counts is None:
            self._counts = np.bincount(self.codes, minlength=len(self.values) + 1)
        return self._counts

    def count(self, leaf: Leaf) -> int | None:
        """See ``Column``."""
        codes = self._matching_codes(leaf)
        return None if codes is None else int(self._counted()[codes].sum())

    def positions(self, leaf: Leaf) -> Array:
        """See ``Column``."""
        codes = self._matching_codes(leaf) or []
        rows = self._gathered(codes)
        return rows if len(codes) == 1 else np.sort(rows)

    def _gathered(self, codes: Sequence[int]) -> Array:
        """Return the rows of ``codes``, grouped by code."""
        if self._index is None:
            order = np.argsort(self.codes, kind="stable").astype(np.int32)
            self._index = (order, np.concatenate([[0], np.cumsum(self._counted())]))
        order, first = self._index
        pieces = [order[first[code] : first[code + 1]] for code in codes]
        return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty(0, np.int32), *pieces])

    def ranks(self, at: Array | None, descending: bool = False) -> NDArray[np.float64]:
        """See ``Column``."""
        ranks = self.ranks_by_code(descending)
        return ranks[self.codes if at is None else self.codes[at]]

    def ranks_by_code(self, descending: bool = False) -> NDArray[np.float64]:
        """Return, for each code, the rank of its value among all values; NaN for null."""
        descending = descending and not self.text  # strings alone have the same ranks in both directions
        if (ranks := self._ranks.get(descending)) is None:
            ranks = self._ranks[descending] = np.full(len(self.values) + 1, np.nan)
            order = sorted(range(len(self.values)), key=lambda code: order_key(self.values[code], descending))
            ranks[np.array(order, np.int64) + 1] = np.arange(len(order), dtype=np.float64)
            for codes in self.forms.values():
                ranks[codes] = ranks[codes[0]]
        return ranks

    def others(self, is_other: Callable[[Any], bool]) -> Mask | None:
        """See ``Column``."""
        if self.text and not is_other(""):
            return None
        table = np.array([False, *map(is_other, self.values)], np.bool_)
        return table[self.codes] if table.any() else None

    def agrees(self, at: int, value: Any) -> bool:
        """See ``Column``."""
        live = plain(value)
        return int(self.codes[at]) in ((0,) if live is None else self.codes_of(live))


# A column of numbers: the values as floats, with NaN for null, and their sort order, which is used for selective ranges.

_EXACT = 2**53 - 1
"""Largest integer that shares its float with no other integer. The float 2**53 is also the result of converting 2**53 + 1."""


@define(eq=False)
class Numbers:
    """Numbers and nulls. Every integer is small enough that a float represents it exactly.

    ``whole`` is true if all numbers are integers, false if all are floats, and None if there are both.
    """

    values: NDArray[np.float64]
    whole: bool | None = None
    _sorted: tuple[Array, NDArray[np.float64]] | None = None

    def mask(self, leaf: Leaf, wanted: bool, at: Array | None) -> Mask | None:
        """See ``Column``."""
        values = self.values if at is None else self.values[at]
        if isinstance(leaf, NullTest):
            null = np.isnan(values)
            return null if leaf.negated is not wanted else ~null
        right, operator = right_of(leaf), leaf.operator
        if is_number(right):
            return _number_mask(values, operator, right, wanted) if not _inexact(right) else None
        if operator in ("IN", "NOT IN") and isinstance(right, tuple | list):
            return self._members(values, leaf, right, wanted)
        # A comparison with a value of another type has the same result for every number.
        answer = leaf_test(leaf)(0.5)
        return ~np.isnan(values) if answer is wanted else np.zeros(len(values), np.bool_)

    def _members(self, values: Array, leaf: Comparison, right: Sequence[Any], wanted: bool) -> Mask | None:
        if not right:
            return np.full(len(values), (leaf.operator == "NOT IN") is wanted)
        numbers = [value for value in right if is_number(value)]
        if any(map(_inexact, numbers)):
            return None
        inside: Mask = np.isin(values, np.array(numbers, np.float64))
        if wanted is (leaf.operator == "IN"):
            return inside
        # With a null in the list, IN is never false and NOT IN never true.
        return np.zeros(len(values), np.bool_) if holds_null(right) else ~inside & ~np.isnan(values)

    def _order(self) -> tuple[Array, NDArray[np.float64]]:
        if self._sorted is None:
            order = np.argsort(self.values, kind="stable").astype(np.int32)
            self._sorted = (order, self.values[order])
        return self._sorted

    def _slices(self, leaf: Leaf) -> list[tuple[int, int]] | None:
        """Return the slices of the sorted values for which ``leaf`` is true."""
        if isinstance(leaf, NullTest):
            return None
        right, operator = right_of(leaf), leaf.operator
        wanted = [right]
        if operator == "IN" and isinstance(right, tuple | list):
            wanted = sorted({value for value in right if is_number(value)})
        elif operator not in ("=", "<", "<=", ">", ">=") or not is_number(right):
            return None
        if any(map(_inexact, wanted)):
            return None
        ordered = self._order()[1]
        first, last = (
            np.searchsorted(ordered, wanted, "left").tolist(),
            np.searchsorted(ordered, wanted, "right").tolist(),
        )
        if operator in ("=", "IN"):
            return list(zip(first, last, strict=True))
        if operator in ("<", "<="):
            return [(0, first[0] if operator == "<" else last[0])]
        known = int(np.searchsorted(ordered, np.nan, "left"))
        return [(last[0] if operator == ">" else first[0], known)]

    def count(self, leaf: Leaf) -> int | None:
        """See ``Column``."""
        slices = self._slices(leaf)
        return None if slices is None else sum(last - first for first, last in slices)

    def positions(self, leaf: Leaf) -> Array:
        """See ``Column``."""
        order = self._order()[0]
        slices = self._slices(leaf) or []
        return np.sort(np.concatenate([np.empty(0, np.int32), *(order[first:last] for first, last in slices)]))

    def ranks(self, at: Array | None, descending: bool = False) -> NDArray[np.float64]:
        """See ``Column``."""
        return self.values if at is None else self.values[at]

    def others(self, is_other: Callable[[Any], bool]) -> Mask | None:
        """See ``Column``."""
        return ~np.isnan(self.values) if is_other(0.5) else None

    def agrees(self, at: int, value: Any) -> bool:
        """See ``Column``."""
        live, kept = plain(value), float(self.values[at])
        return kept != kept if live is None else is_number(live) and live == kept


def numbers_of(raw: Sequence[Any], integers: bool) -> NDArray[np.float64] | None:
    """Return ``raw`` as floats, with NaN for None; None if a float can't represent an integer exactly.

    ``integers`` is true if ``raw`` contains integers.
    """
    try:
        values = np.array(raw, np.float64)  # None becomes NaN
    except OverflowError:
        return None
    with np.errstate(invalid="ignore"):
        large = integers and bool((np.abs(values) > _EXACT).any())
    return None if large else values


def _inexact(number: float) -> bool:
    """Return whether ``number`` is an integer that is too large to be represented exactly by a float."""
    return isinstance(number, int) and abs(number) > _EXACT


def _number_mask(values: Array, operator: Operator, right: float, wanted: bool) -> Any:
    """Compare ``values`` with a number. A comparison with NaN, which means null, is neither true nor false."""
    match operator, wanted:
        case ("=", True) | ("!=", False):
            return values == right
        case ("!=", True) | ("=", False):
            return (values < right) | (values > right)
        case ("<", True) | (">=", False):
            return values < right
        case ("<=", True) | (">", False):
            return values <= right
        case (">", True) | ("<=", False):
            return values > right
        case (">=", True) | ("<", False):
            return values >= right
    return np.zeros(len(values), np.bool_)  # the result of the other operators is unknown for numbers
