"""``knotwork state``: show, compare, fork, roll back, export and verify states."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from .....lang.diagnostic import nearest, printable
from ....api import states
from ....api.figures import (
    DIFFERENCE_COLUMNS,
    HISTORY_COLUMNS,
    KEY_COLUMNS,
    counted,
    difference_rows,
    history_rows,
    key_rows,
    short_text,
)
from ....api.files import replace_file
from ..inputs import warn, writable
from ..output import Exit, complain, json_text, say, write, write_table

app = typer.Typer(name="state", no_args_is_help=True, help="Show, compare, fork, roll back and verify a state.")

Folder = Annotated[
    str, typer.Argument(metavar="DIR", help="Directory of the state, or an exported state.json.", show_default=False)
]
Form = Annotated[Literal["table", "json"], typer.Option("--format", help="Table or JSON.")]

_ROWS = 200
"""Maximum number of rows of a table."""


@app.command("show")
def show(
    folder: Folder,
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="One key, such as network.authors.", show_default=False)
    ] = None,
    evidence: Annotated[bool, typer.Option("--evidence", help="Also show the evidence of each item.")] = False,
    output_format: Form = "table",
) -> int:
    """List the keys of a state, or show the value of one key.

    Example: knotwork state show run/ network.authors --evidence
    """
    with states.reading(folder, warn) as store:
        state = store.snapshot()
        declared = state.declared()
        if key is not None:
            if state.kind(key) is not None:
                return _show_key(state, key, evidence, output_format)
            names = [each.key for each in declared]
            near = nearest(key, names)
            keys = (
                f"its keys: {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}"
                if names
                else "no key is declared"
            )
            complain(f"the state has no key {key}", f"did you mean {near}?" if near else keys)
            return Exit.FAILED
        if output_format == "json":
            rows = [
                {"key": d.key, "type": d.type, "size": d.size, "description": d.description, "incomplete": list(d.incomplete)}
                for d in declared
            ]  # fmt: skip
            write(json_text({"hash": store.hash, "steps": len(store.history), "keys": rows}))
            return Exit.DONE
        if declared:
            write_table(KEY_COLUMNS, key_rows(declared), wide=("key", "type"))
        else:
            print("no key is declared yet")
        say(f"{counted(len(store.history), 'step')} · hash {store.hash[:12]}")
    return Exit.DONE


def _show_key(state: states.Snapshot, key: str, evidence: bool, form: Literal["table", "json"]) -> int:
    value = state.get(key)
    pieces: Any = state.evidence(key) if evidence else None
    if form == "json":
        write(json_text({"key": key, "value": value, "evidence": pieces} if evidence else value))
        return Exit.DONE
    from ..output import drawn

    shown = value[:_ROWS] if isinstance(value, list) else value
    if evidence and isinstance(shown, list):
        lists = pieces if isinstance(pieces, list) else []
        texts = ["\n".join(map(_evidence_text, each)) for each in lists[: len(shown)]]
        texts += [""] * (len(shown) - len(texts))
        shown = [
            {**item, "evidence": text} if isinstance(item, dict) else {"value": item, "evidence": text}
            for item, text in zip(shown, texts, strict=True)
        ]
    table = drawn(shown, any_value=True)
    write(table if table is not None else json_text(value))
    if isinstance(value, list) and len(value) > _ROWS:
        say(f"and {len(value) - _ROWS:,} more; --format json writes all")
    if evidence and not isinstance(value, list):
        write(json_text(pieces))
    return Exit.DONE


def _evidence_text(piece: Any) -> str:
    if piece.get("kind") == "model":
        return f"{piece.get('model') or 'a model'}, from {short_text(piece.get('cited') or piece.get('shown') or [])}"
    if piece.get("kind") == "computed":
        columns = ", ".join(f"{name} = {text}" for name, text in dict(piece.get("columns") or {}).items())
        return f"{columns} over {piece.get('over', 0):,} items"
    ids = piece.get("nodes") or piece.get("edges") or []
    source = piece.get("file_path") or piece.get("doc_id") or piece.get("source_id")
    return " · ".join(filter(None, [short_text(ids), short_text(source) if source else "", piece.get("snippet") or ""]))


@app.command("log")
def log(
    folder: Folder,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, help="Maximum number of steps to list, latest last.")
    ] = 50,
    output_format: Form = "table",
) -> int:
    """List the steps of a state, with the state's hash after each commit.

    Example: knotwork state log run/ --limit 10
    """
    with states.reading(folder, warn) as store:
        history = store.history
        entries = list(history[max(0, len(history) - limit) :])
        if output_format == "json":
            write(json_text(entries))
        elif not entries:
            print("the state has no steps yet")
        else:
            write_table(HISTORY_COLUMNS, history_rows(entries), wide=("step", "status", "state"))
            if len(history) > limit:
                say(f"{counted(len(history) - limit, 'earlier step')}; --limit shows more")
    return Exit.DONE


@app.command("diff")
def diff(
    folder: Folder,
    before: Annotated[
        str, typer.Argument(metavar="BEFORE", help="A hash from the log, or the directory of another state.")
    ],
    after: Annotated[
        str | None,
        typer.Argument(metavar="[AFTER]", help="A hash or a directory, as for BEFORE (default: the current state)."),
    ] = None,
    output_format: Form = "table",
) -> int:
    """Show the differences between two states.

    Example: knotwork state diff run/ 4f2a91
    """
    found = states.diff(folder, before, after, warn)
    if output_format == "json":
        write(json_text([{"key": d.key, "kind": d.kind, "before": d.before, "after": d.after} for d in found]))
    elif not found:
        print("the states are equal")
    else:
        write_table(DIFFERENCE_COLUMNS, difference_rows(found[:_ROWS]), wide=("key", "difference"))
        if len(found) > _ROWS:
            say(f"and {len(found) - _ROWS:,} more; --format json writes all")
    return Exit.DONE


@app.command("fork")
def fork(
    folder: Folder,
    into: Annotated[str, typer.Argument(metavar="NEW", help="Directory of the fork; it must not exist.")],
) -> int:
    """Copy a state into a new directory. The copy and the original then change independently.

    Example: knotwork state fork run/ attempt-2/
    """
    hash_ = states.fork(folder, into, warn)
    say(printable(f"copied {folder} to {into} · hash {hash_[:12]}"))
    return Exit.DONE


@app.command("rollback")
def rollback(
    folder: Folder,
    to: Annotated[str, typer.Argument(metavar="HASH", help="A hash from the log, or its first characters.")],
) -> int:
    """Restore an earlier commit of a state. The restoration adds a new commit; earlier commits are kept.

    Example: knotwork state rollback run/ 4f2a91
    """
    try:
        before, after = states.roll_back(folder, to, "knotwork state rollback", warn)
    except states.StateError as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    if before == after:
        say(f"the state is already at {before[:12]}; nothing was changed")
    else:
        say(f"rolled back to {after[:12]}; to undo this, roll back to {before[:12]}")
    return Exit.DONE


@app.command("export")
def export(
    folder: Folder,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Output file (default: stdout).", show_default=False),
    ] = None,
) -> int:
    """Write a state as one JSON object: variables, history, provenance, and the data for a replay.

    Example: knotwork state export run/ -o state.json
    """
    writable(output, (".json",))
    text = json_text(states.export(folder, warn))
    if output is None or output == "-":
        write(text)
    else:
        replace_file(Path(output), text + "\n")
        say(f"written to {printable(output)}")
    return Exit.DONE


@app.command("verify")
def verify(folder: Folder, output_format: Form = "table") -> int:
    """Check every byte of a state's files against the chain of hashes. Nothing is changed.

    Example: knotwork state verify run/
    """
    found = states.verify(folder)
    if output_format == "json":
        write(json_text(found))
        return Exit.DONE if found["ok"] else Exit.FAILED
    name = printable(folder)
    if found["ok"]:
        parts = [counted(found["steps"], "step"), f"hash {found['hash'][:12]}"]
        if "records" in found:
            size = found["journal_bytes"] + found["snapshot_bytes"]
            parts.insert(0, f"{counted(found['records'], 'record')} after the last snapshot, {size:,} bytes")
        print(f"{name} is intact: {' · '.join(parts)}")
    else:
        print(f"{name} is damaged:")
        for damage in found["damage"]:
            print(printable(f"  {damage['file']} at byte {damage['position']:,}: {damage['reason']}"))
    if "records" in found:
        for file in found["files"]:
            why = f": {file['why']}" if file["status"] == "not checked" else ""
            print(printable(f"  {file['file']}  {file['bytes']:,} bytes, {file['status']}{why}"))
    for notice in found["notices"]:
        say(printable(notice))
    return Exit.DONE if found["ok"] else Exit.FAILED
