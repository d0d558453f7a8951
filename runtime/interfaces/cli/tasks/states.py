"""What ``state show``, ``log`` and ``diff`` write: a state as tables, for a person, or as JSON."""

from pathlib import Path
from typing import Any, Literal

from .....adapters.state import Snapshot, StateError, StateStore
from .....lang.diagnostic import nearest
from ...rows import (
    DIFFERENCE_COLUMNS,
    HISTORY_COLUMNS,
    KEY_COLUMNS,
    difference_rows,
    history_rows,
    key_rows,
    short_text,
)
from ..shared.exit import Exit, Misused
from ..shared.output import complain, json_text, say, write
from ..shared.states import reading, there

__all__ = ["show_difference", "show_log", "show_state"]

Form = Literal["table", "json"]

_ROWS = 200


def show_state(folder: str, key: str | None, evidence: bool, form: Form) -> int:
    """Write the keys, or what one holds."""
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


def _show_keys(store: StateStore, form: Form) -> int:
    from ..shared.tables import render

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


def _show_key(state: Snapshot, key: str, evidence: bool, form: Form) -> int:
    value = state.get(key)
    beside = state.evidence(key) if evidence else None
    if form == "json":
        write(json_text({"key": key, "value": value, "evidence": beside} if evidence else value))
        return Exit.DONE
    from ..shared.tables import drawn

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


def show_log(folder: str, limit: int, form: Form) -> int:
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
        from ..shared.tables import render

        rows, columns = history_rows(entries), list(HISTORY_COLUMNS)
        print(render(columns, rows, wide=frozenset({"step", "status", "state"})), end="")
        if len(history) > limit:
            say(f"{len(history) - limit:,} earlier steps; --limit shows more")
    return Exit.DONE


def show_difference(folder: str, before: str, after: str | None, form: Form) -> int:
    """Write how two states differ: hashes of this one's commits, or other states' folders."""

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
        from ..shared.tables import render

        rows = difference_rows(found[:_ROWS])
        print(render(list(DIFFERENCE_COLUMNS), rows, wide=frozenset({"key", "difference"})), end="")
        if len(found) > _ROWS:
            say(f"and {len(found) - _ROWS:,} more; --format json has them all")
    return Exit.DONE
