"""The items as the planner's prompt shows them: a line each, short values first, long ones only named. Seed 001, "Phase 1: Planning"."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..commands.excerpts import excerpt
from ..refusals import RequestError

__all__ = ["MOST_ITEMS", "Data", "compact", "read_items"]

MOST_ITEMS = 2_000
"""Items of one ranking; more do not fit a prompt."""
_ALL = 60_000
"""Characters that all items together take in a prompt."""
_ONE = (60, 1_200)
"""The fewest and the most characters of one item."""
_SHORT = 120
"""Characters of a text that is shown as it is."""

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


def compact(items: Sequence[Any]) -> str:
    """Return a line for each item, ``[index] {...}``: at most about 60,000 characters, each item its share of them."""
    least, most = _ONE
    share = max(least, min(most, _ALL // len(items) - 8))
    return "\n".join(f"[{index}] {excerpt(_brief(item), share)}" for index, item in enumerate(items))


def _brief(item: Any) -> Any:
    """Return an item with what is short before what is long; lists of records and long texts are only named."""
    if not isinstance(item, Mapping):
        return item
    short, rest = {}, {}
    for key, value in item.items():
        if isinstance(value, str) and len(value) > _SHORT:
            rest[key] = f"{value[:_SHORT]}… [text of {len(value):,} characters]"
        elif isinstance(value, list | tuple) and any(isinstance(each, Mapping | list | tuple) for each in value):
            rest[key] = f"[list of {len(value):,}]"
        else:
            short[key] = value
    return {**short, **rest}
