"""Errors of tool calls.

Each error has a kind, a message, a hint, and further members such as faults, so the caller can act on it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from ....lang.diagnostic import nearest, printable

Kind = Literal["arguments", "not-found", "no-graph", "state", "busy", "internal"]
"""The kinds of errors. The names of the kinds do not change between versions."""

_FAULTS = 20
_LONGEST = 1_000


class ToolError(Exception):
    """Raised to refuse a call. ``members`` are further members of the error's JSON object.

    Control characters in the message and the hint are escaped, and long strings are cut.
    """

    def __init__(self, kind: Kind, message: str, hint: str = "", **members: Any) -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.message = printable(message)[:_LONGEST]
        self.hint = printable(hint)[:_LONGEST]
        self.members = members

    def as_json(self) -> dict[str, Any]:
        """Return the error as a JSON object."""
        return {"kind": self.kind, "message": self.message, "hint": self.hint, **self.members}


def argument_error(error: ValidationError, model: type[BaseModel]) -> ToolError:
    """Return the error for arguments that don't match ``model``. The error lists the faults with their JSON pointers."""
    faults_by_pointer: dict[str, dict[str, Any]] = {}
    kind_of: dict[str, str] = {}
    found: Sequence[Mapping[str, Any]] = error.errors(include_url=False)
    for fault in found:
        place = _place(fault["loc"], model)
        pointer = "".join(f"/{printable(str(part))[:80]}" for part in place)
        if pointer in kind_of:  # pydantic reports one fault for each form that an argument may have
            if kind_of[pointer] in _WANTED:  # otherwise the argument has the first form, and a fault inside this form
                faults_by_pointer[pointer] = {"pointer": pointer, "message": _form_message(fault)}
        elif len(faults_by_pointer) < _FAULTS:
            faults_by_pointer[pointer], kind_of[pointer] = (
                {"pointer": pointer, "message": _fault_message(fault)},
                fault["type"],
            )
            if fault["type"] == "extra_forbidden" and len(place) == 1:
                faults_by_pointer[pointer]["hint"] = _argument_hint(str(place[0]), found, model)
    first = next(iter(faults_by_pointer.values()))
    name = first["pointer"].removeprefix("/") or "the arguments"
    return ToolError(
        "arguments", f"{name}: {first['message']}", first.get("hint", ""), faults=list(faults_by_pointer.values())
    )


def _place(path: Sequence[Any], model: type[BaseModel]) -> Sequence[Any]:
    """Return the path of a fault. If an argument may have several forms, pydantic's name of the form is removed from the path."""
    several = len(path) > 1 and str(path[0]) in model.model_fields and str(path[1]) in _FORMS
    return (path[0], *path[2:]) if several else path


_FORMS = ("str", "constrained-str", "dict[str,any]")
"""pydantic's names for the forms of an argument that takes an object or its JSON text."""


def _argument_hint(name: str, found: Sequence[Mapping[str, Any]], model: type[BaseModel]) -> str:
    """Return the hint for an unknown argument."""
    names = list(model.model_fields)
    if like := nearest(name, names):
        return f"did you mean {like}?"
    missing = [str(fault["loc"][0]) for fault in found if fault["type"] == "missing" and len(fault["loc"]) == 1]
    if len(missing) == 1:
        if dict in getattr(model.model_fields[missing[0]].annotation, "__args__", ()) or missing[0] == "plan":
            return f'put it in {missing[0]}: {{"{missing[0]}": {{"{name}": ...}}}}'
        return f"use {missing[0]} instead"
    return f"available: {', '.join(names)}" if names else "the tool takes no arguments"


_MESSAGES = {"missing": "missing", "extra_forbidden": "unknown argument"}
_WANTED = {
    "string_type": "a string", "dict_type": "an object", "list_type": "a list", "int_type": "a whole number",
    "int_from_float": "a whole number", "bool_type": "true or false",
}  # fmt: skip


def _fault_message(fault: Mapping[str, Any]) -> str:
    kind: str = fault["type"]
    if known := _MESSAGES.get(kind):
        return known
    if kind == "string_too_long":
        return f"too long: at most {fault['ctx']['max_length']:,} characters"
    if wanted := _WANTED.get(kind):
        return f"must be {wanted}, not {_kind_of(fault['input'])}"
    text = str(fault["msg"]).removeprefix("Input ")[:200]
    text = text.removeprefix("String ").removeprefix("List ")
    return printable(text.replace("should", "must", 1) if text.startswith("should") else text[:1].lower() + text[1:])


def _form_message(fault: Mapping[str, Any]) -> str:
    return f"must be an object or its JSON text, not {_kind_of(fault['input'])}"


def _kind_of(value: Any) -> str:
    for kind, word in ((bool, str(value).lower()), (str, "a string"), (dict, "an object"), (list, "a list")):
        if isinstance(value, kind):
            return word
    return "null" if value is None else "a number"
