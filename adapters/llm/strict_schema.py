"""Converts a JSON Schema to the strict form that services enforce (OpenAI's structured outputs), and converts answers back.

Strict schemas have few keywords; their objects are closed and all keys are required. Therefore an optional key becomes nullable, an object
with arbitrary keys becomes a list of ``{"key", "value"}``, and alternatives become ``anyOf``. Other constraints on values are omitted:
lengths, patterns, and bounds if the service does not accept them. ``restored`` converts an answer back; the answer is then checked against
the original schema, which this module does not change.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

from . import Completion
from .answers import strict_ready, unfenced
from .gguf import parameter_count
from .json_schema import canonical, read_json

_KEPT = ("type", "description", "enum", "const")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems")
"""Keywords that limit numbers and lists. OpenAI's rules allow them, Anthropic's do not."""
_WIDER = frozenset({"allOf", "prefixItems", "$dynamicRef", "$recursiveRef"})
"""Keywords that can't be omitted: without them, the schema would describe other values."""
_NULL = {"type": "null"}
_DEEPEST = 60
_DEFINED = "#/$defs/"
_MOST_MADE = 1_000
_LOOKS = 200_000
"""Maximum number of values examined to find the alternative that an answer matches. A seed with 100 steps takes about 10,000."""
_KINDS: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),), "integer": (int,),
    "number": (int, float),
}  # fmt: skip


def strict_form(schema: Mapping[str, Any], bounds: bool = False) -> dict[str, Any] | None:
    """Return the strict form of an object's schema; None if impossible. With ``bounds``, keep the limits of numbers and lists."""
    try:
        return _Forms(schema, _BOUNDS if bounds else ()).root_form()
    except (_NoForm, RecursionError):
        return None


def restored(answer: "str | Mapping[str, Any] | list[Any]", schema: Mapping[str, Any]) -> str:
    """Convert an answer from the strict form of ``schema`` to the form of ``schema``; return JSON text.

    ``answer`` is the answer's text or parsed value. An answer in neither form is returned unchanged.
    """
    plain = dict(answer) if isinstance(answer, Mapping) else answer
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    try:
        value = read_json(unfenced(text).strip())
        made = _Forms(schema).back(value, schema, 0)
    except (ValueError, _NoForm, RecursionError):
        return text
    return text if made == value else json.dumps(made, ensure_ascii=False)


def bounded_form(schema: Any, *, text: int, items: int) -> Any:
    """Return a narrower schema, so that a small model can complete its answer.

    ``text`` is the maximum number of characters of a string, ``items`` the maximum number of elements of a list. A list with unique
    elements is limited to one element. Alternatives with arbitrary keys are omitted if other alternatives exist.
    """
    if not isinstance(schema, Mapping):
        return schema
    made = dict(schema)
    for name in ("properties", "$defs"):
        if isinstance(made.get(name), Mapping):
            made[name] = {key: bounded_form(each, text=text, items=items) for key, each in made[name].items()}
    for name in ("items", "additionalProperties"):
        made |= {name: bounded_form(made[name], text=text, items=items)} if name in made else {}
    for name in ("anyOf", "oneOf"):
        if isinstance(found := made.get(name), list | tuple):
            kept = [each for each in found if not (isinstance(each, Mapping) and _is_map(each))] or list(found)
            made[name] = [bounded_form(each, text=text, items=items) for each in kept]
    if made.get("type") == "string" and "enum" not in made and "const" not in made:
        made["maxLength"] = min(text, made.get("maxLength", text))
    if made.get("type") == "array":
        most = 1 if made.get("uniqueItems") else items  # no grammar enforces unique elements
        made["maxItems"] = max(made.get("minItems", 0), min(most, made.get("maxItems", most)))
    return made


@define
class Strictness:
    """The strict features that one service supports. A strict form that the service has refused is not sent again."""

    own_address: bool = True
    """Whether the address belongs to the service that defined these rules. Schemas for other servers are not changed."""
    bounds: bool = False
    """Whether the service accepts bounds of numbers and lists."""
    _made: dict[bytes, bool] = field(factory=dict, init=False)
    """Maps each form created so far to whether the service refused it."""

    def form(self, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the strict form of a schema; None if the schema must be sent unchanged, for example if it is strict already."""
        if not self.own_address or strict_ready(schema):
            return None
        made = strict_form(schema, self.bounds)
        if made is None:
            return None
        if len(self._made) > _MOST_MADE:
            self._made.clear()
        return None if self._made.setdefault(canonical(made), False) else made

    def gives_up(self, sent: Any) -> bool:
        """Record that ``sent`` was refused. Return whether ``sent`` was a strict form, so that the original schema can be sent instead."""
        written = canonical(sent)
        if self._made.get(written) is not False:
            return False
        self._made[written] = True
        return True

    def restored(self, answer: Completion, schema: Mapping[str, Any] | None) -> Completion:
        """Return an answer converted to the form of the original schema."""
        if schema is None or self.form(schema) is None:
            return answer
        return evolve(answer, text=restored(answer.text, schema))


class _NoForm(Exception):
    """Raised if a schema has no strict form."""


@define
class _Forms:
    """Converts a schema, its definitions and its parts to strict forms, and values back."""

    root: Mapping[str, Any]
    _bounds: tuple[str, ...] = ()
    _known: dict[int, tuple[Any, dict[str, Any]]] = field(factory=dict, init=False)
    _left: int = field(default=_LOOKS, init=False)

    def root_form(self) -> dict[str, Any]:
        made = self.form(self.root, 0)
        if made.get("type") != "object":
            raise _NoForm
        defined = self.root.get("$defs")
        if isinstance(defined, Mapping) and defined:
            made = {**made, "$defs": {name: self.form(each, 0) for name, each in defined.items()}}
        return made

    def form(self, schema: Any, depth: int) -> dict[str, Any]:
        """Return the strict form of a part of the schema."""
        if id(schema) in self._known:
            return self._known[id(schema)][1]
        if depth > _DEEPEST:
            raise _NoForm
        made = self._form(schema, depth + 1)
        self._known[id(schema)] = (
            schema,
            made,
        )  # the schema is stored with its form, so that its id is not reused
        return made

    def _form(self, schema: Any, depth: int) -> dict[str, Any]:
        if not isinstance(schema, Mapping):
            return _any()
        if "$ref" in schema:
            self._target(schema["$ref"])
            return {"$ref": schema["$ref"]}
        if _WIDER & set(schema):
            raise _NoForm
        kept = {key: schema[key] for key in (*_KEPT, *self._bounds) if key in schema}
        if (branches := _branches(schema)) is not None:
            told = {"description": kept["description"]} if "description" in kept else {}
            return {**told, "anyOf": [self.form(branch, depth) for branch in branches]}
        if "enum" in kept or "const" in kept:
            return kept | _typed(kept)
        kinds = schema.get("type")
        if isinstance(kinds, list | tuple) and {"object", "array"} & set(kinds):
            raise _NoForm
        if kinds == "object" or "properties" in schema:
            return self._object(schema, kept, depth)
        if kinds == "array":
            return {**kept, "items": self.form(schema.get("items", True), depth)}
        return kept if kinds is not None else {**kept, **_any()}

    def _object(self, schema: Mapping[str, Any], kept: dict[str, Any], depth: int) -> dict[str, Any]:
        if _is_map(schema):
            entry = {"key": {"type": "string"}, "value": self.form(schema.get("additionalProperties", True), depth)}
            return {**kept, "type": "array", "items": _closed(entry)}
        properties, required = schema.get("properties", {}), schema.get("required", ())
        made = {
            name: self.form(inner, depth) if name in required else _nullable(self.form(inner, depth))
            for name, inner in properties.items()
        }
        return {**kept, **_closed(made)}

    def back(self, value: Any, schema: Any, depth: int) -> Any:
        """Convert ``value`` from the strict form of ``schema`` to the form of ``schema``."""
        if depth > _DEEPEST:
            raise _NoForm
        if isinstance(schema, Mapping) and "$ref" in schema:
            return self.back(value, self._target(schema["$ref"]), depth + 1)
        if not isinstance(schema, Mapping) or not isinstance(value, dict | list):
            return value
        if (branches := _branches(schema)) is not None:
            chosen = next((each for each in branches if self._fits(value, self.form(each, depth))), None)
            return value if chosen is None else self.back(value, chosen, depth + 1)
        if isinstance(value, list):
            if _is_map(schema):
                return self._entries(value, schema, depth)
            return [self.back(each, schema.get("items", True), depth + 1) for each in value]
        properties, required = schema.get("properties", {}), schema.get("required", ())
        return {
            name: self.back(inner, properties.get(name, True), depth + 1)
            for name, inner in value.items()
            if inner is not None or name in required or name not in properties
        }

    def _entries(self, value: list[Any], schema: Mapping[str, Any], depth: int) -> Any:
        if not all(
            isinstance(each, dict) and set(each) == {"key", "value"} and isinstance(each["key"], str) for each in value
        ):
            return value
        inner = schema.get("additionalProperties", True)
        made = {each["key"]: self.back(each["value"], inner, depth + 1) for each in value}
        return made if len(made) == len(value) else value

    def _fits(self, value: Any, form: Mapping[str, Any]) -> bool:
        """Return whether ``value`` has the strict form ``form``."""
        self._left -= 1
        if self._left < 0:
            raise _NoForm
        if "$ref" in form:
            form = self.form(self._target(form["$ref"]), 0)
        if "anyOf" in form:
            return any(self._fits(value, each) for each in form["anyOf"])
        if value not in form.get("enum", [value]) or ("const" in form and value != form["const"]):
            return False
        kinds = form.get("type", ())
        allowed = [kinds] if isinstance(kinds, str) else kinds
        if isinstance(value, bool):
            allowed = ["boolean"] if "boolean" in allowed else []
        if not any(isinstance(value, _KINDS.get(kind, ())) for kind in allowed):
            return False
        if isinstance(value, dict):
            properties = form["properties"]
            return set(value) == set(properties) and all(self._fits(value[name], properties[name]) for name in value)
        return not isinstance(value, list) or all(self._fits(each, form["items"]) for each in value)

    def _target(self, ref: Any) -> Any:
        defined = self.root.get("$defs")
        name = ref.removeprefix(_DEFINED) if isinstance(ref, str) else None
        if not isinstance(defined, Mapping) or name not in defined:
            raise _NoForm
        return defined[name]


def _branches(schema: Mapping[str, Any]) -> "list[Any] | None":
    found = schema.get("anyOf", schema.get("oneOf"))
    return list(found) if isinstance(found, list | tuple) else None


def _is_map(schema: Mapping[str, Any]) -> bool:
    """Return whether the model chooses the keys of an object with this schema."""
    described = schema.get("type") == "object" and not schema.get("properties")
    return described and schema.get("additionalProperties", True) is not False


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _any() -> dict[str, Any]:
    """Return the form of an arbitrary value: a scalar, or a list of scalars."""
    plain = ("string", "number", "boolean", "null")
    return {"anyOf": [{"type": kind} for kind in plain] + [{"type": "array", "items": {"type": list(plain)}}]}


def _typed(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return the type of an enum's values, because services require a type."""
    values = kept.get("enum", [kept.get("const")])
    names = {bool: "boolean", str: "string", int: "integer", float: "number", type(None): "null"}
    if not all(type(value) in names for value in values):
        raise _NoForm
    kinds = list(dict.fromkeys(names[type(value)] for value in values))
    return {"type": kinds[0] if len(kinds) == 1 else kinds}


def _nullable(form: dict[str, Any]) -> dict[str, Any]:
    kinds = form.get("type")
    if kinds is None or "const" in form:
        told = {"description": form["description"]} if "description" in form else {}
        inner = form.get("anyOf") if set(form) <= {"anyOf", "description"} else None
        forms = inner if inner is not None else [{key: value for key, value in form.items() if key != "description"}]
        return {**told, "anyOf": forms if _NULL in forms else [*forms, _NULL]}
    listed = [kinds] if isinstance(kinds, str) else list(kinds)
    if "null" in listed:
        return form
    made = {**form, "type": [*listed, "null"]}
    return {**made, "enum": [*form["enum"], None]} if "enum" in form else made


# Output constraints that the model of a spec supports; the loops choose their requests accordingly. If a service still refuses a
# feature (an older model, another server), its adapter repeats the request without the feature and omits the feature from then on.
# A cassette is treated like the model that it was recorded with, so that a recorded run can be replayed.
_SERVICES = ("openai:", "http://", "https://")
_LONG = 3_000
"""Maximum number of tokens of a long answer from a model in this process. It leaves space in the context for the prompt."""
_BUILT_IN = 134_515_008
"""Number of parameters of the built-in local model."""
_HEAD = 4_096
"""Maximum number of characters read from a cassette's first line."""


@frozen
class ModelCapabilities:
    """The capabilities of a model.

    ``tools`` is true if the model has native tool calls, and ``grammar`` if a grammar can constrain its output. ``small`` is
    true for a small model: its answers need constraints and are kept short. ``tokens`` is the value of ``max_tokens`` for a
    long answer, None if the default is enough. ``parameters`` is the number of the model's parameters, None if unknown.
    """

    tools: bool = False
    grammar: bool = False
    small: bool = False
    tokens: int | None = None
    parameters: int | None = None

    @property
    def remark(self) -> str:
        """A warning that a small model's answers are constrained; "" for other models."""
        if not self.small:
            return ""
        size = "" if self.parameters is None else f" ({self.parameters / 1e6:,.0f} million parameters)"
        return f"the model is small{size}: its answers are constrained to a small grammar and kept short"


SMALL_PARAMETERS = 2_000_000_000
"""A local model with fewer parameters is small: without constraints, most of its answers have errors."""


def capabilities_of(model: Any) -> ModelCapabilities:
    """Return the capabilities of a spec, or of a client with a ``spec``; the defaults for other clients. Never raises an exception."""
    spec = model if isinstance(model, str) else getattr(model, "spec", "")
    if not isinstance(spec, str):
        return ModelCapabilities()
    spec = spec.strip()
    if spec.startswith("record:"):
        return capabilities_of(spec.partition(",")[2])
    if spec.startswith("replay:"):
        made_with = _recorded_with(spec.removeprefix("replay:"))
        return ModelCapabilities() if made_with.startswith("replay:") else capabilities_of(made_with)
    if spec == "local":
        return ModelCapabilities(grammar=True, small=True, parameters=_BUILT_IN)
    if spec.startswith("local:"):
        count = parameter_count(spec.removeprefix("local:"))
        if count is not None and count < SMALL_PARAMETERS:
            return ModelCapabilities(grammar=True, small=True, parameters=count)
        return ModelCapabilities(grammar=True, tokens=_LONG, parameters=count)
    if spec.startswith("anthropic:"):
        return ModelCapabilities(tools=True)
    return ModelCapabilities(tools=True, grammar=True) if spec.startswith(_SERVICES) else ModelCapabilities()


def _recorded_with(path: str) -> str:
    """Return the spec in a cassette's first line, "" if missing; opening the cassette reports its faults."""
    try:
        with Path(path).open(encoding="utf-8") as stream:
            head = json.loads(stream.readline(_HEAD))
    except (OSError, ValueError, RecursionError):
        return ""
    return str(head.get("model") or "") if isinstance(head, dict) else ""
