"""Events made from a run's records, where the events themselves were not kept: answers without prompts, what they cost, statuses."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..folders import ASK, COMPILE, FILE, RANK, SEED, RunError, whole_records
from ..journal import Damage

__all__ = ["events_of", "records_of"]

_PHASES = ("plan", "expand")


def records_of(folder: Path) -> list[dict[str, Any]]:
    """Return the records of the run in ``folder``, its head first; damaged ones are left out. Raises ``RunError``."""
    found = [each[1] for each in whole_records(folder) if not isinstance(each, Damage)]
    if not found:
        raise RunError(f"{folder / FILE} has no whole record", "start the run anew")
    return [record for record in found if isinstance(record.get("record"), str)]


def events_of(kind: str, records: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what the records of a run of ``kind`` say, as events. What is not as it is written is passed over."""
    if kind in (ASK, SEED):
        yield from _of_question(records) if kind == ASK else _of_seed(records)
        return
    whole = {record.get("step") for record in records if record["record"] == "step_done"}
    started: set[tuple[int, str]] = set()
    for record in records[1:]:
        if record["record"] not in ("step_done", "item_done"):
            continue
        name = str(record.get("step", ""))
        request, phase, step = _place(kind, name)
        if kind == RANK and not step:  # what a request came to
            detail = str(record.get("reason", ""))
            told = "done" if record.get("status") == "done" else "failed"
            yield {
                "event": "phase.finished", "loop": kind, "phase": "execute", "status": told, "request": request,
                "detail": detail.removeprefix("ranking: "),
            }  # fmt: skip
            continue
        if kind in (RANK, COMPILE) and (request, phase) not in started:
            started.add((request, phase))
            yield {"event": "phase.started", "loop": kind, "phase": phase, "request": request}
        counted = record["record"] == "step_done" or name not in whole  # EACH's step has what its items cost
        if record.get("input_hash") or record.get("attempts") or kind == COMPILE:  # others asked nobody
            yield _call(record, step, request, counted=counted)
        if kind == COMPILE or (kind == RANK and phase in _PHASES):
            status = "done" if record.get("status", "done") == "done" else "failed"
            yield {
                "event": "phase.finished", "loop": "", "phase": phase, "status": status, "request": request,
                "detail": str(record.get("reason", "")),
            }  # fmt: skip
        elif record["record"] == "step_done":
            yield {
                "event": "step.finished", "step": step, "status": record.get("status"), "reason": record.get("reason", ""),
                "seconds": 0.0, "reused": record.get("reused", False), "request": request,
            }  # fmt: skip


def _place(kind: str, name: str) -> tuple[int, str, str]:
    """Return request, phase and step of a record."""
    if kind == COMPILE:
        return 0, name, name
    if kind != RANK:
        return 0, "", name
    label, _, step = name.partition(".")
    request = int(label[1:]) if label[1:].isascii() and label[1:].isdecimal() else 0
    return request, step if step in _PHASES else "execute", step


def _call(record: Mapping[str, Any], step: str, request: int, *, counted: bool) -> dict[str, Any]:
    """Return the end of a call; one that is not ``counted`` has figures that another record has, too."""
    usage = record.get("usage")
    tokens = usage if isinstance(usage, list) and len(usage) == 2 else [0, 0]
    return {
        "event": "call.finished", "step": step, "item": record.get("item"), "text": record.get("output"), "request": request,
        "prompt_tokens": tokens[0], "completion_tokens": tokens[1], "cost": record.get("cost"), "counted": counted,
        "calls": 0 if record.get("reused") else record.get("calls", record.get("attempts")), "seconds": record.get("seconds", 0.0),
    }  # fmt: skip


def _of_seed(records: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for record in records[1:]:
        if record["record"] == "extraction_done":
            place = f"context {record.get('context')}, review {record.get('review')}"
            said = json.dumps(record.get("extraction"), ensure_ascii=False)
            yield {**_call(record, place, 0, counted=True), "text": said, "error": record.get("failed") or ""}


def _of_question(records: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for record in records[1:]:
        match record["record"]:
            case "item_done":
                yield _call(record, str(record.get("step", "")), 0, counted=True)
            case "step_begun":
                supposed, action = _part(record, "supposed"), _part(record, "action")
                plan = _part(action, "plan")
                others = record.get("alternatives")
                step = {"step": record.get("number")}
                yield {
                    "event": "decision.made",
                    **step,
                    **{name: supposed.get(name) for name in ("decision", "why", "by")},
                }
                yield {
                    "event": "hypothesis.formed", **step, "hypothesis": supposed.get("hypothesis"), "plan": plan.get("plan_id"),
                    "commands": plan.get("commands"), "confidence": action.get("confidence"),
                    "alternatives": len(others) if isinstance(others, list) else 0,
                }  # fmt: skip
            case "step_done":
                done = _part(record, "step")
                entries = done.get("entries")
                for entry in entries if isinstance(entries, list) else ():
                    if isinstance(entry, Mapping):
                        yield {
                            "event": "command.finished", "step": str(entry.get("step", "")), "command": entry.get("command"),
                            "status": entry.get("status"), "seconds": entry.get("duration"),
                            "count": _part(entry, "summary").get("count"), "message": _part(entry, "error").get("message"),
                        }  # fmt: skip
                yield {"event": "plan.finished", "status": done.get("status")}


def _part(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = record.get(name)
    return value if isinstance(value, Mapping) else {}
