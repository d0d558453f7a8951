"""What a program gives, for a person or for a program: the value of its last command, and the records of all."""

import sys
from collections.abc import Sequence
from typing import Any, Literal

from ....gasl.records import ExecutionRecord, last_with_value
from ..shared.exit import Exit
from ..shared.output import is_terminal, json_text, say, write

__all__ = ["code_of", "document", "failed", "show_value"]

Form = Literal["auto", "table", "json", "plain"]

_ROWS = 100
"""Rows of a table that is drawn; JSON has all."""

_CODES = {
    "success": Exit.DONE, "empty": Exit.DONE, "partial": Exit.PARTIAL, "cancelled": Exit.INTERRUPTED,
}  # fmt: skip


def failed(status: str) -> bool:
    """Say whether a plan came to no result: its last value would be taken for one."""
    return _CODES.get(status, Exit.FAILED) not in (Exit.DONE, Exit.PARTIAL)


def code_of(records: Sequence[ExecutionRecord], status: str, planned: int) -> Exit:
    """Return the exit code: an empty result at the end is a result; one that left commands undone is a failure."""
    if status == "empty" and len(records) < planned:
        return Exit.FAILED
    return _CODES.get(status, Exit.FAILED)


def show_value(records: Sequence[ExecutionRecord], form: Form) -> None:
    """Write the value of the last command that has one to stdout: a table on a terminal, JSON in a pipe."""
    record = last_with_value(records)
    if record is None:
        return
    value = record.value
    if form == "table" or (form == "auto" and is_terminal(sys.stdout)):
        from ..shared.tables import drawn

        rows = list(value[:_ROWS]) if _is_long(value) else value
        table = drawn(rows, any_value=True)
        if table is not None:
            print(table, end="")
            if _is_long(value) and len(value) > _ROWS:
                say(f"and {len(value) - _ROWS:,} more; --format json has them all")
            return
    if isinstance(value, str) and form != "json":
        write(value)
    else:
        write(json_text(value))


def _is_long(value: Any) -> bool:
    return isinstance(value, list)


def document(
    records: Sequence[ExecutionRecord], status: str, state_hash: str, diagnostics: Sequence[Any]
) -> dict[str, Any]:
    """Return the JSON document of ``--format json``: status, the last value, every record without its value."""
    last = last_with_value(records)
    return {
        "status": status,
        "value": None if last is None else last.value,
        "variable": None if last is None else last.variable,
        "commands": [_record(record) for record in records],
        "state": state_hash,
        "diagnostics": list(diagnostics),
    }


def _record(record: ExecutionRecord) -> dict[str, Any]:
    return {
        "step": record.label,
        "command": record.command,
        "why": record.why,
        "status": record.status,
        "seconds": record.duration,
        "summary": dict(record.summary),
        "metrics": dict(record.metrics),
        "provenance_summary": dict(record.provenance_summary),
        "error": None if record.error is None else dict(record.error),
        "variable": record.variable,
        "commands": [_record(inner) for inner in record.nested],
    }
