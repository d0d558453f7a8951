"""Completion in GASL."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal

from attrs import evolve, frozen

from ...catalogue.commands import FORMS
from ...parse.gasl.engine import Read, automaton, follow, read
from ...parse.gasl.lines import HEAD_LINE
from ...parse.lookahead import Met
from ...printer.gasl_printer import format_gasl
from ...source import Source, Span
from ...trees.gasl import Program, Statement
from ..model import Completion, CompletionKind, Known
from .gasl_names import GaslScope, bindings_in
from .place import MARK, AllowedToken, Before, Candidate, Tongue, found_by, ranked, words

# Finds the place of the cursor in a GASL text: a string, a name or a variable. Only the statement around the cursor is parsed.

_PIECE = re.compile(
    r"""(?P<string>"(?:[^"\\\r\n]|\\[^\r\n])*+(?P<ended_string>")?|'(?:[^'\\\r\n]|\\[^\r\n])*+(?P<ended_single>')?)"""
    r"""|(?P<variable>\$\{[^}\r\n"']*+(?P<ended_variable>\})?|\$\Z)"""
    r"""|(?P<comment>\#[^\n]*+)"""
    r"""|(?P<word>(?:[A-Za-z0-9_.\-]|`(?:[^`\r\n]|``)*+`?)++)""",
    re.VERBOSE,
)
_BLOCK_LINE = re.compile(r"^[ \t]*+(TRY|CATCH[ \t]++ANY|FINALLY|END)(?=[ \t\r]*+(?:#|$))", re.IGNORECASE | re.MULTILINE)
_LONGEST = 20_000
"""Maximum number of characters of a statement that are parsed before the cursor."""
_MOST_LINES_BACK = 60
"""Maximum number of lines above the cursor that are searched for the start of the statement."""


@frozen
class Cursor:
    """The incomplete text at the cursor. It begins at ``begin``; ``typed`` is the part before the cursor.

    ``quote`` is the quote of the string around the cursor.
    """

    kind: Literal["nothing", "comment", "string", "variable", "word"]
    begin: int
    typed: str
    quote: str = ""


def cursor_at(text: str, offset: int) -> Cursor:
    """Return the incomplete text at ``offset``. Strings, names and comments end on their line, so only this line is read."""
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
    """Parse from the start of the statement to ``begin``. Return the text and the parser's states; None if the text is invalid."""
    for start in _starts(text, begin):
        if begin - start > _LONGEST:
            continue
        opening = opened_blocks(text, start)
        piece = opening + text[start:begin]
        follower = follow(piece)
        if follower is None:
            continue
        if follower.met and follower.met[-1].terminal == "_NEWLINE":
            # The text above is a complete statement. Without it, equal states recur, and their results can be cached.
            fresh = _start_of_statement(text, begin) if not _has_reason(follower.met) else None
            if fresh is not None:
                return fresh
        return Before(piece, tuple(follower.states))
    return None


def _has_reason(met: list[Met]) -> bool:
    return len(met) > 1 and met[-2].terminal in ("WHY", "COMMENT")


def _start_of_statement(text: str, begin: int) -> Before | None:
    opening = opened_blocks(text, begin)
    follower = follow(opening)
    return Before(opening, tuple(follower.states)) if follower is not None else None


def _starts(text: str, begin: int) -> list[int]:
    """Return possible starts of the statement around ``begin``, most probable first."""
    line = text.rfind("\n", 0, begin) + 1
    found = [line]
    at = line
    for _ in range(_MOST_LINES_BACK):
        if HEAD_LINE.match(text, at):
            # A line that begins like a statement starts one. Any other line may continue the line above.
            return [at] if at == line else [at, line]
        if at == 0:
            return found if line == 0 else [0, line]
        at = text.rfind("\n", 0, at - 1) + 1
    return found


def opened_blocks(text: str, stop: int) -> str:
    """Return the keywords of the innermost block that is open at ``stop``, as a program without commands; "" if none is open."""
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


_MARKS = {
    "IDENTIFIER": (MARK,), "PATH": (MARK, f"node.{MARK}"), "STRING": (f'"{MARK}"',), "VARIABLE": (f"${{{MARK}}}",),
}  # fmt: skip
"""Maps the four terminals that contain a name or a string to spellings of the mark. ANY takes only the second spelling of a path."""


def complete_gasl(source: Source, offset: int, known: Known) -> tuple[Completion, ...]:
    """See ``service.complete``."""
    text = source.text
    cursor = cursor_at(text, offset)
    if cursor.kind == "comment":
        return ()
    before = before_cursor(text, cursor.begin)
    if before is None:
        return ()
    scope = GaslScope(text, bindings_in(text, cursor.begin), known, cursor.typed)
    found = [*_names(scope, cursor, before), *_words(scope, cursor, before)]
    return ranked(_fitting(found, text, offset, cursor), cursor.typed, Span(cursor.begin, offset))


def _tongue() -> Tongue:
    return Tongue(automaton(), _read, lambda items: format_gasl(Program(items, Source(""))))


def _read(text: str) -> tuple[Any, ...] | None:
    found = read(text)
    return tuple(found.result) if isinstance(found, Read) else None


def _words(scope: GaslScope, cursor: Cursor, before: Before) -> Iterator[Candidate]:
    if cursor.kind in ("string", "variable"):
        return
    constants = _constants(scope, before)
    for found in _words_behind(before):
        word = found.text.upper()
        if constants is not None and word in ("TRUE", "FALSE", "NULL") and word not in constants:
            continue
        if word in FORMS and found.terminal in _commands():
            yield Candidate(found.text, "command", FORMS[word], match=found.text)
        else:
            kind: CompletionKind = "keyword" if word[0].isalpha() else "punctuation"
            yield Candidate(found.text, "function" if found.terminal == "FUNCTION" else kind)


def _constants(scope: GaslScope, before: Before) -> frozenset[str] | None:
    """Return which of TRUE, FALSE and NULL fit as the value at the cursor; None if unknown, or if no value is allowed there."""
    tongue = _tongue()
    found = found_by(tongue, before, f'"{MARK}"', "STRING")
    return None if found is None else scope.constants(found[0], _statements(found[1]))


def _statements(items: Iterable[Any]) -> tuple[Statement, ...]:
    return tuple(item for item in items if isinstance(item, Statement))


def _commands() -> frozenset[str]:
    first = automaton()
    return frozenset(first.accepts(tuple(first.follower("program").states)))


@lru_cache(maxsize=256)
def _words_behind(before: Before) -> tuple[AllowedToken, ...]:
    """Return the words that may follow. They are cached, because statements have few different beginnings."""
    return tuple(words(_tongue(), before))


def _names(scope: GaslScope, cursor: Cursor, before: Before) -> Iterator[Candidate]:
    tongue = _tongue()
    wanted = {"string": ("STRING",), "variable": ("VARIABLE",)}.get(cursor.kind, tuple(_MARKS))
    accepted = tongue.automaton.accepts(before.states)
    for terminal in wanted:
        if terminal in accepted:
            ways = (found_by(tongue, before, mark, terminal) for mark in _MARKS[terminal])
            found = next((each for each in ways if each is not None), None)
            if found is not None:
                way, items = found
                yield from scope.candidates(way, _statements(items))


def _fitting(candidates: Iterable[Candidate], text: str, offset: int, cursor: Cursor) -> Iterator[Candidate]:
    """Yield the candidates adapted to this place: without a closing quote or brace if one already follows the cursor."""
    for each in candidates:
        if cursor.kind == "string":
            if each.text[0] == '"':
                body = each.text[1:-1]
                if text.startswith(cursor.quote, offset):
                    said = cursor.quote + (body.replace("'", "\\'") if cursor.quote == "'" else body)
                    each = evolve(each, text=said, match=each.match or body)
                yield each
        elif cursor.kind == "variable":
            yield evolve(each, text=each.text[:-1]) if text.startswith("}", offset) and each.text[-1] == "}" else each
        else:
            yield each
