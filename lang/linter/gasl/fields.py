"""The conditions, tests and fields of a command, each with the items that have the fields. All rules about fields use this module."""

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from attrs import evolve, frozen

from ...trees import Node, gasl, walk
from ...trees.conditions import (
    And,
    Call,
    Comparison,
    Condition,
    Constant,
    Field,
    Increasing,
    Items,
    Not,
    NullTest,
    Operator,
    Or,
    Value,
    Variable,
)
from ...trees.gasl import Name, PatternNode
from .contents import UNKNOWN, Contents, found_patterns
from .context import Context, Step, conditions_of

On: TypeAlias = Literal[
    "nodes", "edges", "paths", "patterns", "rows", "edge items", "path items", "variables", "unknown"
]
"""The kind of the items whose fields a condition or a value reads. "edge items" and "path items" are held by a variable."""

CONDITIONS = (And, Comparison, Increasing, Not, NullTest, Or)


@frozen(eq=False)
class Scope:
    """The items whose fields a condition or a value reads. ``name`` is the variable that holds them, or "" (in the graph)."""

    on: On
    contents: Contents = UNKNOWN
    name: str = ""


@frozen(eq=False)
class Leaf:
    """A comparison or a test for null. ``must`` is true if the entire condition requires that this test is true."""

    test: Comparison | NullTest
    must: bool


@frozen(eq=False)
class FieldRead:
    """A field that a command names.

    ``leaf`` is the test that names the field, or None if no test does. ``side`` is the place of the field: the "left" or the
    "right" side of the test, or "inside" another value. ``must`` is true if the command finds nothing, or can't run, whenever
    the field is null.
    """

    field: Field
    scope: Scope
    leaf: Leaf | None = None
    side: Literal["left", "right", "inside"] = "inside"
    must: bool = True


def leaves(condition: Condition) -> Iterator[Leaf]:
    """Yield the single tests of a condition in source order. The tests in calls of ``if`` are included."""
    stack: list[tuple[Condition, bool]] = [(condition, True)]
    while stack:
        current, must = stack.pop()
        if isinstance(current, Not):
            stack.append((current.operand, False))
        elif isinstance(current, And | Or):
            below = must and (isinstance(current, And) or len(current.operands) == 1)
            stack.extend((operand, below) for operand in reversed(current.operands))
        elif not isinstance(current, Increasing):
            yield Leaf(current, must)
            stack.extend((inner, False) for side in _sides(current) for inner in _conditions_within(side))


def _sides(test: Comparison | NullTest) -> tuple[Node, ...]:
    return (test.left,) if isinstance(test, NullTest) else (test.left, test.right)


def _is_value(node: Node) -> bool:
    return not isinstance(node, CONDITIONS)


def _conditions_within(value: Node) -> Iterator[Condition]:
    """Yield the conditions of the calls of ``if`` in a value. Conditions inside other conditions are omitted."""
    return (node for node in walk(value, _is_value) if isinstance(node, CONDITIONS))


def fields_within(value: Node) -> Iterator[tuple[Field, bool]]:
    """Yield each field of a value, and whether the value is null if this field is null. Fields in conditions are omitted."""
    stack: list[tuple[Any, bool]] = [(value, True)]
    while stack:
        current, must = stack.pop()
        if isinstance(current, Field):
            yield current, must
        elif isinstance(current, Call):
            must = must and current.function not in ("if", "coalesce")
            stack.extend((each, must) for each in reversed(current.arguments))
        elif _is_value(current):
            inner = (getattr(current, name, None) for name in ("operand", "right", "left"))
            stack.extend((each, must) for each in inner if each is not None)


def tested(step: Step) -> Iterator[tuple[Condition, On]]:
    """Yield each condition of a command, with the items that the condition tests."""
    return ((condition, scope.on) for condition, scope in tested_in(step))


def tested_in(step: Step) -> tuple[tuple[Condition, Scope], ...]:
    """Return each condition of a command, with the items whose fields it reads."""
    return step.once("tested_in", lambda: _tested_in(step))


def _tested_in(step: Step) -> Iterator[tuple[Condition, Scope]]:
    for condition, on in conditions_of(step.command):
        if on == "items":
            yield condition, _scope_of(step, getattr(step.command, "source", None))
        elif isinstance(step.command, gasl.FindPatterns):
            yield condition, Scope("patterns", found_patterns(step.command))
        else:
            more = ("cost",) if on == "paths" and getattr(step.command, "cost", None) is not None else ()
            yield condition, Scope(on, Contents(more=more))


def _scope_of(step: Step, name: Name | None) -> Scope:
    """Return the items of a variable that the command reads."""
    use = step.use_of(name)
    if use is None:
        return Scope("unknown")
    return scope_of_items(use.contents, use.name)


def scope_of_items(contents: Contents, name: str) -> Scope:
    """Return the items of a variable with these contents."""
    kinds: dict[str, On] = {"nodes": "nodes", "edges": "edge items", "paths": "path items", "rows": "rows"}
    return Scope(kinds.get(contents.kind, "unknown"), contents, name)


def values_of(step: Step) -> tuple[tuple[Value, Scope], ...]:
    """Return the values of a command, except those in conditions, each with the items whose fields it reads."""
    return step.once("values_of", lambda: _values_of(step))


def _values_of(step: Step) -> Iterator[tuple[Value, Scope]]:
    command = step.command
    if isinstance(command, gasl.Join | gasl.SetOperation):
        left, right = _scope_of(step, command.left), _scope_of(step, command.right)
        for pair in command.on:
            yield pair.left, left
            yield pair.other, right
        return
    if isinstance(command, gasl.FindPaths):
        if command.cost is not None:
            yield command.cost, Scope("edges")
        return
    if isinstance(command, gasl.Measure):
        if command.weight is not None:
            yield command.weight, _weighed(step, command)
        return
    if isinstance(command, gasl.Find):
        scope = Scope(command.kind)
    elif isinstance(command, gasl.FindPatterns):
        scope = Scope("patterns", found_patterns(command))
    else:
        scope = _scope_of(step, getattr(command, "source", None))
    for part in ("columns", "by", "order", "computations", "per"):
        listed = getattr(command, part, ())
        for each in listed if isinstance(listed, tuple) else (listed,):
            if isinstance(each, gasl.NamedValue | gasl.Order | gasl.Computation):
                if each.value is not None:
                    yield each.value, scope
            else:
                yield each, scope


def _weighed(step: Step, command: gasl.Measure) -> Scope:
    """Return the edges whose fields the weight of a MEASURE reads."""
    if command.edges is None:
        return Scope("edges")
    scope = _scope_of(step, command.edges)
    return (
        scope if scope.on in ("rows", "edge items") else Scope("edge items" if scope.on == "path items" else "unknown")
    )


def leaves_of(context: Context, step: Step) -> tuple[tuple[Leaf, Scope], ...]:
    """Return the single tests of a command. The tests may be in its conditions, inside calls of ``if``,
    or inside the braces of patterns."""
    return step.once("leaves_of", lambda: _leaves_of(context, step))


def _leaves_of(context: Context, step: Step) -> Iterator[tuple[Leaf, Scope]]:
    for condition, scope in tested_in(step):
        yield from ((leaf, scope) for leaf in leaves(condition))
    for value, scope in values_of(step):
        for condition in _conditions_within(value):
            yield from ((Leaf(leaf.test, False), scope) for leaf in leaves(condition))
    if isinstance(step.command, gasl.FindPatterns):
        for node in (node for pattern in step.command.patterns for node in pattern.nodes):
            yield from ((Leaf(test, True), Scope("nodes")) for test in _braced(context, node))


def _braced(context: Context, node: PatternNode) -> Iterator[Comparison]:
    """Yield the fields in a node's braces, such as ``{id: "A1"}``, as comparisons."""
    after = context.spelled("{", node.span)
    at = after.end if after is not None else node.span.start
    for name, value in node.properties:
        span = context.spelled(name, node.span, at)
        at = value.span.end
        field = Field((name,)) if span is None else Field((name,), span=span)
        yield Comparison(field, "=", value, span=field.span | value.span if span is not None else node.span)


def increasing_of(step: Step) -> tuple[tuple[Increasing, Scope], ...]:
    """Return each INCREASING of a command, with the items that it tests."""
    return step.once("increasing_of", lambda: _increasing_of(step)) if step.nodes_of(Increasing) else ()


def _increasing_of(step: Step) -> Iterator[tuple[Increasing, Scope]]:
    for condition, scope in tested_in(step):
        yield from ((node, scope) for node in walk(condition) if isinstance(node, Increasing))
    for value, scope in values_of(step):
        yield from ((node, scope) for node in walk(value) if isinstance(node, Increasing))


def fields_read(context: Context, step: Step) -> tuple[FieldRead, ...]:
    """Return every field that a command names, except after INCREASING."""
    return step.once("fields_read", lambda: _fields_read(context, step))


def _fields_read(context: Context, step: Step) -> Iterator[FieldRead]:
    for value, scope in values_of(step):
        yield from (FieldRead(field, scope) for field, _ in fields_within(value))
    for leaf, scope in leaves_of(context, step):
        test = leaf.test
        decides = leaf.must and not isinstance(test, NullTest)
        if isinstance(test.left, Field):
            yield FieldRead(test.left, scope, leaf, "left", decides)
        else:
            for field, must in fields_within(test.left):
                yield FieldRead(field, scope, leaf, "inside", must and decides)
        if isinstance(test, NullTest) or isinstance(test.right, Items):
            continue
        if isinstance(test.right, Field):
            yield FieldRead(test.right, scope, leaf, "right", decides)
        else:
            for field, must in fields_within(test.right):
                yield FieldRead(field, scope, leaf, "inside", must and decides)


_TURNED: dict[str, Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def oriented(test: Comparison) -> Comparison:
    """Return a comparison whose only constant is on the right: ``30 < age`` becomes ``age > 30``.

    Other comparisons are returned unchanged.
    """
    if not isinstance(test.left, Constant) or isinstance(test.right, Constant | Items) or test.operator not in _TURNED:
        return test
    return evolve(test, left=test.right, operator=_TURNED[test.operator], right=test.left)


def constants_of(test: Comparison | NullTest) -> tuple[Constant, ...]:
    """Return the constants on the right-hand side of a test."""
    if isinstance(test, NullTest):
        return ()
    if isinstance(test.right, Items):
        return test.right.items
    return (test.right,) if isinstance(test.right, Constant) else ()


def is_constant(value: Node) -> bool:
    """Return whether a value contains neither fields nor variables."""
    return not any(isinstance(node, Field | Variable) for node in walk(value))
