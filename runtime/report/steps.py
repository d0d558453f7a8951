"""What was done, step by step, in plain English: from the entries of a history to what the page tells."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from ...lang.diagnostic import has_errors
from ...lang.parse.gasl import parse_command
from .fields import figure
from .words import in_words

__all__ = ["Step", "command_words", "told"]

_FIRST, _LAST = 200, 800
"""Entries that are told where a history, which may have a million, has more than both together."""

_OUTCOMES = {
    "success": "done", "empty": "nothing found", "partial": "in part", "binding_failure": "failed: something was missing",
    "schema_mismatch": "failed: of the wrong shape", "error": "failed", "cancelled": "cancelled",
}  # fmt: skip
_ROLLBACK = "rollback"
_SETTING_UP = ("DECLARE", "RESET")
"""Commands whose count says how much is there already, and nothing of what they did."""


@frozen
class Step:
    """One step, as it is told. ``depth`` is 0 for a step of its own, more for what a step ran; ``left_out`` counts entries
    that stand before it and are not told."""

    number: str
    depth: int
    words: str
    command: str
    why: str
    status: str
    outcome: str
    message: str
    rolled_back: bool
    left_out: int = 0


def told(history: Sequence[Any]) -> list[Step]:
    """Return the steps of a history: all of it, or its beginning and its end. A step stands before what it ran."""
    if len(history) <= _FIRST + _LAST:
        return list(_steps(history))
    gap = len(history) - _FIRST - _LAST
    return [*_steps(history[:_FIRST]), *_steps(history[-_LAST:], left_out=gap)]


def _steps(entries: Iterable[Any], left_out: int = 0) -> Iterator[Step]:
    last = ("", "")
    for entry in _in_order(entry for entry in entries if isinstance(entry, Mapping)):
        why = (str(entry.get("plan_id") or ""), str(entry.get("why") or ""))
        yield _step(entry, "" if why == last else why[1], left_out)
        last, left_out = why, 0


def _in_order(entries: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Put a step before what it ran: the history has it behind, for it ended later."""
    parts: list[Mapping[str, Any]] = []
    for entry in entries:
        if entry.get("part") and entry["part"] != _ROLLBACK:
            parts.append(entry)
            continue
        yield entry
        yield from parts
        parts = []
    yield from parts


def _step(entry: Mapping[str, Any], why: str, left_out: int) -> Step:
    command, status = str(entry.get("command", "")), str(entry.get("status") or "success")
    summary, error, part = entry.get("summary"), entry.get("error"), str(entry.get("part") or "")
    count = summary.get("count") if isinstance(summary, Mapping) and figure(summary, "count") is not None else None
    outcome = _OUTCOMES.get(status, status)
    if count is not None and not command.upper().startswith(_SETTING_UP) and status in ("success", "partial"):
        outcome = f"{count:,} {'in part' if status == 'partial' else 'in all'}"
    message = error.get("message", "") if isinstance(error, Mapping) else ""
    number = "" if part == _ROLLBACK else f"{entry.get('step', '')}{f'.{part}' if part else ''}"
    depth = 0 if part in ("", _ROLLBACK) else min(part.count(".") + 1, 4)
    return Step(
        number,
        depth,
        command_words(command),
        command,
        why,
        status,
        outcome,
        str(message),
        bool(entry.get("rolled_back")),
        left_out,
    )


def command_words(command: str) -> str:
    """Say the command in words; one that can't be read, or only a part of which was kept, is shown as it stands."""
    if command.startswith("knotwork state rollback "):
        return f"Took the state back to what it was at {command.rsplit(' ', 1)[1][:12]}"
    program = parse_command(command)
    if has_errors(program.diagnostics) or len(program.statements) != 1:
        return command if len(command) <= 300 else f"{command[:299]}…"
    return in_words(program.statements[0].command)
