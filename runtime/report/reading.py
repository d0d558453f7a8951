"""Reads a run's folder, of whatever kind, for the page: its head, its events, how it ended, what it came to.

Of runs whose events were not kept the records alone are told (``recalled``): answers without prompts.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..eventlog import LOG, read_log
from ..folders import ASK, COMPILE, RANK, SEED, RunError
from .account import Account
from .recalled import events_of, records_of
from .telling import tell

__all__ = ["read_account"]

_TREE = "tree.json"
"""As ``hdt.keeping`` calls it."""
_BRANCH = b'{"event": "branch.'
_RUNNING = "running or interrupted"
_EVIDENCE = 50
_LARGEST = 64 * 1024 * 1024
"""Bytes of a file beside the records that is read."""


def read_account(folder: Path) -> Account:
    """Return what there is to tell of the run in ``folder``. Raises ``RunError``."""
    records = records_of(folder)
    head = records[0]
    account = Account(
        str(head.get("kind") or "script"), str(head["run"]), str(folder), _subject(head), str(head["model"]),
        str(head["time"])[:19].replace("T", " "),
    )  # fmt: skip
    account.logged = (folder / LOG).is_file()
    try:
        searched = account.kind == ASK and _searched(folder)
        tell(account, read_log(folder) if account.logged else events_of(account.kind, records), searched=searched)
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
    """Add the tree of a search, where one was kept that can be read."""
    from ..search.trees import Tree, TreeError  # brings all that searches, which other runs do not need
    from .branches import rows
    from .tree_drawing import draw_tree

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
    """Return what the run is about: the question, or its name, which begins with the command that the page says already."""
    return str(head["script"] if head.get("kind") == ASK else head["name"].removeprefix(f"{head.get('kind')} "))


def _take(account: Account, record: Mapping[str, Any]) -> None:
    match record.get("record"):
        case "run_resumed":
            account.status = ""
        case "run_finished":
            account.status = str(record.get("status") or "")
            account.reason = str(record.get("reason") or "")
            account.answer = account.answer or str(record.get("answer") or "")
            account.evidence = _evidence(record.get("evidence"))


def _evidence(found: Any) -> list[tuple[str, str, str]]:
    """Return key, finding and what it rests on, of the evidence that an answer cites."""
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
    """Add what stands beside the records: what went in, and what came out as a text."""
    room = account.room
    if account.kind == COMPILE:
        account.documents.append(room.block("The task", str(head["script"])))
        account.documents += [
            room.block("The seed", str(record.get("text", ""))) for record in records if record["record"] == "seed_done"
        ][-1:]
    elif account.kind == RANK:
        _add(account, "The items", folder / "items.json")
    elif account.kind == "script":
        account.documents.append(room.block("The script", str(head["script"])))
        _add(account, "The input", folder / "input.json")
        last = [record for record in records if record["record"] == "step_done" and record.get("status") == "done"]
        if last and account.status in ("complete", "partial"):
            account.answer = str(last[-1].get("output", ""))[:10_000]
    elif account.kind == SEED:
        done = [record for record in records if record["record"] == "context_done"]
        account.documents.append(room.block("The seed", str(head["script"])))
        account.facts.append(("contexts that came to an end", f"{len(done):,}"))


def _add(account: Account, label: str, path: Path) -> None:
    text = _file(path)
    if text is not None and text != "null":
        account.documents.append(account.room.block(label, text))


def _file(path: Path) -> str | None:
    try:
        if path.stat().st_size > _LARGEST:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _searched(folder: Path) -> bool:
    """Say whether the question was answered by a search: its log has branches."""
    if (folder / _TREE).exists():
        return True
    try:
        with open(folder / LOG, "rb") as file:
            return any(line.startswith(_BRANCH) for line in file)
    except FileNotFoundError:
        return False
