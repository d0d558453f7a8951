"""Errors raised before any GASL is run. See ``docs/design/gasl.md#errors``.

::

    ExecutionError                 the executor can't do the requested operation now
    └── ParseError                 unreadable text, or a program or plan with errors; see ``diagnostics``
        └── PlanError              a rejected plan; none of its commands was run

``ConditionError`` is in ``lang.evaluate``, ``AdapterError`` in ``adapters.graph``. A failing command raises nothing; its
record has the error.
"""

from collections.abc import Sequence

from ...lang.diagnostic import Diagnostic, compatible, has_errors, picture
from ...lang.errors import KnotworkError
from ...lang.source import Source


class ExecutionError(KnotworkError):
    """Raised if the executor can't do the requested operation now. ``hint`` suggests a fix."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ParseError(ExecutionError):
    """Raised for a program or plan with errors. ``diagnostics`` has at least one error; ``str`` shows them with their source lines."""

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source) -> None:
        first = next((each for each in diagnostics if each.severity == "error"), None)
        message = f"{source.name} has errors" if first is None else first.message
        super().__init__(message, hint=first.hints[0] if first is not None and first.hints else "")
        self.diagnostics = compatible(diagnostics)
        self.source = source

    def __str__(self) -> str:
        return "\n".join(picture(d, self.source) for d in self.diagnostics if has_errors([d]))


class PlanError(ParseError):
    """Raised for a plan that the check rejects. No part of the plan is run, and the plan is not in the history."""
