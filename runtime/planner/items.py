"""The items of a ranking as they are given: a list, or an object with one; what is none is refused."""

from collections.abc import Mapping
from typing import Any

from ..refusals import RequestError

__all__ = ["MOST_ITEMS", "Data", "read_items"]

MOST_ITEMS = 2_000
"""Items of one ranking; more do not fit a prompt."""
_FORM = 'items are a JSON list, or {"items": [...]}'

Data = Mapping[str, Any]
"""What scripts and ``read`` see as the input: ``items``, ``request``, and what else stood beside the items."""


def read_items(given: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the items of a JSON value, and what stands beside them: a list, or an object with ``items``. Raises ``RequestError``."""
    beside: dict[str, Any] = {}
    items = given
    if isinstance(given, Mapping):
        if "items" not in given:
            raise RequestError("items", "the object has no items", _FORM)
        beside = {str(name): value for name, value in given.items() if name not in ("items", "request")}
        items = given["items"]
    if not isinstance(items, list | tuple):
        raise RequestError("items", f"a list of items is wanted, not {_called(items)}", _FORM)
    if not items:
        raise RequestError("items", "there are none to rank", _FORM)
    if len(items) > MOST_ITEMS:
        raise RequestError(
            "items", f"{len(items):,} are too many", f"at most {MOST_ITEMS:,}; leave some out beforehand"
        )
    return list(items), beside


def _called(value: Any) -> str:
    """Return what a value that is no list is called by those who write JSON."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    kinds = ((str, "a text"), (Mapping, "an object"), (int | float, "a number"))
    return next((name for kind, name in kinds if isinstance(value, kind)), type(value).__name__)
