"""Evaluation of expressions: an interpreter as the reference, and a code generator. See ``docs/design/seed.md#expressions``."""

from .comparison import equal
from .interpreter import evaluate
from .values import ExprError, Limits, Meter, checked_result, clause_costs, truth, weight

__all__ = ["ExprError", "Limits", "Meter", "checked_result", "clause_costs", "equal", "evaluate", "truth", "weight"]
