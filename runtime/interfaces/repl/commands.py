"""GASL's commands in a session: checked with all that is known, run by the executor, one commit each."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from ....lang.diagnostic import Diagnostic, has_errors
from ....lang.parse.gasl import parse_gasl
from ....lang.source import Source
from ....lang.trees.gasl import Program
from ...gasl.records import ExecutionRecord, last_with_value
from .desk import Desk
from .outcome import NOTHING, Outcome, Status
from .reading import Piece

__all__ = ["checked", "counted", "needs_graph", "refused", "run", "warnings"]

_STATUSES: Mapping[str, Status] = {
    "success": "done", "empty": "empty", "partial": "partial", "cancelled": "cancelled",
}  # fmt: skip


def checked(piece: Piece, desk: Desk) -> tuple[Program, list[Diagnostic]]:
    """Return the program of a piece and what is wrong with it, with all that is known here. Nothing is run."""
    program = parse_gasl(piece.source)
    if has_errors(program.diagnostics) or desk.executor is None:
        return program, list(program.diagnostics)
    return program, desk.executor.checks(program, alone=True)


async def run(piece: Piece, desk: Desk, cancel: asyncio.Event) -> Outcome:
    """Run a command. A text with errors is refused, and the history knows nothing of it."""
    await desk.schema()
    program, found = checked(piece, desk)
    if has_errors(found):
        return refused(found, program.source)
    executor = desk.executor
    if executor is None:
        return needs_graph()
    statement = program.statements[0]
    text = program.source.slice(statement.command.span)
    record = await executor.aexecute_one(text, statement.why, cancel=cancel)
    return evolve(_outcome(record), diagnostics=warnings(found), source=program.source)


def needs_graph() -> Outcome:
    """Return the outcome of a command where there is no graph."""
    hint = "knotwork repl GRAPH opens one: a file, or nx:les_miserables to try it"
    return Outcome("failed", message="a GASL command needs a graph, and this session has none", hint=hint)


def refused(found: Sequence[Diagnostic], source: Source) -> Outcome:
    """Return the outcome of a text with errors; what is a mere remark is left out."""
    return Outcome("refused", diagnostics=tuple(d for d in found if d.severity != "info"), source=source)


def warnings(found: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return what a person should know of what runs all the same."""
    return tuple(d for d in found if d.severity == "warning")


def _outcome(record: ExecutionRecord) -> Outcome:
    status = _STATUSES.get(record.status, "failed")
    last = last_with_value([record])
    error = record.error or {}
    good = status in ("done", "empty", "partial")
    value = last.value if last is not None and good else NOTHING
    names = tuple(dict.fromkeys(_names(record))) if good else ()
    return Outcome(
        status, value, _summary(record, last, status), "" if status == "done" else str(error.get("message", "")),
        str(error.get("hint") or ""), tuple(_remarks(record)), names=names,
    )  # fmt: skip


def _names(record: ExecutionRecord) -> list[str]:
    inner = [name for nested in record.nested for name in _names(nested)]
    return [*inner, *([record.variable] if record.variable is not None and record.value is not None else [])]


def counted(value: Any) -> str:
    """Say in a few words how much a value is."""
    if isinstance(value, list):
        what = _kind_of_items(value)
        return f"{len(value):,} {what}{'' if len(value) == 1 else 's'}"
    if isinstance(value, dict):
        return f"an object of {len(value):,} field{'' if len(value) == 1 else 's'}"
    if isinstance(value, str):
        return f"a text of {len(value):,} character{'' if len(value) == 1 else 's'}"
    if value is None:
        return "null"
    return "a truth value" if isinstance(value, bool) else "a number"


def _kind_of_items(value: list[Any]) -> str:
    first = value[0] if value else None
    if not isinstance(first, dict):
        return "item"
    if "nodes" in first and "edges" in first:
        return "path"
    if "source" in first and "target" in first:
        return "edge"
    return "node" if "id" in first else "row"


def _summary(record: ExecutionRecord, last: ExecutionRecord | None, status: Status) -> str:
    if last is not None and status in ("done", "empty", "partial"):
        made = counted(last.value) + (f" in {last.variable}" if last.variable else "")
        used = record.metrics.get("used")
        return f"{made} · {used}" if used else made
    told = [
        f"{name.replace('_', ' ')} {_short(value)}"
        for name, value in record.summary.items()
        if value is not None and name != "asserted"  # the message says it
    ]
    return ", ".join(told)


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _remarks(record: ExecutionRecord) -> list[str]:
    found = [f"cut short by the cap on {name.removeprefix('max_')}" for name in record.metrics.get("caps_hit", ())]
    remark = record.metrics.get("remark")
    return [*([str(remark)] if remark else []), *found]
