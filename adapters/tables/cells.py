"""Converts cells to JSON values.

Dates become ISO texts, NaN becomes null, and decimals become numbers if the conversion is exact, otherwise texts. Binary data
becomes an object with its number of bytes.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import filterfalse
from typing import Any

import orjson

from .port import Column, ColumnType, check_width

OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_SUBCLASS
BLOB = "\0blob"
"""Binary data is written as an object with this key; the value is the number of bytes."""
_SAME = {str, int, float, bool, type(None)}
"""Types whose values are JSON values, apart from NaN, infinities, integers beyond 64 bits and halves of surrogate pairs."""
_INT = re.compile(r"[+-]?[0-9]{1,18}")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_BOOLS: Mapping[str, bool] = {"true": True, "false": False}


def json_row(row: Sequence[Any]) -> bytes:
    """Return a row as a JSON list. Raises ``TypeError`` for a value that JSON can't represent, such as half a surrogate pair."""
    try:
        return orjson.dumps(row, json_value, OPTIONS)
    except TypeError:  # perhaps a whole number of more than 64 bits, which is passed on as text
        return orjson.dumps(_wide(row), json_value, OPTIONS)


def json_rows(first: int, rows: Sequence[Sequence[Any]]) -> list[bytes]:
    """Return ``[number, row]`` as JSON for each row, numbered from ``first``. Raises ``TypeError``, like ``json_row``."""
    dumps = orjson.dumps
    try:
        return [dumps(pair, json_value, OPTIONS) for pair in enumerate(rows, first)]
    except TypeError:
        return [json_row(pair) for pair in enumerate(rows, first)]


def json_cells(cells: Sequence[Any]) -> Sequence[Any]:
    """Return the cells of a column as JSON values: ``cells`` itself if all are JSON values already.

    Raises ``TypeError`` and ``ValueError`` for a value that JSON can't represent, and ``RecursionError``.
    """
    kinds = set(map(type, cells))
    if kinds <= _SAME and _are_same(cells, kinds):
        return cells
    made: list[Any] = orjson.loads(json_row(cells))
    return made


def _are_same(cells: Sequence[Any], kinds: set[type]) -> bool:
    """Return whether the cells, which have the types ``kinds``, are equal to the values read back from their JSON."""
    if str in kinds:
        for text in filterfalse(str.isascii, _of_type(cells, kinds, str)):
            text.encode()  # raises UnicodeEncodeError for half a surrogate pair
    if int in kinds:
        numbers = _of_type(cells, kinds, int)
        if min(numbers) < -(2**63) or max(numbers) >= 2**64:
            return False
    return float not in kinds or all(map(math.isfinite, _of_type(cells, kinds, float)))


def _of_type(cells: Sequence[Any], kinds: set[type], kind: type) -> Sequence[Any]:
    return cells if len(kinds) == 1 else [cell for cell in cells if type(cell) is kind]


def json_value(value: Any) -> Any:
    """Convert a value that orjson can't write to one that it can. Raises ``TypeError`` if that is impossible."""
    if isinstance(value, Decimal):
        return number_of(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return {BLOB: len(value)}
    if isinstance(value, str):  # a subclass of str, such as numpy's
        return str(value)
    name = type(value).__name__
    if name in ("NaTType", "NAType") or (isinstance(value, float) and math.isnan(value)):
        return None
    if (item := getattr(value, "item", None)) is not None and type(value).__module__ == "numpy":
        return item()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple | list | Sequence):
        return list(value)
    if (iso := getattr(value, "isoformat", None)) is not None:
        return iso()
    if isinstance(value, bool | int | float):
        return value.__class__.__mro__[-2](value)
    if name in ("timedelta", "Timedelta", "Interval", "Period"):
        return str(value)
    raise TypeError(f"a {name} is not a JSON value")


def number_of(value: Decimal) -> float | int | str | None:
    """Return a decimal as a number if that keeps its value exactly, otherwise as text. NaN and infinities become null."""
    if not value.is_finite():
        return None
    if value == value.to_integral_value() and abs(value) < 2**53:
        return float(value)
    number = float(value)
    return number if Decimal(repr(number)) == value else str(value)


def _wide(value: Any) -> Any:
    """Return the value with integers beyond 64 bits converted to texts."""
    if isinstance(value, list | tuple):
        return [_wide(each) for each in value]
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return str(value)
    return value


def typed(value: Any, kind: str) -> Any:
    """Convert the text of a cell to ``kind``: int, float, number, bool, text, list or json.

    Return it unchanged if it can't be converted.

    An empty text becomes null, except for kind "text". Values that are not texts are returned unchanged.
    """
    if type(value) is not str or kind == "text":
        return value
    text = value.strip()
    if not text:
        return None
    if kind in ("int", "number") and _INT.fullmatch(text):
        return int(text)
    if kind in ("float", "number") and _FLOAT.fullmatch(text):
        return number if math.isfinite(number := float(text)) else value
    if kind == "bool":
        return _BOOLS.get(text.lower(), value)
    if kind in ("list", "json"):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return value
    return value


def text_of(value: Any) -> str:
    """Return a JSON value as text: texts unchanged, null as "", all others as JSON writes them."""
    return value if isinstance(value, str) else "" if value is None else orjson.dumps(value).decode()


def is_nested(column: Column) -> bool:
    """Return whether the values of a column are lists or objects."""
    return column.type in ("json", "list")


_TYPES: Mapping[type, ColumnType] = {str: "text", int: "int", float: "float", bool: "bool", list: "list", dict: "json"}


def column_types(rows: Iterable[Mapping[str, Any]]) -> dict[str, ColumnType]:
    """Return the keys of JSON objects in the order of their appearance, with the type of their values ("json" for mixed types)."""
    found: dict[str, set[type]] = {}
    for row in rows:
        for key, value in row.items():
            if key in found:
                found[key].add(type(value))
            else:
                found[key] = {type(value)}
                check_width(len(found), "the table")
    return {key: _type(kinds - {type(None)}) for key, kinds in found.items()}


def _type(kinds: set[type]) -> ColumnType:
    if kinds == {int, float}:
        return "float"
    return _TYPES.get(next(iter(kinds)), "other") if len(kinds) == 1 else "json" if kinds else "text"
