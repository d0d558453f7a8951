"""``knotwork runs``: list and show the runs recorded on this machine."""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from .....lang.diagnostic import printable
from ....api import runs as recorded
from ....api.figures import counted
from ..output import Exit, complain, json_text, say, write_table

app = typer.Typer(name="runs", invoke_without_command=True)

Form = Annotated[Literal["table", "json"], typer.Option("--format", help="Table or JSON.")]

_EXCERPT = 60
"""Maximum number of characters of a text in a table."""
_LISTED = 50
"""Maximum number of contexts that are listed."""


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
        return Exit.DONE
    rows, total = recorded.list_runs(limit)
    if output_format == "json":
        print(json_text(rows))
        return Exit.DONE
    if not rows:
        print("no run is recorded yet; knotwork run FILE records one")
        return Exit.DONE
    cells = [
        [
            row["run"], row["kind"], row["script"], row["status"], f"{row['done']}/{row['steps']}",
            str(row["started"])[:19].replace("T", " "), f"{row['tokens']:,}",
        ]
        for row in rows
    ]  # fmt: skip
    write_table(("run", "kind", "script", "status", "steps", "started", "tokens"), cells, wide=("run", "started"))
    if total > limit:
        say(f"{total - limit} more; --limit shows more")
    return Exit.DONE


@app.command("show")
def show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id or directory of the run.", show_default=False)],
    output_format: Form = "table",
) -> int:
    """Show the steps of a stored run, and the command that resumes it.

    Example: knotwork runs show 20260101-120000-ab12
    """
    try:
        found = recorded.show(run)
    except recorded.RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE
    if output_format == "json":
        print(json_text(found))
        return Exit.DONE
    kind = found["kind"]
    subject = {"script": "script", "seed": "seed"}.get(kind, "subject")
    for title, value in (
        ("run", found["run"]), ("kind", kind), (subject, found["script"]), ("status", found["status"]),
        ("started", found["started"]), ("model", found["model"] or "-"), ("folder", found["path"]),
        ("answer", found.get("answer")), ("reason", found.get("reason")),
    ):  # fmt: skip
        if value:
            print(f"{title:<8} {printable(str(value))}")
    print()
    match kind:
        case "script":
            _print_steps(found)
        case "seed":
            _print_contexts(found)
        case _:
            _print_phases(found)
    if kind not in ("script", "seed"):
        print(printable(f"full report: knotwork report {found['path'] if kind == 'ask' else found['run']}"))
    if found["status"] != "complete":
        print(printable(f"resume with: {_resume_command(found)}"))
    return Exit.DONE


def _resume_command(found: dict[str, Any]) -> str:
    match found["kind"]:
        case "script":
            return f"knotwork run --resume {found['run']}"
        case "seed":
            words = [str(found["options"].get(name) or name.upper()) for name in ("seed", "contexts")]
            return f"knotwork seed run {' '.join(words)} --resume {found['run']}"
        case "rank":
            return f"knotwork rank --resume {found['run']}"
        case "compile":
            return "the same knotwork seed compile command: finished calls are in the cache"
    return f"knotwork ask GRAPH {json.dumps(found['script'])} --state {Path(found['path']).parent.parent}"


def _print_steps(found: dict[str, Any]) -> None:
    rows = []
    for step, record in found["steps"].items():
        text = " ".join(str(record.get("output") or record.get("reason") or "").split())
        tokens = f"{recorded.tokens_of(record):,}"
        rows.append([step, record["status"], f"{record.get('seconds', 0):.2f} s", tokens, _short(text)])
    if rows:
        write_table(("step", "status", "time", "tokens", "output"), rows, wide=("step", "status"))


def _print_contexts(found: dict[str, Any]) -> None:
    contexts = found["contexts"]
    statuses = Counter(each["status"] for each in contexts)
    counts = ", ".join(f"{count:,} {each}" for each, count in sorted(statuses.items()))
    print(f"{counted(len(contexts), 'finished context')}{f': {counts}' if counts else ''}")
    print(f"{counted(found['extractions'], 'recorded extraction')}")
    columns = ("index", "name", "status", "kept", "extracted", "failed")
    rows = [[each[column] for column in columns] for each in contexts if each["status"] != "complete"]
    if rows:
        write_table(("#", "context", *columns[2:]), rows[:_LISTED], wide=("status",))
    if len(rows) > _LISTED:
        print(f"and {len(rows) - _LISTED:,} more; --format json writes all")


def _print_phases(found: dict[str, Any]) -> None:
    rows = [
        [part["part"], phase["phase"], phase["status"], *_usage(phase)]
        for part in found["parts"]
        for phase in part["phases"]
    ]
    rows.append(["all", "", "", *_usage(found)])
    write_table(("part", "phase", "status", "time", "calls", "tokens", "cost"), rows, wide=("phase",))
    if found["kind"] == "rank":
        for part in found["parts"]:
            print(printable(f"{part['part']} {_short(part['about'])}: {part['result'] or 'no ranking'}"))
    print()


def _usage(figures: dict[str, Any]) -> list[str]:
    cost = f"${figures['cost']:.4f}" if figures["cost"] is not None else ""
    return [f"{figures['seconds']:.2f} s", f"{figures['calls']:,}", f"{figures['tokens']:,}", cost]


def _short(text: str) -> str:
    return text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…"
