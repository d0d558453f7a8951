"""Writing a condition shorter without changing what it says, for the many alternatives that programs like to spell out."""

from typing import Any, Final

import attrs

from ...conditions import Comparison, Condition, Constant, Field, Items, Not, NullTest, Operator, Or
from .binding import Bound
from .errors import DEEPEST, too_deep

__all__ = ["simplified"]

_EITHER: Final[tuple[Operator, Operator]] = ("=", "IN")
_NEITHER: Final[tuple[Operator, Operator]] = ("!=", "NOT IN")


def simplified(condition: Condition) -> Condition:
    """Return ``condition`` with ``a = 1 OR a = 2`` written as ``a IN (1, 2)`` and ``a != 1 AND a != 2`` as ``a NOT IN (1, 2)``.

    Both say the same in three-valued logic. Operands that are joined stand where the first of them stood. Raises
    ``ConditionError`` for a condition that nests more than 200 levels deep.
    """
    return _simplified(condition, 0)


def _simplified(condition: Condition, depth: int) -> Condition:
    if depth > DEEPEST:
        raise too_deep("the condition")
    if isinstance(condition, Not):
        inner = _simplified(condition.operand, depth + 1)
        return condition if inner is condition.operand else attrs.evolve(condition, operand=inner)
    if isinstance(condition, Comparison | NullTest):
        return condition
    operands = tuple(_simplified(operand, depth + 1) for operand in condition.operands)
    operands = _joined(operands, isinstance(condition, Or))
    if len(operands) == 1:
        return operands[0]
    if len(operands) == len(condition.operands) and all(map(_same, operands, condition.operands)):
        return condition
    return attrs.evolve(condition, operands=operands)


def _same(left: Any, right: Any) -> bool:
    return left is right


def _joined(operands: tuple[Condition, ...], either: bool) -> tuple[Condition, ...]:
    one, many = _EITHER if either else _NEITHER
    alike: dict[tuple[str, ...], list[Comparison]] = {}
    for operand in operands:
        path = _path(operand, one)
        if path is not None and isinstance(operand, Comparison):
            alike.setdefault(path, []).append(operand)
    kept: list[Condition] = []
    for operand in operands:
        path = _path(operand, one)
        same = alike[path] if path is not None else []
        if len(same) < 2:
            kept.append(operand)
        elif operand is same[0]:
            values = tuple(each.right for each in same if isinstance(each.right, Constant))
            kept.append(attrs.evolve(same[0], operator=many, right=Items(values)))
    return tuple(kept)


def _path(operand: Condition, operator: Operator) -> tuple[str, ...] | None:
    """Return the path of the field that ``operand`` compares with one value by ``operator``; None where it does not."""
    if not isinstance(operand, Comparison) or operand.operator != operator or not isinstance(operand.right, Constant):
        return None
    left = operand.left
    plain = isinstance(left, Field) and not isinstance(left, Bound) and left.quantifier is None
    return left.path if plain and isinstance(left, Field) else None
