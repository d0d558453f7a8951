"""What stands around an expression: code fences, ``return``, a name it is given to, the sign that spreadsheets begin with."""

import re

from ....diagnostic import Edit
from ....source import Span
from .cursor import Cursor

__all__ = ["before", "behind", "bounds"]

_INFO = re.compile(r"(?:`{3,}|~{3,})[ \t]*(?:[A-Za-z]+[ \t]*(?=\n))?\s*")
_STATEMENTS = frozenset({"import", "from", "def", "class", "while", "for", "del", "raise", "assert", "try", "print"})
_DECLARING = frozenset({"return", "let", "var", "const", "yield", "await", "eval"})


def bounds(text: str) -> Span:
    """Return what of ``text`` is the expression, without the fence (perhaps not closed) or backticks around it."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    opening = _INFO.match(text, start, end)
    fence = text[start : start + 3]
    if opening and text.endswith(fence, opening.end(), end):
        return Span(opening.end(), len(text[opening.end() : end].rstrip(fence[0]).rstrip()) + opening.end())
    if opening:
        return Span(opening.end(), end)
    inner = text[start + 1 : end - 1]
    if text[start : start + 1] == text[end - 1 : end] == "`" and "`" not in inner and not inner.isidentifier():
        return Span(start + 1, end - 1)
    return Span(0, len(text))


def before(r: Cursor) -> bool:
    """Take what can't stand before an expression; say whether one follows."""
    first, second = r.peek(), r.peek(1)
    if r.sign("=", "==", ":="):
        while r.sign("=", "==", ":="):
            r.take()
        edit = Edit(Span(first.start, r.peek().start), "")
        r.fault("EXPR025", f"an expression has no {first.text} before it", first.span, "remove it", edits=(edit,))
        return True
    if first.folded in _STATEMENTS and second.kind in ("word", "string", "number"):
        r.fault("EXPR014", f"{first.text} begins a statement; here stands one expression", first.span)
        r.at = len(r.pieces) - 1
        return False
    if (
        first.folded in _DECLARING
        and second.kind != "end"
        and (second.kind != "sign" or second.text in ("(", "[", "-", "{"))
    ):
        if second.kind == "sign" and second.text == "(" and second.start == first.end and first.folded != "return":
            return True
        r.take()
        start = first.start
        if r.peek().kind == "word" and r.peek(1).text == "=":
            r.take()
            r.take()
        edit = Edit(Span(start, r.peek().start), "")
        message = f"{first.text} begins a statement; here stands one expression"
        r.fault("EXPR014", message, first.span, "write the value alone", edits=(edit,))
        return True
    if first.kind == "word" and second.kind == "sign" and second.text in ("=", ":=") and _assigns(r):
        r.take()
        r.take()
        edit = Edit(Span(first.start, r.peek().start), "")
        hint = "write the value alone; == compares"
        r.fault("EXPR014", "an expression gives nothing a name", Span(first.start, second.end), hint, edits=(edit,))
    elif first.kind == "word" and second.text in ("+=", "-=", "*=", "/="):
        r.fault("EXPR014", "an expression changes no value", second.span, "write the new value alone")
        r.at = len(r.pieces) - 1
        return False
    return True


def _assigns(r: Cursor) -> bool:
    """Say whether ``name = ...`` gives a name, and does not compare: a text alone, and what has and or or, is compared."""
    rest = r.pieces[r.at + 2 : -1]
    if r.peek(1).text == ":=":
        return True
    if any(piece.text == "=" and piece.level == 0 for piece in rest):
        return False
    if any(piece.folded in ("and", "or") or piece.text in ("&&", "||", "?") for piece in rest if piece.level == 0):
        return any(piece.folded == "if" for piece in rest)
    return len(rest) != 1 or rest[0].kind in ("number", "word")


def behind(r: Cursor) -> bool:
    """Take what can't stand behind an expression at the end; say whether what stood before it is the whole."""
    piece = r.peek()
    if not r.sign(";", "."):
        return True
    if any(found.kind != "end" and found.text != ";" for found in r.pieces[r.at + 1 :]):
        if piece.text == ";":
            r.fault(
                "EXPR014", "one expression stands here, not several", piece.span, "compute each in a step of its own"
            )
            r.at = len(r.pieces) - 1
        return piece.text != ";"
    while r.peek().kind != "end":
        r.take()
    edit = Edit(Span(piece.start, r.last.end), "")
    r.fault("EXPR025", f"an expression has no {piece.text} behind it", piece.span, "remove it", edits=(edit,))
    return True
