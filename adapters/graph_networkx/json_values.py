"""JSON values of what a NetworkX graph may hold: numpy scalars, tuples, sets, dates, ids that are neither text nor number.

| in the graph | in an item |
|---|---|
| NumPy scalars and arrays | the number, text, boolean or list that they are |
| tuples; sets | lists; a set's in a fixed order |
| dates, times | text, ISO 8601 |
| enumerations; decimals, fractions | their value; a float |
| bytes | text, what is no UTF-8 escaped |
| NaN; an infinity | null; in conditions an infinity is the number that it is |
| mappings | objects, their keys as text |
| anything else | its ``str()`` |
"""

import math
from collections.abc import Mapping, Set
from typing import Any

from ..graph import AdapterError, NodeId

__all__ = ["LARGEST", "digits", "fit_id", "fit_text", "is_fit", "item_value", "json_value", "node_id", "plain"]

_SIMPLE = frozenset({str, int, bool, type(None)})
_DEEPEST = 200


def plain(value: Any, depth: int = 0) -> Any:
    """Return ``value`` as a JSON value (an infinity stays), new where it is a container.

    Raises ``AdapterError`` where it nests more than 200 levels deep.
    """
    kind = value.__class__
    if kind in _SIMPLE:
        return value
    if kind is float:
        return value if value == value else None
    if depth > _DEEPEST:
        raise AdapterError(f"an attribute nests more than {_DEEPEST} levels deep")
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    return _other(value, depth)


def _other(value: Any, depth: int) -> Any:
    import datetime
    import decimal
    import enum
    import fractions

    if type(value).__module__ == "numpy":
        return plain(value.tolist(), depth + 1)
    if isinstance(value, Set):
        from ...lang.evaluate.conditions import sort_key

        return sorted((plain(item, depth + 1) for item in value), key=sort_key)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, enum.Enum):
        return plain(value.value, depth + 1)
    if isinstance(value, decimal.Decimal | fractions.Fraction):
        return plain(float(value), depth + 1)
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "backslashreplace")
    for simple in (bool, int, float, str):
        if isinstance(value, simple):
            return simple(value)
    return str(value)


def item_value(value: Any) -> Any:
    """Return ``value`` as an item shows it: ``plain``, an infinity as null, since JSON has none."""
    kind = value.__class__
    if kind in _SIMPLE:
        return value
    shown = plain(value)
    return _finite(shown) if shown.__class__ in (float, list, dict) else shown


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return value


def node_id(node: Any) -> NodeId:
    """Return the id that items show for a node of the graph: a text or an integer as it is, all else as text."""
    if node.__class__ is str or node.__class__ is int:
        return node
    if type(node).__module__ == "numpy":
        return node_id(node.item())
    return str(node)


# Values made fit for JSON, UTF-8 and 64 bits, which is what the state and the models take.


LARGEST = 2**63 - 1
_FITTING_DEEPEST = 200


def fit_id(node: Any) -> str | int:
    """Return the id that a node, or the key of an edge, has outside: a text or an integer of 64 bits."""
    shown = node_id(node)
    if isinstance(shown, str):
        return fit_text(shown)
    return shown if abs(shown) <= LARGEST else digits(shown)


def is_fit(value: Any) -> bool:
    """Say whether a value is a scalar of JSON as it stands."""
    kind = type(value)
    if kind is str:
        return bool(value.isascii() or fit_text(value) is value)
    if kind is int:
        return bool(-LARGEST - 1 <= value <= LARGEST)
    if kind is float:
        return math.isfinite(value)
    if kind is list or kind is dict:
        return _fits(value)
    return kind is bool or value is None


def _fits(value: Any, depth: int = 0) -> bool:
    if depth > _FITTING_DEEPEST:
        return False
    if type(value) is list:
        return all(_fits(item, depth + 1) for item in value)
    if type(value) is dict:
        return all(type(name) is str and is_fit(name) and _fits(item, depth + 1) for name, item in value.items())
    return is_fit(value)


def fit_text(text: str) -> str:
    """Return ``text`` itself where UTF-8 can write it, else with its lone surrogates replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def json_value(value: Any) -> Any:
    """Return ``value`` as JSON and UTF-8 can hold it: as items show it, integers past 64 bits as text, lone surrogates replaced."""
    return _bounded(item_value(value))


def _bounded(value: Any) -> Any:
    if isinstance(value, str):
        return fit_text(value)
    if isinstance(value, list):
        return [_bounded(item) for item in value]
    if isinstance(value, dict):
        return {fit_text(name): _bounded(item) for name, item in value.items()}
    if type(value) is int and not -LARGEST - 1 <= value <= LARGEST:
        return digits(value)
    return value


def digits(value: int) -> str:
    """Return an integer as text: in decimal while Python writes that, else in hexadecimal."""
    return str(value) if value.bit_length() <= 4000 else hex(value)
