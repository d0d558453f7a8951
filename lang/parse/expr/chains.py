"""Ranks a flat chain of operands and signs: ``or``, ``and``, ``not``, comparisons, ``+ -``, ``* / // %``, minus, ``**``.

Nothing here recurses with the length of the chain. Both readings, Lark's and the tolerant one, end here.
"""

from collections.abc import Sequence
from typing import Any, cast

from attrs import frozen

from ...expr import Arithmetic, BoolChain, Comparison, Expr, Literal, Negative, Not, Power
from ...source import Span

__all__ = ["Sign", "climb"]

_SUMS = frozenset({"+", "-"})
_PRODUCTS = frozenset({"*", "/", "//", "%"})


@frozen
class Sign:
    """A sign between operands, or before one. Lark's tokens have the same fields.

    ``type`` is NOT and MINUS before an operand (MINUS also between two), BOOL, TEST, NULL_TEST and OPERATOR between.
    """

    type: str
    value: str
    start_pos: int
    end_pos: int


def climb(items: Sequence[Any]) -> Expr:
    """Return the tree of ``items``: signs (``Sign`` or Lark's tokens) and nodes, in an order that the grammar has."""
    alternatives: list[Expr] = []
    operands: list[Expr] = []
    at, count = 0, len(items)
    while True:
        node, at = _negation(items, at)
        operands.append(node)
        if at == count:
            break
        if items[at].value == "or":
            alternatives.append(_all_of(operands))
            operands = []
        at += 1
    last = _all_of(operands)
    if not alternatives:
        return last
    alternatives.append(last)
    return BoolChain("or", tuple(alternatives), span=Span(alternatives[0].span.start, last.span.end))


def _all_of(operands: list[Expr]) -> Expr:
    if len(operands) == 1:
        return operands[0]
    return BoolChain("and", tuple(operands), span=Span(operands[0].span.start, operands[-1].span.end))


def _negation(items: Sequence[Any], at: int) -> tuple[Expr, int]:
    begin = at
    while getattr(items[at], "type", "") == "NOT":
        at += 1
    first = at
    node, at = _comparison(items, at)
    for sign in reversed(items[begin:first]):
        node = Not(node, span=Span(sign.start_pos, node.span.end))
    return node, at


def _comparison(items: Sequence[Any], at: int) -> tuple[Expr, int]:
    first, at = _sum(items, at)
    count = len(items)
    if at == count or items[at].type == "BOOL":
        return first, at
    rest: list[Any] = []
    right = first
    while at < count:
        sign = items[at]
        if sign.type == "TEST":
            test = sign.value if len(sign.value) < 6 else "not in"
            right, at = _sum(items, at + 1)
            rest.append((test, right))
        elif sign.type == "NULL_TEST":
            end = sign.end_pos
            right = Literal(None, span=Span(end - 4, end))
            rest.append(("is not" if "not" in sign.value else "is", right))
            at += 1
        else:
            break
    return Comparison(first, tuple(rest), span=Span(first.span.start, right.span.end)), at


def _sum(items: Sequence[Any], at: int) -> tuple[Expr, int]:
    first, at = _product(items, at)
    count = len(items)
    if at == count or items[at].value not in _SUMS:
        return first, at
    rest: list[Any] = []
    right = first
    while at < count and (operator := items[at].value) in _SUMS:
        right, at = _product(items, at + 1)
        rest.append((str(operator), right))
    return Arithmetic(first, tuple(rest), span=Span(first.span.start, right.span.end)), at


def _product(items: Sequence[Any], at: int) -> tuple[Expr, int]:
    first, at = _power(items, at)
    count = len(items)
    if at == count or items[at].value not in _PRODUCTS:
        return first, at
    rest: list[Any] = []
    right = first
    while at < count and (operator := items[at].value) in _PRODUCTS:
        right, at = _power(items, at + 1)
        rest.append((str(operator), right))
    return Arithmetic(first, tuple(rest), span=Span(first.span.start, right.span.end)), at


def _power(items: Sequence[Any], at: int) -> tuple[Expr, int]:
    """Read ``- a ** - b ** c``: from right to left, a minus binding less than the power behind it."""
    item = items[at]
    count = len(items)
    if getattr(item, "type", None) is None and (at + 1 == count or items[at + 1].value != "**"):
        return cast(Expr, item), at + 1
    begin = at
    while at < count and (
        getattr(items[at], "type", None) is None
        or items[at].value == "**"
        or (items[at].type == "MINUS" and (at == begin or getattr(items[at - 1], "type", None) is not None))
    ):
        at += 1
    node: Expr = items[at - 1]
    behind = at - 2
    while behind >= begin:
        sign = items[behind]
        if sign.type == "MINUS":
            node = Negative(node, span=Span(sign.start_pos, node.span.end))
            behind -= 1
        else:
            base: Expr = items[behind - 1]
            node = Power(base, node, span=Span(base.span.start, node.span.end))
            behind -= 2
    return node, at
