"""The shape of a statement: brackets, what stands behind its end, options behind AS."""

import re

from ...source import Span
from ..fault import Fault, fault, shown
from .broken import Broken, Edits, swap
from .lines import COMMANDS

__all__ = ["MISPLACED", "SHAPE"]

_CLOSING = {"(": ")", "[": "]"}
_NAMED = re.compile(r"\bAS[ \t]+(?:[A-Za-z_]\w*|`[^`]+`)[ \t]*", re.IGNORECASE)


def _brackets(b: Broken) -> Fault | None:
    """A bracket too few, too many or of another kind."""
    piece = b.piece()
    opened = b.failure.brackets
    if opened:
        mark, at = opened[-1]
        right = _CLOSING[mark]
        if piece and piece.text in ")]}":
            edits = [swap(piece.span.start, piece.span.end, right)]
            found = b.fix(
                "GASL003", f"{mark} is closed by {right}, not by {piece.text}", piece.span, f"write {right}", edits
            )
            if found:
                return found
        last = len(b.text.rstrip())
        words = [
            m.start()
            for m in re.finditer(r"[ \t]+(?:AS|LIMIT|ORDER|TO|THEN|AND|OR|VIA|WHERE|MAXLEN)\b", b.text)
            if m.start() > at
        ]
        closing = "".join(_CLOSING[sign] for sign, _ in reversed(opened))
        places = sorted({*words[-8:], last, min(b.failure.behind, last)}, reverse=True)
        candidates: list[Edits] = [[swap(place, place, text)] for place in places for text in {right, closing}]
        hint = f"put {right} where it ends"
        if b.readings(*candidates) > 1:
            several = "it may end in several places, and each gives another condition"
            return b.doubt("GASL003", f"{mark} is never closed", Span(at, at + 1), hint, several, supposed=candidates)
        found = b.fault("GASL003", f"{mark} is never closed", Span(at, at + 1), hint, *candidates)
        if found.diagnostic.edits or piece is None:
            return found
        return None
    return None


def _surplus(b: Broken) -> Fault | None:
    """A closing bracket too many."""
    piece = b.piece()
    if b.failure.brackets:
        return None
    if piece and piece.text in (")", "]", "}"):
        gone = [swap(piece.span.start, piece.span.end, "")]
        connecting = {one.upper for one in b.pieces} & {"AND", "OR", "NOT", "&&", "||", "!"}
        if len(connecting) > 1 and b.mended_by(gone):
            hint = "put the opening bracket where it belongs, or remove this one"
            return b.doubt("GASL003", f"{piece.text} closes nothing", piece.span, hint, supposed=[gone])
        return b.fix(
            "GASL003",
            f"{piece.text} closes nothing",
            piece.span,
            "remove it",
            gone,
        )
    return None


def _unbracketed(b: Broken) -> Fault | None:
    """``COMPUTE sum x``, ``INTO "a", "b"``: what stands in brackets without them."""
    piece = b.piece()
    if piece is None:
        return None
    start, end = piece.span.start, piece.span.end
    if b.failure.after == "FUNCTION" and piece.kind == "word" and piece.upper != "AS":
        edits = [swap(b.failure.behind, end, f"({piece.text})")]
        return b.fix("GASL003", "the field of a computation stands in ( )", piece.span, f"write ({piece.text})", edits)
    if b.failure.after not in ("_INTO", "RETURNING") or piece.text in "([":
        return None
    stop = re.compile(r"[ \t]+AS[ \t]", re.IGNORECASE).search(b.text, start)
    end = stop.start() if stop and b.failure.after == "_INTO" else len(b.text.rstrip())
    edits = [swap(start, end, f"({b.text[start:end]})")]
    if piece.kind == "string" and piece.span.end == end and "," in piece.text:
        edits = []  # one label, or several in one pair of quotes
    hint = f"write ({shown(b.text[start:end], 60)})"
    if not (edits and b.mended_by(edits)):
        hint = (
            'write ("a", "b"), each label in quotes' if b.failure.after == "_INTO" else "write ( ) around the columns"
        )
    return b.fault("GASL003", "a list stands in ( )", Span(start, end), hint, edits)


def _no_condition(b: Broken) -> Fault | None:
    """``WHERE AS x``, ``a = 1 AND AS x``."""
    before, head = b.piece(-1), b.piece(-2)
    if (
        before is None
        or head is None
        or before.upper not in ("AS", "LIMIT", "THEN", "ORDER")
        or b.failure.after != "PATH"
    ):
        return None
    if head.upper not in ("WHERE", "VIA", "AND", "OR", "NOT", "IF", "ASSERT"):
        return None
    # Without the word the command would read, and take everything: which condition was meant, nobody knows.
    message = f"a condition is missing behind {head.upper}"
    hint = f'write one, as name = "x", or leave {head.upper} out'
    return fault("GASL010", message, head.span.start, head.span.end, hint)


def _behind(b: Broken) -> Fault | None:
    """Something behind the statement's end: a semicolon, an option, a second command."""
    piece = b.piece()
    if piece is None or not b.expected & {"$END", "_NEWLINE"}:
        return None
    rest = b.text[piece.span.start :]
    start = piece.span.start
    gap = start - (len(b.text[:start]) - len(b.text[:start].rstrip()))
    if re.fullmatch(r"[;,.:\\|]+\s*", rest):
        message = f"{shown(rest.strip())} stands behind the command"
        return b.fix("GASL031", message, piece.span, "remove it", [swap(gap, len(b.text), "")])
    if re.match(r"(?://|--|/\*)", rest):
        edits = [swap(start, start + 2, "#")]
        return b.fix("GASL031", "a remark begins with #", Span(start, start + 2), "write #", edits)
    follows = re.match(r"(?:;|,|&&|\||THEN\b|AND\b)?[ \t]*", rest, re.IGNORECASE)
    after = rest[follows.end() :] if follows else rest
    word = re.match(r"[A-Za-z]+", after)
    if word and word[0].upper() in COMMANDS and follows:
        edits = [swap(gap, start + follows.end(), "\n")]
        message = f"a second command begins on this line: {word[0]}"
        found = b.fix("GASL031", message, Span(start, start + follows.end() + len(word[0])), "begin a new line", edits)
        if found:
            return found
    return _late_option(b, start, gap)


def _late_option(b: Broken, start: int, gap: int) -> Fault | None:
    """``FIND nodes AS x LIMIT 10``."""
    named = None
    for match in _NAMED.finditer(b.text):
        if match.end() <= start and match.end() >= gap:
            named = match
    if named is None:
        return None
    tail = b.text[start:].rstrip()
    edits = [swap(named.start(), named.start(), f"{tail} "), swap(gap, len(b.text), "")]
    word = tail.split(None, 1)[0]
    message = f"{shown(word)} stands behind AS"
    return b.fix("GASL016", message, Span(start, start + len(tail)), "AS and the name come last", edits)


def _early_name(b: Broken) -> Fault | None:
    """``PROCESS x AS y USING "..."``."""
    for match in _NAMED.finditer(b.text):
        if match.end() <= b.at + 3 or match.start() <= b.at:
            end = len(b.text.rstrip())
            named = match[0].strip()
            edits = [swap(match.start(), match.end(), ""), swap(end, end, f" {named}")]
            found = b.fix(
                "GASL016",
                f"{named} stands too early",
                Span(match.start(), match.end()),
                "AS and the name come last",
                edits,
            )
            if found and b.mended_by(edits):
                return found
    return None


def _late_name(b: Broken) -> Fault | None:
    """``PROCESS x USING "..." RETURNING (...) AS y``."""
    if b.words() == "RETURNING":
        start = b.pieces[b.here].span.start
        named_last = re.compile(r"[ \t]*(AS[ \t]+\w+)[ \t]*\Z", re.IGNORECASE).search(b.text, start)
        if named_last:
            edits = [swap(start, start, f"{named_last[1]} "), swap(named_last.start(), len(b.text), "")]
            return b.fix(
                "GASL016",
                "RETURNING belongs behind AS and the name",
                b.pieces[b.here].span,
                "move it to the end",
                edits,
            )
    return None


def _by_limit(b: Broken) -> Fault | None:
    """``RANK x BY f LIMIT 3 DESC``, ``ORDER BY f DESC`` where no order is: an option in the wrong place."""
    piece = b.piece()
    if piece is None or piece.upper not in ("DESC", "ASC"):
        return None
    found = re.search(r"[ \t]+LIMIT[ \t]+\d+[ \t]*\Z", b.text[: piece.span.start], re.IGNORECASE)
    if not found:
        return None
    edits = [swap(found.start(), found.start(), f" {piece.text}"), swap(found.end() - 1, piece.span.end, "")]
    return b.fix("GASL016", f"{piece.text} belongs behind the field, before LIMIT", piece.span, "move it there", edits)


SHAPE = (_brackets, _early_name, _behind)

MISPLACED = (_surplus, _late_name, _by_limit, _unbracketed, _no_condition)
"""What is asked before words and values, which would misread it."""
