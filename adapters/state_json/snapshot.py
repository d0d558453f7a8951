"""A state at one moment: the implementation of ``state.Snapshot``."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

import orjson
from attrs import evolve, field, frozen
from orjson import Fragment

from ...lang.trees.gasl import StateType
from ..state import Declaration, Difference, StateError
from .changes import undeclared
from .nodes import NOTHING, CounterNode, DictNode, ListNode, Node, as_fragment, find, parsed, plain, walk
from .persistent import EMPTY, Table, Vector, canonical


@frozen(eq=False)
class JSONSnapshot:
    """An immutable state. Snapshots share their common parts."""

    root: DictNode

    @cached_property
    def hash(self) -> str:
        """See ``state.Snapshot``: blake3 in hex; only changed parts are hashed again."""
        return self.root.digest.hex()

    def _node(self, key: str) -> Node:
        node = find(self.root, key)
        if node is None:
            raise undeclared(self.root, key)
        return node

    def get(self, key: str) -> Any:
        """See ``state.Snapshot``."""
        return self._node(key).value()

    def evidence(self, key: str) -> Any:
        """See ``state.Snapshot``."""
        return self._node(key).proof()

    def declared(self, key: str | None = None) -> Sequence[Declaration]:
        """See ``state.Snapshot``; each key's children follow it."""
        node = self.root if key is None else self._node(key)
        below = walk(node, key or "")
        pairs = list(below) if key is None else [(key, node), *below]
        return [Declaration(path, each.type, each.description, each.size, each.incomplete) for path, each in pairs]

    def kind(self, key: str) -> StateType | None:
        """See ``state.Snapshot``."""
        node = find(self.root, key)
        return None if node is None else node.type

    def sample(self, key: str, most: int) -> tuple[int, list[Any]]:
        """See ``state.Snapshot``. An item is an object with one field of a DICT or one count of a COUNTER, or just a number."""
        node = self._node(key)
        if isinstance(node, ListNode):
            return node.size, _spread(node, most)
        table = node.fields if isinstance(node, DictNode) else node.count
        if isinstance(table, Table):
            return len(table), [{name: plain(value)} for name, value in table.some(most)]
        return 1, [table][:most]

    def variables(self, *, raw: bool = False) -> dict[str, Any]:
        """See ``state.Snapshot``; ``raw`` is as for ``written_form``."""
        return {name: written_form(node, raw=raw) for name, node in self.root.children.items()}

    def provenance(self, *, raw: bool = False) -> dict[str, Any]:
        """See ``state.Snapshot``; ``raw`` is as for ``written_form``."""
        kept = ((key, node) for key, node in walk(self.root) if len(node.evidence))
        return {key: Fragment(node.proof_text()) if raw else node.proof() for key, node in kept}


def _spread(node: ListNode, most: int) -> Any:
    size = node.size
    if most <= 0:
        return []
    if size <= most:
        return node.value()
    if most == 1:
        return [parsed(node.items.vector[0])]
    return [parsed(node.items.vector[at * (size - 1) // (most - 1)]) for at in range(most)]


def written_form(node: Node, *, raw: bool = False) -> dict[str, Any]:
    """Return a node in state object form. If ``raw``, existing JSON text is included as ``orjson.Fragment``."""
    form: dict[str, Any] = {"_meta": _meta(node)}
    if isinstance(node, ListNode):
        form["items"] = Fragment(node.text()) if raw else node.value()
    elif isinstance(node, CounterNode):
        form["value"] = node.value()
    else:
        form |= {name: written_form(child, raw=raw) for name, child in node.children.items()}
        form |= {name: as_fragment(value) if raw else plain(value) for name, value in node.fields.items()}
    return form


# A view of a state for prompts and users. Its size is bounded, whatever the size of the state.

_SAMPLE = 3
_TEXT = 200
_PARTS = 12
_LEVELS = 3


def summary(snapshot: JSONSnapshot, keys: Sequence[str] | None) -> dict[str, Any]:
    """Return ``{key: {"type", "size", "description", "incomplete"?, "sample"}}`` for ``keys`` or all keys. Raises ``StateError``."""
    declared = snapshot.declared() if keys is None else [snapshot.declared(key)[0] for key in keys]
    return {
        each.key: {
            "type": each.type,
            "size": each.size,
            "description": each.description,
            **({"incomplete": list(each.incomplete)} if each.incomplete else {}),
            "sample": [bounded(item) for item in snapshot.sample(each.key, _SAMPLE)[1]],
        }
        for each in declared
    }


def bounded(value: Any, levels: int = _LEVELS) -> Any:
    """Return a value in which long strings are cut, and lists and objects have only their first parts; "…" marks omissions."""
    if isinstance(value, str):
        return value if len(value) <= _TEXT else f"{value[:_TEXT]}…"
    if isinstance(value, list):
        if not levels:
            return "…" if value else []
        return [bounded(part, levels - 1) for part in value[:_PARTS]] + (["…"] if len(value) > _PARTS else [])
    if isinstance(value, dict):
        if not levels:
            return "…" if value else {}
        shown = {bounded(name, 0): bounded(part, levels - 1) for name, part in list(value.items())[:_PARTS]}
        return shown | ({"…": len(value) - _PARTS} if len(value) > _PARTS else {})
    return value


# The differences between two states, for users. The time depends only on the differences, because shared parts are skipped.


def differences(before: DictNode, after: DictNode) -> list[Difference]:
    """Return the differences, sorted by key in the order of declaration.

    For a "declared" key, ``after`` has its type and description; for a "removed" key, ``before`` has them. The key's content
    follows as "added" or "removed" items. "added" and "removed" contain a list of a LIST's items, or an object of a DICT's
    fields. "changed" contains an object of a DICT's fields, ``{index: item}`` for a LIST, or ``{"_meta": ...}`` for a
    description or the reasons why a key is incomplete. "count" contains the counts that differ. "provenance" contains the
    evidence that differs, ``{index or field: [...]}`` (a list for a COUNTER).
    """
    return list(_children(before, after, ""))


def _children(before: DictNode, after: DictNode, key: str) -> Iterator[Difference]:
    names = set(before.children.differing(after.children))
    order = [name for name, _ in before.children.items() if name in names] if names else []
    order += (
        [name for name, _ in after.children.items() if name in names and name not in before.children] if names else []
    )
    for name in order:
        path = f"{key}.{name}" if key else name
        old, new = before.children.get(name), after.children.get(name)
        if old is not None and type(old) is type(new):
            yield from _node(path, old, new)
            continue
        if old is not None:
            for gone, node in [(path, old), *walk(old, path)]:
                yield Difference(gone, "removed", before=_meta(node))
                yield from _contents(gone, node, node.emptied())
        if new is not None:
            for come, node in [(path, new), *walk(new, path)]:
                yield Difference(come, "declared", after=_meta(node))
                yield from _contents(come, node.emptied(), node)


def _meta(node: Node) -> dict[str, Any]:
    return {
        "type": node.type,
        "description": node.description,
        **({"incomplete": list(node.incomplete)} if node.incomplete else {}),
    }


def _node(key: str, old: Node, new: Node) -> Iterator[Difference]:
    if old.digest == new.digest:
        return
    if _meta(old) != _meta(new):
        yield Difference(key, "changed", {"_meta": _meta(old)}, {"_meta": _meta(new)})
    yield from _contents(key, old, new)
    if isinstance(old, DictNode) and isinstance(new, DictNode):
        yield from _children(old, new, key)


def _contents(key: str, old: Node, new: Node) -> Iterator[Difference]:
    """Yield the differences between the contents of two nodes of the same type, without their declared keys."""
    if isinstance(old, ListNode) and isinstance(new, ListNode):
        yield from _items(key, old.items.vector, new.items.vector)
        yield from _proofs(key, _by_index(old.evidence, new.evidence))
    elif isinstance(old, DictNode) and isinstance(new, DictNode):
        yield from _fields(key, old.fields, new.fields)
        names = old.evidence.differing(new.evidence)
        yield from _proofs(key, {name: (old.evidence.get(name) or (), new.evidence.get(name) or ()) for name in names})
    elif isinstance(old, CounterNode) and isinstance(new, CounterNode):
        yield from _counts(key, old.count, new.count)
        if old.evidence.digest != new.evidence.digest:
            yield Difference(key, "provenance", old.proof(), new.proof())


def _items(key: str, old: Vector, new: Vector) -> Iterator[Difference]:
    other = [at for at in old.differing(new) if canonical(old[at]) != canonical(new[at])]
    if other:
        before, after = ({str(at): parsed(items[at]) for at in other} for items in (old, new))
        yield Difference(key, "changed", before, after)
    if len(new) > len(old):
        yield Difference(key, "added", after=[parsed(text) for text in new.from_index(len(old))])
    if len(old) > len(new):
        yield Difference(key, "removed", before=[parsed(text) for text in old.from_index(len(new))])


def _fields(key: str, old: Table, new: Table) -> Iterator[Difference]:
    names = old.differing(new)
    before = {name: plain(old.get(name)) for name in names if name in old}
    after = {name: plain(new.get(name)) for name in names if name in new}
    # equal values may be different objects, even with different key orders, so only values that differ as JSON are reported
    changed = [name for name in names if name in old and name in new and _differ(old.get(name), new.get(name))]
    if gone := {name: value for name, value in before.items() if name not in after}:
        yield Difference(key, "removed", before=gone)
    if new_fields := {name: value for name, value in after.items() if name not in before}:
        yield Difference(key, "added", after=new_fields)
    if changed:
        yield Difference(
            key, "changed", {name: before[name] for name in changed}, {name: after[name] for name in changed}
        )


def _differ(one: Any, other: Any) -> bool:
    if isinstance(one, bytes) and isinstance(other, bytes):
        return canonical(one) != canonical(other)
    return not (isinstance(one, Table) and isinstance(other, Table)) or one.digest != other.digest


def _counts(key: str, old: Any, new: Any) -> Iterator[Difference]:
    if isinstance(old, Table) and isinstance(new, Table):
        names = old.differing(new)
        if names:
            before = {name: old.get(name) for name in names if name in old}
            yield Difference(key, "count", before, {name: new.get(name) for name in names if name in new})
    elif isinstance(old, Table) or isinstance(new, Table) or type(old) is not type(new) or old != new:
        yield Difference(key, "count", plain(old), plain(new))


def _by_index(old: Vector, new: Vector) -> dict[str, tuple[tuple[bytes, ...], tuple[bytes, ...]]]:
    pairs = {at: (old[at], new[at]) for at in old.differing(new)}
    longer, shorter = (old, new) if len(old) > len(new) else (new, old)
    for at, texts in enumerate(longer.from_index(len(shorter)), len(shorter)):
        if texts:
            pairs[at] = (texts, ()) if longer is old else ((), texts)
    return {str(at): pair for at, pair in pairs.items()}


def _proofs(key: str, pairs: dict[str, tuple[tuple[bytes, ...], tuple[bytes, ...]]]) -> Iterator[Difference]:
    if pairs:
        before = {at: [parsed(text) for text in old] for at, (old, _) in pairs.items()}
        yield Difference(key, "provenance", before, {at: [parsed(t) for t in new] for at, (_, new) in pairs.items()})


# The complete content of a store at one moment, as an immutable value.


@frozen
class About:
    """Metadata of a run. Times are ISO 8601 in UTC."""

    query: str = ""
    config: Mapping[str, Any] = field(factory=dict)  # never modified after creation
    seed: int = 0
    created_at: str = ""
    updated_at: str = ""


@frozen(eq=False)
class Moment:
    """The content of a store. ``root`` contains variables and provenance; the vectors contain JSON texts."""

    root: DictNode = NOTHING
    history: Vector = EMPTY
    answers: Vector = EMPTY
    commands: Vector = EMPTY
    about: About = field(factory=About)


def with_about(moment: Moment, **changes: Any) -> Moment:
    """Return the moment with these fields of ``about`` changed."""
    return evolve(moment, about=evolve(moment.about, **changes))


def flagged(history: Vector, indices: Sequence[int]) -> Vector:
    """Return the history with these entries marked as rolled back."""
    entries = {at: orjson.dumps(parsed(history[at]) | {"rolled_back": True}) for at in indices}
    return history.changed(entries)


class Entries(Sequence[Mapping[str, Any]]):
    """The values of the JSON texts in a vector. Each text is parsed when its value is accessed."""

    def __init__(self, texts: Vector) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [parsed(self._texts[at]) for at in range(*index.indices(len(self)))]
        return parsed(self._texts[index if index >= 0 else index + len(self)])

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return (parsed(text) for text in self._texts)


# The commits of a session, by hash. They share their common parts; the oldest commits are discarded.

MOST = 1000
"""Number of latest commits that are always held; up to twice as many may be held."""

_HASH = re.compile(r"[0-9a-fA-F]{4,64}\Z")


@frozen(eq=False)
class _Commit:
    root: DictNode
    before: "_Commit | None"
    count: int


@frozen(eq=False)
class Commits:
    """An immutable chain of commits, newest first, so that a fork shares the chain without copying it."""

    _last: _Commit | None = None

    def with_commit(self, root: DictNode) -> "Commits":
        """Return the chain with one more commit, whose state is ``root``."""
        if self._last is not None and self._last.root is root:
            return self
        count = self._last.count if self._last is not None else 0
        if count < 2 * MOST:
            return Commits(_Commit(root, self._last, count + 1))
        kept, each = list[DictNode](), self._last
        while each is not None and len(kept) < MOST:
            kept.append(each.root)
            each = each.before
        last = None
        for at, old in enumerate(reversed(kept), 1):
            last = _Commit(old, last, at)
        return Commits(_Commit(root, last, MOST + 1))

    def find(self, prefix: str) -> DictNode | None:
        """Return the state of the commit with this hash prefix; None if no commit matches.

        Raises ``StateError`` if ``prefix`` is not a hash prefix, or if several commits match.
        """
        if not _HASH.match(prefix):
            raise StateError(f"{prefix[:70]!r} is not a hash; write 4 to 64 hexadecimal digits", status="error")
        wanted, found = prefix.lower(), dict[str, DictNode]()
        each = self._last
        while each is not None:
            own = each.root.digest.hex()
            if own.startswith(wanted):
                found[own] = each.root
            each = each.before
        if len(found) == 1:
            return next(iter(found.values()))
        if found:
            raise StateError(f"{len(found)} commits have a hash that begins with {prefix}", status="error")
        return None
