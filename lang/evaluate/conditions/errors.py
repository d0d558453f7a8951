"""How evaluating a condition fails."""

from ...errors import KnotworkError

__all__ = ["DEEPEST", "ConditionError", "too_deep"]

DEEPEST = 200
"""Levels of a condition or a value that are followed; far below Python's limit of frames."""


class ConditionError(KnotworkError):
    """A condition that can't be evaluated: a pattern that is none, a variable without a value, too much nesting.

    See ``docs/design/gasl.md#errors``. ``hint`` says what to do.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def too_deep(what: str) -> ConditionError:
    """Return the error for a condition or a value that nests deeper than ``DEEPEST``."""
    return ConditionError(f"{what} nests more than {DEEPEST} levels deep")
