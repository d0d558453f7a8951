"""Interpreter that evaluates a condition by walking its tree.

The interpreter is slow and simple; generated code must give the same results.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import attrs

from ...trees import walk
from ...trees.conditions import (
    And,
    Binary,
    Call,
    Comparison,
    Condition,
    Constant,
    Field,
    Increasing,
    Items,
    Length,
    Negative,
    Not,
    NullTest,
    Operator,
    Or,
    Value,
    Variable,
)
from ..expr.date_functions import Moment, moment
from .comparison import DEEPEST, ConditionError, compare, constant_of, is_null, length, look_up, prepared, too_deep
from .values import compute

# Binding of variables to values. A bound value is never parsed as text.


class Unbound(ConditionError):
    """A variable has no value. ``variable`` is the node of the variable, with its position in the text."""

    def __init__(self, variable: Variable) -> None:
        super().__init__(f"the variable {variable.name} has no value", hint="bind it with AS in an earlier command")
        self.variable = variable


def bind(condition: Condition, values: Mapping[str, Any]) -> Condition:
    """Return ``condition`` with its variables replaced by constants.

    ``values`` maps names to plain JSON values. A path to a missing part gives null. Raises ``Unbound`` for a variable missing in
    ``values``, and ``ConditionError`` for a condition that is nested more than 200 levels deep.
    """
    return _bind(condition, values, 0)


def bind_value(value: Value, values: Mapping[str, Any]) -> Value:
    """Return ``value`` with its variables replaced by constants. Raises the same errors as ``bind``."""
    return _bind(value, values, 0)


_NodeT = TypeVar("_NodeT", bound=Any)


def _bind(node: _NodeT, values: Mapping[str, Any], depth: int) -> _NodeT:
    """Return a condition or a value with its variables replaced. If it has no variables, return the same object."""
    if depth > DEEPEST:
        raise too_deep("the condition")
    if isinstance(node, Variable):
        found = _value(node, values)
        return Constant(tuple(found) if isinstance(found, list) else found, span=node.span)  # type: ignore[return-value]
    if isinstance(node, Length) and isinstance(node.operand, Variable):
        return Constant(length(_value(node.operand, values)), span=node.span)  # type: ignore[return-value]
    changed: dict[str, Any] = {}
    for name in _OPERANDS.get(type(node), ()):
        old = getattr(node, name)
        if isinstance(old, tuple):
            new: Any = tuple(_bind(each, values, depth + 1) for each in old)
            if any(one is not other for one, other in zip(new, old, strict=True)):
                changed[name] = new
        elif (new := _bind(old, values, depth + 1)) is not old:
            changed[name] = new
    return attrs.evolve(node, **changed) if changed else node


_OPERANDS: Final[Mapping[type, tuple[str, ...]]] = {
    And: ("operands",), Or: ("operands",), Not: ("operand",), Comparison: ("left", "right"), NullTest: ("left",),
    Length: ("operand",), Negative: ("operand",), Binary: ("left", "right"), Call: ("arguments",),
}  # fmt: skip
"""Maps each class of nodes to the attributes that contain conditions or values."""


def _value(variable: Variable, values: Mapping[str, Any]) -> Any:
    if variable.name not in values:
        raise Unbound(variable)
    return look_up(values[variable.name], variable.path)


Resolve = Callable[[Field], Any]


def evaluate(condition: Condition, resolve: Resolve) -> bool | None:
    """Return whether ``condition`` is true, false or unknown (None) in Kleene's three-valued logic.

    ``resolve`` returns the value of a field, or None if the field is missing. For a field with a quantifier, it returns the values of all
    nodes or edges that the quantifier ranges over. Raises ``Unbound`` for a variable (see ``bind``). Raises ``ConditionError`` for an
    invalid pattern, and for a condition that is nested more than 200 levels deep.
    """
    return _evaluate(condition, resolve, 0)


def matches(condition: Condition, item: Mapping[str, Any]) -> bool | None:
    """Return the result of ``evaluate`` for the fields of ``item``; ``item_value`` looks up each field."""
    return _evaluate(condition, lambda field: item_value(item, field), 0)


def item_value(item: Mapping[str, Any], field: Field) -> Any:
    """Return the value of ``field`` in an item.

    With a quantifier, ``node.x`` and ``edge.x`` range over the lists ``nodes`` and ``edges`` of a path. A path stores only the ids
    of its nodes, so ``node.id``, ``source.id`` and ``target.id`` are known and other attributes are null.
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
    if isinstance(condition, Comparison | NullTest | Increasing):
        return _leaf(condition, resolve)
    decisive = not isinstance(condition, And)
    answers = (_evaluate(operand, resolve, depth + 1) for operand in condition.operands)
    return united(answers, decisive)


def united(answers: Iterable[bool | None], decisive: bool) -> bool | None:
    """If one of the answers is ``decisive``, return it.

    Otherwise return unknown (None) if one of them is unknown, else ``not decisive``.
    """
    unknown = False
    for answer in answers:
        if answer is decisive:
            return decisive
        unknown = unknown or answer is None
    return None if unknown else not decisive


def _leaf(leaf: Comparison | NullTest | Increasing, resolve: Resolve) -> bool | None:
    if isinstance(leaf, Increasing):
        return is_increasing(resolve(attrs.evolve(leaf.field, quantifier="all")))
    check_bound(leaf)

    def computed(value: Value) -> Any:
        return compute(value, resolve, lambda condition: _evaluate(condition, resolve, 0), lenient=True)

    left, test = leaf.left, None
    if isinstance(leaf, NullTest) or isinstance(leaf.right, Constant | Items):
        test = leaf_test(leaf)
    else:
        test = prepared(leaf.operator, computed(leaf.right))
    if not isinstance(left, Field) or left.quantifier is None:
        return test(computed(left))
    answer = united(map(test, resolve(left)), left.quantifier != "all")
    return answer if left.quantifier != "none" or answer is None else not answer


def is_increasing(values: Iterable[Any]) -> bool:
    """Return whether the values increase: no value is null or less than the previous value.

    Dates are compared as ``dated`` says. Values that can't be ordered do not increase.
    """
    before: Any = None
    for value in map(dated, values):
        if is_null(value) or (before is not None and not _is_at_most(before, value)):
            return False
        before = value
    return True


def dated(value: Any) -> Any:
    """Return the moment that a text YYYY-MM-DD, with or without a time, means; other values are returned unchanged.

    A time with an offset is converted to UTC, a time without an offset is in UTC, and a date is the midnight at its beginning.
    """
    if not isinstance(value, str) or value[4:5] != "-" or value[7:8] != "-" or (found := moment(value)) is None:
        return value
    return Moment(found.day, found.ticks or 0)


def _is_at_most(left: Any, right: Any) -> bool:
    if isinstance(left, Moment) or isinstance(right, Moment):
        return type(left) is type(right) and left <= right
    return compare(left, "<=", right) is True


def check_bound(leaf: Comparison | NullTest) -> None:
    """Raise ``Unbound`` if a variable in the leaf was not replaced by its value."""
    sides = (leaf.left,) if isinstance(leaf, NullTest) else (leaf.left, leaf.right)
    if all(isinstance(side, Field | Constant | Items) for side in sides):
        return
    for side in sides:
        for node in walk(side):
            if isinstance(node, Variable):
                raise Unbound(node)


def leaf_test(leaf: Comparison | NullTest) -> Callable[[Any], bool | None]:
    """Return a function that tests a value in the same way as ``leaf``. The right side of ``leaf`` must be constant. Raises ``Unbound``."""
    check_bound(leaf)
    if isinstance(leaf, NullTest):
        negated = leaf.negated
        return lambda value: is_null(value) is not negated
    assert isinstance(leaf.right, Constant | Items)  # noqa: S101  # the callers handle computed right sides
    return prepared(leaf.operator, constant_of(leaf.right))


# Simplification that keeps the meaning of a condition, for generated conditions with long lists of alternatives.

_EITHER: Final[tuple[Operator, Operator]] = ("=", "IN")
_NEITHER: Final[tuple[Operator, Operator]] = ("!=", "NOT IN")


def simplified(condition: Condition) -> Condition:
    """Rewrite ``a = 1 OR a = 2`` to ``a IN (1, 2)`` and ``a != 1 AND a != 2`` to ``a NOT IN (1, 2)`` in ``condition``.

    The result is equivalent in three-valued logic. The new comparison replaces the first of the joined comparisons. Raises
    ``ConditionError`` for a condition that is nested more than 200 levels deep.
    """
    return _simplified(condition, 0)


def _simplified(condition: Condition, depth: int) -> Condition:
    if depth > DEEPEST:
        raise too_deep("the condition")
    if isinstance(condition, Not):
        inner = _simplified(condition.operand, depth + 1)
        return condition if inner is condition.operand else attrs.evolve(condition, operand=inner)
    if isinstance(condition, Comparison | NullTest | Increasing):
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
    """If ``operand`` compares a field with one value, and the operator is ``operator``, return the path of the field; otherwise None."""
    if not isinstance(operand, Comparison) or operand.operator != operator or not isinstance(operand.right, Constant):
        return None
    left = operand.left
    return left.path if isinstance(left, Field) and left.quantifier is None else None
