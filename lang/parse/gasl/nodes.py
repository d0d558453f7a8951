"""Builds the smallest nodes and values from tokens: names, keys, variables, strings, numbers; and the nodes of conditions.

A value that a node cannot store raises ``Unbuildable``.
"""

import json
import re
from typing import Any

from attrs import evolve
from lark import Token

from ...diagnostic import Edit
from ...source import Span
from ...trees.conditions import (
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
from ...trees.gasl import Key, Name, Path
from ..repairs import Unbuildable

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_STEP = re.compile(r"\.(?:`((?:[^`]|``)+)`|(\d+)|(\w+))|\[(-?\d+)\]")
_ESCAPE = re.compile(r"""\\(?:(["'\\/bfnrt])|u([0-9A-Fa-f]{4})|(.?))""", re.DOTALL)
_PLAIN = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_RESERVED = frozenset({"_meta", "items", "value"})


def span_of(token: Token) -> Span:
    """Return the span of ``token``."""
    start = token.start_pos
    assert start is not None  # noqa: S101  # Lark's lexers always set it; only hand-made tokens lack it
    return Span(start, start + len(token))


def identifier(text: str) -> str:
    """Return a name without its backticks."""
    return text[1:-1].replace("``", "`") if text[:1] == "`" else str(text)


def name_of(token: Token) -> Name:
    """Return a variable's name."""
    return Name(identifier(token), span=span_of(token))


def _parts(token: Token) -> tuple[str, ...]:
    if "`" not in token:
        return tuple(token.split("."))
    return tuple(match[1].replace("``", "`") if match[1] else match[2] for match in _PART.finditer(token))


def path_of(token: Token) -> Path:
    """Return a field's path."""
    return Path(_parts(token), span=span_of(token))


def key_of(token: Token) -> Key:
    """Return a key of the state."""
    return Key(_parts(token), span=span_of(token))


def refuse_reserved(key: Key) -> Key:
    """Return ``key``; raise ``Unbuildable`` if the format of the state reserves one of its parts."""
    for place, part in enumerate(key.parts):
        if part in _RESERVED:
            # A model that saw the state's file may append a key of that file (items, value) to the declared key.
            # An edit then removes this last part; _meta gets no edit.
            own = place and place == len(key.parts) - 1 and part != "_meta"
            above = ".".join(key.parts[:place]) if own else ""
            raise Unbuildable(
                "GASL024",
                f"{part} cannot be part of a key: the format of the state reserves it",
                key.span,
                (f"write {above}" if above else "choose another name",),
                (Edit(key.span, above),) if above else (),
            )
    return key


def variable_of(token: Token) -> Variable:
    """Return ``${name.path[0]}`` as a node."""
    span = span_of(token)
    inner = token[2:-1].strip()
    first = _PART.match(inner if inner[0] == "`" else inner.replace("[", ".", 1))
    assert first is not None  # noqa: S101  # the terminal's pattern begins with a name
    path: list[str | int] = []
    for quoted, digits, word, index in _STEP.findall(inner, first.end()):
        if digits or index:
            path.append(_index(digits or index, span))
        else:
            path.append(quoted.replace("``", "`") if quoted else word)
    return Variable(identifier(inner[: first.end()]), tuple(path), span=span)


def _index(digits: str, span: Span) -> int:
    if len(digits) > 18:
        raise Unbuildable("GASL022", "the index in this variable is too large", span)
    return int(digits)


def integer(token: Token) -> int:
    """Return an integer of at most 64 bits, from digits."""
    if len(token) > 19 or int(token) >= 2**63:
        raise Unbuildable("GASL022", "the number does not fit into 64 bits", span_of(token))
    return int(token)


def number_of(token: Token) -> int | float:
    """Return an integer of at most 64 bits or a finite float."""
    if token.lstrip("-").isdigit():
        whole = int(token) if len(token) <= 20 else 2**64
        if not -(2**63) <= whole < 2**63:
            hint = "put it in quotes if it is an id"
            raise Unbuildable("GASL022", "the number does not fit into 64 bits", span_of(token), (hint,))
        return whole
    number = float(token)
    if number in (float("inf"), float("-inf")):
        raise Unbuildable("GASL022", "the number is too large for a float", span_of(token))
    return number


def string_of(token: Token) -> str:
    """Return the text of a string token without its quotes. The escapes of JSON and ``\\'`` are resolved."""
    raw = str(token)[1:-1]
    if "\\" in raw:
        start = span_of(token).start + 1
        try:
            # The json module is much faster; only a string that json refuses is read piece by piece.
            raw = json.loads(f'"{raw}"', strict=False) if token[0] == '"' else _unescaped(raw, start)
        except ValueError:
            raw = _unescaped(raw, start)
    if not raw.isascii() and (half := _SURROGATE.search(raw)):
        raise Unbuildable(
            "GASL021",
            f"the string contains a lone surrogate (U+{ord(half[0]):04X}), which is not valid text",
            span_of(token),
            ("remove it",),
        )
    return raw


def _unescaped(raw: str, start: int) -> str:
    pieces: list[str] = []
    done = 0
    for match in _ESCAPE.finditer(raw):
        pieces.append(raw[done : match.start()])
        done = match.end()
        plain, code, other = match.groups()
        if plain:
            pieces.append(_PLAIN.get(plain, plain))
        elif code:
            pieces.append(chr(int(code, 16)))
        else:
            at = Span(start + match.start(), start + match.end())
            double = Edit(Span(at.start, at.start), "\\")
            message = f"unknown escape \\{other}"
            hint = "write \\\\ for a backslash; the escapes are \\\" \\' \\\\ \\/ \\b \\f \\n \\r \\t and \\u with four digits"
            raise Unbuildable("GASL021", message, at, (hint,), (double,))
    pieces.append(raw[done:])
    text = "".join(pieces)
    # Join two surrogate escapes into one character beyond U+FFFF. The caller refuses an unpaired surrogate.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") if _SURROGATE.search(text) else text


# Builds the nodes of conditions as Lark reduces its rules.

MAX_DEPTH = 64
"""Maximum nesting depth of conditions, nested commands and blocks. Real programs are far below this limit."""

_SPELLINGS: dict[str, Operator] = {"==": "=", "<>": "!="}


class ConditionBuilder:
    """The callbacks for conditions and values. Stateless."""

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
        return Comparison(left, canonical, right, span=left.span | right.span)

    def membership(self, children: list[Any]) -> Comparison:
        """Build ``left [NOT] IN right``."""
        left, *words, right = children
        return Comparison(left, "NOT IN" if len(words) > 1 else "IN", right, span=left.span | right.span)

    def null_test(self, children: list[Any]) -> NullTest:
        """Build ``left IS [NOT] NULL``."""
        left, *words, null = children
        return NullTest(left, len(words) > 1, span=left.span | span_of(null))

    def field(self, children: list[Any]) -> Field:
        """Build a field, with a quantifier for the nodes or edges of a path."""
        path: Path = children[-1]
        if len(children) == 1:
            return Field(path.parts, span=path.span)
        word: Token = children[0]
        if path.parts[0] not in ("node", "edge") or len(path.parts) < 2:
            parts = path.parts[1:] if path.parts[0] in ("node", "edge", "nodes", "edges") else path.parts
            kind = "edge" if path.parts[0].startswith("edge") else "node"
            right = ".".join((kind, *(parts or ("field",))))
            # If the path names neither nodes nor edges, it is unclear which are meant: no edit.
            edits = (Edit(path.span, right),) if parts and parts != path.parts else ()
            message = f"{word.upper()} needs a field of the nodes or edges of a path, not {path.text}"
            either = f"write {word.upper()} {right}" + ("" if edits else f" or {word.upper()} edge{right[4:]}")
            raise Unbuildable("GASL010", message, path.span, (either,), edits)
        return Field(path.parts, word.lower(), span=span_of(word) | path.span)  # type: ignore[arg-type]  # a terminal's words

    def length(self, children: list[Any]) -> Length:
        """Build ``LEN ${name}``."""
        word, variable = children
        return Length(variable, span=span_of(word) | variable.span)

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
