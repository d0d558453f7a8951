"""Rules about expressions: what the check of expressions finds, placed in the document."""

from collections.abc import Iterator

from ...diagnostic import Diagnostic
from ...expr import Expr
from ...seed import Aggregate, Case, Formula, SeedStep
from ..expr import check_expr
from .registry import Context, Lint, lint_of_steps

__all__ = ["LINTS"]


@lint_of_steps("EXPR050")
def expressions(context: Context, step: SeedStep) -> Iterator[Diagnostic]:
    """All that the check of expressions says. Names of later steps are known here: another rule tells the order."""
    exprs: tuple[Expr, ...]
    match step:
        case Formula():
            exprs, is_row = (step.expr,), False
        case Case():
            exprs, is_row = tuple(rule.test for rule in step.rules), False
        case Aggregate() if step.element is not None:
            exprs, is_row = (step.element,), True
        case _:
            return
    fields = context.fields if context.has_fields and not context.unread_fields else None  # None: not all are known
    for expr in exprs:
        for found in check_expr(expr, names=context.known, row=is_row, fields=fields):
            yield context.in_expression(found)


LINTS: tuple[Lint, ...] = (expressions,)
