"""Checks an expression before it is evaluated: names, functions and their arguments, and what can't be meant.

Rooms by subject: ``names``, ``calls``, ``values``; ``registry`` is what a rule is given. A new rule is a function in one of
the rooms, its entry in that room's ``LINTS`` and in ``lang.rules``.
"""

from collections.abc import Collection, Mapping

from ...diagnostic import Diagnostic, sort_key
from ...evaluate.expr.values import Limits
from ...parse.expr.engine import depth
from ...trees.expr import Expr
from ...trees.seed import Extracted
from . import names as calls
from . import names as naming
from . import values
from .expression_context import Context, Lint

__all__ = ["LINTS", "check_expr"]

LINTS: tuple[Lint, ...] = (*naming.LINTS, *calls.CALL_LINTS, *values.LINTS)
"""All rules."""


def check_expr(
    expr: Expr,
    *,
    names: Collection[str] | None,
    row: bool = False,
    fields: Mapping[str, Extracted] | None = None,
    context_keys: Collection[str] | None = None,
) -> list[Diagnostic]:
    """Return what is wrong with ``expr``, in the order of place; spans and edits are in its text.

    ``names`` are the values it may name, ``fields`` the extracted fields, ``context_keys`` what the context has, each None
    where nothing is known of them. ``row``: it is evaluated for each extraction, so that ``extraction.`` and ``meta.`` stand
    for something. Never raises for what the expression says.
    """
    most = Limits().nesting
    if depth(expr) > most:
        return [Diagnostic("EXPR090", "error", f"the expression nests more than {most} levels deep")]
    context = Context(expr, names, row, fields, context_keys)
    return sorted([found for rule in LINTS for found in rule.find(context)], key=sort_key)
