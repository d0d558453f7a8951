"""Rules that need the graph: unknown attributes, unknown values, and comparisons of types that never match.

A command with such a fault would run and find nothing; in a plan, that also wastes a model call.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from attrs import evolve, frozen

from ...catalogue.schema import Attribute, Schema
from ...diagnostic import Diagnostic, Edit, Severity
from ...evaluate.conditions import identity
from ...evaluate.conditions.other_types import other_forms
from ...printer.gasl_printer import format_field, format_key, format_text
from ...source import Span
from ...trees.conditions import Comparison, Constant, Field, NullTest
from ...trees.gasl import Path
from .arguments import is_bare_name, is_in
from .conditions import kind_of_value, word_of
from .context import Context, lint
from .fields import FieldRead, Leaf, On, Scope, constants_of, fields_read, increasing_of, leaves_of, oriented
from .patterns import unknown_labels

HAS_THIS_VALUE = "has this value"
"""Part of a hint. It says that the field in the hint has the value that the condition looks for."""
_OFFERED = 8
_EQUALITY = frozenset({"=", "IN"})
_ORDER = frozenset({"<", "<=", ">", ">="})
_TEXTUAL = frozenset({"STARTS_WITH", "ENDS_WITH", "MATCHES"})
DEGREES = frozenset({"degree", "in_degree", "out_degree"})
"""Fields of nodes that are computed, not stored."""
BUILT_IN: Mapping[str, frozenset[str]] = {
    "nodes": frozenset({"id", *DEGREES}),
    "edges": frozenset({"source", "target", "key"}),
    "paths": frozenset({"source", "target", "length", "nodes", "edges"}),
}
"""The built-in fields of each kind of item, in addition to the item's attributes."""


@frozen
class Place:
    """The meaning of a field as an attribute of the graph.

    ``whose`` is the kind of the items that have the attribute: "nodes", "edges" or "paths". ``before`` is the prefix of the
    attribute in the field, as in ``source.``, ``ANY node.`` or ``p.``. If ``kept`` is true, the items are stored in a variable,
    and only the ids of their nodes are stored.
    """

    whose: str
    path: tuple[str, ...]
    before: tuple[str, ...] = ()
    kept: bool = False


def place_of(field: Field, scope: Scope, schema: Schema) -> Place | None:
    """Return the meaning of ``field`` for the items in ``scope``. Return None if it can't be determined from the graph."""
    path, on = field.path, scope.on
    if field.quantifier is not None:
        whose = "nodes" if path[0] == "node" else "edges"
        knows = on == "paths" or (on == "path items" and whose == "edges")
        return Place(whose, path[1:], path[:1]) if knows else None
    if is_in(field, scope.contents.more):
        return None
    if on == "nodes":
        return Place("nodes", path)
    if on in ("patterns", "rows"):
        count, part = scope.contents.holder(path) or (0, "id")
        known = scope.contents.columns or ()
        if (
            part == "id"
            or any(".".join(path[:end]) in known for end in range(count + 1, len(path) + 1))
            or count == len(path)
        ):
            return None
        inner: dict[str, On] = {"nodes": "nodes", "edges": "edges", "paths": "path items"}
        found = place_of(Field(path[count:]), Scope(inner[part]), schema)
        return None if found is None else evolve(found, before=(*path[:count], *found.before))
    if on in ("edges", "edge items", "paths", "path items"):
        whole = ".".join(path)
        if len(path) > 1 and path[0] in ("source", "target") and whole not in schema.edge_attributes:
            return Place("nodes", path[1:], path[:1])
        if on not in ("paths", "path items"):
            return Place("edges", path)
        return (
            None if len(path) > 1 and path[0] in ("node", "edge") else Place("paths", path, (), on != "paths")
        )  # ANY is missing
    return None


def attributes_of(whose: str, schema: Schema) -> Mapping[str, Attribute]:
    """Return a mapping from names to attributes of nodes or of edges. It is empty for paths, which have no attributes."""
    if whose == "paths":
        return {}
    return schema.node_attributes if whose == "nodes" else schema.edge_attributes


def attribute_of(place: Place, schema: Schema) -> Attribute | None:
    """Return the attribute whose name is the complete field, or None. A degree is an integer in every graph."""
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


def tests(context: Context) -> Iterator[tuple[Leaf, Comparison, Place, Schema]]:
    """Yield each comparison of a field with constants, with the meaning of the field.

    In the comparison, the field is on the left. If the field is on the right in the text, the sides are exchanged.
    """
    schema = context.schema
    if schema is None:
        return
    for step in context.steps:
        for leaf, scope in leaves_of(context, step):
            if not isinstance(leaf.test, Comparison):
                continue
            test = oriented(leaf.test)
            if isinstance(test.left, Field):
                place = place_of(test.left, scope, schema)
                if place is not None and place.path:
                    yield leaf, test, place, schema


@lint("GASL070")
def unknown_attribute(context: Context) -> Iterator[Diagnostic]:
    """Report fields that the graph does not have: an error if the command finds nothing or cannot run, else a warning."""
    schema = context.schema
    if schema is None:
        return
    for step in context.steps:
        for read in fields_read(context, step):
            place = place_of(read.field, read.scope, schema)
            if place is None or not place.path or is_known(place, schema) or is_bare_name(read):
                continue
            yield _unknown(context, place, schema, read)
        for increasing, scope in increasing_of(step):
            read = FieldRead(evolve(increasing.field, quantifier="all"), scope)
            place = place_of(read.field, scope, schema)
            if place is not None and not is_known(place, schema):
                yield _unknown(context, place, schema, evolve(read, field=increasing.field))


def _unknown(context: Context, place: Place, schema: Schema, read: FieldRead) -> Diagnostic:
    severity: Severity = "error" if read.must else "warning"
    span, test = read.field.span, read.leaf.test if read.leaf is not None and read.side == "left" else None
    name, known = ".".join(place.path), attributes_of(place.whose, schema)
    if place.whose == "paths":
        return _bare_on_path(context, place, schema, read, severity)
    one = {"nodes": "node", "edges": "edge"}[place.whose]
    shown = name if len(name) <= 80 else name[:79] + "…"
    message = f"no {one} has an attribute {shown}"
    near = context.suggestion(name, _namable(place, known, read.scope))
    holder = _holder(test, known)
    hints, edits = [], []
    if (plain := without_owner(read)) is not None and _is_known_without(plain, read, schema):
        written = format_key(plain)
        hint = f"write {written}: a field is written without the name of the variable or the item"
        edits = [context.replaced(span, written)]
        return context.diagnostic("GASL070", message, span, hint, edits=edits, severity=severity)
    if len(read.field.path) > 1 and read.scope.name and read.field.path[0] in ("left", "right", *context.bound_names):
        hints.append(
            f"in ON a = b, a is a field of the left variable and b of the right one; this must be a field of {read.scope.name}"
        )
    elif place.whose == "nodes" and not place.before and name in ("depth", "parent") and read.scope.name:
        hints.append(f"WALK ... TRACE AS {read.scope.name} adds depth and parent")
    elif meant := near or holder:
        edits = [_renamed(context, span, place, meant)]
        shown = format_field(meant)
        hints.append(f"{shown} {HAS_THIS_VALUE}; did you mean it?" if holder == meant else f"did you mean {shown}?")
    hints += _elsewhere(place, schema, name)
    hints.append(
        f"{place.whose} have {_listed(tuple(known))}"
        if known
        else f"{place.whose} have no attributes, only {_listed(sorted(BUILT_IN[place.whose]))}"
    )
    return context.diagnostic("GASL070", message, span, *hints, edits=edits, severity=severity)


def without_owner(read: FieldRead) -> Field | None:
    """Return the field without a prefix that only repeats which items have it.

    For the items of ``x``, ``x.id`` becomes ``id``; for edges, ``edge.amount`` becomes ``amount``. Return None for any other field.
    """
    field, scope = read.field, read.scope
    owners = {scope.name} if scope.name else {"edge", "node"}
    if (
        len(field.path) < 2
        or field.quantifier is not None
        or field.path[0] not in owners
        or scope.on in ("paths", "path items")
    ):
        return None
    return evolve(field, path=field.path[1:])


def _is_known_without(plain: Field, read: FieldRead, schema: Schema) -> bool:
    place = place_of(plain, read.scope, schema)
    return place is not None and bool(place.path) and is_known(place, schema)


def _namable(place: Place, known: Mapping[str, Attribute], scope: Scope) -> tuple[str, ...]:
    """Return the candidates for a misspelt name. Short built-in names are excluded, because they resemble every short word."""
    more = scope.contents.more if not place.before else ()
    return (*(name for name in sorted(BUILT_IN[place.whose]) if len(name) > 3), *known, *more)


def _bare_on_path(context: Context, place: Place, schema: Schema, read: FieldRead, severity: Severity) -> Diagnostic:
    """Return a diagnostic about an attribute that is used on a path. Paths have no attributes."""
    name, span = format_key(Path(place.path)), read.field.span
    message = f"a path has no attribute {name}"
    known_edges = ".".join(place.path) in schema.edge_attributes or place.path[0] in schema.edge_attributes
    if read.leaf is None:
        hints = [f"paths have {', '.join(('source', 'target', 'length', *read.scope.contents.more))}, nodes and edges"]
        if known_edges:
            hints.insert(0, f"edges have it: edges.{name} is the list of its values, as in sum(edges.{name})")
        return context.diagnostic("GASL070", message, span, *hints, severity=severity)
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
    quantified = context.text(span).split()[:-1] if place.before and place.before[0] in ("node", "edge") else []
    return context.replaced(span, " ".join((*quantified, written)))


def _holder(test: Comparison | NullTest | None, known: Mapping[str, Attribute]) -> str | None:
    """Return the only attribute that has the value in ``test``: for ``kind = "PERSON"``, this may be ``entity_type``."""
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
        return [f"nodes have it: write source.{format_field(name)} or target.{format_field(name)}"]
    if place.whose == "nodes" and (name in schema.edge_attributes or first in schema.edge_attributes):
        return ["edges have it: use FIND edges"]
    if place.whose == "nodes" and len(place.path) > 1 and first in ("source", "target"):
        return [f"{first}.x belongs to an edge: use FIND edges"]
    return []


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _OFFERED} more" if len(names) > _OFFERED else ""
    return ", ".join(format_field(name[:40]) for name in names[:_OFFERED]) + more


@frozen
class _Values:
    """All values of an attribute, frequent values first. ``texts`` are those values that are strings."""

    all: list[object]
    identities: frozenset[object]
    texts: tuple[str, ...]

    @property
    def listed(self) -> str:
        shown = (_written(each[:40] if isinstance(each, str) else each) for each in self.all[:_OFFERED])
        more = f" and {len(self.all) - _OFFERED} more" if len(self.all) > _OFFERED else ""
        return ", ".join(shown) + more


@lint("GASL071")
def unknown_value(context: Context) -> Iterator[Diagnostic]:
    """Report values and labels that an attribute never has. Only attributes whose values are all known are checked."""
    known: dict[tuple[str, str], _Values | None] = {}
    told = 0
    for _, test, place, schema in tests(context):
        attribute = attribute_of(place, schema)
        if attribute is None and test.operator in _EQUALITY and is_id(place):
            found = list(_unknown_ids(context, test, schema, near=told < _MOST_IDS))
            told += len(found)
            yield from found
        if attribute is None or test.operator not in _EQUALITY:
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
            near: object = next((form for form in other_forms(value) if identity(form) in values.identities), None)
            if near is None and isinstance(value, str):
                near = context.suggestion(value, values.texts)
            shown = _written(value[:60] if isinstance(value, str) else value)
            edits = [Edit(constant.span, _written(near))] if near is not None else []
            hints = [f"did you mean {_written(near)}?"] if near is not None else _owners(value, place, schema)
            message = f"{attribute.name} is never {shown}"
            yield context.diagnostic(
                "GASL071", message, constant.span, *hints, f"its values are {values.listed}", edits=edits
            )
    yield from unknown_labels(context)


def _written(value: object) -> str:
    """Return a scalar as it is written in a program."""
    return (
        format_text(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    )


def is_id(place: Place) -> bool:
    """Return whether a field is the id of a node."""
    ends = ("source",), ("target",)
    return place.path == ("id",) if place.whose == "nodes" else place.path in ends


_MOST_IDS = 5
"""Maximum number of unknown ids that are reported for one test.

Once a program has this many, no more similar ids are looked up.
"""


def _unknown_ids(context: Context, test: Comparison, schema: Schema, *, near: bool) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each constant that is not the id of a node."""
    ids = schema.all_ids
    if ids is None:
        return
    unknown = [each for each in constants_of(test) if each.value is not None and each.value not in ids]
    for constant in unknown[:_MOST_IDS]:
        value = constant.value
        other: int | str | None = None
        if isinstance(value, str):
            other = int(value) if value.isascii() and value.isdigit() and len(value) < 18 else None
        elif isinstance(value, int) and not isinstance(value, bool):
            other = str(value)
        meant = other if other is not None and other in ids else None
        if meant is None and near and isinstance(value, str):
            meant = ids.nearest(value)
        shown = format_text(value[:60]) if isinstance(value, str) else str(value)
        written = "" if meant is None else format_text(meant) if isinstance(meant, str) else str(meant)
        edits = [Edit(constant.span, written)] if written else []
        hint = f"did you mean {written}?" if written else ""
        yield context.diagnostic("GASL071", f"no node has the id {shown}", constant.span, hint, edits=edits)


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


KINDS = {
    "integer": "number",
    "float": "number",
    "text": "text",
    "boolean": "boolean",
    "list": "list",
    "object": "object",
}
"""Maps the types in a schema to the kinds of values."""


def _never_meets(attribute: Attribute, constant: Constant, operator: str) -> bool:
    """Return whether the comparison can never be true, because of the types of the attribute's values."""
    kinds = {KINDS[kind] for kind in attribute.types if kind in KINDS}
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
    for leaf, test, place, schema in tests(context):
        attribute = attribute_of(place, schema)
        if attribute is None:
            continue
        if test.operator not in _EQUALITY | _ORDER | _TEXTUAL | {"CONTAINS", "!="}:
            continue
        for constant in constants_of(test):
            if not _never_meets(attribute, constant, test.operator):
                continue
            kinds = " or ".join(sorted({word_of(KINDS[kind]) for kind in attribute.types if kind in KINDS}))
            kind = word_of(kind_of_value(constant.value))
            if test.operator in _TEXTUAL or test.operator == "CONTAINS":
                message = f"{attribute.name} is always a {kinds}, which {test.operator} never matches"
            else:
                message = f"{attribute.name} is always a {kinds}, never a {kind}"
            edit = _other_type(context, attribute, constant, test.operator, place, schema)
            severity: Severity = "error" if leaf.must and test.operator not in ("!=", "IN") else "warning"
            hint = f"write {edit.text}" if edit else "values of different types are unequal and have no order"
            if (
                edit is None
                and test.operator in _EQUALITY
                and (values := _all_values(attribute, place, schema)) is not None
            ):
                hint = f"its values are {values.listed}"
            if kinds == "string" and test.operator in _ORDER:
                hint = "strings are ordered character by character, not as numbers"
            yield context.diagnostic(
                "GASL072", message, constant.span, hint, edits=[edit] if edit else [], severity=severity
            )


def _other_type(
    context: Context, attribute: Attribute, constant: Constant, operator: str, place: Place, schema: Schema
) -> Edit | None:
    """Return the edit that turns ``"30"`` into 30, or 30 into ``"30"``.

    The attribute's type must require it, and the meaning must stay the same. If the operator tests for equality, the attribute must have
    the new value.
    """
    kinds = {KINDS[kind] for kind in attribute.types if kind in KINDS}
    value = constant.value
    if operator in _TEXTUAL or operator == "CONTAINS" or kind_of_value(value) not in ("text", "number", "boolean"):
        return None
    if operator in _ORDER and (kinds == {"text"} or "boolean" in (kind_of_value(value), *kinds)):
        return None  # strings have another order than numbers: "9" is above "10"; booleans and numbers have no order
    forms = other_forms(value) if isinstance(value, str) else (context.text(constant.span), *other_forms(value))
    for form in dict.fromkeys(forms):
        if kinds == {kind_of_value(form)} and (operator in _ORDER or _has_value(attribute, place, schema, form)):
            unquoted = isinstance(value, str) and kinds == {"number"}
            return Edit(constant.span, context.text(constant.span)[1:-1] if unquoted else _written(form))
    return None


def _has_value(attribute: Attribute, place: Place, schema: Schema, value: str | float) -> bool:
    """Return whether the attribute has a value; true if this is unknown."""
    values = _all_values(attribute, place, schema)
    if values is not None:
        return identity(value) in values.identities
    if schema.all_ids is None:
        return True
    whose: Literal["nodes", "edges"] = "edges" if place.whose == "edges" else "nodes"
    return bool(schema.all_ids.matching(whose, Comparison(Field(place.path), "=", Constant(value)), 1))
