"""Faults of an expression that was read: names, functions, arguments: EXPR050 and on."""

from .rule import Rule

__all__ = ["EXPR_CHECK_RULES"]

EXPR_CHECK_RULES: tuple[Rule, ...] = ()
