"""Checks an expression before it is evaluated: its names, functions and arguments, and constructs that are probably mistakes.

The module ``names`` contains the lints about names and calls. The module ``values`` contains the lints about values. The module
``expression_context`` provides the input of the lints. To add a lint, write a function with the decorator ``lint`` in one of the modules,
and a rule in ``lang.catalogue.rules``.
"""

from collections.abc import Collection, Mapping

from ...diagnostic import Diagnostic, sort_key
from ...evaluate.expr.values import Limits
from ...evaluate.seed.interpreter import META_KEYS
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
    meta: Collection[str] = META_KEYS,
) -> list[Diagnostic]:
    """Return the diagnostics of ``expr`` in source order. Spans and edits refer to the text of the expression.

    ``names`` are the values that the expression may use, ``fields`` are the extracted fields, and ``context_keys`` are the keys of the
    context. Each of these parameters is None if it is unknown. ``meta`` are the keys of a review's metadata. If ``row`` is true, the
    expression is evaluated for each extraction, so ``extraction.`` and ``meta.`` have a value. Faults in the expression never raise an
    exception.
    """
    most = Limits().nesting
    if depth(expr) > most:
        return [Diagnostic("EXPR090", "error", f"the expression is nested more than {most} levels deep")]
    context = Context(expr, names, row, fields, context_keys, meta)
    return sorted(lint.run(context), key=sort_key)
