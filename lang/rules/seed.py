"""Faults and remarks of a Formula Seed."""

from .rule import Rule

__all__ = ["SEED_RULES"]

SEED_RULES: tuple[Rule, ...] = ()
