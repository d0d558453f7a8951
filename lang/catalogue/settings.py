"""The settings that ``SET`` may change for a plan: their keys, kinds and ranges. See ``docs/design/gasl.md#execution``.

The host sets the ceiling of the caps; the limits in this module always apply.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from attrs import frozen


@frozen
class Setting:
    """A key of ``SET``. ``minimum`` and ``maximum`` bound a number, both inclusive; a text has neither."""

    key: str
    kind: Literal["int", "float", "text"]
    minimum: float | None
    maximum: float | None
    doc: str


SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        setting.key: setting
        for setting in (
            Setting("adapter.caps.max_path_length", "int", 1, 100, "Edges of the longest path that is looked for."),
            Setting("adapter.caps.max_results", "int", 1, 100_000_000, "Nodes or edges that a command may find."),
            Setting("adapter.caps.max_paths", "int", 1, 100_000_000, "Paths that a command may find."),
            Setting("adapter.caps.timeout_s", "float", 0.001, 86_400, "Seconds that a command may search."),
            Setting("llm.model", "text", None, None, "A model that the host offers under this name."),
            Setting("llm.temperature", "float", 0, 2, "Sampling temperature."),
            Setting("llm.max_concurrency", "int", 1, 1000, "Model calls under way at once."),
            Setting("llm.max_tokens", "int", 1, 1_000_000, "The most tokens that an answer may have."),
        )
    }
)
"""Every key that SET accepts."""


def fault_of(setting: Setting, value: Any) -> str | None:
    """Return why ``value`` is invalid for ``setting``, as a clause ("takes a whole number, not a text"), or None."""
    if setting.kind == "text":
        if not isinstance(value, str):
            return f"takes a text, not {_kind(value)}"
        return None if value.strip() else "takes a text that is not empty"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"takes {_NUMBERS[setting.kind]}, not {_kind(value)}"
    if setting.kind == "int" and not isinstance(value, int):
        return f"takes a whole number, not {value}"
    low, high = setting.minimum, setting.maximum
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        return f"takes {_NUMBERS[setting.kind]} of at least {low:,} and at most {high:,}, not {value}"
    return None


_NUMBERS = {"int": "a whole number", "float": "a number"}


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    return "a text" if isinstance(value, str) else "a number" if isinstance(value, int | float) else "a list or object"
