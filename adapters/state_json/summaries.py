"""A bounded look at a state, for prompts and people: however large it is, what is shown is not."""

from collections.abc import Sequence
from typing import Any

from .snapshot import JSONSnapshot

__all__ = ["bounded", "summary"]

_SAMPLE = 3
_TEXT = 200
_PARTS = 12
_LEVELS = 3


def summary(snapshot: JSONSnapshot, keys: Sequence[str] | None) -> dict[str, Any]:
    """Return ``{key: {"type", "size", "description", "incomplete"?, "sample"}}`` of the keys, else of all. Raises ``StateError``."""
    declared = snapshot.declared() if keys is None else [snapshot.declared(key)[0] for key in keys]
    return {
        each.key: {
            "type": each.type,
            "size": each.size,
            "description": each.description,
            **({"incomplete": list(each.incomplete)} if each.incomplete else {}),
            "sample": [bounded(item) for item in snapshot.sample(each.key, _SAMPLE)[1]],
        }
        for each in declared
    }


def bounded(value: Any, levels: int = _LEVELS) -> Any:
    """Return a value with long texts cut, and of lists and objects the first parts; "…" stands where something is left out."""
    if isinstance(value, str):
        return value if len(value) <= _TEXT else f"{value[:_TEXT]}…"
    if isinstance(value, list):
        if not levels:
            return "…" if value else []
        return [bounded(part, levels - 1) for part in value[:_PARTS]] + (["…"] if len(value) > _PARTS else [])
    if isinstance(value, dict):
        if not levels:
            return "…" if value else {}
        shown = {bounded(name, 0): bounded(part, levels - 1) for name, part in list(value.items())[:_PARTS]}
        return shown | ({"…": len(value) - _PARTS} if len(value) > _PARTS else {})
    return value
