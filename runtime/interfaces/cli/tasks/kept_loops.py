"""What ``runs`` shows of a kept ranking, compilation or question: each phase with what it took, and how to go on."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .....lang.diagnostic import printable
from ....report.run_reader import events_of, records_of
from ....runs.directories import ASK, COMPILE, RANK, RunError, find_folder
from ..shared.exit import Exit
from ..shared.output import json_text

if TYPE_CHECKING:
    from ....report import Account, Figures

__all__ = ["loop_figures", "show_loop_run"]

_PHASES = 3
"""Phases of a compilation."""
_LONGEST = 60


def loop_figures(path: Path, kind: str) -> tuple[int, int, int]:
    """Return how many parts of a run are done, how many there are (requests, phases), and its tokens. What is damaged is left out."""
    try:
        records = records_of(path)
    except RunError:
        return 0, 0, 0
    events = list(events_of(kind, records))
    tokens = sum(
        _whole(event, "prompt_tokens") + _whole(event, "completion_tokens") for event in events if event.get("counted")
    )
    parts = {
        record.get("step"): record.get("status")
        for record in records
        if record["record"] == "step_done" and (kind == COMPILE or "." not in str(record.get("step")))
    }
    options = records[0].get("options")
    planned = _whole(options, "steps") if kind == RANK and isinstance(options, dict) else _PHASES
    return sum(status == "done" for status in parts.values()), planned, tokens


def _whole(event: dict[str, Any], name: str) -> int:
    value = event.get(name)
    return value if isinstance(value, int) else 0


def show_loop_run(run: str, form: Literal["table", "json"]) -> int:
    """Write the run to stdout. Raises ``RunError``."""
    from ....report import read_account

    account = read_account(find_folder(run))
    if form == "json":
        print(json_text(_document(account)))
        return Exit.DONE
    for title, value in (
        ("run", account.run_id), ("kind", account.kind), ("about", account.subject), ("status", account.status),
        ("started", account.started), ("model", account.model or "-"), ("kept in", account.path),
        ("answer", account.answer), ("because", account.reason),
    ):  # fmt: skip
        if value:
            print(f"{title:<8} {printable(value)}")
    _table(account)
    _how_on(account)
    return Exit.DONE


def _table(account: "Account") -> None:
    from ..shared.tables import render

    rows = []
    for section in account.sections.values():
        for phase in section.phases.values():
            rows.append([section.label, phase.name, phase.status, *_row(phase.figures)])
    rows.append(["all", "", "", *_row(account.totals)])
    print()
    print(
        render(["part", "phase", "status", "time", "calls", "tokens", "cost"], rows, wide=frozenset({"phase"})), end=""
    )
    for section in account.sections.values():
        if account.kind == RANK:
            told = section.result or "no ranking"
            print(printable(f"{section.label} {_short(section.title)}: {told}"))


def _row(figures: "Figures") -> list[str]:
    cost = f"${figures.cost:.4f}" if figures.cost is not None else ""
    return [f"{figures.seconds:.2f} s", f"{figures.calls:,}", f"{figures.tokens:,}", cost]


def _how_on(account: "Account") -> None:
    print()
    print(printable(f"told in full by: knotwork report {account.path if account.kind == ASK else account.run_id}"))
    if account.status == "complete":
        return
    if account.kind == RANK:
        print(f"go on with: knotwork rank --resume {account.run_id}")
    elif account.kind == COMPILE:
        print("go on with the same knotwork seed compile: finished calls are in the cache")
    else:
        print(
            printable(
                f"go on with: knotwork ask GRAPH {json.dumps(account.subject)} --state {Path(account.path).parent.parent}"
            )
        )


def _document(account: "Account") -> dict[str, Any]:
    return {
        "run": account.run_id, "kind": account.kind, "script": account.subject, "status": account.status, "reason": account.reason,
        "started": account.started, "model": account.model, "path": account.path, "answer": account.answer,
        **_spent(account.totals),
        "parts": [
            {
                "part": section.label, "about": section.title, "result": section.result,
                "phases": [
                    {"phase": phase.name, "status": phase.status, **_spent(phase.figures)} for phase in section.phases.values()
                ],
            }
            for section in account.sections.values()
        ],
    }  # fmt: skip


def _spent(figures: "Figures") -> dict[str, Any]:
    return {
        "seconds": round(figures.seconds, 3), "calls": figures.calls, "cached": figures.cached, "tokens": figures.tokens,
        "prompt_tokens": figures.prompt_tokens, "completion_tokens": figures.completion_tokens, "cost": figures.cost,
    }  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
