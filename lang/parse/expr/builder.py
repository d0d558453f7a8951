"""Builds nodes from Lark's tokens if the text is valid.

Otherwise it raises ``Refused``, and ``recovery`` explains the faults of the text.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from attrs import evolve, frozen
from lark import Transformer

from ...catalogue.operations import FUNCTIONS
from ...source import Span
from ...trees.expr import (
    Arithmetic,
    BoolChain,
    Call,
    Clause,
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

# Converts the text of number and string literals to their values.

LARGEST = 2**63 - 1
"""The largest integer that can be written: the largest signed integer of 64 bits."""

_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def number(text: str) -> int | float | None:
    """Return the value of the number ``text`` (digits, fraction, exponent); None if it is too large."""
    if text.isdigit():
        value = int(text) if len(text) < 20 else LARGEST + 1
        return value if value <= LARGEST else None
    found = float(text)
    return found if math.isfinite(found) else None


def mended(body: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the string content ``body``, in which the backslash of each invalid escape is doubled, and the spans of these escapes."""
    wrong: list[tuple[int, int]] = []

    def right(match: re.Match[str]) -> str:
        if _meaning(match[0]) is not None:
            return match[0]
        wrong.append(match.span())
        return "\\" + match[0]

    return _ESCAPE.sub(right, body), wrong


def unescaped(body: str) -> str | None:
    """Return the value of the string content ``body``; None if it contains an escape other than JSON's escapes and ``\\'``."""
    if "\\" not in body:
        return body
    pieces: list[str] = []
    done = 0
    for match in _ESCAPE.finditer(body):
        meaning = _meaning(match[0])
        if meaning is None:
            return None
        pieces += (body[done : match.start()], meaning)
        done = match.end()
    return "".join((*pieces, body[done:]))


def _meaning(escape: str) -> str | None:
    if len(escape) == 2:
        return _PLAIN.get(escape[1])
    if len(escape) == 12:
        high, low = int(escape[2:6], 16), int(escape[8:], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
    code = int(escape[2:], 16)
    return None if 0xD800 <= code <= 0xDFFF else chr(code)


# Applies precedence to a flat chain of operands and operators: ``or``, ``and``, ``not``, comparisons, ``+ -``, ``* / // %``,
# minus, ``**``. The depth of recursion does not grow with the length of the chain. Lark's parser and the tolerant parser use
# this code.

_SUMS = frozenset({"+", "-"})
_PRODUCTS = frozenset({"*", "/", "//", "%"})


@frozen
class Sign:
    """An operator. Lark's tokens have the same fields.

    ``type`` depends on the place of the operator. Before an operand, ``type`` is NOT or MINUS. Between two operands, it is MINUS, BOOL,
    TEST or OPERATOR. After an operand, it is NULL_TEST.
    """

    type: str
    value: str
    start_pos: int
    end_pos: int


def climb(items: Sequence[Any]) -> Expr:
    """Return the tree of ``items``: nodes and operators (``Sign`` or Lark's tokens), in an order that the grammar allows."""
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
    """Read a chain such as ``- a ** - b ** c`` from right to left. A power is computed before a minus in front of it."""
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


# Reserved words, and the functions and methods of other languages that have another name in expressions.

NAMESPACES = frozenset({"extraction", "meta", "context"})
"""Names that may be followed by a dot and the name of a field."""

CONSTANTS: Mapping[str, bool | None] = {
    "null": None, "None": None, "true": True, "True": True, "false": False, "False": False,
}  # fmt: skip
"""The valid forms of null, true and false."""

NO_NUMBERS = frozenset({"nan", "inf", "infinity"})
"""Names, in lower case, that other languages use for infinite or undefined numbers."""

RESERVED = NO_NUMBERS | {
    "and", "or", "not", "in", "is", "if", "else", "for", "null", "none", "true", "false", "nil", "undefined", "lambda",
}  # fmt: skip
"""Words, in lower case, that cannot be names in any letter case: keywords, and words for null in other languages."""

LIBRARIES = frozenset({"math", "Math", "np", "numpy", "statistics"})
"""Modules of other languages. In expressions, the functions of these modules have no prefix."""

RENAMED_FUNCTIONS: Mapping[str, str] = {
    "ceiling": "ceil", "clip": "clamp", "fabs": "abs", "fsum": "sum", "length": "len", "maximum": "max", "minimum": "min",
    "rint": "round", "size": "len", "to_float": "float", "to_int": "int", "to_string": "str", "tostring": "str",
}  # fmt: skip
"""Maps functions of other languages, in lower case, to their names in expressions."""

REBUILT = frozenset({"pow", "power", "if", "iif", "where", "ifnull", "nvl", "isnull", "isnone", "is_null"})
"""Functions of other languages, in lower case, for which expressions use operators or ``if``."""

RENAMED_METHODS: Mapping[str, str] = {
    "casefold": "lower", "endsWith": "endswith", "lowercase": "lower", "startsWith": "startswith", "toLowerCase": "lower",
    "toUpperCase": "upper", "trim": "strip", "uppercase": "upper",
}  # fmt: skip
"""Maps methods of other languages to their names in expressions."""

CHANGING = frozenset(
    {"append", "add", "clear", "discard", "extend", "insert", "pop", "popitem", "push", "remove", "reverse", "setdefault",
     "sort", "update"}
)  # fmt: skip
"""Methods of other languages that change a value; expressions have no such methods."""

MEASURING = frozenset({"length", "size", "len", "includes", "contains", "has"})
"""Methods of other languages for which expressions use a function or ``in``."""


def foreign_function(name: str) -> bool:
    """Return whether ``name`` is a function of another language with a known replacement."""
    if name in FUNCTIONS:
        return False
    folded = name.lower()
    return folded in FUNCTIONS or folded in RENAMED_FUNCTIONS or folded in REBUILT


MOST_CLAUSES = 2
"""Maximum number of ``for`` clauses in one comprehension."""

_FOREIGN_METHODS = CHANGING | MEASURING | RENAMED_METHODS.keys()


class Refused(Exception):
    """Raised for text that matches the grammar but is not allowed in expressions."""


class Builder(Transformer[Any, Expr]):
    """Builds nodes bottom-up while Lark parses. One method per rule of ``expr.lark``."""

    def start(self, children: list[Any]) -> Expr:
        """Return the tree of the complete text."""
        return children[0]  # type: ignore[no-any-return]

    def conditional(self, children: list[Any]) -> Conditional:
        """Build ``value if condition else value ...``.

        The children 0, 4, 8 ... are the values, and the children 2, 6 ... are the conditions.
        """
        branches = tuple(zip(children[2:-1:4], children[0:-1:4], strict=True))
        span = Span(children[0].span.start, children[-1].span.end)
        return Conditional(branches, children[-1], span=span)

    def chain(self, children: list[Any]) -> Expr:
        """Build the tree of a chain of operands and operators."""
        for at, child in enumerate(children):
            if (
                type(child) is Literal
                and type(child.value) is str
                and [s.value for s in children[at + 1 : at + 2]] == ["%"]
            ):
                raise Refused
        return climb(children)

    def name(self, children: list[Any]) -> Name:
        """Build a name that is not reserved."""
        token = children[0]
        if token.lower() in RESERVED or token.startswith("__"):
            raise Refused
        return Name(str(token), span=Span(token.start_pos, token.end_pos))

    def constant(self, children: list[Any]) -> Literal:
        """Build null, true or false."""
        token = children[0]
        return Literal(CONSTANTS[token.value], span=Span(token.start_pos, token.end_pos))

    def number(self, children: list[Any]) -> Literal:
        """Build an integer or a float."""
        token = children[0]
        value = number(token.value)
        if value is None:
            raise Refused
        return Literal(value, span=Span(token.start_pos, token.end_pos))

    def string(self, children: list[Any]) -> Literal:
        """Build a string in single or double quotes."""
        token = children[0]
        value = unescaped(token.value[1:-1])
        if value is None:
            raise Refused
        return Literal(value, span=Span(token.start_pos, token.end_pos))

    def group(self, children: list[Any]) -> Expr:
        """Build an expression in parentheses, with a span that includes them."""
        opening, inner, closing = children
        return evolve(inner, span=Span(opening.start_pos, closing.end_pos))  # type: ignore[no-any-return]

    def tuple_display(self, children: list[Any]) -> TupleDisplay:
        """Build ``(a, b)``."""
        return TupleDisplay(tuple(children[1:-1:2]), span=_outer(children))

    def list_display(self, children: list[Any]) -> ListDisplay:
        """Build ``[a, b]``."""
        return ListDisplay(tuple(children[1:-1:2]), span=_outer(children))

    def dict_display(self, children: list[Any]) -> DictDisplay:
        """Build ``{key: value}``. The children inside the braces are key, colon, value, comma, key and so on."""
        entries = tuple(zip(children[1:-1:4], children[3:-1:4], strict=True))
        return DictDisplay(entries, span=_outer(children))

    def clause(self, children: list[Any]) -> Clause:
        """Build ``for name, name in iterable if condition ...``."""
        at = next(at for at, child in enumerate(children) if getattr(child, "type", "") == "IN")
        word, names, iterable = children[0], children[1:at:2], children[at + 1]
        for name in names:
            self.name([name])
        conditions = tuple(children[at + 3 :: 2])
        span = Span(word.start_pos, (conditions[-1] if conditions else iterable).span.end)
        return Clause(tuple(map(str, names)), iterable, conditions, span=span)

    def comprehension(self, children: list[Any]) -> Comprehension:
        """Build ``[element for ...]``."""
        return _comprehension("list", children)

    def generator(self, children: list[Any]) -> Comprehension:
        """Build ``(element for ...)`` among the arguments of a function."""
        return _comprehension("generator", children)

    def only(self, children: list[Any]) -> list[Any]:
        """Return the arguments of ``f(element for ...)``. The arguments consist of the parentheses and the comprehension between them."""
        found = _comprehension("generator", children)
        inner = Span(found.element.span.start, found.clauses[-1].span.end)
        return [children[0], evolve(found, span=inner), children[-1]]

    def arguments(self, children: list[Any]) -> list[Any]:
        """Return the arguments ``(a, b, name=c)``: the parentheses and everything between them."""
        return children

    def keyword(self, children: list[Any]) -> tuple[str, Expr]:
        """Build ``name=value``."""
        self.name(children)
        return str(children[0]), children[2]

    def call(self, children: list[Any]) -> Call:
        """Build ``function(a, name=b)``."""
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
        """Return the parts of ``[index]``. The method ``trailed`` combines them with the value before the brackets."""
        return children

    def slicing(self, children: list[Any]) -> tuple[list[Any], int]:
        """Return the parts and the end of ``[start:stop:step]``.

        The method ``trailed`` combines them with the value before the brackets.
        """
        parts: list[Expr | None] = [None, None, None]
        at = 0
        for child in children[1:-1]:
            if getattr(child, "type", "") == "COLON":
                at += 1
            else:
                parts[at] = child
        return parts, children[-1].end_pos

    def trailed(self, children: list[Any]) -> Expr:
        """Build a value with its suffixes, which are indices, slices, fields of a namespace, and methods."""
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
