"""Builds the nodes of conditions and values as Lark reduces its rules."""

import json
import re
from typing import Any

from attrs import evolve
from lark import Token

from ...diagnostic import Edit
from ...printer.gasl_printer import format_condition
from ...source import Span
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
from ..repairs import Unbuildable
from .nodes import identifier, number_of, span_of, string_of, variable_of

MAX_DEPTH = 64
"""Maximum nesting depth of conditions, nested commands and blocks. Real programs are far below this limit."""

_SPELLINGS: dict[str, Operator] = {"==": "=", "<>": "!="}


class ConditionBuilder:
    """The callbacks for conditions and values. Stateless.

    The linter checks the functions that are called and the number of their arguments.
    """

    def any_of(self, children: list[Condition]) -> Or:
        """Build ``a OR b``."""
        return Or(tuple(children), span=children[0].span | children[-1].span)

    def all_of(self, children: list[Condition]) -> And:
        """Build ``a AND b``."""
        return And(tuple(children), span=children[0].span | children[-1].span)

    def negated(self, children: list[Any]) -> Condition:
        """Build ``NOT a``, or a chain such as ``NOT NOT a``."""
        *words, operand = children
        if len(words) > MAX_DEPTH:
            span = Span(span_of(words[0]).start, span_of(words[-1]).end)
            double = Edit(Span(span.start, operand.span.start), "NOT " * (len(words) % 2))
            raise Unbuildable(
                "GASL023",
                f"NOT is repeated {len(words):,} times in a row; at most {MAX_DEPTH} are allowed",
                span,
                (),
                (double,),
            )
        for word in reversed(words):
            operand = Not(operand, span=span_of(word) | operand.span)
        return operand  # type: ignore[no-any-return]

    def group(self, children: list[Any]) -> Condition:
        """Return the condition in ``(a)`` with a span that includes the parentheses."""
        first, condition, last = children
        return evolve(condition, span=span_of(first) | span_of(last))  # type: ignore[no-any-return]

    def comparison(self, children: list[Any]) -> Comparison:
        """Build ``left = right``."""
        left, operator, right = children
        canonical: Any = _SPELLINGS.get(operator) or operator.upper()
        _check_null(left, canonical, operator, right)
        if isinstance(left, Constant) and isinstance(right, Constant | Field):
            _check_sides(left, canonical, right)
        return Comparison(left, canonical, right, span=left.span | right.span)

    def membership(self, children: list[Any]) -> Comparison:
        """Build ``left [NOT] IN right``."""
        left, *words, right = children
        return Comparison(left, "NOT IN" if len(words) > 1 else "IN", right, span=left.span | right.span)

    def null_test(self, children: list[Any]) -> NullTest:
        """Build ``left IS [NOT] NULL``."""
        left, *words, null = children
        return NullTest(left, len(words) > 1, span=left.span | span_of(null))

    def quantified(self, children: list[Any]) -> Comparison:
        """Build ``ANY node.x = right``."""
        return self.comparison([_quantified(*children[:2]), *children[2:]])

    def quantified_membership(self, children: list[Any]) -> Comparison:
        """Build ``ANY node.x [NOT] IN right``."""
        return self.membership([_quantified(*children[:2]), *children[2:]])

    def quantified_null(self, children: list[Any]) -> NullTest:
        """Build ``ANY node.x IS [NOT] NULL``."""
        return self.null_test([_quantified(*children[:2]), *children[2:]])

    def increasing(self, children: list[Any]) -> Increasing:
        """Build ``INCREASING edge.x``."""
        word, path = children
        _check_element("INCREASING", path)
        return Increasing(path, span=span_of(word) | path.span)

    def field(self, children: list[Field]) -> Field:
        """Build a field."""
        return children[0]

    def binary(self, children: list[Any]) -> Binary:
        """Build ``left + right`` and the other operators."""
        left, sign, right = children
        depth = 1 + max(_depth(left), _depth(right))
        return Binary(str(sign), left, right, depth=_bounded(depth, span_of(sign)), span=left.span | right.span)  # type: ignore[arg-type]  # a terminal's signs

    def negative(self, children: list[Any]) -> Value:
        """Build ``-value``. If the value is a number, the minus is part of the number, even if a space separates them."""
        sign, operand = children
        span = span_of(sign) | operand.span
        if isinstance(operand, Constant) and type(operand.value) in (int, float):
            return Constant(-operand.value, span=span)
        return Negative(operand, depth=_bounded(1 + _depth(operand), span_of(sign)), span=span)

    def call(self, children: list[Any]) -> Call:
        """Build ``function(argument, ...)``."""
        name, _, *arguments, close = children
        depth = 1 + max(map(_depth, arguments), default=0)
        span = span_of(name) | span_of(close)
        return Call(identifier(name), tuple(arguments), depth=_bounded(depth, span_of(name)), span=span)

    def inner(self, children: list[Any]) -> Value:
        """Return the value in ``(a)`` with a span that includes the parentheses."""
        first, value, last = children
        return evolve(value, span=span_of(first) | span_of(last))  # type: ignore[no-any-return]

    def length(self, children: list[Any]) -> Length:
        """Build ``LEN value``."""
        word, operand = children
        depth = _bounded(1 + _depth(operand), span_of(word))
        return Length(operand, depth=depth, span=span_of(word) | operand.span)

    def items(self, children: list[Any]) -> Items:
        """Build ``("a", "b")``."""
        first, *items, last = children
        return Items(tuple(items), span=span_of(first) | span_of(last))

    def variable(self, children: list[Token]) -> Variable:
        """Build ``${name.path}``."""
        return variable_of(children[0])

    def text(self, children: list[Token]) -> Constant:
        """Build a string."""
        return Constant(string_of(children[0]), span=span_of(children[0]))

    def number(self, children: list[Token]) -> Constant:
        """Build a number."""
        return Constant(number_of(children[0]), span=span_of(children[0]))

    def true(self, children: list[Token]) -> Constant:
        """Build ``true``."""
        return Constant(True, span=span_of(children[0]))

    def false(self, children: list[Token]) -> Constant:
        """Build ``false``."""
        return Constant(False, span=span_of(children[0]))

    def null(self, children: list[Token]) -> Constant:
        """Build ``null``, in lists and in SET."""
        return Constant(None, span=span_of(children[0]))


_NULLS = frozenset({"NULL", "NONE", "NIL", "UNDEFINED", "MISSING"})
_NULL_TEST = "use IS NULL for a missing value, IS NOT NULL for an existing value"
_TAKEN = {
    "STARTS_WITH": "a string", "ENDS_WITH": "a string", "CONTAINS": "a value", "MATCHES": "a pattern",
    **dict.fromkeys(("<", "<=", ">", ">="), "a number or a string"),
}  # fmt: skip
"""Maps each operator to a description of the values that are allowed after it."""
_TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Maps each comparison operator to the operator that is needed if the sides are exchanged."""


def _null_word(side: Any) -> str:
    """Return the name of the field ``side`` if it means null in this or another language, and is not in backticks; otherwise ""."""
    if not isinstance(side, Field) or len(side.path) != 1 or side.path[0].upper() not in _NULLS:
        return ""
    return side.path[0] if side.span.end - side.span.start == len(side.path[0]) else ""


def _check_null(left: Any, operator: str, sign: Token, right: Any) -> None:
    """Raise ``Unbuildable`` for a comparison with NULL, such as ``a = NULL``, ``NULL = a`` and ``a < None``."""
    test = "IS NULL" if operator == "=" else "IS NOT NULL"
    if (word := _null_word(left)) and operator in ("=", "!=") and not isinstance(right, Constant):
        span, written = left.span | right.span, f"{format_condition(right)} {test}"
        raise Unbuildable(
            "GASL013", f"a comparison with {word} is never true", span, (f"write {written}",), (Edit(span, written),)
        )
    if not (word := _null_word(right)):
        return
    if operator in ("=", "!="):
        span = span_of(sign) | right.span
        raise Unbuildable(
            "GASL013", f"a comparison with {word} is never true", span, (f"write {test}",), (Edit(span, test),)
        )
    if word.upper() in ("NULL", "NONE", "NIL"):
        message = f"{operator} needs {_TAKEN[operator]}, not {word}: the comparison is never true"
        raise Unbuildable("GASL013", message, right.span, (_NULL_TEST,))


def _check_sides(left: Constant, operator: str, right: Constant | Field) -> None:
    """Raise ``Unbuildable`` if a field in quotes, or a value, is on the left side of a comparison."""
    span = left.span | right.span
    if isinstance(right, Field):
        if isinstance(left.value, str) and operator in _TURNED:
            written = f"{'.'.join(map(_written_name, right.path))} {_TURNED[operator]} {json.dumps(left.value)}"
            message = "the field must be on the left and the value on the right"
            raise Unbuildable("GASL014", message, span, (f"write {written}",), (Edit(span, written),))
        return
    if isinstance(left.value, str):
        if left.value == right.value:
            hint = "remove a condition that is always true, or write the name of a field without quotes"
            raise Unbuildable("GASL033", "a constant is compared with itself", span, (hint,))
        raise quoted_name(left.value, left.span)
    hint = "write the name of a field on the left; put a name that begins with a digit in backticks"
    if isinstance(left.value, bool):
        hint = f"write `{str(left.value).lower()}` for a field of this name"
    raise Unbuildable("GASL033", "two constants are compared", span, (hint,))


def quoted_name(name: str, span: Span) -> Unbuildable:
    """Return the fault of a field in quotes."""
    written = name if _PLAIN_PATH.fullmatch(name) else _written_name(name)
    edits = (Edit(span, written),) if written.strip("`") and "\n" not in written else ()
    return Unbuildable("GASL033", "a name cannot have quotes", span, (f"write {written}",), edits)


_PLAIN_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)


def _written_name(name: str) -> str:
    return name if _PLAIN_PATH.fullmatch(name) and "." not in name else "`" + name.replace("`", "``") + "`"


def _quantified(word: Token, path: Field) -> Field:
    """Return a field of the nodes or edges of a path, with its quantifier."""
    _check_element(word.upper(), path)
    return Field(path.path, word.lower(), span=span_of(word) | path.span)  # type: ignore[arg-type]  # a terminal's words


def _check_element(word: str, path: Field) -> None:
    """Raise ``Unbuildable`` if the path does not begin with ``node`` or ``edge``, or has no name after it."""
    if path.path[0] in ("node", "edge") and len(path.path) > 1:
        return
    parts = path.path[1:] if path.path[0] in ("node", "edge", "nodes", "edges") else path.path
    kind = "edge" if path.path[0].startswith("edge") else "node"
    right = ".".join((kind, *(parts or ("field",))))
    # If the path names neither nodes nor edges, the intended one is unclear, so no edit is offered.
    edits = (Edit(path.span, right),) if parts and parts != path.path else ()
    message = f"{word} needs a field of the nodes or edges of a path, not {path.text}"
    either = f"write {word} {right}" + ("" if edits else f" or {word} edge{right[4:]}")
    if word == "INCREASING" and len(path.path) > 1 and path.path[0] not in ("node", "edge"):
        either = f"write INCREASING edge.{path.path[-1]} for paths; in patterns, compare two fields: x.date <= y.date"
        edits = ()
    raise Unbuildable("GASL010", message, path.span, (either,), edits)


def _depth(value: Any) -> int:
    """Return the nesting depth of a value or a condition that is an argument; fields, constants and variables have depth 0."""
    return getattr(value, "depth", 0)


def _bounded(depth: int, at: Span) -> int:
    if depth > MAX_DEPTH:
        hint = "compute part of it in an earlier command"
        raise Unbuildable("GASL023", f"the value is nested more than {MAX_DEPTH} levels deep", at, (hint,))
    return depth
