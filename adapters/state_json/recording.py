"""The journal's records: what a commit adds to the moment before it, and back.

``{"at", "hash", "changes"?, "history"?, "answers"?, "commands"?, "rolled_back"?: [index], "about"?}``. ``hash`` is the state's
afterwards. ``about`` has what changed of query, config, seed and created_at.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve
from orjson import Fragment

from ..state import StateError, StoreError
from .commits import Commits
from .log.durable import Log, Recovered
from .moment import Moment, flagged, with_about
from .patching import OPERATIONS, patched
from .seedform import from_json
from .values.changes import change_of
from .values.merging import apply, attached
from .values.nodes import DictNode
from .values.values import as_text, joined, texts_of
from .values.vectors import Vector

__all__ = ["advanced", "applied", "past", "record", "recovered"]

_ABOUT = ("query", "config", "seed", "created_at")


def applied(root: DictNode, change: Mapping[str, Any]) -> DictNode:
    """Return the state after a change as the journal has it. Raises ``StateError``."""
    if change["do"] in OPERATIONS:
        return patched(root, change)
    if change["do"] == "attach":
        return attached(root, change["key"], change["indices"], change["evidence"])
    return apply(root, change_of(change))


def record(before: Moment, after: Moment, staged: Sequence[bytes], rolled_back: Sequence[int]) -> Fragment:
    """Return what takes ``before`` to ``after``, as JSON text.

    ``staged`` are the changes, ``rolled_back`` indices of older entries. What is text already goes into it unread.
    """
    texts: dict[str, Sequence[bytes]] = {
        "changes": staged,
        "history": _new(before.history, after.history),
        "answers": _new(before.answers, after.answers),
        "commands": _new(before.commands, after.commands),
    }
    held = {name: (getattr(before.about, name), getattr(after.about, name)) for name in _ABOUT}
    about = {name: new for name, (old, new) in held.items() if new != old}
    made: dict[str, Any] = {"at": after.about.updated_at, "hash": after.root.digest.hex()}
    made |= {name: Fragment(joined(each)) for name, each in texts.items() if each}
    made |= {"rolled_back": list(rolled_back)} if rolled_back else {}
    return Fragment(as_text(made | ({"about": about} if about else {})))


def _new(before: Vector, after: Vector) -> list[bytes]:
    return list(after.from_index(len(before))) if after is not before else []


def advanced(moment: Moment, plain: Any) -> Moment:
    """Return the moment after a record. Raises ``StoreError`` for one that does not fit what came before it."""
    try:
        root = moment.root
        for change in plain.get("changes", ()):
            root = applied(root, change)
        history = flagged(moment.history, plain.get("rolled_back", ()))
        after = evolve(
            moment,
            root=root,
            history=history.extended(texts_of(plain.get("history", ()))),
            answers=moment.answers.extended(texts_of(plain.get("answers", ()))),
            commands=moment.commands.extended(texts_of(plain.get("commands", ()))),
        )
        return with_about(after, updated_at=plain["at"], **plain.get("about", {}))
    except (StateError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"a record of the journal does not fit the state before it: {error}") from error


def recovered(found: Recovered, path: Path) -> tuple[Moment, Commits]:
    """Return the last moment that a log kept, and its commits since the snapshot. Raises ``StoreError`` where it is not whole."""
    moment, commits, last = Moment(), Commits(), ""
    if found.snapshot is not None:
        try:
            moment, last = from_json(found.snapshot["state"]), found.snapshot["hash"]
        except (StateError, LookupError, TypeError) as error:
            raise StoreError(f"the snapshot in {path} is no state: {error}") from error
        _same_hash(moment, last, path)
    commits = commits.with_commit(moment.root)
    for plain in found.records:
        moment = advanced(moment, plain)
        commits = commits.with_commit(moment.root)
        last = plain.get("hash")
    if last:
        _same_hash(moment, last, path)
    return moment, commits


def _same_hash(moment: Moment, said: object, path: Path) -> None:
    own = moment.root.digest.hex()
    if said != own:
        raise StoreError(
            f"what {path} keeps says that the state has the hash {str(said)[:12]}…, it has {own[:12]}…",
            hint="it was written by another version of this program, or changed by hand",
        )


def past(directory: Path, prefix: str) -> DictNode | None:
    """Return the state of the commit whose hash begins so, from the journal in a directory; None where it has none or several."""
    log, found = Log.open(directory, read_only=True)
    try:
        moment = Moment() if found.snapshot is None else from_json(found.snapshot["state"])
        states = {moment.root.digest.hex(): moment.root}
        for plain in found.records:
            moment = advanced(moment, plain)
            if str(plain["hash"]).startswith(prefix.lower()):
                states[str(plain["hash"])] = moment.root
    finally:
        log.close()
    fitting = [root for state, root in states.items() if state.startswith(prefix.lower())]
    return fitting[0] if len(fitting) == 1 else None
