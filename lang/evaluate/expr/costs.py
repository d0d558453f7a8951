"""What a comprehension costs, known from the tree alone: the nodes that an iteration evaluates. Nothing here recurses."""

from ...expr import Comprehension, DictDisplay, Expr, ListDisplay, TupleDisplay
from ...node import walk

__all__ = ["clause_costs", "weight"]


_MADE = (ListDisplay, TupleDisplay, DictDisplay)


def weight(expr: Expr) -> int:
    """Return how many nodes evaluating ``expr`` visits at most: of a comprehension itself and its first iterable only.

    The rest of a comprehension is charged by its own iterations. A list or an object that is written out counts twice: it is
    made, which takes longer than to look at a node.
    """
    total, left = 0, [expr]
    while left:
        for node in walk(left.pop(), lambda node: not isinstance(node, Comprehension)):
            total += 2 if isinstance(node, _MADE) else 1
            if isinstance(node, Comprehension):
                left.append(node.clauses[0].iterable)
    return total


def clause_costs(comprehension: Comprehension) -> tuple[int, ...]:
    """Return, for each clause, the steps that one iteration of it costs.

    1, and the weight of its conditions, and that of the next clause's iterable or, of the innermost, of the element.
    """
    clauses = comprehension.clauses
    following = [*(clause.iterable for clause in clauses[1:]), comprehension.element]
    return tuple(
        1 + sum(map(weight, clause.conditions)) + weight(then) for clause, then in zip(clauses, following, strict=True)
    )
