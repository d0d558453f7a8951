"""What a program gives, for a person or for a program: the value of its last command, and the records of all."""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from attrs import define, field

from ....lang.diagnostic import printable
from ...events import (
    BudgetReached,  # fmt: skip
    CallFinished,  # fmt: skip
    CallRetried,  # fmt: skip
    CommandFinished,  # fmt: skip
    CommandStarted,  # fmt: skip
    Event,  # fmt: skip
    PlanStarted,  # fmt: skip
    Warned,  # fmt: skip
)
from ...gasl.records import ExecutionRecord, last_with_value
from .shared.inputs import reached
from .shared.output import Exit, colour, is_terminal, json_text, paint, say, write

__all__ = ["STYLES", "CommandLines", "code_of", "document", "failed", "show_value"]

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
        from .shared.tables import drawn

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


# What a person sees while a program runs: a line a command, as it ends, and a note where a model is asked.


STYLES = {"success": "green", "empty": "yellow", "partial": "yellow", "cancelled": "yellow"}
"""The colour of a command's status; one that is not named here is an error's."""
_LONGEST = 96


@define
class CommandLines:
    """A line for each command that ends, on stderr. Commands inside others are set in."""

    _commands: dict[tuple[str, str], str] = field(factory=dict)  # by plan and number: branches number theirs alike
    _totals: dict[str, int] = field(factory=dict)
    _done: Counter[str] = field(factory=Counter)
    _asked: int = 0

    def __call__(self, event: Event) -> None:
        """Show one event."""
        match event:
            case PlanStarted():
                self._totals[event.plan], self._done[event.plan] = event.commands, 0
            case CommandStarted():
                self._commands[event.plan, event.step] = event.command
                self._asked = 0
            case CommandFinished():
                self._finished(event)
            case CallFinished():
                self._asked += 1
                if self._asked % 25 == 0:
                    self.note(f"  {self._asked} answers so far")
            case CallRetried():
                self.note(f"  asked again ({event.attempt}): {event.reason}")
            case BudgetReached():
                self.note(f"  {reached(event)}")
            case Warned():
                self.note(f"warning: {event.message}")
            case _:
                pass

    def note(self, text: str) -> None:
        """Print a line."""
        say(printable(text))
        sys.stderr.flush()

    def _finished(self, event: CommandFinished) -> None:
        text = " ".join(self._commands.pop((event.plan, event.step), "").split())
        depth = event.step.count(".")
        total = self._totals.get(event.plan, 0)
        if not depth:
            self._done[event.plan] += 1
        place = f"[{self._done[event.plan]}/{total}] " if total and not depth else "  " * (depth + 1)
        shown = printable(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")
        count = f" {event.count:,}" if event.count is not None else ""
        status = paint(event.status, STYLES.get(event.status, "red"), colour(sys.stderr))
        say(f"{place}{shown} → {status}{count} in {event.seconds:.2f} s")
        if event.message:
            say(f"{'  ' * (depth + 2)}{printable(event.message)}")
        sys.stderr.flush()
