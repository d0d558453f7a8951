"""The canonical text of an expression. Parsing this text gives the same tree, and printing that tree gives the same text.

Strings are in double quotes, the constants are ``null``, ``true`` and ``false``, and an operator between two values has a space on both
sides. Parentheses are written only if the text would have another tree without them. No function here is recursive, so only memory limits
the depth of a tree.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from ..trees.expr import (
    Arithmetic,
    BoolChain,
    Call,
    Comparison,
    Comprehension,
    Conditional,
    DictDisplay,
    Expr,
    Field,
    ListDisplay,
    Literal,
    MethodCall,
    Name,
    Negative,
    Not,
    Power,
    Slicing,
    Subscript,
    TupleDisplay,
)

_Piece: TypeAlias = Any
"""A string to write, or a node and a rank: a node of a lower rank is written in parentheses."""

TEST, _OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _MINUS, _POWER, VALUE = range(10)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def format_expr(expr: Expr, place: int = TEST) -> str:
    """Return the canonical text of ``expr`` on one line. The text is in parentheses if the ``rank`` of ``expr`` is below ``place``.

    Raises ``ValueError`` for a tree that cannot be written, which the parser never creates. Such a tree has a chain of one operand, a
    generator that is not an argument, a number that is not finite, or a name with a space.
    """
    written: list[str] = []
    stack: list[_Piece] = [(expr, place)]
    while stack:
        piece = stack.pop()
        if isinstance(piece, str):
            written.append(piece)
            continue
        node, lowest = piece
        pieces = list(_WRITERS[type(node)](node))
        if rank(node) < lowest:
            pieces = ["(", *pieces, ")"]
        stack.extend(reversed(pieces))
    return "".join(written)


def rank(node: Expr) -> int:
    """Return the precedence of ``node``: from ``TEST`` (a conditional) to ``VALUE`` (a name, brackets)."""
    match node:
        case Arithmetic(rest=rest):
            return _SUM if rest and rest[0][0] in ("+", "-") else _PRODUCT
        case BoolChain(operator=operator):
            return _OR if operator == "or" else _AND
        case Literal(value=value) if type(value) in (int, float) and math.copysign(1.0, value) < 0:  # type: ignore[arg-type]
            return _MINUS
        case _:
            return _RANKS.get(type(node), VALUE)


_RANKS: Mapping[type, int] = {
    Conditional: TEST, Not: _NOT, Comparison: _COMPARISON, Negative: _MINUS, Power: _POWER,
}  # fmt: skip


def _literal(node: Literal) -> Iterator[_Piece]:
    value = node.value
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} cannot be written in an expression")
    yield repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot be written as a name")
    return name


def _list_pieces(opening: str, items: Iterable[_Piece], closing: str) -> Iterator[_Piece]:
    yield opening
    for at, item in enumerate(items):
        if at:
            yield ", "
        yield item
    yield closing


def _tests(items: Iterable[Expr]) -> list[_Piece]:
    return [(item, TEST) for item in items]


def _dict(node: DictDisplay) -> Iterator[_Piece]:
    yield "{"
    for at, (key, value) in enumerate(node.entries):
        yield from (", " if at else "", (key, TEST), ": ", (value, TEST))
    yield "}"


def _arithmetic(node: Arithmetic) -> Iterator[_Piece]:
    place = rank(node) + 1
    signs = {"+", "-"} if place == _PRODUCT else {"*", "/", "//", "%"}
    if not node.rest or not signs.issuperset(operator for operator, _ in node.rest):
        raise ValueError("a chain needs at least one operator, and all must have the same precedence")
    yield (node.first, place)
    for operator, operand in node.rest:
        yield from (f" {operator} ", (operand, place))


def _comparison(node: Comparison) -> Iterator[_Piece]:
    if not node.rest:
        raise ValueError("a comparison needs two sides")
    yield (node.first, _SUM)
    for test, right in node.rest:
        if test in ("is", "is not") and right != Literal(None):
            raise ValueError(f"{test} is only allowed before null")
        yield from (f" {test} ", (right, _SUM))


def _chain(node: BoolChain) -> Iterator[_Piece]:
    if len(node.operands) < 2:
        raise ValueError(f"{node.operator} needs two sides")
    place = rank(node) + 1
    for at, operand in enumerate(node.operands):
        if at:
            yield f" {node.operator} "
        yield (operand, place)


def _conditional(node: Conditional) -> Iterator[_Piece]:
    if not node.branches:
        raise ValueError("a conditional needs a branch")
    for condition, value in node.branches:
        yield from ((value, _OR), " if ", (condition, _OR), " else ")
    yield (node.otherwise, _OR)


def _inside(node: Comprehension) -> Iterator[_Piece]:
    if not node.clauses:
        raise ValueError("a comprehension needs at least one `for` clause")
    yield (node.element, TEST)
    for clause in node.clauses:
        if not clause.names:
            raise ValueError("a `for` clause needs a name")
        yield from (f" for {', '.join(map(_name, clause.names))} in ", (clause.iterable, _OR))
        for condition in clause.conditions:
            yield from (" if ", (condition, _OR))


def _comprehension(node: Comprehension) -> Iterator[_Piece]:
    if node.kind == "generator":
        raise ValueError("a generator is only allowed as a function's argument")
    yield from ("[", *_inside(node), "]")


def _primary(node: Expr) -> _Piece:
    """Return the piece for a value that a suffix follows.

    A number is put in parentheses, because a dot after it would be read as a decimal point.
    """
    number = isinstance(node, Literal) and type(node.value) in (int, float)
    return (node, VALUE + 1 if number else VALUE)


def _slicing(node: Slicing) -> Iterator[_Piece]:
    yield from (_primary(node.value), "[")
    if node.start is not None:
        yield (node.start, TEST)
    yield ":"
    if node.stop is not None:
        yield (node.stop, TEST)
    if node.step is not None:
        yield from (":", (node.step, TEST))
    yield "]"


def _call(node: Call) -> Iterator[_Piece]:
    only = len(node.arguments) == 1 and not node.keywords
    yield f"{_name(node.function)}("
    for at, argument in enumerate(node.arguments):
        if at:
            yield ", "
        if isinstance(argument, Comprehension) and argument.kind == "generator":
            yield from _inside(argument) if only else ("(", *_inside(argument), ")")
        else:
            yield (argument, TEST)
    for at, (name, value) in enumerate(node.keywords):
        if at or node.arguments:
            yield ", "
        yield from (f"{_name(name)}=", (value, TEST))
    yield ")"


_WRITERS: Mapping[type, Callable[[Any], Iterable[_Piece]]] = {
    Arithmetic: _arithmetic,
    BoolChain: _chain,
    Call: _call,
    Comparison: _comparison,
    Comprehension: _comprehension,
    Conditional: _conditional,
    DictDisplay: _dict,
    Field: lambda node: (f"{node.namespace}.{_name(node.name)}",),
    ListDisplay: lambda node: _list_pieces("[", _tests(node.items), "]"),
    Literal: _literal,
    MethodCall: lambda node: (
        _primary(node.value),
        *_list_pieces(f".{_name(node.method)}(", _tests(node.arguments), ")"),
    ),
    Name: lambda node: (_name(node.name),),
    Negative: lambda node: ("-", (node.operand, _MINUS)),
    Not: lambda node: ("not ", (node.operand, _NOT)),
    Power: lambda node: ((node.base, VALUE), " ** ", (node.exponent, _MINUS)),
    Slicing: _slicing,
    Subscript: lambda node: (_primary(node.value), "[", (node.index, TEST), "]"),
    TupleDisplay: lambda node: _list_pieces("(", _tests(node.items), ",)" if len(node.items) == 1 else ")"),
}
