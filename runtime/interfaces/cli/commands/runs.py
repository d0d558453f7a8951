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
"""Maximum number of characters of a table cell."""
_LISTED = 50
"""Maximum number of contexts that are listed."""


@app.callback()
def runs(
    context: typer.Context,
    output_format: Form = "table",
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, help="Maximum number of runs to list, latest first.")
    ] = 20,
) -> int:
    """List stored runs, or show one run in full.

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
            str(row["started"])[:19].replace("T", " "), recorded.tokens_cell(row),
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
    subject = {"script": "script", "each": "script", "seed": "seed"}.get(kind, "subject")
    for title, value in (
        ("run", found["run"]), ("kind", kind), (subject, found["script"]), ("status", found["status"]),
        ("started", found["started"]), ("model", found["model"] or "-"),
        *(("price", recorded.price_line(each)) for each in found.get("prices", ())), ("folder", found["path"]),
        ("answer", found.get("answer")), ("reason", found.get("reason")),
    ):  # fmt: skip
        if value:
            print(f"{title:<8} {printable(str(value))}")
    print()
    match kind:
        case "script":
            _print_steps(found)
        case "each":
            _print_rows(found)
        case "seed":
            _print_contexts(found)
        case "eval":
            _print_evaluation(found)
        case "tune":
            _print_trials(found)
        case _:
            _print_phases(found)
    if kind not in ("script", "seed", "tune", "each"):
        print(printable(f"full report: knotwork report {found['path'] if kind == 'ask' else found['run']}"))
    if found["status"] != "complete":
        print(printable(f"resume with: {_resume_command(found)}"))
    return Exit.DONE


@app.command("cancel")
def cancel(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Id or directory of a run with --batch.", show_default=False)
    ],
) -> int:
    """Cancel the batches of a stored run at the service. Requests that are answered already are paid for, and --resume uses them.

    Example: knotwork runs cancel 20260101-120000-ab12
    """
    from ....api.seed_batches import cancel as cancel_batches

    try:
        found = cancel_batches(run)
    except recorded.RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE
    if found.batches:
        print(f"cancelled: {', '.join(found.batches)}")
    else:
        print("the run has no batch that is running")
    return Exit.DONE


@app.command("diff")
def diff(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="Id or directory of a run.", show_default=False)],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="Id or directory of another run.", show_default=False)],
    output_format: Form = "table",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit code 1 if the runs differ.")] = False,
) -> int:
    """Show which prompts, answers, results and options differ between two stored runs.

    Example: knotwork runs diff 20260101-120000-ab12 20260102-093000-cd34
    """
    from ..run_diff_view import print_diff

    return print_diff(before, after, as_json=as_json or output_format == "json", exit_code=exit_code)


def _resume_command(found: dict[str, Any]) -> str:
    match found["kind"]:
        case "script":
            return f"knotwork run --resume {found['run']}"
        case "each":
            words = [str(found["script"]), "--each", str(found["options"].get("table")), "--resume", str(found["run"])]
            return f"knotwork run {' '.join(words)} (and all other options of the run)"
        case "seed":
            words = [str(found["options"].get(name) or name.upper()) for name in ("seed", "contexts")]
            return f"knotwork seed run {' '.join(words)} --resume {found['run']}"
        case "eval":
            return f"knotwork eval --resume {found['run']}"
        case "tune":
            command = f"knotwork seed tune {found['script']} GOLD --contexts FILE --resume {found['run']}"
            return f"{command} (and all other options of the run)"
        case "rank":
            return f"knotwork rank --resume {found['run']}"
        case "compile":
            return "the same knotwork seed compile command (finished calls are in the cache)"
    return f"knotwork ask GRAPH {json.dumps(found['script'])} --state {Path(found['path']).parent.parent}"


def _print_steps(found: dict[str, Any]) -> None:
    rows = []
    for step, record in found["steps"].items():
        text = " ".join(str(record.get("output") or record.get("reason") or "").split())
        tokens = recorded.tokens_cell(record | {"tokens": recorded.tokens_of(record)})
        rows.append([step, record["status"], f"{record.get('seconds', 0):.2f} s", tokens, _short(text)])
    if rows:
        write_table(("step", "status", "time", "tokens", "output"), rows, wide=("step", "status"))


def _print_rows(found: dict[str, Any]) -> None:
    counts = ", ".join(f"{count:,} {each}" for each, count in sorted(found["statuses"].items()))
    print(f"{counted(sum(found['statuses'].values()), 'finished row')}{f': {counts}' if counts else ''}")
    rows = [[each["index"], each["name"], each["status"], _short(each["error"] or "")] for each in found["rows"]]
    if rows:
        write_table(("#", "row", "status", "error"), rows[:_LISTED], wide=("status",))
    if len(rows) > _LISTED:
        print(f"and {len(rows) - _LISTED:,} more; --format json writes all")


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


def _print_evaluation(found: dict[str, Any]) -> None:
    print(
        f"{counted(found['items'], 'label')}, {counted(found['calls'], 'call')}, {recorded.tokens_cell(found, ' tokens')}"
    )
    report = found["report"] or {"candidates": {}, "requirements": []}
    rows = []
    for name, each in report["candidates"].items():
        for field, scores in each["fields"].items():
            metric = next(each for each, score in scores.items() if isinstance(score, dict) and "low" in score)
            score = scores[metric]
            value = "-" if score["value"] is None else f"{score['value']:.3f}"
            if score["low"] is not None:
                value += f" ({score['low']:.3f} to {score['high']:.3f})"
            rows.append(
                [name, field, metric, value, f"{scores['items']:,}", f"{scores['invalid']:,}", f"{scores['failed']:,}"]
            )
    if rows:
        write_table(("candidate", "field", "metric", "score", "items", "invalid", "failed"), rows, wide=("score",))
    for each in report["requirements"]:
        word = {True: "met", False: "NOT MET"}.get(each["holds"], "NOT DECIDED")
        print(printable(f"{word}  {each['text']}  ({each['message']})"))


def _print_trials(found: dict[str, Any]) -> None:
    print(
        f"{counted(len(found['trials']), 'trial')}, {counted(found['calls'], 'call')}, {recorded.tokens_cell(found, ' tokens')}"
    )
    rows = [
        [
            each["trial"], each["description"] or "own", "own" if each["examples"] is None else each["examples"], each["items"],
            " ".join("-" if score is None else f"{score:.3f}" for score in each["scores"]),
        ]
        for each in found["trials"]
    ]  # fmt: skip
    if rows:
        write_table(
            ("trial", "descriptions", "examples", "dev items", "score of each round"),
            rows,
            wide=("score of each round",),
        )
    if found["test"] is not None:
        comparison = found["test"]["comparison"]
        if comparison is None:
            print("test: not made, because no variant was better on the dev items")
        else:
            print(
                f"test of trial {found['test']['trial']}: {comparison['difference']:+.3f}; verdict: {comparison['verdict']}"
            )


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
    return [f"{figures['seconds']:.2f} s", f"{figures['calls']:,}", recorded.tokens_cell(figures), cost]


def _short(text: str) -> str:
    return text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…"
