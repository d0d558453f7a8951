"""How running GASL fails before anything is run. See ``docs/design/gasl.md#errors``.

::

    ExecutionError                 an executor was asked for what it can't do now
    └── ParseError                 a text that can't be read, or a program or plan with errors; ``diagnostics`` says which
        └── PlanError              a plan that was refused: nothing of it was run

``ConditionError`` is in ``lang.evaluate``, ``AdapterError`` in ``adapters.graph``. A command that fails raises nothing: its
record says so.
"""

from collections.abc import Sequence

from ...lang.diagnostic import Diagnostic, compatible, has_errors, picture
from ...lang.errors import KnotworkError
from ...lang.source import Source

__all__ = ["ExecutionError", "ParseError", "PlanError"]


class ExecutionError(KnotworkError):
    """An executor was asked for what it can't do now. ``hint`` says what to do instead."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ParseError(ExecutionError):
    """A text with errors. ``diagnostics`` has at least one error; ``str`` pictures the errors."""

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source) -> None:
        first = next((each for each in diagnostics if each.severity == "error"), None)
        message = f"{source.name} has errors" if first is None else first.message
        super().__init__(message, hint=first.hints[0] if first is not None and first.hints else "")
        self.diagnostics = compatible(diagnostics)
        self.source = source

    def __str__(self) -> str:
        return "\n".join(picture(d, self.source) for d in self.diagnostics if has_errors([d]))


class PlanError(ParseError):
    """A plan that was refused by the check. Nothing of it was run, and it is not in the history."""
