"""A set of integers, such as the ends of edges, in which many numbers can be looked up at once."""

import numpy as np
from attrs import frozen
from numpy.typing import NDArray


@frozen(eq=False)
class KeySet:
    """Keys in ascending order, and bit tables of their hashes.

    ``first`` and ``second`` are bit tables, indexed by hashes of the keys: a number can be a key only if both of its bits are
    set. Bit tables are used because they fit into the CPU cache.
    """

    keys: NDArray[np.int64]
    first: NDArray[np.uint8]
    second: NDArray[np.uint8]
    shift: np.uint64

    @classmethod
    def of(cls, keys: NDArray[np.int64]) -> "KeySet":
        """Return the set of ``keys``, which are ascending and may be repeated."""
        bits = min(max(int(16 * len(keys)).bit_length(), 10), 26)
        shift = np.uint64(64 - bits)
        return cls(keys, _marks(keys, _FIRST, shift), _marks(keys, _SECOND, shift), shift)

    def candidates(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the indices of the numbers that may be keys: the indices of all keys, and of few other numbers."""
        maybe = _marked(self.first, numbers, _FIRST, self.shift)
        return maybe.take(_marked(self.second, numbers.take(maybe), _SECOND, self.shift))

    def among(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the indices of the numbers that are keys."""
        maybe = self.candidates(numbers)
        wanted = numbers.take(maybe)
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return maybe.take(np.flatnonzero(self.keys.take(place) == wanted))


_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
"""Multipliers of the two hash functions."""


def _hashed(keys: NDArray[np.int64], factor: np.uint64, shift: np.uint64) -> NDArray[np.int64]:
    hashed = keys.view(np.uint64) * factor
    hashed >>= shift
    return hashed.view(np.int64)


def _marks(keys: NDArray[np.int64], factor: np.uint64, shift: np.uint64) -> NDArray[np.uint8]:
    """Return a bit table in which the bit of each key is set."""
    marks = np.zeros(1 << (64 - int(shift)), np.bool_)
    marks[_hashed(keys, factor, shift)] = True
    return np.packbits(marks, bitorder="little")


def _marked(
    marks: NDArray[np.uint8], keys: NDArray[np.int64], factor: np.uint64, shift: np.uint64
) -> NDArray[np.int64]:
    """Return the indices of the keys whose bit is set."""
    hashed = _hashed(keys, factor, shift)
    found = marks.take(hashed >> 3)
    found >>= (hashed & 7).astype(np.uint8)
    found &= 1
    return np.flatnonzero(found)
