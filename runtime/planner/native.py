"""The tools as a model's own means of calling them take them."""

from typing import Any

from .tools import PARAMETERS

__all__ = ["TOOLS"]

_ABOUT = {
    "done": "Finish: the script is complete.",
    "lwt_list": "Show the current steps with their indices.",
    "lwt_insert": "Add a step before the one at idx, or at the end.",
    "lwt_set": "Replace the step at idx.",
    "lwt_delete": "Remove the step at idx.",
    "read": 'Get the data at a path such as items[5].item_data or items[5]["a b"].',
}
_SCHEMAS: dict[type, dict[str, Any]] = {int: {"type": "integer", "minimum": 0}, str: {"type": "string"}}

TOOLS: tuple[dict[str, Any], ...] = tuple(
    {
        "name": name,
        "description": _ABOUT[name],
        "parameters": {
            "type": "object",
            "properties": {parameter: _SCHEMAS[kind] for parameter, kind in parameters},
            "required": [parameter for parameter, _ in parameters],
            "additionalProperties": False,
        },
    }
    for name, parameters in PARAMETERS.items()
)
"""As the port's option ``tools`` has them."""
