"""Rules about conditions that do not need a graph: tests that are never true, invalid patterns, fields where no field is allowed."""

import re
from collections.abc import Iterator
from typing import Any

from attrs import evolve

from ...diagnostic import Diagnostic, Edit, Severity
from ...evaluate.conditions import ConditionError, compare, identity
from ...evaluate.conditions.comparison import is_of_empty_list
from ...printer.gasl_printer import format_condition, format_key, format_name, format_text
from ...source import Span
from ...trees import Node, walk
from ...trees.conditions import (
    And,
    Call,
    Comparison,
    Constant,
    Field,
    Items,
    Length,
    Not,
    NullTest,
    Or,
    Value,
    Variable,
)
from .context import Context, Step, lint
from .fields import (
    FieldRead,
    Scope,
    fields_read,
    increasing_of,
    leaves_of,
    oriented,
)


def kind_of_value(value: Any) -> str:
    """Return the kind of a value: "text", "number", "boolean", "null", "list" or "object". Values of different kinds are never equal."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "list" if isinstance(value, list | tuple) else "object"


def word_of(kind: str) -> str:
    """Return the word that messages use for a kind of value."""
    return "string" if kind == "text" else kind


_ORDER = frozenset({"<", "<=", ">", ">="})
_MOST_OPERANDS = 1000
"""Maximum number of operands of an AND that are compared with each other."""


@lint("GASL065")
def never_true(context: Context) -> Iterator[Diagnostic]:
    """Report tests that are never true, and pairs of tests that exclude each other."""
    for step in context.steps:
        for leaf, _ in leaves_of(context, step):
            yield from _never(context, leaf.test)
        for node in step.nodes_of(And):
            yield from _contradictions(context, node)


def _never(context: Context, written: Comparison | NullTest) -> Iterator[Diagnostic]:
    if isinstance(written, NullTest):
        return
    if isinstance(written.left, Field) and written.left == written.right:
        shown = format_condition(written.left)[:80]
        message = f"{shown} is compared with itself"
        hint = f'write "{shown}" for the text' if written.left.quantifier is None else "write a value on the right"
        if written.left.quantifier is None and len(written.left.path) == 1:
            hint += f", or ${{{shown}}} for a variable"
        yield context.diagnostic("GASL065", message, written.span, hint)
        return
    test = oriented(written)
    right, operator = test.right, test.operator
    message = ""
    edits: list[Edit] = []
    hint = ""
    if isinstance(right, Items):
        nulls = [item for item in right.items if item.value is None]
        if not right.items and operator == "IN":
            message, hint = "IN with an empty list is never true", "write the values into the list"
        elif nulls and (operator == "NOT IN" or len(nulls) == len(right.items)):
            message = f"{operator} with null in the list is never true"
            hint = "the result of a comparison with null is unknown; IS NULL tests for null"
            kept = [context.text(item.span) for item in right.items if item.value is not None]
            edits = [Edit(right.span, f"({', '.join(kept)})")] if kept else []
    elif isinstance(right, Constant):
        kind = kind_of_value(right.value)
        if kind == "null":
            message, hint = "a comparison with null is never true", "write IS NULL or IS NOT NULL"
        elif operator in ("STARTS_WITH", "ENDS_WITH", "MATCHES") and kind != "text":
            message = f"{operator} takes a string, not a {kind}"
            edits = [Edit(right.span, format_text(context.text(right.span)))] if right.span.end else []
        elif isinstance(test.left, Length):
            message, hint, edits = _of_length(test, right)
        elif isinstance(test.left, Call) and test.left.function == "similarity" and _is_above_one(operator, right):
            message, hint = f"similarity is never {operator} {right.value}", "similarity is a number from 0 to 1"
    if message:
        yield context.diagnostic("GASL065", message, written.span, hint, edits=edits)


def _is_above_one(operator: str, constant: Constant) -> bool:
    """Return whether no number from 0 to 1 satisfies the comparison."""
    value = constant.value
    if operator not in ("=", ">", ">=") or isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value > 1 or (value == 1 and operator == ">")


def _of_length(test: Comparison, right: Constant) -> tuple[str, str, list[Edit]]:
    """Return the message, the hint and the edits for a faulty comparison of a length. The message is "" if the comparison is correct."""
    value, kind = right.value, kind_of_value(right.value)
    if kind != "number":
        digits = kind == "text" and value.strip().isascii() and value.strip().isdigit() and len(value) < 18
        edits = [Edit(right.span, str(int(value)))] if digits else []
        return f"LEN is a number, but this is a {word_of(kind)}", "", edits
    if (test.operator in ("<", "<=", "=") and value < 0) or (test.operator == "<" and value == 0):
        return f"LEN is never {test.operator} {value}", "LEN is 0 or more", []
    if test.operator == "=" and value != int(value):
        return f"LEN is never {value}", "LEN is a whole number", []
    return "", "", []


def _contradictions(context: Context, both: And) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each test of an AND that contradicts an earlier test of the same AND."""
    before: dict[str, list[tuple[Comparison | NullTest, Node]]] = {}
    for written in both.operands[:_MOST_OPERANDS]:
        if not isinstance(written, Comparison | NullTest) or getattr(written.left, "quantifier", None) is not None:
            continue
        operand = oriented(written) if isinstance(written, Comparison) else written
        earlier = before.setdefault(_left_text(operand.left), [])
        clash = next((pair for pair in earlier[:10] if _excludes(pair[0], operand)), None)
        if clash is not None:
            message = f"{format_condition(written)[:80]} contradicts {format_condition(clash[1])[:80]}"  # type: ignore[arg-type]  # a test
            hint = "write OR, or IN with both values" if _equal(clash[0], operand) else ""
            yield context.diagnostic("GASL065", message, written.span, hint)
        earlier.append((operand, written))


def _left_text(left: Value) -> str:
    return format_condition(NullTest(left))


def _equal(*tests: Comparison | NullTest) -> bool:
    return all(isinstance(test, Comparison) and test.operator == "=" for test in tests)


def _may_hold_of_null(test: Comparison) -> bool:
    """Return whether a comparison may be true for null, such as ``NOT IN`` with an empty list."""
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
        if first.operator == "=" and value is not None and isinstance(second.right, Constant | Items):
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


@lint("GASL100")
def negated_unknown(context: Context) -> Iterator[Diagnostic]:
    """Report negated tests in VIA of an attribute that some edges lack: such edges are not followed."""
    schema = context.schema
    if schema is None:
        return
    for step in context.steps:
        via = getattr(step.command, "via", None)
        if via is None:
            continue
        allowed = {test.left for test in walk(via) if isinstance(test, NullTest)}
        for test, at in _negated(via):
            name = test.left.text if isinstance(test.left, Field) else ""
            attribute = schema.edge_attributes.get(name)
            if attribute is None or test.left in allowed:
                continue
            lacking = schema.edges - attribute.count + attribute.types.get("null", 0)
            if lacking > 0:
                message = f"{lacking:,} of {schema.edges:,} edges have no {name}, so this test is unknown for them: they are not followed"
                missing = format_condition(NullTest(test.left, negated=False))
                alternative = (
                    f"write ({missing} OR {context.text(at)})"
                    if at is not None
                    else f"add OR {missing} to the condition"
                )
                yield context.diagnostic("GASL100", message, at or test.span, f"to follow them, {alternative}")


def _negated(condition: Node, inside: bool = False) -> Iterator[tuple[Comparison, Span | None]]:
    """Yield each comparison that the condition negates.

    The span is that of the comparison with a NOT directly before it; it is None if a NOT applies to more than the comparison.
    """
    match condition:
        case And() | Or():
            for operand in condition.operands:
                yield from _negated(operand, inside)
        case Not(Comparison() as test) if not inside:
            if test.operator not in ("!=", "NOT IN"):
                yield oriented(test), condition.span
        case Not():
            yield from _negated(condition.operand, not inside)
        case Comparison() if (condition.operator in ("!=", "NOT IN")) is not inside:
            yield oriented(condition), None if inside else condition.span


@lint("GASL066")
def quantifier(context: Context) -> Iterator[Diagnostic]:
    """Report quantifiers and INCREASING in conditions that do not test paths.

    Report tests of the nodes or edges of a path if they have no quantifier.
    """
    for step in context.steps:
        for read in fields_read(context, step):
            field, on = read.field, read.scope.on
            if on == "unknown":
                continue
            if field.quantifier is not None and on not in ("paths", "path items"):
                yield _no_path(context, read)
            elif field.quantifier is None and on in ("paths", "path items") and _is_of_many(field):
                listed = Field((f"{field.path[0]}s", *field.path[1:]))
                message = f"a path has several {field.path[0]}s: {field.text[:80]} needs ANY, ALL or NONE"
                hint = "write ANY before it if one match is enough, ALL if all must match"
                if read.leaf is None or read.side == "inside":
                    message = f"a path has several {field.path[0]}s, so {field.text[:80]} is not a single value"
                    hint = f"write {_field_text(listed)} for the list of the values, as in max({_field_text(listed)})"
                yield context.diagnostic("GASL066", message, field.span, hint)
        for increasing, scope in increasing_of(step):
            if scope.on not in ("paths", "path items", "unknown"):
                message = f"INCREASING compares the edges or nodes along a path, but this condition tests {_tested_items(scope)}"
                hint = "write it in the WHERE of FIND paths or FIND cycles"
                yield context.diagnostic("GASL066", message, increasing.span, hint)


def _is_of_many(field: Field) -> bool:
    return len(field.path) > 1 and field.path[0] in ("node", "edge")


def _tested_items(scope: Scope) -> str:
    return {"edge items": "edges"}.get(scope.on, scope.on)


def _no_path(context: Context, read: FieldRead) -> Diagnostic:
    """Return the diagnostic about a quantifier in a condition that does not test paths."""
    field, on = read.field, read.scope.on
    word = (field.quantifier or "").upper()
    message = f"{word} tests the nodes or edges of a path, but this condition tests {_tested_items(read.scope)}"
    plain = Field(field.path[1:])
    whose = {"nodes": "node", "edges": "edge", "edge items": "edge"}.get(on, "")
    fits = whose == field.path[0] and len(field.path) > 1
    if fits and word == "NONE":  # removing the keyword would negate the test
        return context.diagnostic("GASL066", message, field.span, f"write NOT ({_field_text(plain)} ...)")
    hint = "write only the field" if fits else ""
    edits = [Edit(field.span, _field_text(plain))] if fits else []
    return context.diagnostic("GASL066", message, field.span, hint, edits=edits)


def _field_text(field: Field) -> str:
    return format_condition(NullTest(field)).removesuffix(" IS NULL")


@lint("GASL067")
def bad_pattern(context: Context) -> Iterator[Diagnostic]:
    """Report invalid patterns after MATCHES, and patterns that are not constant."""
    for step in context.steps:
        for leaf, _ in leaves_of(context, step):
            test = leaf.test
            if not isinstance(test, Comparison) or test.operator != "MATCHES" or isinstance(test.right, Variable):
                continue
            if not isinstance(test.right, Constant):
                shown = format_condition(test.right)[:80]  # type: ignore[arg-type]  # only IN has a list
                message = f"MATCHES takes a pattern in quotes, but {shown} is {'a field' if isinstance(test.right, Field) else 'computed'}"
                hint = "CONTAINS, STARTS_WITH and ENDS_WITH take the value of a field"
                yield context.diagnostic("GASL067", message, test.right.span, hint)
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
        for read in fields_read(context, step):
            field = read.field
            if read.scope.on != "variables":
                continue
            variable = _variable_text(context, step, read)
            message = f"{field.text[:80]} is a field, but this condition has no item"
            known = field.path[0] in context.bound_names or _is_measured(context, field)
            edits = [context.replaced(field.span, variable)] if known else []
            hint = f"write a variable as {variable}"
            if read.side == "right" and not edits:
                hint = f"write {format_text(field.text[:80])} for the text, or {variable} for a variable"
            yield context.diagnostic("GASL068", message, field.span, hint, edits=edits)


def _is_measured(context: Context, field: Field) -> bool:
    """Return whether a field is the operand of LEN. In a condition without items, only a variable can be its operand."""
    before = context.program.source.text[max(0, field.span.start - 40) : field.span.start]
    return re.search(r"\bLEN[ \t(]*\Z", before, re.IGNORECASE) is not None


def _variable_text(context: Context, step: Step, read: FieldRead) -> str:
    """Return the text of the variable that was meant by the name of a field.

    If the variable holds a list that is compared with a number, LEN is added.
    """
    field = read.field
    dots = "".join(f".{format_name(part)}" for part in field.path[1:])
    variable = f"${{{format_name(field.path[0])}{dots}}}"
    binding = context.first_bindings.get(field.path[0])
    test = read.leaf.test if read.leaf is not None else None
    other = oriented(test).right if isinstance(test, Comparison) and read.side != "inside" else None
    counts = isinstance(other, Constant) and kind_of_value(other.value) == "number"
    if counts and not dots and binding is not None and binding.kind in ("nodes", "edges", "paths", "rows"):
        return f"LEN {variable}"
    return variable


@lint("GASL069")
def ends_of_no_edge(context: Context) -> Iterator[Diagnostic]:
    """Report attributes of nodes that the items do not hold.

    Nodes have no ``source.x``. Rows with ids, and paths in a variable, hold only the ids of nodes.
    """
    for step in context.steps:
        for read in fields_read(context, step):
            if (found := _missing_end(context, read)) is not None:
                yield found
        for increasing, scope in increasing_of(step):
            read = FieldRead(evolve(increasing.field, quantifier="all"), scope)
            if scope.on == "path items" and (found := _missing_end(context, read)) is not None:
                message = found.message.replace("ALL ", "", 1)
                hint = f"test it when the paths are found: FIND paths WHERE INCREASING {format_key(increasing.field)} AS name"
                yield evolve(found, message=message, span=increasing.field.span, hints=(hint,))


def _missing_end(context: Context, read: FieldRead) -> Diagnostic | None:
    """Return the diagnostic about an attribute of a node that the items do not have, or None."""
    field, scope = read.field, read.scope
    name = _field_text(field)[:80]
    if len(field.path) < 2 or (field.path[1:] == ("id",) and scope.on != "nodes"):
        return None
    of_graph = context.schema is not None  # the rule that uses the graph gives more detail
    if scope.on == "nodes" and field.quantifier is None and field.path[0] in ("source", "target") and not of_graph:
        message, hint = f"{name} belongs to an edge, but these items are nodes", "use FIND edges"
        if read.leaf is not None:
            message = f"{name} belongs to an edge, but this condition tests nodes"
        return context.diagnostic("GASL069", message, field.span, hint, severity="warning")
    if scope.on == "path items" and field.quantifier is not None and field.path[0] == "node":
        message = f"{name} is not saved when the paths of a variable are stored"
        hint = f"test it when the paths are found: FIND paths WHERE {name} = ... AS name"
        return context.diagnostic("GASL069", message, field.span, hint)
    held = scope.contents.holder(field.path) if scope.on == "rows" and field.quantifier is None else None
    if held is not None and held[1] == "id" and held[0] < len(field.path):
        columns, end = scope.contents.columns or (), field.path[held[0] - 1]
        if any(".".join(field.path[:count]) in columns for count in range(held[0] + 1, len(field.path) + 1)):
            return None
        holder = format_key(Field(field.path[: held[0]]))
        severity: Severity = "error" if read.must else "warning"
        message = f"{name} is not stored with the rows of a variable: {holder} is the id of a node"
        if end in ("source", "target"):
            name = f"{end}.{format_key(Field(field.path[held[0] :]))}"
            hint = f"add it before the items become rows: SELECT name FIELDS {name} AS {format_name(field.path[-1])} AS rows"
        else:
            hint = f"join the rows with the nodes: JOIN rows WITH nodes ON {holder} = id AS both"
        return context.diagnostic("GASL069", message, field.span, hint, severity=severity)
    return None
