"""Builds the smallest nodes and values from tokens: names, keys, variables, strings, numbers, options.

A value that a node cannot store raises ``Unbuildable``.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from attrs import frozen
from lark import Token

from ...diagnostic import Edit
from ...source import Span
from ...trees.conditions import Field, Variable
from ...trees.gasl import Key, Name
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


def path_of(token: Token) -> Field:
    """Return a field."""
    return Field(_parts(token), span=span_of(token))


def key_of(token: Token) -> Key:
    """Return a key of the state."""
    return Key(_parts(token), span=span_of(token))


def refuse_reserved(key: Key) -> Key:
    """Return ``key``. Raise ``Unbuildable`` if one of its parts is a name that the format of the state reserves."""
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
    """Return the text of a string token without its quotes. JSON's escapes and ``\\'`` are resolved."""
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


@frozen
class Option:
    """A part of a command that may occur at most once, such as ``LIMIT 10``."""

    word: str
    value: Any
    span: Span


def given_options(parts: Iterable[Option]) -> dict[str, Any]:
    """Return a mapping from keywords of options to values. Raises ``Unbuildable`` for an option that is given twice."""
    given: dict[str, Option] = {}
    for part in parts:
        if part.word in given:
            raise Unbuildable(
                "GASL017",
                f"duplicate {part.word}",
                part.span,
                ("remove one of them",),
                (Edit(part.span, ""),) if part.value == given[part.word].value else (),
            )
        given[part.word] = part
    return {word: part.value for word, part in given.items()}


def text_of(token: Token, what: str) -> str:
    """Return the text of a string token; raise ``Unbuildable`` if the text is empty or consists of white space."""
    text = string_of(token)
    if not text.strip():
        raise Unbuildable("GASL025", f"{what} is empty", span_of(token), ("put text between the quotes",))
    return text


def between(first: Token, last: Any) -> Span:
    """Return the span from a token to another token or node."""
    return Span(span_of(first).start, span_of(last).end if isinstance(last, Token) else last.span.end)


def is_token(part: Any, kind: str) -> bool:
    """Return whether ``part`` is a token of the terminal ``kind``."""
    return isinstance(part, Token) and part.type == kind


def number_or_variable(number: Any) -> int | Variable:
    """Return the number after LIMIT, MAXLEN, DEPTH, SAMPLE or SHORTEST: an integer, or a variable that holds an integer."""
    return integer(number) if isinstance(number, Token) else number
