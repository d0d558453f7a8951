"""Reading an expression. Nothing here raises for what a text says."""

from attrs import frozen

from ...diagnostic import Diagnostic
from ...expr import Expr
from ...source import Source, Span
from .engine import MAX_LENGTH, Failure, read

__all__ = ["ExprRead", "parse_expr"]


@frozen
class ExprRead:
    """What was read: the tree, or None and why not. Spans are in ``source``."""

    expr: Expr | None
    diagnostics: tuple[Diagnostic, ...]
    source: Source


def parse_expr(source: Source | str) -> ExprRead:
    """Read the one expression that is the whole text; blanks and line breaks around and between mean nothing."""
    source = Source(source) if isinstance(source, str) else source
    text = source.text
    if len(text) > MAX_LENGTH:
        message = f"the expression has {len(text):,} characters; {MAX_LENGTH:,} is the most"
        return ExprRead(None, (Diagnostic("EXPR030", "error", message, Span(0, 1)),), source)
    found = read(text)
    if isinstance(found, Failure):
        from .tolerant.recover import explain

        return ExprRead(None, explain(text, found), source)
    return ExprRead(found, (), source)
