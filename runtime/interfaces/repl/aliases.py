"""What a text surely means that is written as other tools have it: ``exit``, ``help FIND``, ``\\d``, a ``;`` at the end of a line."""

import re
from collections.abc import Sequence

from attrs import evolve

from ....lang.diagnostic import Diagnostic
from ....lang.parse.expr import parse_expr
from ....lang.parse.gasl import parse_gasl
from ....lang.parse.lwt import parse_lwt
from ....lang.service import tokens
from .reader import Piece, expression_of
from .repl_workspace import Desk

__all__ = ["meant"]

_PLAIN = {
    **dict.fromkeys(("help", "help()", "?", "\\?", "\\h", ".?", ".h"), ".help"),
    **dict.fromkeys(("quit", "quit()", "exit", "exit()", "\\q", ":q", ".exit", ".q"), ".quit"),
    **dict.fromkeys(("show tables", "show schema", "show labels", "\\d", "\\dt", "\\l"), ".schema"),
    **dict.fromkeys(("show variables", "show vars"), ".vars"), "show state": ".state", "\\timing": ".timer", "\\s": ".log",
}  # fmt: skip
"""What people type who know other prompts."""
_BEGUN = (
    (re.compile(r"help\s+(?=[\w.]+\Z)", re.IGNORECASE), ".help "),
    (re.compile(r"desc(?:ribe)?\s+(?=\w+\Z)", re.IGNORECASE), ".schema "),
    (re.compile(r"\\dt?\+?\s+"), ".schema "),
    (re.compile(r"\\i\s+"), ".read "),
    (re.compile(r"\\o\s+"), ".output "),
    (re.compile(r"\\timing\s+"), ".timer "),
    (re.compile(r"\\h\s+"), ".help "),
)

_SEMICOLONS = re.compile(r"[ \t]*(?P<sign>;)[; \t]*(?=\r?$|[ \t]#)", re.MULTILINE)


def meant(piece: Piece, desk: Desk) -> Piece:
    """Return what a piece surely means; any other piece as it is. A name that has a value is that value's."""
    text = piece.text.strip().rstrip("; \t")
    word = " ".join(text.lower().split())
    if word in _PLAIN and word not in desk.values.names():
        return evolve(piece, text=_PLAIN[word], language="dot")
    for begun, dot in _BEGUN:
        found = begun.match(text)
        if found is not None:
            return evolve(piece, text=dot + text[found.end() :], language="dot")
    return _without_semicolons(piece)


def _without_semicolons(piece: Piece) -> Piece:
    """Return the piece without a ``;`` at the end of any of its lines, if these keep it from being read."""
    text = piece.text
    if piece.language == "dot" or piece.language == "remark" or not (found := list(_SEMICOLONS.finditer(text))):
        return piece
    kept = [token.span for token in tokens(piece.language, text) if token.type in ("string", "comment")]
    said = {at for span in kept for at in range(span.start, span.end)}
    ends = [match for match in found if match.start("sign") not in said]
    without = evolve(piece, text=_cut(text, ends))
    return without if ends and _faults(without) < _faults(piece) else piece


def _cut(text: str, ends: list[re.Match[str]]) -> str:
    parts, done = [], 0
    for match in ends:
        parts.append(text[done : match.start()])
        done = match.end()
    return "".join([*parts, text[done:]])


def _faults(piece: Piece) -> int:
    """Count what keeps a piece from being read."""
    match piece.language:
        case "gasl":
            found: Sequence[Diagnostic] = parse_gasl(piece.text).diagnostics
        case "lwt":
            found = parse_lwt(piece.text).diagnostics
        case _:
            found = parse_expr(expression_of(piece.text)[1]).diagnostics
    return sum(each.severity == "error" for each in found)
