"""Text to the tree of an expression: ``parse_expr``.

The rooms, in the order a text passes them: ``engine`` (Lark, the grammar and its cache), ``builder``, ``chains`` and
``literals`` (nodes from tokens). A text that Lark or the builder refuses is read again by the ``tolerant`` reading, which takes
what people and models write instead, and writes the expression anew by ``lang.printer.expr_printer``. ``words`` has the tables of both.
"""

from attrs import frozen

from ...diagnostic import Diagnostic
from ...source import Source, Span
from ...trees.expr import Expr
from .engine import MAX_LENGTH, Failure, read

__all__ = ["ExprRead", "parse_expr"]


# Reading an expression. Nothing here raises for what a text says.


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
        from .recovery.diagnosis import explain

        return ExprRead(None, explain(text, found), source)
    return ExprRead(found, (), source)
