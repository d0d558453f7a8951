"""The first step: what a task looks at and what it wants, read and checked. See ``docs/design/seed.md#compiler``."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from ...lang.diagnostic import Diagnostic, has_errors, sort_key
from ...lang.documents.json_text import read_json
from ...lang.documents.json_tree import JsonNode
from ...lang.documents.seed.steps import Fields
from ...lang.documents.seed.validation import Shapes
from ...lang.source import Source, Span
from ...lang.trees.seed import Extracted
from .naming import Names, References, fits, found
from .results import Judged

__all__ = ["Conditions", "judge_conditions", "root_of"]


@frozen
class Conditions:
    """A checked answer to the first step. ``document`` is its JSON; ``unused``: fields that no condition names."""

    document: Mapping[str, Any]
    fields: Mapping[str, Extracted]
    outputs: tuple[str, ...]
    task_name: str = ""
    unused: tuple[str, ...] = ()


def root_of(text: str, name: str, what: str, told: list[Diagnostic]) -> tuple[JsonNode | None, Source]:
    """Read an answer as a JSON object with positions; ``told`` takes what is wrong."""
    source = Source(text, name)
    read = read_json(source)
    told += read.diagnostics
    if read.root is not None and not isinstance(read.root.value, dict):
        start = read.root.start
        told.append(Diagnostic("SEED001", "error", f"the answer is no object: {what}", Span(start, start + 1)))
        return None, source
    return read.root, source


def judge_conditions(text: str) -> Judged:
    """Read and check an answer to the first step. Never raises for what it says."""
    from ...lang.documents.seed.model import FieldModel
    from .shapes import ConditionModel, ConditionsModel, OutputModel

    told: list[Diagnostic] = []
    root, source = root_of(text, "<conditions>", "it has keywords, fields, conditions and outputs", told)
    if root is None:
        return Judged(None, tuple(told), source)
    shapes = Shapes(root, "outputs", told)
    fits(shapes, ConditionsModel, root, ())
    fields: dict[str, Extracted] = {}
    read, names = Fields(told), Names(shapes, told)
    for number, item in enumerate(_items(root, "fields")):
        at = ("fields", number)
        if not fits(shapes, FieldModel, item, at) or not shapes.is_name(item.fields["name"], (*at, "name")):
            continue
        made = read.read(item, at)
        if made is not None and made.name in fields:
            told.append(found("SEED063", (*at, "name"), f"the field {made.name} is there already", item.fields["name"]))
        elif made is not None:
            fields[made.name] = made
    outputs = [
        name
        for number, item in enumerate(_items(root, "outputs"))
        if fits(shapes, OutputModel, item, ("outputs", number))
        and (name := names.take(item.fields["name"], ("outputs", number, "name")))
    ]
    conditions = [
        item
        for number, item in enumerate(_items(root, "conditions"))
        if fits(shapes, ConditionModel, item, ("conditions", number))
        and names.take(item.fields["name"], ("conditions", number, "name"))
    ]
    used = _used(root, conditions, References(fields, [item.fields["name"].value for item in conditions], told))
    diagnostics = tuple(sorted(dict.fromkeys(told), key=sort_key))
    if has_errors(diagnostics):
        return Judged(None, diagnostics, source)
    document = root.value
    unused = tuple(name for name in fields if f"extraction.{name}" not in used)
    value = Conditions(document, fields, tuple(outputs), document.get("task_name", ""), unused)
    return Judged(value, diagnostics, source)


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
