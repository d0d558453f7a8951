"""Finding a text in many texts at once: they lie side by side in one buffer, and the search runs through that."""

from collections.abc import Callable, Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from ....lang.conditions import Operator

__all__ = ["TextSearch"]

_BETWEEN = b"\xff"
"""Stands before and after each text; no byte of UTF-8 is this one, so nothing is found across two texts."""
_LARGEST = 256 << 20
_MANY, _FAR = 100, 2000
"""A needle found so many times within so many bytes each is frequent."""


@frozen(eq=False)
class TextSearch:
    """``buffer`` holds the texts; the i-th begins at ``first[i]``."""

    buffer: bytes
    first: NDArray[np.int64]

    @classmethod
    def fits(cls, texts: Sequence[str]) -> bool:
        """Say whether the texts are short enough for a buffer (256 MiB)."""
        return sum(map(len, texts)) <= _LARGEST

    @classmethod
    def of(cls, texts: Sequence[str]) -> "TextSearch":
        """Lay ``texts`` side by side."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        first = np.cumsum(lengths + 1) - lengths
        return cls(_BETWEEN + _BETWEEN.join(encoded) + _BETWEEN, first)

    def find(self, operator: Operator, wanted: str) -> NDArray[np.int64]:
        """Return the places, rising, of the texts that contain, start with or end with ``wanted``."""
        needle = wanted.encode("utf-8", "surrogatepass")
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
                next_place = self._frequent(needle)
            # On with the next text, so that a text counts once however often the needle is in it.
            at = next_place(self.buffer.find(_BETWEEN, at + 1))
        return np.searchsorted(self.first, np.array(places, np.int64) + before, "right") - 1

    def _rare(self, needle: bytes) -> Callable[[int], int]:
        """Return ``from -> the next place of needle`` (-1: none), fast over long stretches without one."""
        import re2

        options = re2.Options()
        options.literal = options.never_capture = True
        options.encoding = re2.Options.Encoding.LATIN1  # bytes as they are
        search, buffer = re2.compile(needle, options).search, self.buffer

        def following(start: int) -> int:
            match = search(buffer, start)
            return match.start() if match is not None else -1

        return following

    def _frequent(self, needle: bytes) -> Callable[[int], int]:
        """Return the same, fast where the needle is frequent."""
        find = self.buffer.find
        return lambda start: find(needle, start)
