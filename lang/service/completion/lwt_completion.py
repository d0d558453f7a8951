"""Completion in scripts."""

import json
import re
from collections.abc import Iterator
from typing import Literal

from attrs import evolve, frozen

from ...parse.lookahead import Met
from ...parse.lwt.engine import automaton, follow, read_script, reference_pattern
from ...parse.lwt.shapes import HEAD, ID
from ...printer.lwt import format_lwt
from ...source import Source, Span
from ...trees.lwt import Call, Script
from ..model import Completion, Known, Variable
from .expr_completion import complete_expr
from .gasl_completion import complete_gasl
from .lwt_names import (
    accessors,
    embedded_in,
    heads,
    kind_at,
    may_begin,
    named,
    numbers_for,
    references,
    strings_for,
    takes_references,
)
from .place import MARK, Before, Candidate, Tongue, Way, found_by, ranked, words

__all__ = ["complete_lwt"]


# Where the cursor stands in a script: in a head, a reference, a string, a word; and the step around it, without the others.


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


def complete_lwt(source: Source, offset: int, known: Known) -> tuple[Completion, ...]:
    """See ``service.complete``."""
    text = source.text
    cursor = cursor_at(text, offset)
    if cursor is None:
        return ()
    match cursor.kind:
        case "head":
            found: Iterator[Candidate] = heads(text)
        case "reference":
            found = _closed(_references(text, cursor, known), text, offset, ")}")
        case "accessor":
            inner = accessors(text, cursor.of, cursor.way, known, cursor.quote)
            found = _closed(inner, text, offset, "]")
        case "string":
            if inner_ones := _embedded(text, offset, cursor, known):
                return inner_ones
            found = _strings(text, offset, cursor, known)
        case "word":
            found = _words(text, cursor, known)
    return ranked(found, cursor.typed, Span(cursor.begin, offset))


def _tongue() -> Tongue:
    return Tongue(automaton(), read_script, lambda items: format_lwt(Script(tuple(items))), blank="")


def _closed(candidates: Iterator[Candidate], text: str, offset: int, closing: str) -> Iterator[Candidate]:
    """Yield the candidates without what the editor has closed already."""
    there = next((closing[at:] for at in range(len(closing)) if text.startswith(closing[at:], offset)), "")
    for each in candidates:
        said = each.text.removesuffix(there) if there else each.text
        yield evolve(each, text=said, match=each.compared)


def _references(text: str, cursor: Cursor, known: Known) -> Iterator[Candidate]:
    found = found_by(_tongue(), cursor.before, f"{{({MARK})}}", "REFERENCE")
    if found is None or not takes_references(found[0], known):
        return
    calls = [node for node, _ in found[0] if isinstance(node, Call)]
    own = cursor.before.text[1 : cursor.before.text.find(")")]
    yield from references(text, known, own, len(calls) > 1, cursor.begin)


def _strings(text: str, offset: int, cursor: Cursor, known: Known) -> Iterator[Candidate]:
    way = _in_string(cursor)
    if way is None:
        return
    closing = "" if text.startswith(cursor.quote, offset) else cursor.quote
    for each in strings_for(way, known):
        if not set(each) & set("\"'\\{\n"):
            yield Candidate(f"{cursor.quote}{each}{closing}", "value", match=each)


def _embedded(text: str, offset: int, cursor: Cursor, known: Known) -> tuple[Completion, ...]:
    """Return what may stand in a string that is a program or an expression.

    Nothing behind an escape, or in a program behind a reference: what such a string says is not what stands in it.
    """
    typed = cursor.typed
    found = _in_string(cursor)
    if found is None or "\\" in typed:
        return ()
    language, names = embedded_in(found, text, offset, known)
    if language == "expr":  # a reference is a name there
        typed = re.sub(reference_pattern(), lambda match: "r" * len(match[0]), typed)
    if "{(" in typed:
        return ()
    inner: tuple[Completion, ...] = ()
    if language == "gasl":
        inner = complete_gasl(Source(typed), len(typed), evolve(known, variables={}))
    elif language == "expr":
        inner = complete_expr(Source(typed), len(typed), Known(variables=dict.fromkeys(names, Variable())))
    begin = cursor.begin + len(cursor.quote)
    fitting = [each for each in inner if not set(each.text) & {cursor.quote[0], "\\", "{"}]
    if kind_at(found, known) == "condition" and any(each.kind == "function" for each in fitting):
        # Where a function may stand, so may a value; that of a step is all that a condition can name.
        own = cursor.before.text[1 : cursor.before.text.find(")")]
        values = references(text, known, own, False, cursor.begin)
        fitting[:0] = ranked(values, text[begin + fitting[0].span.start : offset], fitting[0].span)
    return tuple(evolve(each, span=each.span.shift(begin), rank=rank) for rank, each in enumerate(fitting))


def _in_string(cursor: Cursor) -> Way | None:
    terminal = next(name for name, said in automaton().spellings.items() if said == (cursor.quote,))
    found = found_by(_tongue(), cursor.before, f"{cursor.quote}{MARK}{cursor.quote}", *_string(terminal))
    return found[0] if found is not None else None


def _string(terminal: str) -> tuple[str, ...]:
    return terminal, "SINGLE_TEXT" if "SINGLE" in terminal else "DOUBLE_TEXT", terminal


def _words(text: str, cursor: Cursor, known: Known) -> Iterator[Candidate]:
    tongue, before = _tongue(), cursor.before
    accepted = tongue.automaton.accepts(before.states)
    if "NAME" in accepted:
        for written, terminals in (
            (MARK, ("NAME",)),
            (f"{MARK}(", ("NAME", "_OPEN")),
            (f"{MARK}=", ("NAME", "_EQUALS")),
        ):
            found = found_by(tongue, before, written, *terminals)
            if found is not None:
                yield from named(found[0], known)
    if "DOUBLE" in accepted:
        found = found_by(tongue, before, f'"{MARK}"', *_string("DOUBLE"))
        for each in strings_for(found[0], known) if found else ():
            yield Candidate(json.dumps(each, ensure_ascii=False), "value", match=each)
    if "REFERENCE" in accepted:
        yield from _references(text, cursor, known)
    if not cursor.typed:
        kind = None
        if "DOUBLE" in accepted and found is not None:
            kind = kind_at(found[0], known)
            yield from numbers_for(found[0], known)
        for found_word in words(tongue, before):
            if found_word.terminal not in ("BRACE", "BACKSLASH") and may_begin(found_word.text, kind):
                yield Candidate(found_word.text, "punctuation")
