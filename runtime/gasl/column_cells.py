"""The columns of a relation that are stored as arrays, and the blocks of rows in which columns are read."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from ...lang.evaluate.conditions.values import check

if TYPE_CHECKING:
    from ...adapters.columns import ColumnArray

Path = tuple[str, ...]
Pick = Callable[[Any], list[Any]]
"""A function that returns the values of a field (None for null) in the rows that a slice or an array of positions selects."""

BLOCK = 4_096
"""Number of rows that are read together. After each block, a command checks whether it must end."""
LARGE = 200_000
"""If a relation has more rows, it keeps numbers and repeated texts in arrays, and stores no lists of items or values."""


def blocks_of(size: int) -> Iterator[slice]:
    """Yield slices that cover ``size`` rows. Before each slice, raise an exception if the command is cancelled or timed out."""
    for start in range(0, size, BLOCK):
        check()
        yield slice(start, min(start + BLOCK, size))


def picker(values: Sequence[Any]) -> Pick:
    """Return the ``Pick`` that reads values from a list."""
    return lambda at: list(values[at]) if isinstance(at, slice) else [values[place] for place in at.tolist()]


def array_picker(array: "ColumnArray") -> Pick:
    """Return the ``Pick`` that reads values from an array."""
    from ...adapters.columns import CodeArray  # imported late: reading a program needs no arrays

    if not isinstance(array, CodeArray):
        return lambda at: array.take(at).listed()
    table, codes = [None, *array.values], array.codes
    return lambda at: [table[code] for code in codes[at].tolist()]


class Cells(Sequence[Any]):
    """A column that is stored as an array. Reading it returns Python values, not NumPy values."""

    __slots__ = ("array", "pick")

    def __init__(self, array: "ColumnArray") -> None:
        self.array = array
        self.pick = array_picker(array)

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> list[Any]: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return self.pick(at)
        if not -len(self) <= at < len(self):
            raise IndexError("row index out of range")
        at %= len(self)
        return self.pick(slice(at, at + 1))[0]

    def __iter__(self) -> Iterator[Any]:
        for at in blocks_of(len(self)):
            yield from self.pick(at)

    def take(self, positions: Any) -> "Cells":
        """Return the values at ``positions``, an array or a sequence of indices."""
        import numpy as np

        return Cells(self.array.take(np.asarray(positions, np.int64)))
