"""Strings that compute: ``f"a {x} b"`` is ``"a " + str(x) + " b"``."""

import re

from ....expr import Arithmetic, Call, Expr, Literal
from ....source import Span
from ..engine import Failure, read
from ..literals import unescaped
from .cursor import Cursor
from .pieces import Piece

__all__ = ["formatted"]

_PART = re.compile(r"\{\{|\}\}|\{([^{}:!]+)\}|[{}]")
_HINT = 'write it with +, as "stars: " + str(n)'


def formatted(r: Cursor, piece: Piece) -> Expr:
    """Return what ``piece``, a string with an f before it, says; its parts must be expressions without a format."""
    given = piece.text[: re.match(r"[A-Za-z]+", piece.text).end()]  # type: ignore[union-attr]
    message = f"a string has no {given} before it"
    quotes = 3 if piece.text[len(given) : len(given) + 3] in ('"""', "'''") else 1
    parts = _parts(piece.text[len(given) + quotes : -quotes])
    span = Span(piece.start, piece.start + len(given))
    if parts is None or given.lower() != "f":
        r.fault("EXPR015", message, span, _HINT)
        return r.hole(piece.start)
    if not parts or not isinstance(parts[0], Literal):
        parts = [Literal(""), *parts] if len(parts) != 1 else parts
    first, *rest = parts
    node: Expr = Arithmetic(first, tuple(("+", part) for part in rest), span=piece.span) if rest else first
    from attrs import evolve

    return r.anew("EXPR015", message, span, evolve(node, span=piece.span), _HINT)


def _parts(body: str) -> list[Expr] | None:
    """Return literals and ``str(...)`` in turn; None where a part is none that can be written so."""
    found: list[Expr] = []
    text, done = "", 0
    for match in _PART.finditer(body):
        text += body[done : match.start()]
        done = match.end()
        if match[0] in ("{{", "}}"):
            text += match[0][0]
            continue
        inner = read(match[1].strip()) if match[1] else Failure(None)
        if isinstance(inner, Failure):
            return None
        if text:
            found.append(Literal(text))
            text = ""
        found.append(Call("str", (inner,)))
    text += body[done:]
    if text:
        found.append(Literal(text))
    values = [
        unescaped(part.value) if isinstance(part, Literal) and isinstance(part.value, str) else "" for part in found
    ]
    if any(value is None for value in values):
        return None
    written = [Literal(value) if isinstance(part, Literal) else part for part, value in zip(found, values, strict=True)]
    return written or [Literal("")]
