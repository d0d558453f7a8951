"""Evaluation of conditions: an interpreter as the reference, and a code generator. See ``docs/design/gasl.md#conditions``."""

from .comparison import ConditionError, compare, identity, length, look_up, sort_key
from .generator import Predicate, Reader, compiled
from .interpreter import Bound, Unbound, bind, evaluate, matches, simplified

__all__ = [
    "Bound", "ConditionError", "Predicate", "Reader", "Unbound", "bind", "compare", "compiled", "evaluate", "identity",
    "length", "look_up", "matches", "simplified", "sort_key",
]  # fmt: skip
