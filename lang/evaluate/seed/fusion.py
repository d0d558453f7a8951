"""Reductions: aggregates and formulas such as ``sum(1 for e in extractions)``, which can share a loop over the rows.

References to the fields of a row are normalized: ``e["severity"]`` in a formula becomes ``extraction.severity``, as in an
aggregate. Equal conditions can then be tested once.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import attrs
from attrs import frozen

from ...trees import Node, walk
from ...trees.expr import (
    BoolChain,
    Call,
    Comparison,
    Comprehension,
    Expr,
    Field,
    ListDisplay,
    MethodCall,
    Name,
    Not,
    Subscript,
    TupleDisplay,
)
from ...trees.expr import Literal as Constant
from ...trees.seed import Aggregate, FilterUse, Tally, Where
from ..expr.generator_types import Unsupported
from .step_dependencies import EXTRACTIONS

_DEEPEST = 60


@frozen
class Reduction:
    """A result that is computed from rows.

    Only rows for which all conditions in ``where`` are true are used. The conditions are tested in the order of ``where``.

    The kinds are ``count`` (the number of rows), ``exists`` (whether there is such a row), ``list`` (the elements of the rows),
    ``numbers`` (the elements, which must be numbers), and ``check`` (no result, only the errors of the conditions). ``skip``
    omits elements that are null.
    """

    kind: Literal["count", "exists", "list", "numbers", "check"]
    where: tuple[Expr, ...]
    element: Expr | None = None
    skip: bool = False


def of_aggregate(step: Aggregate | Tally, filters: Mapping[str, tuple[Expr, ...]]) -> Reduction:
    """Return the reduction for ``step``. Raises ``Unsupported`` for an unknown filter."""
    where = conjuncts(step.where or (), filters)
    if isinstance(step, Tally):
        return Reduction("list", where, step.element, skip=True)
    if step.operation == "count" or step.element is None:
        return Reduction("count", where)
    return Reduction("numbers" if step.operation == "sum" else "list", where, step.element, skip=True)


def conjuncts(where: Where, filters: Mapping[str, tuple[Expr, ...]]) -> tuple[Expr, ...]:
    """Return the conditions of ``where`` in order, including the conditions of the filters that it uses."""
    found: list[Expr] = []
    for part in where:
        if not isinstance(part, FilterUse):
            found += _flat(part)
        elif part.name not in filters:
            raise Unsupported
        elif part.holds:
            found += filters[part.name]
        else:
            parts = filters[part.name]
            found.append(Not(parts[0] if len(parts) == 1 else BoolChain("and", parts) if parts else Constant(True)))
    return tuple(found)


def _flat(expr: Expr) -> list[Expr]:
    """Return the operands of an ``and``, including those of a nested ``and``. Any other expression is returned as one operand."""
    if isinstance(expr, BoolChain) and expr.operator == "and":
        return [part for operand in expr.operands for part in _flat(operand)]
    return [expr]


def of_call(expr: Call, fields: Collection[str], meta: Collection[str]) -> Reduction | None:
    """Return the reduction for ``f(... for e in extractions ...)``, or None if the call is not a reduction.

    ``fields`` and ``meta`` are the keys that every extraction and its ``meta`` have. ``len`` and ``sum(1 ...)`` become a count.
    ``any`` tests whether an element is true, ``all`` whether one is false. ``sum``, ``max`` and ``min`` collect numbers.
    """
    inner = expr.arguments[0] if len(expr.arguments) == 1 else None
    if not isinstance(inner, Comprehension) or len(inner.clauses) != 1:
        return None
    (clause,) = inner.clauses
    if clause.iterable != Name(EXTRACTIONS) or clause.variable is None:
        return None
    where = [in_one_row(part, clause.variable, fields, meta) for part in clause.conditions]
    element: Expr | None = Constant(None) if inner.element == Name(clause.variable) else None
    element = element or in_one_row(inner.element, clause.variable, fields, meta)
    if element is None or None in where:
        return None
    conditions = tuple(part for found in where if found is not None for part in _flat(found))
    if expr.function == "sum" and element == Constant(1):
        return Reduction("count", conditions)
    if expr.function == "len":
        # The element must be evaluated if it reads the context, because a missing context field is an error.
        simple = isinstance(element, Constant) or (isinstance(element, Field) and element.namespace != "context")
        return Reduction("count", conditions) if simple and inner.kind == "list" else None
    if inner.element == Name(clause.variable):
        return None
    if expr.function in ("any", "all"):
        asked = _flat(element) if expr.function == "any" else [Not(element)]
        return Reduction("exists", (*conditions, *asked)) if inner.kind == "generator" else None
    return Reduction("numbers", conditions, element) if expr.function in ("sum", "max", "min") else None


def in_one_row(expr: Expr, variable: str, fields: Collection[str], meta: Collection[str]) -> Expr | None:
    """Return ``expr`` with ``e["f"]`` written as ``extraction.f`` and ``e["meta"]["k"]`` as ``meta.k``.

    Returns None if the result would still contain ``e``, ``extractions`` or a loop.
    """
    for node in walk(expr):
        if isinstance(node, Comprehension) or (isinstance(node, Field) and node.namespace != "context"):
            return None
    changed = _Row(variable, fields, meta).of(expr, 0)
    nodes = walk(changed) if isinstance(changed, Node) else ()
    return None if any(isinstance(node, Name) and node.name in (variable, EXTRACTIONS) for node in nodes) else changed


@frozen
class _Row:
    variable: str
    fields: Collection[str]
    meta: Collection[str]

    def of(self, value: Any, depth: int) -> Any:
        """Return ``value`` with each access to the element replaced by a field. ``value`` is a node or an attribute of a node."""
        if isinstance(value, tuple):
            return tuple([self.of(each, depth) for each in value])
        if not isinstance(value, Node):
            return value
        if depth > _DEEPEST:
            raise Unsupported
        found = self._field(value)
        if found is not None:
            return found
        changed = {
            name.name: self.of(getattr(value, name.name), depth + 1)
            for name in attrs.fields(type(value))
            if name.name != "span" and isinstance(getattr(value, name.name), Node | tuple)
        }
        return attrs.evolve(value, **changed) if changed else value

    def _field(self, node: Node) -> Field | None:
        key = _key_of(node)
        if key is None or not isinstance(node, Subscript | MethodCall):
            return None
        if node.value == Name(self.variable):
            return Field("extraction", key) if key in self.fields and key != "meta" else None
        if (
            _key_of(node.value) == "meta"
            and isinstance(node.value, Subscript)
            and node.value.value == Name(self.variable)
        ):
            return Field("meta", key) if key in self.meta else None
        return None


def _key_of(node: Node) -> str | None:
    """Return the key in ``value["key"]`` or ``value.get("key")``. The default of ``get`` can be ignored, because all keys exist."""
    if isinstance(node, Subscript) and isinstance(node.index, Constant) and isinstance(node.index.value, str):
        return node.index.value
    if isinstance(node, MethodCall) and node.method == "get" and all(isinstance(a, Constant) for a in node.arguments):
        key = node.arguments[0] if 1 <= len(node.arguments) <= 2 else None
        return key.value if isinstance(key, Constant) and isinstance(key.value, str) else None
    return None


def discrete_fields(expr: Expr, enums: Collection[str]) -> frozenset[str] | None:
    """Return the enum fields that ``expr`` compares with constant strings and null. Return None if it does anything else."""
    stack: list[Expr] = [expr]
    found: set[str] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, Not):
            stack.append(node.operand)
        elif isinstance(node, BoolChain):
            stack += node.operands
        elif isinstance(node, Comparison) and len(node.rest) == 1:
            ((test, right),) = node.rest
            left, listed = node.first, test in ("in", "not in")
            if not isinstance(left, Field) and not listed:
                left, right = right, left
            if not isinstance(left, Field) or left.namespace != "extraction" or left.name not in enums:
                return None
            if test in ("<", "<=", ">", ">=") or not _of_texts(right, listed):
                return None
            found.add(left.name)
        else:
            return None
    return frozenset(found)


def _of_texts(expr: Expr, listed: bool) -> bool:
    """Return whether ``expr`` is null or a short string. If ``listed``, it must be a list of such values with at least one string."""
    items: Sequence[Expr] = (expr,)
    if listed:
        if not isinstance(expr, ListDisplay | TupleDisplay):
            return False
        items = expr.items
    values = [item.value if isinstance(item, Constant) else 0 for item in items]
    texts = [value for value in values if isinstance(value, str) and len(value) < 256]
    nulls = [value for value in values if value is None]
    return len(texts) + len(nulls) == len(values) and (bool(texts) or not listed)
