"""Where the cursor stands in a script: in a head, a reference, a string, a word; and the step around it, without the others."""

import re
from typing import Literal

from attrs import frozen

from ...parse.ahead import Met
from ...parse.lwt.engine import automaton, follow
from ...parse.lwt.shapes import HEAD, ID
from .place import Before

__all__ = ["Cursor", "cursor_at"]

_HEAD_LINE = re.compile(rf"^[ \t]*+(?={HEAD.pattern})", re.MULTILINE)
_REFERENCE = re.compile(
    rf"\{{\(?(?P<name>[\w.\-]*)\Z|\{{\((?P<of>{ID})\)\}}(?P<way>(?:\[[^\[\]\n]*\])*)\[(?P<key>[^\[\]\n]*)\Z"
)
_WORD = re.compile(r"[A-Za-z_]\w*\Z")
_NEW_HEAD = re.compile(r"^[ \t]*+\([\w.\-]*\Z|^[ \t]*+\Z", re.MULTILINE)
_QUOTES = frozenset({"DOUBLE", "SINGLE", "TRIPLE_DOUBLE", "TRIPLE_SINGLE"})
_TEXTS = frozenset({"DOUBLE_TEXT", "SINGLE_TEXT"})
_LONGEST_STEP = 20_000
_MOST_HEADS = 4


@frozen
class Cursor:
    """What is under way: it begins at ``begin``, ``typed`` of it is there; ``before`` is the step as far as ``begin``.

    ``of`` and ``way`` are a reference's name and the accessors before the one under way; ``quote``: the string it stands in.
    """

    kind: Literal["word", "reference", "accessor", "head", "string"]
    begin: int
    typed: str
    before: Before
    of: str = ""
    way: str = ""
    quote: str = ""


def cursor_at(text: str, offset: int) -> Cursor | None:
    """Say what is under way at ``offset``; None in a comment, in prose, and where the step can't be read as far."""
    line = text.rfind("\n", 0, offset) + 1
    if text[line:offset].lstrip().startswith("#"):
        return None
    for start in _starts(text, offset):
        found = _in_step(text, start, offset)
        if found is not None:
            return found
    if _NEW_HEAD.match(text, line, offset):
        return _head(text, line, offset)
    return None


def _head(text: str, line: int, offset: int) -> Cursor:
    begin = line + len(text[line:offset]) - len(text[line:offset].lstrip())
    states = tuple(automaton().follower("start").states)
    return Cursor("head", begin, text[begin:offset], Before("", states))


def _starts(text: str, offset: int) -> list[int]:
    """Return where the step around ``offset`` may begin, the nearest first: what looks like a head may stand in a string."""
    from_ = max(0, offset - _LONGEST_STEP)
    return [match.end() for match in _HEAD_LINE.finditer(text, from_, offset)][-_MOST_HEADS:][::-1]


def _in_step(text: str, start: int, offset: int) -> Cursor | None:
    reference = _REFERENCE.search(text, max(start, text.rfind("{", start, offset)), offset)
    if reference:
        before = _before(text, start, reference.start())
        if before is not None and "REFERENCE" in automaton().accepts(before[0].states):
            quote = _open_quote(before)
            if reference["of"]:
                key = reference["key"].lstrip("\"'\\")
                at = offset - len(reference["key"]) - 1
                return Cursor("accessor", at, key, before[0], reference["of"], reference["way"], quote)
            if quote or reference[0].startswith("{("):
                return Cursor("reference", reference.start(), reference["name"], before[0], quote=quote)
    whole = _before(text, start, offset)
    if whole is not None and (quote := _open_quote(whole)):
        opened = next(met for met in reversed(whole[1]) if met.terminal in _QUOTES)
        before = _before(text, start, opened.start)
        return Cursor("string", opened.start, text[opened.end : offset], before[0], quote=quote) if before else None
    word = _WORD.search(text, max(start, offset - 200), offset)
    begin = word.start() if word else offset
    before = _before(text, start, begin)
    if before is None or "HEAD" in automaton().accepts(before[0].states):
        return None
    return Cursor("word", begin, text[begin:offset], before[0])


def _before(text: str, start: int, begin: int) -> tuple[Before, list[Met]] | None:
    follower = follow(text, start, begin)
    return (Before(text[start:begin], tuple(follower.states)), follower.met) if follower is not None else None


def _open_quote(before: tuple[Before, list[Met]]) -> str:
    """Return the quote of the string that is open behind a text, or nothing."""
    if not _TEXTS.intersection(automaton().accepts(before[0].states)):
        return ""
    opened = next((met for met in reversed(before[1]) if met.terminal in _QUOTES), None)
    return automaton().samples[opened.terminal] if opened is not None else ""
