"""The rules of OpenAI's strict structured outputs as its documentation states them, and answers as a model held to them writes them."""

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["in_strict_form", "strict_faults"]

_KEYWORDS = {
    "type",
    "description",
    "enum",
    "const",
    "anyOf",
    "items",
    "properties",
    "required",
    "additionalProperties",
    "$ref",
    "$defs",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
}
_DEEPEST, _MOST = 10, 5_000


def strict_faults(schema: Mapping[str, Any]) -> list[str]:
    """Return what the service would refuse a schema for."""
    faults = list(_root(schema)) + list(_faults(schema, "$", 0, schema.get("$defs", {})))
    for name, each in schema.get("$defs", {}).items():
        faults += _faults(each, f"$defs.{name}", 0, schema["$defs"])
    if (count := _properties(schema)) > _MOST:
        faults.append(f"{count} properties")
    return faults


def _root(schema: Mapping[str, Any]) -> Iterator[str]:
    if schema.get("type") != "object" or "anyOf" in schema or "$ref" in schema:
        yield "the root is not an object"


def _faults(schema: Any, at: str, depth: int, defined: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"{at}: no schema"
        return
    if odd := set(schema) - _KEYWORDS:
        yield f"{at}: {sorted(odd)}"
    if "$ref" in schema:
        if set(schema) != {"$ref"}:
            yield f"{at}: $ref with other keys"
        if schema["$ref"].removeprefix("#/$defs/") not in defined:
            yield f"{at}: {schema['$ref']}"
        return
    if "type" not in schema and "anyOf" not in schema:
        yield f"{at}: no type"
    if depth > _DEEPEST:
        yield f"{at}: too deep"
        return
    if "object" in schema.get("type", ()):
        properties = schema.get("properties")
        if not isinstance(properties, dict) or schema.get("additionalProperties") is not False:
            yield f"{at}: open"
            return
        if schema.get("required") != list(properties):
            yield f"{at}: not all required"
        for name, inner in properties.items():
            yield from _faults(inner, f"{at}.{name}", depth + 1, defined)
    if "array" in schema.get("type", ()):
        yield from _faults(schema.get("items"), f"{at}[]", depth, defined)
    for number, inner in enumerate(schema.get("anyOf", ())):
        yield from _faults(inner, f"{at}|{number}", depth, defined)


def _properties(schema: Any) -> int:
    if isinstance(schema, list):
        return sum(map(_properties, schema))
    if not isinstance(schema, dict):
        return 0
    return len(schema.get("properties", ())) + sum(map(_properties, schema.values()))


def in_strict_form(value: Any, form: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
    """Return ``value``, which fits a schema, as a model writes it that is held to the schema's strict form. LookupError if it can't."""
    root = form if root is None else root
    if "$ref" in form:
        return in_strict_form(value, root["$defs"][form["$ref"].removeprefix("#/$defs/")], root)
    if "anyOf" in form:
        for each in form["anyOf"]:
            try:
                return in_strict_form(value, each, root)
            except LookupError:
                continue
        raise LookupError(value)
    if "enum" in form or "const" in form:
        if value not in form.get("enum", [form.get("const")]):
            raise LookupError(value)
        return value
    kinds = [form["type"]] if isinstance(form["type"], str) else form["type"]
    if isinstance(value, dict) and "object" in kinds:
        if set(value) - set(form["properties"]):
            raise LookupError(value)
        return {name: in_strict_form(value.get(name), inner, root) for name, inner in form["properties"].items()}
    if isinstance(value, dict) and "array" in kinds and set(form["items"].get("properties", ())) == {"key", "value"}:
        inner = form["items"]["properties"]["value"]
        return [{"key": key, "value": in_strict_form(each, inner, root)} for key, each in value.items()]
    if isinstance(value, list) and "array" in kinds:
        return [in_strict_form(each, form["items"], root) for each in value]
    names = {type(None): ["null"], bool: ["boolean"], str: ["string"], int: ["integer", "number"], float: ["number"]}
    if not set(names.get(type(value), ())) & set(kinds):
        raise LookupError(value)
    return value
