"""What ``state fork``, ``rollback``, ``export`` and ``verify`` do."""

from pathlib import Path
from typing import Any, Literal

from .....adapters.state import StateError
from .....lang.diagnostic import printable
from ....gasl.state_graph import roll_back as undo
from ....models.wiring import fork_state as fork
from ....models.wiring import open_state, with_check
from ....models.wiring import verify_state as verify
from ...replacing import replace_file
from ..shared.exit import Exit, Misused
from ..shared.files import writable
from ..shared.output import complain, json_text, say, write
from ..shared.states import reading, there

__all__ = ["export_state", "fork_state", "roll_back", "verify_state"]


def fork_state(folder: str, into: str) -> int:
    """Make the fork and say its hash."""
    if Path(into).exists():
        raise Misused(f"{into} is there already", "a fork gets a folder of its own")
    made = fork(there(folder), into)
    say(printable(f"{into} begins as {folder} is now · hash {made[:12]}"))
    return Exit.DONE


def roll_back(folder: str, to: str) -> int:
    """Take the state back, as a commit, and note it in the history."""
    if there(folder).is_file():
        raise Misused(
            f"{folder} is a file, which is only read", f"knotwork state fork {folder} NEW makes a state of it"
        )
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
    """Check every file, byte by byte and against the others, and say of each what was found."""
    there(folder)
    found = verify(folder)
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
