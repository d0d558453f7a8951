"""Faults of an expression's text: EXPR001 to EXPR049."""

from .rule import Rule

__all__ = ["EXPR_RULES"]

EXPR_RULES: tuple[Rule, ...] = ()
