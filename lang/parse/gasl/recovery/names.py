"""Names and variables written as something else: ``$x``, ``{{x}}``, quotes or dots where a plain name stands."""

import re

from ....source import Span
from ...repairs import Fault, fault, shown
from .ambiguous import NO_FIELDS, is_of_items
from .attempt import Broken, swap

__all__ = ["NAMES"]

_NAME = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_LOOKS = re.compile(
    r"\$\{[ \t]*(?P<a>[\w.\[\]]+)[ \t]*\}|\$\{[ \t]*(?P<b>[\w.]+)|\$[ \t]*\{[ \t]*(?P<c>[\w.\[\]]+)[ \t]*\}"
    r"|\$\([ \t]*(?P<d>[\w.]+)[ \t]*\)|\$(?P<e>[\w.]+)|\{\{[ \t]*(?P<f>[\w.\[\]]+)[ \t]*\}\}"
    r"|\{\([ \t]*(?P<g>[\w.]+)[ \t]*\)\}|\{[ \t]*(?P<h>[\w.\[\]]+)[ \t]*\}|<(?P<i>[A-Za-z_]\w*)>|@(?P<j>[\w.]+)"
)
_KEYWORD_FIELDS = frozenset({"NOT", "LEN", "ANY", "ALL", "NONE"})


def _variable(b: Broken) -> Fault | None:
    """``$x``, ``{x}``, ``{{x}}``, ``@x`` for a variable, or any of these where a bare name stands."""
    piece = b.piece()
    if piece is None:
        return None
    found = _LOOKS.match(b.text, piece.span.start)
    if not found:
        return None
    inner = next(group for group in found.groups() if group)
    span = Span(*found.span())
    if "VARIABLE" in b.expected:
        right = f"${{{inner}}}"
        message = f"{shown(found[0])} is no variable"
        return b.fix("GASL027", message, span, f"write {right}", [swap(*found.span(), right)])
    if b.expected & {"IDENTIFIER", "PATH"}:
        message = f"a bare name stands here, not {shown(found[0])}"
        return b.fix("GASL027", message, span, f"write {inner}", [swap(*found.span(), inner)])
    return None


def _bare_variable(b: Broken) -> Fault | None:
    """``IN authors``: after IN only a list or a variable may stand."""
    piece = b.piece()
    if piece is None or "LSQB" not in b.expected or "VARIABLE" not in b.expected or b.failure.after != "IN":
        return None
    if piece.kind == "word" and b.words(1) != ",":
        right = f"${{{piece.text}}}"
        message = f"behind IN stands a list or a variable, and {piece.text} is neither"
        hint = f'write {right} for a variable, or ("{piece.text}") for the text'
        supposed = [[swap(piece.span.start, piece.span.end, right)]]
        if is_of_items(b):  # it may be a field, too
            return b.doubt("GASL028", message, piece.span, hint, NO_FIELDS, supposed=supposed)
        return b.fault("GASL028", message, piece.span, hint, *supposed)
    end = piece.span.end
    index = b.here
    values = [piece.text if piece.kind != "word" else f'"{piece.text}"']
    while index + 2 < len(b.pieces) and b.pieces[index + 1].text == ",":
        index += 2
        value = b.pieces[index]
        values.append(value.text if value.kind != "word" else f'"{value.text}"')
        end = value.span.end
    if piece.text == "{":
        close = b.text.find("}", piece.span.end)
        edits = [swap(piece.span.start, piece.span.end, "("), swap(close, close + 1, ")")] if close > 0 else []
        return b.fault("GASL028", "a list stands in ( ) or [ ]", piece.span, "write ( )", edits)
    right = f"({', '.join(values)})"
    span = Span(piece.span.start, end)
    is_bare = any(one.kind == "word" for one in b.pieces[b.here : index + 1]) and is_of_items(b)
    if is_bare or (len(values) == 1 and re.search(r"[,;|]", piece.text)):
        hint = f"write IN {shown(right, 60)}" if is_bare else "write each value in quotes of its own, in ( )"
        return b.doubt("GASL028", "behind IN stands a list", span, hint, supposed=[[swap(*_ends(span), right)]])
    return b.fault(
        "GASL028", "behind IN stands a list", span, f"write IN {shown(right, 60)}", [swap(*_ends(span), right)]
    )


def _name(b: Broken) -> Fault | None:
    """A name that is none: in quotes, with dots, hyphens, blanks or letters beyond ASCII."""
    if "IDENTIFIER" not in b.expected and "PATH" not in b.expected:
        return _name_goes_on(b)
    piece = b.piece()
    if piece is None:
        return None
    span = piece.span
    whole = re.compile(r"[^\s,()=<>!\[\]]+").match(b.text, span.start)
    text = whole[0] if whole else piece.text
    if b.failure.after in ("FROM", "_TO") and piece.kind in ("string", "number"):
        hint = f"write (id = {piece.text})"
        return fault("GASL033", "a path's ends are variables or conditions in ( )", span.start, span.end, hint)
    tested = b.words(2) if b.words(1) == "IN" else b.words(3) if (b.words(1), b.words(2)) == ("NOT", "IN") else "("
    if piece.kind == "string" and "PATH" in b.expected and tested not in ("(", "["):
        return fault("GASL033", "a comparison begins with a field", span.start, span.end, "write field CONTAINS value")
    if piece.kind == "string":
        inner = piece.text[1:-1]
        right = (
            inner
            if _NAME.match(inner) or re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", inner, re.ASCII)
            else f"`{inner}`"
        )
        message = "a name stands here, without quotes"
        return b.fix("GASL033", message, span, f"write {right}", [swap(span.start, span.end, right)])
    if not whole or text[0] in "$\"'{" or not re.search(r"\w", text):
        return None
    if piece.kind == "number" and piece.text == text and "PATH" in b.expected:
        message = f"a comparison begins with a field or a variable, not with {shown(text)}"
        hint = (
            "a condition that always holds is left out"
            if _is_equal(b)
            else f"a field of this name stands in backticks: `{text}`"
        )
        return fault("GASL033", message, span.start, span.end, hint)
    end = span.start + len(text)
    plain = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    plain = f"_{plain}" if plain[:1].isdigit() else plain
    ticked = f"`{text}`"
    edits = [[swap(span.start, end, ticked)]]
    if text.isascii() and plain and "PATH" not in b.expected:
        edits.insert(0, [swap(span.start, end, plain)])
    message = f"{shown(text)} is no plain name"
    hint = "plain names have letters, digits and _, and begin with no digit; any other stands in backticks"
    return b.fix("GASL033", message, Span(span.start, end), hint, *edits)


def _is_equal(b: Broken) -> bool:
    """Say whether the number here is compared with itself, as in SQL's ``1 = 1``."""
    piece, sign, other = b.piece(), b.piece(1), b.piece(2)
    if not (piece and sign and other):
        return False
    return sign.text in ("=", "==") and piece.text == other.text


def _name_goes_on(b: Broken) -> Fault | None:
    """``AS my-authors``, ``AS network.authors``, ``AS top authors``."""
    if b.failure.after not in ("IDENTIFIER", "PATH") or b.at < b.failure.behind:
        return None
    start = re.compile(r"[\w.`]+\Z").search(b.text[: b.failure.behind])
    if not start:
        return None
    begin = start.start()
    touching = re.compile(r"[^\s,()=<>!\[\]]+").match(b.text, b.at) if b.at == b.failure.behind else None
    hint = "a name is one word of letters, digits and _"
    if touching and not b.text[b.at :].startswith(";"):
        text = b.text[begin : touching.end()].rstrip(".;")
        end = begin + len(text)
        plain = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
        edits = [[swap(begin, end, f"`{text}`")]]
        if text.isascii() and b.failure.after == "IDENTIFIER":
            edits.insert(0, [swap(begin, end, plain)])
            if "." in text and re.fullmatch(r"[\w.]+", text):
                hint = "a variable's name has no dots; keys of the state do, and UPDATE fills them"
        return b.fix("GASL033", f"{shown(text)} is no plain name", Span(begin, end), hint, *edits)
    words = re.compile(r"[A-Za-z_]\w*(?:[ \t]+[A-Za-z_]\w*){1,4}", re.ASCII).match(b.text, begin)
    piece = b.piece()
    if words and piece and piece.kind == "word" and words.end() > b.at and b.words(1) in ("", "AS", "WITH"):
        last = piece.span.end
        parts = b.text[begin:last].split()
        if any(len(part) == 1 or part.isupper() for part in parts) or b.command in ("RESET", "REQUIRE"):
            return (
                None  # `ON id`, `AND b`: a word that connects is no part of a name; `a b` is two names rather than one
            )
        before = next((one.upper for one in reversed(b.pieces) if one.span.end <= begin), "")
        if before in ("BY", ","):
            message, hint = (
                f"{shown(b.text[begin:last])} is more than one field",
                "BY takes one; a name with blanks stands in `",
            )
            return fault("GASL033", message, begin, last, hint)
        joined = re.sub(r"[ \t]+", "_", b.text[begin:last])
        message = f"{shown(b.text[begin:last])} is more than one word"
        return b.fix("GASL033", message, Span(begin, last), hint, [swap(begin, last, joined)])
    return None


def _keyword_field(b: Broken) -> Fault | None:
    """``WHERE len > 3``: a field that is called like a word of conditions."""
    before = b.piece(-1)
    if before is None or before.upper not in _KEYWORD_FIELDS or b.failure.after not in _KEYWORD_FIELDS:
        return None
    piece = b.piece()
    if piece is None or (piece.kind == "word" and piece.upper not in ("IN", "IS", "CONTAINS", "MATCHES")):
        return None
    right = f"`{before.text}`"
    message = f"{before.text} is a word of the language here"
    edits = [swap(before.span.start, before.span.end, right)]
    return b.fix("GASL033", message, before.span, f"write {right} for a field of this name", edits)


def _ends(span: Span) -> tuple[int, int]:
    return span.start, span.end


NAMES = (_variable, _bare_variable, _keyword_field, _name)
