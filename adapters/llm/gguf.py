"""Reads the number of parameters from the header of a GGUF file, without loading the model.

The header has key-value pairs and a description of each tensor; see the GGUF specification (ggml, version 2 and 3).
"""

import mmap
import struct
from functools import lru_cache
from math import prod
from pathlib import Path

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Maps the type of a value to its size in bytes."""
_STRING, _ARRAY = 8, 9
_MOST = 2_000_000
"""Maximum number of pairs, of tensors or of elements of an array. If there are more, the file is considered damaged."""
_MOST_DIMENSIONS = 8


def parameter_count(path: str | Path) -> int | None:
    """Return the number of parameters of the model in a GGUF file; None if the file is missing, or is not a GGUF file."""
    try:
        file = Path(path).expanduser()
        found = file.stat()
        return _count(file, found.st_size, found.st_mtime_ns)
    except (OSError, ValueError, RuntimeError):  # RuntimeError: the home directory is unknown
        return None


@lru_cache(maxsize=32)
def _count(path: Path, size: int, changed: int) -> int | None:
    """Return the number of parameters. Because of ``size`` and ``changed``, the cache reads a changed file again."""
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return _Header(data).parameters()
        except (struct.error, IndexError, OverflowError):  # the file ends within its header
            return None


class _Header:
    """Reads the header of a file from front to back."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0

    def parameters(self) -> int | None:
        """Return the total number of elements of all tensors; None if this is not a GGUF file of a known version."""
        if self._data[:4] != b"GGUF" or self._number("<I", 4) not in (2, 3):
            return None
        tensors, pairs = self._bounded(), self._bounded()
        for _ in range(pairs):
            self._skip_string()
            self._skip_value(self._number("<I"))
        total = 0
        for _ in range(tensors):
            self._skip_string()
            dimensions = self._number("<I")
            if dimensions > _MOST_DIMENSIONS:
                raise IndexError
            total += prod(self._number("<Q") for _ in range(dimensions))
            self._at += 12  # type and offset
        return total if self._at <= len(self._data) else None

    def _number(self, form: str, start: int | None = None) -> int:
        self._at = self._at if start is None else start
        (value,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return int(value)

    def _bounded(self) -> int:
        count = self._number("<Q")
        if count > _MOST:
            raise IndexError
        return count

    def _skip_string(self) -> None:
        length = self._number("<Q")
        self._at += length

    def _skip_value(self, kind: int) -> None:
        if kind == _STRING:
            self._skip_string()
        elif kind == _ARRAY:
            inner, count = self._number("<I"), self._bounded()
            if inner in _SIZES:
                self._at += count * _SIZES[inner]
            else:
                for _ in range(count):
                    self._skip_value(inner)
        elif kind in _SIZES:
            self._at += _SIZES[kind]
        else:
            raise IndexError
