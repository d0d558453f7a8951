"""Completion for GASL."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal, get_args

from attrs import evolve, frozen

from ...catalogue.commands import FORMS, OPTIONS
from ...catalogue.value_functions import AGGREGATE_FUNCTIONS, VALUE_FUNCTIONS
from ...parse.gasl.engine import Read, automaton, follow, read
from ...parse.gasl.lines import HEAD_LINE
from ...parse.lookahead import Met
from ...printer.gasl_printer import format_gasl
from ...source import Source, Span
from ...trees import gasl, walk
from ...trees.conditions import And, Call, Comparison, Increasing, Not, NullTest, Or
from ...trees.gasl import Command, Program, Statement
from ..model import Completion, CompletionKind, Known, plain
from .gasl_names import GaslScope, bindings_in
from .place import MARK, AllowedToken, Before, Candidate, Tongue, found_by, ranked, words

# Finds the place of the cursor in a GASL text: a string, a name or a variable. Only the statement around the cursor is parsed.

_PIECE = re.compile(
    r"""(?P<string>"(?:[^"\\\r\n]|\\[^\r\n])*+(?P<ended_string>")?|'(?:[^'\\\r\n]|\\[^\r\n])*+(?P<ended_single>')?)"""
    r"""|(?P<variable>\$\{[^}\r\n"']*+(?P<ended_variable>\})?|\$\Z)"""
    r"""|(?P<comment>\#[^\n]*+)"""
    r"""|(?P<word>(?:[A-Za-z0-9_.]|`(?:[^`\r\n]|``)*+`?)++)""",
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

    If the cursor is in a string, ``quote`` is the quote of the string.
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
    """Parse the text from the start of the statement to ``begin``.

    Return this text and the states of the parser, or None if it is invalid.
    """
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
    """Return a program without commands that has only the keywords of the innermost block open at ``stop``.

    Return "" if no block is open.
    """
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
"""Maps the four terminals for names and strings to texts with the mark. After ANY, only the second text of PATH is allowed."""


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
    found = [*_names(scope, cursor, before), *_functions(cursor, before), *_words(scope, cursor, before)]
    return ranked(_fitting(found, text, offset, cursor), cursor.typed, Span(cursor.begin, offset))


def _tongue(cursor: int) -> Tongue:
    """Return GASL's functions for finding completions. ``cursor`` is the offset of the cursor in the texts that are read."""

    def read_items(text: str) -> tuple[Any, ...] | None:
        found = read(text)
        items = tuple(found.result) if isinstance(found, Read) else None
        return None if items is None or _is_misplaced(items, cursor, text[cursor : cursor + 1]) else items

    return Tongue(automaton(), read_items, lambda items: format_gasl(Program(items, Source(""))), joints=_JOINTS)


_JOINTS = frozenset({"_AS", "_COMMA"})
"""``AS`` names a computed column; a comma begins the second argument, which ``percentile`` and some functions need."""
_CONDITIONS = (And, Comparison, Increasing, Not, NullTest, Or)


def _is_misplaced(items: tuple[Any, ...], cursor: int, sign: str) -> bool:
    """Return whether the linter would reject the text at the cursor although it can be parsed. This text begins with ``sign``.

    Only the first argument of ``if`` may be a condition, and only paths allow INCREASING, ANY, ALL and NONE. A call must name a
    known function and have as many arguments as the function takes.
    """
    at_cursor = [node for item in items for node in walk(item) if node.span.end > cursor]
    if any(isinstance(node, Call) and _is_wrong_call(node, cursor, sign) for node in at_cursor):
        return True
    if not any(isinstance(node, Increasing) or getattr(node, "quantifier", None) for node in at_cursor):
        return False
    commands = [node for node in at_cursor if isinstance(node, get_args(Command)) and not isinstance(node, _OUTER)]
    return bool(commands) and not isinstance(commands[-1], gasl.FindPaths | gasl.FindCycles | gasl.Select)


def _is_wrong_call(call: Call, cursor: int, sign: str) -> bool:
    """Return whether the text at the cursor makes a call invalid, whatever is written after it."""
    function = VALUE_FUNCTIONS.get(call.function)
    if function is None:
        return sign == "(" and call.span.start < cursor and MARK not in call.function
    added = [each for each in call.arguments if each.span.end > cursor]
    values = call.arguments[call.function == "if" :]
    if any(isinstance(each, _CONDITIONS) for each in added if each in values):
        return True
    too_many = function.most is not None and len(call.arguments) > function.most and bool(added)
    closes = sign == ")" and not added and call.span.end == cursor + 1
    return too_many or (closes and len(call.arguments) < function.least)


_OUTER = (gasl.Explain, gasl.On, gasl.Try)


def _words(scope: GaslScope, cursor: Cursor, before: Before) -> Iterator[Candidate]:
    if cursor.kind in ("string", "variable"):
        return
    constants = _constants(scope, before)
    # Where a command begins, many commands are allowed. Elsewhere, ON is an option of JOIN, MEASURE or a set operation.
    is_start = len(_commands().intersection(automaton().accepts(before.states))) > 1
    for found in _words_behind(before):
        word = found.text.upper()
        if constants is not None and word in ("TRUE", "FALSE", "NULL") and word not in constants:
            continue
        if word in FORMS and found.terminal in _commands() and (is_start or word != "ON"):
            yield Candidate(found.text, "command", FORMS[word], match=found.text)
        elif found.terminal != "FUNCTION":
            kind: CompletionKind = "keyword" if word[0].isalpha() else "punctuation"
            yield Candidate(found.text, kind, documentation=plain(OPTIONS.get(word, "")))
    if "FUNCTION" in automaton().accepts(before.states):
        for each in AGGREGATE_FUNCTIONS.values():
            yield Candidate(each.name, "function", each.signature, plain(each.doc))


def _constants(scope: GaslScope, before: Before) -> frozenset[str] | None:
    """Return those of TRUE, FALSE and NULL that fit as the value at the cursor.

    Return None if this is unknown, or if no value is allowed there.
    """
    if "STRING" not in automaton().accepts(before.states):
        return None
    found = found_by(_tongue(len(before.text)), before, f'"{MARK}"', "STRING")
    return frozenset() if found is None else scope.constants(found[0], _statements(found[1]))


def _functions(cursor: Cursor, before: Before) -> Iterator[Candidate]:
    """Yield the functions that a value at the cursor may call."""
    if cursor.kind not in ("word", "nothing") or "PATH" not in automaton().accepts(before.states):
        return
    found = found_by(_tongue(len(before.text)), before, f"{MARK}(", "PATH", "LPAR")
    if found is not None and found[0][-1][1] == "function":
        for each in VALUE_FUNCTIONS.values():
            yield Candidate(f"{each.name}(", "function", each.signature, plain(each.doc), match=each.name)


def _statements(items: Iterable[Any]) -> tuple[Statement, ...]:
    return tuple(item for item in items if isinstance(item, Statement))


def _commands() -> frozenset[str]:
    first = automaton()
    return frozenset(first.accepts(tuple(first.follower("program").states)))


@lru_cache(maxsize=256)
def _words_behind(before: Before) -> tuple[AllowedToken, ...]:
    """Return the words that may follow. The words are cached, because many statements begin in the same way."""
    return tuple(words(_tongue(len(before.text)), before))


def _names(scope: GaslScope, cursor: Cursor, before: Before) -> Iterator[Candidate]:
    tongue = _tongue(len(before.text))
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
    """Yield the candidates, adapted to this place: without a closing quote or brace if it already follows the cursor."""
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
