"""Rules about values: comparisons that are never true, invalid operands, values that an enum does not list."""

import json
import re
from collections.abc import Iterator
from typing import Literal as OneOf
from typing import TypeAlias

from ...catalogue.operations import FUNCTIONS, METHODS
from ...diagnostic import Diagnostic, Edit
from ...printer.expr_printer import format_expr
from ...source import Span
from ...trees.expr import (
    Arithmetic,
    BoolChain,
    Call,
    Comparison,
    Comprehension,
    DictDisplay,
    Expr,
    Field,
    ListDisplay,
    Literal,
    MethodCall,
    Negative,
    Not,
    Power,
    Test,
    TupleDisplay,
)
from ...trees.seed import Extracted
from .expression_context import Context, Place, lint, listed, row_part

Kind: TypeAlias = OneOf["null", "boolean", "number", "text", "list", "object", ""]

_ORDER = ("<", "<=", ">", ">=")
_EQUALITY = ("==", "!=", "is", "is not")


@lint("EXPR059")
def unlisted(context: Context) -> Iterator[Diagnostic]:
    """Report comparisons with values that an enum does not list."""
    for place in context.places:
        if not isinstance(place.node, Comparison):
            continue
        for left, test, right in _pairs(place.node):
            for subject, values in ((left, right), (right, left)):
                field = _enum(context, Place(subject, place.variables))
                if field is None or test not in ("==", "!=", "in", "not in") or (subject is right and "in" in test):
                    continue
                for literal in values.items if isinstance(values, ListDisplay | TupleDisplay) else (values,):
                    if (
                        isinstance(literal, Literal)
                        and isinstance(literal.value, str)
                        and literal.value not in field.values
                    ):
                        yield _unlisted(context, field, literal)


def _enum(context: Context, place: Place) -> Extracted | None:
    node, part = place.node, row_part(place)
    name = part[1] if part is not None and part[0] == "extraction" else None
    if isinstance(node, Field) and node.namespace == "extraction":
        name = node.name
    field = (context.fields or {}).get(name) if name is not None else None
    return field if field is not None and field.type == "enum" and field.values else None


def _unlisted(context: Context, field: Extracted, literal: Literal) -> Diagnostic:
    near = context.suggestion(str(literal.value), tuple(field.values))
    edits = [Edit(literal.span, json.dumps(near, ensure_ascii=False))] if near else []
    hint = f"did you mean `{near}`?" if near else listed(field.values)
    shown = json.dumps(literal.value, ensure_ascii=False)
    return context.diagnostic("EXPR059", f"{field.name} is never {shown:.60}", literal.span, hint, edits=edits)


@lint("EXPR060")
def comparisons(context: Context) -> Iterator[Diagnostic]:
    """Report comparisons whose result does not depend on the data."""
    for place in context.places:
        if not isinstance(place.node, Comparison):
            continue
        for left, test, right in _pairs(place.node):
            yield from _comparison(context, left, test, right)


def _comparison(context: Context, left: Expr, test: Test, right: Expr) -> Iterator[Diagnostic]:
    first, second = static_kind(left), static_kind(right)
    span = left.span | right.span
    if "null" in (first, second):
        if test in _ORDER or test in ("in", "not in"):
            hint = "test for null with `== null` or `!= null`"
            yield context.diagnostic("EXPR060", f"`{test}` with null is never true", span, hint)
        return
    if not first or not second or test in ("is", "is not"):
        return
    if test in ("in", "not in"):
        if second in ("number", "boolean"):
            yield context.diagnostic("EXPR060", f"{_A[second]} has no elements", span, "`in` takes a list or a string")
        elif second == "text" and first != "text":
            yield context.diagnostic(
                "EXPR060", f"{_A[first]} can't be part of a string", span, "write the value in quotes"
            )
        return
    if first == second:
        return
    if test in _ORDER:
        message = f"{_A[first]} can't be compared with {_A[second]}"
    else:
        message = f"{_A[first]} and {_A[second]} are {'never equal' if test == '==' else 'always unequal'}"
    hint, edits = _without_quotes(left, right) if {first, second} == {"text", "number"} else ("", [])
    yield context.diagnostic("EXPR060", message, span, hint, edits=edits)


_A = {
    "null": "null", "boolean": "a boolean", "number": "a number", "text": "a string", "list": "a list", "object": "an object",
}  # fmt: skip


def _without_quotes(left: Expr, right: Expr) -> tuple[str, list[Edit]]:
    """If one side is a number in quotes, return a hint and the edit that removes the quotes; otherwise ("", [])."""
    for side in (left, right):
        if isinstance(side, Literal) and isinstance(side.value, str) and _NUMBER.fullmatch(side.value):
            return "write the number without quotes", [Edit(side.span, side.value)]
    return "", []


_NUMBER = re.compile(r"(0|[1-9][0-9]{0,15})(\.[0-9]+)?")


def _pairs(node: Comparison) -> Iterator[tuple[Expr, Test, Expr]]:
    left = node.first
    for test, right in node.rest:
        yield left, test, right
        left = right


def static_kind(node: Expr) -> Kind:
    """Return the kind that the value of ``node`` always has, or "" if the kind depends on the data."""
    if isinstance(node, Literal):
        return _literal_kind(node)
    if isinstance(node, Comparison | Not):
        return "boolean"
    if isinstance(node, ListDisplay | TupleDisplay):
        return "list"
    if isinstance(node, Comprehension):
        return "list" if node.kind == "list" else ""
    if isinstance(node, DictDisplay):
        return "object"
    if isinstance(node, Negative | Power):
        return "number"
    if isinstance(node, Arithmetic):
        return "number" if any(sign in ("-", "/", "//", "%") for sign, _ in node.rest) else ""
    if isinstance(node, Call):
        return FUNCTIONS[node.function].gives if node.function in FUNCTIONS else ""
    return METHODS[node.method].gives if isinstance(node, MethodCall) and node.method in METHODS else ""


def _literal_kind(node: Literal) -> Kind:
    if node.value is None:
        return "null"
    if isinstance(node.value, bool):
        return "boolean"
    return "text" if isinstance(node.value, str) else "number"


@lint("EXPR064")
def operands(context: Context) -> Iterator[Diagnostic]:
    """Report operands of a type that arithmetic never accepts, and divisions by the literal zero."""
    for place in context.places:
        node = place.node
        if isinstance(node, Negative):
            yield from _operand(context, "-", node.operand, alone=True)
        elif isinstance(node, Power):
            for side in (node.base, node.exponent):
                yield from _operand(context, "**", side)
        elif isinstance(node, Arithmetic):
            yield from _arithmetic(context, node)


def _arithmetic(context: Context, node: Arithmetic) -> Iterator[Diagnostic]:
    yield from _operand(context, node.rest[0][0] if node.rest else "+", node.first)
    before: Expr = node.first
    for sign, operand in node.rest:
        yield from _operand(context, sign, operand)
        if sign in ("/", "//", "%") and operand in (Literal(0), Literal(0.0)):
            yield context.diagnostic("EXPR064", "division by zero", operand.span)
        kinds = {static_kind(before), static_kind(operand)}
        if sign == "+" and kinds == {"text", "number"}:
            number = before if static_kind(before) == "number" else operand
            written = f"str({format_expr(number)})"
            hint = f"write `{written:.80}`"
            edits = [Edit(number.span, written)]
            span = before.span | operand.span
            yield context.diagnostic("EXPR064", "a string and a number can't be added", span, hint, edits=edits)
        before = operand


def _operand(context: Context, sign: str, node: Expr, *, alone: bool = False) -> Iterator[Diagnostic]:
    kind = static_kind(node)
    wrong = kind in ("null", "boolean", "object") or (kind in ("text", "list") and (alone or sign not in ("+", "*")))
    if wrong:
        hint = "write `1 if ... else 0`" if kind == "boolean" else ""
        yield context.diagnostic("EXPR064", f"`{sign}` takes numbers, not {_A[kind]}", node.span, hint)


@lint("EXPR065")
def repeated_keys(context: Context) -> Iterator[Diagnostic]:
    """Report a repeated key in an object: only the last value is used."""
    for place in context.places:
        if not isinstance(place.node, DictDisplay):
            continue
        seen: set[Literal] = set()
        for key, _ in place.node.entries:
            if isinstance(key, Literal):
                if key in seen:
                    shown = json.dumps(key.value, ensure_ascii=False)
                    yield context.diagnostic(
                        "EXPR065", f"the key {shown:.60} is repeated", key.span, "remove one of the two"
                    )
                seen.add(key)


@lint("EXPR066")
def literal_alternatives(context: Context) -> Iterator[Diagnostic]:
    """Report ``x == "a" or "b"``: a string alone is always true, so the entire expression is always true."""
    for place in context.places:
        node = place.node
        if not isinstance(node, BoolChain):
            continue
        before = node.operands[0]
        for at, operand in enumerate(node.operands[1:], 1):
            literal = isinstance(operand, Literal) and not isinstance(operand.value, bool) and operand.value is not None
            if literal and isinstance(before, Comparison):
                word = "true" if operand.value else "false"  # type: ignore[union-attr]  # it is a literal
                hint, edits = _meant_list(node, at)
                shown = format_expr(operand)
                yield context.diagnostic(
                    "EXPR066", f"`{shown:.60}` alone is always {word}", operand.span, hint, edits=edits
                )
                break
            before = operand


def _meant_list(node: BoolChain, at: int) -> tuple[str, list[Edit]]:
    """Return a hint and the edit that rewrites ``x == "a" or "b" or "c"`` with ``in``."""
    first = node.operands[at - 1]
    if not isinstance(first, Comparison) or len(first.rest) != 1 or first.rest[0][0] != "==" or node.operator != "or":
        return "write another comparison, as in `x == 1 or x == 2`", []
    literals = [first.rest[0][1]]
    for operand in node.operands[at:]:
        if not isinstance(operand, Literal):
            break
        literals.append(operand)
    try:
        written = format_expr(Comparison(first.first, (("in", ListDisplay(tuple(literals))),)))
    except ValueError:
        return "write another comparison", []
    span = Span(first.span.start, literals[-1].span.end)
    return f"write `{written:.200}`", [Edit(span, written)]
