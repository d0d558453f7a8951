"""The type of all values of an output, if the seed alone proves it. The columns of results get their types from here.

The types are the same whatever the data, so that the results of two runs, or of two parts of one run, have equal columns.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from ...catalogue.operations import FUNCTIONS, METHODS
from ...trees import expr as e
from ...trees.seed import Aggregate, Case, Const, DefineFilter, Formula, FormulaSeed, Lookup, Reduce, SeedStep

OutputType: TypeAlias = Literal["count", "number", "text", "bool", "json"]
"""``count`` is a whole number of extractions. ``json`` means that no other type fits all values. All values may be null."""

_NULL = "null"
_META: Mapping[str, OutputType] = {
    **dict.fromkeys(("stars", "useful", "year", "month", "age_days"), "number"),
    "date": "text",
}
_GIVEN: Mapping[str, str] = {"number": "number", "text": "text", "boolean": "bool", "list": "json"}
_FIELDS: Mapping[str, str] = {
    "int": "number",
    "float": "number",
    "bool": "bool",
    "enum": "text",
    "text": "text",
    "list": "json",
}


def output_types(seed: FormulaSeed) -> dict[str, OutputType]:
    """Return the type of each output of the seed, in the order of the outputs."""
    known: dict[str, str] = {}
    for step in seed.steps:
        if not isinstance(step, DefineFilter):
            known[step.name] = _of_step(seed, step, known)
    return {name: _type(known.get(name, "json")) for name in seed.outputs}


def _type(found: str) -> OutputType:
    types: Mapping[str, OutputType] = {"count": "count", "number": "number", "text": "text", "bool": "bool"}
    return types.get(found, "json")


def _of_step(seed: FormulaSeed, step: SeedStep, known: Mapping[str, str]) -> str:
    if isinstance(step, Aggregate):
        if step.operation in ("count", "sum"):
            return "count" if step.operation == "count" else "number"
        found = "json" if step.element is None else _of(seed, step.element, known)
        return _join([found, _of_value(step.default)])
    if isinstance(step, Lookup):
        return _join([*(_of_value(value) for _, value in step.table), _of_value(step.default)])
    if isinstance(step, Case):
        return _join([*(_of_value(rule.then) for rule in step.rules), _of_value(step.otherwise)])
    if isinstance(step, Formula):
        return _of(seed, step.expr, known)
    if isinstance(step, Const):
        return _join([_of_value(step.value)])
    if isinstance(step, Reduce):
        return "text" if step.type == "text" and not step.cite else "json"
    return "json"


def _of(seed: FormulaSeed, node: e.Expr, known: Mapping[str, str]) -> str:
    if isinstance(node, e.Literal):
        return _of_value(node.value)
    if isinstance(node, e.Name):
        return known.get(node.name, "json")
    if isinstance(node, e.Field):
        return _of_field(seed, node)
    if isinstance(node, e.Comparison | e.Not):
        return "bool"
    if isinstance(node, e.Negative | e.Power):
        return "number"
    if isinstance(node, e.Arithmetic):
        operands = [node.first, *(operand for _, operand in node.rest)]
        is_number = any(sign not in ("+", "*") for sign, _ in node.rest)
        return (
            "number" if is_number or all(_of(seed, each, known) in ("number", "count") for each in operands) else "json"
        )
    if isinstance(node, e.Conditional):
        return _join(_of(seed, each, known) for each in (*(value for _, value in node.branches), node.otherwise))
    if isinstance(node, e.BoolChain):
        return _join(_of(seed, each, known) for each in node.operands)
    if isinstance(node, e.Call):
        if node.function in ("min", "max") and len(node.arguments) > 1:
            return _join(_of(seed, each, known) for each in node.arguments)
        if node.function in ("min", "max") and node.arguments and isinstance(node.arguments[0], e.Comprehension):
            found = [
                _of(seed, node.arguments[0].element, known),
                *(_of(seed, each, known) for _, each in node.keywords),
            ]
            return _join(found)
        return _GIVEN.get(FUNCTIONS[node.function].gives, "json") if node.function in FUNCTIONS else "json"
    if isinstance(node, e.MethodCall):
        return _GIVEN.get(METHODS[node.method].gives, "json") if node.method in METHODS else "json"
    return "json"


def _of_field(seed: FormulaSeed, node: e.Field) -> str:
    if node.namespace == "extraction":
        field = seed.row_fields.get(node.name)
        return "json" if field is None else _FIELDS[field.type]
    if node.namespace == "meta":
        declared = seed.meta.get(node.name)
        return _META.get(node.name, "json") if declared is None else _FIELDS[declared]
    return "json"


def _of_value(value: object) -> str:
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, int | float) else "text" if isinstance(value, str) else "json"


def _join(found: Iterable[str]) -> str:
    """Return the type of a value that has one of the types ``found``."""
    types = set(found) - {_NULL}
    if types == {"count", "number"}:
        return "number"
    return next(iter(types)) if len(types) == 1 else "json"
