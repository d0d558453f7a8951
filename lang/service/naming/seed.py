"""The names of a seed: its steps (filters too) and its extracted fields, in the document's strings and in expressions inside them."""

import json
from collections.abc import Iterator

from ...documents.json_tree import JsonNode, StringMap
from ...source import Span
from ..reading import Reading
from .expr import fields_in
from .expr import occurrences as in_expression
from .occurrence import Occurrence

__all__ = ["occurrences"]

_EXPRESSIONS = ("expr", "formula", "when")
_TAKEN = frozenset({"extractions"})


def occurrences(reading: Reading) -> Iterator[Occurrence]:
    """Yield what the seed names, as far as the document can be read."""
    text, root = reading.text, reading.document.root
    if root is None:
        return
    extract = root.fields.get("extract")
    declared = extract.fields.get("fields") if extract is not None else root.fields.get("extraction_fields")
    for node in declared.items if declared is not None else ():
        yield from _string(text, node.fields.get("name"), "field", defines=True)
    steps = root.fields.get("compute") or root.fields.get("compute_dag")
    items = steps.items if steps is not None else ()
    names = {
        item.value["name"] for item in items if isinstance(item.value, dict) and isinstance(item.value.get("name"), str)
    }
    for item in items:
        yield from _step(reading, item, names)
    outputs = root.fields.get("output") or root.fields.get("output_fields")
    for node in outputs.items if outputs is not None else ():
        yield from _string(text, node, "computation")


def _step(reading: Reading, item: JsonNode, names: set[str]) -> Iterator[Occurrence]:
    text = reading.text
    yield from _string(text, item.fields.get("name"), "computation", defines=True)
    source, field = item.fields.get("source"), item.fields.get("field")
    if source is not None and source.value in names:
        yield from _string(text, source, "computation")
    if field is not None and isinstance(field.value, str) and field.value.startswith("extraction."):
        yield from _string(text, field, "field", before="extraction.")
    for key in ("where", "extraction"):
        if key in item.fields:
            yield from _where(text, item.fields[key], key, names)
    rules = item.fields.get("rules")
    for part in (item, *(rules.items if rules is not None else ())):
        for key in _EXPRESSIONS:
            if key in part.fields:
                yield from _expression(reading, part.fields[key])


def _where(text: str, node: JsonNode, key: str, names: set[str]) -> Iterator[Occurrence]:
    for said, span in node.keys.items():
        literal = JsonNode(said, span.start, span.end)
        if said.startswith("$"):
            yield from _string(text, literal, "computation", before="$")
        elif said.startswith("extraction."):
            yield from _string(text, literal, "field", before="extraction.")
        elif key == "extraction" and "." not in said:
            yield from _string(text, literal, "field")
        elif said in names:
            yield from _string(text, literal, "computation")


def _string(
    text: str, node: JsonNode | None, kind: str, *, before: str = "", defines: bool = False
) -> Iterator[Occurrence]:
    """Yield the name in a string that is written without escapes."""
    if node is None or not isinstance(node.value, str):
        return
    name = node.value[len(before) :]
    if name and text[node.start : node.end] == json.dumps(node.value, ensure_ascii=False):
        span = Span(node.start + 1 + len(before), node.end - 1)
        if kind == "field":
            yield Occurrence("field", name, span, defines)
        else:
            yield Occurrence("computation", name, span, defines)


def _expression(reading: Reading, node: JsonNode) -> Iterator[Occurrence]:
    if not isinstance(node.value, str):
        return
    said, shift = node.value, 0
    read = reading.parsed(said)
    if read.expr is None:
        said, shift = f"0 {said}", 2  # a rule of a case with a source begins with a comparison
        read = reading.parsed(said)
    if read.expr is None:
        return
    located = StringMap(reading.text, node.span)
    for each in in_expression(read.expr, said):
        span = located.located(each.span.shift(-shift))
        if each.scope:
            yield Occurrence("variable", each.name, span, each.defines, node.start + each.scope)
        elif each.name not in _TAKEN:
            yield Occurrence("computation", each.name, span)
    for name, place in fields_in(read.expr, said):
        yield Occurrence("field", name, located.located(place.shift(-shift)))
