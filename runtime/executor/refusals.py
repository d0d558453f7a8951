"""What becomes of a command or a plan that the check refuses: a record that a model or a person can put right."""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from ...lang.diagnostic import Diagnostic, all_as_json
from ...lang.source import Source
from ...lang.trees.gasl import Program, written
from ..records import ExecutionRecord, ExecutionResult, Status, cut
from .errors import PlanError
from .recording import Clock, Place, recorded

__all__ = ["produced", "refusal", "refused_plan"]

_STATUSES: Mapping[str, Status] = {
    **dict.fromkeys(("GASL050", "GASL051", "GASL055"), "binding_failure"),
    **dict.fromkeys(("GASL056", "GASL057", "GASL058", "GASL059", "GASL073"), "schema_mismatch"),
}
"""What the command would have ended with, by the rule that refuses it."""


def refusal(diagnostics: Sequence[Diagnostic], source: Source) -> ExecutionResult:
    """Return the result of a command that was not run: the first error, with its hints."""
    first = next(d for d in diagnostics if d.severity == "error")
    status = _STATUSES.get(first.code, "error")
    return ExecutionResult(status, message=first.message, hint="; ".join(first.hints), diagnostic=first)


def produced(program: Program) -> str | None:
    """Return the variable that the program's only command would have bound."""
    for statement in program.statements[:1]:
        for name in written(statement.command):
            return name.text
    return None


def refused_plan(error: PlanError, plan: Any) -> ExecutionRecord:
    """Return a record for a plan that was refused, with every diagnostic in its ``error``."""
    source = error.source
    result = ExecutionResult("error", message=error.message, hint="put the plan right and send it again")
    record = recorded(Place("", 0, "", cut(source.text or str(plan), 2_000), None), Clock.start(), result)
    found = all_as_json(error.diagnostics, source)
    return evolve(record, error={**(record.error or {}), "diagnostics": found})
