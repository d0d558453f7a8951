"""Putting values in the place of variables. A value is bound as a value and never becomes text to be parsed."""

from collections.abc import Mapping
from typing import Any

import attrs
from attrs import frozen

from ...conditions import And, Condition, Constant, Field, Items, Length, Not, NullTest, Or, Variable
from .errors import DEEPEST, ConditionError, too_deep
from .values import length, look_up

__all__ = ["Bound", "Unbound", "bind"]


class Unbound(ConditionError):
    """A variable that has no value. ``variable`` is where it stands."""

    def __init__(self, variable: Variable) -> None:
        super().__init__(
            f"the variable {variable.name} has no value", hint="bind it by AS in a command before this one"
        )
        self.variable = variable


@frozen
class Bound(Field):
    """The left side of a comparison after binding: a value in the place of a field (``path`` is empty)."""

    value: Any = None


def bind(condition: Condition, values: Mapping[str, Any]) -> Condition:
    """Return ``condition`` without variables: at the right a ``Constant``, at the left a ``Bound``.

    ``values`` are plain JSON values by name. A path that leads nowhere gives null. Raises ``Unbound`` for a variable that
    ``values`` lacks, ``ConditionError`` for a condition that nests more than 200 levels deep.
    """
    return _bind(condition, values, 0)


def _bind(condition: Condition, values: Mapping[str, Any], depth: int) -> Condition:
    if depth > DEEPEST:
        raise too_deep("the condition")
    if isinstance(condition, Not):
        operand = _bind(condition.operand, values, depth + 1)
        return condition if operand is condition.operand else attrs.evolve(condition, operand=operand)
    if isinstance(condition, And | Or):
        operands = tuple(_bind(operand, values, depth + 1) for operand in condition.operands)
        if all(new is old for new, old in zip(operands, condition.operands, strict=True)):
            return condition
        return attrs.evolve(condition, operands=operands)
    left = _left(condition.left, values)
    if isinstance(condition, NullTest):
        return condition if left is condition.left else attrs.evolve(condition, left=left)
    right = _right(condition.right, values)
    if left is condition.left and right is condition.right:
        return condition
    return attrs.evolve(condition, left=left, right=right)


def _left(left: Field | Variable | Length, values: Mapping[str, Any]) -> Field:
    if isinstance(left, Variable):
        return Bound((), value=_value(left, values), span=left.span)
    if isinstance(left, Length):
        return Bound((), value=length(_value(left.variable, values)), span=left.span)
    return left


def _right(right: Constant | Items | Variable, values: Mapping[str, Any]) -> Constant | Items:
    if not isinstance(right, Variable):
        return right
    value = _value(right, values)
    return Constant(tuple(value) if isinstance(value, list) else value, span=right.span)


def _value(variable: Variable, values: Mapping[str, Any]) -> Any:
    if variable.name not in values:
        raise Unbound(variable)
    return look_up(values[variable.name], variable.path)
