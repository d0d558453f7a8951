"""Reads the folder of a run of any kind for the page: its head, its events, its status, its result.

If the events of a run were not stored, only its records are shown (``events_of``): answers without prompts.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...adapters.llm.budget import Price, price_of_json
from ..runs.event_log import LOG, read_log
from ..runs.journal import ASK, COMPILE, EACH, FILE, RANK, SEED, Damage, RunError, whole_records
from ..runs.step_names import Contained
from .account import Account
from .narrative import add_events


def prices_of(records: Sequence[Mapping[str, Any]]) -> dict[str, Price]:
    """Return a mapping from specs to the prices that the records of a run name.

    A later record overrides an earlier one; malformed prices are skipped.
    """
    found: dict[str, Price] = {}
    for record in records:
        listed = record.get("prices") if record.get("record") == "models_priced" else None
        for each in listed if isinstance(listed, list) else ():
            with suppress(KeyError, TypeError, ValueError):
                found |= [price_of_json(each)]
    return found


# Events that are derived from the records of a run if its events were not stored: answers without prompts, costs, statuses.

_PHASES = ("plan", "expand")


def records_of(folder: Path) -> list[dict[str, Any]]:
    """Return the undamaged records of the run in ``folder``, its head first. Raises ``RunError``."""
    found = [each[1] for each in whole_records(folder) if not isinstance(each, Damage)]
    if not found:
        raise RunError(f"{folder / FILE} has no complete record", "start a new run")
    return [record for record in found if isinstance(record.get("record"), str)]


def events_of(kind: str, records: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the records of a run of ``kind`` as events. Malformed records are skipped."""
    if kind in (ASK, SEED):
        yield from _of_question(records) if kind == ASK else _of_seed(records)
        return
    totals = _with_totals(records)
    started: set[tuple[int, str]] = set()
    for number, record in enumerate(records):
        if number == 0 or record["record"] not in ("step_done", "item_done"):
            continue
        name = str(record.get("step", ""))
        request, phase, step = _place(kind, name)
        if kind == RANK and not step:  # the result of a request
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
        counted = number not in totals  # the record of an EACH step has the total cost of its items
        if (
            record.get("input_hash") or record.get("attempts") or record.get("calls") or kind == COMPILE
        ):  # other records made no call
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


def _with_totals(records: Sequence[Mapping[str, Any]]) -> set[int]:
    """Return the positions of records that a later record of the same session includes in its totals.

    The record of a step includes its items, and the steps of a script that it runs.
    """
    found: set[int] = set()
    contained = Contained[int]()
    for number, record in enumerate(records):
        match record["record"]:
            case "run_resumed":
                contained.clear()
            case "item_done" | "step_done":
                found.update(contained.close(record))
                contained.add(record, number)
    return found


def _place(kind: str, name: str) -> tuple[int, str, str]:
    """Return the request, the phase and the step of a record with the step ``name``."""
    if kind == COMPILE:
        return 0, name, name
    if kind != RANK:
        return 0, "", name
    label, _, step = name.partition(".")
    request = int(label[1:]) if label[1:].isascii() and label[1:].isdecimal() else 0
    return request, step if step in _PHASES else "execute", step


def _call(record: Mapping[str, Any], step: str, request: int, *, counted: bool) -> dict[str, Any]:
    """Return the event for the end of a call. If ``counted`` is false, another record includes the call's figures."""
    usage = record.get("usage")
    tokens = usage if isinstance(usage, list) and len(usage) == 2 else [0, 0]
    return {
        "event": "call.finished", "step": step, "item": record.get("item"), "text": record.get("output"), "request": request,
        "prompt_tokens": tokens[0], "completion_tokens": tokens[1], "cost": record.get("cost"), "counted": counted,
        "estimated": record.get("estimated") is True,
        "calls": 0 if record.get("reused") else record.get("calls", record.get("attempts")), "seconds": record.get("seconds", 0.0),
    }  # fmt: skip


def _of_seed(records: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for record in records[1:]:
        if record["record"] == "extraction_done":
            place = f"context {record.get('context')}, review {record.get('review')}"
            said = json.dumps(record.get("extraction"), ensure_ascii=False)
            yield {**_call(record, place, 0, counted=True), "text": said, "error": record.get("failed") or ""}
        elif record["record"] == "item_done":
            yield _call(record, f"{record.get('step')}, context {record.get('item')}", 0, counted=True)


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


_TREE = "tree.json"
"""The file name that ``question_store`` uses for the tree of a search."""
_BRANCH = b'{"event": "branch.'
_RUNNING = "running or interrupted"
_EVIDENCE = 50
_LARGEST = 64 * 1024 * 1024
"""Maximum size in bytes of a file next to the records; a larger file is not shown."""


def read_account(folder: Path) -> Account:
    """Return the account of the run in ``folder``. Raises ``RunError``."""
    records = records_of(folder)
    head = records[0]
    account = Account(
        str(head.get("kind") or "script"), str(head["run"]), str(folder), _subject(head), str(head["model"]),
        str(head["time"])[:19].replace("T", " "),
    )  # fmt: skip
    account.logged = (folder / LOG).is_file()
    try:
        searched = account.kind == ASK and _searched(folder)
        add_events(account, read_log(folder) if account.logged else events_of(account.kind, records), searched=searched)
    except OSError as error:
        raise RunError(f"{folder / LOG} can't be read: {error.strerror or error}") from error
    titles = [section.title for section in account.sections.values() if section.title]
    if account.kind == RANK and titles:
        over = "" if account.subject == RANK else f": {account.subject}"
        account.subject = titles[0] if len(titles) == 1 else f"{len(titles):,} requests{over}"
    for record in records[1:]:
        _take(account, record)
    account.status = account.status or _RUNNING
    if account.kind == ASK:
        _draw(account, folder)
    _documents(account, head, folder, records)
    return account


def _draw(account: Account, folder: Path) -> None:
    """Add the tree of a search, if a readable tree is stored."""
    from ..loops.search.trees import Tree, TreeError  # imports the search package, which other runs do not need
    from .drawings import draw_tree, rows

    text = _file(folder / _TREE)
    if text is None:
        return
    try:
        tree = Tree.from_json(text)
    except TreeError:
        return
    account.tree, account.tree_left_out = rows(tree)
    account.drawn = draw_tree(tree)


def _subject(head: Mapping[str, Any]) -> str:
    """Return the subject of the run: the question, or the name of the run without the command, which the page already shows."""
    return str(head["script"] if head.get("kind") == ASK else head["name"].removeprefix(f"{head.get('kind')} "))


def _take(account: Account, record: Mapping[str, Any]) -> None:
    match record.get("record"):
        case "run_resumed":
            account.status = ""
        case "models_priced":
            account.prices.update(prices_of([record]))
        case "run_finished":
            account.status = str(record.get("status") or "")
            account.reason = str(record.get("reason") or "")
            account.answer = account.answer or str(record.get("answer") or "")
            account.evidence = _evidence(record.get("evidence"))


def _evidence(found: Any) -> list[tuple[str, str, str]]:
    """Return the key, the finding and the evidence for each item that an answer cites."""
    told: list[tuple[str, str, str]] = []
    for each in found[:_EVIDENCE] if isinstance(found, list) else ():
        if isinstance(each, Mapping):
            rests = [
                str(value)
                for piece in each.get("evidence") or ()
                if isinstance(piece, Mapping)
                for value in [
                    piece.get("nodes")
                    or piece.get("edges")
                    or piece.get("source_id")
                    or piece.get("cited")
                    or piece.get("command")
                ]
                if value
            ]
            item = json.dumps(each.get("item"), ensure_ascii=False, default=str)
            told.append((str(each.get("key", "")), item[:600], ", ".join(rests)[:600]))
    return told


def _documents(account: Account, head: Mapping[str, Any], folder: Path, records: list[dict[str, Any]]) -> None:
    """Add the documents of the run: its script, task or seed, the files with its input, and the output of a script."""
    space = account.space
    if account.kind == COMPILE:
        account.documents.append(space.block("The task", str(head["script"])))
        account.documents += [
            space.block("The seed", str(record.get("text", "")))
            for record in records
            if record["record"] == "seed_done"
        ][-1:]
    elif account.kind == RANK:
        _add(account, "The items", folder / "items.json")
    elif account.kind == "script":
        account.documents.append(space.block("The script", str(head["script"])))
        _add(account, "The input", folder / "input.json")
        last = [record for record in records if record["record"] == "step_done" and record.get("status") == "done"]
        if last and account.status in ("complete", "partial"):
            account.answer = str(last[-1].get("output", ""))[:10_000]
    elif account.kind == EACH:
        account.documents.append(space.block("The script", str(head["script"])))
    elif account.kind == SEED:
        done = [record for record in records if record["record"] == "context_done"]
        account.documents.append(space.block("The seed", str(head["script"])))
        account.facts.append(("contexts that came to an end", f"{len(done):,}"))


def _add(account: Account, label: str, path: Path) -> None:
    text = _file(path)
    if text is not None and text != "null":
        account.documents.append(account.space.block(label, text))


def _file(path: Path) -> str | None:
    try:
        if path.stat().st_size > _LARGEST:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _searched(folder: Path) -> bool:
    """Return whether the question was answered by a search: its folder has a tree, or its log has branches."""
    if (folder / _TREE).exists():
        return True
    try:
        with open(folder / LOG, "rb") as file:
            return any(line.startswith(_BRANCH) for line in file)
    except FileNotFoundError:
        return False
