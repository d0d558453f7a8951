"""Is a cell right as a whole? That is asked before its first piece runs, with what those before each piece will have bound."""

from collections.abc import Sequence

from attrs import evolve

from ....lang.diagnostic import Diagnostic, has_errors, sort_key
from ....lang.parse.expr import parse_expr
from ..repl import commands
from ..repl.checking import check
from ..repl.desk import Desk
from ..repl.dots import unknown
from ..repl.outcome import NOTHING, Outcome, misused
from ..repl.reading import Piece, expression_of
from ..repl.session import meant
from ..repl.values import Values
from .cells import Cell, read
from .naming import bound_by

__all__ = ["NOT_HERE", "checked", "not_here"]

_CHANGES = frozenset({".read", ".undo"})
"""Dot commands behind which nobody knows what values there will be."""
_ELSEWHERE = {
    "output": (
        "a notebook has results in its cells, not in a file of the session", "NAME = %kw value NAME gives a value to Python",
    ),
    "quit": (
        "a cell does not end the session that it runs in", "%kw close on a line of its own ends it; variables stay",
    ),
}  # fmt: skip
"""Dot commands of the prompt that a notebook does not have: why not, and what it has instead."""

NOT_HERE = frozenset(_ELSEWHERE)
"""Their names."""


async def checked(cell: Cell, desk: Desk) -> Outcome:
    """Return what is wrong with a cell, of all its languages; done, with its warnings, where nothing is. Nothing is run."""
    pieces = _foreseen([meant(piece, desk) for piece in cell.pieces])
    orders = [piece for piece in pieces if piece.language == "gasl"]
    if orders:
        await desk.schema()
    found = sorted([*_others(cell, pieces, desk), *_program(cell, pieces, orders, desk)], key=sort_key)
    source = Piece(cell.text, "remark", cell.first_line, cell.name).source
    if has_errors(found):
        return evolve(commands.refused(found, source), hint=_meant_for(cell))
    dots = [piece for piece in pieces if piece.language == "dot"]
    fault = next((fault for piece in dots if (fault := unknown(piece.text) or not_here(piece)) is not None), None)
    if fault is None and orders and desk.adapter is None:
        fault = commands.needs_graph()
    return fault or Outcome(diagnostics=commands.warnings(found), source=source)


def _meant_for(cell: Cell) -> str:
    """Say which magic a cell with faults is for, where that is another one."""
    found = read(cell.text, None, cell.name)
    languages, is_right = (
        {piece.language for piece in found},
        any(p.language == "expr" and _is_right(p.text) for p in found),
    )
    if cell.magic == "lwt" and "gasl" in languages and "lwt" not in languages:
        return "%%gasl runs commands"
    return "%%kw runs expressions, and all else beside them" if cell.magic is not None and is_right else ""


def _is_right(text: str) -> bool:
    found = parse_expr(expression_of(text)[1])
    return found.expr is not None and not has_errors(found.diagnostics)


def not_here(piece: Piece) -> Outcome | None:
    """Return why a dot command is none of a notebook's; None where it is one."""
    if piece.language != "dot":
        return None
    name = piece.text.split(None, 1)[0].rstrip("; \t").lower().lstrip(".\\")
    return misused(*_ELSEWHERE[name]) if name in _ELSEWHERE else None


def _foreseen(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces up to the first one behind which values can't be foreseen."""
    known = []
    for piece in pieces:
        known.append(piece)
        if piece.language == "dot" and piece.text.split(None, 1)[0].lower() in _CHANGES:
            break
    return known


def _others(cell: Cell, pieces: Sequence[Piece], desk: Desk) -> list[Diagnostic]:
    """Return what is wrong with steps and expressions, each with what those before it bind."""
    found, beside = list[Diagnostic](), _beside(desk)
    for piece in pieces:
        if piece.language in ("lwt", "expr"):
            found += check(cell.only([piece], piece.language), beside).diagnostics
        _bind(piece, beside)
        if piece.language != "dot" and beside.last_value is NOTHING:
            beside.last_value = None  # an expression may name the latest value
    return found


def _program(cell: Cell, pieces: Sequence[Piece], orders: Sequence[Piece], desk: Desk) -> Sequence[Diagnostic]:
    """Return what is wrong with the commands, which are one program: they declare keys for each other."""
    if not orders:
        return ()
    beside = _beside(desk)
    for piece in pieces:
        if piece.language != "gasl":
            _bind(piece, beside)
    return check(cell.only(orders, "gasl"), beside).diagnostics


def _beside(desk: Desk) -> Desk:
    """Return a desk on which names can be bound, and the session sees nothing of it."""
    return evolve(desk, values=Values(desk.values.context.copy()))


def _bind(piece: Piece, desk: Desk) -> None:
    """Bind what a piece will bind; what it is, only running it tells."""
    for name in bound_by(piece):
        desk.values.bind(name, None)
