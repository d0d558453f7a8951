"""Evaluation of conditions: an interpreter as the reference, and a code generator. See ``docs/design/gasl.md#conditions``."""

from .comparison import ConditionError, compare, dotted, identity, length, look_up, order_key, sort_key
from .generator import Predicate, compiled, value_function
from .interpreter import Unbound, bind, bind_value, evaluate, matches, simplified
from .value_generator import Reader
from .values import Mismatch, Tally, counted, kept

__all__ = [
    "ConditionError", "Mismatch", "Predicate", "Reader", "Tally", "Unbound", "bind", "bind_value", "compare", "compiled", "counted",
    "dotted", "evaluate", "identity", "kept", "length", "look_up", "matches", "order_key", "simplified", "sort_key", "value_function",
]  # fmt: skip
