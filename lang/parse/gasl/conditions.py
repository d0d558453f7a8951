"""Builds the nodes of conditions as Lark reduces its rules."""

from typing import Any

from attrs import evolve
from lark import Token

from ...conditions import (
    And,
    Comparison,
    Condition,
    Constant,
    Field,
    Items,
    Length,
    Not,
    NullTest,
    Operator,
    Or,
    Variable,
)
from ...diagnostic import Edit
from ...gasl import Path
from ...source import Span
from .nodes import Unbuildable, number_of, span_of, string_of, variable_of

__all__ = ["MAX_DEPTH", "ConditionBuilder"]

MAX_DEPTH = 64
"""How deep conditions, commands in commands and blocks may nest. No program that means something comes near."""

_SPELLINGS: dict[str, Operator] = {"==": "=", "<>": "!="}


class ConditionBuilder:
    """The callbacks for conditions and values. Stateless."""

    def any_of(self, children: list[Condition]) -> Or:
        """``a OR b``."""
        return Or(tuple(children), span=children[0].span | children[-1].span)

    def all_of(self, children: list[Condition]) -> And:
        """``a AND b``."""
        return And(tuple(children), span=children[0].span | children[-1].span)

    def negated(self, children: list[Any]) -> Condition:
        """``NOT a``, any number of times."""
        *words, operand = children
        if len(words) > MAX_DEPTH:
            span = Span(span_of(words[0]).start, span_of(words[-1]).end)
            double = Edit(Span(span.start, operand.span.start), "NOT " * (len(words) % 2))
            raise Unbuildable(
                "GASL023", f"NOT stands {len(words):,} times in a row; {MAX_DEPTH} is the most", span, (), (double,)
            )
        for word in reversed(words):
            operand = Not(operand, span=span_of(word) | operand.span)
        return operand  # type: ignore[no-any-return]

    def group(self, children: list[Any]) -> Condition:
        """``(a)``: the span takes in the parentheses, so that a condition's text is whole."""
        first, condition, last = children
        return evolve(condition, span=span_of(first) | span_of(last))  # type: ignore[no-any-return]

    def comparison(self, children: list[Any]) -> Comparison:
        """``left = right``."""
        left, operator, right = children
        canonical: Any = _SPELLINGS.get(operator) or operator.upper()
        return Comparison(left, canonical, right, span=left.span | right.span)

    def membership(self, children: list[Any]) -> Comparison:
        """``left [NOT] IN right``."""
        left, *words, right = children
        return Comparison(left, "NOT IN" if len(words) > 1 else "IN", right, span=left.span | right.span)

    def null_test(self, children: list[Any]) -> NullTest:
        """``left IS [NOT] NULL``."""
        left, *words, null = children
        return NullTest(left, len(words) > 1, span=left.span | span_of(null))

    def field(self, children: list[Any]) -> Field:
        """A field, with a quantifier where it is of the nodes or edges of a path."""
        path: Path = children[-1]
        if len(children) == 1:
            return Field(path.parts, span=path.span)
        word: Token = children[0]
        if path.parts[0] not in ("node", "edge") or len(path.parts) < 2:
            parts = path.parts[1:] if path.parts[0] in ("node", "edge", "nodes", "edges") else path.parts
            kind = "edge" if path.parts[0].startswith("edge") else "node"
            right = ".".join((kind, *(parts or ("field",))))
            # Without the word nothing says whether a node or an edge is meant.
            edits = (Edit(path.span, right),) if parts and parts != path.parts else ()
            message = f"{word.upper()} speaks of the nodes or edges of a path, not of {path.text}"
            either = f"write {word.upper()} {right}" + ("" if edits else f" or {word.upper()} edge{right[4:]}")
            raise Unbuildable("GASL010", message, path.span, (either,), edits)
        return Field(path.parts, word.lower(), span=span_of(word) | path.span)  # type: ignore[arg-type]  # a terminal's words

    def length(self, children: list[Any]) -> Length:
        """``LEN ${name}``."""
        word, variable = children
        return Length(variable, span=span_of(word) | variable.span)

    def items(self, children: list[Any]) -> Items:
        """``("a", "b")``."""
        first, *items, last = children
        return Items(tuple(items), span=span_of(first) | span_of(last))

    def variable(self, children: list[Token]) -> Variable:
        """``${name.path}``."""
        return variable_of(children[0])

    def text(self, children: list[Token]) -> Constant:
        """A string."""
        return Constant(string_of(children[0]), span=span_of(children[0]))

    def number(self, children: list[Token]) -> Constant:
        """A number."""
        return Constant(number_of(children[0]), span=span_of(children[0]))

    def true(self, children: list[Token]) -> Constant:
        """``true``."""
        return Constant(True, span=span_of(children[0]))

    def false(self, children: list[Token]) -> Constant:
        """``false``."""
        return Constant(False, span=span_of(children[0]))

    def null(self, children: list[Token]) -> Constant:
        """``null``, in lists and in SET."""
        return Constant(None, span=span_of(children[0]))
