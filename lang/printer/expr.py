"""The canonical text of an expression: reading it gives the same tree, and printing that gives the same text."""

from ..parse.expr.written import format_expr

__all__ = ["format_expr"]
