"""``knotwork runs``: list and show the runs stored on this machine."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from attrs import define, field, frozen

from .....lang.diagnostic import printable
from ....runs.directories import ASK, COMPILE, FILE, LOOPS, RANK, SEED, RunError, find_folder, whole_records
from ....runs.journal import Damage
from ..output import Exit, complain, json_text, say

if TYPE_CHECKING:
    from ....api.reports import Account, Figures

app = typer.Typer(name="runs", invoke_without_command=True)

Form = Annotated[Literal["table", "json"], typer.Option("--format", help="Table or JSON.")]


@app.callback()
def runs(
    context: typer.Context,
    output_format: Form = "table",
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="Maximum number of runs to list, latest first.")
    ] = 20,
) -> int:
    """List stored runs, or show one in full.

    Example: knotwork runs --limit 5
    """
    if context.invoked_subcommand is not None:
        return 0

    return list_kept(output_format, limit)


@app.command("show")
def show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id or directory of the run.", show_default=False)],
    output_format: Form = "table",
) -> int:
    """Show what a kept run did, step by step, and how to resume it.

    Example: knotwork runs show 20260101-120000-ab12
    """

    return show_kept(run, output_format)


# Output of ``runs``: stored runs as a table, and one run in full.

_EXCERPT = 60
"""Maximum characters of an output in a table."""


@define
class _Told:
    """The contents of a run's records, with the last record of each step."""

    steps: dict[str, dict[str, Any]] = field(factory=dict)
    finished: dict[str, Any] | None = None
    tokens: int = 0
    planned: int = 0

    @property
    def done(self) -> int:
        return sum(record["status"] == "done" for record in self.steps.values())


def list_kept(form: Literal["table", "json"], limit: int) -> int:
    """Write the latest runs to stdout."""
    from ....lwt.run_store import list_runs

    found = list_runs()
    rows = []
    for info in found[:limit]:
        done, steps, tokens = _figures(info.path, info.kind)
        rows.append(
            {
                "run": info.run_id, "kind": info.kind, "script": info.script, "status": info.status, "done": done, "steps": steps,
                "started": info.started, "tokens": tokens, "model": info.model, "path": str(info.path),
            }
        )  # fmt: skip
    if form == "json":
        print(json_text(rows))
        return Exit.DONE
    if not rows:
        print("no runs are kept yet; knotwork run FILE makes one")
        return Exit.DONE
    from ..display import render

    columns = ["run", "kind", "script", "status", "steps", "started", "tokens"]
    body = [
        [
            row["run"], row["kind"], row["script"], row["status"], f"{row['done']}/{row['steps']}",
            str(row["started"])[:19].replace("T", " "), f"{row['tokens']:,}",
        ]
        for row in rows
    ]  # fmt: skip
    print(render(columns, body, wide=frozenset({"run", "started"})), end="")
    if len(found) > limit:
        say(f"{len(found) - limit} more; --limit shows them")
    return Exit.DONE


def _figures(path: Path, kind: str) -> tuple[int, int, int]:
    """Return the number of completed steps, of all steps, and of tokens of a run.

    Steps are the contexts of a seed run, the requests of a ranking, the phases of a compilation.
    """
    if kind in LOOPS:
        return loop_figures(path, kind)
    if kind == SEED:
        contexts, tokens = read_contexts(path)
        return sum(each.status == "complete" for each in contexts.values()), len(contexts), tokens
    told = _read(path)
    return told.done, max(told.planned, len(told.steps)), told.tokens


def show_kept(run: str, form: Literal["table", "json"]) -> int:
    """Write one run to stdout."""
    from ....lwt.run_store import load

    try:
        kind = _kind(run)
        if kind == SEED:
            return show_seed_run(run, form)
        if kind in LOOPS:
            return show_loop_run(run, form)
        stored = load(run)
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE
    told, head = _read(stored.path), stored.head
    status = stored.status or "running or interrupted"
    if form == "json":
        steps = {
            step: {k: v for k, v in record.items() if k not in ("record", "step", "item")}
            for step, record in told.steps.items()
        }
        print(
            json_text(
                {
                    "run": stored.run_id, "kind": "script", "script": head["name"], "status": status, "started": head["time"],
                    "model": head["model"], "path": str(stored.path), "tokens": told.tokens, "steps": steps,
                }
            )
        )  # fmt: skip
        return Exit.DONE
    from ..display import render

    print(f"run      {stored.run_id}\nscript   {printable(str(head['name']))}\nstatus   {status}")
    print(
        f"started  {head['time']}\nmodel    {printable(str(head['model'] or '-'))}\nkept in  {printable(str(stored.path))}\n"
    )
    rows = [
        [step, record["status"], f"{record.get('seconds', 0):.2f} s", f"{_tokens(record):,}", _excerpt(record)]
        for step, record in told.steps.items()
    ]
    if rows:
        print(render(["step", "status", "time", "tokens", "output"], rows, wide=frozenset({"step", "status"})), end="")
    if status != "complete":
        print(f"\ngo on with: knotwork run --resume {stored.run_id}")
    return Exit.DONE


def _kind(run: str) -> str | None:
    """Return the kind of a stored run, None for a script's run. Raises ``RunError``."""
    first = next(whole_records(find_folder(run)), None)
    return None if first is None or isinstance(first, Damage) else first[1].get("kind")


def _excerpt(record: dict[str, Any]) -> str:
    text = " ".join(str(record.get("output") or record.get("reason") or "").split())
    return text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…"


def _tokens(record: dict[str, Any]) -> int:
    usage = record.get("usage")
    return sum(usage) if isinstance(usage, list) else 0


def _read(path: Path) -> _Told:
    """Return the contents of a run's records up to the first truncated or damaged one."""
    told = _Told()
    items: Counter[str] = Counter()  # tokens of unfinished steps; a finished step has the total of its items
    try:
        with open(path / FILE, "rb") as file:
            for line in file:
                record = json.loads(line)
                if record["record"] == "run_started":
                    told.planned = int(record["options"].get("steps", 0))
                elif record["record"] == "run_resumed":
                    told.tokens += items.total()
                    items.clear()
                elif record["record"] == "item_done":
                    items[record["step"]] += 0 if record.get("reused") else _tokens(record)
                elif record["record"] == "step_done":
                    told.steps[record["step"]] = record
                    told.tokens += 0 if record.get("reused") else _tokens(record)
                    items.pop(record["step"], None)
                elif record["record"] == "run_finished":
                    told.finished = record
    except (OSError, ValueError, KeyError, TypeError):
        pass
    told.tokens += items.total()
    return told


# A stored ranking, compilation or question: each phase with its cost, and how to resume.

_PHASES = 3
"""Number of phases of a compilation."""
_LONGEST = 60


def loop_figures(path: Path, kind: str) -> tuple[int, int, int]:
    """Return the number of completed parts, of all parts (requests, phases), and of tokens of a run; zeros if unreadable."""
    from ....api.reports import events_of, records_of

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
    from ....api.reports import read_account

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
    from ..display import render

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


# A stored seed run: its contexts, and how to resume.

_LISTED = 50
"""Maximum number of contexts listed."""
_DONE = re.compile(rb'\{"record": "context_done"')
_USAGE = re.compile(rb'"usage": \[(\d{1,15}), (\d{1,15})\]')


@frozen
class KeptContext:
    """The last record of one context."""

    name: str
    status: str
    kept: int
    extracted: int
    failed: int


def read_contexts(path: Path) -> tuple[dict[int, KeptContext], int]:
    """Return the finished contexts by index and the tokens of all extractions, up to the first damaged record."""
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
                    tokens += int(usage[-1][1]) + int(usage[-1][2])  # the last match: a review's text may match too
    except (OSError, ValueError, KeyError, TypeError):
        return contexts, tokens
    return contexts, tokens


def show_seed_run(run: str, form: Literal["table", "json"]) -> int:
    """Write the run to stdout. Raises ``RunError``."""
    from ....seeds.seed_store import load as load_seed_run

    stored = load_seed_run(run)
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
    from ..display import render

    rows = [
        [index, each.name, each.status, each.kept, each.extracted, each.failed]
        for index, each in list(contexts.items())[:_LISTED]
    ]
    print(render(["#", "context", "status", "kept", "extracted", "failed"], rows, wide=frozenset({"status"})), end="")
    if len(contexts) > _LISTED:
        print(f"and {len(contexts) - _LISTED:,} more; --format json has them all")
