"""Completion in GASL."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from attrs import evolve

from ...gasl import Program, Statement
from ...parse.gasl.engine import Read, automaton, read
from ...parse.gasl.lines import FORMS
from ...printer.gasl import format_gasl
from ...source import Source, Span
from ..model import Completion, CompletionKind, Known
from .gasl_bindings import bindings_in
from .gasl_cursor import Cursor, before_cursor, cursor_at
from .gasl_names import GaslScope
from .place import MARK, Before, Found, Tongue, found_by, words
from .ranking import Candidate, ranked

__all__ = ["complete_gasl"]

_MARKS = {
    "IDENTIFIER": (MARK,), "PATH": (MARK, f"node.{MARK}"), "STRING": (f'"{MARK}"',), "VARIABLE": (f"${{{MARK}}}",),
}  # fmt: skip
"""How the mark is written where a name or a text stands: the four terminals of the grammar that hold one. ANY takes paths."""


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
    """Return which of TRUE, FALSE and NULL fit where a value stands; None where nothing is known of it, or none stands."""
    tongue = _tongue()
    found = found_by(tongue, before, f'"{MARK}"', "STRING")
    return None if found is None else scope.constants(found[0], _statements(found[1]))


def _statements(items: Iterable[Any]) -> tuple[Statement, ...]:
    return tuple(item for item in items if isinstance(item, Statement))


def _commands() -> frozenset[str]:
    first = automaton()
    return frozenset(first.accepts(tuple(first.follower("program").states)))


@lru_cache(maxsize=256)
def _words_behind(before: Before) -> tuple[Found, ...]:
    """Return the words that may follow; the beginnings of statements are few, and asked for again and again."""
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
    """Yield the candidates as they stand here: a quote or a brace that the editor has closed already is not closed again."""
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
