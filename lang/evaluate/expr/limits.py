"""What an evaluation may cost, and the meter that counts it. Interpreter and generated code charge the same.

What is charged, in steps:

- an iteration of a comprehension's clause: 1 + the ``weight`` of what it evaluates (see ``costs``);
- a function, an operator, a slice or ``in`` over n elements of a list, set or object: n // 8 (a set or object that is
  built: n // 4; sorting: n * log2(n) // 32 more), and over n characters: n // 256, twice that
  to look for a string in it. A generator's elements were charged as
  iterations, and cost no more; of strings in a list that is sorted, compared or made a set, all characters count;
- a string, a list, a set or an object that a function or an operator makes: 1 more;
- comparing two lists or objects, at every level: 12, and their elements; a list in a set: 6, and 1 an element;
- copying the result: half a step an element of a list, 2 a key of an object.

Names, literals, arithmetic and comparisons of numbers, ``len``, a key and an index cost nothing of their own: outside of
comprehensions a text is too short for it to matter.

In bytes (``memory``), estimated from above: a string 50 and 1 or 4 a character, a list 56 and 8 an element, a set or object
90 an element. What is thrown away again is not given back.
"""

from typing import Literal, NoReturn

import attrs
from attrs import frozen

from ...diagnostic import Diagnostic
from ...errors import KnotworkError
from ...source import NOWHERE, Span
from ...trees.expr import Comprehension, DictDisplay, Expr, ListDisplay, TupleDisplay
from ...trees.node import walk

__all__ = ["ExprError", "Kind", "Limits", "Meter", "clause_costs", "weight"]


# How evaluating an expression fails: one exception, with what went wrong, where, and what to do about it.


Kind = Literal["division", "type", "name", "key", "index", "value", "limit", "overflow", "result"]
"""What went wrong: ``limit`` is a limit of the host, ``result`` a value that is none of JSON, the others are of the data."""


class ExprError(KnotworkError):
    """An expression that can't be evaluated with these values. See ``docs/design/seed.md#expressions``.

    ``message`` is one sentence with the operands, shortened; ``hint`` says what to do, or is empty; ``span`` is the place
    in the expression's text, None until the interpreter knows it.
    """

    def __init__(self, kind: Kind, message: str, *, hint: str = "", span: Span | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint
        self.span = span

    def diagnostic(self) -> Diagnostic:
        """Return the error as a diagnostic, for a picture with a caret."""
        span = None if self.span == NOWHERE else self.span
        return Diagnostic("EXPR090", "error", self.message, span, (self.hint,) if self.hint else ())


@frozen
class Limits:
    """The most that an expression may be and cost."""

    source: int = 10_000
    """Characters of its text."""
    nesting: int = 100
    """Levels of its tree, and of a value that is compared or returned."""
    steps: int = 1_000_000
    """See the module's docstring."""
    size: int = 1_000_000
    """Characters of a string, elements of a list, a set or an object, that the expression makes."""
    bits: int = 1_024
    """Of an integer inside an expression; one of a result has 64."""
    memory: int = 100_000_000
    """Bytes of all strings, lists, sets and objects that the expression makes."""


@attrs.define(eq=False)
class Meter:
    """Counts down what one evaluation, or one seed's whole compute, may still cost.

    Hot code may write ``meter.left -= n`` and call ``spent`` when that is below 0; all else calls the methods, which raise
    ``ExprError`` of kind "limit".
    """

    limits: Limits = Limits()
    left: int = attrs.field(init=False)
    """Steps that may still be taken."""
    room: int = attrs.field(init=False)
    """Bytes that may still be made."""

    def __attrs_post_init__(self) -> None:
        self.left = self.limits.steps
        self.room = self.limits.memory

    def step(self, steps: int = 1) -> None:
        """Take ``steps``."""
        self.left -= steps
        if self.left < 0:
            self.spent()

    def spent(self) -> NoReturn:
        """Raise the error for too many steps."""
        raise ExprError(
            "limit",
            f"the expression takes more than {self.limits.steps:,} steps",
            hint="go through fewer elements, or through one list only",
        )

    def elements(self, count: int) -> None:
        """Charge for going through ``count`` elements."""
        self.step(count >> 3)

    def characters(self, count: int) -> None:
        """Charge for going through ``count`` characters."""
        self.step(count >> 8)

    def hold(self, size: int) -> None:
        """Charge for ``size`` bytes of memory."""
        self.room -= size
        if self.room < 0:
            raise ExprError("limit", f"the expression makes values of more than {self.limits.memory:,} bytes in all")

    def sized(self, count: int, what: str) -> None:
        """Refuse ``what`` ("a list", "a text") of more elements or characters than ``size``."""
        if count > self.limits.size:
            parts = "characters" if what == "a text" else "elements"
            raise ExprError("limit", f"the expression makes {what} of more than {self.limits.size:,} {parts}")

    def make_list(self, count: int) -> None:
        """Charge for making a list of ``count`` elements out of what is there; call it before."""
        self._make("a list", count, count >> 3, 56 + 8 * count)

    def make_text(self, length: int, *, wide: bool) -> None:
        """Charge for making a string; call it before where the length is known. ``wide``: not only ASCII."""
        self._make("a text", length, length >> 8, 50 + (4 * length if wide else length))

    def make_table(self, count: int, what: str) -> None:
        """Charge for making a set or an object ("a set", "an object") of ``count`` elements."""
        self._make(what, count, count >> 2, 100 + 90 * count)

    def _make(self, what: str, count: int, steps: int, size: int) -> None:
        self.left -= 1 + steps
        self.room -= size
        if count > self.limits.size or self.left < 0 or self.room < 0:
            self.sized(count, what)
            self.step(0)
            self.hold(0)


# What a comprehension costs, known from the tree alone: the nodes that an iteration evaluates. Nothing here recurses.


_MADE = (ListDisplay, TupleDisplay, DictDisplay)


def weight(expr: Expr) -> int:
    """Return how many nodes evaluating ``expr`` visits at most: of a comprehension itself and its first iterable only.

    The rest of a comprehension is charged by its own iterations. A list or an object that is written out counts twice: it is
    made, which takes longer than to look at a node.
    """
    total, left = 0, [expr]
    while left:
        for node in walk(left.pop(), lambda node: not isinstance(node, Comprehension)):
            total += 2 if isinstance(node, _MADE) else 1
            if isinstance(node, Comprehension):
                left.append(node.clauses[0].iterable)
    return total


def clause_costs(comprehension: Comprehension) -> tuple[int, ...]:
    """Return, for each clause, the steps that one iteration of it costs.

    1, and the weight of its conditions, and that of the next clause's iterable or, of the innermost, of the element.
    """
    clauses = comprehension.clauses
    following = [*(clause.iterable for clause in clauses[1:]), comprehension.element]
    return tuple(
        1 + sum(map(weight, clause.conditions)) + weight(then) for clause, then in zip(clauses, following, strict=True)
    )
