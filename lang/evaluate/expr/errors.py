"""How evaluating an expression fails: one exception, with what went wrong, where, and what to do about it."""

from typing import Literal

from ...diagnostic import Diagnostic
from ...errors import KnotworkError
from ...source import NOWHERE, Span

__all__ = ["ExprError", "Kind"]

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
