"""Rules about conditions that need no graph: tests that are never true, invalid patterns, fields where no field is allowed."""

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from attrs import frozen

from ...diagnostic import Diagnostic, Edit
from ...evaluate.conditions import ConditionError, compare, identity
from ...evaluate.conditions.comparison import is_of_empty_list
from ...printer.gasl_printer import format_condition, format_name, format_text
from ...trees import Node, walk
from ...trees.conditions import And, Comparison, Condition, Constant, Field, Items, Length, Not, NullTest, Or, Variable
from .context import Context, Step, conditions_of, lint

# The single tests of a condition, and the kind of item that each test is about. All rules about conditions use them.

On: TypeAlias = Literal["nodes", "edges", "paths", "rows", "edge items", "path items", "variables", "unknown"]
"""The items that a condition tests. "edge items" and "path items" are in a variable, and have only the ids of their nodes."""


@frozen(eq=False)
class Leaf:
    """A comparison or a test for null. ``must``: the whole condition can be true only if this test is true."""

    test: Comparison | NullTest
    must: bool


def leaves(condition: Condition) -> Iterator[Leaf]:
    """Yield the single tests of a condition in source order."""
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
    """Yield each condition of a command, with the items that the condition tests."""
    for condition, on in conditions_of(step.command):
        if on != "items":
            yield condition, on
        else:
            kind = step.uses[0].kind if step.uses else "unknown"
            kinds: dict[str, On] = {"nodes": "nodes", "edges": "edge items", "paths": "path items", "rows": "rows"}
            yield condition, kinds.get(kind, "unknown")


def constants_of(test: Comparison | NullTest) -> tuple[Constant, ...]:
    """Return the constants on the right-hand side of a test."""
    if isinstance(test, NullTest):
        return ()
    if isinstance(test.right, Items):
        return test.right.items
    return (test.right,) if isinstance(test.right, Constant) else ()


def kind_of_value(value: Any) -> str:
    """Return "text", "number", "boolean", "null", "list" or "object": values of different kinds are never equal."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "list" if isinstance(value, list | tuple) else "object"


_ORDER = frozenset({"<", "<=", ">", ">="})
_MOST_OPERANDS = 1000
"""Maximum number of operands of an AND that are compared with each other."""


@lint("GASL065")
def never_true(context: Context) -> Iterator[Diagnostic]:
    """Report tests that are never true, and pairs of tests that exclude each other."""
    for step in context.steps:
        for condition, _ in tested(step):
            for leaf in leaves(condition):
                yield from _never(context, leaf.test)
            for node in walk(condition, _holds_tests):
                if isinstance(node, And):
                    yield from _contradictions(context, node)


def _holds_tests(node: Node) -> bool:
    return isinstance(node, And | Or | Not)


def _never(context: Context, test: Comparison | NullTest) -> Iterator[Diagnostic]:
    if isinstance(test, NullTest):
        return
    right, operator = test.right, test.operator
    message = ""
    edits: list[Edit] = []
    hint = ""
    if isinstance(right, Items):
        nulls = [item for item in right.items if item.value is None]
        if not right.items and operator == "IN":
            message, hint = "IN an empty list is never true", "write the values into the list"
        elif nulls and (operator == "NOT IN" or len(nulls) == len(right.items)):
            message = f"{operator} a list with null is never true"
            hint = "the result of a comparison with null is unknown; IS NULL tests for null"
            kept = [context.text(item.span) for item in right.items if item.value is not None]
            edits = [Edit(right.span, f"({', '.join(kept)})")] if kept else []
    elif isinstance(right, Constant):
        kind = kind_of_value(right.value)
        if kind == "null":
            message, hint = "a comparison with null is never true", "write IS NULL or IS NOT NULL"
        elif operator in ("STARTS_WITH", "ENDS_WITH", "MATCHES") and kind != "text":
            message = f"{operator} takes a text, not a {kind}"
            edits = [Edit(right.span, format_text(context.text(right.span)))] if right.span.end else []
        elif isinstance(test.left, Length):
            message, hint, edits = _of_length(test, right)
    if message:
        yield context.diagnostic("GASL065", message, test.span, hint, edits=edits)


def _of_length(test: Comparison, right: Constant) -> tuple[str, str, list[Edit]]:
    """Return the message, the hint and the edits for a faulty comparison of a length; the message is "" if it is correct."""
    value, kind = right.value, kind_of_value(right.value)
    if kind != "number":
        digits = kind == "text" and value.strip().isascii() and value.strip().isdigit() and len(value) < 18
        edits = [Edit(right.span, str(int(value)))] if digits else []
        return f"LEN is a number, but this is a {kind}", "", edits
    if (test.operator in ("<", "<=", "=") and value < 0) or (test.operator == "<" and value == 0):
        return f"LEN is never {test.operator} {value}", "LEN is 0 or more", []
    if test.operator == "=" and value != int(value):
        return f"LEN is never {value}", "LEN is a whole number", []
    return "", "", []


def _contradictions(context: Context, both: And) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each test of an AND that contradicts an earlier test of the same AND."""
    before: dict[str, list[Comparison | NullTest]] = {}
    for operand in both.operands[:_MOST_OPERANDS]:
        if not isinstance(operand, Comparison | NullTest) or getattr(operand.left, "quantifier", None) is not None:
            continue
        what = _left_text(operand.left)
        earlier = before.setdefault(what, [])
        clash = next((test for test in earlier[:10] if _excludes(test, operand)), None)
        if clash is not None:
            message = f"{format_condition(operand)[:80]} contradicts {format_condition(clash)[:80]}"
            yield context.diagnostic(
                "GASL065", message, operand.span, "write OR, or IN with both values" if _equal(clash, operand) else ""
            )
        earlier.append(operand)


def _left_text(left: Field | Variable | Length) -> str:
    return format_condition(NullTest(left))


def _equal(*tests: Comparison | NullTest) -> bool:
    return all(isinstance(test, Comparison) and test.operator == "=" for test in tests)


def _may_hold_of_null(test: Comparison) -> bool:
    """Return whether a comparison may be true for null, as ``NOT IN`` an empty list is."""
    return test.operator == "NOT IN" and (isinstance(test.right, Variable) or is_of_empty_list(test))


def _excludes(one: Comparison | NullTest, other: Comparison | NullTest) -> bool:
    """Return whether the two tests are never true for the same value."""
    for first, second in ((one, other), (other, one)):
        if isinstance(first, NullTest):
            if first.negated or (isinstance(second, Comparison) and _may_hold_of_null(second)):
                continue
            if isinstance(second, Comparison) or second.negated:
                return True
            continue
        if isinstance(second, NullTest) or not isinstance(first.right, Constant):
            continue
        value = first.right.value
        if first.operator == "=" and value is not None and not isinstance(second.right, Variable):
            right = (
                tuple(i.value for i in second.right.items) if isinstance(second.right, Items) else second.right.value
            )
            if second.operator != "MATCHES" and right is not None:
                return compare(value, second.operator, right) is not True
        if first.operator in (">", ">=") and second.operator in ("<", "<=") and isinstance(second.right, Constant):
            low, high = value, second.right.value
            strict = first.operator == ">" or second.operator == "<"
            if kind_of_value(low) == kind_of_value(high):
                return compare(low, ">", high) is True or (strict and identity(low) == identity(high))
    return False


@lint("GASL066")
def quantifier(context: Context) -> Iterator[Diagnostic]:
    """Report ANY, ALL and NONE where no path is tested, and tests of a path's nodes or edges without one of these keywords."""
    for step in context.steps:
        for condition, on in tested(step):
            if on == "unknown":
                continue
            for leaf in leaves(condition):
                field = leaf.test.left
                if not isinstance(field, Field):
                    continue
                if field.quantifier is not None and on not in ("paths", "path items"):
                    word = field.quantifier.upper()
                    what = {"edge items": "edges", "rows": "rows"}.get(on, on)
                    message = f"{word} tests the nodes or edges of a path, but this condition tests {what}"
                    plain = Field(field.path[1:])
                    whose = {"nodes": "node", "edges": "edge"}.get(on, "")
                    fits = whose == field.path[0] and len(field.path) > 1
                    if fits and word == "NONE":  # removing the keyword would negate the test
                        hint, edits = f"write NOT ({_field_text(plain)} ...)", []
                    else:
                        hint = "write the field without it" if fits else ""
                        edits = [Edit(field.span, _field_text(plain))] if fits else []
                    yield context.diagnostic("GASL066", message, field.span, hint, edits=edits)
                elif (
                    field.quantifier is None
                    and on in ("paths", "path items")
                    and len(field.path) > 1
                    and field.path[0] in ("node", "edge")
                ):
                    message = f"a path has several {field.path[0]}s: {'.'.join(field.path)[:80]} needs ANY, ALL or NONE"
                    hint = "write ANY before it if one match is enough, ALL if all must match"
                    yield context.diagnostic("GASL066", message, field.span, hint)


def _field_text(field: Field) -> str:
    return format_condition(NullTest(field)).removesuffix(" IS NULL")


@lint("GASL067")
def bad_pattern(context: Context) -> Iterator[Diagnostic]:
    """Report invalid patterns after MATCHES."""
    for step in context.steps:
        for condition, _ in tested(step):
            for leaf in leaves(condition):
                test = leaf.test
                if (
                    not isinstance(test, Comparison)
                    or test.operator != "MATCHES"
                    or not isinstance(test.right, Constant)
                ):
                    continue
                if not isinstance(test.right.value, str):
                    continue
                try:
                    compare("", "MATCHES", test.right.value)
                except ConditionError as error:
                    yield context.diagnostic("GASL067", str(error), test.right.span, getattr(error, "hint", "") or "")


@lint("GASL068")
def field_without_item(context: Context) -> Iterator[Diagnostic]:
    """Report fields in the conditions of ASSERT and BRANCH, which have no item."""
    for step in context.steps:
        for condition, on in tested(step):
            if on != "variables":
                continue
            for leaf in leaves(condition):
                field = leaf.test.left
                if isinstance(field, Field):
                    variable = _variable_text(context, step, field, leaf.test)
                    message = f"{'.'.join(field.path)[:80]} is a field, but this condition has no item"
                    edits = [Edit(field.span, variable)] if field.path[0] in context.bound_names else []
                    yield context.diagnostic(
                        "GASL068", message, field.span, f"write a variable as {variable}", edits=edits
                    )


def _variable_text(context: Context, step: Step, field: Field, test: Comparison | NullTest) -> str:
    """Return the text of the variable that a field name stands for; with LEN, if a list is compared with a number."""
    dots = "".join(f".{format_name(part)}" for part in field.path[1:])
    variable = f"${{{format_name(field.path[0])}{dots}}}"
    binding = context.first_bindings.get(field.path[0])
    right = getattr(test, "right", None)
    counts = isinstance(right, Constant) and kind_of_value(right.value) == "number"
    if counts and not dots and binding is not None and binding.kind in ("nodes", "edges", "paths", "rows"):
        return f"LEN {variable}"
    return variable


@lint("GASL069")
def ends_of_no_edge(context: Context) -> Iterator[Diagnostic]:
    """Report ``source.x`` for nodes, and attributes of nodes that edges and paths in a variable do not store."""
    for step in context.steps:
        for condition, on in tested(step):
            if on not in ("nodes", "edge items", "path items") or (on == "nodes" and context.schema is not None):
                continue  # the rule that uses the graph gives more detail
            for leaf in leaves(condition):
                field = leaf.test.left
                if (
                    not isinstance(field, Field)
                    or not _is_of_a_node(field)
                    or (field.path[1] == "id" and on != "nodes")
                ):
                    continue
                name = _field_text(field)[:80]
                if on == "nodes":
                    if field.quantifier is not None:
                        continue
                    message, hint = f"{name} belongs to an edge, but this condition tests nodes", "use FIND edges"
                else:
                    kind = on.removesuffix(" items") + "s"
                    message = f"{name} is not stored with the {kind} of a variable"
                    hint = f"test it when the {kind} are found: FIND {kind} WHERE {name} = ... AS name"
                yield context.diagnostic("GASL069", message, field.span, hint)


def _is_of_a_node(field: Field) -> bool:
    """Return whether a field belongs to a node of an edge or a path."""
    if len(field.path) < 2:
        return False
    return field.path[0] == "node" if field.quantifier is not None else field.path[0] in ("source", "target")
