"""The kinds of values: fields (from the graph's schema), variables (from their contents) and calls (from their result types)."""

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, frozen

from ...catalogue.schema import Schema
from ...catalogue.value_functions import VALUE_FUNCTIONS, result_kind
from ...diagnostic import Diagnostic, Edit
from ...printer.gasl_printer import format_condition, format_field, format_name
from ...source import Span
from ...trees import Node, gasl, walk
from ...trees.conditions import Binary, Call, Constant, Field, Items, Length, Negative, NullTest, Variable
from .conditions import kind_of_value
from .contents import fields_in
from .context import Context, Step, Use
from .fields import On, Scope, leaves_of
from .graph import KINDS, attribute_of, place_of

_NUMBER = frozenset({"number"})
_TEXT = frozenset({"text"})
_LIST = frozenset({"list"})
_OBJECT = frozenset({"object"})
_OF_PARAMETERS = {"TEXT": _TEXT, "INT": _NUMBER, "FLOAT": _NUMBER, "BOOL": frozenset({"boolean"}), "LIST": _LIST}


@frozen
class Shape:
    """The kinds that a non-null value may have, and the kinds of the elements if the value is a list. None means unknown."""

    kinds: frozenset[str] | None = None
    elements: frozenset[str] | None = None

    @property
    def is_scalar(self) -> bool:
        """Return whether the value is certainly neither a list nor an object."""
        return self.kinds is not None and self.kinds.isdisjoint(_LIST | _OBJECT)


UNKNOWN = Shape()


def shape_of(context: Context, step: Step, value: Node, scope: Scope) -> Shape:
    """Return the kinds of ``value``. Its fields are fields of the items in ``scope``."""
    match value:
        case Constant():
            return Shape(kinds_of_constant(value))
        case Items():
            return Shape(_LIST, _together(map(kinds_of_constant, value.items)))
        case Field():
            return _of_field(context.schema, value, scope)
        case Variable():
            return _of_variable(context, step, value)
        case Length() | Negative():
            return Shape(_NUMBER)
        case Binary():
            sides = [shape_of(context, step, side, scope).kinds for side in (value.left, value.right)]
            joins = value.sign == "+" and None not in sides and all(side == _TEXT for side in sides)
            is_open = value.sign == "+" and any(side is None or not side <= _NUMBER for side in sides)
            return Shape(_TEXT if joins else None if is_open else _NUMBER)
        case Call():
            return _of_call(context, step, value, scope)
    return UNKNOWN


def kinds_of_constant(value: Constant) -> frozenset[str]:
    """Return the kind of a constant; empty for null."""
    kind = kind_of_value(value.value)
    return frozenset() if kind == "null" else frozenset({kind})


def _together(kinds: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    found: frozenset[str] = frozenset()
    for each in kinds:
        if each is None:
            return None
        found |= each
    return found


def _of_call(context: Context, step: Step, call: Call, scope: Scope) -> Shape:
    if call.function in ("if", "coalesce"):
        results = call.arguments[1:] if call.function == "if" else call.arguments
        return Shape(_together(shape_of(context, step, each, scope).kinds for each in results))
    gives = result_kind(call.function) if call.function in VALUE_FUNCTIONS else ""
    return Shape(frozenset({gives})) if gives else UNKNOWN


def _of_field(schema: Schema | None, field: Field, scope: Scope) -> Shape:
    if (
        scope.on == "nodes"
        and field.quantifier is None
        and field.path in (("degree",), ("in_degree",), ("out_degree",))
    ):
        return Shape(_NUMBER)
    if schema is None:
        return UNKNOWN
    held = scope.contents.holder(field.path) if scope.on in ("rows", "patterns") else None
    if held is not None and held[0] == len(field.path):
        return _ids(schema) if held[1] == "id" else Shape(_OBJECT)
    place = place_of(field, scope, schema)
    if place is None or not place.path:
        return UNKNOWN
    if place.path == ("id",) and place.whose == "nodes":
        return _ids(schema)
    if place.path in (("source",), ("target",)) and place.whose in ("edges", "paths"):
        return _ids(schema)
    if place.whose == "paths":
        return Shape(
            _NUMBER if place.path == ("length",) else _LIST if place.path in (("nodes",), ("edges",)) else None
        )
    attribute = attribute_of(place, schema)
    kinds = frozenset(KINDS[kind] for kind in attribute.types if kind in KINDS) if attribute is not None else None
    return Shape(kinds or None)


def _ids(schema: Schema) -> Shape:
    """Return the kinds of the ids of nodes, which are strings and integers."""
    return Shape(frozenset(KINDS[kind] for kind in schema.id_types if kind in KINDS) or _TEXT | _NUMBER)


def _of_variable(context: Context, step: Step, variable: Variable) -> Shape:
    use = use_of(step, variable)
    if use is None:
        return UNKNOWN
    parameters = [binding.command for binding in use.bindings if isinstance(binding.command, gasl.Param)]
    if len(parameters) == len(use.bindings) == 1 and not variable.path:
        return _of_parameter(parameters[0])
    if use.kind == "number" and not variable.path:
        return Shape(_NUMBER)
    if use.kind not in _LISTS or missing_part(context, use, variable):
        return UNKNOWN
    if not variable.path:
        return Shape(_LIST, _OBJECT)
    first, *rest = variable.path
    if isinstance(first, int):
        if not rest:
            return Shape(_OBJECT)
        return _of_part(context, use, tuple(rest))
    return Shape(_LIST, _of_part(context, use, variable.path).kinds)


def _of_parameter(command: gasl.Param) -> Shape:
    """Return the kinds of a parameter. The kinds are unknown if the default has another type, because then the type may be wrong."""
    kinds = _OF_PARAMETERS[command.type]
    given = kinds_of_constant(command.default) if command.default is not None else frozenset[str]()
    return Shape(kinds) if given <= kinds else UNKNOWN


def _of_part(context: Context, use: Use, path: tuple[str | int, ...]) -> Shape:
    """Return the kinds of a field of the items in a variable."""
    names = tuple(part for part in path if isinstance(part, str))
    if len(names) < len(path):
        return UNKNOWN
    found = _of_field(context.schema, Field(names), Scope(_LISTS[use.kind], use.contents))
    is_stored = names[0] not in ("degree", "in_degree", "out_degree")
    return found if is_stored else UNKNOWN


_LISTS: Mapping[str, On] = {"nodes": "nodes", "edges": "edge items", "paths": "path items", "rows": "rows"}


def use_of(step: Step, variable: Variable) -> Use | None:
    """Return the place where the command reads ``variable``, or None if the command does not read it."""
    return next((use for use in step.uses if use.span is variable.span), None)


_COUNTS = frozenset({"length", "len", "size", "count"})
_OFFERED = 30


def unknown_parts(context: Context) -> Iterator[Diagnostic]:
    """Report fields in ``${x.field}`` that the items of the variable lack. The value of such a field is always null or an empty list.

    The severity is "warning" if the command may still find something, and in ASSERT and BRANCH, which may test for a missing
    field.
    """
    for step in context.steps:
        variables = [node for node in step.nodes_of(Variable) if node.path]
        harmless = set(_harmless(context, step)) if variables else set()
        for node in variables:
            if (use := use_of(step, node)) is None:
                continue
            if use.kind == "number":
                message = f"{use.name} is a number, so {format_condition(node)} has no value"
                found = context.diagnostic(
                    "GASL073", message, node.span, f"write {format_condition(Variable(use.name))}"
                )
            elif missing_part(context, use, node):
                found = _unknown_part(context, use, node)
            else:
                continue
            yield evolve(found, severity="warning") if node.span in harmless else found


def _harmless(context: Context, step: Step) -> Iterator[Span]:
    """Yield the spans of the variables in tests that may be false although the entire condition is true."""
    for leaf, scope in leaves_of(context, step):
        if not leaf.must or isinstance(leaf.test, NullTest) or scope.on == "variables":
            yield from (node.span for node in walk(leaf.test) if isinstance(node, Variable))


def missing_part(context: Context, use: Use, variable: Variable) -> bool:
    """Return whether ``variable`` names a field that the items certainly do not have."""
    if not variable.path or use.kind not in _LISTS:
        return False
    names, columns = _names_of(variable), fields_in(use.contents, context.schema)
    return bool(names) and columns is not None and not _is_in(use, names, columns)


def _names_of(variable: Variable) -> tuple[str, ...]:
    """Return the field that ``variable`` names in the items.

    The field consists of the names after the first index, up to the next index.
    """
    path = variable.path[1:] if isinstance(variable.path[0], int) else variable.path
    end = next((place for place, part in enumerate(path) if isinstance(part, int)), len(path))
    return tuple(part for part in path[:end] if isinstance(part, str))


def _is_in(use: Use, names: tuple[str, ...], columns: tuple[str, ...]) -> bool:
    """Return whether the items have or may have the field."""
    if any(".".join(names[:count]) in columns for count in range(len(names), 1, -1)):
        return True
    is_id = use.contents.own_parts().get(names[0]) == "id" or (use.kind == "paths" and names[0] in ("source", "target"))
    return names[0] in columns and not (is_id and len(names) > 1)


def _unknown_part(context: Context, use: Use, variable: Variable) -> Diagnostic:
    names, columns = _names_of(variable), fields_in(use.contents, context.schema) or ()
    name, whole = ".".join(names), format_name(use.name)
    message = f"the {use.kind} of {use.name} have no field {name[:80]}"
    hints: list[str] = []
    edits: list[Edit] = []
    near = context.suggestion(name, columns)
    if name in _COUNTS and len(variable.path) == 1:
        hints.append(f"LEN ${{{whole}}} is the number of items")
    elif names[0] in ("first", "last"):
        rest = "".join(f".{format_name(part)}" for part in names[1:])
        hints.append(f"write ${{{whole}[{0 if names[0] == 'first' else -1}]{rest}}}")
    elif names[0] in columns:
        hints.append(f"{names[0]} is only the id of a node")
    elif near is not None:
        hints.append(f"did you mean {format_field(near)}?")
        at = context.spelled(format_name(names[0]), variable.span, variable.span.start + len(whole) + 2)
        edits = [Edit(at, format_name(near))] if at is not None and len(names) == 1 and "." not in near else []
    elif name in ("degree", "in_degree", "out_degree") and use.kind == "nodes":
        hints.append(f"add it to the items first: SELECT {whole} FIELDS id, {name} AS rows")
    more = f" and {len(columns) - _OFFERED} more" if len(columns) > _OFFERED else ""
    hints.append(f"the fields are {', '.join(map(format_field, columns[:_OFFERED]))}{more}")
    return context.diagnostic("GASL073", message, variable.span, *hints, edits=edits)
