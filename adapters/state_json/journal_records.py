"""The journal's records. A record is the difference between a commit and the state before it, and can be applied to that state.

A record has the form ``{"at", "hash", "changes"?, "history"?, "answers"?, "commands"?, "rolled_back"?: [index], "about"?}``.
``hash`` is the hash of the resulting state. ``about`` contains the changes to query, config, seed and created_at.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve
from orjson import Fragment

from ..state import StateError, StoreError
from .changes import apply, attached, change_of
from .item_index import Items
from .log.durable import Log, Recovered
from .nodes import (
    CounterNode,
    DictNode,
    ListNode,
    Node,
    as_text,
    evidence_text,
    field_of,
    find,
    joined,
    parsed,
    plain,
    put,
    texts_of,
    walk,
)
from .persistent import EMPTY_TABLE, Table, Vector
from .snapshot import Commits, Moment, flagged, with_about, written_form
from .state_object import from_json, node_of, with_proof

# The difference between two states as JSON for the journal, used to store a rollback. Its size depends on the differences only.
# Operations: ``{"do": "put", "key", "form", "proofs"}`` (a key and all keys below it, in state object form), ``{"do": "drop",
# "key"}``, ``{"do": "list" | "dict" | "counter", "key", ...}`` with the changes to items, fields, counts and evidence. A change to
# a vector is ``{"length", "set": {index: value}, "more": [...]}``, to a table ``{"set": {name: value}, "drop": [name]}``.

OPERATIONS = frozenset({"put", "drop", "list", "dict", "counter"})


def patch(before: DictNode, after: DictNode) -> list[dict[str, Any]]:
    """Return the operations that turn ``before`` into ``after``."""
    return _children(before, after, "")


def patched(root: DictNode, operation: Mapping[str, Any]) -> DictNode:
    """Return the state after one operation. Raises ``KeyError``, ``ValueError`` or ``StateError`` if the operation can't be applied."""
    do, key = operation["do"], operation["key"]
    if do == "put":
        root = put(root, key, node_of(operation["form"], key))
        for path, proof in operation["proofs"].items():
            node = find(root, path)
            if node is None:
                raise ValueError(f"{path} does not exist")
            root = put(root, path, with_proof(node, proof, path))
        return root
    if do == "drop":
        above, _, name = key.rpartition(".")
        parent = find(root, above) if above else root
        if not isinstance(parent, DictNode):
            raise ValueError(f"{key} does not exist")
        rest = evolve(parent, children=parent.children.without([name]))
        return put(root, above, rest) if above else rest
    return put(root, key, _patched(find(root, key), operation))


def _children(before: DictNode, after: DictNode, key: str) -> list[dict[str, Any]]:
    operations: list[dict[str, Any]] = []
    for name in before.children.differing(after.children):
        path = f"{key}.{name}" if key else name
        old, new = before.children.get(name), after.children.get(name)
        if new is None:
            operations.append({"do": "drop", "key": path})
        elif old is None or type(old) is not type(new) or _description(old) != _description(new):
            proofs = {each: proof for each, node in [(path, new), *walk(new, path)] if (proof := node.proof())}
            operations.append({"do": "put", "key": path, "form": written_form(new), "proofs": proofs})
        else:
            operations += _node(path, old, new)
    return operations


def _node(key: str, old: Node, new: Node) -> list[dict[str, Any]]:
    if isinstance(old, DictNode) and isinstance(new, DictNode):
        operations = _children(old, new, key)
        fields = _table(old.fields, new.fields, plain)
        proofs = _table(old.evidence, new.evidence, _proof)
        return [*operations, {"do": "dict", "key": key, "fields": fields, "proofs": proofs}]
    if isinstance(old, ListNode) and isinstance(new, ListNode):
        items = _vector(old.items.vector, new.items.vector, parsed)
        return [{"do": "list", "key": key, "items": items, "proofs": _vector(old.evidence, new.evidence, _proof)}]
    if isinstance(old, CounterNode) and isinstance(new, CounterNode):
        operation: dict[str, Any] = {"do": "counter", "key": key}
        operation["proofs"] = _vector(old.evidence.vector, new.evidence.vector, parsed)
        if isinstance(new.count, Table):
            base = old.count if isinstance(old.count, Table) else EMPTY_TABLE
            return [operation | {"counts": _table(base, new.count, plain)}]
        return [operation | {"count": new.count}]
    raise TypeError(f"{key} has two different types")


def _description(node: Node) -> tuple[str | None, tuple[str, ...]]:
    return node.description, node.incomplete


def _proof(texts: tuple[bytes, ...]) -> list[Any]:
    return [parsed(text) for text in texts]


def _proof_of(proof: list[Any]) -> tuple[bytes, ...]:
    return tuple(evidence_text(each) for each in proof)


def _vector(old: Vector, new: Vector, out: Callable[[Any], Any]) -> dict[str, Any]:
    return {
        "length": len(new),
        "set": {str(at): out(new[at]) for at in old.differing(new)},
        "more": [out(element) for element in new.from_index(len(old))],
    }


def _vector_of(old: Vector, change: Mapping[str, Any], back: Callable[[Any], Any]) -> Vector:
    kept = old.prefix(change["length"])
    kept = kept.changed({int(at): back(element) for at, element in change["set"].items()})
    new = kept.extended([back(element) for element in change["more"]])
    if len(new) != change["length"]:
        raise ValueError("a list's change does not match its length")
    return new


def _table(old: Table, new: Table, out: Callable[[Any], Any]) -> dict[str, Any]:
    names = old.differing(new)
    held = {name: new.get(name) for name in names}
    return {
        "set": {name: out(value) for name, value in held.items() if value is not None},
        "drop": [name for name, value in held.items() if value is None],
    }


def _table_of(old: Table, change: Mapping[str, Any], back: Callable[[Any], Any]) -> Table:
    kept = old.without(change["drop"]) if change["drop"] else old
    return kept.updated({name: back(value) for name, value in change["set"].items()})


def _items(old: Items, change: Mapping[str, Any], back: Callable[[Any], bytes]) -> Items:
    if not change["set"]:
        return old.spliced(min(change["length"], len(old)), [back(element) for element in change["more"]])
    return Items(_vector_of(old.vector, change, back), old.identify)


def _patched(node: Node | None, operation: Mapping[str, Any]) -> Node:
    do, proofs = operation["do"], operation["proofs"]
    if do == "list" and isinstance(node, ListNode):
        items = _items(node.items, operation["items"], as_text)
        return evolve(node, items=items, evidence=_vector_of(node.evidence, proofs, _proof_of))
    if do == "dict" and isinstance(node, DictNode):
        fields = _table_of(node.fields, operation["fields"], field_of)
        return evolve(node, fields=fields, evidence=_table_of(node.evidence, proofs, _proof_of))
    if do == "counter" and isinstance(node, CounterNode):
        count: Any = operation.get("count")
        if count is None:
            base = node.count if isinstance(node.count, Table) else EMPTY_TABLE
            count = _table_of(base, operation["counts"], lambda number: number)
        return evolve(node, count=count, evidence=_items(node.evidence, proofs, evidence_text))
    raise ValueError(f"the change needs a {do.upper()}")


_ABOUT = ("query", "config", "seed", "created_at")


def applied(root: DictNode, change: Mapping[str, Any]) -> DictNode:
    """Return the state after a change in the journal's form. Raises ``StateError``."""
    if change["do"] in OPERATIONS:
        return patched(root, change)
    if change["do"] == "attach":
        return attached(root, change["key"], change["indices"], change["evidence"])
    return apply(root, change_of(change))


def record(before: Moment, after: Moment, staged: Sequence[bytes], rolled_back: Sequence[int]) -> Fragment:
    """Return, as JSON text, the record that turns ``before`` into ``after``.

    ``staged`` are the changes, ``rolled_back`` the indices of older history entries. Existing JSON text is included without parsing.
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
    """Return the store's content after a record. Raises ``StoreError`` if the record does not match ``moment``, the content before it."""
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
        raise StoreError(f"a journal record does not match the state before it: {error}") from error


def recovered(found: Recovered, path: Path) -> tuple[Moment, Commits]:
    """Return the store's content at the end of a log, and the commits since the log's snapshot. Raises ``StoreError`` for a damaged log."""
    moment, commits, last = Moment(), Commits(), ""
    if found.snapshot is not None:
        try:
            moment, last = from_json(found.snapshot["state"]), found.snapshot["hash"]
        except (StateError, LookupError, TypeError) as error:
            raise StoreError(f"the snapshot in {path} is not a state: {error}") from error
        _same_hash(moment, last, path)
    commits = commits.with_commit(moment.root)
    for record in found.records:
        moment = advanced(moment, record)
        commits = commits.with_commit(moment.root)
        last = record.get("hash")
    if last:
        _same_hash(moment, last, path)
    return moment, commits


def _same_hash(moment: Moment, said: object, path: Path) -> None:
    own = moment.root.digest.hex()
    if said != own:
        raise StoreError(
            f"{path} records the hash {str(said)[:12]}… for the state, but the state has {own[:12]}…",
            hint="the file was written by another version of this program, or changed by hand",
        )


def past(directory: Path, prefix: str) -> DictNode | None:
    """Return the state after the commit with this hash prefix, from a directory's journal; None unless exactly one commit matches."""
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
