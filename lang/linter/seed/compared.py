"""What expressions compare: extracted fields and what is known of reviews, with literals."""

from collections.abc import Iterator
from typing import Any

from attrs import frozen

from ...evaluate.seed.needs import EXTRACTIONS
from ...expr import (
    Comparison,
    Comprehension,
    Expr,
    Field,
    ListDisplay,
    Literal,
    Name,
    Negative,
    Subscript,
    Test,
    TupleDisplay,
)
from ...node import Node, walk

__all__ = ["Compared", "compared", "fields_in", "number_of"]


@frozen
class Compared:
    """``subject`` (a field) is compared with the literals ``values`` by ``test``; ``name`` is the field's.

    ``turned``: the literal stands at the left, and the test reads from there.
    """

    namespace: str
    name: str
    subject: Node
    test: Test
    values: tuple[Literal | Negative, ...]
    is_list: bool = False
    turned: bool = False


def compared(expr: Expr) -> Iterator[Compared]:
    """Yield the comparisons of a field with literals, in ``where`` form (``extraction.f``) or of a row (``e['f']``)."""
    rows = rows_in(expr)
    for node in walk(expr):
        if not isinstance(node, Comparison):
            continue
        left: Expr = node.first
        for test, right in node.rest:
            subject, values, turned = _field(left, rows), _literals(right), False
            if subject is None and test not in ("in", "not in"):
                subject, values, turned = _field(right, rows), _literals(left), True
            if subject is not None and values is not None:
                is_list = test in ("in", "not in")
                at = right if turned else left
                if is_list == isinstance(left if turned else right, ListDisplay | TupleDisplay):
                    yield Compared(*subject, at, test, values, is_list, turned)
            left = right


def rows_in(expr: Expr) -> frozenset[str]:
    """Return the variables of comprehensions that stand for an extraction."""
    return frozenset(
        clause.name
        for node in walk(expr)
        if isinstance(node, Comprehension)
        for clause in node.clauses
        if clause.iterable == Name(EXTRACTIONS)
    )


def fields_in(expr: Expr) -> Iterator[tuple[str, str, Node]]:
    """Yield namespace, name and node of every ``extraction.f``, ``meta.k``, ``context.k``."""
    for node in walk(expr):
        if isinstance(node, Field):
            yield node.namespace, node.name, node


def number_of(expr: Expr) -> float | int | None:
    """Return the number that a literal, or one with a minus, is; None for anything else."""
    if isinstance(expr, Negative):
        inner = number_of(expr.operand)
        return None if inner is None else -inner
    if isinstance(expr, Literal) and isinstance(expr.value, int | float) and not isinstance(expr.value, bool):
        return expr.value
    return None


def _field(expr: Expr, rows: frozenset[str]) -> tuple[str, str] | None:
    if isinstance(expr, Field) and expr.namespace != "context":
        return expr.namespace, expr.name
    if isinstance(expr, Subscript) and isinstance(expr.value, Name) and expr.value.name in rows:
        key = expr.index
        if isinstance(key, Literal) and isinstance(key.value, str):
            return "extraction", key.value
    return None


def _literals(expr: Expr) -> tuple[Any, ...] | None:
    items = expr.items if isinstance(expr, ListDisplay | TupleDisplay) else (expr,)
    fits = all(isinstance(item, Literal) or number_of(item) is not None for item in items)
    return tuple(items) if fits else None
