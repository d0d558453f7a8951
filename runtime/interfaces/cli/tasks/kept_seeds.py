"""What ``runs`` shows of a kept run of a seed: its contexts, and how to go on."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Literal

from attrs import frozen

from .....lang.diagnostic import printable
from ....runs.directories import FILE, SEED
from ....seeds.seed_store import load
from ..shared.exit import Exit
from ..shared.output import json_text

__all__ = ["KeptContext", "read_contexts", "show_seed_run"]

_LISTED = 50
"""Contexts that are listed one by one."""
_DONE = re.compile(rb'\{"record": "context_done"')
_USAGE = re.compile(rb'"usage": \[(\d{1,15}), (\d{1,15})\]')


@frozen
class KeptContext:
    """The last word on one context."""

    name: str
    status: str
    kept: int
    extracted: int
    failed: int


def read_contexts(path: Path) -> tuple[dict[int, KeptContext], int]:
    """Return the contexts that came to an end, by index, and the tokens of all extractions. What is damaged ends the reading."""
    contexts: dict[int, KeptContext] = {}
    tokens = 0
    try:
        with open(path / FILE, "rb") as file:
            for line in file:
                if _DONE.match(line):
                    told = json.loads(line)
                    counts = (int(told["counts"][name]) for name in ("kept", "extracted", "failed"))
                    contexts[int(told["context"])] = KeptContext(str(told["name"]), str(told["status"]), *counts)
                elif line.startswith(b'{"record": "extraction_done"') and (usage := list(_USAGE.finditer(line))):
                    tokens += int(usage[-1][1]) + int(usage[-1][2])  # the last one: a review's text may say so, too
    except (OSError, ValueError, KeyError, TypeError):
        return contexts, tokens
    return contexts, tokens


def show_seed_run(run: str, form: Literal["table", "json"]) -> int:
    """Write the run to stdout. Raises ``RunError``."""
    stored = load(run)
    contexts, tokens = read_contexts(stored.path)
    head, status = stored.head, stored.status or "running or interrupted"
    if form == "json":
        told = {
            "run": stored.run_id, "kind": SEED, "script": head["name"], "status": status, "started": head["time"], "model": head["model"],
            "path": str(stored.path), "tokens": tokens, "extractions": stored.extracted, "options": head.get("options", {}),
            "contexts": [
                {
                    "index": index, "name": each.name, "status": each.status, "kept": each.kept, "extracted": each.extracted,
                    "failed": each.failed,
                }
                for index, each in sorted(contexts.items())
            ],
        }  # fmt: skip
        print(json_text(told))
        return Exit.DONE
    for title, value in (
        ("run", stored.run_id), ("seed", str(head["name"])), ("status", status), ("started", head["time"]),
        ("model", str(head["model"] or "-")), ("kept in", str(stored.path)),
    ):  # fmt: skip
        print(f"{title:<8} {printable(value)}")
    statuses = Counter(each.status for each in contexts.values())
    ended = ", ".join(f"{count:,} {each}" for each, count in sorted(statuses.items()))
    print(
        f"\n{len(contexts):,} contexts came to an end{f': {ended}' if ended else ''}; {stored.extracted:,} extractions are kept"
    )
    _list({index: each for index, each in sorted(contexts.items()) if each.status != "complete"})
    if status != "complete":
        words = [head.get("options", {}).get(name) or name.upper() for name in ("seed", "contexts")]
        print(printable(f"go on with: knotwork seed run {' '.join(map(str, words))} --resume {stored.run_id}"))
    return Exit.DONE


def _list(contexts: dict[int, KeptContext]) -> None:
    if not contexts:
        return
    from ..shared.tables import render

    rows = [
        [index, each.name, each.status, each.kept, each.extracted, each.failed]
        for index, each in list(contexts.items())[:_LISTED]
    ]
    print(render(["#", "context", "status", "kept", "extracted", "failed"], rows, wide=frozenset({"status"})), end="")
    if len(contexts) > _LISTED:
        print(f"and {len(contexts) - _LISTED:,} more; --format json has them all")
