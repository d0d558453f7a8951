"""What ``runs`` shows: kept runs as a table, and one in full."""

import json
from pathlib import Path
from typing import Any, Literal

from attrs import define, field

from .....lang.diagnostic import printable
from ....lwt.run_store import RunError, list_runs, load
from ....runs.directories import FILE, LOOPS, SEED, find_folder, whole_records
from ....runs.journal import Damage
from ..shared.exit import Exit
from ..shared.output import complain, json_text, say

__all__ = ["list_kept", "show_kept"]

_EXCERPT = 60
"""Characters of an output in a table."""


@define
class _Told:
    """What a run's records say, the last word on each step."""

    steps: dict[str, dict[str, Any]] = field(factory=dict)
    finished: dict[str, Any] | None = None
    tokens: int = 0
    planned: int = 0

    @property
    def done(self) -> int:
        return sum(record["status"] == "done" for record in self.steps.values())


def list_kept(form: Literal["table", "json"], limit: int) -> int:
    """Write the latest runs to stdout."""
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
    from ..shared.tables import render

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
    """Return how many steps of a run are done, how many there are, and its tokens. A seed's steps are its contexts, a ranking's its
    requests, a compilation's its phases."""
    if kind in LOOPS:
        from .kept_loops import loop_figures

        return loop_figures(path, kind)
    if kind == SEED:
        from .kept_seeds import read_contexts

        contexts, tokens = read_contexts(path)
        return sum(each.status == "complete" for each in contexts.values()), len(contexts), tokens
    told = _read(path)
    return told.done, max(told.planned, len(told.steps)), told.tokens


def show_kept(run: str, form: Literal["table", "json"]) -> int:
    """Write one run to stdout."""
    try:
        kind = _kind(run)
        if kind == SEED:
            from .kept_seeds import show_seed_run

            return show_seed_run(run, form)
        if kind in LOOPS:
            from .kept_loops import show_loop_run

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
    from ..shared.tables import render

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
    """Return the kind of a kept run, None for a script's. Raises ``RunError``."""
    first = next(whole_records(find_folder(run)), None)
    return None if first is None or isinstance(first, Damage) else first[1].get("kind")


def _excerpt(record: dict[str, Any]) -> str:
    text = " ".join(str(record.get("output") or record.get("reason") or "").split())
    return text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…"


def _tokens(record: dict[str, Any]) -> int:
    usage = record.get("usage")
    return sum(usage) if isinstance(usage, list) else 0


def _read(path: Path) -> _Told:
    """Read a run's records; what is torn or damaged ends the reading, the rest is shown."""
    told = _Told()
    try:
        with open(path / FILE, "rb") as file:
            for line in file:
                record = json.loads(line)
                if record["record"] == "run_started":
                    told.planned = int(record["options"].get("steps", 0))
                elif record["record"] == "step_done":
                    told.steps[record["step"]] = record
                    told.tokens += 0 if record.get("reused") else _tokens(record)
                elif record["record"] == "run_finished":
                    told.finished = record
    except (OSError, ValueError, KeyError, TypeError):
        return told
    return told
