"""The reference: a condition evaluated by walking its tree. Slow and plain; the generated code is held equal to it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...conditions import And, Comparison, Condition, Field, Length, Not, NullTest, Variable
from .binding import Bound, Unbound
from .comparing import constant_of, is_null, prepared
from .errors import DEEPEST, too_deep
from .values import look_up

__all__ = ["evaluate", "item_value", "leaf_test", "matches", "united"]

Resolve = Callable[[Field], Any]


def evaluate(condition: Condition, resolve: Resolve) -> bool | None:
    """Return whether ``condition`` is true, false or unknown (None), by Kleene's logic.

    ``resolve`` gives the value of a field, None where there is none; for a field with a quantifier the values of all nodes
    or edges it ranges over. Raises ``Unbound`` for a variable (see ``bind``), ``ConditionError`` for a bad pattern and for
    a condition that nests more than 200 levels deep.
    """
    return _evaluate(condition, resolve, 0)


def matches(condition: Condition, item: Mapping[str, Any]) -> bool | None:
    """Return ``evaluate`` with the fields of ``item``, by dotted path; see ``item_value``."""
    return _evaluate(condition, lambda field: item_value(item, field), 0)


def item_value(item: Mapping[str, Any], field: Field) -> Any:
    """Return what ``field`` is in an item.

    ``node.x`` and ``edge.x`` with a quantifier range over the lists ``nodes`` and ``edges`` of a path. A path names its nodes
    by their ids only: ``node.id``, ``source.id`` and ``target.id`` are known of it, other attributes are null.
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
    """Return ``decisive`` if it is among the answers, else unknown if that is, else the opposite."""
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
    """Return what a comparison or a test for null asks of one value. Raises ``Unbound`` for a variable at the right."""
    if isinstance(leaf, NullTest):
        negated = leaf.negated
        return lambda value: is_null(value) is not negated
    if isinstance(leaf.right, Variable):
        raise Unbound(leaf.right)
    return prepared(leaf.operator, constant_of(leaf.right))
