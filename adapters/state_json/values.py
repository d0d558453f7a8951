"""JSON values at the door of the state: checked, copied and written once. Inside, a value is its text, which nobody can change.

An object in a DICT is a table of its own, so that a deep merge costs what is merged. All else is JSON text, its keys in the
order in which they came.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import orjson

from ..state import Evidence, StateError
from .log.codec import encode_to_keep, encoded_copy
from .persistent import Table

__all__ = [
    "Field", "added", "as_fragment", "as_text", "evidence_text", "field_of", "joined", "number", "parsed", "plain",
    "texts_of", "whole_copy", "whole_text",
]  # fmt: skip

Field: TypeAlias = "bytes | Table"
"""A DICT's field: JSON text, or a table where it is an object."""

_LARGEST, _SMALLEST = 2**63 - 1, -(2**63)


def whole_text(what: str, value: Any) -> bytes:
    """Return a value from outside as JSON text. Raises ``StateError`` naming the place, for what is no JSON.

    It may be two levels less deep than the codec allows: a record of the journal puts it into a list in an object.
    """
    return whole_copy(what, value)[0]


def whole_copy(what: str, value: Any) -> tuple[bytes, Any]:
    """Return what ``whole_text`` gives, and the value of that text, which nobody else holds. Raises ``StateError`` as it does."""
    try:
        text, copy = encoded_copy([[value]])
        return text[2:-2], copy[0][0]
    except ValueError as error:
        place = str(error).replace("$[0][0]", "$", 1)
        raise StateError(f"{what} can't be kept: {place}", status="schema_mismatch") from None


def as_text(value: Any) -> bytes:
    """Return a value as text that comes from a text, so was checked."""
    return encode_to_keep(value)


def parsed(text: bytes) -> Any:
    """Return the value of a text, new each time."""
    return orjson.loads(text)


def evidence_text(evidence: Evidence) -> bytes:
    """Return a checked piece of evidence as canonical JSON text."""
    return encode_to_keep(evidence, sort_keys=True)


def field_of(value: Any) -> Field:
    """Return a checked value as a DICT keeps it."""
    if isinstance(value, dict):
        return Table.of({name: field_of(part) for name, part in value.items()})
    return as_text(value)


def plain(value: Any) -> Any:
    """Return the JSON value of what a DICT or a COUNTER keeps, new each time."""
    if isinstance(value, Table):
        return {name: plain(part) for name, part in value.items()}
    return parsed(value) if isinstance(value, bytes) else value


def joined(texts: Iterable[bytes]) -> bytes:
    """Return texts as the text of a list."""
    return b"[%b]" % b",".join(texts)


def as_fragment(value: Any) -> Any:
    """Return what a DICT or a COUNTER keeps as ``as_text`` takes it, without reading the texts."""
    if isinstance(value, Table):
        return {name: as_fragment(part) for name, part in value.items()}
    return orjson.Fragment(value) if isinstance(value, bytes) else value


def number(value: Any) -> bool:
    """Say whether a value is a number. True and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def added(one: float, other: float) -> float | None:
    """Return the sum; None where it is an integer beyond 64 bits or no finite number."""
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
