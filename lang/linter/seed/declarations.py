"""Rules about the parts around the steps: declared metadata, examples, ordered enums, resolved fields."""

import json
from collections.abc import Iterator
from typing import Any

from ...coercion import Type, Unfit, as_value
from ...diagnostic import Diagnostic, Edit
from ...documents.json_tree import JsonNode
from ...evaluate.seed.interpreter import META_KEYS
from ...source import NOWHERE, Span
from ...trees import Node
from ...trees.seed import Example, Extracted, Resolve
from .context import Context, lint


def _node(context: Context, part: Node) -> JsonNode | None:
    """Return the node of a part of the seed in the document; None for a part that was built in code."""
    if context.root is None:
        return None
    return context.node(*context.path_at(Span(part.span.start, part.span.start)))


@lint("SEED072")
def built_in_metadata(context: Context) -> Iterator[Diagnostic]:
    """Report declared metadata that every review has."""
    node = context.node("meta")
    for name in context.seed.meta:
        if name in META_KEYS:
            span = node.keys[name] if node is not None else NOWHERE
            hint = "remove it: stars, useful and date are read from each review"
            yield context.diagnostic("SEED072", f"every review has {name}", span, hint)


@lint("SEED073")
def fields_of_examples(context: Context) -> Iterator[Diagnostic]:
    """Report unknown fields in examples, and examples without a value for an enum."""
    if not context.has_fields or context.unread_fields:
        return
    fields = context.seed.field_by_name
    for example in context.seed.examples:
        node = _extraction(context, example)
        for name in example.extraction:
            if name in fields:
                continue
            span = node.keys[name] if node is not None else NOWHERE
            near = context.suggestion(name, tuple(fields))
            edits = [Edit(span, json.dumps(near))] if near and near not in example.extraction else []
            hint = f"did you mean {near}?" if near else f"the fields are {', '.join(list(fields)[:12])}"
            yield context.diagnostic("SEED073", f"unknown field {name:.60}", span, hint, edits=edits)
        for field in fields.values():
            if field.type == "enum" and example.extraction.get(field.name) is None:
                at = Span(node.start, node.start + 1) if node is not None else NOWHERE
                message = f"the example has no value for {field.name}, and an enum is never null"
                yield context.diagnostic("SEED073", message, at, f"its values are {_listed(field)}")


@lint("SEED074")
def values_of_examples(context: Context) -> Iterator[Diagnostic]:
    """Report values in examples that do not have the type of their field."""
    fields = context.seed.field_by_name
    for example in context.seed.examples:
        node = _extraction(context, example)
        for name, value in example.extraction.items():
            field = fields.get(name)
            if field is None or value is None or not isinstance(as_value(value, _kind(field), strict=True), Unfit):
                continue
            span = node.fields[name].span if node is not None else NOWHERE
            shown = json.dumps(value, ensure_ascii=False)
            shown = shown if len(shown) <= 60 else shown[:59] + "…"
            if field.type == "enum":
                near = context.suggestion(value, tuple(field.values)) if isinstance(value, str) else None
                hint = f"did you mean {near}?" if near else f"its values are {_listed(field)}"
                edits = [Edit(span, json.dumps(near, ensure_ascii=False))] if near else []
                yield context.diagnostic("SEED074", f"{name} is never {shown}", span, hint, edits=edits)
            else:
                yield context.diagnostic("SEED074", f"{name} is {_KINDS[field.type]}, never {shown}", span)


_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "text": "a string",
    "list": "a list of values",
}


def _kind(field: Extracted) -> Type:
    return tuple(field.values) if field.type == "enum" else field.type


def _extraction(context: Context, example: Example) -> JsonNode | None:
    node = _node(context, example)
    return node.fields.get("extraction") if node is not None else None


def _listed(field: Extracted) -> str:
    return ", ".join(list(field.values)[:8]) + (", ..." if len(field.values) > 8 else "")


@lint("SEED075")
def resolved_fields(context: Context) -> Iterator[Diagnostic]:
    """Report resolved fields that are unknown or can't have spellings, names that clash, and thresholds in the wrong order."""
    fields, taken = context.seed.field_by_name, set(context.seed.field_by_name) | {"meta"}
    for each in context.seed.resolve:
        node = _node(context, each)
        if each.field not in fields:
            if context.has_fields and each.field not in context.unread_fields:
                yield _unknown_field(context, each, node)
        elif fields[each.field].type not in ("text", "list"):
            message = f"{each.field} is {_RESOLVED[fields[each.field].type]}, which has no spellings"
            yield context.diagnostic("SEED075", message, _value(node, "field"), "resolve a text or a list of texts")
        if each.target in taken:
            message = f"the name {each.target} is already used"
            yield context.diagnostic("SEED075", message, _value(node, "as"), f"for example {each.field}_name")
        taken.add(each.target)
        if each.ask_above > each.same_above:
            message = f"ask_above ({each.ask_above:g}) is greater than same_above ({each.same_above:g})"
            at = (
                _value(node, "ask_above")
                if node is not None and "ask_above" in node.fields
                else _value(node, "same_above")
            )
            yield context.diagnostic("SEED075", message, at, "pairs between the two are decided by the model")


_RESOLVED = {"enum": "an enum", "int": "a whole number", "float": "a number", "bool": "true or false"}


def _unknown_field(context: Context, each: Resolve, node: JsonNode | None) -> Diagnostic:
    texts = tuple(name for name, field in context.seed.field_by_name.items() if field.type in ("text", "list"))
    near, span = context.suggestion(each.field, texts), _value(node, "field")
    edits: Any = context.name_edit(span, each.field, near) if near else ()
    hint = (
        f"did you mean {near}?"
        if near
        else f"the text fields are {', '.join(texts)}"
        if texts
        else "no field is a text"
    )
    return context.diagnostic("SEED075", f"unknown field {each.field:.60}", span, hint, edits=edits)


def _value(node: JsonNode | None, key: str) -> Span:
    return node.fields[key].span if node is not None and key in node.fields else NOWHERE


@lint("SEED076")
def ordered_fields(context: Context) -> Iterator[Diagnostic]:
    """Report fields that are ordered but are not enums."""
    for field in context.seed.fields:
        if field.ordered and field.type != "enum":
            span = _value(_node(context, field), "ordered")
            hint = (
                "numbers always have an order"
                if field.type in ("int", "float")
                else "only the values of an enum are listed"
            )
            yield context.diagnostic("SEED076", f"{field.name} is ordered, but it is not an enum", span, hint)
