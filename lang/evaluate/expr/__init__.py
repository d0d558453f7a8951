"""What an expression means: an interpreter with limits as the reference, and a code generator. See ``docs/design/seed.md#expressions``."""

from .costs import clause_costs, weight
from .equality import equal
from .errors import ExprError
from .interpreter import evaluate
from .limits import Limits, Meter
from .results import checked_result
from .values import truth

__all__ = ["ExprError", "Limits", "Meter", "checked_result", "clause_costs", "equal", "evaluate", "truth", "weight"]
