"""What a step needs: the names of earlier steps that it uses, filters too."""

from ...expr import Comprehension, Expr, Name
from ...node import Node, walk
from ...seed import Aggregate, Case, DefineFilter, FilterUse, Formula, Lookup, SeedStep

__all__ = ["EXTRACTIONS", "names_in", "needs", "parts", "reads_extractions"]

EXTRACTIONS = "extractions"
"""The name under which an expression finds all extractions."""


def needs(step: SeedStep) -> tuple[str, ...]:
    """Return the names that ``step`` uses, each once, in the order of their first use. Some may be no step's name."""
    found: dict[str, None] = {}
    for part in parts(step):
        if isinstance(part, FilterUse):
            found[part.name] = None
        else:
            found |= dict.fromkeys(names_in(part))
    found.pop(EXTRACTIONS, None)
    return tuple(found)


def parts(step: SeedStep) -> tuple[Expr | FilterUse, ...]:
    """Return what ``step`` evaluates, in that order."""
    match step:
        case DefineFilter():
            return step.where
        case Aggregate():
            return (*(step.where or ()), *(() if step.element is None else (step.element,)))
        case Lookup():
            return (step.source,)
        case Case():
            return tuple(rule.test for rule in step.rules)
        case Formula():
            return (step.expr,)
        case _:
            return ()


def reads_extractions(step: SeedStep) -> bool:
    """Say whether ``step`` looks at the extractions itself: an aggregate, a filter, a formula over ``extractions``."""
    if isinstance(step, Aggregate | DefineFilter):
        return True
    return any(EXTRACTIONS in names_in(part) for part in parts(step) if not isinstance(part, FilterUse))


def names_in(expr: Expr) -> tuple[str, ...]:
    """Return the names that ``expr`` takes from outside, each once: no variable of a comprehension."""
    found: dict[str, None] = {}
    stack: list[tuple[Node, frozenset[str]]] = [(expr, frozenset())]
    while stack:
        root, bound = stack.pop()
        inner: list[tuple[Node, frozenset[str]]] = []
        for node in walk(root, lambda node: not isinstance(node, Comprehension)):
            if isinstance(node, Comprehension):
                known = bound
                for clause in node.clauses:
                    inner.append((clause.iterable, known))
                    known |= {clause.name}
                    inner += [(condition, known) for condition in clause.conditions]
                inner.append((node.element, known))
            elif isinstance(node, Name) and node.name not in bound:
                found[node.name] = None
        stack += reversed(inner)
    return tuple(found)
