"""JSON values entering the state: checked, copied and serialised once. Inside, a value is its text, which is immutable.

An object in a DICT is a separate table, so that a deep merge costs only what is merged. Everything else is JSON text, with its
keys in the original order.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import orjson

from ..state import Evidence, StateError
from .log.codec import encode_to_keep, encoded_copy
from .persistent import Table

Field: TypeAlias = "bytes | Table"
"""A DICT's field: JSON text, or a table if it is an object."""

_LARGEST, _SMALLEST = 2**63 - 1, -(2**63)


def whole_text(what: str, value: Any) -> bytes:
    """Return an external value as JSON text. Raises ``StateError`` with the place if it is not JSON.

    Its nesting limit is two levels below the codec's: a journal record wraps it in a list in an object.
    """
    return whole_copy(what, value)[0]


def whole_copy(what: str, value: Any) -> tuple[bytes, Any]:
    """Return the result of ``whole_text``, and the value of that text, not shared with the caller. Raises ``StateError``."""
    try:
        text, copy = encoded_copy([[value]])
        return text[2:-2], copy[0][0]
    except ValueError as error:
        place = str(error).replace("$[0][0]", "$", 1)
        raise StateError(f"{what} can't be kept: {place}", status="schema_mismatch") from None


def as_text(value: Any) -> bytes:
    """Return a value as text; the value comes from a text, so it has been checked."""
    return encode_to_keep(value)


def parsed(text: bytes) -> Any:
    """Return the value of a text, a new object each time."""
    return orjson.loads(text)


def evidence_text(evidence: Evidence) -> bytes:
    """Return a checked piece of evidence as canonical JSON text."""
    return encode_to_keep(evidence, sort_keys=True)


def field_of(value: Any) -> Field:
    """Return a checked value in the form stored in a DICT."""
    if isinstance(value, dict):
        return Table.of({name: field_of(part) for name, part in value.items()})
    return as_text(value)


def plain(value: Any) -> Any:
    """Return the JSON value of the content of a DICT or a COUNTER, a new object each time."""
    if isinstance(value, Table):
        return {name: plain(part) for name, part in value.items()}
    return parsed(value) if isinstance(value, bytes) else value


def joined(texts: Iterable[bytes]) -> bytes:
    """Return texts joined as the text of a list."""
    return b"[%b]" % b",".join(texts)


def as_fragment(value: Any) -> Any:
    """Return the content of a DICT or a COUNTER as ``as_text`` accepts it, without parsing the texts."""
    if isinstance(value, Table):
        return {name: as_fragment(part) for name, part in value.items()}
    return orjson.Fragment(value) if isinstance(value, bytes) else value


def number(value: Any) -> bool:
    """Return whether a value is a number. True and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def added(one: float, other: float) -> float | None:
    """Return the sum; None if it is an integer beyond 64 bits or not a finite number."""
    try:
        total = one + other
    except OverflowError:
        return None
    if isinstance(total, int):
        return total if _SMALLEST <= total <= _LARGEST else None
    return total if total - total == 0 else None


def texts_of(values: Sequence[Any]) -> list[bytes]:
    """Return checked values as texts."""
    return [encode_to_keep(value) for value in values]
