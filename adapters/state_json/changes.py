"""Applies changes to a state: DECLARE, RESET, UPDATE. A change is either applied completely, or refused without any effect.

A LIST accepts a list, whose items are added; any other value except null is added as one item. A DICT accepts an object. If a
field of the object has the same name as a key declared in the DICT, the field's value is written to that key. A COUNTER accepts
a number, an object of numbers, or the rows of COUNT BY (``[{field, "count"}, ...]``), whose labels become the COUNTER's keys.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve

from ...lang.diagnostic import nearest
from ...lang.literals import kind_of
from ...lang.trees.gasl import StateType
from ..state import Change, DeclareKey, Evidence, MergeInto, ReplaceWith, ResetKey, StateError
from .item_index import content_key, identity_of
from .nodes import (
    CounterNode,
    DictNode,
    ListNode,
    Node,
    counted,
    evidence_text,
    field_of,
    find,
    mismatch,
    number,
    put,
    summed,
    texts_of,
    walk,
    whole_copy,
)
from .persistent import EMPTY, EMPTY_TABLE, Table, Vector

RESERVED = frozenset({"_meta", "items", "value"})
"""Names that the JSON form of a state uses. They are not allowed as parts of a key."""

_MOST_PARTS = 20  # a key of this depth, with values of the codec's maximum depth, can still be written
_LONGEST = 200
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_EMPTY: Mapping[StateType, Node] = {"LIST": ListNode(), "DICT": DictNode(), "COUNTER": CounterNode()}

Proof = Sequence[Sequence[Any]] | Mapping[str, Sequence[Any]]


def apply(root: DictNode, change: Change) -> DictNode:
    """Return the state after a change; if nothing changes, ``root`` itself. Raises ``StateError``.

    The change must be created from the result of ``encode_change``, so that it is JSON and shares no objects with the caller.
    """
    if isinstance(change, DeclareKey):
        return _declared(root, change)
    node = find(root, change.key)
    if node is None:
        raise undeclared(root, change.key, getattr(change, "value", None))
    if isinstance(change, ResetKey):
        return put(root, change.key, node.emptied())
    replace, by_id = isinstance(change, ReplaceWith), isinstance(change, MergeInto) and change.by_id
    new = _changed(node, change.key, change.value, change.evidence, replace=replace, by_id=by_id)
    new = _marked(new, change.incomplete, change.value, replace=replace)
    return root if new is node else put(root, change.key, new)


def _marked(node: Node, reasons: Sequence[str], value: Any, *, replace: bool) -> Node:
    """Return the node, marked as incomplete for ``reasons``. Declared keys that are fields of ``value`` are marked, too."""
    marks = tuple(dict.fromkeys((*(() if replace else node.incomplete), *reasons)))
    if isinstance(node, DictNode) and (reasons or replace):
        held = {name: child for name, child in node.children.items() if name in value}
        below = {name: _marked(child, reasons, value[name], replace=replace) for name, child in held.items()}
        moved = {name: child for name, child in below.items() if child is not held[name]}
        node = node.with_children(moved) if moved else node
    return node if marks == node.incomplete else evolve(node, incomplete=marks)


# Declaring


def _declared(root: DictNode, change: DeclareKey) -> DictNode:
    parts = change.key.split(".")
    old = find(root, change.key)
    if old is not None:
        if old.type == change.type:
            return root
        raise mismatch(
            f"{change.key} is declared as a {old.type}; it can't become a {change.type}", "choose another name"
        )
    check_name(change.key, parts)
    if change.type not in _EMPTY:
        raise mismatch(f"unknown type {change.type}; the types are LIST, DICT and COUNTER")
    if change.description is not None and not isinstance(change.description, str):
        raise mismatch(f"the description of {change.key} must be a string")
    above = ".".join(parts[:-1])
    parent: Node | None = find(root, above) if above else root
    if parent is None:
        raise StateError(
            f"{above} is not declared; {change.key} needs it as a DICT",
            status="binding_failure",
            hint="\n".join(_missing(root, parts[:-1], "DICT")),
        )
    if not isinstance(parent, DictNode):
        raise mismatch(f"{above} is a {parent.type}; keys can be declared in a DICT only")
    if parts[-1] in parent.fields:
        raise mismatch(f"{above} already has a field {parts[-1]}", "choose another name, or RESET the DICT first")
    return put(root, change.key, evolve(_EMPTY[change.type], description=change.description))


def check_name(key: str, parts: Sequence[str]) -> None:
    """Raise ``StateError`` if a part of the key is not allowed."""
    for part in parts:
        if part in RESERVED:
            hint = f"choose another name, such as {part.strip('_')}_"
            raise mismatch(f"{part} can't be part of a key, because the name is reserved", hint)
        if not 0 < len(part) <= _LONGEST or "." in part or not part.isprintable():
            raise mismatch(f"a part of a key must have 1 to {_LONGEST} printable characters and no dot")
    if len(parts) > _MOST_PARTS:
        raise mismatch(f"a key can have at most {_MOST_PARTS} parts")


def declaration(key: str, kind: StateType) -> str:
    """Return the command that declares a key, with backticks around names that need them."""
    parts = [part if _NAME.match(part) else f"`{part}`" for part in key.split(".")]
    return f"DECLARE {'.'.join(parts)} AS {kind}"


def undeclared(root: DictNode, key: str, value: Any = None) -> StateError:
    """Return the error for an undeclared key. The hint contains the commands that declare the key, one per line."""
    kind: StateType = "DICT" if isinstance(value, Mapping) else "COUNTER" if number(value) else "LIST"
    like = nearest(key, [path for path, _ in walk(root)])
    meant = f"; did you mean {like}?" if like else ""
    hint = "\n".join(_missing(root, key.split("."), kind))
    return StateError(f"{key} is not declared{meant}", status="binding_failure", hint=hint)


def _missing(root: DictNode, parts: Sequence[str], kind: StateType) -> Iterable[str]:
    for count in range(1, len(parts) + 1):
        path = ".".join(parts[:count])
        if find(root, path) is None:
            yield declaration(path, kind if count == len(parts) else "DICT")


# Updating


def _changed(node: Node, key: str, value: Any, evidence: Proof, *, replace: bool, by_id: bool) -> Node:
    """Return the node with a checked value merged in; with ``replace``, the value replaces the node's content."""
    if isinstance(node, ListNode):
        return _into_list(node, key, value, evidence, replace, by_id)
    if isinstance(node, DictNode):
        return _into_dict(node, key, value, evidence, replace, by_id)
    return _into_counter(node, key, value, evidence, replace)


def _into_list(node: ListNode, key: str, value: Any, evidence: Proof, replace: bool, by_id: bool) -> ListNode:
    if value is None:
        raise mismatch(f"{key} is a LIST; null can't be an item")
    values = value if isinstance(value, list) else [value]
    texts = texts_of(values)
    if isinstance(evidence, Mapping):
        raise mismatch(f"evidence for {key}, a LIST, must be given by index")
    if replace:
        proofs = {at: _united((), evidence[at]) for at in range(min(len(texts), len(evidence)))}
        return evolve(node, items=node.items.spliced(0, texts), evidence=with_proofs(EMPTY, proofs))
    if by_id:
        items, positions = node.items.merged(texts, [identity_of(each) for each in values])
    else:
        items, positions = node.items.united(texts, values)
    if not len(evidence):
        return node if items is node.items else evolve(node, items=items)
    proofs, there = {}, len(node.evidence)
    for position, more in zip(positions, evidence, strict=False):  # the last items may have no evidence
        if more:
            had = proofs.get(position)
            if had is None:
                had = node.evidence[position] if position < there else ()
            proofs[position] = _united(had, more)
    kept = {at: new for at, new in proofs.items() if at >= there or new != node.evidence[at]}
    if items is node.items and not kept:
        return node
    return evolve(node, items=items, evidence=with_proofs(node.evidence, kept))


def with_proofs(vector: Vector, proofs: Mapping[int, tuple[bytes, ...]]) -> Vector:
    """Return a LIST's evidence with new evidence for some items. The resulting vector ends at the last item with evidence."""
    there = len(vector)
    inside = {at: proof for at, proof in proofs.items() if at < there}
    last = max([at for at, proof in proofs.items() if proof], default=-1)
    tail: list[tuple[bytes, ...]] = [proofs.get(at, ()) for at in range(there, last + 1)]
    return vector.changed(inside).extended(tail)


def attached(root: DictNode, key: str, indices: Sequence[int], evidence: Sequence[Any]) -> DictNode:
    """Return the state with one piece of evidence added to each LIST item at ``indices``. Raises ``StateError``."""
    node = find(root, key)
    if node is None:
        raise undeclared(root, key)
    if not isinstance(node, ListNode):
        raise mismatch(f"{key} is a {node.type}; only a LIST has items to attach evidence to")
    if len(indices) != len(evidence):
        raise mismatch(f"{key} needs one piece of evidence per index, not {len(evidence)} for {len(indices)} indices")
    proofs: dict[int, tuple[bytes, ...]] = {}
    for at, piece in zip(indices, evidence, strict=True):
        if type(at) is not int or not 0 <= at < node.size:
            raise mismatch(f"{key} has no item {at}; the number of items is {node.size}")
        had = proofs.get(at) or (node.evidence[at] if at < len(node.evidence) else ())
        proofs[at] = _united(had, [piece])
    return put(root, key, evolve(node, evidence=with_proofs(node.evidence, proofs)))


def _united(had: tuple[bytes, ...], evidence: Sequence[Any]) -> tuple[bytes, ...]:
    if not had and len(evidence) == 1:
        return (evidence_text(evidence[0]),)
    return tuple(dict.fromkeys((*had, *(evidence_text(each) for each in evidence))))


def _into_dict(node: DictNode, key: str, value: Any, evidence: Proof, replace: bool, by_id: bool) -> DictNode:
    if not isinstance(value, dict):
        raise mismatch(f"{key} is a DICT; it takes an object, not {kind_of(value)}")
    if isinstance(evidence, Mapping):
        stray = next((name for name in evidence if name not in value), None)
        if stray is not None:
            raise mismatch(f"the evidence for {key} mentions {stray}, but the value has no such field")
        by_field: Mapping[str, Sequence[Any]] = evidence
    else:
        all_of_it = evidence[0] if len(evidence) else ()
        by_field = dict.fromkeys(value, all_of_it) if all_of_it else {}
    old_fields, old_proofs = (EMPTY_TABLE, EMPTY_TABLE) if replace else (node.fields, node.evidence)
    children: dict[str, Node] = {}
    fields: dict[str, Any] = {}
    proofs: dict[str, tuple[bytes, ...]] = {}
    for name, part in value.items():
        child = node.children.get(name)
        if child is not None:
            given = by_field.get(name, ())
            each: Proof = [given] * len(part) if isinstance(part, list) and child.type == "LIST" else [given]
            known: Proof = each if given else ()
            children[name] = _changed(child, f"{key}.{name}", part, known, replace=replace, by_id=by_id)
            continue
        _check_field(key, name, part)
        old = old_fields.get(name)
        new = _deep(old, part) if old is not None else field_of(part)
        if new is not old:
            fields[name] = new
        had = old_proofs.get(name) or ()
        proof = _united(had, by_field.get(name, ()))
        if proof != had:
            proofs[name] = proof
    moved = {name: child for name, child in children.items() if child is not node.children.get(name)}
    if not moved and not fields and not proofs and not replace:
        return node
    held, proven = old_fields.updated(fields), old_proofs.updated(proofs)
    return evolve(node, children=node.children.updated(moved), fields=held, evidence=proven)


def _check_field(key: str, name: str, value: Any) -> None:
    if name == "_meta" or (isinstance(value, dict) and "_meta" in value):
        where = f"{key}.{name}" if name != "_meta" else key
        raise mismatch(f"{where} can't have a field _meta, because the name is reserved")
    if not name:
        raise mismatch(f"{key} can't have a field without a name")


def _deep(old: Any, value: Any) -> Any:
    """Return the field ``old`` with a value merged in; ``old`` itself if nothing changes."""
    if not (isinstance(old, Table) and isinstance(value, dict)):
        new = field_of(value)
        return old if isinstance(new, bytes) and new == old else new
    changed = {}
    for name, part in value.items():
        had = old.get(name)
        new = _deep(had, part) if had is not None else field_of(part)
        if new is not had:
            changed[name] = new
    return old.updated(changed)


def _into_counter(node: CounterNode, key: str, value: Any, evidence: Proof, replace: bool) -> CounterNode:
    if isinstance(evidence, Mapping):
        raise mismatch(f"evidence for {key}, a COUNTER, must be one list")
    given = counted(key, value)
    count = summed(key, 0 if replace else node.count, given)
    texts = [evidence_text(each) for group in evidence for each in group]
    start = node.emptied().evidence if replace else node.evidence
    proof, _ = start.merged(texts, [content_key(text) for text in texts])
    if not replace and count is node.count and proof is node.evidence:
        return node
    return evolve(node, count=count, evidence=proof)


# Changes in the JSON form of the journal. Values are checked and copied here, so that the caller can't change them later.


def encode_change(change: Change) -> tuple[bytes, dict[str, Any]]:
    """Return a change as JSON text, and the value decoded from it. Raises ``StateError`` with the path of a value that is not JSON.

    The JSON form is ``{"do": "declare", "key", "type", "description"}``, ``{"do": "reset", "key"}`` or
    ``{"do": "add" | "merge" | "replace", "key", "value", "evidence"?, "incomplete"?}``. ``merge`` is ``add`` with ``by_id``.
    """
    if isinstance(change, DeclareKey):
        plain: dict[str, Any] = {
            "do": "declare", "key": change.key, "type": change.type, "description": change.description
        }  # fmt: skip
    elif isinstance(change, ResetKey):
        plain = {"do": "reset", "key": change.key}
    else:
        do = "replace" if isinstance(change, ReplaceWith) else "merge" if change.by_id else "add"
        plain = {"do": do, "key": change.key, "value": change.value}
        evidence: Any
        if isinstance(change.evidence, Mapping):
            evidence = {name: _group(change.key, group) for name, group in change.evidence.items() if group}
        else:
            evidence = [_group(change.key, group) for group in change.evidence]
            while evidence and not evidence[-1]:
                evidence.pop()
        if evidence:
            plain["evidence"] = evidence
        if change.incomplete:
            plain["incomplete"] = list(change.incomplete)
    return whole_copy(f"a change of {str(change.key)[:100]!a}", plain)


def _group(key: str, group: Sequence[Evidence]) -> list[Any]:
    if type(group) is list and all([type(each) is dict for each in group]):
        return group  # the usual case; the list is copied when the change is written
    if isinstance(group, list | tuple) or not isinstance(group, Mapping | str | bytes):
        pieces = list(group)
        if all(type(each) is dict or isinstance(each, Mapping) for each in pieces):
            return [each if type(each) is dict else dict(each) for each in pieces]
    raise mismatch(f"the evidence for {key} must be lists of objects")


def change_of(plain: Mapping[str, Any]) -> Change:
    """Return the change with this JSON form. Raises ``ValueError`` or ``KeyError`` if the form is invalid."""
    do = plain["do"]
    if do == "declare":
        return DeclareKey(plain["key"], plain["type"], plain["description"])
    if do == "reset":
        return ResetKey(plain["key"])
    if do in ("add", "merge", "replace"):
        given = (plain["key"], plain["value"], plain.get("evidence", ()), tuple(plain.get("incomplete", ())))
        return ReplaceWith(*given) if do == "replace" else MergeInto(*given, by_id=do == "merge")
    raise ValueError(f"unknown change {do!r}")
