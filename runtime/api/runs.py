"""Lists and shows recorded runs. Engines are loaded on first use."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..runs.event_log import DebugLog as DebugLog
from ..runs.event_log import level as level
from ..runs.event_log import logged as logged
from ..runs.journal import COMPILE, FILE, LOOPS, RANK, SEED, Damage, find_folder, whole_records
from ..runs.journal import RunError as RunError
from ..runs.journal import base_directory as base_directory

if TYPE_CHECKING:
    from ...lang.trees.lwt import Script
    from ..events import Events
    from ..lwt.run_store import Stored as Stored
    from ..report.account import Account, Figures
    from ..runs.journal import RunRecorder as RunRecorder

COMPILE_PHASES = 3
"""Number of phases of a compilation."""
_DONE = re.compile(rb'\{"record": "context_done"')
_USAGE = re.compile(rb'"usage": \[(\d{1,15}), (\d{1,15})\]')


def list_runs(limit: int) -> tuple[list[dict[str, Any]], int]:
    """Return the latest runs as JSON (at most ``limit``), and the number of all runs.

    ``done`` and ``steps`` count the steps of a script, the contexts of a seed run, the requests of a ranking, or the phases of
    a compilation.
    """
    from ..lwt import run_store

    found = run_store.list_runs()
    rows = []
    for info in found[:limit]:
        done, steps, tokens = _progress(info.path, info.kind)
        rows.append(
            {
                "run": info.run_id, "kind": info.kind, "script": info.script, "status": info.status, "done": done, "steps": steps,
                "started": info.started, "tokens": tokens, "model": info.model, "path": str(info.path),
            }
        )  # fmt: skip
    return rows, len(found)


def show(run: str) -> dict[str, Any]:
    """Return one run as JSON; its keys depend on the value of ``kind``. Raises ``RunError``."""
    path = find_folder(run)
    first = next(whole_records(path), None)
    kind = None if first is None or isinstance(first, Damage) else first[1].get("kind")
    if kind in LOOPS:
        from ..report.run_reader import read_account

        return _loop_document(read_account(path))
    return _seed_document(run) if kind == SEED else _script_document(run)


def load(run: str) -> "Stored":
    """Load the recorded run of a script, so that it can be resumed. Raises ``RunError``."""
    from ..lwt import run_store

    return run_store.load(run)


def start(script: "Script", *, input: Any, model: str, options: Mapping[str, Any]) -> "RunRecorder":
    """Start recording a new run of a script. Raises ``RunError``, and ``NotConfigured`` if the script has an API key as a model's name."""
    from ..lwt import run_store

    return run_store.start(script, input=input, model=model, options=options)


def subscribe_debug_log(events: "Events") -> bool:
    """Write the events to the debug log if KNOTWORK_DEBUG is set; return whether it is set."""
    if level():
        events.subscribe(DebugLog(level()))
    return level() > 0


def _progress(path: Path, kind: str) -> tuple[int, int, int]:
    """Return how many steps of a run are complete, how many steps it has, and its tokens; zeros if the run can't be read."""
    if kind in LOOPS:
        return _loop_progress(path, kind)
    if kind == SEED:
        contexts, tokens = _contexts(path)
        return sum(each["status"] == "complete" for each in contexts), len(contexts), tokens
    steps, planned, tokens = _steps(path)
    return sum(record["status"] == "done" for record in steps.values()), max(planned, len(steps)), tokens


# The run of a script.


def tokens_of(record: Mapping[str, Any]) -> int:
    """Return the number of tokens in the record of a step or an item."""
    usage = record.get("usage")
    return sum(usage) if isinstance(usage, list) else 0


def _steps(path: Path) -> tuple[dict[str, dict[str, Any]], int, int]:
    """Return the last record of each step, the planned number of steps, and the tokens, up to the first damaged record."""
    steps: dict[str, dict[str, Any]] = {}
    planned = tokens = 0
    # Maps each unfinished step to its tokens. The record of a finished step has the total of its items.
    items: Counter[str] = Counter()
    try:
        with open(path / FILE, "rb") as file:
            for line in file:
                record = json.loads(line)
                used = 0 if record.get("reused") else tokens_of(record)
                match record["record"]:
                    case "run_started":
                        planned = int(record["options"].get("steps", 0))
                    case "run_resumed":
                        tokens += items.total()
                        items.clear()
                    case "item_done":
                        items[record["step"]] += used
                    case "step_done":
                        steps[record["step"]] = record
                        tokens += used
                        items.pop(record["step"], None)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return steps, planned, tokens + items.total()


def _script_document(run: str) -> dict[str, Any]:
    from ..lwt.run_store import load

    stored = load(run)
    steps, _, tokens = _steps(stored.path)
    head = stored.head
    return {
        "run": stored.run_id, "kind": "script", "script": head["name"], "status": stored.status or "running or interrupted",
        "started": head["time"], "model": head["model"], "path": str(stored.path), "tokens": tokens,
        "steps": {
            step: {name: value for name, value in record.items() if name not in ("record", "step", "item")}
            for step, record in steps.items()
        },
    }  # fmt: skip


# The run of a seed.


def _contexts(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the last record of each context by index, and the tokens of all extractions, up to the first damaged record."""
    contexts: dict[int, dict[str, Any]] = {}
    tokens = 0
    try:
        with open(path / FILE, "rb") as file:
            for line in file:
                if _DONE.match(line):
                    record = json.loads(line)
                    index, counts = int(record["context"]), record["counts"]
                    contexts[index] = {
                        "index": index, "name": str(record["name"]), "status": str(record["status"]), "kept": int(counts["kept"]),
                        "extracted": int(counts["extracted"]), "failed": int(counts["failed"]),
                    }  # fmt: skip
                elif line.startswith(b'{"record": "extraction_done"') and (usage := list(_USAGE.finditer(line))):
                    tokens += int(usage[-1][1]) + int(usage[-1][2])  # the last match: a review may match too
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return [contexts[index] for index in sorted(contexts)], tokens


def _seed_document(run: str) -> dict[str, Any]:
    from ..seeds.seed_store import load

    stored = load(run)
    contexts, tokens = _contexts(stored.path)
    head = stored.head
    return {
        "run": stored.run_id, "kind": SEED, "script": head["name"], "status": stored.status or "running or interrupted",
        "started": head["time"], "model": head["model"], "path": str(stored.path), "tokens": tokens,
        "extractions": stored.extracted, "options": head.get("options", {}), "contexts": contexts,
    }  # fmt: skip


# A ranking, a compilation or a question.


def _loop_progress(path: Path, kind: str) -> tuple[int, int, int]:
    from ..report.account import number
    from ..report.run_reader import events_of, records_of

    try:
        records = records_of(path)
    except RunError:
        return 0, 0, 0
    tokens = sum(
        number(event, "prompt_tokens") + number(event, "completion_tokens")
        for event in events_of(kind, records)
        if event.get("counted")
    )
    parts = {
        record.get("step"): record.get("status")
        for record in records
        if record["record"] == "step_done" and (kind == COMPILE or "." not in str(record.get("step")))
    }
    options = records[0].get("options")
    planned = number(options, "steps") if kind == RANK and isinstance(options, dict) else COMPILE_PHASES
    return sum(status == "done" for status in parts.values()), planned, tokens


def _loop_document(account: "Account") -> dict[str, Any]:
    return {
        "run": account.run_id, "kind": account.kind, "script": account.subject, "status": account.status, "reason": account.reason,
        "started": account.started, "model": account.model, "path": account.path, "answer": account.answer,
        **_usage(account.totals),
        "parts": [
            {
                "part": section.label, "about": section.title, "result": section.result,
                "phases": [
                    {"phase": phase.name, "status": phase.status, **_usage(phase.figures)} for phase in section.phases.values()
                ],
            }
            for section in account.sections.values()
        ],
    }  # fmt: skip


def _usage(figures: "Figures") -> dict[str, Any]:
    return {
        "seconds": round(figures.seconds, 3), "calls": figures.calls, "cached": figures.cached, "tokens": figures.tokens,
        "prompt_tokens": figures.prompt_tokens, "completion_tokens": figures.completion_tokens, "cost": figures.cost,
    }  # fmt: skip
