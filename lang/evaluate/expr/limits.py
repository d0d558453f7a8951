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

from typing import NoReturn

import attrs
from attrs import frozen

from .errors import ExprError

__all__ = ["Limits", "Meter"]


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
