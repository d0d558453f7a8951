"""The state object (``docs/design/state.md#state-object``): conversion from and to the content of a store (``Moment``), with checks.

``variables`` are ``{key: {"_meta": {"type", "description", "incomplete"?}, ...}}``; in addition a LIST has ``items``, a COUNTER
has ``value``, and a DICT has its fields and the keys declared in it. ``provenance`` is ``{key: evidence}``, and ``answers`` are
under ``replay``. ``provenance`` and ``answers`` are present only if they are not empty. A file also has ``check``, a hash over
everything else, to detect modifications.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
from attrs import evolve
from blake3 import blake3
from orjson import Fragment

from ..state import StateError, StoreError
from .changes import check_name, with_proofs
from .item_index import Items, content_key
from .log.codec import decode
from .log.files import Files, reason
from .log.journal import put as journal_put
from .nodes import (
    CounterNode,
    DictNode,
    ListNode,
    Node,
    as_text,
    counted,
    evidence_text,
    field_of,
    find,
    joined,
    mismatch,
    parsed,
    put,
    summed,
    texts_of,
    whole_text,
)
from .persistent import EMPTY, Table, Vector, canonical
from .snapshot import About, JSONSnapshot, Moment

CHECK = "check"
"""The key of the checksum in a file."""

VERSION = "0.1"

_KEYS = frozenset(
    {"version", "created_at", "updated_at", "query", "config", "variables", "history", "replay", "provenance", CHECK}
)


def as_json(moment: Moment, *, raw: bool = False) -> dict[str, Any]:
    """Return the state object. If ``raw``, existing JSON text is included as ``orjson.Fragment``, for ``codec.encode_again``."""
    about, snapshot = moment.about, JSONSnapshot(moment.root)
    whole_state: dict[str, Any] = {
        "version": VERSION,
        "created_at": about.created_at,
        "updated_at": about.updated_at,
        "query": about.query,
        "config": parsed(as_text(about.config)),
        "variables": snapshot.variables(raw=raw),
        "history": _listed(moment.history, raw),
        "replay": replay_of(moment, raw=raw),
    }
    provenance = snapshot.provenance(raw=raw)
    return whole_state | ({"provenance": provenance} if provenance else {})


def with_check(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of ``as_json`` with its checksum, as it is written to a file."""
    return {**told, CHECK: check_of(told)}


def check_of(told: Mapping[str, Any]) -> str:
    """Return the checksum of everything except the checksum itself. JSON formatting does not matter."""
    rest = {name: part for name, part in told.items() if name != CHECK}
    return f"blake3:{blake3(canonical(as_text(rest))).hexdigest()}"


def replay_of(moment: Moment, *, raw: bool = False) -> dict[str, Any]:
    """Return the data for a replay: seed, config, commands, and answers if a model was called."""
    replay: dict[str, Any] = {
        "seed": moment.about.seed,
        "config": parsed(as_text(moment.about.config)),
        "commands": _listed(moment.commands, raw),
    }
    return replay | ({"answers": _listed(moment.answers, raw)} if len(moment.answers) else {})


def _listed(texts: Vector, raw: bool) -> Any:
    return Fragment(joined(texts)) if raw else parsed(joined(texts))


def from_text(text: bytes, name: str) -> Moment:
    """Read a ``state.json``. Raises ``StoreError`` if ``text`` is not JSON, has duplicate keys, or is not a state object."""
    import json

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(found)
        if len(made) != len(found):
            names = [key for key, _ in found]
            twice = next(key for key in made if names.count(key) > 1)
            raise StoreError(f"{name} has the key {twice[:60]!r} twice in one object")
        return made

    def refused(constant: str) -> Any:
        raise StoreError(f"{name} contains {constant}, which JSON can't represent")

    try:
        value = json.loads(text.decode(), object_pairs_hook=pairs, parse_constant=refused)
    except json.JSONDecodeError as error:
        found = f"{error.msg[:1].lower()}{error.msg[1:]} (line {error.lineno}, column {error.colno})"
        raise StoreError(f"{name} is not JSON: {found}") from None
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{name} is not JSON: {error}") from None
    try:
        try:  # parse like the codec, but with orjson's nesting limit: a state may have more levels than its values
            told = decode(as_text(value))
        except (TypeError, ValueError):
            whole_text(name, value)  # raises an error that names the path
            raise mismatch("it is not JSON") from None
        if isinstance(told, dict) and CHECK in told and told[CHECK] != check_of(told):
            raise StoreError(
                f"{name} was changed after it was written: its checksum does not match",
                hint=f'restore it from a backup; without the key "{CHECK}" it is read unchecked',
            )
        return from_json(told)
    except StateError as error:
        raise StoreError(f"{name} is not a state: {error.message}", hint=error.hint) from None


def from_json(value: Any) -> Moment:
    """Return the moment described by a checked JSON value. Raises ``StateError`` with the path if the form is wrong."""
    state = _object(value, "$", _KEYS)
    if state.get("version") != VERSION:
        found = f"not {str(state['version'])[:40]!r}" if "version" in state else "but is missing"
        raise _wrong("$.version", f'must be "{VERSION}", {found}')
    root = DictNode()
    for name, form in _mapping(state.get("variables", {}), "$.variables").items():
        check_name(name, [name])
        root = root.with_children({name: node_of(form, f"$.variables.{name}")})
    for key, proof in _mapping(state.get("provenance", {}), "$.provenance").items():
        node = find(root, key)
        if node is None:
            raise _wrong(f"$.provenance.{key}", "does not belong to a declared key")
        root = put(root, key, with_proof(node, proof, f"$.provenance.{key}"))
    replay = _object(state.get("replay", {}), "$.replay", {"seed", "config", "commands", "answers"})
    seed, query = replay.get("seed", 0), state.get("query", "")
    if type(seed) is not int:
        raise _wrong("$.replay.seed", "must be an integer")
    config = state.get("config", replay.get("config", {}))
    about = About(
        _text(query, "$.query"),
        _mapping(config, "$.config"),
        seed,
        _text(state.get("created_at", ""), "$.created_at"),
        _text(state.get("updated_at", ""), "$.updated_at"),
    )
    return Moment(
        root,
        _texts(state.get("history", []), "$.history", _mapping),
        _texts(replay.get("answers", []), "$.replay.answers", _mapping),
        _texts(replay.get("commands", []), "$.replay.commands", _text),
        about,
    )


def node_of(form: Any, path: str, depth: int = 1) -> Node:
    """Return the node described by a checked JSON value. Raises ``StateError`` with the path if the form is wrong."""
    if depth > 20:
        raise _wrong(path, "is nested too deeply")
    held = dict(_mapping(form, path))
    meta = _object(held.pop("_meta", None), f"{path}._meta", {"type", "description", "incomplete"})
    description = meta.get("description")
    if description is not None:
        _text(description, f"{path}._meta.description")
    reasons = meta.get("incomplete", [])
    if not isinstance(reasons, list) or not all(isinstance(each, str) for each in reasons):
        raise _wrong(f"{path}._meta.incomplete", "must be a list of strings")
    marks, kind = tuple(reasons), meta.get("type")
    if kind == "LIST":
        items = _object(held, path, {"items"}).get("items")
        if not isinstance(items, list):
            raise _wrong(f"{path}.items", "must be a list")
        return ListNode(description, Items(EMPTY.extended(texts_of(items))), incomplete=marks)
    if kind == "COUNTER":
        value = _object(held, path, {"value"}).get("value")
        if isinstance(value, list):
            raise _wrong(f"{path}.value", "must be a number or an object of numbers")
        count = summed(f"{path}.value", 0, counted(f"{path}.value", value))
        return CounterNode(description, count, incomplete=marks)
    if kind != "DICT":
        raise _wrong(f"{path}._meta.type", f"must be LIST, DICT or COUNTER, not {str(kind)[:40]!r}")
    children: dict[str, Node] = {}
    fields: dict[str, Any] = {}
    for name, part in held.items():
        if isinstance(part, dict) and "_meta" in part:
            check_name(f"{path}.{name}", [name])
            children[name] = node_of(part, f"{path}.{name}", depth + 1)
        elif not name:
            raise _wrong(path, "has a field without a name")
        else:
            fields[name] = field_of(part)
    return DictNode(description, Table.of(children), Table.of(fields), incomplete=marks)


def with_proof(node: Node, proof: Any, path: str) -> Node:
    """Return the node with evidence, given in the form of ``Snapshot.evidence``. Raises ``StateError`` with the path."""
    if isinstance(node, DictNode):
        groups = {name: _group(group, f"{path}.{name}") for name, group in _mapping(proof, path).items()}
        stray = next((name for name in groups if name not in node.fields), None)
        if stray is not None:
            raise _wrong(f"{path}.{stray}", "does not belong to a field")
        evidence = Table.of({name: group for name, group in groups.items() if group})
        return evolve(node, evidence=evidence)
    if not isinstance(proof, list):
        raise _wrong(path, "must be a list")
    if isinstance(node, CounterNode):
        return evolve(node, evidence=Items(EMPTY.extended(_group(proof, path)), content_key))
    if len(proof) > node.size:
        raise _wrong(path, f"has evidence for {len(proof)} items, but the LIST has {node.size}")
    by_index = {at: _group(group, f"{path}[{at}]") for at, group in enumerate(proof)}
    return evolve(node, evidence=with_proofs(EMPTY, by_index))


def _group(group: Any, path: str) -> tuple[bytes, ...]:
    if not isinstance(group, list):
        raise _wrong(path, "must be a list")
    return tuple(dict.fromkeys(evidence_text(_mapping(each, f"{path}[{at}]")) for at, each in enumerate(group)))


def _texts(values: Any, path: str, check: Callable[[Any, str], Any]) -> Vector:
    if not isinstance(values, list):
        raise _wrong(path, "must be a list")
    for at, value in enumerate(values):
        check(value, f"{path}[{at}]")
    return EMPTY.extended(texts_of(values))


def _mapping(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(path, "must be an object")
    return value


def _object(value: Any, path: str, known: "frozenset[str] | set[str]") -> Mapping[str, Any]:
    stray = next((name for name in _mapping(value, path) if name not in known), None)
    if stray is not None:
        raise _wrong(f"{path}.{stray[:60]}", f"is an unknown key; the known keys are {', '.join(sorted(known))}")
    return _mapping(value, path)


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise _wrong(path, "must be a string")
    return value


def _wrong(path: str, why: str) -> StateError:
    return mismatch(f"{path} {why}")


# ``state.json``: the state for human readers. It is replaced atomically, and not read when a directory is opened normally.

NAME = "state.json"


def write_state(files: Files, path: Path, moment: Moment) -> str:
    """Write the state object to ``path`` (0600) through a synced temporary file. Return the file's hash. Raises ``StoreError``."""
    text = orjson.dumps(with_check(as_json(moment)), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    unfinished = path.with_name(f"{path.name}.new")
    try:
        with suppress(FileNotFoundError):
            files.unlink(unfinished)
        file = files.create_new(unfinished)
        try:
            journal_put(files, file, text)
            files.sync(file)
        finally:
            files.close(file)
        files.rename(unfinished, path)
        files.sync_directory(path.parent)
    except OSError as error:
        with suppress(OSError):
            files.unlink(unfinished)
        raise StoreError(f"{path} can't be written: {reason(error)}") from error
    return hash_of(text)


def hash_of(text: bytes) -> str:
    """Return the hash of the file's content. The mark of a clean close stores this hash."""
    return blake3(text).hexdigest()
