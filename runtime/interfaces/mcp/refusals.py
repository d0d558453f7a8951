"""How a call of a tool fails in a way that its caller can act on: a kind, a sentence, a hint, and diagnostics where there are any."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from ....lang.diagnostic import nearest, printable

__all__ = ["Refused", "of_arguments"]

_FAULTS = 20
_LONGEST = 200


class Refused(Exception):
    """A call that can't be done. ``kind`` stays the same for all of its kind; ``members`` are further members of the error."""

    def __init__(self, kind: str, message: str, hint: str = "", **members: Any) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint
        self.members = members

    def as_json(self) -> dict[str, Any]:
        """Return the error as a JSON object."""
        return {"kind": self.kind, "message": self.message, "hint": self.hint, **self.members}


def of_arguments(error: ValidationError, model: type[BaseModel]) -> Refused:
    """Return the refusal of arguments that don't fit ``model``: each fault with its JSON pointer."""
    faults = [_told(fault, model) for fault in error.errors(include_url=False, include_input=False)[:_FAULTS]]
    first = faults[0]
    name = first["pointer"].removeprefix("/") or "the arguments"
    return Refused("arguments", f"{name}: {first['message']}", first.get("hint", ""), faults=faults)


def _told(fault: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    path: Sequence[Any] = fault["loc"]
    told: dict[str, Any] = {
        "pointer": "".join(f"/{printable(str(part))[:80]}" for part in path),
        "message": _said(fault),
    }
    if fault["type"] == "extra_forbidden" and len(path) == 1:
        names = list(model.model_fields)
        like = nearest(str(path[0]), names)
        told["hint"] = (
            f"did you mean {like}?" if like else f"there are: {', '.join(names)}" if names else "it takes none"
        )
    return told


_SAYINGS = {"missing": "it is missing", "extra_forbidden": "there is no such argument"}


def _said(fault: Mapping[str, Any]) -> str:
    if known := _SAYINGS.get(fault["type"]):
        return known
    text = str(fault["msg"]).removeprefix("Input ")[:_LONGEST]
    return f"it {text}" if text.startswith("should") else text[:1].lower() + text[1:]
