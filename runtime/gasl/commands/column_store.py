"""Stores the computed values of one column: many values in an array. They count against the command's memory."""

from collections.abc import Sequence
from sys import getrefcount, getsizeof
from typing import TYPE_CHECKING, Any

from ....lang.evaluate.conditions import sort_key
from ....lang.evaluate.conditions.values import hold
from ....lang.unicode_forms import has_equivalents
from .. import column_cells

if TYPE_CHECKING:
    from ....adapters.columns import Array, ColumnArray

PIECE = 1 << 20
"""If the new values of a block exceed this number of bytes, they are stored before more values are computed."""
_OWN = 4
"""Number of references to a value if only the block, its caller and ``new_bytes`` refer to this value."""
_MOST_TEXTS = 1 << 16
"""Maximum number of different texts in an array."""
_EXACT = 1 << 53
"""Floats may not represent integers of this magnitude or above exactly."""
_NUMBER = 32
"""Number of bytes of a number."""


def new_bytes(value: Any) -> int:
    """Return the number of bytes of a new text or list; 0 for other values, and for a value that is also a part of an item."""
    if getrefcount(value) > _OWN:
        return 0
    if value.__class__ is str:
        return getsizeof(value)
    if not isinstance(value, list | tuple):
        return 0
    return getsizeof(value) + sum(map(getsizeof, {id(part): part for part in value}.values()))


class ColumnStore:
    """Stores the values of ``size`` rows, block by block. With many rows, numbers or repeated texts are stored in an array.

    ``add`` raises ``TooLarge`` if the values of the command take too much memory.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._filled = 0
        self._values: list[Any] = []
        self._array: Array | None = None
        self._kind = "" if size > column_cells.LARGE else "list"
        self._texts: dict[str, int] = {}

    def add(self, block: Sequence[Any], new: int = 0) -> None:
        """Append the values of the next rows. ``new`` is the number of bytes of the texts and lists created for them."""
        if self._kind == "list" or not self._added(block):
            self._as_list()
            is_number = bool(block) and block[0].__class__ in (int, float)
            hold((8 + _NUMBER * is_number) * len(block) + new)
            self._values += block
        self._filled += len(block)

    def _added(self, block: Sequence[Any]) -> bool:
        """Add a block to the array. Return False if one array can't hold both these values and the earlier values."""
        kinds = set(map(type, block)) - {type(None)}
        if not kinds and self._kind == "":
            return False
        kind = self._kind if not kinds else _KINDS.get(kinds.pop(), "list") if len(kinds) == 1 else "list"
        if kind == "list" or self._kind not in ("", kind):
            return False
        if kind == "int" and any(value is not None and not -_EXACT < value < _EXACT for value in block):
            return False
        import numpy as np  # imported late: small results need no arrays

        if kind == "str":
            known = self._texts
            before = len(known)
            codes = [0 if text is None else known.setdefault(text, len(known) + 1) for text in block]
            hold(sum(getsizeof(text) + 100 for text in list(known)[before:]))
            if len(known) > _MOST_TEXTS or (len(known) > before and has_equivalents(known)):
                return False
        if self._array is None:
            hold((4 if kind == "str" else 8) * self._size)
            self._array = np.zeros(self._size, np.int32 if kind == "str" else np.float64)
            self._kind = kind
        self._array[self._filled : self._filled + len(block)] = codes if kind == "str" else block
        return True

    def _as_list(self) -> None:
        """Store the values in a list from now on."""
        if self._kind != "list" and self._array is not None:
            array = self._made(self._array[: self._filled])
            pick = column_cells.array_picker(array)
            for at in column_cells.blocks_of(self._filled):
                hold((8 if self._kind == "str" else 8 + _NUMBER) * (at.stop - at.start))
                self._values += pick(at)
            self._array = None
        self._kind = "list"

    def _made(self, array: "Array") -> "ColumnArray":
        from ....adapters.columns import CodeArray, NumberArray

        if self._kind != "str":
            return NumberArray(array, self._kind == "int")
        texts = list(self._texts)

        def order(descending: bool) -> Any:
            import numpy as np

            ranks = np.full(len(texts) + 1, np.nan)
            for rank, code in enumerate(sorted(range(len(texts)), key=lambda code: sort_key(texts[code]))):
                ranks[code + 1] = rank
            return ranks

        return CodeArray(array, texts, order)

    def finished(self) -> "tuple[list[Any] | None, ColumnArray | None]":
        """Return the values as a list and None, or None and the values as an array."""
        if self._array is None:
            return self._values, None
        return None, self._made(self._array)


_KINDS = {int: "int", float: "float", str: "str"}
