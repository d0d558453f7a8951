"""Rules about expressions: what the check of expressions finds, placed in the document."""

from collections.abc import Iterator

from ...diagnostic import Diagnostic
from ...evaluate.seed.needs import EXTRACTIONS
from ...seed import Aggregate, Case, Formula
from ..expr import check_expr
from .registry import Context, Lint, lint

__all__ = ["LINTS"]


@lint("EXPR050")
def expressions(context: Context) -> Iterator[Diagnostic]:
    """All that the check of expressions says. Names of later steps are known here: another rule tells the order."""
    names = (*context.names, EXTRACTIONS)
    fields = context.fields if context.has_fields and not context.unread_fields else None  # None: not all are known
    for step in context.seed.steps:
        match step:
            case Formula():
                exprs, is_row = [step.expr], False
            case Case():
                exprs, is_row = [rule.test for rule in step.rules], False
            case Aggregate() if step.element is not None:
                exprs, is_row = [step.element], True
            case _:
                continue
        for expr in exprs:
            for found in check_expr(expr, names=names, row=is_row, fields=fields):
                yield context.in_expression(found)


LINTS: tuple[Lint, ...] = (expressions,)
