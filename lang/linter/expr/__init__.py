"""Checks of an expression before it is evaluated: names, functions and their arguments, and unintended constructs.

The module ``names`` has the lints about names and calls, ``values`` the lints about values; ``expression_context`` has the input
of the lints. To add a lint, write a function with the decorator ``lint`` in one of the modules, and a rule in
``lang.catalogue.rules``.
"""

from collections.abc import Collection, Mapping

from ...diagnostic import Diagnostic, sort_key
from ...evaluate.expr.values import Limits
from ...parse.expr.engine import depth
from ...trees.expr import Expr
from ...trees.seed import Extracted
from . import names as naming  # noqa: F401  # they register their lints
from . import values  # noqa: F401
from .expression_context import Context, lint

__all__ = ["check_expr"]


def check_expr(
    expr: Expr,
    *,
    names: Collection[str] | None,
    row: bool = False,
    fields: Mapping[str, Extracted] | None = None,
    context_keys: Collection[str] | None = None,
) -> list[Diagnostic]:
    """Return the diagnostics of ``expr`` in source order. Spans and edits refer to the text of the expression.

    ``names`` are the values that the expression may name, ``fields`` are the extracted fields, and ``context_keys`` the keys of the
    context; each is None if unknown. ``row``: the expression is evaluated for each extraction, so that ``extraction.`` and
    ``meta.`` have a value. Never raises for faults in the expression.
    """
    most = Limits().nesting
    if depth(expr) > most:
        return [Diagnostic("EXPR090", "error", f"the expression is nested more than {most} levels deep")]
    context = Context(expr, names, row, fields, context_keys)
    return sorted(lint.run(context), key=sort_key)
