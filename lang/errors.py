"""The base class of all public errors."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .diagnostic import Diagnostic


class KnotworkError(Exception):
    """An error that knotwork raises on purpose. ``except knotwork.KnotworkError`` catches all such errors.

    ``message`` is one sentence. ``hint`` is advice, and may be empty. ``diagnostics`` are the faults of the refused text; they are empty
    if the error does not concern a text.
    """

    message: str
    hint: str
    diagnostics: "tuple[Diagnostic, ...]"

    def __init__(self, message: str = "", *, hint: str = "", diagnostics: "Iterable[Diagnostic]" = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.diagnostics = tuple(diagnostics)
