"""How running GASL fails before anything is run. Seed 003, ``errors.py``.

::

    ExecutionError                 an executor was asked for what it can't do now
    └── ParseError                 a text that can't be read, or a program or plan with errors; ``diagnostics`` says which
        └── PlanError              a plan that was refused: nothing of it was run

``ConditionError`` is in ``lang.evaluate``, ``AdapterError`` in ``adapters.graph``. A command that fails raises nothing: its
record says so.
"""

from collections.abc import Sequence

from ...lang.diagnostic import Diagnostic, has_errors, picture
from ...lang.source import Source

__all__ = ["ExecutionError", "ParseError", "PlanError"]


class ExecutionError(Exception):
    """An executor was asked for what it can't do now. ``hint`` says what to do instead."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ParseError(ExecutionError):
    """A text with errors. ``diagnostics`` has at least one error; ``str`` pictures the errors."""

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source) -> None:
        super().__init__(next((d.message for d in diagnostics if d.severity == "error"), f"{source.name} has errors"))
        self.diagnostics = tuple(diagnostics)
        self.source = source

    def __str__(self) -> str:
        return "\n".join(picture(d, self.source) for d in self.diagnostics if has_errors([d]))


class PlanError(ParseError):
    """A plan that was refused by the check. Nothing of it was run, and it is not in the history."""
