"""The interpreter: it evaluates a condition by walking its tree. It is slow and simple; generated code must give its results."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs
from attrs import frozen

from ...trees.conditions import (
    And,
    Comparison,
    Condition,
    Constant,
    Field,
    Items,
    Length,
    Not,
    NullTest,
    Operator,
    Or,
    Variable,
)
from .comparison import DEEPEST, ConditionError, constant_of, is_null, length, look_up, prepared, too_deep

# Binding of variables to values. A bound value is never parsed as text.


class Unbound(ConditionError):
    """A variable has no value. ``variable`` is its node, with its place in the text."""

    def __init__(self, variable: Variable) -> None:
        super().__init__(
            f"the variable {variable.name} has no value", hint="bind it by AS in a command before this one"
        )
        self.variable = variable


@frozen
class Bound(Field):
    """The left side of a comparison after a variable was bound: a value instead of a field (``path`` is empty)."""

    value: Any = None


def bind(condition: Condition, values: Mapping[str, Any]) -> Condition:
    """Return ``condition`` with its variables replaced: by a ``Constant`` on the right, by a ``Bound`` on the left.

    ``values`` maps names to plain JSON values. A path to a missing part gives null. Raises ``Unbound`` for a variable missing in
    ``values``, and ``ConditionError`` for a condition that is nested more than 200 levels deep.
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


Resolve = Callable[[Field], Any]


def evaluate(condition: Condition, resolve: Resolve) -> bool | None:
    """Return whether ``condition`` is true, false or unknown (None), by Kleene's logic.

    ``resolve`` returns the value of a field, or None if the field is missing; for a field with a quantifier it returns the values
    of all nodes or edges in its range. Raises ``Unbound`` for a variable (see ``bind``), and ``ConditionError`` for an invalid
    pattern and for a condition that is nested more than 200 levels deep.
    """
    return _evaluate(condition, resolve, 0)


def matches(condition: Condition, item: Mapping[str, Any]) -> bool | None:
    """Return the result of ``evaluate`` for the fields of ``item``; ``item_value`` looks up each field."""
    return _evaluate(condition, lambda field: item_value(item, field), 0)


def item_value(item: Mapping[str, Any], field: Field) -> Any:
    """Return the value of ``field`` in an item.

    With a quantifier, ``node.x`` and ``edge.x`` range over the lists ``nodes`` and ``edges`` of a path. A path stores only the ids
    of its nodes: ``node.id``, ``source.id`` and ``target.id`` are known, other attributes are null.
    """
    if field.quantifier is None:
        found = look_up(item, field.path)
        if found is None and len(field.path) == 2 and field.path[0] in ("source", "target") and field.path[1] == "id":
            end = item.get(field.path[0])
            return None if isinstance(end, Mapping) else end
        return found
    kind, path = field.path[0], field.path[1:]
    elements = item.get(f"{kind}s")
    if not isinstance(elements, list | tuple):
        return ()
    return [_part(element, path) for element in elements]


def _part(element: Any, path: tuple[str, ...]) -> Any:
    return look_up(element, path) if isinstance(element, Mapping) else element if path == ("id",) else None


def _evaluate(condition: Condition, resolve: Resolve, depth: int) -> bool | None:
    if depth > DEEPEST:
        raise too_deep("the condition")
    if isinstance(condition, Not):
        answer = _evaluate(condition.operand, resolve, depth + 1)
        return None if answer is None else not answer
    if isinstance(condition, Comparison | NullTest):
        return _leaf(condition, resolve)
    decisive = not isinstance(condition, And)
    answers = (_evaluate(operand, resolve, depth + 1) for operand in condition.operands)
    return united(answers, decisive)


def united(answers: Iterable[bool | None], decisive: bool) -> bool | None:
    """Return ``decisive`` if an answer equals it; else unknown if an answer is unknown; else the opposite of ``decisive``."""
    unknown = False
    for answer in answers:
        if answer is decisive:
            return decisive
        unknown = unknown or answer is None
    return None if unknown else not decisive


def _leaf(leaf: Comparison | NullTest, resolve: Resolve) -> bool | None:
    left = leaf.left
    if isinstance(left, Length):
        raise Unbound(left.variable)
    if isinstance(left, Variable):
        raise Unbound(left)
    test = leaf_test(leaf)
    value = left.value if isinstance(left, Bound) else resolve(left)
    if left.quantifier is None:
        return test(value)
    answer = united(map(test, value), left.quantifier != "all")
    return answer if left.quantifier != "none" or answer is None else not answer


def leaf_test(leaf: Comparison | NullTest) -> Callable[[Any], bool | None]:
    """Return a function that tests one value as ``leaf`` does. Raises ``Unbound`` for a variable on the right."""
    if isinstance(leaf, NullTest):
        negated = leaf.negated
        return lambda value: is_null(value) is not negated
    if isinstance(leaf.right, Variable):
        raise Unbound(leaf.right)
    return prepared(leaf.operator, constant_of(leaf.right))


# Simplification of conditions without a change of meaning, for long lists of alternatives that programs write.

_EITHER: Final[tuple[Operator, Operator]] = ("=", "IN")
_NEITHER: Final[tuple[Operator, Operator]] = ("!=", "NOT IN")


def simplified(condition: Condition) -> Condition:
    """Return ``condition`` with ``a = 1 OR a = 2`` as ``a IN (1, 2)`` and ``a != 1 AND a != 2`` as ``a NOT IN (1, 2)``.

    The result is equivalent in three-valued logic. The joined comparison takes the place of the first of its operands. Raises
    ``ConditionError`` for a condition that is nested more than 200 levels deep.
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
    """Return the path of the field if ``operand`` compares a field with one value by ``operator``, else None."""
    if not isinstance(operand, Comparison) or operand.operator != operator or not isinstance(operand.right, Constant):
        return None
    left = operand.left
    plain = isinstance(left, Field) and not isinstance(left, Bound) and left.quantifier is None
    return left.path if plain and isinstance(left, Field) else None
