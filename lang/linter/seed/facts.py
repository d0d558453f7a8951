"""Facts about a single step of a seed, independent of its place: its names, its expressions, whether it counts."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from attrs import frozen

from ...evaluate.seed.step_dependencies import EXTRACTIONS, names_in, needs, parts
from ...trees import Node, walk
from ...trees.expr import (
    Arithmetic,
    Call,
    Clause,
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
from ...trees.seed import Aggregate, FilterUse, Formula, SeedStep

# The comparisons in expressions: extracted fields and metadata of reviews, with literals.


@frozen
class Compared:
    """``subject`` (a field) is compared with the literals ``values`` by ``test``; ``name`` is the field's.

    ``turned``: the literal is on the left, and the test reads from there.
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
    """Return the variables of comprehensions that are bound to an extraction."""
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
    """Return the value of a number literal, also a negated one; None for any other node."""
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


@frozen(eq=False)
class Facts:
    """Facts about a step without its place: all names in it, and the names that it uses, in source order."""

    names: frozenset[str]
    uses: tuple[str, ...]


def facts_of(step: SeedStep) -> Facts:
    """Return the facts about a step."""
    nodes = [node for part in parts(step) for node in (walk(part) if isinstance(part, Node) else ())]
    said = {node.name for node in nodes if isinstance(node, Name | FilterUse | Clause)}
    return Facts(frozenset({step.name, *said}), tuple(uses_of(step)))


def uses_of(step: SeedStep) -> Mapping[str, Node]:
    """Return the names that a step uses, each with its first node."""
    found: dict[str, Node] = dict.fromkeys(needs(step), step)
    for part in reversed(parts(step)):
        if isinstance(part, FilterUse):
            found[part.name] = part
            continue
        free = frozenset(names_in(part))
        found |= {
            node.name: node for node in reversed(list(walk(part))) if isinstance(node, Name) and node.name in free
        }
    return found


def expressions_of(step: SeedStep) -> tuple[Expr, ...]:
    """Return the expressions of a step, including conditions."""
    return tuple(part for part in parts(step) if not isinstance(part, FilterUse))


def name_in(part: Expr | FilterUse, name: str) -> Node:
    """Return the first node that names ``name``."""
    if isinstance(part, FilterUse):
        return part
    return next((node for node in walk(part) if isinstance(node, Name) and node.name == name), part)


def counts(step: SeedStep, before: Collection[str]) -> bool:
    """Return whether a step counts, or adds up counts; ``before`` are the names of earlier steps that do."""
    if isinstance(step, Aggregate):
        return step.operation == "count"
    return isinstance(step, Formula) and (_is_count(step.expr) or _is_sum_of(step.expr, before))


def _is_count(expr: Expr) -> bool:
    if not isinstance(expr, Call) or len(expr.arguments) != 1:
        return False
    inner = expr.arguments[0]
    if expr.function == "len":
        return inner == Name(EXTRACTIONS) or isinstance(inner, Comprehension)
    return expr.function == "sum" and isinstance(inner, Comprehension) and number_of(inner.element) == 1


def _is_sum_of(expr: Expr, counts: Collection[str]) -> bool:
    if not isinstance(expr, Arithmetic):
        return False
    operands = [expr.first, *(operand for _, operand in expr.rest)]
    return all(operator == "+" for operator, _ in expr.rest) and all(
        isinstance(operand, Name) and operand.name in counts for operand in operands
    )
