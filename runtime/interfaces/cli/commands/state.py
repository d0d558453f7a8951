"""``knotwork state``: show, compare, fork, roll back, export and verify states."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from .....adapters.state import Snapshot, StateError, StateStore
from .....lang.diagnostic import nearest, printable
from ...atomic_write import replace_file
from ...figures import (
    DIFFERENCE_COLUMNS,
    HISTORY_COLUMNS,
    KEY_COLUMNS,
    difference_rows,
    history_rows,
    key_rows,
    short_text,
)
from ..inputs import reading, there, writable
from ..output import Exit, Misused, complain, json_text, say, write

app = typer.Typer(name="state", no_args_is_help=True, help="Show, compare, fork, roll back and verify a state.")

Folder = Annotated[
    str, typer.Argument(metavar="DIR", help="Directory of the state, or an exported state.json.", show_default=False)
]
Form = Annotated[Literal["table", "json"], typer.Option("--format", help="Table or JSON.")]


@app.command("show")
def show(
    folder: Folder,
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="One key, such as network.authors.", show_default=False)
    ] = None,
    evidence: Annotated[bool, typer.Option("--evidence", help="Show the evidence beside each item, too.")] = False,
    output_format: Form = "table",
) -> int:
    """List the keys of a state, or show what one of them holds.

    Example: knotwork state show run/ network.authors --evidence
    """

    return show_state(folder, key, evidence, output_format)


@app.command("log")
def log(
    folder: Folder,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="Maximum number of steps to list, latest last.")
    ] = 50,
    output_format: Form = "table",
) -> int:
    """List what was done, step by step, with the state's hash after each commit.

    Example: knotwork state log run/ --limit 10
    """

    return show_log(folder, limit, output_format)


@app.command("diff")
def diff(
    folder: Folder,
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="A hash from the log, or another state's folder.")],
    after: Annotated[
        str | None,
        typer.Argument(metavar="[AFTER]", help="A hash or a directory, likewise (default: the current state)."),
    ] = None,
    output_format: Form = "table",
) -> int:
    """Show how two states differ.

    Example: knotwork state diff run/ 4f2a91
    """

    return show_difference(folder, before, after, output_format)


@app.command("fork")
def fork(
    folder: Folder,
    into: Annotated[str, typer.Argument(metavar="NEW", help="Directory of the fork; it must not exist.")],
) -> int:
    """Make a state of its own that begins as this one is now.

    Example: knotwork state fork run/ attempt-2/
    """

    return fork_state(folder, into)


@app.command("rollback")
def rollback(
    folder: Folder,
    to: Annotated[str, typer.Argument(metavar="HASH", help="A hash from the log, or its first characters.")],
) -> int:
    """Take a state back to an earlier commit. This is a new commit: the history is kept and nothing is lost.

    Example: knotwork state rollback run/ 4f2a91
    """

    return roll_back(folder, to)


@app.command("export")
def export(
    folder: Folder,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Output file (default: stdout).", show_default=False),
    ] = None,
) -> int:
    """Write a state as one JSON object: variables, history, provenance, and what a replay needs.

    Example: knotwork state export run/ -o state.json
    """

    return export_state(folder, output)


@app.command("verify")
def verify(folder: Folder, output_format: Form = "table") -> int:
    """Read every byte of a state's files and check it against the chain of hashes. Changes nothing.

    Example: knotwork state verify run/
    """

    return verify_state(folder, output_format)


# Output of ``state show``, ``log`` and ``diff``: tables or JSON.

StateForm = Literal["table", "json"]

_ROWS = 200


def show_state(folder: str, key: str | None, evidence: bool, form: StateForm) -> int:
    """Write the list of keys, or the value of ``key``."""
    with reading(folder) as store:
        state = store.snapshot()
        if key is None:
            return _show_keys(store, form)
        if state.kind(key) is None:
            names = [declared.key for declared in state.declared()]
            near = nearest(key, names)
            listed = (
                f"there are: {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}"
                if names
                else "it has none yet"
            )
            complain(f"the state has no key {key}", f"did you mean {near}?" if near else listed)
            return Exit.FAILED
        return _show_key(state, key, evidence, form)


def _show_keys(store: StateStore, form: StateForm) -> int:
    from ..display import render

    declared = store.snapshot().declared()
    if form == "json":
        rows = [
            {
                "key": d.key,
                "type": d.type,
                "size": d.size,
                "description": d.description,
                "incomplete": list(d.incomplete),
            }
            for d in declared
        ]
        write(json_text({"hash": store.hash, "steps": len(store.history), "keys": rows}))
        return Exit.DONE
    if declared:
        print(render(list(KEY_COLUMNS), key_rows(declared), wide=frozenset({"key", "type"})), end="")
    else:
        print("no key is declared yet")
    steps = len(store.history)
    say(f"{steps:,} step{'' if steps == 1 else 's'} · hash {store.hash[:12]}")
    return Exit.DONE


def _show_key(state: Snapshot, key: str, evidence: bool, form: StateForm) -> int:
    value = state.get(key)
    beside = state.evidence(key) if evidence else None
    if form == "json":
        write(json_text({"key": key, "value": value, "evidence": beside} if evidence else value))
        return Exit.DONE
    from ..display import drawn

    shown = value[:_ROWS] if isinstance(value, list) else value
    if evidence and isinstance(shown, list):
        shown = [_with_evidence(item, _at(beside, index)) for index, item in enumerate(shown)]
    table = drawn(shown, any_value=True)
    write(table if table is not None else json_text(value))
    if isinstance(value, list) and len(value) > _ROWS:
        say(f"and {len(value) - _ROWS:,} more; --format json has them all")
    if evidence and not isinstance(value, list):
        write(json_text(beside))
    return Exit.DONE


def _at(beside: Any, index: int) -> Any:
    return beside[index] if isinstance(beside, list) and index < len(beside) else []


def _with_evidence(item: Any, pieces: Any) -> dict[str, Any]:
    told = "\n".join(_told(piece) for piece in pieces)
    return {**item, "evidence": told} if isinstance(item, dict) else {"value": item, "evidence": told}


def _told(piece: Any) -> str:
    if piece.get("kind") == "model":
        return f"{piece.get('model') or 'a model'}, from {short_text(piece.get('cited') or piece.get('shown') or [])}"
    ids = piece.get("nodes") or piece.get("edges") or []
    where = piece.get("file_path") or piece.get("doc_id") or piece.get("source_id")
    snippet = piece.get("snippet")
    return " · ".join(filter(None, [short_text(ids), short_text(where) if where else "", snippet or ""]))


def show_log(folder: str, limit: int, form: StateForm) -> int:
    """Write the latest steps, oldest first."""
    with reading(folder) as store:
        history = store.history
        entries = list(history[max(0, len(history) - limit) :])
        if form == "json":
            write(json_text(entries))
            return Exit.DONE
        if not entries:
            print("nothing has happened yet")
            return Exit.DONE
        from ..display import render

        rows, columns = history_rows(entries), list(HISTORY_COLUMNS)
        print(render(columns, rows, wide=frozenset({"step", "status", "state"})), end="")
        if len(history) > limit:
            say(f"{len(history) - limit:,} earlier steps; --limit shows more")
    return Exit.DONE


def show_difference(folder: str, before: str, after: str | None, form: StateForm) -> int:
    """Write the differences of two states, each given as a commit hash of this state or the folder of another."""

    def state(named: str) -> Snapshot | str:
        if not Path(named).exists():
            if "/" in named:
                there(named)
            return named
        with reading(named) as other:
            return other.snapshot()

    with reading(folder) as store:
        try:
            found = store.diff(state(before), store.snapshot() if after is None else state(after))
        except StateError as error:
            raise Misused(error.message, error.hint or f"knotwork state log {folder} has the hashes") from None
    if form == "json":
        write(json_text([{"key": d.key, "kind": d.kind, "before": d.before, "after": d.after} for d in found]))
    elif not found:
        print("the same")
    else:
        from ..display import render

        rows = difference_rows(found[:_ROWS])
        print(render(list(DIFFERENCE_COLUMNS), rows, wide=frozenset({"key", "difference"})), end="")
        if len(found) > _ROWS:
            say(f"and {len(found) - _ROWS:,} more; --format json has them all")
    return Exit.DONE


# The commands ``state fork``, ``rollback``, ``export`` and ``verify``.


def fork_state(folder: str, into: str) -> int:
    """Create the fork and report its hash."""
    if Path(into).exists():
        raise Misused(f"{into} is there already", "a fork gets a folder of its own")
    from ....models.factory import fork_state as fork_on_disk

    made = fork_on_disk(there(folder), into)
    say(printable(f"{into} begins as {folder} is now · hash {made[:12]}"))
    return Exit.DONE


def roll_back(folder: str, to: str) -> int:
    """Roll the state back with a new commit and record it in the history."""
    if there(folder).is_file():
        raise Misused(
            f"{folder} is a file, which is only read", f"knotwork state fork {folder} NEW makes a state of it"
        )
    from ....gasl.surroundings import roll_back as undo
    from ....models.factory import open_state

    store = open_state(folder)
    try:
        before = store.hash
        if not undo(store, to, "knotwork state rollback"):
            say(f"the state is as it was at {before[:12]}; nothing was changed")
            return Exit.DONE
        say(f"back at {store.hash[:12]}; it was {before[:12]}, to which the same way leads")
    except StateError as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    finally:
        store.close()
    return Exit.DONE


def export_state(folder: str, output: str | None) -> int:
    """Write the state's JSON object."""
    from ....models.factory import with_check

    writable(output, (".json",))
    with reading(folder) as store:
        text = json_text(with_check(store.as_json()))
    if output is None or output == "-":
        write(text)
    else:
        replace_file(Path(output), text + "\n")
        say(f"written to {printable(output)}")
    return Exit.DONE


def verify_state(folder: str, form: Literal["table", "json"]) -> int:
    """Check every file byte by byte and against the others; report the result for each."""
    from ....models.factory import verify_state as verify_on_disk

    there(folder)
    found = verify_on_disk(folder)
    told: dict[str, Any] = {"state": folder, "ok": found.ok, "hash": found.hash, "steps": found.steps}
    if (report := found.report) is not None:
        told |= {
            "records": report.records, "journal_bytes": report.journal_bytes, "snapshot_bytes": report.snapshot_bytes,
            "closed": report.closed,
        }  # fmt: skip
    told["damage"] = [{"file": each.file, "position": each.position, "reason": each.reason} for each in found.damage]
    told["files"] = [
        {"file": each.name, "bytes": each.size, "status": each.status, "why": each.why} for each in found.files
    ]
    told["notices"] = found.notices
    if form == "json":
        write(json_text(told))
    else:
        _tell(told)
    return Exit.DONE if told["ok"] else Exit.FAILED


def _tell(told: dict[str, Any]) -> None:
    name = printable(told["state"])
    if told["ok"]:
        counted = [f"{told['steps']:,} step{'' if told['steps'] == 1 else 's'}", f"hash {told['hash'][:12]}"]
        if "records" in told:
            size = told["journal_bytes"] + told["snapshot_bytes"]
            one = told["records"] == 1
            counted.insert(
                0, f"{told['records']:,} record{'' if one else 's'} behind the last snapshot, {size:,} bytes"
            )
        print(f"{name} is whole: {' · '.join(counted)}")
    else:
        print(f"{name} is damaged:")
        for damage in told["damage"]:
            print(printable(f"  {damage['file']} at byte {damage['position']:,}: {damage['reason']}"))
    if "records" in told:
        for file in told["files"]:
            why = f": {file['why']}" if file["status"] == "not checked" else ""
            print(printable(f"  {file['file']}  {file['bytes']:,} bytes, {file['status']}{why}"))
    for notice in told["notices"]:
        say(printable(notice))
