"""The JSON codec for the journal and snapshots: a value is read back exactly as it was written, or refused when it is encoded.

orjson alone would write NaN as null, accept integers up to 2^64, read larger integers as floats, and write dates and UUIDs as
strings. Therefore encoded text is decoded again and compared with the value, which is fast. Only if they differ is the value
searched for the path of the difference.
"""

import json
from typing import Any

import orjson

DEPTH = 200
"""Maximum nesting of lists and objects."""

_ORJSON_DEPTH = 254  # orjson's own nesting limit for writing; verified by a test
_OPEN = b"[" * (_ORJSON_DEPTH - DEPTH)
_OPTIONS = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
_KEPT = _OPTIONS | orjson.OPT_APPEND_NEWLINE
_KEPT_SORTED = _KEPT | orjson.OPT_SORT_KEYS
_LARGEST = 2**63 - 1
_SMALLEST = -(2**63)
_DIGITS_ALIKE = bytes(0x30 if 0x30 <= byte <= 0x39 else 0x20 for byte in range(256))
_LONG = b"0" * 19  # digits of the smallest integer that may be beyond 64 bits


def encode(value: Any) -> bytes:
    """Return the value as compact JSON. Raises ``ValueError`` with the JSON path.

    These are refused: NaN and infinities, integers beyond signed 64 bits, lone surrogates, keys that are not strings, more than 200 nested
    levels, and all values that are not JSON. A tuple is written as a list.
    """
    return encoded_copy(value)[0]


def encoded_copy(value: Any) -> tuple[bytes, Any]:
    """Return the result of ``encode``, and the value decoded from it, because the check in ``encode`` decodes it anyway."""
    wrapped = value
    for _ in _OPEN:  # reduces orjson's nesting limit to ``DEPTH``
        wrapped = [wrapped]
    try:
        written = orjson.dumps(wrapped, option=_OPTIONS)[len(_OPEN) : -len(_OPEN)]
    except TypeError as error:
        _walk(value)
        raise ValueError(f"it is not JSON: {error}") from None
    copy = orjson.loads(written)
    if _has_long_number(written) or copy != value:
        _walk(value)
    return written, copy


def encode_again(value: Any) -> bytes:
    """Return compact JSON of a value whose parts passed ``encode`` or ``decode``, in a third of the time of ``encode``."""
    return orjson.dumps(value, option=_OPTIONS)


def encode_to_keep(value: Any, *, sort_keys: bool = False) -> bytes:
    """Return the result of ``encode_again`` as a ``bytes`` object of exact size.

    orjson writes into a larger block of memory and then shrinks it, which leaves a hole after each stored string: a small
    string would take a page of memory. Therefore a slice is returned, which is a copy.
    """
    return orjson.dumps(value, option=_KEPT_SORTED if sort_keys else _KEPT)[:-1]


def decode(written: bytes) -> Any:
    """Return the decoded value. Raises ``ValueError``, also for integers beyond signed 64 bits."""
    value = orjson.loads(written)
    if _has_long_number(written):
        json.loads(written, parse_int=_bounded)  # raises for larger integers, which orjson reads as floats
    return value


def _has_long_number(written: bytes) -> bool:
    return _LONG in written.translate(_DIGITS_ALIKE)  # ten times faster than a regular expression


def _bounded(digits: str) -> int:
    if len(digits) > 20 or not _SMALLEST <= int(digits) <= _LARGEST:
        raise ValueError("an integer is beyond 64 bits")
    return 0


def _walk(value: Any) -> None:
    """Raise ``ValueError`` for the first part that is not JSON. The search is depth-first, so a cycle reaches the limit."""
    waiting: list[tuple[Any, tuple[str | int, ...]]] = [(value, ())]
    while waiting:
        item, path = waiting.pop()
        if type(item) is dict or type(item) is list or type(item) is tuple:
            if len(path) >= DEPTH:
                raise ValueError(f"{_place(path)} is nested deeper than {DEPTH} levels")
            if type(item) is dict:
                for key in item:
                    _check_key(key, path)
                waiting.extend((part, (*path, key)) for key, part in reversed(item.items()))
            else:
                waiting.extend((item[index], (*path, index)) for index in range(len(item) - 1, -1, -1))
        else:
            _check_leaf(item, path)


def _check_key(key: Any, path: tuple[str | int, ...]) -> None:
    if type(key) is not str:
        raise ValueError(f"{_place(path)} has a key that is not a string: {str(key)[:40]!r}")
    if _surrogate(key):
        raise ValueError(f"{_place(path)} has a key with a lone surrogate: {ascii(key)[:60]}")


def _check_leaf(item: Any, path: tuple[str | int, ...]) -> None:
    kind = type(item)
    if item is None or kind is bool:
        return
    if kind is int:
        if not _SMALLEST <= item <= _LARGEST:
            raise ValueError(f"{_place(path)} is an integer beyond 64 bits")
    elif kind is float:
        if not item - item == 0:  # not 0 for NaN and infinities
            raise ValueError(f"{_place(path)} is {item}, which JSON can't represent")
    elif kind is str:
        if _surrogate(item):
            raise ValueError(f"{_place(path)} has a lone surrogate, which is not valid text")
    else:
        raise ValueError(f"{_place(path)} is a {kind.__name__}, which JSON can't represent")


def _surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _place(path: tuple[str | int, ...]) -> str:
    """Return the JSON path, such as ``$.authors[3].name``. If the path is long, return only its end."""
    shown = "".join(f"[{part}]" if isinstance(part, int) else _step(part) for part in path[-8:])
    return f"${'...' if len(path) > 8 else ''}{shown}"


def _step(key: str) -> str:
    return f".{key}" if key.isidentifier() else f"[{json.dumps(key[:60])}]"
