"""Lists and shows recorded runs. Engines are loaded on first use."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...adapters.llm import Usage
from ..events import is_nested
from ..results import estimated_mark, prices_json
from ..runs.event_log import DebugLog as DebugLog
from ..runs.event_log import level as level
from ..runs.event_log import logged as logged
from ..runs.journal import COMPILE, EACH, EVAL, FILE, LOOPS, RANK, SEED, TUNE, Damage, find_folder, whole_records
from ..runs.journal import NoHome as NoHome
from ..runs.journal import RunError as RunError
from ..runs.journal import base_directory as base_directory
from ..runs.step_names import Contained

if TYPE_CHECKING:
    from ...adapters.llm.budget import Price
    from ...lang.trees.lwt import Script
    from ..events import Events
    from ..lwt.run_store import Stored as Stored
    from ..report.account import Account, Figures
    from ..runs.journal import RunRecorder as RunRecorder

COMPILE_PHASES = 3
"""Number of phases of a compilation."""
_PRICED = b'{"record": "models_priced"'
_DONE = re.compile(rb'\{"record": "context_done"')
_CALLS = (b'{"record": "extraction_done"', b'{"record": "item_done"', b'{"record": "batch", ')
_USAGE = re.compile(rb'"usage": \[(\d{1,15}), (\d{1,15})\](, "estimated": true)?')


def list_runs(limit: int) -> tuple[list[dict[str, Any]], int]:
    """Return the latest runs as JSON (at most ``limit``), and the number of all runs.

    ``done`` is the number of completed parts, ``steps`` is the number of all parts: steps of a script, rows of a table, contexts of a seed
    run, requests of a ranking, phases of a compilation, labels of an evaluation, or trials of a tuning.
    """
    from ..lwt import run_store

    found = run_store.list_runs()
    rows = []
    for info in found[:limit]:
        done, steps, used = _progress(info.path, info.kind)
        rows.append(
            {
                "run": info.run_id, "kind": info.kind, "script": info.script, "status": info.status, "done": done, "steps": steps,
                "started": info.started, **_tokens(used), "model": info.model, "path": str(info.path),
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

        found = _loop_document(read_account(path))
    else:
        documents = {EACH: _rows_document, SEED: _seed_document, EVAL: _evaluation_document, TUNE: _tuning_document}
        found = documents.get(str(kind), _script_document)(run)
    return found | prices_json(_prices(path))


def price_line(price: Mapping[str, Any]) -> str:
    """Return the text for a price. ``price`` is an entry of ``prices`` in the JSON of a run."""
    from ...adapters.llm.budget import price_of_json

    model, found = price_of_json(price)
    return found.line(model).removeprefix("price of ")


def load(run: str) -> "Stored":
    """Load the recorded run of a script, so that it can be resumed. Raises ``RunError``."""
    from ..lwt import run_store

    return run_store.load(run)


def start(
    script: "Script", *, input: Any, model: str, options: Mapping[str, Any], hashes: Mapping[str, str] | None = None
) -> "RunRecorder":
    """Start recording a new run of a script. Raises ``RunError``, and ``NotConfigured`` if the script has an API key as a model's name."""
    from ..lwt import run_store

    return run_store.start(script, input=input, model=model, options=options, hashes=hashes)


def subscribe_debug_log(events: "Events") -> bool:
    """Write the events to the debug log if KNOTWORK_DEBUG is set; return whether the variable is set."""
    if level():
        events.subscribe(DebugLog(level()))
    return level() > 0


def _prices(path: Path) -> "dict[str, Price]":
    """Return a mapping from the specs of a run's models to their recorded prices."""
    from ..report.run_reader import prices_of

    found: list[dict[str, Any]] = []
    with open(path / FILE, "rb") as file:
        for line in file:
            if line.startswith(_PRICED):
                with suppress(ValueError):
                    found.append(json.loads(line))
    return prices_of(found)


def _progress(path: Path, kind: str) -> tuple[int, int, Usage]:
    """Return the number of complete steps, of all steps, and the tokens of a run; zeros if the run can't be read."""
    if kind in LOOPS:
        return _loop_progress(path, kind)
    if kind == EACH:
        from ..seeds import result_store

        results = result_store.StoredResults.read(path / result_store.FILE)
        return len(results.complete), len(results.names), _steps(path)[2]
    if kind == EVAL:
        found = _evaluation(path)
        return found["answers"], found["items"], found["used"]
    if kind == TUNE:
        trials = _trials(path)["trials"]
        return sum(not each["kept"] for each in trials), len(trials), _evaluation(path)["used"]
    if kind == SEED:
        contexts, used = _contexts(path)
        return sum(each["status"] == "complete" for each in contexts), len(contexts), used
    steps, planned, used = _steps(path)
    own = [record for step, record in steps.items() if not is_nested(step)]
    return sum(record["status"] == "done" for record in own), max(planned, len(own)), used


# The run of a script.


def tokens_of(record: Mapping[str, Any]) -> int:
    """Return the number of tokens in the record of a step or an item."""
    usage = record.get("usage")
    return sum(usage) if isinstance(usage, list) else 0


def tokens_cell(found: Mapping[str, Any], unit: str = "") -> str:
    """Return the tokens of a document, or of a part of it, as text."""
    return f"{found['tokens']:,}{unit}{estimated_mark(found.get('estimated'))}"


def _tokens(used: Usage) -> dict[str, Any]:
    """Return the part of a document about the tokens of a run."""
    return {"tokens": used.total, **({"estimated": True} if used.estimated else {})}


def _steps(path: Path) -> tuple[dict[str, dict[str, Any]], int, Usage]:
    """Return the last record of each step, the number of planned steps, and the tokens. Stop at the first damaged record."""
    steps: dict[str, dict[str, Any]] = {}
    planned = tokens = 0
    estimated = False
    contained = Contained[int]()
    try:
        with open(path / FILE, "rb") as file:
            for line in file:
                record = json.loads(line)
                used = 0 if record.get("reused") else tokens_of(record)
                match record["record"]:
                    case "run_started":
                        planned = int(record["options"].get("steps", 0))
                    case "run_resumed":
                        contained.clear()
                    case "item_done" | "step_done" as kind:
                        if kind == "step_done":
                            steps[record["step"]] = record
                        more = used - sum(contained.close(record))
                        contained.add(record, more)
                        tokens += more
                        estimated = estimated or (more > 0 and record.get("estimated") is True)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return steps, planned, Usage(tokens, 0, estimated)


def _script_document(run: str) -> dict[str, Any]:
    from ..lwt.run_store import load

    stored = load(run)
    steps, _, used = _steps(stored.path)
    head = stored.head
    return {
        "run": stored.run_id, "kind": "script", "script": head["name"], "status": stored.status or "running or interrupted",
        "started": head["time"], "model": head["model"], "path": str(stored.path), **_tokens(used),
        "steps": {
            step: {name: value for name, value in record.items() if name not in ("record", "step", "item")}
            for step, record in steps.items()
        },
    }  # fmt: skip


def _rows_document(run: str) -> dict[str, Any]:
    """Return the document of a script's run over rows; ``rows`` are the rows that are not complete."""
    from ..lwt.row_store import load

    stored = load(run)
    head, results = stored.head, stored.results()
    statuses = Counter(status for _, status in results.names.values())
    incomplete = (results.document(index) for index in sorted(results.names) if results.names[index][1] != "complete")
    return {
        "run": stored.run_id, "kind": EACH, "script": head["name"], "status": stored.status or "running or interrupted",
        "started": head["time"], "model": head["model"], "path": str(stored.path), **_tokens(_steps(stored.path)[2]),
        "options": head.get("options", {}), "statuses": dict(statuses),
        "rows": [{name: each[name] for name in ("index", "name", "status", "error")} for each in incomplete],
    }  # fmt: skip


# The run of a seed.


def _contexts(path: Path) -> tuple[list[dict[str, Any]], Usage]:
    """Return the finished contexts, sorted by index, and the tokens of all calls.

    If a context has several records, the last one counts. Reading stops at the first damaged record.
    """
    contexts: dict[int, dict[str, Any]] = {}
    used = Usage()
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
                elif line.startswith(_CALLS) and (usage := list(_USAGE.finditer(line))):
                    last = usage[-1]  # as a review may match too
                    used += Usage(int(last[1]), int(last[2]), bool(last[3]))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return [contexts[index] for index in sorted(contexts)], used


def _seed_document(run: str) -> dict[str, Any]:
    from ..seeds.seed_store import load

    stored = load(run)
    contexts, used = _contexts(stored.path)
    head = stored.head
    return {
        "run": stored.run_id, "kind": SEED, "script": head["name"], "status": stored.status or "running or interrupted",
        "started": head["time"], "model": head["model"], "path": str(stored.path), **_tokens(used),
        "extractions": stored.extracted, "options": head.get("options", {}), "contexts": contexts,
    }  # fmt: skip


# An evaluation.


def _evaluation(path: Path) -> dict[str, Any]:
    """Return the numbers of answers, labels and calls, the tokens, and the candidates. Stop at the first damaged record."""
    answers = calls = items = 0
    used = Usage()
    candidates: dict[str, dict[str, Any]] = {}
    try:
        with open(path / FILE, "rb") as file:
            for line in file:
                record = json.loads(line)
                match record["record"]:
                    case "run_started":
                        items = int(record["options"].get("items", 0))
                    case "call_done" | "call_failed":
                        calls += int(record["attempts"])
                        asked, answered = record["usage"]
                        used += Usage(asked, answered, record.get("estimated") is True)
                        if record["record"] == "call_done":
                            found = candidates.setdefault(record["candidate"], {"calls": 0, "items": 0, "answered": 0})
                            found["calls"] += 1
                    case "candidate_done":
                        found = candidates.setdefault(record["candidate"], {"calls": 0})
                        found |= {"items": record["items"], "answered": record["answered"]}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    answers = sum(int(each.get("answered", 0)) for each in candidates.values())
    return {"answers": answers, "items": items, "used": used, "calls": calls, "candidates": candidates}


def _evaluation_document(run: str) -> dict[str, Any]:
    from ..loops.evaluate.call_record import load
    from ..loops.evaluate.evaluation_report import REPORT

    stored = load(run)
    head, found = stored.head, _evaluation(stored.path)
    try:
        report = json.loads((stored.path / REPORT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        report = None
    return {
        "run": stored.run_id, "kind": EVAL, "script": head["name"], "status": stored.status or "running or interrupted",
        "started": head["time"], "model": head["model"], "path": str(stored.path), **_tokens(found.pop("used")), **found,
        "report": report,
    }  # fmt: skip


# A tuning.


def _trials(path: Path) -> dict[str, Any]:
    """Return the last record of each trial and the record of the test (None: the test has not run), from the log of trials."""
    from ..loops.evaluate.tune_store import TRIALS

    trials: dict[int, dict[str, Any]] = {}
    test = None
    try:
        for line in (path / TRIALS).read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record["record"] == "trial":
                trials[record["trial"]] = record
            elif record["record"] == "test":
                test = record
    except (OSError, ValueError, KeyError, TypeError):
        pass  # the run was killed before the first line, or within a line
    return {"trials": list(trials.values()), "test": test}


def _tuning_document(run: str) -> dict[str, Any]:
    from ..loops.evaluate.tune_store import load

    stored = load(run)
    head, found = stored.head, _evaluation(stored.path)
    return {
        "run": stored.run_id, "kind": TUNE, "script": head["name"], "status": stored.status or "running or interrupted",
        "started": head["time"], "model": head["model"], "path": str(stored.path), "calls": found["calls"],
        **_tokens(found["used"]),
        **_trials(stored.path),
    }  # fmt: skip


# A ranking, a compilation or a question.


def _loop_progress(path: Path, kind: str) -> tuple[int, int, Usage]:
    from ..report.account import Figures, number
    from ..report.run_reader import events_of, records_of

    try:
        records = records_of(path)
    except RunError:
        return 0, 0, Usage()
    spent = Figures()
    for event in events_of(kind, records):
        if event.get("counted"):
            spent.call(event)
    parts = {
        record.get("step"): record.get("status")
        for record in records
        if record["record"] == "step_done" and (kind == COMPILE or "." not in str(record.get("step")))
    }
    options = records[0].get("options")
    planned = number(options, "steps") if kind == RANK and isinstance(options, dict) else COMPILE_PHASES
    return sum(status == "done" for status in parts.values()), planned, Usage(spent.tokens, 0, spent.estimated)


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
        "prompt_tokens": figures.prompt_tokens, "completion_tokens": figures.completion_tokens,
        **({"estimated": True} if figures.estimated else {}), "cost": figures.cost,
    }  # fmt: skip
