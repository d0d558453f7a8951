"""The first step: reads and checks the conditions and outputs of a task. See ``docs/design/seed.md#compiler``."""

import json
import keyword
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from attrs import define, field, frozen
from pydantic import BaseModel, ConfigDict, Field

from ....lang.catalogue.operations import RESERVED_FUNCTIONS
from ....lang.diagnostic import Diagnostic, Edit, has_errors, nearest, sort_key
from ....lang.documents.json_text import read_json
from ....lang.documents.json_tree import JsonNode, JsonPath, path_text
from ....lang.documents.seed.model import OPERATIONS, FieldModel
from ....lang.documents.seed.steps import Fields
from ....lang.documents.seed.validation import Shapes
from ....lang.evaluate.seed.interpreter import META_KEYS
from ....lang.evaluate.seed.step_dependencies import EXTRACTIONS
from ....lang.source import Source, Span
from ....lang.trees.seed import Extracted
from .compile_results import CheckedAnswer

if TYPE_CHECKING:
    from pydantic import BaseModel

# Checks shared by conditions, outputs and nodes: names, and references to known properties of a review.

_RESERVED = (
    RESERVED_FUNCTIONS
    | frozenset(keyword.kwlist)
    | {"extraction", "meta", "context", EXTRACTIONS, "true", "false", "null"}
)
_MOST = 50
"""Maximum number of unknown names for which a similar name is searched; more unknown names in a document share one cause."""


def error_at(
    code: str, path: JsonPath, message: str, node: JsonNode, hint: str = "", edits: Iterable[Edit] = ()
) -> Diagnostic:
    """Return an error about the value at ``path``, with the code that the same fault has in a seed."""
    return Diagnostic(code, "error", f"{path_text(path)}: {message}", node.span, (hint,) if hint else (), tuple(edits))


def has_shape(shapes: Shapes, model: "type[BaseModel]", node: JsonNode, path: JsonPath) -> bool:
    """Report where ``node`` does not fit ``model``. Return whether ``node`` fits and has all required properties.

    Return False for invalid JSON too, which the parser has already reported.
    """
    required = {name for name, info in model.model_fields.items() if info.is_required()}
    return shapes.fits(model, node, path) and required <= node.fields.keys()


@define
class Names:
    """The names that one document defines. Each name must be valid, unique, and not a reserved word."""

    shapes: Shapes
    told: list[Diagnostic]
    taken: dict[str, JsonPath] = field(factory=dict)

    def take(self, node: JsonNode, path: JsonPath) -> str | None:
        """Return the name at ``path``; None if it is invalid or already used. Report both faults, and reserved words."""
        if not isinstance(node.value, str) or not self.shapes.is_name(node, path):
            return None
        name = node.value
        if name in self.taken:
            where = path_text(self.taken[name])
            self.told.append(
                error_at(
                    "SEED042",
                    path,
                    f"the name {name} is already used at {where}",
                    node,
                    "rename one of the two",
                )
            )
            return None
        self.taken[name] = path
        if name in _RESERVED:
            new = f"{name}_value"
            message = f"{name} is a reserved name in expressions"
            self.told.append(
                error_at("SEED043", path, message, node, f"rename it to {new}", [Edit(node.span, json.dumps(new))])
            )
        return name


@define
class References:
    """The names that may be referenced: ``extraction.FIELD`` (for ``fields``), ``meta.KEY``, ``context.KEY``, and ``names``."""

    fields: Collection[str]
    names: Collection[str]
    told: list[Diagnostic]
    _missed: int = 0

    def check(self, node: JsonNode, path: JsonPath) -> str | None:
        """Return the reference at ``path`` (without a filter's ``$``); report an unknown reference and return None."""
        text = node.value
        if not isinstance(text, str):
            return None
        name = text.removeprefix("$")
        if name in self.names:
            return name
        space, dot, key = name.partition(".")
        if dot and space == "context" and key:
            return name
        if dot and space == "meta" and key in META_KEYS:
            return name
        if dot and space == "extraction" and key in self.fields:
            return name
        self._unknown(node, path, name)
        return None

    def _unknown(self, node: JsonNode, path: JsonPath, name: str) -> None:
        space, dot, key = name.partition(".")
        self._missed += 1
        bare = key if dot else name
        if bare in self.fields and space != "meta":
            meant: str | None = f"extraction.{bare}"
        elif bare in META_KEYS:
            meant = f"meta.{bare}"
        elif self._missed > _MOST:
            meant = None
        elif dot and space == "extraction":
            near = nearest(key, self.fields)
            meant = f"extraction.{near}" if near else None
        elif dot and space == "meta":
            near = nearest(key, META_KEYS)
            meant = f"meta.{near}" if near else None
        else:
            meant = nearest(name, [*self.names, *(f"extraction.{each}" for each in self.fields)])
        code = "SEED045" if dot and space in ("extraction", "meta") else "SEED040"
        shown = json.dumps(name if len(name) <= 60 else name[:59] + "…", ensure_ascii=False)
        edits = [Edit(node.span, json.dumps(meant))] if meant else []
        hint = f"did you mean {meant}?" if meant else self._there_are(space if dot else "")
        self.told.append(error_at(code, path, f"unknown name {shown}", node, hint, edits))

    def _there_are(self, space: str) -> str:
        if space == "meta":
            return f"the keys are {', '.join(META_KEYS)}"
        known = (
            list(self.fields)
            if space == "extraction"
            else [*self.names, *(f"extraction.{each}" for each in self.fields)]
        )
        shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
        return f"the names are {shown}, meta.KEY and context.KEY" if known else "the names are meta.KEY and context.KEY"


@frozen
class Conditions:
    """A checked answer to the first step. ``document`` is the answer's JSON. ``unused`` are the fields that no condition uses."""

    document: Mapping[str, Any]
    fields: Mapping[str, Extracted]
    outputs: tuple[str, ...]
    task_name: str = ""
    unused: tuple[str, ...] = ()


def root_of(text: str, name: str, what: str, told: list[Diagnostic]) -> tuple[JsonNode | None, Source]:
    """Read an answer as a JSON object with positions, and append errors to ``told``; the root is None if the answer is not an object."""
    source = Source(text, name)
    read = read_json(source)
    told += read.diagnostics
    if read.root is not None and not isinstance(read.root.value, dict):
        start = read.root.start
        told.append(Diagnostic("SEED001", "error", f"the answer must be an object with {what}", Span(start, start + 1)))
        return None, source
    return read.root, source


def check_conditions(text: str) -> CheckedAnswer:
    """Read and check an answer to the first step. Faults in the answer never raise an exception."""
    from ....lang.documents.seed.model import FieldModel

    told: list[Diagnostic] = []
    root, source = root_of(text, "<conditions>", "keywords, fields, conditions and outputs", told)
    if root is None:
        return CheckedAnswer(None, tuple(told), source)
    shapes = Shapes(root, "outputs", told)
    has_shape(shapes, ConditionsModel, root, ())
    fields: dict[str, Extracted] = {}
    read, names = Fields(told), Names(shapes, told)
    for number, item in enumerate(_items(root, "fields")):
        at = ("fields", number)
        if not has_shape(shapes, FieldModel, item, at) or not shapes.is_name(item.fields["name"], (*at, "name")):
            continue
        made = read.read(item, at)
        if made is not None and made.name in fields:
            told.append(
                error_at("SEED063", (*at, "name"), f"the field {made.name} already exists", item.fields["name"])
            )
        elif made is not None:
            fields[made.name] = made
    outputs = [
        name
        for number, item in enumerate(_items(root, "outputs"))
        if has_shape(shapes, OutputModel, item, ("outputs", number))
        and (name := names.take(item.fields["name"], ("outputs", number, "name")))
    ]
    conditions = [
        item
        for number, item in enumerate(_items(root, "conditions"))
        if has_shape(shapes, ConditionModel, item, ("conditions", number))
        and names.take(item.fields["name"], ("conditions", number, "name"))
    ]
    used = _used(root, conditions, References(fields, [item.fields["name"].value for item in conditions], told))
    diagnostics = tuple(sorted(dict.fromkeys(told), key=sort_key))
    if has_errors(diagnostics):
        return CheckedAnswer(None, diagnostics, source)
    document = root.value
    unused = tuple(name for name in fields if f"extraction.{name}" not in used)
    value = Conditions(document, fields, tuple(outputs), document.get("task_name", ""), unused)
    return CheckedAnswer(value, diagnostics, source)


def _items(root: JsonNode, key: str) -> Any:
    node = root.fields.get(key)
    return node.items if node is not None else ()


def _used(root: JsonNode, conditions: list[JsonNode], references: References) -> set[str | None]:
    places = {item.start: number for number, item in enumerate(_items(root, "conditions"))}
    return {
        references.check(use, ("conditions", places[item.start], "uses", number))
        for item in conditions
        for number, use in enumerate(item.fields["uses"].items)
    }


# The answers to the first two steps as pydantic models. The language model receives their JSON Schema.


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


_Name = Field(min_length=1, max_length=100, description="Letters, digits and underscores; unique.")


class ConditionModel(_Strict):
    """A condition that the task sets for a review, its metadata, or the place."""

    model_config = ConfigDict(title="Condition")

    name: str = _Name
    uses: list[str] = Field(
        description="What it depends on: extraction.FIELD, meta.KEY, context.KEY, or the name of another condition."
    )
    meaning: str = Field(max_length=10_000, description="When it holds, with all values and limits of the task.")


class OutputModel(_Strict):
    """A value that the task asks for."""

    model_config = ConfigDict(title="Output")

    name: str = _Name
    meaning: str = Field(max_length=10_000, description="How the task defines it, with all its numbers.")


class ConditionsModel(_Strict):
    """What a task reads and what it asks for: the first step."""

    model_config = ConfigDict(title="Conditions")

    task_name: str = Field(default="", max_length=1_000, description="A short name of the task.")
    keywords: list[str] = Field(max_length=5_000, description="Reviews that contain none of these words are ignored.")
    fields: list[Any] = Field(max_length=200, description="What has to be extracted from each review by reading it.")
    conditions: list[Any] = Field(max_length=500, description="The conditions on reviews.")
    outputs: list[Any] = Field(min_length=1, max_length=500, description="The values to compute.")


class ConditionsSchema(ConditionsModel):
    """What a task reads and what it asks for."""

    model_config = ConfigDict(title="Conditions")

    fields: list[FieldModel] = Field(description="What has to be extracted from each review by reading it.")
    conditions: list[ConditionModel] = Field(description="The conditions on reviews.")
    outputs: list[OutputModel] = Field(min_length=1, description="The values to compute.")


class NeedModel(_Strict):
    """An input of a node."""

    model_config = ConfigDict(title="Need")

    name: str = Field(description="extraction.FIELD, meta.KEY, context.KEY, or the name of another node.")
    values: list[str] = Field(default=[], description="For an enum field: the values that count here.")


class NodeModel(_Strict):
    """A value or a filter, with its inputs."""

    model_config = ConfigDict(title="Node")

    name: str = _Name
    op: str = Field(description="The kind of node.")
    needs: list[NeedModel] = Field(max_length=500, description="All inputs of the node.")
    rule: str = Field(max_length=10_000, description="How it is computed, with all numbers of the task.")


class _NodeSchema(NodeModel):
    """A value or a filter, with its inputs."""

    model_config = ConfigDict(title="Node")

    op: Literal["define_filter", "count", "sum", "max", "min", "lookup", "expr", "const", "case"] = Field(
        description="The kind of node."
    )


class GraphModel(_Strict):
    """How the outputs are computed: the second step."""

    model_config = ConfigDict(title="Graph")

    nodes: list[Any] = Field(
        min_length=1, max_length=1_000, description="The nodes; each node follows the nodes that it needs."
    )
    unneeded: list[str] = Field(default=[], description="Fields of the first step that turn out not to be needed.")


class GraphSchema(GraphModel):
    """How the outputs are computed."""

    model_config = ConfigDict(title="Graph")

    nodes: list[_NodeSchema] = Field(min_length=1, description="The nodes; each node follows the nodes that it needs.")


NODES: dict[str, type[BaseModel]] = dict.fromkeys(OPERATIONS, NodeModel)
"""Maps each operation of a seed to the model of its nodes; all operations have the same model."""
