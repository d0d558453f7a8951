"""The names of a script: its steps, what references name, and the variables of the programs and expressions in its strings."""

import re
from collections.abc import Iterator
from functools import partial

from ...gasl import Program
from ...lwt import RESERVED, Comment, Step, references
from ...parse.expr import parse_expr
from ...parse.gasl import parse_gasl
from ...parse.lwt.rereading import ScriptPieces
from ...parse.lwt.shapes import ID
from ...parse.moving import move
from ...source import Source, Span
from . import expr, gasl
from .inside import Inside, insides_of
from .occurrence import Occurrence

__all__ = ["occurrences"]


def occurrences(pieces: ScriptPieces) -> Iterator[Occurrence]:
    """Yield what a script names, as far as it was read."""
    for piece in pieces.parts:
        for each in piece.note("names", partial(_in, piece.text)):
            yield each.moved(piece.start)


def _in(text: str, items: tuple[Step | Comment, ...], start: int) -> tuple[Occurrence, ...]:
    """Return what the items name, with places from ``start`` on, where ``text`` begins."""
    found: list[Occurrence] = []
    for step in items:
        if isinstance(step, Comment):
            continue
        place = step.span.start + 1 - start
        found.append(Occurrence("step", step.id, Span(place, place + len(step.id)), True, written=_id))
        for reference in references(step):
            place, name = reference.span.start + 2 - start, reference.name
            fixed = f"{name} is not a step" if name in RESERVED else ""
            found.append(Occurrence("step", name, Span(place, place + len(name)), written=_id, fixed=fixed))
        if "GASL" in text or "EXPR" in text:
            (own,) = move((step,), -start)
            for inside in insides_of(own, text):
                found += _program(inside) if inside.language == "gasl" else _expression(inside)
    return tuple(found)


def _program(inside: Inside) -> Iterator[Occurrence]:
    program: Program = parse_gasl(Source(inside.text))
    for each in gasl.occurrences_in(inside.text, program.items):
        if (place := inside.outside(each.span)) is not None:
            yield each._replace(span=place, scope=inside.span.start + 1)


def _expression(inside: Inside) -> Iterator[Occurrence]:
    """Yield the names of an expression: an option says what one holds, and its name is one and the same."""
    own = inside.call.span.start + 1
    for option in inside.given:
        start = option.span.start
        yield Occurrence("variable", option.name, Span(start, start + len(option.name)), True, own)
    tree = parse_expr(inside.text).expr
    for each in expr.occurrences(tree, inside.text) if tree is not None else ():
        if (place := inside.outside(each.span)) is not None:
            yield each._replace(span=place, scope=inside.span.start + 1 + each.scope if each.scope else own, fixed="")


def _id(name: str) -> str | None:
    return name if re.fullmatch(ID, name) and name not in RESERVED else None
