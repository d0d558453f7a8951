"""Columns of attributes on disk: writes the values of every attribute as arrays to one file, and reads rows back from them.

A column stores each kind of value in its own part: null, integers, floats, strings as codes, and other values (booleans, lists,
objects) as codes. Each part lists the rows that have a value of its kind. Each distinct string is stored once, in UTF-8. Each
distinct other value is stored once, as JSON. A row has a *shape*: the names of its attributes in their order. With the shapes,
rows are read back exactly.
"""

import mmap
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, BinaryIO, overload

import numpy as np
import orjson
from attrs import define, field, frozen
from blake3 import blake3
from numpy.typing import NDArray

Array = NDArray[Any]
ABSENT: Any = object()
"""Marker for an attribute that a row does not have."""

_HEAD = b"arrays of a knotwork graph\n"
_ALIGNMENT = 64
_BLOCK = 8192
_FEW = 32
"""If more than one row in this many has been read singly, all rows are decoded at once."""
_PARTS: Mapping[type, str] = {int: "integers", float: "floats", str: "texts", type(None): "null"}
_TYPES = frozenset({str, int, float, bool, type(None), list, dict})


class NotStorable(ValueError):
    """Raised for a value that can't be read back exactly from a file."""


@define
class ArrayWriter:
    """Writes arrays to a file, one after another. ``places`` maps each name to its array's type, offset and length."""

    file: BinaryIO
    size: int = 0
    places: dict[str, list[Any]] = field(factory=dict)
    digest: Any = field(factory=blake3)

    def __attrs_post_init__(self) -> None:
        self._write(_HEAD)

    def add(self, name: str, values: Array) -> None:
        """Write a one-dimensional array under ``name``. Raises ``OSError``."""
        values = np.ascontiguousarray(values)
        if values.dtype.byteorder == ">" or values.dtype.hasobject:
            raise NotStorable(str(values.dtype))
        padding = -self.size % _ALIGNMENT
        self._write(b"\0" * padding)
        self.places[name] = [values.dtype.str, self.size, len(values)]
        self._write(values.view(np.uint8).data if len(values) else b"")

    def _write(self, data: bytes | memoryview) -> None:
        self.digest.update(data)
        self.file.write(data)
        self.size += len(data)

    def add_texts(self, name: str, texts: Sequence[bytes]) -> None:
        """Write encoded strings as two arrays: the bytes of all strings, and the offset of each string's end."""
        self.add(f"{name}.ends", np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), dtype=np.int64))
        self.add(f"{name}.bytes", np.frombuffer(b"".join(texts), np.uint8))


@frozen
class ArrayFile:
    """The arrays of a memory-mapped file; see ``ArrayWriter``."""

    memory: Any
    places: Mapping[str, Sequence[Any]]

    @classmethod
    def of(cls, file: BinaryIO, places: Mapping[str, Sequence[Any]]) -> "ArrayFile":
        """Map a file. Raises ``OSError`` and ``ValueError``."""
        memory: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        for type, offset, length in places.values():
            known = np.dtype(type)
            if known.kind not in "iuf" or offset < 0 or length < 0 or offset + length * known.itemsize > len(memory):
                raise ValueError("an array is outside the file")
        return cls(memory, places)

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def array(self, name: str) -> Array:
        """Return the array ``name``, which is read-only."""
        type, offset, length = self.places[name]
        return np.frombuffer(self.memory, type, length, offset)

    def texts(self, name: str) -> "Texts":
        """Return the strings that ``add_texts`` wrote."""
        return Texts(self.array(f"{name}.ends"), self.array(f"{name}.bytes"))


@define(eq=False)
class Texts:
    """Encoded strings. A string is decoded when it is read."""

    ends: Array
    data: Array

    def __len__(self) -> int:
        return len(self.ends)

    def raw(self, at: int) -> bytes:
        """Return the stored bytes of one string."""
        first = int(self.ends[at - 1]) if at else 0
        return self.data[first : int(self.ends[at])].tobytes()

    def all_raw(self) -> list[bytes]:
        """Return the stored bytes of all strings."""
        data, ends = self.data.tobytes(), self.ends.tolist()
        return [data[first:last] for first, last in zip([0, *ends], ends, strict=False)]

    @cached_property
    def all(self) -> list[str]:
        """All strings."""
        data, ends = self.data.tobytes(), self.ends.tolist()
        if data.isascii():  # an offset in bytes is an offset in characters
            text = data.decode("ascii")
            return [text[first:last] for first, last in zip([0, *ends], ends, strict=False)]
        return [data[first:last].decode() for first, last in zip([0, *ends], ends, strict=False)]


def width(many: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest type for the codes of ``many`` values."""
    return np.uint8 if many <= 2**8 else np.uint16 if many <= 2**16 else np.uint32


# Writing.


def write_column(file: ArrayWriter, name: str, values: list[Any], rows: Array | None, size: int) -> list[str]:
    """Write the column ``name``, with the values of ``rows`` (None: all ``size`` rows); return the names of its parts.

    Raises ``NotStorable`` and ``OSError``.
    """
    kinds = set(map(type, values))
    if not kinds <= _TYPES:
        raise NotStorable(", ".join(sorted(kind.__name__ for kind in kinds - _TYPES)))
    by_part: dict[str, tuple[list[Any], list[int] | None]] = {}
    parts = {_PARTS.get(kind, "others") for kind in kinds}
    if len(parts) == 1:
        by_part[parts.pop()] = (values, None)
    else:
        for at, value in enumerate(values):
            part = by_part.setdefault(_PARTS.get(type(value), "others"), ([], []))
            part[0].append(value)
            part[1].append(at)  # type: ignore[union-attr]  # a list, unlike above
    for kind, (chosen, inside) in by_part.items():
        own = rows if inside is None else (np.array(inside, np.int32) if rows is None else rows[inside])
        full = f"{name}.{kind}"
        if own is not None and len(own) < size:
            file.add(f"{full}.rows", own.astype(np.int32))
        _write_part(file, full, kind, chosen)
    return list(by_part)


def _write_part(file: ArrayWriter, name: str, part: str, values: list[Any]) -> None:
    if part == "integers":
        try:
            file.add(name, np.array(values, np.int64))
        except OverflowError:
            raise NotStorable("an integer beyond 64 bits") from None
    elif part == "floats":
        file.add(name, np.array(values, np.float64))
    elif part != "null":
        keys: list[Hashable] = values if part == "texts" else [_json(value) for value in values]
        known: dict[Hashable, Any] = dict.fromkeys(keys)
        for code, key in enumerate(known):
            known[key] = code
        codes: Any = map(known.__getitem__, keys)
        file.add(name, np.fromiter(codes, width(len(known)), len(keys)))
        try:
            texts: Any = list(known)
            if part == "texts":
                texts = [text.encode() for text in texts]
        except UnicodeEncodeError:
            raise NotStorable("a lone surrogate") from None
        file.add_texts(f"{name}.values", texts)


def _json(value: Any) -> bytes:
    try:
        written = orjson.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotStorable(str(error)) from None
    if type(value) is not bool and not _same(orjson.loads(written), value):
        raise NotStorable("a value that JSON changes")
    return written


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are equal and have the same types and the same order of names."""
    if type(one) is not type(other):
        return False
    if type(one) is list:
        return len(one) == len(other) and all(map(_same, one, other))
    if type(one) is dict:
        return list(one) == list(other) and all(map(_same, one.values(), other.values()))
    return bool(one == other) and (one != 0 or str(one) == str(other))


def write_rows(file: ArrayWriter, name: str, rows: Sequence[Mapping[Any, Any]]) -> dict[str, Any]:
    """Write the attributes of all rows, and return the description that ``Rows`` needs. Raises ``NotStorable`` and ``OSError``."""
    shapes: dict[tuple[Any, ...], int] = {}
    codes = [shapes.setdefault(tuple(row), len(shapes)) for row in rows]
    names = list(dict.fromkeys(name for shape in shapes for name in shape))
    if any(type(each) is not str for each in names):
        raise NotStorable("an attribute name that is not a string")
    if len(shapes) > 1:
        file.add(f"{name}.shapes", np.array(codes, width(len(shapes))))
    columns: list[list[str]] = []
    if len(shapes) <= 1:
        for number, each in enumerate(names):
            columns.append(write_column(file, f"{name}.{number}", [row[each] for row in rows], None, len(rows)))
    else:
        found: dict[str, tuple[list[int], list[Any]]] = {each: ([], []) for each in names}
        for at, row in enumerate(rows):
            for each, value in row.items():
                places, values = found[each]
                places.append(at)
                values.append(value)
        for number, each in enumerate(names):
            places, values = found.pop(each)
            columns.append(write_column(file, f"{name}.{number}", values, np.array(places, np.int32), len(rows)))
    places_of = {each: number for number, each in enumerate(names)}
    return {
        "size": len(rows),
        "names": names,
        "columns": columns,
        "shapes": [[places_of[each] for each in shape] for shape in shapes],
    }


# Reading.


@define(eq=False)
class Part:
    """The values of one kind in a column. ``data`` are numbers or codes; ``rows`` are their rows (None: all rows)."""

    kind: str
    rows: Array | None
    data: Array | None
    stored: Texts | None

    @cached_property
    def values(self) -> list[Any]:
        """The distinct values, sorted by code. All readers share lists and objects, so they must not be changed."""
        assert self.stored is not None  # noqa: S101  # only these parts have codes
        return self.stored.all if self.kind == "texts" else [orjson.loads(text) for text in self.stored.all_raw()]

    def decoded(self, data: Array | None, many: int, fresh: bool = False) -> list[Any]:
        """Return the values of ``data``, which are ``many`` elements of ``self.data``. If ``fresh``, no value is shared."""
        if data is None:
            return [None] * many
        if self.kind in ("integers", "floats"):
            return data.tolist()  # type: ignore[no-any-return]  # a list, for the array has one dimension
        assert self.stored is not None  # noqa: S101  # as above
        if many * 8 < len(self.stored):  # few of many values: decode only these
            if self.kind == "texts":
                return [self.stored.raw(code).decode() for code in data.tolist()]
            return [orjson.loads(self.stored.raw(code)) for code in data.tolist()]
        if fresh and self.kind == "others":
            texts = self.stored.all_raw()
            return [orjson.loads(texts[code]) for code in data.tolist()]
        return list(map(self.values.__getitem__, data.tolist()))


@define(eq=False)
class StoredColumn:
    """A column that ``write_column`` wrote."""

    size: int
    parts: list[Part]

    @classmethod
    def of(cls, file: ArrayFile, name: str, kinds: Sequence[str], size: int) -> "StoredColumn":
        """Return the column ``name`` with the parts ``kinds``."""
        parts = []
        for kind in kinds:
            full = f"{name}.{kind}"
            rows = file.array(f"{full}.rows") if f"{full}.rows" in file else None
            data = None if kind == "null" else file.array(full)
            parts.append(Part(kind, rows, data, file.texts(f"{full}.values") if kind in ("texts", "others") else None))
        return cls(size, parts)

    def take(self, at: Array | None = None, fresh: bool = False) -> list[Any]:
        """Return the values of the rows ``at`` (None: all rows), with ``ABSENT`` for a row without a value.

        If ``fresh``, lists and objects are new for each row; otherwise they are shared and must not be changed.
        """
        many = self.size if at is None else len(at)
        found: list[Any] | None = None
        for part in self.parts:
            if part.rows is None:
                data = part.data if at is None or part.data is None else part.data[at]
                return part.decoded(data, many, fresh)
            if at is None:
                places: Array = part.rows
                inside: Any = slice(None)
            else:
                index = np.searchsorted(part.rows, at)
                index[index == len(part.rows)] = 0
                places = np.flatnonzero(part.rows[index] == at) if len(part.rows) else np.empty(0, np.int64)
                inside = index[places]
            if found is None:
                found = [ABSENT] * many
            values = part.decoded(None if part.data is None else part.data[inside], len(places), fresh)
            for place, value in zip(places.tolist(), values, strict=True):
                found[place] = value
        return [ABSENT] * many if found is None else found

    def numbers(self) -> tuple[NDArray[np.float64], bool | None] | None:
        """Return the numbers as floats, NaN for null or missing; None if there are other values.

        The second result is true if all numbers are integers, false if all are floats, and None if there are both.
        """
        kinds = {part.kind for part in self.parts}
        if not kinds <= {"integers", "floats", "null"} or not kinds & {"integers", "floats"}:
            return None
        values = np.full(self.size, np.nan)
        for part in self.parts:
            if part.data is not None:
                values[slice(None) if part.rows is None else part.rows] = part.data
        return values, None if {"integers", "floats"} <= kinds else "integers" in kinds

    def coded(self) -> tuple[Array, list[Any]] | None:
        """Return a code for each row (0: null or missing), and the values of codes 1, 2, ...; None for numbers or mixed values.

        The values are in the order of first occurrence.
        """
        kinds = {part.kind for part in self.parts} - {"null"}
        if len(kinds) != 1 or not kinds <= {"texts", "others"}:
            return None
        (part,) = (part for part in self.parts if part.kind in kinds)
        assert part.data is not None and part.stored is not None  # noqa: S101  # a part with codes
        # The largest code is the number of values, so the type must hold one more than the stored codes.
        codes = np.zeros(self.size, width(len(part.stored) + 1))
        codes[slice(None) if part.rows is None else part.rows] = part.data.astype(codes.dtype) + codes.dtype.type(1)
        return codes, part.values


@define(eq=False)
class Rows(Sequence[Mapping[str, Any]]):
    """The attributes of all rows. A row is decoded when it is read. See ``write_rows``."""

    size: int
    columns: dict[str, StoredColumn]
    shapes: list[list[str]]
    codes: Array | None
    _reads: int = 0
    _all: list[dict[str, Any]] | None = None

    @classmethod
    def of(cls, file: ArrayFile, name: str, about: Mapping[str, Any]) -> "Rows":
        """Return the rows of a file. ``about`` is the description that ``write_rows`` returned."""
        names, size = about["names"], about["size"]
        columns = {
            each: StoredColumn.of(file, f"{name}.{number}", about["columns"][number], size)
            for number, each in enumerate(names)
        }
        codes = file.array(f"{name}.shapes") if f"{name}.shapes" in file else None
        return cls(size, columns, [[names[at] for at in shape] for shape in about["shapes"]], codes)

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, at: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, at: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(at, slice):
            return self.take(np.arange(*at.indices(self.size)))
        if not -self.size <= at < self.size:
            raise IndexError("row index out of range")
        if self._all is not None:
            return self._all[at]
        self._reads += 1
        if self._reads * _FEW > self.size:  # decoding all rows takes less time than many single rows
            self._all = self.take(None)
            return self._all[at]
        return self.take(np.array([at % self.size]))[0]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for start in range(0, self.size, _BLOCK):
            yield from self.take(np.arange(start, min(start + _BLOCK, self.size)))

    def take(self, at: Array | None, fresh: bool = False) -> list[dict[str, Any]]:
        """Return the attributes of the rows ``at`` (None: all), each as a new dictionary. See ``StoredColumn.take`` for ``fresh``."""
        if self.codes is None:
            many = self.size if at is None else len(at)
            return self._of_shape(self.shapes[0] if self.shapes else [], at, many, fresh)
        codes = self.codes if at is None else self.codes[at]
        order = np.argsort(codes, kind="stable")
        found: list[Any] = [None] * len(codes)
        ordered = codes[order]
        for places in np.split(order, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1) if len(codes) else ():
            shape = self.shapes[int(codes[places[0]])]
            made = self._of_shape(shape, places if at is None else at[places], len(places), fresh)
            for place, row in zip(places.tolist(), made, strict=True):
                found[place] = row
        return found

    def _of_shape(self, shape: list[str], at: Array | None, many: int, fresh: bool) -> list[dict[str, Any]]:
        if not shape:
            return [{} for _ in range(many)]
        values = [self.columns[name].take(at, fresh) for name in shape]
        if len(shape) == 1:
            (name,) = shape
            return [{name: value} for value in values[0]]
        return [dict(zip(shape, row, strict=True)) for row in zip(*values, strict=True)]

    def names(self, at: Array | None = None) -> dict[str, None]:
        """Return the names of the attributes in the rows ``at`` (None: all rows), in the order of their first occurrence."""
        shapes: Any = self.shapes
        if at is not None and self.codes is not None:
            codes, first = np.unique(self.codes[at], return_index=True)
            shapes = [self.shapes[code] for code in codes[np.argsort(first)].tolist()]
        elif at is not None and not len(at):
            shapes = []
        return dict.fromkeys(name for shape in shapes for name in shape)

    def only(self, names: Iterable[str]) -> Iterator[dict[str, Any]]:
        """Yield each row with only the attributes ``names``."""
        found = [(name, self.columns[name].take()) for name in names if name in self.columns]
        for at in range(self.size):
            yield {name: values[at] for name, values in found if values[at] is not ABSENT}


@frozen(eq=False)
class RowView(Mapping[str, Any]):
    """A row of ``Rows`` that is decoded when it is read."""

    rows: Rows
    at: int

    def __getitem__(self, name: str) -> Any:
        return self.rows[self.at][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows[self.at])

    def __len__(self) -> int:
        return len(self.rows[self.at])
