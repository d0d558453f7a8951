"""Fields of items: reading one by its dotted name, and refusing one that no item has."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from ...lang.diagnostic import nearest
from ...lang.trees.gasl import Path
from .bindings import Refused, Rows, listed

__all__ = ["MISSING", "check_field", "column", "read"]

MISSING = object()
"""What ``read`` gives where an item has no such field."""

_OFFERED = 30
"""Fields that a hint lists at most."""
_NAMED_FROM = 1_000
"""Items whose fields are offered when one is not found."""


def read(item: Any, parts: Sequence[str]) -> Any:
    """Return an item's field, or ``MISSING``. A field whose name is the rest of the path with its dots wins."""
    for at, name in enumerate(parts):
        if not isinstance(item, dict):
            return MISSING
        whole = ".".join(parts[at:])
        if whole in item:
            return item[whole]
        if name not in item:
            return MISSING
        item = item[name]
    return item


def column(rows: Rows, path: Path) -> list[Any]:
    """Return the field of every item, None where it is null or missing; refuse a field that no item has."""
    if len(path.parts) == 1:
        name = path.parts[0]
        values = [item.get(name, MISSING) if isinstance(item, dict) else MISSING for item in rows.items]
    else:
        values = [read(item, path.parts) for item in rows.items]
    if values and all(value is MISSING for value in values):
        raise _unknown(rows, path)
    return [None if value is MISSING or value != value else value for value in values]


def check_field(rows: Rows, path: Path) -> None:
    """Refuse a field that no item has. Of no items nothing is known."""
    if rows.items and all(read(item, path.parts) is MISSING for item in rows.items):
        raise _unknown(rows, path)


def _unknown(rows: Rows, path: Path) -> Refused:
    names = list(_names(islice(rows.items, _NAMED_FROM)))
    like = nearest(path.text, names)
    hint = f"there are: {listed(names, _OFFERED)}" if names else "they are not objects"
    if like:
        hint = f"did you mean {like}? {hint}"
    return Refused("schema_mismatch", f"no item of {rows.name} has a field {path.text}", hint)


def _names(items: Iterable[Any]) -> dict[str, None]:
    """Return the names of fields, nested ones with their dots, two levels deep."""
    names: dict[str, None] = {}
    for item in items:
        if isinstance(item, dict):
            for name, value in item.items():
                names[name] = None
                if isinstance(value, dict):
                    names.update((f"{name}.{inner}", None) for inner in islice(value, 50))
    return names
