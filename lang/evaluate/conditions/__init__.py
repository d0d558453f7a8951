"""What conditions mean: an interpreter as the reference, and a code generator for speed. See ``docs/design/gasl.md#conditions``."""

from .binding import Bound, Unbound, bind
from .comparing import compare
from .errors import ConditionError
from .generator import Reader, compiled
from .interpreter import evaluate, matches
from .predicate import Predicate
from .simplify import simplified
from .values import identity, length, look_up, sort_key

__all__ = [
    "Bound", "ConditionError", "Predicate", "Reader", "Unbound", "bind", "compare", "compiled", "evaluate", "identity",
    "length", "look_up", "matches", "simplified", "sort_key",
]  # fmt: skip
