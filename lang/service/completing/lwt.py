"""Completion in scripts."""

import json
import re
from collections.abc import Iterator

from attrs import evolve

from ...lwt import Call, Script
from ...parse.lwt.engine import automaton, read_script, reference_pattern
from ...printer.lwt import format_lwt
from ...source import Source, Span
from ..model import Completion, Known, Variable
from .expr import complete_expr
from .gasl import complete_gasl
from .lwt_cursor import Cursor, cursor_at
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
from .place import MARK, Tongue, Way, found_by, words
from .ranking import Candidate, ranked

__all__ = ["complete_lwt"]


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
