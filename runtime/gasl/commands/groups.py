"""Groups rows, and computes sums and other numbers for each group. Sums are rounded once, like those of ``math.fsum``."""

import math
import statistics
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from attrs import frozen

from ....adapters.columns import Array, CodeArray, ColumnArray, NumberArray
from ....lang.evaluate.conditions import identity
from ....lang.evaluate.conditions.values import check, hold
from ..column_cells import blocks_of
from .columns import FEW_NUMBERS, SAFE_MAGNITUDES

if TYPE_CHECKING:
    from .columns import Column

_LEVELS = 4
"""Maximum number of parts into which a float is split for an exact sum."""
_SMALLEST = -1000
"""Minimum exponent of a part. For smaller numbers, the exact sums are computed group by group."""


class Members(Sequence[Sequence[int]]):
    """For each group, the ascending positions of its rows. The positions are sorted by group on the first access."""

    def __init__(self, codes: Array, order: Array) -> None:
        self._codes = codes
        self._order = order
        self._sorted: tuple[Array, Array] | None = None

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, at: int) -> Sequence[int]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Sequence[int]]: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return [self[each] for each in range(len(self))[at]]
        if self._sorted is None:
            rows = _sorted_by(self._codes)
            self._sorted = (rows, np.concatenate([[0], np.cumsum(np.bincount(self._codes))]))
        rows, first = self._sorted
        code = self._order[at]
        return rows[first[code] : first[code + 1]]

    def __iter__(self) -> Iterator[Sequence[int]]:
        return map(self.__getitem__, range(len(self)))


def _sorted_by(codes: Array) -> Array:
    """Return the positions sorted by code. (Sorting numbers of at most 16 bits takes a tenth of the time.)"""
    largest = int(codes.max(initial=0))
    return np.argsort(codes.astype(np.min_scalar_type(largest)), kind="stable")


@frozen(eq=False)
class Groups:
    """Rows in groups, in the order of their first rows.

    ``keys`` are the values of the groups, and ``members`` the positions of the rows of each group. ``codes`` has the code of
    each row, ``order`` that of each group.
    """

    keys: Sequence[tuple[Any, ...]]
    members: Sequence[Sequence[int]]
    sizes: Sequence[int]
    codes: Array
    order: Array


def groups_of_lists(columns: Sequence[Sequence[Any]]) -> Groups:
    """Return the groups of rows with equal values."""
    size = len(columns[0])
    known: dict[Hashable, int] = {}
    codes = np.empty(size, np.int32)
    for at in blocks_of(size):
        before = len(known)
        if len(columns) == 1:
            codes[at] = [known.setdefault(identity(value), len(known)) for value in columns[0][at]]
        else:
            rows = zip(*(values[at] for values in columns), strict=True)
            codes[at] = [known.setdefault(tuple(map(identity, row)), len(known)) for row in rows]
        hold(_KEY * len(columns) * (len(known) - before))
    first = first_rows(codes, len(known))
    keys = [tuple(values[place] for values in columns) for place in first.tolist()]
    order = np.arange(len(known))
    return Groups(keys, Members(codes, order), np.bincount(codes, minlength=len(known)).tolist(), codes, order)


_KEY = 200
"""Estimated number of bytes of a dictionary entry with a value as its key."""


def groups_of_items(items: Sequence[Any]) -> Sequence[Sequence[int]]:
    """Return groups of the positions of equal items, in the order of the first item of each group."""
    places = EqualItems(items)
    codes = np.empty(len(items), np.int32)
    for at in blocks_of(len(items)):
        codes[at] = places.add(at)
    return Members(codes, np.arange(places.count))


class EqualItems:
    """Numbers the items in the order of their first occurrence. Equal items have the same number.

    Only the hashes are stored. Two items with the same hash are compared.
    """

    def __init__(self, items: Sequence[Any]) -> None:
        self.count = 0
        self._items = items
        self._numbers: dict[int, list[tuple[int, int]] | tuple[int, int]] = {}

    def add(self, at: slice) -> list[int]:
        """Return the numbers of the items in a slice."""
        before = self.count
        found = [self._number(index, item) for index, item in enumerate(self._items[at], at.start)]
        hold(_HASH * (self.count - before))
        return found

    def _number(self, index: int, item: Any) -> int:
        key = identity(item)
        known = self._numbers.get(code := hash(key))
        if known is None:
            self._numbers[code] = (self.count, index)
        else:
            same = [known] if isinstance(known, tuple) else known
            for number, other in same:
                if identity(self._items[other]) == key:
                    return number
            self._numbers[code] = [*same, (self.count, index)]
        self.count += 1
        return self.count - 1


_HASH = 230
"""Estimated bytes for each number: the hash of its item, the dictionary entry, and the position."""


class Through(Sequence[Sequence[int]]):
    """Groups of positions; each position ``p`` in ``groups`` is replaced by ``indices[p]``."""

    def __init__(self, indices: Sequence[int], groups: Sequence[Sequence[int]]) -> None:
        self._indices = indices
        self._groups = groups

    def __len__(self) -> int:
        return len(self._groups)

    @overload
    def __getitem__(self, at: int) -> Sequence[int]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Sequence[int]]: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return [self[each] for each in range(len(self))[at]]
        indices = self._indices
        return [int(indices[place]) for place in self._groups[at]]


def groups_of(columns: "Sequence[Column]") -> Groups:
    """Return the groups of rows with equal values in all columns."""
    arrays = [made.array for made in columns if made.array is not None]
    return (
        groups_of_arrays(arrays) if len(arrays) == len(columns) else groups_of_lists([each.values for each in columns])
    )


def one_group(size: int) -> Groups:
    """Return one group with all rows."""
    return Groups([()], [range(size)], [size], np.zeros(size, np.int32), np.zeros(1, np.intp))


def groups_of_arrays(arrays: Sequence[ColumnArray]) -> Groups:
    """Return the groups of rows with equal values."""
    codes, space = _codes(arrays[0])
    for array in arrays[1:]:
        more, size = _codes(array)
        if space * size >= 1 << 62:
            codes, space = _dense(codes)
        if space * size < 1 << 31 and codes.dtype == np.int32:
            codes = np.multiply(codes, size, dtype=np.int32)
            codes += more.astype(np.int32, copy=False)
        else:
            codes = codes.astype(np.intp) * size + more
        space *= size
    if space > 4 * len(codes) + 1024:
        codes, space = _dense(codes)
    counts = _sizes(codes, space)
    first = first_rows(codes, space)
    there = np.flatnonzero(counts)
    order = there[np.argsort(first[there], kind="stable")]
    heads = [array.take(first[order]).listed() for array in arrays]
    return Groups(list(zip(*heads, strict=True)), Members(codes, order), counts[order].tolist(), codes, order)


def _codes(array: ColumnArray) -> tuple[Array, int]:
    """Return a code for each row (rows with equal values have equal codes), and the number of possible codes."""
    if isinstance(array, CodeArray):
        return array.codes.astype(np.int32, copy=False), len(array.values) + 1
    values = array.values
    null = np.isnan(values)
    known = values[~null] if null.any() else values
    if array.whole and len(known):
        least = known.min()
        span = int(known.max() - least) + 2
        if span <= 4 * len(values) + 1024:
            codes = np.empty(len(values), np.int32 if span < 1 << 31 else np.intp)
            for some in _steps(len(values)):
                codes[some] = np.where(null[some], 0, values[some] - least + 1)
            return codes, span
    return _dense(values)


def _dense(values: Array) -> tuple[Array, int]:
    distinct, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.int32 if len(distinct) < 1 << 31 else np.intp), len(distinct)


_STEP = 1 << 18
"""Number of rows that are computed together, so that intermediate results take little memory."""


def _steps(size: int) -> Iterator[slice]:
    """Yield slices that cover ``size`` rows. Before each slice, raise an exception if the command is cancelled or timed out."""
    for start in range(0, size, _STEP):
        check()
        yield slice(start, min(start + _STEP, size))


def first_rows(codes: Array, space: int) -> Array:
    """Return the position of the first row with each code; for a code without a row, the total number of rows."""
    first = np.full(space, len(codes), np.intp)
    for some in [*_steps(len(codes))][::-1]:
        first[codes[some][::-1]] = np.arange(some.stop - 1, some.start - 1, -1)  # in reverse, so the first row remains
    return first


def _sizes(codes: Array, space: int) -> Array:
    """Return the number of rows of each code."""
    if space > _STEP:
        return np.bincount(codes, minlength=space)
    counts = np.zeros(space, np.intp)
    for some in _steps(len(codes)):
        counts += np.bincount(codes[some], minlength=space)
    return counts


# Numbers over groups.


def counts_of(array: ColumnArray, groups: Groups) -> list[int]:
    """Return the number of values in each group that are not null."""
    there = array.codes != 0 if isinstance(array, CodeArray) else ~np.isnan(array.values)
    counts = np.bincount(groups.codes[there], minlength=int(groups.order.max(initial=0)) + 1)
    return counts[groups.order].tolist()  # type: ignore[no-any-return]


def _scaled_by(values: Array, exponent: int) -> Array:
    """Return the values times 2 to the power of ``exponent``. (A product takes a third of the time of ``ldexp``.)"""
    return values * 2.0**exponent if abs(exponent) < 1_022 else np.ldexp(values, exponent)


class GroupedNumbers:
    """Numbers and their groups, as arrays. Each method returns a value for each group; None for a group without numbers."""

    def __init__(self, array: NumberArray, groups: Groups) -> None:
        there = ~np.isnan(array.values)
        every = bool(there.all())
        self._values = array.values if every else array.values[there]
        self._codes = groups.codes if every else groups.codes[there]
        self._whole = array.whole
        self._order = groups.order
        self._space = int(groups.order.max(initial=0)) + 1
        self.sizes: list[int] = np.bincount(self._codes, minlength=self._space)[self._order].tolist()

    def sums(self) -> list[int | float | None]:
        """Return the sums: exact for integers, rounded once for floats."""
        return self._none(self._summed(self._values, self._whole))

    def _none(self, values: Sequence[Any]) -> list[Any]:
        return [value if size else None for value, size in zip(values, self.sizes, strict=True)]

    def _summed(self, values: Array, whole: bool) -> list[Any]:
        if not len(values):
            return [0] * len(self.sizes)
        largest = float(max(values.max(), -values.min()))
        if whole and largest * len(values) < 1 << 53:
            return list(map(int, self._added(values)))
        bits = 53 - max(1, len(values).bit_length())
        exponent = math.frexp(largest)[1] if largest else 0
        rest, totals = values.copy(), [0] * len(self.sizes)
        for _ in range(_LEVELS):
            exponent -= bits
            if exponent < _SMALLEST or largest == 0:
                break
            totals = [total << bits for total in totals]
            is_left = False
            for some in _steps(len(rest)) if self._space <= _STEP else [slice(0, len(rest))]:
                part = np.rint(_scaled_by(rest[some], -exponent))  # at most 2 ** bits, so that sums of parts are exact
                added = np.bincount(self._codes[some], part, self._space)[self._order].tolist()
                totals = [total + int(more) for total, more in zip(totals, added, strict=True)]
                rest[some] -= _scaled_by(part, exponent)
                is_left = is_left or bool(rest[some].any())
            if not is_left:
                return [_scaled(total, exponent, whole) for total in totals]
        if largest == 0:
            return [0 if whole else 0.0] * len(self.sizes)
        return [_sum_of(list_of, whole) for list_of in self._lists(values)]

    def _added(self, values: Array) -> list[float]:
        """Return the sums, which floats represent exactly."""
        sums = np.zeros(self._space)
        for some in _steps(len(values)) if self._space <= _STEP else [slice(0, len(values))]:
            sums += np.bincount(self._codes[some], values[some], self._space)
        return sums[self._order].tolist()  # type: ignore[no-any-return]

    def _lists(self, values: Array) -> list[list[float]]:
        """Return the values of each group in their order."""
        return [part.tolist() for part in self._parts(values)]

    def _parts(self, values: Array) -> Iterator[Array]:
        ordered = values[_sorted_by(self._codes)]
        ends = np.cumsum(np.bincount(self._codes, minlength=self._space))[self._order].tolist()
        return (ordered[end - size : end] for end, size in zip(ends, self.sizes, strict=True))

    def means(self) -> list[float | None]:
        """Return the means."""
        sums = self._summed(self._values, self._whole)
        return self._none([float(total / size) if size else None for total, size in zip(sums, self.sizes, strict=True)])

    def extremes(self, smallest: bool) -> list[int | float | None]:
        """Return the smallest or the largest numbers. For zero, the result has the sign of the group's first zero."""
        found = np.full(self._space, math.inf if smallest else -math.inf)
        (np.minimum if smallest else np.maximum).at(found, self._codes, self._values)
        if not self._whole and (found == 0).any():
            zeros = np.flatnonzero(self._values == 0)[::-1]
            zeros = zeros[found[self._codes[zeros]] == 0]
            found[self._codes[zeros]] = self._values[zeros]  # in reverse, so the first zero remains
        ordered = found[self._order]
        ordered[~np.isfinite(ordered)] = 0  # groups without numbers
        return self._none((ordered.astype(np.int64) if self._whole else ordered).tolist())

    def deviations(self) -> list[float | None]:
        """Return the sample standard deviations (n - 1), as ``AGGREGATE`` over a list does; None for fewer than two numbers."""
        magnitudes = np.abs(self._values)
        is_odd = (magnitudes != 0) & ~((magnitudes > SAFE_MAGNITUDES[0]) & (magnitudes < SAFE_MAGNITUDES[1]))
        odd = np.bincount(self._codes[is_odd], minlength=self._space)[self._order].tolist()
        is_exact = [size <= FEW_NUMBERS or count > 0 for size, count in zip(self.sizes, odd, strict=True)]
        rest: list[float | None] = [None] * len(is_exact) if all(is_exact) else self._quick_deviations(is_exact)
        return [
            quick if not exact else statistics.stdev(part.tolist()) if len(part) > 1 else None
            for exact, quick, part in zip(is_exact, rest, self._parts(self._values), strict=True)
        ]

    def _quick_deviations(self, left_out: Sequence[bool]) -> list[float | None]:
        """Return the standard deviations of samples. For the groups in ``left_out``, the results are meaningless."""
        out = np.zeros(self._space, bool)
        out[self._order] = left_out
        values = np.where(out[self._codes], 0.0, self._values)  # their squares may overflow
        means = np.zeros(self._space)
        means[self._order] = [
            float(total / size) if size else 0.0
            for total, size in zip(self._summed(values, self._whole), self.sizes, strict=True)
        ]
        from_mean = values - means[self._codes]
        squares, rest = self._summed(from_mean * from_mean, False), self._summed(from_mean, False)
        return [
            math.sqrt(max(0.0, total - error * error / size) / (size - 1)) if size > 1 else None
            for total, error, size in zip(squares, rest, self.sizes, strict=True)
        ]  # ``error`` corrects the rounding of the mean

    def at_share(self, share: float) -> list[tuple[list[int | float], float]]:
        """Return, for each group, the one or two numbers around ``share`` in sorted order, and the fraction between them."""
        made: list[tuple[list[int | float], float]] = []
        for part in self._parts(self._values):
            place = (len(part) - 1) * share
            below = math.floor(place)
            wanted = [below] if place == below else [below, below + 1]
            chosen = np.partition(part, wanted)[wanted] if len(part) else part
            if not self._whole and (chosen == 0).any():
                chosen = np.sort(part, kind="stable")[wanted]  # zeros of either sign stay in the order of the rows
            made.append(((chosen.astype(np.int64) if self._whole else chosen).tolist(), place - below))
        return made


def _scaled(total: int, exponent: int, whole: bool) -> int | float:
    """Return ``total * 2 ** exponent``, rounded once."""
    if exponent >= 0:
        return total << exponent if whole else float(total << exponent)
    return total >> -exponent if whole else total / (1 << -exponent)


def _sum_of(values: Sequence[float], whole: bool) -> int | float:
    return sum(map(int, values)) if whole else math.fsum(values)


NUMBERS: dict[str, Callable[[GroupedNumbers], list[Any]]] = {
    "sum": GroupedNumbers.sums,
    "mean": GroupedNumbers.means,
    "min": lambda numbers: numbers.extremes(True),
    "max": lambda numbers: numbers.extremes(False),
    "stdev": GroupedNumbers.deviations,
}
"""The functions of AGGREGATE that are computed for all groups at once."""
