"""Checks a JSON document (a plan, a seed or an evaluation) against a pydantic model; reports faults with their positions.

The pydantic model is the only description of the shape. Language models and clients receive the JSON Schema of the model.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from ..diagnostic import Edit, is_slip, nearest
from ..source import Span
from .json_tree import JsonNode, JsonPath, path_text

if TYPE_CHECKING:
    from pydantic import BaseModel

_MOST = 100
"""Maximum number of reported faults in the shape. If a document has more, they usually have one common cause."""


@frozen
class Misfit:
    """A fault in the shape of a document.

    ``kind`` is "unknown" or "missing" for a key, "type" for a value of a wrong type, "value" for any other faulty value.
    """

    kind: str
    path: tuple[str | int, ...]
    message: str
    span: Span
    hints: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()


def json_schema(model: "type[BaseModel]") -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the model, without titles that only repeat field names."""
    schema = model.model_json_schema()
    objects = [schema, *schema.get("$defs", {}).values()]
    for described in (field for object_ in objects for field in object_.get("properties", {}).values()):
        described.pop("title", None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def misfits(model: "type[BaseModel]", root: JsonNode, within: JsonPath = (), *, filling: bool = False) -> list[Misfit]:
    """Return the faults in the shape of a document, in source order; see ``fitted``."""
    return fitted(model, root, within, filling=filling)[1]


def fitted(
    model: "type[BaseModel]", root: JsonNode, within: JsonPath = (), *, filling: bool = False
) -> tuple[bool, list[Misfit]]:
    """Return whether a document has the model's shape, and the faults in source order.

    ``root`` may be a part of a document, at the path ``within``: paths in messages then begin with ``within``. If a part is not valid
    JSON, the document does not have the shape. The parser has already reported this fault, so this function does not report it. If
    ``filling`` is true, an unknown key may be matched with the only missing key, even if their names are not similar.
    """
    from pydantic import ValidationError

    try:
        model.model_validate(root.value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=True, include_input=False)
    else:
        return True, []
    shape = _Shape(model.model_json_schema(), tuple(within), filling)
    made: dict[tuple[str | int, ...], Misfit] = {}
    for fault in found:
        path, branch = _path_of(fault["loc"], shape)
        node = root.at(path)
        if branch == "str" and node is not None and isinstance(node.value, dict):
            continue  # the branch for objects in "a string or an object" reports the fault
        if node is not None and node.faulty:
            continue  # the parser has reported the fault
        if path not in made and len(made) < _MOST:
            made[path] = _misfit(fault, path, root, shape)
    placed = [evolve(misfit, path=(*within, *misfit.path)) for misfit in made.values()] if within else made.values()
    return False, sorted(placed, key=lambda misfit: (misfit.span.start, misfit.path[-1:] and str(misfit.path[-1])))


def _path_of(loc: Sequence[str | int], shape: "_Shape") -> tuple[tuple[str | int, ...], str]:
    """Return the path of pydantic's location, and the name of the last union branch in it. Names of branches are not part of the path."""
    path: list[str | int] = []
    branch = ""
    current = shape.root
    for part in loc:
        if "anyOf" in current and isinstance(part, str):
            branch = part
            current = shape.object_in(current)
            continue
        path.append(part)
        current = shape.below(current, part)
    return tuple(path), branch


_KINDS = {"string_type": "a string", "bool_type": "true or false", "list_type": "a list", "model_type": "an object",
          "dict_type": "an object", "int_type": "a whole number", "float_type": "a number"}  # fmt: skip


def _misfit(fault: Mapping[str, Any], path: tuple[str | int, ...], root: JsonNode, shape: "_Shape") -> Misfit:
    kind, where = fault["type"], shape.text(path)
    node = root.at(path)
    span = node.span if node is not None else root.nearest_span(path)
    if kind == "extra_forbidden":
        return _unknown(path, root, shape)
    if kind == "missing":
        known = shape.fields_around(path)
        doc = str(known.get(path[-1], {}).get("description", ""))
        return Misfit("missing", path, f"{where} is missing", Span(span.start, span.start + 1), _hint(doc))
    value = node.value if node is not None else None
    if kind in ("too_short", "string_too_short"):
        return Misfit("value", path, f"{where} is empty", span)
    if kind in ("too_long", "string_too_long"):
        most = fault.get("ctx", {}).get("max_length", 0)
        what = f"{len(value):,} elements" if isinstance(value, list) else f"{len(str(value)):,} characters"
        return Misfit(
            "value", path, f"{where} has {what}, more than the maximum of {most:,}", Span(span.start, span.start + 1)
        )
    wanted = _KINDS.get(kind)
    if wanted is None:
        return Misfit("value", path, f"{where}: {str(fault['msg'])[:1].lower()}{str(fault['msg'])[1:]}", span)
    if path and isinstance(path[-1], int) and wanted in ("a string", "an object") and shape.is_union(path):
        wanted = "a string or an object"
    edits = _type_edits(value, wanted, node)
    hints = (f"write `{edits[0].text}`",) if len(edits) == 1 else ()
    return Misfit("type", path, f"{where} must be {wanted}, not {_kind(value)}", span, hints, edits)


def _type_edits(value: Any, wanted: str, node: JsonNode | None) -> tuple[Edit, ...]:
    """Return the edits that write the intended value, such as true for ``"true"``, or a list with one element for a single string."""
    if node is None:
        return ()
    if wanted == "true or false" and isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return (Edit(node.span, value.strip().lower()),)
    if wanted == "a list" and isinstance(value, str):
        return (Edit(Span(node.start, node.start), "["), Edit(Span(node.end, node.end), "]"))
    if wanted == "a string" and isinstance(value, int) and not isinstance(value, bool):
        return (Edit(node.span, json.dumps(str(value))),)
    return ()


def _unknown(path: tuple[str | int, ...], root: JsonNode, shape: "_Shape") -> Misfit:
    known = shape.fields_around(path)
    parent, node = root.at(path[:-1]), root.at(path)
    span = root.key_span(path) or root.nearest_span(path)
    # A key that does not allow the value is not meant: `confidence: 0.9` is not a misspelt `config`.
    free = [key for key in known if parent is None or key not in parent.fields]
    near = nearest(str(path[-1]), [key for key in free if node is None or shape.may_hold(known[key], node.value)])
    # Two other keys are named in a hint, without an edit: a key that differs only by a typing error but does not allow the
    # value, as in `command: "..."`; and the only missing key that allows the value.
    slip = next((key for key in free if is_slip(str(path[-1]), key)), None)
    like = near or slip or (_filling(path, parent, shape) if shape.filling and parent is not None else None)
    hints = [f"did you mean `{like}`?"] if like else []
    hints.append(f"allowed keys: {', '.join(map(str, known))}")
    edits = (Edit(span, json.dumps(near)),) if near else ()
    return Misfit("unknown", path, f"unknown key {shape.text(path)}", span, tuple(hints), edits)


def _filling(path: Sequence[str | int], parent: JsonNode, shape: "_Shape") -> str | None:
    """Return the missing key that was probably meant by the unknown key at ``path``.

    Return None unless only this pair of keys is possible.
    """
    known = shape.fields_around(path)
    strangers = [key for key in parent.fields if key not in known]
    missing = [key for key in shape.needed_around(path) if key not in parent.fields]
    pairs = [(key, gap) for key in strangers for gap in missing if shape.may_hold(known[gap], parent.fields[key].value)]
    mine = [gap for key, gap in pairs if key == path[-1]]
    return mine[0] if len(mine) == 1 and [gap for _, gap in pairs].count(mine[0]) == 1 else None


@frozen
class _Shape:
    """The JSON Schema of a model, with methods that find its parts."""

    root: Mapping[str, Any]
    within: tuple[str | int, ...] = ()
    """The path of this shape in the document."""
    filling: bool = False

    def text(self, path: Sequence[str | int]) -> str:
        """Return a path for a message."""
        return path_text((*self.within, *path))

    def is_union(self, path: Sequence[str | int]) -> bool:
        """Return whether the schema at ``path`` is a union, which allows values of several kinds."""
        current = self.root
        for part in path:
            current = self.below(current, part)
        return "anyOf" in current

    def below(self, current: Mapping[str, Any], part: str | int) -> Mapping[str, Any]:
        """Return the schema of a field or an element; a union is returned as it is."""
        inner = self.object_in(current)
        found: Mapping[str, Any] = (
            inner.get("items", {}) if isinstance(part, int) else inner.get("properties", {}).get(part, {})
        )
        return found

    def object_in(self, current: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the schema that ``current`` refers to, directly or in one branch of a union. Return ``current`` if it has no reference."""
        for choice in (current, *current.get("anyOf", ())):
            if "$ref" in choice:
                found: Mapping[str, Any] = self.root.get("$defs", {}).get(choice["$ref"].rsplit("/", 1)[-1], {})
                return found
        return current

    def may_hold(self, field: Mapping[str, Any], value: Any) -> bool:
        """Return whether a field allows a value of the kind of ``value``."""
        kinds = {each.get("type") for each in (field, self.object_in(field), *field.get("anyOf", ()))} - {None}
        return not kinds or any(_is_of(kind, value) for kind in kinds)

    def fields_around(self, path: Sequence[str | int]) -> Mapping[Any, Any]:
        """Return the fields allowed in the object around ``path``, with their schemas."""
        fields: Mapping[Any, Any] = self._object_around(path).get("properties", {})
        return fields

    def needed_around(self, path: Sequence[str | int]) -> Sequence[str]:
        """Return the fields required in the object around ``path``."""
        needed: Sequence[str] = self._object_around(path).get("required", ())
        return needed

    def _object_around(self, path: Sequence[str | int]) -> Mapping[str, Any]:
        current = self.root
        for part in path[:-1]:
            current = self.below(current, part)
        return self.object_in(current)


def _hint(doc: str) -> tuple[str, ...]:
    text = doc.rstrip(".")
    return (
        (f"it is {text[:1].lower()}{text[1:]}" if text[:1].isupper() and text[1:2].islower() else text,) if text else ()
    )


_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "integer": (int, float), "number": (int, float),
    "null": (type(None),),
}  # fmt: skip


def _is_of(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES.get(kind, (object,)))


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, int | float):
        return "a number"
    return "a string" if isinstance(value, str) else "a list" if isinstance(value, list) else "an object"
