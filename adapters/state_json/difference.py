"""How two states differ, for people. The cost is what differs: what both share is not looked into."""

from collections.abc import Iterator
from typing import Any

from ..state import Difference
from .values.nodes import CounterNode, DictNode, ListNode, Node, walk
from .values.tables import Table, canonical
from .values.values import parsed, plain
from .values.vectors import Vector

__all__ = ["differences"]


def differences(before: DictNode, after: DictNode) -> list[Difference]:
    """Return the differences, by key in the order of declaration.

    "declared" and "removed" keys: their type and description (``after``, ``before``), then what they hold as "added" or gone with
    them as "removed" items. "added" and "removed": a list of a LIST's items, an object of a DICT's fields. "changed": an object
    of fields, or ``{index: item}`` of a LIST, or ``{"_meta": ...}`` for a description or why it is incomplete. "count": the counts
    that differ. "provenance": the evidence that differs, ``{index or field: [...]}`` (of a COUNTER the list).
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
    """Yield how two nodes of one type differ in what they hold themselves."""
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
        yield Difference(
            key,
            "changed",
            {str(at): parsed(old[at]) for at in other},
            {str(at): parsed(new[at]) for at in other},
        )
    if len(new) > len(old):
        yield Difference(key, "added", after=[parsed(text) for text in new.from_index(len(old))])
    if len(old) > len(new):
        yield Difference(key, "removed", before=[parsed(text) for text in old.from_index(len(new))])


def _fields(key: str, old: Table, new: Table) -> Iterator[Difference]:
    names = old.differing(new)
    gone = {name: plain(old.get(name)) for name in names if name not in new}
    come = {name: plain(new.get(name)) for name in names if name not in old}
    both = {name: (plain(old.get(name)), plain(new.get(name))) for name in names if name not in gone | come}
    # two routes to one value make two objects and maybe two orders of keys; what is left differs as JSON
    other = {name: pair for name, pair in both.items() if _differ(old.get(name), new.get(name))}
    if gone:
        yield Difference(key, "removed", before=gone)
    if come:
        yield Difference(key, "added", after=come)
    if other:
        yield Difference(
            key,
            "changed",
            {name: pair[0] for name, pair in other.items()},
            {name: pair[1] for name, pair in other.items()},
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
