"""The single tests of a condition, and what each of them looks at: shared by the rules about conditions."""

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from attrs import frozen

from ...conditions import And, Comparison, Condition, Constant, Items, Not, NullTest, Or
from .flow import Step, conditions_of

__all__ = ["Leaf", "On", "constants_of", "kind_of_value", "leaves", "tested"]

On: TypeAlias = Literal["nodes", "edges", "paths", "rows", "edge items", "path items", "variables", "unknown"]
"""What a condition is on. "edge items", "path items": those in a variable, which know their nodes by their ids only."""


@frozen(eq=False)
class Leaf:
    """A comparison or a test for null. ``must``: the whole condition is true only where this one is."""

    test: Comparison | NullTest
    must: bool


def leaves(condition: Condition) -> Iterator[Leaf]:
    """Yield the single tests of a condition, in source order."""
    stack: list[tuple[Condition, bool]] = [(condition, True)]
    while stack:
        current, must = stack.pop()
        if isinstance(current, Not):
            stack.append((current.operand, False))
        elif isinstance(current, And | Or):
            below = must and (isinstance(current, And) or len(current.operands) == 1)
            stack.extend((operand, below) for operand in reversed(current.operands))
        else:
            yield Leaf(current, must)


def tested(step: Step) -> Iterator[tuple[Condition, On]]:
    """Yield a command's conditions and what they are on."""
    for condition, on in conditions_of(step.command):
        if on != "items":
            yield condition, on
        else:
            kind = step.uses[0].kind if step.uses else "unknown"
            kinds: dict[str, On] = {"nodes": "nodes", "edges": "edge items", "paths": "path items", "rows": "rows"}
            yield condition, kinds.get(kind, "unknown")


def constants_of(test: Comparison | NullTest) -> tuple[Constant, ...]:
    """Return the constants at the right of a test."""
    if isinstance(test, NullTest):
        return ()
    if isinstance(test.right, Items):
        return test.right.items
    return (test.right,) if isinstance(test.right, Constant) else ()


def kind_of_value(value: Any) -> str:
    """Return "text", "number", "boolean", "null", "list" or "object": what can be equal is of one kind."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "list" if isinstance(value, list | tuple) else "object"
