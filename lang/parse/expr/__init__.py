"""Parse an expression with ``parse_expr``.

Modules: ``engine`` (Lark, the grammar and its cache), ``builder`` (nodes from tokens, tables of words). If Lark or the builder
refuses a text, the tolerant parser in ``recovery`` reads it again. That parser accepts mistakes that people and models often make,
and uses ``lang.printer.expr_printer`` to write corrected expressions.
"""

from attrs import frozen

from ...diagnostic import Diagnostic
from ...source import Source, Span
from ...trees.expr import Expr
from .engine import MAX_LENGTH, Failure, read

__all__ = ["ExprRead", "parse_expr"]


# The expression parser. It never raises an error for faulty text.


@frozen
class ExprRead:
    """Result of a parse: the tree, or None and the faults. Spans refer to ``source``."""

    expr: Expr | None
    diagnostics: tuple[Diagnostic, ...]
    source: Source


def parse_expr(source: Source | str) -> ExprRead:
    """Parse a text that consists of one expression. Spaces and line breaks are ignored."""
    source = Source(source) if isinstance(source, str) else source
    text = source.text
    if len(text) > MAX_LENGTH:
        message = f"the expression has {len(text):,} characters, more than the maximum of {MAX_LENGTH:,}"
        return ExprRead(None, (Diagnostic("EXPR030", "error", message, Span(0, 1)),), source)
    found = read(text)
    if isinstance(found, Failure):
        from .recovery.diagnosis import explain

        return ExprRead(None, explain(text, found), source)
    return ExprRead(found, (), source)
