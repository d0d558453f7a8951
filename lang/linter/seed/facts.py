"""What a single step of a seed says by itself, wherever it stands: the names in it, its expressions, whether it counts."""

from collections.abc import Collection, Mapping

from attrs import frozen

from ...evaluate.seed.needs import EXTRACTIONS, names_in, needs, parts
from ...expr import Arithmetic, Call, Clause, Comprehension, Expr, Name
from ...node import Node, walk
from ...seed import Aggregate, FilterUse, Formula, SeedStep
from .compared import number_of

__all__ = ["Facts", "counts", "expressions_of", "facts_of", "name_in", "uses_of"]


@frozen(eq=False)
class Facts:
    """What is known of a step without its place: all names that stand in it, and those that it uses, in their order."""

    names: frozenset[str]
    uses: tuple[str, ...]


def facts_of(step: SeedStep) -> Facts:
    """Return what a step says."""
    nodes = [node for part in parts(step) for node in (walk(part) if isinstance(part, Node) else ())]
    said = {node.name for node in nodes if isinstance(node, Name | FilterUse | Clause)}
    return Facts(frozenset({step.name, *said}), tuple(uses_of(step)))


def uses_of(step: SeedStep) -> Mapping[str, Node]:
    """Return what a step names, each name with the node that has it first."""
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
    """Return the expressions of a step, conditions too."""
    return tuple(part for part in parts(step) if not isinstance(part, FilterUse))


def name_in(part: Expr | FilterUse, name: str) -> Node:
    """Return the node that names ``name`` first."""
    if isinstance(part, FilterUse):
        return part
    return next((node for node in walk(part) if isinstance(node, Name) and node.name == name), part)


def counts(step: SeedStep, before: Collection[str]) -> bool:
    """Say whether a step counts, or adds up counts; ``before`` are the names of those before that do."""
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
