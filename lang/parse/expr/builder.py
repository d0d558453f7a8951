"""From Lark's tokens to nodes, for a text that is in the language; anything else is ``Refused`` and explained elsewhere."""

from typing import Any

from attrs import evolve
from lark import Transformer

from ...expr import (
    Call,
    Clause,
    Comprehension,
    Conditional,
    DictDisplay,
    Expr,
    Field,
    ListDisplay,
    Literal,
    MethodCall,
    Name,
    Slicing,
    Subscript,
    TupleDisplay,
)
from ...source import Span
from .chains import climb
from .literals import number, unescaped
from .words import CHANGING, CONSTANTS, LIBRARIES, MEASURING, NAMESPACES, RENAMED_METHODS, RESERVED, foreign_function

__all__ = ["MOST_CLAUSES", "Builder", "Refused"]

MOST_CLAUSES = 2
"""The most ``for`` of one comprehension."""

_FOREIGN_METHODS = CHANGING | MEASURING | RENAMED_METHODS.keys()


class Refused(Exception):
    """The grammar has the text, the language has not."""


class Builder(Transformer[Any, Expr]):
    """Builds nodes bottom-up while Lark parses. A method a rule of ``expr.lark``."""

    def start(self, children: list[Any]) -> Expr:
        """Return the tree of the whole text."""
        return children[0]  # type: ignore[no-any-return]

    def conditional(self, children: list[Any]) -> Conditional:
        """``value if condition else value ...``: children 0, 4, 8 ... are values, 2, 6 ... conditions."""
        branches = tuple(zip(children[2:-1:4], children[0:-1:4], strict=True))
        span = Span(children[0].span.start, children[-1].span.end)
        return Conditional(branches, children[-1], span=span)

    def chain(self, children: list[Any]) -> Expr:
        """Operands and signs."""
        for at, child in enumerate(children):
            if (
                type(child) is Literal
                and type(child.value) is str
                and [s.value for s in children[at + 1 : at + 2]] == ["%"]
            ):
                raise Refused
        return climb(children)

    def name(self, children: list[Any]) -> Name:
        """A name that is no word of the language."""
        token = children[0]
        if token.lower() in RESERVED or token.startswith("__"):
            raise Refused
        return Name(str(token), span=Span(token.start_pos, token.end_pos))

    def constant(self, children: list[Any]) -> Literal:
        """Null, true or false."""
        token = children[0]
        return Literal(CONSTANTS[token.value], span=Span(token.start_pos, token.end_pos))

    def number(self, children: list[Any]) -> Literal:
        """An integer or a float."""
        token = children[0]
        value = number(token.value)
        if value is None:
            raise Refused
        return Literal(value, span=Span(token.start_pos, token.end_pos))

    def string(self, children: list[Any]) -> Literal:
        """A string in either quotes."""
        token = children[0]
        value = unescaped(token.value[1:-1])
        if value is None:
            raise Refused
        return Literal(value, span=Span(token.start_pos, token.end_pos))

    def group(self, children: list[Any]) -> Expr:
        """What stands in parentheses, with a span that has them."""
        opening, inner, closing = children
        return evolve(inner, span=Span(opening.start_pos, closing.end_pos))  # type: ignore[no-any-return]

    def tuple_display(self, children: list[Any]) -> TupleDisplay:
        """``(a, b)``."""
        return TupleDisplay(tuple(children[1:-1:2]), span=_outer(children))

    def list_display(self, children: list[Any]) -> ListDisplay:
        """``[a, b]``."""
        return ListDisplay(tuple(children[1:-1:2]), span=_outer(children))

    def dict_display(self, children: list[Any]) -> DictDisplay:
        """``{key: value}``: key, colon, value, comma and again."""
        entries = tuple(zip(children[1:-1:4], children[3:-1:4], strict=True))
        return DictDisplay(entries, span=_outer(children))

    def clause(self, children: list[Any]) -> Clause:
        """``for name in iterable if condition ...``."""
        word, name, _, iterable, *rest = children
        self.name([name])
        conditions = tuple(rest[1::2])
        span = Span(word.start_pos, (conditions[-1] if conditions else iterable).span.end)
        return Clause(str(name), iterable, conditions, span=span)

    def comprehension(self, children: list[Any]) -> Comprehension:
        """``[element for ...]``."""
        return _comprehension("list", children)

    def generator(self, children: list[Any]) -> Comprehension:
        """``(element for ...)`` among the arguments of a function."""
        return _comprehension("generator", children)

    def only(self, children: list[Any]) -> list[Any]:
        """``f(element for ...)``: the comprehension as the only argument."""
        found = _comprehension("generator", children)
        inner = Span(found.element.span.start, found.clauses[-1].span.end)
        return [children[0], evolve(found, span=inner), children[-1]]

    def arguments(self, children: list[Any]) -> list[Any]:
        """``(a, b, name=c)``: the parentheses and what stands between."""
        return children

    def keyword(self, children: list[Any]) -> tuple[str, Expr]:
        """``name=value``."""
        self.name(children)
        return str(children[0]), children[2]

    def call(self, children: list[Any]) -> Call:
        """``function(a, name=b)``."""
        token, arguments = children
        name = str(self.name(children).name)
        if foreign_function(name):
            raise Refused
        positional: list[Expr] = []
        keywords: dict[str, Expr] = {}
        for argument in arguments[1:-1:2]:
            if type(argument) is not tuple:
                if keywords:
                    raise Refused
                positional.append(argument)
            elif argument[0] in keywords:
                raise Refused
            else:
                keywords[argument[0]] = argument[1]
        span = Span(token.start_pos, arguments[-1].end_pos)
        return Call(name, tuple(positional), tuple(keywords.items()), span=span)

    def index(self, children: list[Any]) -> list[Any]:
        """``[index]``, until it is known of what."""
        return children

    def slicing(self, children: list[Any]) -> tuple[list[Any], int]:
        """``[start:stop:step]``, until it is known of what."""
        parts: list[Expr | None] = [None, None, None]
        at = 0
        for child in children[1:-1]:
            if getattr(child, "type", "") == "COLON":
                at += 1
            else:
                parts[at] = child
        return parts, children[-1].end_pos

    def trailed(self, children: list[Any]) -> Expr:
        """A value with what stands behind it: indices, slices, a namespace's name, methods."""
        node: Expr = children[0]
        start, at, count = node.span.start, 1, len(children)
        while at < count:
            child = children[at]
            at += 1
            if type(child) is list:
                node = Subscript(node, child[1], span=Span(start, child[2].end_pos))
            elif type(child) is tuple:
                node = Slicing(node, *child[0], span=Span(start, child[1]))
            else:
                token = children[at]
                at += 1
                arguments = children[at] if at < count and type(children[at]) is list else None
                if arguments and arguments[0].type == "LPAR":
                    at += 1
                    node = _method(node, token, arguments)
                elif type(node) is Name and node.name in NAMESPACES and node.span.end - start == len(node.name):
                    self.name([token])
                    node = Field(node.name, str(token), span=Span(start, token.end_pos))  # type: ignore[arg-type]
                else:
                    raise Refused
        return node


def _method(value: Expr, token: Any, arguments: list[Any]) -> MethodCall:
    name = str(token)
    library = type(value) is Name and value.name in LIBRARIES
    if name in _FOREIGN_METHODS or library or name.startswith("__"):
        raise Refused
    given = tuple(arguments[1:-1:2])
    for argument in given:
        if type(argument) is tuple or (type(argument) is Comprehension and argument.kind == "generator"):
            raise Refused
    return MethodCall(value, name, given, span=Span(value.span.start, arguments[-1].end_pos))


def _comprehension(kind: Any, children: list[Any]) -> Comprehension:
    clauses = tuple(children[2:-1])
    if len(clauses) > MOST_CLAUSES:
        raise Refused
    return Comprehension(kind, children[1], clauses, span=_outer(children))


def _outer(children: list[Any]) -> Span:
    return Span(children[0].start_pos, children[-1].end_pos)
