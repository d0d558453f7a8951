"""Values made fit for JSON, UTF-8 and 64 bits, which is what the state and the models take."""

import math
from typing import Any

from .jsonable import item_value, node_id

__all__ = ["LARGEST", "digits", "fit_id", "fit_text", "is_fit", "json_value"]

LARGEST = 2**63 - 1
_DEEPEST = 200


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
    if depth > _DEEPEST:
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
