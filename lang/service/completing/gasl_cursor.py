"""Where the cursor stands in a GASL text: in a string, a name, a variable; and the statement around it, without the others."""

import re
from typing import Literal

from attrs import frozen

from ...parse.ahead import Met
from ...parse.gasl.engine import follow
from ...parse.gasl.lines import HEAD_LINE
from .place import Before

__all__ = ["Cursor", "before_cursor", "cursor_at", "opened_blocks"]

_PIECE = re.compile(
    r"""(?P<string>"(?:[^"\\\r\n]|\\[^\r\n])*+(?P<ended_string>")?|'(?:[^'\\\r\n]|\\[^\r\n])*+(?P<ended_single>')?)"""
    r"""|(?P<variable>\$\{[^}\r\n"']*+(?P<ended_variable>\})?|\$\Z)"""
    r"""|(?P<comment>\#[^\n]*+)"""
    r"""|(?P<word>(?:[A-Za-z0-9_.\-]|`(?:[^`\r\n]|``)*+`?)++)""",
    re.VERBOSE,
)
_BLOCK_LINE = re.compile(r"^[ \t]*+(TRY|CATCH[ \t]++ANY|FINALLY|END)(?=[ \t\r]*+(?:#|$))", re.IGNORECASE | re.MULTILINE)
_LONGEST = 20_000
"""Characters of a statement before the cursor that are followed."""
_LINES_BACK = 60
"""Lines above the cursor's in which the statement may begin."""


@frozen
class Cursor:
    """What is under way at the cursor: it begins at ``begin``, and ``typed`` of it is there. ``quote``: of an open string."""

    kind: Literal["nothing", "comment", "string", "variable", "word"]
    begin: int
    typed: str
    quote: str = ""


def cursor_at(text: str, offset: int) -> Cursor:
    """Say what is under way at ``offset``. Strings, names and comments end on their line, so no other is looked at."""
    line = text.rfind("\n", 0, offset) + 1
    last: re.Match[str] | None = None
    for match in _PIECE.finditer(text, line, offset):
        last = match
    if last is None or last.end() < offset:
        return Cursor("nothing", offset, "")
    if last["comment"] is not None:
        return Cursor("comment", last.start(), "")
    if last["string"] is not None:
        if last["ended_string"] or last["ended_single"]:
            return Cursor("nothing", offset, "")
        return Cursor("string", last.start(), last[0][1:], last[0][0])
    if last["variable"] is not None:
        if last["ended_variable"]:
            return Cursor("nothing", offset, "")
        return Cursor("variable", last.start(), last[0].lstrip("${").lstrip())
    return Cursor("word", last.start(), last[0].replace("`", ""))


def before_cursor(text: str, begin: int) -> Before | None:
    """Follow the parser from where the statement begins to ``begin``; None where what stands between can't be read."""
    for start in _starts(text, begin):
        if begin - start > _LONGEST:
            continue
        opening = opened_blocks(text, start)
        piece = opening + text[start:begin]
        follower = follow(piece)
        if follower is None:
            continue
        if follower.met and follower.met[-1].terminal == "_NEWLINE":
            # What stands above is whole. Without it, what may follow is asked for in the same words again and again.
            fresh = _fresh(text, begin) if not _has_reason(follower.met) else None
            if fresh is not None:
                return fresh
        return Before(piece, tuple(follower.states))
    return None


def _has_reason(met: list[Met]) -> bool:
    return len(met) > 1 and met[-2].terminal in ("WHY", "COMMENT")


def _fresh(text: str, begin: int) -> Before | None:
    opening = opened_blocks(text, begin)
    follower = follow(opening)
    return Before(opening, tuple(follower.states)) if follower is not None else None


def _starts(text: str, begin: int) -> list[int]:
    """Return where the statement around ``begin`` may begin, the likeliest first."""
    line = text.rfind("\n", 0, begin) + 1
    found = [line]
    at = line
    for _ in range(_LINES_BACK):
        if HEAD_LINE.match(text, at):
            # A line that begins as a statement does is its beginning; any other may go on with the one above it.
            return [at] if at == line else [at, line]
        if at == 0:
            return found if line == 0 else [0, line]
        at = text.rfind("\n", 0, at - 1) + 1
    return found


def opened_blocks(text: str, stop: int) -> str:
    """Return the words of the innermost block that is open at ``stop``, as a text of their own."""
    blocks: list[list[str]] = []
    for match in _BLOCK_LINE.finditer(text, 0, stop):
        word = match[1].upper().split()[0]
        if word == "TRY":
            blocks.append(["TRY\n"])
        elif not blocks:
            continue
        elif word == "END":
            blocks.pop()
        else:
            blocks[-1].append("CATCH ANY\n" if word == "CATCH" else "FINALLY\n")
    return "".join(blocks[-1]) if blocks else ""
