"""The names of a GASL program: variables and keys of the state."""

import re
from collections.abc import Iterator
from functools import partial

from ... import gasl
from ...conditions import Variable
from ...gasl import Item, Key, Name
from ...node import Node, walk
from ...parse.gasl.rereading import ProgramPieces
from ...printer.gasl import format_name
from ...source import Span
from .occurrence import Occurrence

__all__ = ["occurrences", "occurrences_in"]

_IN_BRACES = re.compile(r"\$\{[ \t]*(?P<name>[A-Za-z_][A-Za-z0-9_]*|`(?:[^`\r\n]|``)+`)")
_KEPT = "a key of the state keeps its name: what is kept has it"
_GIVEN = "error is what CATCH gives; it has no other name"


def occurrences(pieces: ProgramPieces) -> Iterator[Occurrence]:
    """Yield what a program names, as far as it was read."""
    for piece in pieces.parts:
        for each in piece.note("names", partial(_in, piece.text)):
            yield each.moved(piece.start)


def occurrences_in(text: str, items: tuple[Item, ...]) -> Iterator[Occurrence]:
    """Yield what the items of ``text`` name."""
    return _each(text, items, 0)


def _in(text: str, items: tuple[Item, ...], start: int) -> tuple[Occurrence, ...]:
    """Return what the items name, with places from ``start`` on, where ``text`` begins."""
    return tuple(_each(text, items, start))


def _each(text: str, items: tuple[Item, ...], start: int) -> Iterator[Occurrence]:
    for item in items:
        for node in walk(item):
            into = getattr(node, "into", None)
            for child in _own(node):
                if isinstance(child, Name):
                    fixed = _GIVEN if child.text == "error" and child is not into else ""
                    place = child.span.shift(-start)
                    yield Occurrence("variable", child.text, place, child is into, written=_name, fixed=fixed)
                elif isinstance(child, Key) and not isinstance(node, gasl.SetCommand):
                    place = child.span.shift(-start)
                    yield Occurrence("key", child.text, place, isinstance(node, gasl.Declare), fixed=_KEPT)
            if isinstance(node, Variable) and (match := _IN_BRACES.match(text, node.span.start - start)):
                yield Occurrence("variable", node.name, Span(*match.span("name")), written=_name)


def _own(node: Node) -> Iterator[Node]:
    for attribute in ("source", "left", "right", "start", "end", "key", "into"):
        child = getattr(node, attribute, None)
        if isinstance(child, Name | Key):
            yield child


def _name(name: str) -> str | None:
    try:
        return format_name(name)
    except ValueError:
        return None
