"""Rules that need the graph: unknown attributes, unknown values, and comparisons of types that never match.

A command with such a fault would run and find nothing; in a plan, that also wastes a model call.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from attrs import frozen

from ...catalogue.schema import Attribute, Schema
from ...diagnostic import Diagnostic, Edit, Severity
from ...evaluate.conditions import identity
from ...printer.gasl_printer import format_key, format_text
from ...source import Span
from ...trees import gasl
from ...trees.conditions import Comparison, Constant, Field, NullTest
from ...trees.gasl import Path
from .arguments import fields_of
from .conditions import Leaf, On, constants_of, kind_of_value, leaves, tested
from .context import Context, lint

HAS_THIS_VALUE = "has this value"
"""Words in a hint: the field that the hint names has the value that the condition tests for."""
_OFFERED = 8
_EQUALITY = frozenset({"=", "IN"})
_ORDER = frozenset({"<", "<=", ">", ">="})
_TEXTUAL = frozenset({"STARTS_WITH", "ENDS_WITH", "MATCHES"})
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?")
DEGREES = frozenset({"degree", "in_degree", "out_degree"})
"""Fields of nodes that are computed when nodes are found."""
BUILT_IN: Mapping[str, frozenset[str]] = {
    "nodes": frozenset({"id", *DEGREES}),
    "edges": frozenset({"source", "target", "key"}),
    "paths": frozenset({"source", "target", "length", "nodes", "edges"}),
}
"""The built-in fields of each kind of item, in addition to the item's attributes."""


@frozen
class Place:
    """The meaning of a field: ``whose`` attribute it is, and the prefix before its name (``source.``, ``ANY node.``).

    ``kept``: the items are in a variable, where they have only the ids of their nodes.
    """

    whose: str
    path: tuple[str, ...]
    before: tuple[str, ...] = ()
    kept: bool = False


def place_of(field: Field, on: On, schema: Schema) -> Place | None:
    """Return the meaning of ``field`` in a condition on the items ``on``; None if the graph does not determine it."""
    path = field.path
    if field.quantifier is not None:
        whose = "nodes" if path[0] == "node" else "edges"
        knows = on == "paths" or (on == "path items" and whose == "edges")
        return Place(whose, path[1:], path[:1]) if knows else None
    if on == "nodes":
        return Place("nodes", path)
    if on in ("edges", "edge items", "paths", "path items"):
        whole = ".".join(path)
        if len(path) > 1 and path[0] in ("source", "target") and whole not in schema.edge_attributes:
            return Place("nodes", path[1:], path[:1]) if on in ("edges", "paths") else None
        if on not in ("paths", "path items"):
            return Place("edges", path)
        return (
            None if len(path) > 1 and path[0] in ("node", "edge") else Place("paths", path, (), on != "paths")
        )  # ANY is missing
    return None


def attributes_of(whose: str, schema: Schema) -> Mapping[str, Attribute]:
    """Return the attributes of nodes or of edges by name; paths have no attributes."""
    if whose == "paths":
        return {}
    return schema.node_attributes if whose == "nodes" else schema.edge_attributes


def attribute_of(place: Place, schema: Schema) -> Attribute | None:
    """Return the attribute whose name is the whole field, or None. A degree is an integer in every graph."""
    if len(place.path) == 1 and place.path[0] in DEGREES and place.whose == "nodes":
        return Attribute(place.path[0], schema.nodes, {"integer": schema.nodes})
    return attributes_of(place.whose, schema).get(".".join(place.path))


def is_known(place: Place, schema: Schema) -> bool:
    """Return whether the graph has the field."""
    known = attributes_of(place.whose, schema)
    if ".".join(place.path) in known:
        return True
    if place.path[0] in BUILT_IN[place.whose] and (len(place.path) == 1 or place.whose == "paths"):
        return True
    first = known.get(place.path[0])
    return first is not None and (
        len(place.path) == 1 or not first.types or bool({"object", "list"} & first.types.keys())
    )


def _tests(context: Context) -> Iterator[tuple[Leaf, Place, Schema]]:
    """Yield each test of a field whose meaning the graph determines, with this meaning and the schema."""
    schema = context.schema
    if schema is None:
        return
    for step in context.steps:
        for condition, on in tested(step):
            for leaf in leaves(condition):
                if isinstance(leaf.test.left, Field):
                    place = place_of(leaf.test.left, on, schema)
                    if place is not None and place.path:
                        yield leaf, place, schema


@lint("GASL070")
def unknown_attribute(context: Context) -> Iterator[Diagnostic]:
    """Report fields that the graph does not have: an error if the command therefore finds nothing, else a warning."""
    for leaf, place, schema in _tests(context):
        if is_known(place, schema):
            continue
        decides = leaf.must and not isinstance(leaf.test, NullTest)
        assert isinstance(leaf.test.left, Field)  # noqa: S101  # _tests yields no others
        yield _unknown(context, place, schema, leaf.test.left.span, leaf.test, "error" if decides else "warning")
    yield from _unknown_fields(context)


def _unknown_fields(context: Context) -> Iterator[Diagnostic]:
    """Yield the unknown fields in ORDER BY, SELECT FIELDS, BY and ON, for nodes and edges that a FIND has found."""
    schema = context.schema
    if schema is None:
        return
    for _, command in context.commands(gasl.Find):
        if isinstance(command, gasl.Find):
            for order in command.order:
                place = place_of(Field(order.field.parts), command.kind, schema)
                if place is not None and not is_known(place, schema):
                    yield _unknown(context, place, schema, order.field.span, None, "error")
    for step in context.steps:
        for name, path in fields_of(step.command):
            use = step.use_of(name)
            if use is None or use.kind not in ("nodes", "edges", "paths"):
                continue
            place = Place(use.kind, path.parts, (), use.kind == "paths")
            if not is_known(place, schema) or (place.whose == "nodes" and set(path.parts) <= DEGREES):
                yield _unknown(context, place, schema, path.span, None, "error", _OF_VARIABLES)


def _unknown(
    context: Context, place: Place, schema: Schema, span: Span, test: Comparison | NullTest | None, severity: Severity,
    built_in: Mapping[str, frozenset[str]] = BUILT_IN,
) -> Diagnostic:  # fmt: skip
    name, known = ".".join(place.path), attributes_of(place.whose, schema)
    one = {"nodes": "node", "edges": "edge", "paths": "path"}[place.whose]
    shown = name if len(name) <= 80 else name[:79] + "…"
    message = f"no {one} has an attribute {shown}"
    if place.whose == "paths":
        return _bare_on_path(context, place, schema, span, severity, in_test=test is not None)
    if name in DEGREES and place.whose == "nodes":
        hint = f"FIND knows the {name}: FIND nodes WHERE {name} > 1 ORDER BY {name} DESC; MEASURE returns it as a field"
        return context.diagnostic(
            "GASL070", f"the nodes of a variable do not store the {name}", span, hint, severity="error"
        )
    near = context.suggestion(name, _namable(built_in[place.whose], known))
    holder = _holder(test, known)
    hints, edits = [], []
    if meant := near or holder:
        edits = [_renamed(context, span, place, meant)]
        hints.append(f"{meant} {HAS_THIS_VALUE}; did you mean it?" if holder == meant else f"did you mean {meant}?")
    hints += _elsewhere(place, schema, name)
    hints.append(
        f"{place.whose} have {_listed(tuple(known))}"
        if known
        else f"{place.whose} have no attributes, only {_listed(sorted(built_in[place.whose]))}"
    )
    return context.diagnostic("GASL070", message, span, *hints, edits=edits, severity=severity)


_OF_VARIABLES = {**BUILT_IN, "nodes": BUILT_IN["nodes"] - DEGREES}
"""The built-in fields of items in a variable. Degrees are missing, because they are computed only when nodes are found."""


def _namable(built_in: Collection[str], known: Mapping[str, Attribute]) -> tuple[str, ...]:
    """Return the candidates for a misspelt name. Short built-in names are left out, because they resemble every short word."""
    return (*(name for name in sorted(built_in) if len(name) > 3), *known)


def _bare_on_path(
    context: Context, place: Place, schema: Schema, span: Span, severity: Severity, *, in_test: bool
) -> Diagnostic:
    """Return a diagnostic about an attribute used on a path, because paths have no attributes."""
    name = format_key(Path(place.path))
    message = f"a path has no attribute {name}"
    if not in_test:
        return context.diagnostic(
            "GASL070", message, span, "paths have source, target, length, nodes and edges", severity=severity
        )
    hints = ["paths have source.x, target.x, length, ANY node.x and ANY edge.x"]
    for whose, known in (("node", schema.node_attributes), ("edge", schema.edge_attributes)):
        if whose == "node" and place.kept:
            continue
        if ".".join(place.path) in known or place.path[0] in known:
            hints.insert(0, f"{whose}s have it: write ANY {whose}.{name}, ALL {whose}.{name} or NONE {whose}.{name}")
    # The diagnostic has no edit: only the author knows whether one match is enough (ANY) or all must match (ALL).
    return context.diagnostic("GASL070", message, span, *hints, severity=severity)


def _renamed(context: Context, span: Span, place: Place, name: str) -> Edit:
    """Return the edit that replaces an unknown attribute with the attribute ``name``."""
    written = format_key(Path((*place.before, name)))
    text = context.text(span)
    quantified = text.split()[:1] if place.before and place.before[0] in ("node", "edge") else []
    return Edit(span, " ".join((*quantified, written)))


def _holder(test: Comparison | NullTest | None, known: Mapping[str, Attribute]) -> str | None:
    """Return the only known attribute with the value in ``test``: the author of ``kind = "PERSON"`` meant entity_type."""
    wanted = (
        [item.value for item in constants_of(test)]
        if isinstance(test, Comparison) and test.operator in _EQUALITY
        else []
    )
    texts = {value for value in wanted if isinstance(value, str)}
    found = [
        name
        for name, a in known.items()
        if texts and any(value in texts for value, _ in a.values if isinstance(value, str))
    ]
    return found[0] if len(found) == 1 else None


def _elsewhere(place: Place, schema: Schema, name: str) -> list[str]:
    first = place.path[0]
    if place.whose == "edges" and (name in schema.node_attributes or first in schema.node_attributes):
        return [f"nodes have it: write source.{name} or target.{name}"]
    if place.whose == "nodes" and (name in schema.edge_attributes or first in schema.edge_attributes):
        return ["edges have it: use FIND edges"]
    if place.whose == "nodes" and len(place.path) > 1 and first in ("source", "target"):
        return [f"{first}.x belongs to an edge: use FIND edges"]
    return []


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _OFFERED} more" if len(names) > _OFFERED else ""
    return ", ".join(name[:40] for name in names[:_OFFERED]) + more


@frozen
class _Values:
    """All values of an attribute, frequent values first, with their identities and the strings among them."""

    all: list[object]
    identities: frozenset[object]
    texts: tuple[str, ...]

    @property
    def listed(self) -> str:
        shown = (format_text(each[:40]) if isinstance(each, str) else str(each) for each in self.all[:_OFFERED])
        more = f" and {len(self.all) - _OFFERED} more" if len(self.all) > _OFFERED else ""
        return ", ".join(shown) + more


@lint("GASL071")
def unknown_value(context: Context) -> Iterator[Diagnostic]:
    """Report values that an attribute does not have, if all its values are known."""
    known: dict[tuple[str, str], _Values | None] = {}
    for leaf, place, schema in _tests(context):
        test, attribute = leaf.test, attribute_of(place, schema)
        if attribute is None or not isinstance(test, Comparison) or test.operator not in _EQUALITY:
            continue
        key = (place.whose, attribute.name)
        if key not in known:
            known[key] = _all_values(attribute, place, schema)
        values = known[key]
        if values is None:
            continue
        for constant in constants_of(test):
            value = constant.value
            is_there = value is None or identity(value) in values.identities
            if is_there or _never_meets(attribute, constant, test.operator):
                continue
            near = context.suggestion(value, values.texts) if isinstance(value, str) else None
            shown = format_text(value[:60]) if isinstance(value, str) else str(value)
            edits = [Edit(constant.span, format_text(near))] if near is not None else []
            hints = [f"did you mean {format_text(near)}?"] if near is not None else _owners(value, place, schema)
            message = f"{attribute.name} is never {shown}"
            yield context.diagnostic(
                "GASL071", message, constant.span, *hints, f"its values are {values.listed}", edits=edits
            )


def _all_values(attribute: Attribute, place: Place, schema: Schema) -> _Values | None:
    """Return all values of an attribute, or None if they are not all known."""
    labelled = schema.label_attribute, schema.labels
    if place.whose == "edges":
        labelled = schema.relation_attribute, schema.relations
    found: list[object] = []
    if {"list", "object"} & attribute.types.keys() or attribute.distinct is None:
        return None
    if attribute.distinct == len(attribute.values):
        found = [value for value, _ in attribute.values]
    elif labelled[0] == attribute.name and len(labelled[1]) == attribute.distinct:
        found = list(labelled[1])
    texts = tuple(value for value in found if isinstance(value, str))
    return _Values(found, frozenset(map(identity, found)), texts) if found else None


def _owners(value: object, place: Place, schema: Schema) -> list[str]:
    """Return a hint that names another attribute with this value, or an empty list."""
    if place.whose == "nodes" and value in schema.relations and schema.relation_attribute:
        return [f"edges have it as {schema.relation_attribute}: use FIND edges"]
    if place.whose == "edges" and value in schema.labels and schema.label_attribute:
        return [f"nodes have it: write source.{schema.label_attribute} or target.{schema.label_attribute}"]
    known = attributes_of(place.whose, schema).items()
    owners = [name for name, a in known if any(value == each and type(value) is type(each) for each, _ in a.values)]
    return [f"{owners[0]} has this value"] if owners else []


_KINDS = {
    "integer": "number",
    "float": "number",
    "text": "text",
    "boolean": "boolean",
    "list": "list",
    "object": "object",
}


def _never_meets(attribute: Attribute, constant: Constant, operator: str) -> bool:
    """Return whether the types make the comparison false for every value of the attribute."""
    kinds = {_KINDS[kind] for kind in attribute.types if kind in _KINDS}
    kind = kind_of_value(constant.value)
    if not kinds or kind == "null":
        return False
    if operator in _TEXTUAL:
        return "text" not in kinds
    if operator == "CONTAINS":
        return not ("list" in kinds or ("text" in kinds and kind == "text"))
    return kind not in kinds


@lint("GASL072")
def attribute_type(context: Context) -> Iterator[Diagnostic]:
    """Report comparisons of an attribute with a value of a type that the attribute never has."""
    for leaf, place, schema in _tests(context):
        test, attribute = leaf.test, attribute_of(place, schema)
        if attribute is None or not isinstance(test, Comparison):
            continue
        if test.operator not in _EQUALITY | _ORDER | _TEXTUAL | {"CONTAINS", "!="}:
            continue
        for constant in constants_of(test):
            if not _never_meets(attribute, constant, test.operator):
                continue
            kinds = " or ".join(sorted({_KINDS[kind] for kind in attribute.types if kind in _KINDS}))
            kind = kind_of_value(constant.value)
            if test.operator in _TEXTUAL or test.operator == "CONTAINS":
                message = f"{attribute.name} is always a {kinds}, which {test.operator} never matches"
            else:
                message = f"{attribute.name} is always a {kinds}, never a {kind}"
            edit = _other_type(context, attribute, constant, test.operator)
            severity: Severity = "error" if leaf.must and test.operator not in ("!=", "IN") else "warning"
            hint = f"write {edit.text}" if edit else "values of different types are unequal and have no order"
            if kinds == "text" and test.operator in _ORDER:
                hint = "texts are ordered letter by letter, not as numbers"
            yield context.diagnostic(
                "GASL072", message, constant.span, hint, edits=[edit] if edit else [], severity=severity
            )


def _other_type(context: Context, attribute: Attribute, constant: Constant, operator: str) -> Edit | None:
    """Return the edit that turns ``"30"`` into 30 or 30 into ``"30"``, if the attribute's type requires it and the meaning stays."""
    kinds = {_KINDS[kind] for kind in attribute.types if kind in _KINDS}
    value = constant.value
    if operator in _TEXTUAL or operator == "CONTAINS":
        return None
    if kinds == {"text"} and kind_of_value(value) in ("number", "boolean"):
        if operator in _ORDER:  # strings have another order than numbers: "9" is above "10"
            return None
        return Edit(constant.span, format_text(context.text(constant.span)))
    if isinstance(value, str) and kinds == {"boolean"} and value.lower() in ("true", "false"):
        return Edit(constant.span, value.lower())
    if isinstance(value, str) and kinds == {"number"} and _NUMBER.fullmatch(value):
        return Edit(constant.span, value)
    return None
