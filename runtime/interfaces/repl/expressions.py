"""Expressions in a session: over all values whose names an expression can say, and ``_``, the latest value."""

import asyncio
from collections.abc import Mapping
from typing import Any

from attrs import evolve

from ....lang.diagnostic import Diagnostic, has_errors
from ....lang.evaluate.expr import ExprError, evaluate
from ....lang.linter.expr import check_expr
from ....lang.parse.expr import parse_expr
from ....lang.source import Source
from ....lang.trees.expr import Expr
from .commands import counted, refused, warnings
from .desk import Desk
from .outcome import NOTHING, Outcome, Page, Table, misused
from .reading import Piece, expression_of

__all__ = ["LATEST", "checked", "names_of", "run"]

LATEST = "_"
"""The name of the latest value."""
_PAGER = "q"
_LONG = 10_000
_FROM_A_FILE = "--input FILE makes a text the value input"


def names_of(desk: Desk) -> dict[str, Any]:
    """Return the values that an expression may name."""
    found = {name: desk.values.context.get(name) for name in desk.values.names() if name.isidentifier()}
    if desk.input is not None:
        found.setdefault("input", desk.input)
    if desk.last_value is not NOTHING and not isinstance(desk.last_value, Table | Page):
        found.setdefault(LATEST, desk.last_value)
    return found


def checked(piece: Piece, desk: Desk) -> tuple[Expr | None, list[Diagnostic]]:
    """Return the expression of a piece, and what is wrong with it over the values there are."""
    source = piece.source
    read = parse_expr(Source(expression_of(source.text)[1], source.name))
    if read.expr is None or has_errors(read.diagnostics):
        return None, list(read.diagnostics)
    return read.expr, check_expr(read.expr, names=names_of(desk))


async def run(piece: Piece, desk: Desk) -> Outcome:
    """Evaluate an expression; ``name = expression`` binds its value."""
    source = piece.source
    expr, found = checked(piece, desk)
    if source.text.strip() == _PAGER and _PAGER not in names_of(desk):
        # It ends a page: who types it once too often does not want to lose all values.
        return misused(f"there is no value {_PAGER}", ".quit or Ctrl-D ends the session", ".quit")
    if has_errors(found) and any(d.code == "EXPR030" and len(source.text) > _LONG for d in found):
        found = [evolve(d, hints=(*d.hints, _FROM_A_FILE)) for d in found]
    if expr is None or has_errors(found):
        return refused(found, source)
    name, values = expression_of(source.text)[0], names_of(desk)
    try:
        # Bounded in steps, and yet it may take a part of a second; Ctrl-C is heard meanwhile.
        value = await asyncio.to_thread(lambda: evaluate(expr, values))
    except ExprError as error:
        return refused((error.diagnostic(),), source)
    told = Outcome(value=value, summary=_told(value), diagnostics=warnings(found), source=source)
    if name is None:
        return told
    desk.values.bind(name, value)
    return evolve(told, summary=f"{counted(value)} in {name}", names=(name,))


def _told(value: Any) -> str:
    return counted(value) if isinstance(value, list | Mapping) else ""
